"""Hierarchies and domains of a source: built, read from files and from tables of the warehouse."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from engines import table_name
from integration.sources import execute, make_spec, opened, quoted

from qblock.errors import InputError
from qblock.search.run import open_task
from source.test_sources import QUASI, labels, problem

pytestmark = pytest.mark.either_engine


def test_builders(warehouse, tmp_path: Path) -> None:
    moments = [datetime(2020, 12, 31, 23, 59, 59), datetime(2021, 1, 1), datetime(2021, 1, 4)]
    url = warehouse(
        "t", {"d": [m.date() for m in moments], "m": moments, "z": ["01234", "01299", "91234"], "n": [-5, 0, 7]}
    )
    attributes = {
        "d": {**QUASI, "hierarchy": {"dates": ["week", "iso_year"]}},
        "m": {**QUASI, "hierarchy": {"dates": ["day", "month", "quarter", "year"]}},
        "z": {**QUASI, "hierarchy": {"digits": 5, "from": "left"}},
        "n": {**QUASI, "hierarchy": {"digits": 3}},
    }
    assert "1 value of the column is not 3 digits long" in problem(url, {"n": attributes["n"]}, tmp_path)
    attributes["n"] = {**QUASI, "hierarchy": {"ranges": [2.5, 5], "start": 0.5}}
    with opened(url, "t", attributes, tmp_path) as task:
        assert task.lattice.heights == (3, 5, 5, 3)
        assert labels(task, [1, 5, 5, 3]) == {("2020-W53", "*", "*", "*"): 2, ("2021-W01", "*", "*", "*"): 1}
        assert labels(task, [2, 5, 5, 3]) == {("2020", "*", "*", "*"): 2, ("2021", "*", "*", "*"): 1}
        days = [str(moment.date()) for moment in moments]
        assert set(labels(task, [3, 1, 5, 3])) == {("*", day, "*", "*") for day in days}
        assert set(labels(task, [3, 2, 5, 3])) == {("*", "2020-12", "*", "*"), ("*", "2021-01", "*", "*")}
        assert set(labels(task, [3, 3, 5, 3])) == {("*", "2020-Q4", "*", "*"), ("*", "2021-Q1", "*", "*")}
        assert set(labels(task, [3, 5, 1, 3])) == {("*", "*", "*1234", "*"), ("*", "*", "*1299", "*")}
        low = ["[-7, -4.5)", "[-2, 0.5)", "[5.5, 8)"]
        assert labels(task, [3, 5, 5, 1]) == {("*", "*", "*", label): 1 for label in low}


def test_values_outside_the_bounds_of_cuts_are_not_covered(warehouse, tmp_path: Path) -> None:
    days = [datetime(2020, 1, day).date() for day in (1, 9, 30, 31)]
    url = warehouse("t", {"n": [3, 10, 4, 4], "d": days})
    of_dates = {**QUASI, "hierarchy": {"cuts": {"min_width": 7, "low": "2020-01-01", "high": "2020-01-31"}}}
    attributes = {"n": {**QUASI, "hierarchy": {"cuts": {"min_width": 2, "low": 6, "high": 10}}}, "d": of_dates}
    said = problem(url, attributes, tmp_path)
    assert "2 values of column n (3 rows) are outside the bounds of its cuts: '4' (2 rows), '3' (1 row)" in said
    assert "; correct them, or widen low and high, or write `uncovered: top` (they become *)" in said
    logged = problem(url, attributes, tmp_path, name_values=False)
    assert "2 values of column n (3 rows) are outside the bounds of its cuts; correct them" in logged
    assert "'3'" not in logged
    assert "'4'" not in logged
    attributes["n"]["uncovered"] = "top"
    with opened(url, "t", attributes, tmp_path) as task:
        assert task.lattice.heights == (2, 4)
        assert labels(task, [0, 4]) == {("*", "*"): 3, ("10", "*"): 1}
        assert labels(task, [1, 1]) == {
            ("*", "2020-01-01 to 2020-01-07"): 1,
            ("8-10", "2020-01-08 to 2020-01-14"): 1,
            ("*", "2020-01-29 to 2020-01-31"): 2,
        }
    attributes["n"]["uncovered"] = "quarantine"
    with opened(url, "t", attributes, tmp_path) as task:
        assert task.source.quarantined == 3
        assert task.source.rows == 1


def test_cuts_of_a_taxonomy(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"a": ["x"] * 3, "s": [1, 7, 12]})
    attributes = {"a": QUASI, "s": {"role": "sensitive", "taxonomy": {"cuts": {"min_width": 5, "low": 0, "high": 10}}}}
    said = problem(url, attributes, tmp_path)
    assert said.endswith("column s (1 row) is outside the bounds of its cuts: '12' (1 row); correct them, or widen "
                         "low and high")  # fmt: skip


@pytest.mark.parametrize(
    ("column", "hierarchy", "message"),
    [
        ("z", {"digits": 4}, "digits: 4 of z: 1 value of the column is not 4 characters long"),
        ("d", {"digits": 4}, "digits of d: a column of type date has no digits"),
        ("z", {"ranges": [5]}, "ranges of z: the column is of type text, not a number"),
        ("n", {"dates": ["month"]}, "dates of n: the column is of type integer, not a date"),
        ("z", {"cuts": {"min_width": 5, "low": 0, "high": 9}}, "cuts of z: the column is of type text, not a number"),
        ("d", {"cuts": {"min_width": 5, "low": 0, "high": 9}}, "cuts of d: the column is of type date, and the cuts"),
        ("z", {"dates": ["month"]}, "dates of z: 2 values of the column are not ISO dates"),
        ("z", {"file": "absent.csv"}, "absent.csv: the hierarchy file cannot be read: No such file or directory"),
        ("z", {"file": "."}, "the hierarchy file cannot be read: it is a folder; name a file"),
        ("z", {"table": "absent", "levels": ["a"]}, "table absent does not exist, or you lack permission to read it"),
        ("z", {"table": "levels", "levels": ["leaf", "nowhere"]}, "the dimension table levels has no column 'nowhere'"),
    ],
)
def test_hierarchies_that_do_not_fit(warehouse, tmp_path: Path, column: str, hierarchy: Any, message: str) -> None:
    url = warehouse("t", {"z": ["0123", "x"], "n": [1, 2], "d": [datetime(2020, 1, 1).date()] * 2})
    warehouse("levels", {"leaf": ["0123", "x"]})
    assert message in problem(url, {column: {**QUASI, "hierarchy": hierarchy}}, tmp_path)


FILES = [
    ("z,g\na,A\nb,B\na,A\n", ":4: duplicate leaf 'a', first on line 2; remove one"),
    ("z,g,h\na,G,H\nb,G,I\n", ":3: label 'G' of g is under 'H' on line 2 and under 'I' here (h)"),
    ("z,g\na,G\nb\n", ":3: 1 columns where the header has 2"),
    ("z,g\na,G\n,G\n", ":3: the leaf is empty (column z)"),
    ("z,g\na,\n", ":2: the label of level 1 (g) is empty"),
    ("z,g\n", "there is no leaf; write one row per value, leaf first"),
    ("", "the file is empty; write a header"),
    ("z,z\na,A\n", ":1: every level needs a name of its own"),
    ('z,g\n"a,A\n', "not CSV"),
]


def test_hierarchy_files_name_their_lines(warehouse, subtests, tmp_path: Path) -> None:
    url = warehouse("t", {"z": ["a", "b"]})
    file = tmp_path / "z.csv"
    for text, message in FILES:
        with subtests.test(text):
            file.write_text(text, encoding="utf-8")
            found = problem(url, {"z": {**QUASI, "hierarchy": {"file": "z.csv"}}}, tmp_path)
            assert found.startswith(str(file))
            assert message in found
    file.write_bytes("z,g\na,\xe4\n".encode("latin-1"))
    assert f"{file}: not UTF-8" in problem(url, {"z": {**QUASI, "hierarchy": {"file": "z.csv"}}}, tmp_path)


def test_hierarchies_from_tables_and_views(warehouse, engine_name: str, tmp_path: Path) -> None:
    url = warehouse("t", {"age": [17, 18, 40]})
    dimension = {"the leaf": [17, 18, 40, 17], 'band "5"': [15, 15, 40, 15], "half": ["young", "young", "old", "young"]}
    schema, name = table_name(engine_name, "dim. s"), table_name(engine_name, 'ages; "d"')
    warehouse(name, dimension, schema=schema)
    table, levels = quoted(schema, name), list(dimension)
    execute(url, f"CREATE VIEW ages AS SELECT \"the leaf\" AS leaf, '*' AS top FROM {table}")
    with opened(url, "t", {"age": {**QUASI, "hierarchy": {"table": table, "levels": levels}}}, tmp_path) as task:
        assert [labels(task, [level]) for level in range(4)] == [
            {("17",): 1, ("18",): 1, ("40",): 1},
            {("15",): 2, ("40",): 1},
            {("young",): 2, ("old",): 1},
            {("*",): 3},
        ]
    with opened(
        url, "t", {"age": {**QUASI, "hierarchy": {"table": "ages", "levels": ["leaf", "top"]}}}, tmp_path
    ) as task:
        assert task.lattice.heights == (1,)


def test_tables_that_are_no_hierarchy(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"z": ["a", "b"]})

    def message(columns: dict[str, list[Any]], name: str) -> str:
        warehouse(name, columns)
        return problem(url, {"z": {**QUASI, "hierarchy": {"table": name, "levels": list(columns)}}}, tmp_path)

    assert "table two, row 2: duplicate leaf 'a', first on row 1" in message({"l": ["a", "a"], "g": ["A", "B"]}, "two")
    twisted = message({"l": ["a", "b"], "g": ["G", "G"], "h": ["H", "I"]}, "twisted")
    assert "table twisted, row 2: label 'G' of g is under 'H' on row 1 and under 'I' here (h)" in twisted
    assert "table gap, row 1: the label of level 1 (g) is empty" in message({"l": ["a", "b"], "g": [None, "B"]}, "gap")
    assert "table none: there is no leaf" in message({"l": [], "g": []}, "none")


def reference(url: str, folder: Path, **sensitive: Any) -> Any:
    attributes = {"a": QUASI, "s": {"role": "sensitive", **sensitive}}
    with opened(url, "t", attributes, folder) as task:
        return task.source.sensitives["s"].reference


def test_domains_of_a_sensitive_attribute(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"a": ["x"] * 4, "s": [10, 9, 9, None], "u": ["b", "a", "a", "c"]}, {"s": "INTEGER"})
    found = reference(url, tmp_path, nulls="value")
    assert (found.domain, found.totals.tolist()) == (("9", "10", None), [2, 1, 1])
    assert found.numbers is None
    execute(url, "DELETE FROM t WHERE s IS NULL")
    found = reference(url, tmp_path)
    assert (found.domain, found.totals.tolist(), found.rows) == (("9", "10"), [2, 1], 3)
    assert found.numbers == (Fraction(9), Fraction(10))
    assert found.ordered
    assert found.taxonomy is None
    found = reference(url, tmp_path, domain=[11, 9, 10])
    assert (found.domain, found.totals.tolist()) == (("9", "10", "11"), [2, 1, 0])
    (tmp_path / "s.csv").write_text("s,g,any\n8,low,*\n9,low,*\n010,high,*\n", encoding="utf-8")
    found = reference(url, tmp_path, taxonomy={"file": "s.csv"})
    assert (found.domain, found.totals.tolist()) == (("8", "9", "10"), [0, 2, 1])
    assert found.taxonomy.tolist() == [[0, 0, 0], [1, 0, 0], [2, 2, 0]]
    assert "1 value of column s (2 rows) is missing" in problem(
        url, {"a": QUASI, "s": {"role": "sensitive", "domain": [10]}}, tmp_path
    )
    declared = {"role": "sensitive", "taxonomy": {"file": "s.csv"}, "domain": [9, 12]}
    assert "'12' is not a leaf of the taxonomy of s" in problem(url, {"a": QUASI, "s": declared}, tmp_path)


def test_an_order_is_that_of_the_domain(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"a": ["x"] * 3, "s": ["mild", "severe", "mild"]})
    assert not reference(url, tmp_path).ordered
    ascending = reference(url, tmp_path, order="ascending")
    assert (ascending.ordered, ascending.domain) == (False, ("mild", "severe"))
    found = reference(url, tmp_path, order=["none", "severe", "mild"])
    assert (found.ordered, found.domain, found.totals.tolist()) == (True, ("none", "severe", "mild"), [0, 1, 2])
    (tmp_path / "s.csv").write_text("s,g\nmild,*\nsevere,*\nnone,*\n", encoding="utf-8")
    found = reference(url, tmp_path, order=["severe", "none", "mild"], taxonomy={"file": "s.csv"})
    assert (found.domain, found.totals.tolist()) == (("severe", "none", "mild"), [1, 0, 2])


def test_values_that_a_builder_cannot_place_are_named_at_a_terminal_alone(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"z": ["101", "102", "D-1", *(f"{i:05}" for i in range(12)), "00001"]})
    attributes = {"z": {**QUASI, "hierarchy": {"digits": 3}}}
    named = problem(url, attributes, tmp_path)
    assert "12 values of the column are not 3 characters long: '00000' (1 row), '00001' (2 rows), " in named
    assert "'00009' (1 row) and 2 more; correct the number" in named
    spec = make_spec(url, "t", attributes, [{"k_anonymity": {"k": 1}}], tmp_path)
    with pytest.raises(InputError) as caught, open_task(spec, name_values=False):
        pass
    assert "00000" not in str(caught.value)
    assert str(caught.value).endswith("`qblock hierarchy check` lists them")


def test_one_value_that_has_no_place_is_one(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"z": ["101", "D-12", "D-12", None]})
    found = problem(url, {"z": {**QUASI, "hierarchy": {"digits": 3}, "nulls": "top"}}, tmp_path)
    assert "1 value of the column is not 3 characters long: 'D-12' (2 rows); correct" in found
