"""What both sides of a cut stand for is reckoned without making their labels, and is what these stand for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from qblock.hierarchy import Hierarchy
from qblock.recoding import Ladder
from qblock.search.boxes.propose import Open, Proposer


def test_sides_of_a_cut_stand_for_the_leaves_of_their_labels() -> None:
    levels = (("1", "2", "3", "4", "5"), ("1-2", "1-2", "3", "4-5", "4-5"), ("*",) * 5)
    ladder = Ladder(Hierarchy("age", ("age", "group", "all"), levels).with_null(), "integer")
    top = ladder.plain(2, 0)
    for level in (0, 1):
        apart = ladder.null_at(level)
        for at in ladder.members(top, level)[1:].tolist():
            for null in {True, at == apart}:
                facts = ([[top.leaves]], [[level]], [[ladder.first_leaf(top)]])
                parts = Open(np.array([1]), *(np.array(of) for of in facts))
                atoms = SimpleNamespace(level=np.array([level]), code=np.array([at]))
                candidates: Any = SimpleNamespace(attribute=0, parts=parts, atoms=atoms)
                proposer: Any = SimpleNamespace(_ladders=[ladder])
                place = np.zeros(1, dtype=np.int64)
                sides = Proposer._sides(proposer, candidates, place, place, np.array([null]), np.array([apart]))
                assert sides.tolist() == [[side.leaves for side in ladder.cut(top, level, at, null=null).labels]]
