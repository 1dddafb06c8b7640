"""`search: {box: {least: N}}`: no box of a map has fewer, by a count of the table's own rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from reference.recoding import Box

from .answers import Answer, answered
from .drawn import SUPPORTED, Drawn, drawn
from .test_laws import METRICS, check_boxes, check_named, few, folder_of, seeds

pytestmark = pytest.mark.either_engine


def inside(made: Drawn, box: Box) -> int:
    """The rows of a part, or the people where these are counted."""
    rows = made.table.inside(box)
    return len({row["person"] for row in rows}) if made.world.table.entity else len(rows)


def least_of(made: Drawn, seed: int) -> int:
    """A number that the whole table has."""
    return 1 + seed % inside(made, made.table.everything)


def check_least(answer: Answer, made: Drawn, least: int) -> None:
    assert answer.boxes
    assert all(inside(made, box) >= least for box in answer.boxes)


@pytest.mark.parametrize("model", SUPPORTED)
@few
@given(seed=seeds)
def test_the_map_is_the_one_that_a_slow_search_finds(warehouse: Any, tmp_path: Path, model: str, seed: int) -> None:
    folder, name = folder_of(tmp_path)
    made = drawn(f"least {model} {seed}", folder, model, people=False)
    by, least = METRICS[seed % 3], least_of(made, seed)
    search = {"choose_by": by, "box": {"least": least}}
    spec = made.spec(made.fill(warehouse, name), name, folder, search=search)
    with answered(made.table, spec) as answer:
        check_boxes(answer, made, 0)
        check_least(answer, made, least)
        check_named(answer, spec)

    def passes(box: Box, path: tuple[Box, ...]) -> bool:
        return inside(made, box) >= least and made.passes(box, path)

    found = made.table.specialize(answer.begun, by, passes)
    assert found is not None
    assert set(answer.boxes) == set(found)


@pytest.mark.parametrize("choose_from", ["minimal", "sizes"])
@pytest.mark.parametrize(("people", "limit"), [(True, 0), (False, 5), (True, 5)])
@few
@given(seed=seeds)
def test_people_sizes_weights_and_a_limit(
    warehouse: Any, tmp_path: Path, people: bool, limit: int, choose_from: str, seed: int
) -> None:
    folder, name = folder_of(tmp_path)
    made = drawn(f"least people {seed}", folder, people=people)
    least = least_of(made, seed)
    search = {"choose_by": METRICS[seed % 2], "choose_from": choose_from, "box": {"least": least}}
    search["weights"] = {made.table.attributes[0].name: 3}
    spec = made.spec(made.fill(warehouse, name), name, folder, search=search, suppression_limit=limit)
    with answered(made.table, spec) as answer:
        if choose_from == "sizes" and answer.result.chosen is None:
            # The models fail, never the size.
            assert "search.box" not in answer.result.why
            return
        check_boxes(answer, made, limit)
        check_least(answer, made, least)
        check_named(answer, spec)
