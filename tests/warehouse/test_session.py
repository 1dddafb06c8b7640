"""Sessions: columns, snapshots, text forms and counts, on every engine."""

from __future__ import annotations

from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
import sqlalchemy as sa
from engines import table_name

from qblock.engines.registry import open_warehouse
from qblock.engines.tables import TableName
from qblock.errors import InputError, QblockError

pytestmark = pytest.mark.every_postgresql

HOSTILE = 'Ta"ble. select; ünï'


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("people", (None, "people")),
        ("clinic.inpatient", ("clinic", "inpatient")),
        ('"my.schema".people', ("my.schema", "people")),
        ('"a""b"."c d"', ('a"b', "c d")),
    ],
)
def test_table_name(text: str, parts: tuple[str | None, str]) -> None:
    name = TableName.parse(text)
    assert (name.schema, name.name) == parts


@pytest.mark.parametrize("text", ["", "a.b.c.d", ".people", '"open', "a."])
def test_table_name_that_is_none(text: str) -> None:
    with pytest.raises(InputError, match=r"table or schema\.table"):
        TableName.parse(text)


def test_a_catalog_is_refused_where_there_is_none(warehouse, engine_name: str) -> None:
    opened = open_warehouse(warehouse("people", {"x": [1]}), Path())
    # Spark has catalogs, but none of this name.
    said = r"catalog\.schema\.people does not exist" if engine_name == "spark" else r"table or schema\.table"
    with closing(opened), opened.snapshot() as session, pytest.raises(InputError, match=said):
        session.columns(TableName.parse("catalog.schema.people"))


def test_hostile_names_and_values_come_back(warehouse, engine_name: str) -> None:
    schema, name = table_name(engine_name, "My Schema"), table_name(engine_name, HOSTILE)
    url = warehouse(name, {'co"l; --': ["o'x", None, 'say "hi"'], "Select": [1, 2, 3]}, schema=schema)
    opened = open_warehouse(url, Path())
    with opened.snapshot() as session:
        table = TableName(schema, name)
        assert list(session.columns(table)) == ['co"l; --', "Select"]
        relation = session.relation(table)
        found = session.fetch(sa.select(relation.c['co"l; --'].label("value")).order_by(relation.c["Select"]))
        assert found["value"].to_pylist() == ["o'x", None, 'say "hi"']
    opened.close()


def test_a_missing_table_names_near_ones(warehouse) -> None:
    url = warehouse("inpatients", {"a": [1]}, schema="clinic")
    opened = open_warehouse(url, Path())
    with opened.snapshot() as session, pytest.raises(InputError, match=r"did you mean clinic\.inpatients"):
        session.columns(TableName("clinic", "inpatient"))
    opened.close()


@pytest.mark.parametrize(
    ("value", "type_", "kind", "text"),
    [
        (12, "INTEGER", "integer", "12"),
        (Decimal("5.10"), "NUMERIC(10,2)", "decimal", "5.1"),
        (1e15, "DOUBLE PRECISION", "float", "1000000000000000"),
        (0.1, "DOUBLE PRECISION", "float", "0.1"),
        (date(2026, 2, 3), "DATE", "date", "2026-02-03"),
        (datetime(2026, 2, 3, 4, 5, 6), "TIMESTAMP", "timestamp", "2026-02-03 04:05:06"),
        (True, "BOOLEAN", "boolean", "true"),
        ("M", "CHAR(3)", "text", "M"),
        ("6f9619ff-8b86-d011-b42d-00cf4fc964ff", "UUID", "text", "6f9619ff-8b86-d011-b42d-00cf4fc964ff"),
    ],
)
def test_one_text_form_on_every_engine(warehouse, value, type_, kind, text) -> None:
    opened = open_warehouse(warehouse("t", {"x": [value]}, {"x": type_}), Path())
    with opened.snapshot() as session:
        column = session.columns(TableName(None, "t"))["x"]
        assert column.kind == kind
        relation = session.relation(TableName(None, "t"))
        comparable = session.comparable(relation.c.x, column)
        assert session.scalar(sa.select(session.text_of(comparable, column.kind))) == text
        same = session.convert(sa.literal(text, sa.Text), column) == comparable
        assert session.scalar(sa.select(same)) is True
    opened.close()


@pytest.mark.gap("spark", "the padding of CHAR is compared (docs/spark.md)")
def test_the_padding_of_a_char_is_no_value(warehouse) -> None:
    opened = open_warehouse(warehouse("t", {"x": ["M"]}, {"x": "CHAR(3)"}), Path())
    with closing(opened), opened.snapshot() as session:
        column = session.columns(TableName(None, "t"))["x"]
        comparable = session.comparable(session.relation(TableName(None, "t")).c.x, column)
        assert session.scalar(sa.select(session.text_of(comparable, column.kind))) == "M"


def test_counts_are_columns(warehouse) -> None:
    opened = open_warehouse(warehouse("t", {"x": [1]}), Path())
    with opened.snapshot() as session:
        loaded = session.load("numbers", pa.table({"a": [3, 1, 2], "b": ["x", None, "z\t"]}))
        stored = session.store("stored", sa.select(loaded.c.a, sa.cast(loaded.c.a * 2, sa.BigInteger).label("n")))
        session.analyze(stored)
        query = sa.select(sa.cast(stored.c.a, sa.BigInteger).label("a"), stored.c.n).order_by(stored.c.a)
        found = session.counts(query)
        assert found["a"].tolist() == [1, 2, 3]
        assert found["n"].tolist() == [2, 4, 6]
        assert session.counts(query.where(stored.c.a > 5))["n"].tolist() == []
        assert session.fetch(sa.select(loaded.c.b).order_by(loaded.c.a))["b"].to_pylist() == [None, "z\t", "x"]
        session.drop(stored)
        with pytest.raises(QblockError):
            session.counts(query)
    opened.close()


def test_a_session_sees_one_state(postgresql_url: str) -> None:
    engine = sa.create_engine(sa.make_url(postgresql_url).set(drivername="postgresql+psycopg"), poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t AS SELECT 1 AS x")
    opened = open_warehouse(postgresql_url, Path())
    with opened.snapshot() as session:
        relation = session.relation(TableName(None, "t"))
        count = sa.select(sa.func.count()).select_from(relation)
        assert session.scalar(count) == 1
        with engine.begin() as connection:
            connection.exec_driver_sql("INSERT INTO t VALUES (2)")
        assert session.scalar(count) == 1
    opened.close()
    engine.dispose()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://x/y", "no engine for 'mysql'"),
        ("not a url", "cannot be read"),
        ("duckdb://", "must name a file"),
    ],
)
def test_urls_that_are_none(url: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        open_warehouse(url, tmp_path)


def test_unreachable_databases_say_so_without_the_password(tmp_path: Path) -> None:
    for url in ("duckdb:///absent.duckdb", "postgresql://user:s3cret@127.0.0.1:1/none"):
        opened = open_warehouse(url, tmp_path)
        with pytest.raises(QblockError, match="not reachable") as caught, opened.snapshot():
            pass
        assert caught.value.exit_status == 1
        assert "s3cret" not in str(caught.value)
        opened.close()
    assert not (tmp_path / "absent.duckdb").exists()
