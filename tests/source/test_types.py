"""Values of every type have one text form, and leaves compare in the column's own type, on every engine."""

from __future__ import annotations

import csv
import random
import re
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engines import has_type
from integration.sources import execute, keys_of, opened

from qblock.errors import InputError

pytestmark = [pytest.mark.every_postgresql, pytest.mark.handed_on]

TYPES: list[tuple[str, list[Any], list[str]]] = [
    ("SMALLINT", [1, -2, 0], ["1", "-2", "0"]),
    ("INTEGER", [17, -17], ["17", "-17"]),
    ("BIGINT", [2**62, -(2**62)], [str(2**62), str(-(2**62))]),
    ("NUMERIC(10,2)", [Decimal("5.10"), Decimal("-0.05"), Decimal(12)], ["5.1", "-0.05", "12"]),
    ("NUMERIC(38,10)", [Decimal("1E-10")], ["0.0000000001"]),
    (
        "DOUBLE PRECISION",
        [0.1, 1e15, -2.5, 0.1 + 0.2, 1e-7, 1.5e-13, -1e22, 1 / 3, 5.0, 123456.789, -0.00001234],
        [
            "0.1", "1000000000000000", "-2.5", "0.30000000000000004", "0.0000001", "0.00000000000015",
            "-10000000000000000000000", "0.3333333333333333", "5", "123456.789", "-0.00001234",
        ],
    ),
    ("REAL", [0.1, 2.0, 1e-9], ["0.1", "2", "0.000000001"]),
    ("CHAR(3)", ["M", "abc", "ü"], ["M", "abc", "ü"]),
    ("VARCHAR(3)", ["M", "M ", ""], ["M", "M ", ""]),
    ("TEXT", ["a", "A", " a"], ["a", "A", " a"]),
    ("DATE", [date(2026, 2, 3), date(1, 1, 1), date(9999, 12, 31)], ["2026-02-03", "0001-01-01", "9999-12-31"]),
    (
        "TIMESTAMP",
        [datetime(2026, 2, 3, 4, 5, 6), datetime(2026, 2, 3), datetime(2026, 2, 3, 4, 5, 6, 500000)],
        ["2026-02-03 04:05:06", "2026-02-03 00:00:00", "2026-02-03 04:05:06.5"],
    ),
    ("BOOLEAN", [True, False], ["true", "false"]),
    ("UUID", ["6f9619ff-8b86-d011-b42d-00cf4fc964ff"], ["6f9619ff-8b86-d011-b42d-00cf4fc964ff"]),
]  # fmt: skip
QUASI = {"role": "quasi_identifier", "hierarchy": "suppress"}


def bottom(task: Any) -> dict[str, int]:
    """Rows of each value."""
    blocks = task.source.frequency_sets.blocks((0,), ())[0]
    labels = [key[0] for key in keys_of(task, (0,), blocks.keys)]
    return dict(zip(labels, blocks.rows.tolist(), strict=True))


def test_every_type_as_quasi_identifier_and_sensitive(warehouse, engine_name: str, subtests, tmp_path: Path) -> None:
    for i, (type_, values, texts) in enumerate(one for one in TYPES if has_type(engine_name, one[0])):
        url = warehouse(f"t{i}", {"x": [*values, values[0]], "y": [*values, values[0]]}, {"x": type_, "y": type_})
        with subtests.test(type_):
            with opened(url, f"t{i}", {"x": QUASI, "y": "sensitive"}, tmp_path) as task:
                assert bottom(task) == {text: 1 + (text == texts[0]) for text in texts}
                domain = task.source.sensitives["y"].reference.domain
                assert sorted(map(str, domain)) == sorted(texts)
            if all(texts):
                (tmp_path / "x.csv").write_text("x,any\n" + "".join(f'"{t}",*\n' for t in texts), encoding="utf-8")
                with opened(url, f"t{i}", {"x": {**QUASI, "hierarchy": {"file": "x.csv"}}}, tmp_path) as task:
                    assert sum(bottom(task).values()) == len(values) + 1


@pytest.mark.gap("spark", "Spark has no enums")
def test_enums(warehouse, engine_name: str, tmp_path: Path) -> None:
    url = warehouse("plain", {"x": ["sad", "happy", "sad"]})
    execute(
        url,
        "CREATE TYPE mood AS ENUM ('happy', 'it''s \"ok\"', 'sad')",
        "CREATE TABLE t AS SELECT CAST(x AS mood) AS x FROM plain",
    )
    with opened(url, "t", {"x": QUASI}, tmp_path) as task:
        assert bottom(task) == {"sad": 2, "happy": 1}
    (tmp_path / "x.csv").write_text("x,any\nsad,*\nhappy,*\nnone of them,*\n", encoding="utf-8")
    with opened(url, "t", {"x": {**QUASI, "hierarchy": {"file": "x.csv"}}}, tmp_path) as task:
        assert bottom(task) == {"sad": 2, "happy": 1}


