"""Types of one class write every value that they share alike, on each engine; types that do not are of none."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
import sqlalchemy as sa
from integration.sources import execute

from qblock.engines.registry import open_warehouse
from qblock.engines.session import Session
from qblock.engines.tables import Column, TableName

pytestmark = pytest.mark.each_engine

INTEGERS = {
    "SMALLINT": (-(2**15), 2**15 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
}
DUCKDB_INTEGERS = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "HUGEINT": (-(2**127), 2**127 - 1),
    "UTINYINT": (0, 2**8 - 1),
    "USMALLINT": (0, 2**16 - 1),
    "UINTEGER": (0, 2**32 - 1),
    "UBIGINT": (0, 2**64 - 1),
    "UHUGEINT": (0, 2**128 - 1),
}
DECIMALS = ["5,2", "10,4", "10,0", "3,3", "18,1", "38,0", "38,10", "38,38"]
NUMBERS = [
    "0",
    "1.5",
    "-1.5",
    "0.01",
    "-0.01",
    "0.5",
    "1.50",
    "-0.00",
    "100",
    "-120",
    "1000000",
    "999.99",
    "0.1234",
    "99999999",
    "-0.999",
]
VARYING = {"duckdb": ["VARCHAR", "VARCHAR(9)", "TEXT"], "postgresql": ["TEXT", "VARCHAR", "VARCHAR(9)"]}
TEXTS = ["", "x", "x ", " x", "é", "e\u0301", "7", "007", "7.0", "NULL", "O'Brien", "a\tb", "\U0001f600"]
MOMENTS = {
    "duckdb": ["TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMP_NS"],
    "postgresql": ["TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP"],
}
TIMES = ["2026-02-03 04:05:06", "1969-12-31 23:59:59", "2026-02-03 00:00:00"]


def texts(session: Session, tables: dict[str, str]) -> dict[str, tuple[Column, list[str | None]]]:
    """By type its column and the canonical texts of its rows, in their order."""
    written = {}
    for type_, name in tables.items():
        table = TableName(None, name)
        column, relation = session.columns(table)["x"], session.relation(table)
        text = session.text_of(session.comparable(relation.c.x, column), column.kind)
        rows = session.fetch(sa.select(relation.c.n, text.label("text")).order_by(relation.c.n))
        written[type_] = column, rows["text"].to_pylist()
    return written


def check(warehouse, folder: Path, values: dict[str, dict[str, str]]) -> dict[str, Column]:
    """values: by type the expected text of each literal that it can hold."""
    url = warehouse("empty", {"x": [1]})
    tables = {type_: f"t{i}" for i, type_ in enumerate(values)}
    statements = []
    for type_, name in tables.items():
        statements.append(f"CREATE TABLE {name} (n INTEGER, x {type_})")
        for n, literal in enumerate(values[type_]):
            quoted = literal.replace("'", "''")
            statements.append(f"INSERT INTO {name} VALUES ({n}, CAST('{quoted}' AS {type_}))")
    execute(url, *statements)
    opened = open_warehouse(url, folder)
    with opened.snapshot() as session:
        written = texts(session, tables)
    opened.close()
    for type_, (_, there) in written.items():
        assert there == list(values[type_].values()), type_
    return {type_: column for type_, (column, _) in written.items()}


def test_integers(warehouse, engine_name: str, tmp_path: Path) -> None:
    types = INTEGERS | (DUCKDB_INTEGERS if engine_name == "duckdb" else {})
    numbers = sorted({-1, 0, 1, 7, -20, *(end for ends in types.values() for end in ends)})
    held = {type_: {str(n): str(n) for n in numbers if least <= n <= most} for type_, (least, most) in types.items()}
    check(warehouse, tmp_path, held)


def test_decimals(warehouse, engine_name: str, tmp_path: Path) -> None:
    held: dict[str, dict[str, str]] = {}
    for arguments in DECIMALS:
        precision, scale = map(int, arguments.split(","))
        held[f"NUMERIC({arguments})"] = {
            n: plain(n)
            for n in NUMBERS
            if (Fraction(n) * 10**scale).denominator == 1 and abs(Fraction(n)) < 10 ** (precision - scale)
        }
    if engine_name == "postgresql":
        held["NUMERIC"] = {n: plain(n) for n in NUMBERS} | {"NaN": "NaN"}
        held["NUMERIC(4)"] = {"100": "100", "-120": "-120", "NaN": "NaN"}
        held["NUMERIC(3,-2)"] = {"100": "100", "1000": "1000"}
    check(warehouse, tmp_path, held)


def plain(number: str) -> str:
    """Without what a type's decimals add."""
    whole, _, decimals = number.partition(".")
    decimals = decimals.rstrip("0")
    return f"{whole}.{decimals}" if decimals else whole.removeprefix("-") if whole == "-0" else whole


def test_texts(warehouse, engine_name: str, tmp_path: Path) -> None:
    check(warehouse, tmp_path, {type_: {text: text for text in TEXTS} for type_ in VARYING[engine_name]})


def test_moments(warehouse, engine_name: str, tmp_path: Path) -> None:
    check(warehouse, tmp_path, {type_: {text: text for text in TIMES} for type_ in MOMENTS[engine_name]})
