"""A release from DuckDB: a file of its own, put in its place whole."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from release.jobs import PEOPLE, Job, MakeJob

from qblock.engines.session import Session
from qblock.errors import Busy, InputError, QblockError
from qblock.publish.helpers import KINDS
from qblock.publish.targets.duckdb import DuckdbTarget
from qblock.release.verify import verify


@pytest.fixture
def engine_name() -> str:
    """PostgreSQL publishes no file."""
    return "duckdb"


def publish_to(job: Job, file: str) -> Job:
    job.settings["publish"] = job.settings["publish"] | {"url": f"duckdb:///{file}"}
    return job


def test_the_file_holds_released_objects_alone_and_can_be_read_under_any_name(job: Job) -> None:
    job.run()
    moved = job.target.rename(job.folder / "sent to someone.db")
    with duckdb.connect(str(moved), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM published.people").fetchall() == [(12,)]
        objects = "SELECT table_schema, table_name FROM information_schema.tables ORDER BY table_name"
        assert connection.execute(objects).fetchall() == [
            ("published", name) for name in sorted(["people", "people_v1", *(f"people_{kind}" for kind in KINDS)])
        ]


def test_without_a_url_there_is_nowhere_to_publish(job: Job) -> None:
    del job.settings["publish"]["url"]
    with pytest.raises(InputError, match=r"needs a file of its own") as raised:
        job.run()
    assert "spec.yaml:" in str(raised.value)


@pytest.mark.parametrize("link", ["same", "relative", "symbolic", "hard"])
def test_the_source_is_no_target(job: Job, link: str) -> None:
    source, other = job.folder / "warehouse.duckdb", job.folder / "other.duckdb"
    before = source.read_bytes()
    if link == "symbolic":
        other.symlink_to(source)
    elif link == "hard":
        os.link(source, other)
    name = {"same": str(source), "relative": "sub/../warehouse.duckdb"}.get(link, str(other))
    with pytest.raises(InputError, match="the target is the source's file"):
        publish_to(job, name).run()
    assert source.read_bytes() == before


def test_the_ledger_is_no_target(job: Job) -> None:
    job.run()
    with pytest.raises(InputError, match="private folder"):
        publish_to(job, "qblock/ledger.sqlite").run()


@pytest.mark.parametrize("name", ["missing/release.duckdb", "folder"])
def test_a_target_that_cannot_be_a_file(job: Job, name: str) -> None:
    (job.folder / "folder").mkdir()
    with pytest.raises(InputError, match=r"name (a file in a folder that exists|another file)"):
        publish_to(job, name).run()


def test_spark_is_no_target_without_a_place_for_private_state(job: Job) -> None:
    job.settings["publish"] = job.settings["publish"] | {"url": "sc://localhost"}
    with pytest.raises(InputError, match=r"Spark cannot hold the ledger of a release; give it a database: private: "):
        job.run()


def test_a_server_that_is_not_there_is_said(job: Job) -> None:
    job.settings["publish"] = job.settings["publish"] | {"url": "postgresql://localhost:1/x"}
    with pytest.raises(QblockError, match="no server listens there"):
        job.run()


@pytest.mark.parametrize("content", ["text", "database", "another release"])
def test_a_file_that_is_no_version_of_the_release_is_left_alone(job: Job, content: str) -> None:
    if content == "text":
        job.target.write_text("my notes")
    elif content == "database":
        with duckdb.connect(str(job.target)) as connection:
            connection.execute("CREATE TABLE mine AS SELECT 1 AS a")
    else:
        job.run()
        job.set(release="other")
    before = job.target.read_bytes()
    with pytest.raises(InputError, match="is not a version of release"):
        job.run()
    assert job.target.read_bytes() == before


def test_a_file_that_another_process_writes_is_busy(job: Job, tmp_path: Path) -> None:
    job.run()
    holder = tmp_path / "hold.py"
    holder.write_text(
        "import duckdb, sys\nc = duckdb.connect(sys.argv[1])\nprint('open', flush=True)\nsys.stdin.read()\n"
    )
    command = [sys.executable, str(holder), str(job.target)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(Busy) as raised:
            job.run(force=True)
        process.communicate()
    assert raised.value.exit_status == 4
    assert job.run(force=True).version == 2


def test_a_stale_log_beside_the_target_is_not_replayed(job: Job) -> None:
    job.run()
    other = job.folder / "writer.duckdb"
    shutil.copy(job.target, other)
    connection = duckdb.connect(str(other))
    connection.execute("SET checkpoint_threshold = '1GB'")
    connection.execute("CREATE TABLE published.planted AS SELECT 1 AS a")
    wal = job.target.with_name("release.duckdb.wal")
    shutil.copy(f"{other}.wal", wal)
    connection.close()
    assert any("is not as version 1 was published" in problem for problem in verify(job.spec).problems)
    job.run(force=True)
    assert not wal.exists()
    assert not verify(job.spec).problems


def test_private_files_are_private_and_the_release_keeps_its_mode(job: Job) -> None:
    job.run()
    job.target.chmod(0o640)
    job.run(force=True)
    assert stat.S_IMODE(job.target.stat().st_mode) == 0o640
    private = job.folder / "qblock"
    for path in (private, *private.rglob("*")):
        if path.is_dir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for path in (private / "versions").rglob("*.duckdb"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_reader_that_has_the_file_open_keeps_its_version(job: Job) -> None:
    job.set(versions={"joint": "none"})
    job.run()
    with duckdb.connect(str(job.target), read_only=True) as reader:
        job.change("INSERT INTO people VALUES ('new', '13053', 33, 'flu', 'A')")
        job.run()
        assert reader.execute("SELECT count(*) FROM published.people").fetchall() == [(12,)]
    assert len(job.published()) == 13


def test_readers_say_nothing_on_duckdb(job: Job) -> None:
    job.settings["publish"]["readers"] = ["analyst"]
    assert any("DuckDB has no roles" in note for note in job.run().notes)


def test_a_release_file_that_is_gone_is_published_again(job: Job) -> None:
    job.run()
    job.target.unlink()
    assert job.run().version == 2
    assert len(job.published()) == 12


def test_bytes_of_the_source_are_not_in_the_release_file(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = DuckdbTarget.stage

    def uncompressed(target: DuckdbTarget, session: Session, *arguments: Any) -> None:
        session.run("SET force_compression = 'uncompressed'")
        stage(target, session, *arguments)

    monkeypatch.setattr(DuckdbTarget, "stage", uncompressed)
    columns: dict[str, list[Any]] = {name: [values[i % 12] for i in range(3000)] for name, values in PEOPLE.items()}
    columns["name"] = [f"source only {i:05d}" for i in range(3000)]
    columns["ward"] = [f"published pair {i // 2:05d}" for i in range(3000)]
    told = {"check": "determines", "because": "twelve people, over and over"}
    accept = [{**told, "column": name, "of": of} for name in ("disease", "ward") for of in ("zip", "age")]
    job = make_job(columns, accept=accept)
    job.run()
    released = job.target.read_bytes()
    assert sum(value.encode() in released for value in columns["name"]) == 0
    assert sum(value.encode() in released for value in columns["ward"]) == 3000


def storage_of(file: Path) -> str:
    """The oldest DuckDB that can read a file, as the library says it."""
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{file}' AS asked (READ_ONLY)")
        query = "SELECT tags['storage_version'] FROM duckdb_databases() WHERE database_name = 'asked'"
        ((found,),) = connection.execute(query).fetchall()
    return str(found)


def test_files_can_be_read_by_the_oldest_duckdb_that_is_supported(job: Job) -> None:
    job.set(entity="name").run()
    files = [job.target, *sorted((job.folder / "qblock").rglob("*.duckdb"))]
    assert {file.name for file in files} >= {"crosswalk.duckdb", "v1.duckdb"}
    assert {storage_of(file) for file in files} == {"v1.5.0+"}


def test_a_release_is_written_for_the_oldest_duckdb_that_has_to_read_it(job: Job) -> None:
    job.settings["publish"]["storage_version"] = "v1.2.0"
    job.set(entity="name").run()
    assert storage_of(job.target) == "v1.2.0+"
    assert storage_of(job.folder / "qblock" / "crosswalk.duckdb") == "v1.5.0+"


def test_a_version_that_the_library_cannot_write_for_is_refused_at_once(job: Job) -> None:
    job.settings["publish"]["storage_version"] = "v99.0.0"
    with pytest.raises(InputError, match=r"cannot write for v99\.0\.0; name a version that it knows: v1\.5\.0"):
        job.run()
    assert not job.target.exists()
