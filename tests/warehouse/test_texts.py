"""One canonical text for each value and type, the same on every engine that has the type."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from engines import create_table, has_type
from integration.sources import execute
from spark_tables import spark_type

from qblock.engines.registry import open_warehouse
from qblock.engines.session import Session
from qblock.engines.tables import Column, TableName
from qblock.engines.values import canonical_text, fits, load_dimension
from qblock.hierarchy.builders import dates, suppress
from qblock.profiling.columns import propose
from qblock.profiling.profiles import Table, profile

pytestmark = pytest.mark.every_postgresql

BOTH: list[tuple[str, str, str]] = [
    ("SMALLINT", "'-2'", "-2"),
    ("INTEGER", "'1'", "1"),
    ("BIGINT", "'4611686018427387904'", "4611686018427387904"),
    ("NUMERIC(10,0)", "'100'", "100"),
    ("NUMERIC(10,1)", "'1.0'", "1"),
    ("NUMERIC(10,1)", "'0'", "0"),
    ("NUMERIC(12,4)", "'1.5000'", "1.5"),
    ("NUMERIC(10,2)", "'-0.00'", "0"),
    ("NUMERIC(10,2)", "'-0.50'", "-0.5"),
    ("NUMERIC(38,10)", "'0.0000000001'", "0.0000000001"),
    ("DOUBLE PRECISION", "'1'", "1"),
    ("DOUBLE PRECISION", "'-0'", "0"),
    ("DOUBLE PRECISION", "'1e15'", "1000000000000000"),
    ("DOUBLE PRECISION", "'1.5e-13'", "0.00000000000015"),
    ("DOUBLE PRECISION", "'NaN'", "NaN"),
    ("DOUBLE PRECISION", "'-Infinity'", "-Infinity"),
    ("REAL", "'0.1'", "0.1"),
    ("BOOLEAN", "'t'", "true"),
    ("DATE", "'2026-02-03'", "2026-02-03"),
    ("DATE", "'10000-01-01'", "10000-01-01"),
    ("DATE", "'infinity'", "infinity"),
    ("TIMESTAMP", "'2026-02-03 04:05:06.500'", "2026-02-03 04:05:06.5"),
    ("TIMESTAMP", "'2026-02-03'", "2026-02-03 00:00:00"),
    ("TIMESTAMP", "'-infinity'", "-infinity"),
    ("TIMESTAMP WITH TIME ZONE", "'2026-02-03 04:05:06.50+02'", "2026-02-03 02:05:06.5+00"),
    ("TIMESTAMP WITH TIME ZONE", "'2026-02-03 04:05:06-01:30'", "2026-02-03 05:35:06+00"),
    ("TIMESTAMP WITH TIME ZONE", "'infinity'", "infinity"),
    ("CHAR(5)", "'ab'", "ab"),
    ("VARCHAR(5)", "'ab '", "ab "),
    ("TEXT", "'é  '", "é  "),
    ("UUID", "'6F9619FF-8b86-d011-b42d-00cf4fc964FF'", "6f9619ff-8b86-d011-b42d-00cf4fc964ff"),
    ("TIME", "'04:05:06.50'", "04:05:06.5"),
    ("TIME WITH TIME ZONE", "'04:05:06+02'", "04:05:06+02"),
    ("INTERVAL", "'1 year 2 months 3 days 04:05:06.50'", "1 year 2 mons 3 days 04:05:06.5"),
    ("INTERVAL", "'-1 month'", "-1 mon"),
    ("INTERVAL", "'11 months -1 days 00:00:01'", "11 mons -1 day 00:00:01"),
    ("JSON", "'{\"a\": [1, null]}'", '{"a": [1, null]}'),
]
"""Type, literal, canonical text."""
ONE: dict[str, list[tuple[str, str, str]]] = {
    "duckdb": [
        ("BLOB", "'a\\xAA'", "\\x61aa"),
        ("BIT", "'101'", "101"),
        ("INTEGER[]", "[1, NULL, 3]", "[1,null,3]"),
        ("VARCHAR[]", "['a', 'b,c']", '["a","b,c"]'),
        ("ENUM('sad', 'it''s (ok)')", "'it''s (ok)'", "it's (ok)"),
        ("TIMESTAMP_NS", "'2026-02-03 04:05:06.500000000'", "2026-02-03 04:05:06.5"),
        ("DATE", "'0044-03-15 (BC)'", "0044-03-15 BC"),
        ("TIMESTAMP", "'0044-03-15 (BC) 01:02:03'", "0044-03-15 01:02:03 BC"),
        ("TIMESTAMP WITH TIME ZONE", "'0044-03-15 (BC) 01:02:03+00'", "0044-03-15 01:02:03+00 BC"),
        ("HUGEINT", "'170141183460469231731687303715884105727'", "170141183460469231731687303715884105727"),
    ],
    "postgresql": [
        ("bytea", "'\\x61AA'", "\\x61aa"),
        ("bit(3)", "'101'", "101"),
        ("integer[]", "'{1,NULL,3}'", "[1,null,3]"),
        ("text[]", "'{a,\"b,c\"}'", '["a","b,c"]'),
        ("mood", "'it''s (ok)'", "it's (ok)"),
        ("padded", "'ab'", "ab"),
        ("amount", "'1.50'", "1.5"),
        ("numeric", "'1e30'", "1" + "0" * 30),
        ("numeric", "'NaN'", "NaN"),
        ("timestamp(3)", "'2026-02-03 04:05:06.500'", "2026-02-03 04:05:06.5"),
        ("timestamp(3) with time zone", "'2026-02-03 04:05:06.500+01'", "2026-02-03 03:05:06.5+00"),
        ("date", "'0044-03-15 BC'", "0044-03-15 BC"),
        ("timestamp", "'0044-03-15 01:02:03 BC'", "0044-03-15 01:02:03 BC"),
        ("timestamptz", "'0044-03-15 01:02:03+00 BC'", "0044-03-15 01:02:03+00 BC"),
    ],
    "spark": [
        ("BINARY", "x'61AA'", "\\x61aa"),
        ("DATE", "'+10000-01-01'", "10000-01-01"),
        ("DATE", "'-0043-03-15'", "0044-03-15 BC"),
        ("TIMESTAMP", "'-0043-03-15 01:02:03'", "0044-03-15 01:02:03 BC"),
        ("TIMESTAMP WITH TIME ZONE", "'-0043-03-15 01:02:03+00'", "0044-03-15 01:02:03+00 BC"),
        ("TINYINT", "-128", "-128"),
        ("STRING COLLATE UTF8_LCASE", "'Ab'", "Ab"),
    ],
}
"""Types of one engine, or whose values are written in another way."""
SETUP = {
    "postgresql": (
        "CREATE TYPE mood AS ENUM ('sad', 'it''s (ok)')",
        "CREATE DOMAIN padded AS char(5)",
        "CREATE DOMAIN amount AS numeric(10,2)",
    )
}
NOWHERE = {"spark": ("infinity", "-infinity", "10000-01-01")}
"""Texts that an engine does not read as the others do, or has no value for."""
ZONES = {
    "spark": "SELECT 1",  # only its client sets a session's zone; that of the server is another one
    "postgresql": "SET LOCAL timezone = 'Asia/Kathmandu'",
    "duckdb": "SET TimeZone = 'Asia/Kathmandu'",
}


def described(session: Session, name: str) -> tuple[Column, sa.ColumnElement]:
    table = TableName(None, name)
    column = session.columns(table)["x"]
    return column, session.comparable(session.relation(table).c.x, column)


def test_every_type_has_one_canonical_text_whatever_the_session_says(
    warehouse, engine_name: str, subtests, tmp_path: Path
) -> None:
    url = warehouse("empty", {"x": [1]})
    unread = [f"'{text}'" for text in NOWHERE.get(engine_name, ())]
    rows = [*(r for r in BOTH if has_type(engine_name, r[0]) and r[1] not in unread), *ONE[engine_name]]
    own = spark_type if engine_name == "spark" else str
    tables = [
        f"CREATE TABLE t{i} AS SELECT CAST({literal} AS {own(type_)}) AS x UNION ALL SELECT NULL"
        for i, (type_, literal, _) in enumerate(rows)
    ]
    execute(url, *SETUP.get(engine_name, ()), *tables)
    opened = open_warehouse(url, tmp_path)
    with opened.snapshot() as session:
        session.run(ZONES[engine_name])
        for i, (type_, literal, text) in enumerate(rows):
            with subtests.test(f"{type_} {literal}"):
                column, value = described(session, f"t{i}")
                written = session.text_of(value, column.kind)
                query = sa.select(written.label("text")).group_by(written)
                assert sorted(session.fetch(query)["text"].to_pylist(), key=str) == sorted([text, None], key=str)
                back = session.convert(sa.literal(text, sa.Text), column) == value
                assert session.scalar(sa.select(sa.func.count()).where(back)) == 1, "the text reads back as the value"
                assert fits(text, column)
                assert canonical_text(text, column) == text
    opened.close()


NUMBERS = ("SMALLINT", "INTEGER", "BIGINT", "NUMERIC(10,1)", "NUMERIC(12,4)", "DOUBLE PRECISION", "REAL", "VARCHAR(9)")


@pytest.mark.parametrize("number", ["1", "-20", "0"])
def test_a_number_has_the_same_text_in_every_type(warehouse, number: str, tmp_path: Path) -> None:
    url = warehouse("empty", {"x": [1]})
    for i, type_ in enumerate(NUMBERS):
        create_table(url, f"n{i}", {"x": [number]}, {"x": type_})
    opened = open_warehouse(url, tmp_path)
    with opened.snapshot() as session:
        columns = [described(session, f"n{i}") for i in range(len(NUMBERS))]
        assert {session.scalar(sa.select(session.text_of(value, column.kind))) for column, value in columns} == {number}
        assert [canonical_text(f"{number}.0", column) for column, _ in columns[3:7]] == [number] * 4
    opened.close()


FORMS = [
    ("INTEGER", "+01", "1"),
    ("NUMERIC(10,2)", "1.5e0", "1.5"),
    ("NUMERIC(10,2)", "-0.00", "0"),
    ("NUMERIC(10,2)", "1.505", None),
    ("DOUBLE PRECISION", "0.10", "0.1"),
    ("DOUBLE PRECISION", "-0.0", "0"),
    ("REAL", "0.1", "0.1"),
    ("DATE", "2026-02-30", None),
    ("TIMESTAMP", "2026-02-03T04:05", "2026-02-03 04:05:00"),
    ("TIMESTAMP", "2026-02-03 04:05:06.5000", "2026-02-03 04:05:06.5"),
    ("TIMESTAMP WITH TIME ZONE", "2026-02-03 04:05+02", "2026-02-03 02:05:00+00"),
    ("TIMESTAMP WITH TIME ZONE", "2026-02-03 04:05", "2026-02-03 04:05:00+00"),
    ("BOOLEAN", "TRUE", "true"),
    ("UUID", "6F9619FF-8B86-D011-B42D-00CF4FC964FF", "6f9619ff-8b86-d011-b42d-00cf4fc964ff"),
    ("UUID", "6f96", None),
]


@pytest.mark.parametrize(("type_", "given", "text"), FORMS)
def test_a_text_is_read_as_the_column_would(
    warehouse, type_: str, given: str, text: str | None, tmp_path: Path
) -> None:
    opened = open_warehouse(warehouse("t", {"x": [None]}, {"x": type_}), tmp_path)
    with opened.snapshot() as session:
        column, _ = described(session, "t")
        assert canonical_text(given, column) == text
        if text is not None and column.kind not in ("text", "timestamptz"):
            value = session.convert(sa.literal(given, sa.Text), column)
            assert session.scalar(sa.select(session.text_of(value, column.kind))) == text
    opened.close()


def test_timestamptz_in_hierarchies_and_profiles(warehouse, engine_name: str, tmp_path: Path) -> None:
    url = warehouse("t", {"x": ["2026-01-31 23:30:00-01", "2026-01-31 22:30:00+00"]}, {"x": "TIMESTAMP WITH TIME ZONE"})
    opened = open_warehouse(url, tmp_path)
    with opened.snapshot() as session:
        session.run(ZONES[engine_name])
        _, (profiled,) = profile(Table(session, TableName(None, "t")))
        assert (profiled.least, profiled.greatest) == ("2026-01-31 22:30:00+00", "2026-02-01 00:30:00+00")
        assert propose([profiled], 2)[0].entry["hierarchy"] == {"dates": ["month", "quarter", "year"]}
        built = dates("x", [profiled.least, profiled.greatest], ["month"], "timestamptz")
        assert built.labels[1] == ("2026-01", "2026-02")
        column, value = described(session, "t")
        leaves = suppress("x", ["2026-02-01T01:30+01", "2026-01-31 22:30"])
        dimension = load_dimension(session, "d", leaves, column, "here").table
        found = session.fetch(sa.select(dimension.c.t0).join_from(dimension, value.table, dimension.c.leaf == value))
        assert sorted(found["t0"].to_pylist()) == [profiled.least, profiled.greatest]
    opened.close()
