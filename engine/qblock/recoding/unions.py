"""Unions of blocks where people are counted, who may be in several of them: they do not add up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qblock.blocks import Blocks, Ints
from qblock.frequency import FrequencySets
from qblock.lattice import Node
from qblock.recoding.keys import Keys
from qblock.recoding.parted import PartedKeys, PartedLeaves
from qblock.warehouse import queries


def united(sets: FrequencySets, node: Node, keys: Ints, numbers: Sequence[Ints], sensitive: int) -> list[Blocks]:
    """The unions of a node's blocks with a sensitive attribute, for each way of uniting them.

    keys: int64[B, Q], the codes of the blocks; numbers: of each way int64[B], the union that a block is in, from 0.
    """
    mask = sets.coding.mask(node, (sensitive,))
    of = Keys(sets.coding, [i for i, bits in enumerate(mask) if bits] or [0])
    table = sets.stored(queries.roll_up(sets.base, mask, by_entity=True))
    leaves = PartedLeaves(sets.session, table, of.used, entities=True)
    whole, masks, words = np.zeros(1, dtype=np.int64), [of.of_node(node)], of.bits_of_node(node, keys)
    unions = []
    for number in numbers:
        groups = PartedKeys(np.zeros(len(number), dtype=np.int64), words, number, number)
        alone = leaves.counts_of(whole, masks, groups, None)
        pairs = leaves.counts_of(whole, masks, groups, of.of_values((sensitive,)))
        rows = np.zeros(int(number.max(initial=-1)) + 1, dtype=np.int64)
        rows[alone.part] = alone.n
        value = sets.coding.values(sensitive, of.words(pairs.words))
        union = Blocks.from_pairs(pairs.part, value, pairs.n)
        unions.append(Blocks(union.start, union.value, union.count, rows))
    leaves.drop()
    return unions
