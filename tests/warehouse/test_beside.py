"""Several threads ask one DuckDB session at once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest
import sqlalchemy as sa

from qblock.engines.duckdb import dialect as duckdb_session
from qblock.engines.duckdb.adapter import DuckdbWarehouse
from qblock.engines.local import local_warehouse
from qblock.engines.tables import TableName

LONG = "SELECT count(*) AS n FROM range(1000000000) a(i), range(1000) b(i) WHERE hash(a.i, b.i) = 1"

ONE = sa.select(sa.literal_column("1").label("a"))


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_session, "cores", lambda: 8)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "w.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT i AS a FROM range(1000) r(i)")
    return path


def test_other_threads_find_what_is_shared_and_count_what_they_send(file: Path) -> None:
    warehouse = DuckdbWarehouse(file)
    with warehouse.snapshot() as session:
        assert session.max_concurrency == 4
        relation = session.relation(TableName.parse("t"))
        session.share("shared", sa.select(sa.literal_column("a % 10").label("k")).select_from(relation))
        before = session.statements
        with ThreadPoolExecutor(4) as threads:
            texts = [f"SELECT count(*) AS n FROM shared WHERE k = {i}" for i in range(10)]
            found = list(threads.map(lambda text: session.counts_of(text, ["n"])["n"].tolist(), texts))
        assert found == [[100]] * 10
        assert session.statements - before == 10
        assert session.scalar(sa.select(sa.func.count()).select_from(relation)) == 1000
    warehouse.close()


def test_nothing_that_was_shared_is_there_in_the_next_snapshot(file: Path) -> None:
    warehouse = DuckdbWarehouse(file)
    for _ in range(2):
        with warehouse.snapshot() as session:
            made = session.store("private", sa.select(sa.literal_column("1").label("a")))
            table = session.share("shared", sa.select(made.c.a))
            assert session.scalar(sa.select(sa.func.count()).select_from(table)) == 1
    with warehouse.snapshot() as session:
        tables = "SELECT count(*) FROM duckdb_tables() WHERE NOT internal AND table_name <> 't'"
        assert session.scalar(tables) == 0
    warehouse.close()


def test_an_error_of_another_thread_is_one_of_ours(file: Path) -> None:
    from qblock.errors import QblockError

    warehouse = DuckdbWarehouse(file)
    with warehouse.snapshot() as session, ThreadPoolExecutor(1) as threads:
        session.share("shared", ONE)
        asked = threads.submit(session.counts_of, "SELECT n FROM nowhere", ["n"])
        with pytest.raises(QblockError, match="found no table"):
            asked.result()
        assert threads.submit(session.counts_of, "SELECT 1 AS n", ["n"]).result()["n"].tolist() == [1]
    warehouse.close()


def test_an_interrupt_ends_what_other_threads_ask_and_begins_nothing_more() -> None:
    warehouse = local_warehouse()
    with warehouse.snapshot() as session:
        session.share("shared", ONE)
        ended: list[BaseException] = []
        begun = threading.Event()

        def ask(text: str) -> None:
            begun.set()
            try:
                session.counts_of(text, ["n"])
            except BaseException as error:
                ended.append(error)

        thread = threading.Thread(target=ask, args=[LONG])
        thread.start()
        begun.wait()
        while thread.is_alive():
            session.interrupt()
            time.sleep(0.05)
        thread.join()
        assert [type(error) for error in ended] == [KeyboardInterrupt]
        again = threading.Thread(target=ask, args=["SELECT 1 AS n"])
        again.start()
        again.join()
        assert [type(error) for error in ended] == [KeyboardInterrupt] * 2
    warehouse.close()


@pytest.mark.parametrize(("cores", "at_once"), [(1, 1), (2, 1), (3, 1), (4, 2), (8, 4), (64, 4)])
def test_a_statement_has_two_cores_for_itself(monkeypatch: pytest.MonkeyPatch, cores: int, at_once: int) -> None:
    monkeypatch.setattr(duckdb_session, "cores", lambda: cores)
    warehouse = local_warehouse()
    with warehouse.snapshot() as session:
        assert session.max_concurrency == at_once
        session.share("shared", ONE)
        assert session.scalar("SELECT current_setting('threads')") == max(1, cores // at_once)
    warehouse.close()