def test_domains_compare_as_what_they_are_made_of(postgresql_url: str, tmp_path: Path) -> None:
    execute(
        postgresql_url,
        "CREATE DOMAIN years AS integer CHECK (value >= 0)",
        "CREATE DOMAIN young AS years CHECK (value < 30)",
        "CREATE DOMAIN code AS char(4)",
        'CREATE TABLE t (a years, b young, c code, d timestamp(3), e "char")',
        "INSERT INTO t VALUES (17, 17, 'x', '2026-02-03 04:05', 'q'), (5, 29, 'x y', '2026-02-03 04:05:06.5', 'r')",
    )
    ranges = {**QUASI, "hierarchy": {"ranges": [10]}}
    for name, texts in (("a", ["17", "5"]), ("b", ["17", "29"])):
        with opened(postgresql_url, "t", {name: ranges}, tmp_path) as task:
            assert bottom(task) == dict.fromkeys(texts, 1)
        (tmp_path / "x.csv").write_text(f"x,any\n0{texts[0]},*\n+{texts[1]},*\n", encoding="utf-8")
        with opened(postgresql_url, "t", {name: {**QUASI, "hierarchy": {"file": "x.csv"}}}, tmp_path) as task:
            assert task.source.rows == 2
    with opened(postgresql_url, "t", {"c": QUASI}, tmp_path) as task:
        assert bottom(task) == {"x": 1, "x y": 1}
    with opened(postgresql_url, "t", {"d": {**QUASI, "hierarchy": {"dates": ["day", "month"]}}}, tmp_path) as task:
        assert bottom(task) == {"2026-02-03 04:05:00": 1, "2026-02-03 04:05:06.5": 1}
        assert task.source.columns["d"].kind == "timestamp"
    with opened(postgresql_url, "t", {"e": QUASI}, tmp_path) as task:
        assert bottom(task) == {"q": 1, "r": 1}


SAME: list[tuple[str, Any, str]] = [
    ("INTEGER", 17, "017"),
    ("INTEGER", 17, "+17"),
    ("NUMERIC(10,2)", Decimal("5.10"), "5.1"),
    ("NUMERIC(10,2)", Decimal("5.10"), "5.1000"),
    ("NUMERIC(10,2)", Decimal(120), "1.2e2"),
    ("DOUBLE PRECISION", 0.25, "0.250"),
    ("DOUBLE PRECISION", 1e20, "1e20"),
    ("DATE", date(2026, 2, 3), "2026-02-03"),
    ("TIMESTAMP", datetime(2026, 2, 3), "2026-02-03"),
    ("TIMESTAMP", datetime(2026, 2, 3, 4, 5), "2026-02-03T04:05"),
    ("BOOLEAN", True, "TRUE"),
    ("CHAR(3)", "M", "M"),
]


def test_leaves_compare_in_the_columns_own_type(warehouse, engine_name: str, tmp_path: Path) -> None:
    for i, (type_, value, leaf) in enumerate(one for one in SAME if has_type(engine_name, one[0])):
        url = warehouse(f"t{i}", {"x": [value]}, {"x": type_})
        (tmp_path / "x.csv").write_text(f"x,any\n{leaf},*\n", encoding="utf-8")
        with opened(url, f"t{i}", {"x": {**QUASI, "hierarchy": {"file": "x.csv"}}}, tmp_path) as task:
            assert task.source.frequency_sets.sizes((0,)).size.tolist() == [1]


TWICE = [
    ("INTEGER", 17, ["017", "17"], "17"),
    ("NUMERIC(10,2)", Decimal("5.10"), ["5.1", "5.10"], "5.1"),
    ("DOUBLE PRECISION", 0.5, [".5", "0.5"], "0.5"),
    ("TIMESTAMP", datetime(2026, 2, 3), ["2026-02-03", "2026-02-03 00:00:00"], "2026-02-03 00:00:00"),
    ("BOOLEAN", True, ["True", "true", "false"], "true"),
]


