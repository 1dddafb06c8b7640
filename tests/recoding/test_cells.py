"""Where in its cell of the grid of cuts one person's value lies: no label of a map depends on it, without `finest`."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from engines import create_table
from integration.sources import make_spec

from qblock.publish.bounds import bounds_of
from qblock.search.run import open_task, run_search
from qblock.search.task import Task

from .test_labels import KINDS, duckdb

Value = Any
Cell = Callable[[Value], Any]
FINEST = Decimal("1e-5")
BEGIN = datetime(2023, 1, 1)
PAIRS = 60
PARTS = 15


def number_cells() -> Iterator[Cell]:
    """Of numbers, the coarsest first: 10^6, 5 x 10^5, 10^5 ..."""
    for power in range(6, -6, -1):
        for step in (Decimal(10) ** power, Decimal(5) * Decimal(10) ** (power - 1)):
            if step >= FINEST:
                yield lambda value, step=step: (value / step).to_integral_value("ROUND_FLOOR")  # type: ignore[misc]


def moment_cells() -> Iterator[Cell]:
    """Of moments: of years, quarters, months, days, hours and minutes, as their ISO texts begin."""
    yield lambda value: value.year
    yield lambda value: (value.year, (value.month - 1) // 3)
    for characters in (7, 10, 13, 16):
        yield lambda value, characters=characters: value.isoformat()[:characters]  # type: ignore[misc]


def levels_of(hierarchy: Any) -> list[Cell]:
    """What a value reads as at the levels of a hierarchy, as far as two values read the same or not."""
    if hierarchy == "suppress":
        return []
    if "dates" in hierarchy:
        return [lambda value: (value.year, value.month), lambda value: value.isocalendar()[:2]]
    widths, start = hierarchy["ranges"], hierarchy.get("start", 0)
    ends = [hierarchy[end] for end in ("from", "to") if end in hierarchy]
    cells: list[Cell] = [
        lambda value, width=width: ((Decimal(value) - start) / width).to_integral_value("ROUND_FLOOR")  # type: ignore[misc]
        for width in widths
    ]
    return [*cells, lambda value: [value < end for end in ends]]


def near(draw: random.Random, value: Value) -> Value:
    """Another value of the column's type, far away or close by."""
    if isinstance(value, datetime):
        return value + timedelta(minutes=draw.choice([-1, 1]) * round(10 ** draw.uniform(0, 5)))
    if isinstance(value, date):
        return value + timedelta(days=draw.randint(-60, 60))
    if isinstance(value, int):
        return value + draw.randint(-9, 9)
    return value + draw.choice([-1, 1]) * round(Decimal(10 ** draw.uniform(-5, 1)), 5)


def moved(draw: random.Random, column: list[Value], row: int, hierarchy: Any) -> Value:
    """Another value for this row in the same cell of the coarsest grid that parts it from both neighbours; None where
    none was drawn, or somebody else has its value."""
    value = column[row]
    others = sorted({other for at, other in enumerate(column) if at != row and other is not None})
    if value is None or value in others:
        return None
    at = bisect_left(others, value)
    neighbours = others[max(0, at - 1) : at + 1]
    cells = moment_cells() if isinstance(value, date) else number_cells()
    cell = next((cell for cell in cells if all(cell(value) != cell(other) for other in neighbours)), None)
    if cell is None:
        return None
    same = [cell, *levels_of(hierarchy)]
    for _ in range(60):
        other = near(draw, value)
        if other != value and all(of(other) == of(value) for of in same):
            return other
    return None


