"""What the labels of a map say of random tables, read here without the engine: by its texts alone."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from engines import create_table
from integration.sources import make_spec

from qblock.search.run import open_task, run_search
from qblock.spec import Spec

Value = Any
KINDS = {
    "whole": "INTEGER",
    "decimal": "DECIMAL(14, 5)",
    "double": "DOUBLE PRECISION",
    "day": "DATE",
    "time": "TIMESTAMP",
}
TABLES = 200
PARTS = 20


def holds(label: str, value: Value) -> bool:
    """Whether a value is one that a label stands for."""
    if label == "*":
        return True
    known = label.removesuffix(" or (missing)")
    if value is None or known == "(missing)":
        return value is None and "(missing)" in label
    if known == "(known)":
        return True
    if match := re.fullmatch(r"<(.*)", known):
        return bool(value < read(match[1], value))
    if match := re.fullmatch(r">=(.*)", known):
        return bool(value >= read(match[1], value))
    if match := re.fullmatch(r"\[(.*), (.*)\)", known):
        return bool(read(match[1], value) <= value < read(match[2], value))
    ranges = r"(.*\d) to (.*)" if isinstance(value, date) else r"(.*\d) to (.*)|(\d+)-(\d+)"
    if match := re.fullmatch(ranges, known):
        low, high = (text for text in match.groups() if text is not None)
        return bool(read(low, value) <= value < read(high, value, after=True))
    return bool(read(known, value) <= value < read(known, value, after=True))


def read(text: str, like: Value, *, after: bool = False) -> Value:
    """A number, or where a month, a day or a moment begins; after: where what comes next does."""
    if isinstance(like, date):
        if match := re.fullmatch(r"(\d{4})-Q(\d)", text):
            month, year = 3 * int(match[2]) - 2 + 3 * after, int(match[1])
            found: Any = datetime(year + month // 12, month % 12, 1) if month > 12 else datetime(year, month, 1)
        elif match := re.fullmatch(r"(\d{4})(?:-(\d\d))?", text):
            months = 12 * int(match[1]) + int(match[2] or 1) - 1 + after * (1 if match[2] else 12)
            found = datetime(months // 12, months % 12 + 1, 1)
        elif match := re.fullmatch(r"(\d{4})-W(\d\d)", text):
            monday = date.fromisocalendar(int(match[1]), int(match[2]), 1) + timedelta(weeks=after)
            found = datetime.combine(monday, datetime.min.time())
        else:
            found = datetime.fromisoformat(text) + timedelta(seconds=after) * (1 if ":" in text else 86_400)
        return found if isinstance(like, datetime) else found.date()
    number = Decimal(text)
    step = Decimal(1) if isinstance(like, int) else Decimal("1e-9")
    return number + step if after else number


def values(draw: random.Random, kind: str, rows: int) -> list[Value]:
    """A column, often with a value per row."""
    spread = draw.choice([3, 40, 5000])
    if kind == "whole":
        return [draw.randint(-spread, 2 * spread) for _ in range(rows)]
    if kind in ("decimal", "double"):
        found = [Decimal(draw.randint(-spread * 10**5, 2 * spread * 10**5)) / 10**5 for _ in range(rows)]
        return found if kind == "decimal" else [Decimal(repr(float(value))) for value in found]
    moments = [datetime(2023, 1, 1) + timedelta(minutes=draw.randint(0, 400 * 1440)) for _ in range(rows)]
    return moments if kind == "time" else [moment.date() for moment in moments]


def hierarchy(draw: random.Random, kind: str) -> Any:
    if draw.random() < 0.3:
        return "suppress"
    if kind in ("day", "time"):
        return draw.choice([{"dates": ["month", "year"]}, {"dates": ["week"]}, {"dates": ["month", "quarter"]}])
    more = draw.choice([{}, {"start": 3}, {"from": -10, "to": 30}])
    return {"ranges": draw.choice([[5, 10], [10, 20, 100]]), **more}


class Table:
    """A random table of one or two ordered columns and the spec that asks for its map."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        rows = draw.choice([30, 60])
        names = "ab"[: draw.randint(1, 2)]
        self.kinds = {name: draw.choice(list(KINDS)) for name in names}
        self.columns: dict[str, list[Value]] = {}
        self.attributes: dict[str, Any] = {}
        for name, kind in self.kinds.items():
            column = values(draw, kind, rows)
            share = draw.choice([0, 0, 1 / rows, 0.1])
            if draw.random() < share * rows:
                column = [None if draw.random() < share else value for value in column]
            self.columns[name] = column
            nulls = {"nulls": "top"} if None in column else {}
            self.attributes[name] = {"role": "quasi_identifier", "hierarchy": hierarchy(draw, kind), **nulls}
        self.k = draw.randint(2, 6)

    @property
    def rows(self) -> list[tuple[Value, ...]]:
        return list(zip(*self.columns.values(), strict=True))

    def spec(self, url: str, folder: Path, table: str = "t") -> Spec:
        create_table(url, table, self.columns, {name: KINDS[kind] for name, kind in self.kinds.items()})
        search = {"recoding": "multidimensional", "choose_by": "loss"}
        return make_spec(url, table, self.attributes, [{"k_anonymity": {"k": self.k}}], folder, search=search)


