"""A map whose boxes are the blocks of one node has the figures of that node."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from laws.cases import quick
from laws.test_utility import raw_tables, source
from reference.tables import Node, Table

from qblock.metrics import BY_NAME, Published
from qblock.metrics.boxes import MEASURED, Boxes, BoxLeaves
from qblock.metrics.formulas import random_workload


@quick
@given(found=raw_tables())
def test_the_blocks_of_a_node_as_boxes(found: tuple[Table, Node, int]) -> None:
    table, node, least = found
    raw = source(table)
    blocks, hierarchies = raw.blocks(node), raw.hierarchies
    assert blocks.keys is not None
    kept = blocks.rows >= least
    keys, rows = blocks.keys[kept], blocks.rows[kept]
    queries = random_workload(hierarchies, len(raw.domain), queries=7)
    at = Published.of_blocks(node, hierarchies, keys, rows, raw.reference.rows, raw.leaves, queries)
    place = {tuple(key): i for i, key in enumerate(keys.tolist())}
    columns = [h.codes[node[i]][raw.leaves.codes[:, i]] for i, h in enumerate(hierarchies)]
    box = [place.get(tuple(key), -1) for key in np.column_stack(columns).tolist()]
    used = [np.unique(keys[:, i], return_inverse=True) for i in range(len(node))]
    pairs = list(zip(hierarchies, node, strict=True))
    sets = tuple(
        tuple(np.flatnonzero(h.codes[level] == code) for code in codes)
        for (h, level), (codes, _) in zip(pairs, used, strict=True)
    )
    label = np.column_stack([which.reshape(-1) for _, which in used])
    leaves = np.column_stack([h.leaves_under(level)[keys[:, i]] for i, (h, level) in enumerate(pairs)])
    steps = np.array([[level / max(h.height, 1) for h, level in pairs]] * len(keys)).reshape(-1, len(node))
    of_leaves = BoxLeaves(raw.leaves.codes, raw.leaves.value, raw.leaves.count, np.array(box, np.int64), label, sets)
    weights = (Fraction(1),) * len(node)
    boxes = Boxes(hierarchies, raw.reference.rows, rows, leaves, steps, weights, of_leaves, queries)
    for name in MEASURED:
        assert boxes.of(name) == pytest.approx(BY_NAME[name].of(at), abs=1e-12), name
