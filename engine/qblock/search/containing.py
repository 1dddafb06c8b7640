"""The natural supersets that (n,t)-closeness holds the blocks of a node against."""

from __future__ import annotations

import numpy as np

from qblock.blocks import Blocks, Containing, Ints, number_keys
from qblock.errors import InputError
from qblock.frequency import positions
from qblock.hierarchy import Hierarchy
from qblock.lattice import Lattice, Node
from qblock.recoding.parts import united
from qblock.source import SourceTable
from qblock.spec import Requirement

PAIR = 64
"""Bytes that a pair of a block and a value takes in each generalization of a node, about."""


def containing(
    source: SourceTable, requirement: Requirement, node: Node, sensitive: int, blocks: Blocks
) -> tuple[Containing, ...]:
    """Those of the variant that a requirement asks for. sensitive: the number of its attribute; blocks: of the node,
    with their keys."""
    if getattr(requirement.model, "variant", "") == "partition":
        return _split_from(source, node, sensitive, blocks)
    return _generalizations(source, requirement, node, sensitive, blocks)


def _split_from(source: SourceTable, node: Node, sensitive: int, blocks: Blocks) -> tuple[Containing, ...]:
    """The parts that the boxes of a recoding map were split from: one node of them for each depth. The blocks of a node
    were split from nothing but the table."""
    recoding = source.recoding
    if recoding is None or not len(blocks):
        return ()
    assert blocks.keys is not None
    texts = [hierarchy.shown(level) for hierarchy, level in zip(source.hierarchies, node, strict=True)]
    keys = enumerate(blocks.keys.tolist(), 1)
    boxes = ((i, tuple(text[code] for text, code in zip(texts, key, strict=True))) for i, key in keys)
    # Of a box that was never split from anything that is known, the table is all that it is within.
    paths = [recoding.path(labels) or [0, -i] for i, labels in boxes]
    numbers = []
    for depth in range(max(map(len, paths))):
        # A shorter path ends in the box itself.
        at = [path[min(depth, len(path) - 1)] for path in paths]
        numbers.append(np.unique(at, return_inverse=True)[1].reshape(-1).astype(np.int64))
    sets = source.frequency_sets
    if not sets.entities:
        return tuple(Containing(blocks.merged(index), index) for index in numbers)
    unions = united(sets, node, blocks.keys, numbers, sensitive)
    return tuple(Containing(union, index) for union, index in zip(unions, numbers, strict=True))


def _generalizations(
    source: SourceTable, requirement: Requirement, node: Node, sensitive: int, blocks: Blocks
) -> tuple[Containing, ...]:
    assert blocks.keys is not None
    sets = source.frequency_sets
    result = []
    # Natural supersets, whether or not they may be published: of the whole lattice, above `max` too.
    above = Lattice(tuple(h - level for h, level in zip(sets.lattice.heights, node, strict=True)))
    if len(above) * len(blocks.count) * PAIR > sets.memory:
        place = source.spec.at_requirement(requirement)
        raise InputError(
            f"{place}: (n,t)-closeness of variant lattice looks at all {len(above):,} generalizations of node "
            f"{list(node)}, more than memory holds; write `variant: own_or_top`, or raise `search.memory_limit`"
        )
    for steps in above.nodes():
        coarser = tuple(map(sum, zip(node, steps, strict=True)))
        if coarser != node:
            keys = _generalize(blocks.keys, source.hierarchies, coarser)
            if sets.entities:
                # They are not additive: a union of blocks must be recounted.
                union = sets.blocks(coarser, [sensitive])[0]
                assert union.keys is not None
                index = positions(keys, union.keys)
            else:
                index, _ = number_keys(keys)
                union = blocks.merged(index)
            result.append(Containing(union, index))
    return tuple(result)


def _generalize(keys: Ints, hierarchies: tuple[Hierarchy, ...], node: Node) -> Ints:
    """Codes int64[R, Q] of a finer node as codes of this one."""
    columns = [
        hierarchy.codes[level][keys[:, i]] for i, (hierarchy, level) in enumerate(zip(hierarchies, node, strict=True))
    ]
    return np.column_stack(columns).astype(np.int64)
