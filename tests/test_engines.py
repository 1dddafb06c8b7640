"""The fixtures hand out engines whose tables hold what was asked for."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import engines
import pytest
import sqlalchemy as sa

from qblock.warehouse import TableName, open_warehouse

COLUMNS = {'a "b"': [1, None, 3], "ward": ["x", None, "ü\t'"], "day": [date(2024, 1, 2), None, None], "n": [1, 2, 3]}


def test_a_warehouse_holds_the_table(warehouse, engine_name: str, tmp_path: Path) -> None:
    url = warehouse("tbl", COLUMNS, types={"n": "NUMERIC(5, 2)"}, schema="Some schema")
    other = warehouse("tbl", {"ward": ["y"]})
    assert other == url
    source = open_warehouse(url, tmp_path)
    with source.snapshot() as session:
        assert session.engine == engine_name
        table = TableName("Some schema", "tbl")
        assert [c.kind for c in session.columns(table).values()] == ["integer", "text", "date", "decimal"]
        relation = session.relation(table)
        rows = session.fetch(sa.select(*relation.c).order_by(relation.c.n)).to_pylist()
        assert [list(row.values()) for row in rows] == [list(row) for row in zip(*COLUMNS.values(), strict=True)]
    source.close()


def test_each_test_has_a_database_of_its_own(warehouse, engine_name: str, tmp_path: Path) -> None:
    url = warehouse("other", {"a": [1]})
    source = open_warehouse(url, tmp_path)
    with source.snapshot() as session, pytest.raises(Exception, match="does not exist"):
        session.columns(TableName("Some schema", "tbl"))
    source.close()


def test_debians_server_starts_too() -> None:
    url = engines._from_debian()
    if url is None:
        pytest.skip("Debian's postgresql is not installed")
    engine = sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"))
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT 40 + 2")) == 42
    engine.dispose()