def refused(url: str, table: str, leaves: list[str], folder: Path) -> str:
    """The message about a hierarchy file with these leaves for column x."""
    lines = [["x", "any"], *([leaf, "*"] for leaf in leaves)]
    with (folder / "x.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(lines)
    with (
        pytest.raises(InputError) as caught,
        opened(url, table, {"x": {**QUASI, "hierarchy": {"file": "x.csv"}}}, folder),
    ):
        pass
    assert caught.value.exit_status == 2
    return str(caught.value)


def test_leaves_that_are_one_value_are_refused(warehouse, tmp_path: Path) -> None:
    for i, (type_, value, leaves, shown) in enumerate(TWICE):
        url = warehouse(f"t{i}", {"x": [value]}, {"x": type_})
        message = refused(url, f"t{i}", leaves, tmp_path)
        assert message.startswith(f"{tmp_path / 'x.csv'}: duplicate leaf {shown!r}: equal as a value of column x")
        assert message.endswith("keep one line for each value")


NO_VALUE = [
    ("SMALLINT", 1, ["x", "1.5", "1_000", "٣", "40000", "1e2", "0x10", "--1", "NaN"]),
    ("INTEGER", 1, ["99999999999", "1 2"]),
    ("BIGINT", 1, [str(2**63)]),
    ("NUMERIC(5,2)", Decimal(1), ["x", "1,5", "1000", "1_0", "1e4", "Infinity", "sNaN", "0x1"]),
    ("DOUBLE PRECISION", 1.0, ["x", "1e999", "1_0", "0x1p3"]),
    ("DATE", date(2026, 2, 3), ["2026-13-01", "2026-02-30", "3.2.2026", "2026-W05-1", "20260203", "2026-02-03 04:05"]),
    ("TIMESTAMP", datetime(2026, 2, 3), ["2026-02-03 25:00", "yesterday", "2026-W05-1", "2026-02-03 04:05+01:00"]),
    ("BOOLEAN", True, ["yes", "1", "t", "*"]),
]


def test_a_leaf_that_is_no_value_of_the_type(warehouse, subtests, tmp_path: Path) -> None:
    for i, (type_, value, leaves) in enumerate(NO_VALUE):
        url = warehouse(f"t{i}", {"x": [value]}, {"x": type_})
        for leaf in leaves:
            with subtests.test(type_, leaf=leaf):
                message = refused(url, f"t{i}", [str(value).lower(), leaf], tmp_path)
                assert message.startswith(
                    f"{tmp_path / 'x.csv'}: leaf 2, {leaf!r}, is not a value of column x of type "
                )
                assert message.endswith("correct or remove it")


@pytest.mark.parametrize(("type_", "bits"), [("DOUBLE PRECISION", 64), ("REAL", 32)])
def test_floats_are_written_exactly_and_read_back(warehouse, tmp_path: Path, type_: str, bits: int) -> None:
    draw = random.Random(1)
    kind, whole = (np.float64, np.uint64) if bits == 64 else (np.float32, np.uint32)
    drawn = np.array([draw.getrandbits(bits) for _ in range(300)], dtype=whole).view(kind)
    near = np.array([draw.choice([1, -1]) * 10 ** draw.uniform(-9, 20) for _ in range(200)], dtype=kind)
    numbers = {*drawn[np.isfinite(drawn)], *near, kind(0.1) + kind(0.2), kind(16777216)}
    url = warehouse("t", {"x": [float(x) for x in numbers]}, {"x": type_})
    with opened(url, "t", {"x": QUASI}, tmp_path) as task:
        texts = bottom(task)
    assert {kind(text) for text in texts} == numbers
    assert len(texts) == len(numbers)
    assert all(re.fullmatch(r"-?(0|[1-9]\d*)(\.\d*[1-9])?", text) for text in texts)
    if bits == 64:
        # Beyond 2**53 engines differ in digits that do not matter.
        short = [Decimal(repr(float(x))) for x in numbers if abs(x) < 2**53]
        mine = {text for text in texts if abs(kind(text)) < 2**53}
        assert mine == {format(x, "f").removesuffix(".0") for x in short}


def test_what_is_no_number(warehouse, tmp_path: Path) -> None:
    numbers = [float("nan"), float("inf"), float("-inf"), 1.0]
    url = warehouse("t", {"x": numbers, "s": numbers, "one": ["a"] * 4})
    (tmp_path / "x.csv").write_text("x,any\nNaN,*\nInfinity,*\n-Infinity,*\n1,*\n", encoding="utf-8")
    with opened(url, "t", {"x": {**QUASI, "hierarchy": {"file": "x.csv"}}}, tmp_path) as task:
        assert task.source.frequency_sets.sizes((0,)).blocks.tolist() == [4]
    with opened(url, "t", {"one": QUASI, "s": "sensitive"}, tmp_path) as task:
        reference = task.source.sensitives["s"].reference
        assert sorted(map(str, reference.domain)) == ["-Infinity", "1", "Infinity", "NaN"]
        assert reference.numbers is None
    with (
        pytest.raises(InputError, match=r"spec.yaml:\d+: .* of x: 3 values of the column are not finite numbers"),
        opened(url, "t", {"x": {**QUASI, "hierarchy": {"ranges": [5]}}}, tmp_path),
    ):
        pass


def test_days_beyond_the_calendar_are_values_too(warehouse, engine_name: str, tmp_path: Path) -> None:
    days = ["+5881580-07-11", "+10000-01-01"] if engine_name == "spark" else ["infinity", "10000-01-01"]
    url = warehouse("t", {"x": days}, {"x": "DATE"})
    with opened(url, "t", {"x": QUASI}, tmp_path) as task:
        assert task.source.frequency_sets.sizes((0,)).blocks.tolist() == [2]
    with (
        pytest.raises(InputError, match="dates of x: 2 values of the column are not ISO dates of the years 1 to 9999"),
        opened(url, "t", {"x": {**QUASI, "hierarchy": {"dates": ["month"]}}}, tmp_path),
    ):
        pass
