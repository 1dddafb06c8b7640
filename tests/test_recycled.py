"""A database in memory is used again by the tests only if it is as a new one."""

from __future__ import annotations

import gc
from pathlib import Path

import duckdb
import pytest
import recycled

from qblock.engines.duckdb import dialect as duckdb_session
from qblock.engines.local import local_warehouse
from qblock.errors import QblockError

LEAVES = {
    "nothing": ("SELECT 1", True),
    "a temporary table": ("CREATE TEMPORARY TABLE t AS SELECT 1 AS a", True),
    "settings": ("SET memory_limit = '100MB'; SET threads = 1; SET temp_directory = '/nowhere'", True),
    "a table": ("CREATE TABLE t AS SELECT 1 AS a", False),
    "a view": ("CREATE VIEW v AS SELECT 1 AS a", False),
    "a file": ("ATTACH '{folder}/t.duckdb' AS other", False),
}


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The databases of other tests are not among those of these."""
    recycled.recycle(monkeypatch)
    monkeypatch.setattr(recycled, "_free", recycled.defaultdict(list))


def free() -> list[recycled.Database]:
    return [database for databases in recycled._free.values() for database in databases]


@pytest.mark.parametrize("leaves", LEAVES)
def test_one_is_used_again_if_nothing_is_left_in_it(leaves: str, tmp_path: Path) -> None:
    statements, again = LEAVES[leaves]
    with duckdb_session.memory_engine().connect() as connection:
        settings = connection.exec_driver_sql(recycled.SETTINGS).fetchall()
        connection.exec_driver_sql(statements.format(folder=tmp_path))
        connection.commit()
    connection.engine.dispose()
    assert len(free()) == again
    with duckdb_session.memory_engine().connect() as connection:
        assert connection.exec_driver_sql(recycled.SETTINGS).fetchall() == settings
        assert connection.exec_driver_sql("SELECT count(*) FROM duckdb_tables()").scalar() == 0


def test_two_at_once_are_two() -> None:
    one, other = local_warehouse(None), local_warehouse(None)
    with one.snapshot() as session:
        session.run("CREATE TEMPORARY TABLE t AS SELECT 1 AS a")
        with other.snapshot() as beside, pytest.raises(QblockError, match="CatalogException"):
            beside.run("SELECT a FROM t")
    one.close()
    other.close()
    assert len(free()) == 2


def test_what_reads_catalogs_gives_its_database_back(tmp_path: Path) -> None:
    duckdb.connect(str(tmp_path / "t.duckdb")).close()
    catalogs = recycled.Catalogs()
    assert catalogs.ask(tmp_path / "t.duckdb", "SELECT 1") == [[(1,)]]
    assert not free()
    del catalogs
    gc.collect()
    assert len(free()) == 1