def column_of(draw: random.Random, kind: str, rows: int) -> list[Value]:
    spread = draw.choice([10, 80, 5000])
    if kind == "whole":
        return draw.sample(range(-spread, max(2 * spread, rows)), rows // 2) * 2
    if kind in ("decimal", "double"):
        grain = draw.choice([1, 10**3, 10**5])
        return [
            Decimal(draw.randint(-spread * 10**5, 2 * spread * 10**5) // grain * grain) / 10**5 for _ in range(rows)
        ]
    moments = [BEGIN + timedelta(minutes=draw.randint(0, draw.choice([3, 40, 900]) * 1440)) for _ in range(rows)]
    return moments if kind == "time" else [moment.date() for moment in moments]


def hierarchy_of(draw: random.Random, kind: str) -> Any:
    if draw.random() < 0.4:
        return "suppress"
    if kind in ("day", "time"):
        return {"dates": draw.choice([["month", "year"], ["week"], ["month", "quarter"]])}
    return {"ranges": draw.choice([[5, 10], [10, 20, 100]]), **draw.choice([{}, {"start": 3}, {"from": -10, "to": 30}])}


class Pair:
    """A table of ordered columns, and the same with one person's value moved and its rows in another order."""

    def __init__(self, draw: random.Random) -> None:
        self.kinds = {name: draw.choice(list(KINDS)) for name in "abc"[: draw.choice([1, 2, 2, 3])]}
        self.k, rows = draw.randint(2, 3), draw.choice([8, 12, 20])
        self.hierarchies = {name: hierarchy_of(draw, kind) for name, kind in self.kinds.items()}
        self.columns = {name: column_of(draw, kind, rows) for name, kind in self.kinds.items()}
        for column in self.columns.values():
            if draw.random() < 0.2:
                column[draw.randrange(rows)] = None
        order = draw.sample(range(rows), rows)
        self.others = {name: [column[row] for row in order] for name, column in self.columns.items()}
        self.moved = False
        for name, row in draw.sample([(name, row) for name in self.kinds for row in range(rows)], rows):
            if not self.moved and (value := moved(draw, self.columns[name], row, self.hierarchies[name])) is not None:
                self.others[name][order.index(row)] = value
                self.moved = True

    def answer(self, table: str, folder: Path, columns: dict[str, list[Value]]) -> list[tuple[Any, ...]]:
        """All boxes with their rows and the bounds of their labels."""
        create_table(duckdb(folder), table, columns, {name: KINDS[kind] for name, kind in self.kinds.items()})
        attributes = {
            name: {"role": "quasi_identifier", "hierarchy": hierarchy, "nulls": "top"}
            for name, hierarchy in self.hierarchies.items()
        }
        search = {"recoding": "multidimensional", "choose_by": "loss"}
        spec = make_spec(duckdb(folder), table, attributes, [{"k_anonymity": {"k": self.k}}], folder, search=search)
        with open_task(spec) as task:
            return published(task)


def published(task: Task) -> list[tuple[Any, ...]]:
    recoded = run_search(task).recoded
    assert recoded is not None
    bounds = bounds_of(task.spec, task.source.columns, "duckdb", "columns", joined=True)
    names = [hierarchy.attribute for hierarchy in task.source.hierarchies]
    tree, boxes = recoded.specialized.tree, recoded.specialized.boxes.tolist()
    shown = [(tuple(recoded.texts[label] for label in tree.labels[boxes[i]]), i) for i in recoded.kept.tolist()]
    return sorted(
        (
            *box,
            int(recoded.specialized.groups.rows[i]),
            *(bounds[name].texts_of(label) for name, label in zip(names, box, strict=True) if name in bounds),
        )
        for box, i in shown
    )


def pair_of(seed: int) -> Pair:
    """A drawn pair in which somebody was moved."""
    draw = random.Random(seed)
    return next(pair for pair in iter(lambda: Pair(draw), None) if pair.moved)


@pytest.mark.parametrize("part", range(PARTS))
def test_where_in_its_cell_of_the_cuts_a_value_lies_changes_no_label(tmp_path: Path, part: int) -> None:
    for seed in range(part, PAIRS, PARTS):
        pair = pair_of(seed)
        before = pair.answer(f"t{seed}", tmp_path, pair.columns)
        assert before == pair.answer(f"u{seed}", tmp_path, pair.others), seed
