"""A DuckDB file that is attached to an instance that stays is open for as long as somebody has it open here."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import duckdb
import pytest

from qblock.warehouse import duckdb_attached
from qblock.warehouse.duckdb_session import _in_memory, ask_catalog

WRITE = "import duckdb, sys; duckdb.connect(sys.argv[1]).execute('INSERT INTO t VALUES (2)')"


def opened(file: Path, *, read_only: bool = False) -> duckdb_attached.Attached:
    return duckdb_attached.connect(file, _in_memory, read_only=read_only)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "the ledger's \" file.duckdb"
    with duckdb.connect(str(made)) as connection:
        connection.execute("CREATE TABLE t (a INTEGER); CREATE VIEW v AS SELECT a FROM t; INSERT INTO t VALUES (1)")
    return made


def another_process_writes(file: Path) -> bool:
    return subprocess.run([sys.executable, "-c", WRITE, str(file)], capture_output=True).returncode == 0


def test_a_file_is_locked_only_while_it_is_open(file: Path) -> None:
    with opened(file) as one, opened(file) as other:
        assert one.execute("SELECT a FROM v").fetchall() == [(1,)]
        other.close()
        assert not another_process_writes(file)
    assert another_process_writes(file)
    with opened(file, read_only=True) as again:
        assert again.execute("SELECT a FROM v ORDER BY a").fetchall() == [(1,), (2,)]


def test_a_file_is_open_in_one_way_at_a_time(file: Path) -> None:
    with opened(file, read_only=True) as one:
        with pytest.raises(duckdb.ConnectionException):
            opened(file)
        with pytest.raises(duckdb.InvalidInputException):
            one.execute("INSERT INTO t VALUES (2)")
    with opened(file) as one:
        one.execute("INSERT INTO t VALUES (2)")


def test_what_is_not_committed_is_gone_and_what_is_committed_stays(file: Path) -> None:
    with opened(file) as one:
        one.execute("BEGIN; INSERT INTO t VALUES (2)")
    with opened(file) as one:
        one.execute("BEGIN; INSERT INTO t VALUES (3)")
        one.commit()
        assert one.execute("SELECT a FROM t").fetchall() == [(1,), (3,)]
    assert not Path(f"{file}.wal").exists()
    with duckdb.connect(str(file)) as plain:
        assert plain.execute("SELECT a FROM v").fetchall() == [(1,), (3,)]


def test_a_file_that_has_taken_its_place_is_the_one_that_is_read(file: Path, tmp_path: Path) -> None:
    with opened(file) as one:
        one.execute("INSERT INTO t VALUES (2)")
    other = tmp_path / "other"
    with duckdb.connect(str(other)) as connection:
        connection.execute("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (9)")
    other.replace(file)
    with opened(file) as one:
        assert one.execute("SELECT a FROM t").fetchall() == [(9,)]


def test_files_of_one_name_in_different_folders_are_two(file: Path, tmp_path: Path) -> None:
    (tmp_path / "beside").mkdir()
    with opened(file) as one, opened(tmp_path / "beside" / file.name) as other:
        other.execute("CREATE TABLE u (b INTEGER)")
        query = "SELECT table_name FROM duckdb_tables()"
        assert (one.execute(query).fetchall(), other.execute(query).fetchall()) == ([("t",)], [("u",)])
        spills = "SELECT current_setting('temp_directory')"
        assert one.execute(spills).fetchall() == [(f"{file}.tmp",)]


def test_no_database_is_no_database(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite"
    file.write_text("no database" * 1000)
    for _ in range(2):
        with pytest.raises(duckdb.IOException, match="not a valid DuckDB database"):
            opened(file)
    file.unlink()
    with opened(file) as made:
        made.execute("CREATE TABLE t (a INTEGER)")


def test_instances_of_files_that_are_open_stay(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.duckdb" for number in range(duckdb_attached.MOST + 3)]
    connections = [opened(file) for file in files]
    for number, connection in enumerate(connections):
        connection.execute(f"CREATE TABLE t AS SELECT {number} AS a")
    for number, connection in enumerate(connections):
        assert connection.execute("SELECT a FROM t").fetchall() == [(number,)]
        connection.close()
        connection.close()
    assert len(duckdb_attached._hosts) <= duckdb_attached.MOST + len(files)
    with opened(files[0]) as again:
        assert again.execute("SELECT a FROM t").fetchall() == [(0,)]
    assert len(duckdb_attached._hosts) <= duckdb_attached.MOST


def test_the_catalog_of_a_file_is_asked_while_it_is_open_and_not_afterwards(file: Path) -> None:
    tables = "SELECT table_name FROM system.main.duckdb_tables()"
    assert ask_catalog(file, tables, "SELECT count(*) FROM duckdb_views() WHERE NOT internal") == [[("t",)], [(1,)]]
    with pytest.raises(duckdb.Error):
        ask_catalog(file, "SELECT nothing")
    assert another_process_writes(file)
    with opened(file), pytest.raises(duckdb.Error):
        ask_catalog(file.with_name("absent.duckdb"), tables)


class Stopped:
    """A connection that is stopped by Ctrl-C at a statement."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, at: str) -> None:
        self.connection, self.at = connection, at

    def __getattr__(self, name: str) -> object:
        return getattr(self.connection, name)

    def cursor(self) -> Stopped:
        return Stopped(self.connection.cursor(), self.at)

    def execute(self, statement: str) -> object:
        done = self.connection.execute(statement)
        if statement.startswith(self.at):
            raise KeyboardInterrupt
        return done


@pytest.mark.parametrize("at", ["ATTACH", "USE", "DETACH"])
def test_after_ctrl_c_the_file_is_let_go(file: Path, at: str) -> None:
    def start(spilled: str) -> Any:
        return Stopped(_in_memory(spilled), at)

    with pytest.raises(KeyboardInterrupt):
        duckdb_attached.connect(file, start).close()
    assert another_process_writes(file)
    with opened(file) as one:
        assert one.execute("SELECT count(*) FROM t").fetchall() == [(2,)]


@pytest.mark.parametrize("at", ["ATTACH", "SELECT", "DETACH"])
def test_after_ctrl_c_a_catalog_can_be_asked_again(file: Path, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_attached, "_hosts", OrderedDict())
    with pytest.raises(KeyboardInterrupt):
        duckdb_attached.ask(file, lambda spilled: Stopped(_in_memory(spilled), at), ["SELECT 1"])  # type: ignore[arg-type, return-value]
    assert another_process_writes(file)
    assert ask_catalog(file, "SELECT 1") == [[(1,)]]


FORKED = """
import os, sys
from pathlib import Path
from qblock.warehouse.duckdb_session import ask_catalog, attached_engine
made = attached_engine(Path(sys.argv[1]), read_only=False)
def read():
    with made.connect() as connection:
        return connection.exec_driver_sql("SELECT count(*) FROM t").scalar()
counted = ask_catalog(Path(sys.argv[1]), "SELECT 1"), read()
child = os.fork()
if not child:
    sys.exit(7 if sys.argv[2] == "ends" else 7 + read())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize(("does", "status"), [("ends", 7), ("reads", 8)])
def test_a_process_that_was_forked_ends_as_it_will(file: Path, does: str, status: int) -> None:
    done = subprocess.run([sys.executable, "-c", FORKED, str(file), does], capture_output=True, timeout=60)
    assert done.returncode == status, done.stderr
