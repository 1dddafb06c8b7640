"""How far a search is said to be, and the guess of how long it still takes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frequency.test_samples import PRIVACY, people
from hypothesis import given
from hypothesis import strategies as st
from integration.sources import opened

from qblock.lattice import Lattice
from qblock.search.boxes.recoded import search_map
from qblock.search.lattice import BestOnly
from qblock.search.progress import FIRST, Pace, SearchProgress
from qblock.search.run import run_search
from qblock.search.strategies import search
from search.fakes import Known, up_set

Step = tuple[float, int, float]


def paced(steps: list[Step]) -> list[SearchProgress]:
    """What is reported of questions that take so long, leave so many nodes, and have this price next."""
    seen: list[SearchProgress] = []
    times = iter([0.0, *itertools.accumulate(seconds for seconds, _, _ in steps)])
    read = itertools.count(0, 7)
    pace = Pace("search", seen.append, lambda: next(read), lambda: next(times))
    for number, (_, left, price) in enumerate(steps):
        pace(number, left, price)
    return seen


def test_it_counts_questions_and_the_rows_that_were_read_since_it_began() -> None:
    seen = paced([(2.0, 5, 0.0), (2.0, 4, 0.0)])
    assert [(report.questions, report.seconds, report.rows_read, report.rate) for report in seen] == [
        (1, 2.0, 7, 0.5),
        (2, 4.0, 14, 0.5),
    ]
    assert [report.remaining for report in seen] == [None, None]


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 10_000), st.floats(0, 1e10)), min_size=1, max_size=60))
def test_any_order_of_what_is_left_gives_a_guess_or_none(steps: list[Step]) -> None:
    for number, (report, (_, left, _)) in enumerate(zip(paced(steps), steps, strict=True), 1):
        if not left:
            assert report.remaining == 0
        elif number < FIRST:
            assert report.remaining is None
        else:
            assert report.remaining is not None
            assert 0 <= report.remaining < float("inf")


def scan() -> list[Step]:
    return [(1.0, left, 1e6) for left in reversed(range(200))]


def halving() -> list[Step]:
    """Each question decides a fiftieth of what is left, and at least one node; the first ones read more."""
    left, steps = 20_000, []
    while left:
        left -= max(1, left // 50)
        steps.append((5.0 if len(steps) < 10 else 0.5, left, 1e7 if len(steps) < 9 else 1e6))
    return steps


def uneven() -> list[Step]:
    drawn, left, steps = random.Random(1), 5_000, []
    while left:
        left -= min(left, drawn.choice([1, 1, 1, 1, max(1, left // 10)]))
        steps.append((drawn.expovariate(1.0), left, 0.0))
    return steps


@pytest.mark.parametrize("make_steps", [scan, halving, uneven])
def test_after_a_quarter_of_the_time_the_guess_is_within_a_factor_of_two(
    make_steps: Callable[[], list[Step]],
) -> None:
    seen = paced(make_steps())
    whole = seen[-1].seconds
    for report in seen:
        if report.seconds >= whole / 4:
            assert report.remaining is not None
            assert whole / 2 <= report.seconds + report.remaining <= whole * 2


def test_nodes_that_cannot_be_the_best_are_not_left() -> None:
    lattice = Lattice((3, 3))
    passing = up_set(lattice, [(1, 1)])
    bounds = np.add.outer(np.arange(4.0), np.arange(4.0))
    left: list[int] = []
    outcome = search(
        Known(lattice, passing, passing),
        best_only=BestOnly(bounds, lambda node: float(sum(node))),
        tally=lambda decided, open_, price: left.append(open_),
    )
    assert left[-1] == 0
    assert int((~outcome.decided).sum()) > 0


def test_nothing_is_guessed_of_how_long_a_map_takes() -> None:
    """After its parts have become more for many rounds they become fewer at once."""
    seen: list[SearchProgress] = []
    times = itertools.count(0.0, 5.0)
    pace = Pace("boxes", seen.append, clock=lambda: next(times))
    for done, open_, rows in [(0, 1 << i, 1000) for i in range(12)] + [(3000, 1000, 250), (4000, 1, 10)]:
        pace(done, open_, float(rows))
    assert {report.remaining for report in seen} == {None}
    assert [report.settled for report in seen[-3:]] == [0, 0.75, 0.99]


@pytest.mark.either_engine
@pytest.mark.parametrize("count", ["rows", "entities"])
def test_a_map_says_which_share_of_the_rows_its_boxes_have(warehouse: Any, tmp_path: Path, count: str) -> None:
    rows = people(tmp_path, 240, 3)
    url = warehouse("t", {column.name: column.values for column in rows.columns} | {"person": list(range(rows.size))})
    attributes = rows.attributes() | {"person": "identifying"}
    more: dict[str, Any] = {"entity": "person", "count": "entities"} if count == "entities" else {}
    more |= {"privacy": [{"k_anonymity": {"k": 5}}], "search": {"recoding": "multidimensional"}}
    reports: list[tuple[int, int, float]] = []
    with opened(url, "t", attributes, tmp_path, **more) as task:
        recoded = search_map(task, None, lambda: lambda *told: reports.append(told))
        assert recoded is not None
        sizes = recoded.specialized.groups.rows
        rounds, boxes = recoded.specialized.rounds, len(recoded.specialized.boxes)
    assert len(reports) == rounds > 1
    assert boxes > 2
    open_ = [rows for _, _, rows in reports]
    if count == "entities":
        assert set(open_) == {0}
        return
    assert open_[0] == sizes.sum() == 240
    assert open_ == sorted(open_, reverse=True)
    assert 0 < open_[-1] < 240


@pytest.mark.either_engine
def test_the_stages_of_a_search_and_the_rows_it_read(warehouse: Any, tmp_path: Path) -> None:
    seen: list[SearchProgress] = []
    privacy, more = PRIVACY["suppressed"]
    rows = people(tmp_path, 240, 3)
    url = warehouse("t", {column.name: column.values for column in rows.columns})
    with opened(url, "t", rows.attributes(), tmp_path, privacy=privacy, search={"choose_by": "loss"}, **more) as task:
        run_search(task, progress=seen.append, all_nodes=True)
        rows_read = task.source.frequency_sets.rows_read
    stages = [stage for stage, _ in itertools.groupby(seen, lambda report: report.stage)]
    assert stages == ["search", "choice", "nodes"]
    for stage in stages:
        of_stage = [report for report in seen if report.stage == stage]
        assert [report.questions for report in of_stage] == list(range(1, len(of_stage) + 1))
    assert seen[-1].left == 0
    assert 0 < [report for report in seen if report.stage == "search"][-1].rows_read <= rows_read
