"""Values that are read as cells of a grid: what a hierarchy begins with, and what nobody can tell any more."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from integration.sources import make_spec

from qblock.errors import InputError
from qblock.publish.hierarchies import dimension_tables, write_hierarchies
from qblock.search.run import open_task, run_search
from qblock.spec import read_spec
from qblock.spec.sources import Dates, Edges, Ranges, build

pytestmark = pytest.mark.either_engine


@pytest.mark.parametrize(
    ("form", "values", "kind", "leaves", "above"),
    [
        (
            Ranges(ranges=(10,), finest=Fraction(1, 2)),
            ["27.87953", "27.5", "-0.2", "28"],
            "decimal",
            ("[-0.5, 0)", "[27.5, 28)", "[28, 28.5)"),
            ("[-10, 0)", "[20, 30)", "[20, 30)"),
        ),
        (
            Ranges(ranges=(10,), start=3, finest=5, from_=13),
            ["1", "7", "12", "13", "22"],
            "integer",
            ("-2 to 2", "3-7", "8-12", "13-17", "18-22"),
            ("<13", "<13", "<13", "13-22", "13-22"),
        ),
        (Edges(edges=(0, 10), finest=5), ["0", "4", "11"], "integer", ("0-4", "10-14"), ("0-9", ">=10")),
        (
            Dates(dates=("month",), finest="day"),
            ["2024-01-05 10:00:00", "2024-01-05 23:59:59", "2024-02-01 00:00:00"],
            "timestamp",
            ("2024-01-05", "2024-02-01"),
            ("2024-01", "2024-02"),
        ),
    ],
)
def test_leaves_are_cells(form: Any, values: list[str], kind: Any, leaves: Any, above: Any) -> None:
    made = build(form, "a", values, kind)
    assert (made.leaves, made.labels[1]) == (leaves, above)
    assert made.check(observed=True) == []
    covered, leaf = made.add_null_leaf().values
    assert dict(zip(covered, leaf.tolist(), strict=True)).keys() == {*values, None}
    assert made.add_null_leaf().leaves[leaf[covered.index(None)]] is None


@pytest.mark.parametrize(
    ("hierarchy", "said"),
    [
        ("{ranges: [5, 10], finest: 2}", "5 is not a multiple of finest 2"),
        ("{edges: [0, 1, 5], finest: 0.3}", "1 is not a multiple of finest 0.3"),
        ("{ranges: [5], finest: 0}", "above 0"),
        ("{dates: [month], finest: quarter}", "does not nest"),
        ("{dates: [day, month], finest: day}", r"which does not nest in itself; write `dates: \[month\]`"),
        ("{dates: [month], finest: month}", "which does not nest in itself; leave `finest` out"),
    ],
)
def test_cells_that_cross_a_label_are_refused(hierarchy: str, said: str) -> None:
    text = f"""
version: 1
release: r
source: {{url: "duckdb:///a.duckdb", table: t}}
attributes:
  a: {{role: quasi_identifier, hierarchy: {hierarchy}}}
privacy: [k_anonymity: {{k: 2}}]
"""
    with pytest.raises(InputError, match=said):
        read_spec(text, "spec.yaml", {})


def test_a_taxonomy_has_no_cells() -> None:
    text = """
version: 1
release: r
source: {url: "duckdb:///a.duckdb", table: t}
attributes:
  a: {role: quasi_identifier, hierarchy: suppress}
  s: {role: sensitive, taxonomy: {ranges: [10], finest: 5}}
privacy: [k_anonymity: {k: 2}]
"""
    with pytest.raises(InputError, match="finest is for quasi-identifiers"):
        read_spec(text, "spec.yaml", {})


def test_a_file_of_cells_is_refused(warehouse: Any, tmp_path: Path) -> None:
    attributes = {"a": {"role": "quasi_identifier", "hierarchy": {"ranges": [10], "finest": 5}}}
    spec = make_spec(warehouse("t", {"a": [1, 2]}), "t", attributes, [{"k_anonymity": {"k": 2}}], tmp_path)
    with open_task(spec) as task, pytest.raises(InputError, match="values of a are read as cells"):
        write_hierarchies(task, tmp_path / "made")
    with open_task(spec) as task, pytest.raises(InputError, match="values of a are read as cells"):
        dimension_tables(task)
    assert not (tmp_path / "made").exists()


def answer(warehouse: Any, folder: Path, name: str, columns: dict[str, list[Any]], recoding: str) -> Any:
    """All that a search finds, and the hierarchies that it saw."""
    types = {"dose": "DECIMAL(12, 5)", "size": "DOUBLE PRECISION", "seen": "TIMESTAMP"}
    url = warehouse(name, columns, types)
    attributes = {
        "dose": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 20], "finest": 1}, "nulls": "top"},
        "size": {"role": "quasi_identifier", "hierarchy": {"ranges": [0.5, 1], "finest": 0.1}},
        "seen": {"role": "quasi_identifier", "hierarchy": {"dates": ["month", "year"], "finest": "day"}},
    }
    attributes = {of: entry for of, entry in attributes.items() if of in columns}
    search = {"recoding": recoding, "choose_by": "loss"}
    spec = make_spec(url, name, attributes, [{"k_anonymity": {"k": 3}}], folder, search=search)
    with open_task(spec) as task:
        result = run_search(task)
        boxes = [] if result.recoded is None else result.recoded.boxes
        hierarchies = {hierarchy.attribute: hierarchy.digest() for hierarchy in task.source.hierarchies}
        found = result.to_json()
        return boxes, hierarchies, found["chosen"], task.source.frequency_sets.leaf_counts([])[2].tolist()


@pytest.mark.parametrize("recoding", ["multidimensional", "full_domain"])
@pytest.mark.parametrize("seed", range(3))
def test_where_in_its_cell_a_value_lies_changes_nothing(
    warehouse: Any, tmp_path: Path, recoding: str, seed: int
) -> None:
    """Of everybody's value at once, which is more than one person's."""
    draw = random.Random(seed)
    rows, begin = 60, datetime(2024, 1, 1)
    cells = [(draw.randint(-20, 40), draw.randint(-30, 30), draw.randint(0, 400)) for _ in range(rows)]

    def drawn() -> dict[str, list[Any]]:
        within = [
            (draw.randint(0, 99_999), draw.choice([0, 9, draw.randint(0, 9)]), draw.randint(0, 86_399)) for _ in cells
        ]
        both = list(zip(cells, within, strict=True))
        return {
            "dose": [None if c == 7 else Fraction(c * 10**5 + w, 10**5) for (c, _, _), (w, _, _) in both],
            "size": [round((10 * c + w) / 100, 2) for (_, c, _), (_, w, _) in both],
            "seen": [begin + timedelta(days=c, seconds=w) for (_, _, c), (_, _, w) in both],
        }

    one, other = drawn(), drawn()
    for columns in (one, other):
        columns["dose"] = [None if dose is None else round(float(dose), 5) for dose in columns["dose"]]
        if recoding == "full_domain":
            del columns["seen"]
    assert Counter(one["size"]) != Counter(other["size"])
    assert answer(warehouse, tmp_path, "one", one, recoding) == answer(warehouse, tmp_path, "other", other, recoding)
