"""The fixtures hand out engines whose tables hold what was asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import engines
import psycopg
import pytest
import sqlalchemy as sa

from qblock.engines.registry import open_warehouse
from qblock.engines.tables import TableName

COLUMNS = {'a "b"': [1, None, 3], "ward": ["x", None, "ü\t'"], "day": [date(2024, 1, 2), None, None], "n": [1, 2, 3]}


def test_a_warehouse_holds_the_table(warehouse, engine_name: str, tmp_path: Path) -> None:
    schema = engines.table_name(engine_name, "Some schema")
    url = warehouse("tbl", COLUMNS, types={"n": "NUMERIC(5, 2)"}, schema=schema)
    other = warehouse("tbl", {"ward": ["y"]})
    assert other == url
    source = open_warehouse(url, tmp_path)
    with source.snapshot() as session:
        assert session.engine == engine_name
        table = TableName(schema, "tbl")
        assert [c.kind for c in session.columns(table).values()] == ["integer", "text", "date", "decimal"]
        relation = session.relation(table)
        rows = session.fetch(sa.select(*relation.c).order_by(relation.c.n)).to_pylist()
        assert [list(row.values()) for row in rows] == [list(row) for row in zip(*COLUMNS.values(), strict=True)]
    source.close()


def test_each_test_has_a_database_of_its_own(warehouse, engine_name: str, tmp_path: Path) -> None:
    url = warehouse("other", {"a": [1]})
    source = open_warehouse(url, tmp_path)
    with source.snapshot() as session, pytest.raises(Exception, match="does not exist"):
        session.columns(TableName(engines.table_name(engine_name, "Some schema"), "tbl"))
    source.close()


@pytest.mark.every_postgresql
def test_the_server_is_of_the_version_that_the_test_is_about(postgresql_url: str, postgresql_version: str) -> None:
    with psycopg.connect(postgresql_url) as connection:
        number = connection.info.server_version // 10000
    assert (number == 15) if postgresql_version == engines.OLDEST else (number > 15)


class TestOfOneEngine:
    """A fixture of a module's own names one engine."""

    @pytest.fixture
    def engine_name(self) -> str:
        return "postgresql"

    @pytest.mark.every_postgresql
    def test_it_is_not_run_again_under_the_name_of_another_engine(
        self, engine_name: str, postgresql_version: str, request: pytest.FixtureRequest
    ) -> None:
        assert list(request.node.callspec.params) == ["postgresql_version"]


def test_what_is_not_required_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QBLOCK_TEST_REQUIRE", raising=False)
    with pytest.raises(pytest.skip.Exception, match="needs java"):
        engines.required("java")
    monkeypatch.setenv("QBLOCK_TEST_REQUIRE", "postgresql15,java")
    engines.required("java")


def test_what_is_required_and_absent_fails(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import engines\nfrom engines import *\nengines._from_debian = lambda version: None\n", "utf-8"
    )
    file = tmp_path / "test_absent.py"
    file.write_text("def test(oldest_postgresql):\n    pass\n", "utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, str(file)],
        env={**os.environ, "QBLOCK_TEST_REQUIRE": engines.OLDEST, "PYTHONPATH": str(Path(engines.__file__).parent)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    assert "PostgreSQL 15 is absent: apt-get install postgresql-15" in run.stdout


def test_debians_server_starts_too() -> None:
    url = engines._from_debian()
    if url is None:
        pytest.skip("Debian's postgresql is not installed")
    engine = sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"))
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT 40 + 2")) == 42
    engine.dispose()
