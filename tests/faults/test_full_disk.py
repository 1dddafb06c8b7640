"""The short form of the sweep over free space: a few amounts at which a run stops in different places.

The long form is `python -m tests.faults.full_disk --step 0.1`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
import sqlalchemy as sa
from engines import create_table
from release.jobs import ATTRIBUTES, PEOPLE, MakeJob, make_job, new_job  # noqa: F401
from release.state import crosswalk

from faults import full_disk, small_disk
from faults.nursery import Nursery
from qblock.engines import memory
from qblock.engines.duckdb.dialect import logs_of
from qblock.engines.duckdb.faults import explain_duckdb
from qblock.engines.registry import open_warehouse
from qblock.errors import QblockError
from qblock.ledger.history import history
from qblock.ledger.stores.files import DuckdbFile
from qblock.release.verify import verify

AMOUNTS = {"none": ["0.4", "1.2"], "episodes": ["0.2", "1.8"]}
"""MB: the ledger, the crosswalk, the private copy or the file beside the target cannot be written, or what a log holds
cannot be brought into its file."""
SECONDS = 400


@pytest.mark.parametrize("joint", AMOUNTS)
def test_a_disk_without_room_keeps_readers_at_their_version_and_the_next_run_is_clean(
    joint: str, tmp_path: Path
) -> None:
    if small_disk.command() is None:
        pytest.skip("no file system of limited size can be mounted here")
    written = tmp_path / "report.json"
    arguments = ["--joint", joint, "--report", str(written), "--inside"]
    for amount in AMOUNTS[joint]:
        arguments += ["--at", amount]
    small_disk.run_inside("faults.full_disk", arguments, SECONDS)
    (report,) = json.loads(written.read_text("utf-8"))
    assert report["problems"] == []
    assert report["amounts"] == len(AMOUNTS[joint])
    assert report["statuses"]["1"] + report["aborts"] >= report["amounts"]  # there was no room indeed
    assert all("the disk is full" in message for message in report["messages"])


def test_a_sweep_without_a_fault_alone_is_clean() -> None:
    assert full_disk.Report("none").clean
    assert full_disk.Report("none", aborts=["1.0 MB"]).clean  # counted, and no fault of ours
    assert not full_disk.Report("none", problems=["exit status 4"]).clean


KEYED = (
    "event",
    "guarantee",
    "pointer",
    "reference",
    "begun",
    "crosswalk_key",
    "crosswalk_version",
    "crosswalk_rolled",
)
"""The tables with a primary key."""


def test_no_key_is_deleted_and_inserted_in_one_transaction(
    make_job: MakeJob,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DuckDB's index does not bear that where the commit fails, as on a full disk."""
    job = make_job(attributes=ATTRIBUTES, entity="name", versions={"keep": 1})
    job.run()
    with Nursery() as nursery:
        # The crosswalk has version 2 then, which nobody was shown; the next run records its own version 2.
        command = ["release", str(job.write()), "--force"]
        point = {"record": "staged", "when": "before"}
        nursery.wait(nursery.start(command, job.folder / "output.txt", point))
    if job.engine == "duckdb":
        assert [version for version, _ in crosswalk(job)] == [1, 2]
    done: dict[int, list[str]] = {}
    both: list[str] = []

    def execute(connection: sa.Connection, _: object, statement: str, *more: object) -> None:
        words = statement.replace('"', "").replace("qblock.", "").split()
        if words[:1] == ["DELETE"] or words[:1] == ["INSERT"]:
            done.setdefault(id(connection), []).append(f"{words[0]} {words[2].partition('(')[0]}")

    def end(connection: sa.Connection) -> None:
        said = done.pop(id(connection), [])
        both.extend(table for table in KEYED if {f"DELETE {table}", f"INSERT {table}"} <= set(said))

    sa.event.listen(sa.Engine, "before_cursor_execute", execute)
    sa.event.listen(sa.Engine, "commit", end)
    try:
        assert job.run(force=True).version == 2
        job.run(force=True)
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", execute)
        sa.event.remove(sa.Engine, "commit", end)
    assert both == []
    assert verify(job.spec).problems == ()
    shown = {e["version"]: e["stamp"] for e in history(job.spec)["events"] if e["state"] == "published"}
    assert crosswalk(job) == sorted(shown.items())


def test_a_log_that_a_killed_run_left_is_in_the_file_before_anything_is_written(tmp_path: Path) -> None:
    """Else what one process left half done and what the next one writes are one log, which is replayed as a whole."""
    database = DuckdbFile(tmp_path / "crosswalk.duckdb")
    with database.opened(read_only=False):
        pass
    killed = (
        "import duckdb, os, sys; kept = duckdb.connect(sys.argv[1]); kept.execute('CREATE TABLE half_done (x INT)'); "
        "os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", killed, str(database.file)], check=False).returncode == 9

    def logs() -> list[Path]:
        return [log for log in logs_of(database.file) if log.exists() and log.stat().st_size]

    left = logs()
    assert left != []
    tables = sa.text("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'half_done'")
    with database.opened(read_only=True) as connection:
        assert connection.scalar(tables) == 1
    assert logs() == left  # whoever reads writes nothing
    with database.opened(read_only=False) as connection:
        assert logs() == []
        assert connection.scalar(tables) == 1


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (
            'Failed to commit: Could not write file "/a b/crosswalk.duckdb.wal": No space left on device',
            "/a b/crosswalk.duckdb.wal",
        ),
        ('Could not write file "/x.duckdb": Disk quota exceeded', "/x.duckdb"),
        ("Failed to write: No space left on device", "a file of DuckDB"),
    ],
)
@pytest.mark.parametrize("class_", [duckdb.TransactionException, duckdb.IOException, duckdb.FatalException])
def test_a_full_disk_is_said_with_the_file_and_nothing_else(class_: type[Exception], text: str, path: str) -> None:
    error = explain_duckdb(class_(f'TransactionContext Error: value "secret" {text}'))
    assert type(error) is QblockError
    assert str(error) == f"the disk is full: there is no room left for {path}; make room on it, and run again"


def test_a_full_temporary_folder_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")  # as Python has it

    create_table(f"duckdb:///{tmp_path}/warehouse.duckdb", "people", PEOPLE)
    monkeypatch.setattr(memory.tempfile, "mkdtemp", full)
    with pytest.raises(QblockError, match=r"no temporary folder can be written to .*: its disk is full"):
        open_warehouse(f"duckdb:///{tmp_path}/warehouse.duckdb", tmp_path)