def boxes_of(spec: Spec) -> list[tuple[str, ...]]:
    with open_task(spec) as task:
        recoded = run_search(task).recoded
        assert recoded is not None
        return recoded.boxes


def duckdb(folder: Path) -> str:
    return f"duckdb:///{folder / 'warehouse.duckdb'}"


def box_of(row: Sequence[Value], boxes: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    (box,) = (box for box in boxes if all(holds(label, value) for label, value in zip(box, row, strict=True)))
    return box


@pytest.mark.parametrize("part", range(PARTS))
def test_each_row_is_in_one_box_by_what_the_labels_say(tmp_path: Path, part: int) -> None:
    for seed in range(part, TABLES, PARTS):
        table = Table(seed)
        boxes = boxes_of(table.spec(duckdb(tmp_path), tmp_path, f"t{seed}"))
        assert len(set(boxes)) == len(boxes), seed
        sizes = Counter(box_of(row, boxes) for row in table.rows)
        assert set(sizes) == set(boxes), seed
        assert min(sizes.values()) >= table.k, seed


@pytest.mark.parametrize("seed", range(5))
def test_a_bound_is_somebodys_value_only_where_no_rounder_number_parts_two(tmp_path: Path, seed: int) -> None:
    """300 decimals, a value per row; and with `finest` bounds are its multiples alone."""
    draw = random.Random(seed)
    table = Table(0)
    table.k, table.kinds = 5, {"a": draw.choice(["decimal", "double"])}
    table.columns = {"a": sorted({Decimal(draw.randint(15 * 10**5, 60 * 10**5)) / 10**5 for _ in range(300)})}
    for finest in ({}, {"finest": 1}):
        table.attributes = {"a": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 20], **finest}}}
        boxes = boxes_of(table.spec(duckdb(tmp_path), tmp_path, "with" if finest else "without"))
        ends = {Decimal(end) for (label,) in boxes for end in re.findall(r"-?\d+\.?\d*", label)}
        assert len(boxes) > 20
        for end in ends:
            if finest:
                assert end % 1 == 0
                continue
            below = max((value for value in table.columns["a"] if value < end), default=None)
            above = min((value for value in table.columns["a"] if value >= end), default=None)
            if below is not None and above is not None:
                coarser = Decimal(10) * Decimal(1).scaleb(min(0, int(end.normalize().as_tuple().exponent)))
                assert above // coarser == below // coarser or end % coarser == 0


@pytest.mark.parametrize("seed", range(5))
def test_both_engines_say_the_same(postgresql_url: str, tmp_path: Path, seed: int) -> None:
    table = Table(1000 + seed)
    assert boxes_of(table.spec(duckdb(tmp_path), tmp_path)) == boxes_of(table.spec(postgresql_url, tmp_path))


@pytest.mark.parametrize("missing", [0, 1, 40])
def test_a_missing_value_costs_few_rows(tmp_path: Path, missing: int) -> None:
    """One among 2,700 ages is published with as many as a block needs, and no other label speaks of it."""
    draw = random.Random(3)
    table = Table(0)
    table.k, rows = 20, 2700
    table.kinds = {"age": "whole", "size": "whole"}
    ages = [min(95, max(18, round(draw.gauss(45, 15)))) for _ in range(rows)]
    table.columns = {"age": [None if i < missing else age for i, age in enumerate(ages)]}
    table.columns["size"] = [draw.randint(0, 5) for _ in range(rows)]
    ranges = {"role": "quasi_identifier", "hierarchy": {"ranges": [5, 10, 20]}}
    table.attributes = {"age": {**ranges, "nulls": "top"}, "size": {**ranges, "hierarchy": {"edges": [0, 1, 3]}}}
    boxes = boxes_of(table.spec(duckdb(tmp_path), tmp_path))
    sizes = Counter(box_of(row, boxes) for row in table.rows)
    said = {box: n for box, n in sizes.items() if "(missing)" in box[0]}
    assert len(said) == 1 if missing == 1 else len(said) >= bool(missing)
    assert all(n < 2 * table.k for n in said.values())
    assert not any(box[0] in ("*", "(known)") for box in boxes)
