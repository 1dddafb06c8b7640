"""A pooler between the job and PostgreSQL: one in transaction mode is refused and keeps no lock, one in session mode
works."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from pooler import Mode, Pooler
from release.conftest import Start
from release.jobs import ATTRIBUTES, Job, MakeJob

from qblock.cli.app import run
from qblock.engines.postgresql import pooler
from qblock.engines.postgresql import session as postgresql_session
from qblock.errors import Busy, InputError
from qblock.ledger.history import history
from qblock.ledger.store import Store
from qblock.ledger.stores import postgresql_locks as holder
from qblock.ledger.stores import store_of_url
from qblock.ledger.stores.postgresql_locks import lock_key, lock_session
from qblock.release.erase import erase
from qblock.release.rollback import rollback
from qblock.release.verify import verify

pytestmark = pytest.mark.every_postgresql

on_postgresql = pytest.mark.parametrize("engine_name", ["postgresql"], indirect=True)
TRANSACTION = "a connection pooler in transaction mode"
LOCKS = (
    "SELECT pid, (CAST(classid AS bigint) << 32) | CAST(objid AS bigint) FROM pg_locks WHERE locktype = 'advisory' "
    "AND objsubid = 1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def locks(url: str) -> list[tuple[Any, ...]]:
    """Server process and key of each advisory lock."""
    with psycopg.connect(url) as connection:
        return connection.execute(LOCKS).fetchall()


def through(job: Job, pool: Pooler) -> Job:
    """The job with a URL that leads to the pooler."""
    return Job(job.engine, job.folder, pool.url, job.settings | {"source": {"url": pool.url, "table": "people"}})


@on_postgresql
@pytest.mark.parametrize(("mode", "size"), [("newest", 20), ("newest", 1), ("oldest", 20), ("oldest", 2), ("own", 2)])
def test_a_pooler_in_transaction_mode_is_refused_and_keeps_no_lock(
    released: Job, mode: Mode, size: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """The lock stayed in the pool, and all later runs waited for a process that was dead."""
    before = released.published()
    with Pooler(released.url, mode, size) as pool:
        path = str(through(released, pool).write())
        for _ in range(2):
            assert run(["release", path, "--force", "--quiet"]) == 2
            assert TRANSACTION in capfd.readouterr().err
            assert locks(released.url) == []
        assert run(["rollback", path, "1"]) == 2
        assert TRANSACTION in capfd.readouterr().err
    assert (released.published(), locks(released.url)) == (before, [])
    assert released.run(force=True).status == "published"
    assert verify(released.spec).problems == ()


@on_postgresql
def test_a_pooler_in_session_mode_works(make_job: MakeJob) -> None:
    job = make_job(attributes=ATTRIBUTES, entity="name")
    with Pooler(job.url, "session", 3) as pool:
        pooled = through(job, pool)
        assert [pooled.run(force=True).version for _ in range(2)] == [1, 2]
        assert rollback(pooled.spec, 1).status == "rolled_back"
        assert erase(pooled.spec, ["person 0"]).status == "queued"
        assert verify(pooled.spec).problems == ()
        assert history(pooled.spec)["current"] == 1
        assert len(pooled.published()) == 12
        assert pool.lent > 10
    assert locks(job.url) == []


def test_nothing_is_set_in_the_sessions_of_a_pool(postgresql_url: str) -> None:
    """Other programs of the pool would be given a session without their search path and their row security."""
    with Pooler(postgresql_url, "newest", 1) as pool:
        engine = postgresql_session.create_engine(sa.make_url(pool.url))
        with pytest.raises(pooler.Pooled), engine.connect():
            pass
        engine.dispose()
        with psycopg.connect(pool.url) as theirs:
            assert theirs.execute("SHOW search_path").fetchone() == ('"$user", public',)


@pytest.fixture
def unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pooler is not noticed by a second connection, as when that one was given another server session."""
    monkeypatch.setattr(postgresql_session, "_check_alone", lambda *_: None)


@pytest.mark.usefixtures("unasked")
def test_what_others_set_in_a_shared_server_session_is_noticed(postgresql_url: str) -> None:
    """A session's settings are part of what is protected: row security, the search path, how values are written."""
    with Pooler(postgresql_url, "newest", 1) as pool:
        engine = postgresql_session.create_engine(sa.make_url(pool.url))
        with engine.connect() as ours, psycopg.connect(pool.url, autocommit=True) as theirs:
            for _ in range(2):
                assert ours.scalar(sa.text("SELECT 1")) == 1
                ours.rollback()
            theirs.execute("SET row_security TO on")
            with pytest.raises(pooler.Pooled, match=TRANSACTION):
                ours.scalar(sa.text("SELECT 1"))
        pool.settle()
        # The session is handed on with what was set in it.
        with pytest.raises(pooler.Pooled, match="settings of another run of qblock are still there"), engine.connect():
            pass
        engine.dispose()


@pytest.mark.usefixtures("unasked")
def test_a_transaction_in_another_server_session_is_noticed(postgresql_url: str) -> None:
    with Pooler(postgresql_url, "newest") as pool, psycopg.connect(pool.url) as busy:
        engine = postgresql_session.create_engine(sa.make_url(pool.url), isolation_level="REPEATABLE READ")
        with engine.connect() as connection:
            busy.execute("SELECT 1")  # in a transaction from now on
            with pytest.raises(pooler.Pooled):
                connection.scalar(sa.text("SELECT 1"))
        engine.dispose()


@pytest.mark.usefixtures("unasked")
@pytest.mark.parametrize("mode", ["newest", "oldest"])
def test_no_lock_is_taken_in_a_shared_server_session(postgresql_url: str, tmp_path: Path, mode: Mode) -> None:
    with (
        Pooler(postgresql_url, mode) as pool,
        pytest.raises(InputError, match=TRANSACTION),
        store_of_url(pool.url, tmp_path).lock("r"),
    ):
        pass
    assert locks(postgresql_url) == []


@pytest.fixture
def pooled(postgresql_url: str, tmp_path: Path) -> Iterator[tuple[Pooler, Store]]:
    """A pooler that gives each client a server session of its own as long as it can, and a place behind it."""
    with Pooler(postgresql_url, "own") as pool:
        yield pool, store_of_url(pool.url, tmp_path)


def borrow(pool: Pooler, process: int) -> list[psycopg.Connection[Any]]:
    """Transactions that others have begun, one of them in that server session."""
    found: list[psycopg.Connection[Any]] = []
    while not found or _process(found[-1]) != process:
        found.append(psycopg.connect(pool.url))
    return found


def _process(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("mode", ["newest", "oldest"])
def test_a_lock_that_a_pooler_lent_to_others_is_noticed_and_left(pooled: tuple[Pooler, Store], mode: Mode) -> None:
    pool, place = pooled
    with place.lock("r") as lock:
        lock.check()
        (process, _), *_ = locks(pool.server)
        pool.mode = mode
        others = borrow(pool, process)
        with pytest.raises(InputError, match=TRANSACTION):
            lock.check()
        for other in others:
            other.rollback()
            other.close()
        assert {found for found, _ in locks(pool.server)} == {process}
    assert locks(pool.server) == []


@pytest.mark.parametrize("of", ["release", "place"])
def test_every_lock_is_left_whatever_ends_the_run(pooled: tuple[Pooler, Store], of: str) -> None:
    pool, place = pooled
    taken = {"release": lambda: place.lock("r"), "place": lambda: place.lock_all("ledger rekey")}[of]

    def act(error: type[BaseException]) -> None:
        with taken():
            assert lock_key("r" if of == "release" else "") in {key for _, key in locks(pool.server)}
            raise error

    for error in (KeyboardInterrupt, SystemExit, RuntimeError):
        with pytest.raises(error):
            act(error)
        assert locks(pool.server) == []


def test_a_lock_that_is_in_the_server_session_already_is_not_taken_twice(pooled: tuple[Pooler, Store]) -> None:
    """PostgreSQL gives a lock again to the session that has it: two runs that share one would both have it."""
    pool, place = pooled
    with lock_session(place, "r") as locks_:
        assert locks_.take(7)
        with pytest.raises(InputError, match=TRANSACTION):
            locks_.take(7)
        assert len(locks(pool.server)) == 1
    assert locks(pool.server) == []


@on_postgresql
def test_a_lock_whose_owner_is_gone_is_reported_as_that(
    place: Store, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = place.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with Pooler(server, "own") as pool:
        monkeypatch.setenv("POOLED", pool.url)
        killed = start(
            "place = store_of_url(os.environ['POOLED'], pathlib.Path())\n"
            "with place.lock('r'): print('held', flush=True); sys.stdin.readline()\n"
        )
        assert killed.stdout is not None
        assert killed.stdout.readline() == "held\n"
        running = rf"another run of release r is in progress \(qblock r \(process {killed.pid}\)"
        with pytest.raises(Busy, match=running), place.lock("r"):
            pass
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        ((process, _),) = [row for row in locks(server) if row[1] == lock_key("r")]
        said = rf"process {killed.pid} of this machine has ended, and server process {process}, since .* still holds"
        with pytest.raises(Busy, match=said) as raised, place.lock("r"):
            pass
        assert f"SELECT pg_terminate_backend({process})" in str(raised.value)
        with pytest.raises(Busy, match=said), place.lock_all("ledger rekey"):
            pass


def test_a_process_is_judged_on_its_own_machine_alone() -> None:
    name = holder.session_name("people")
    assert (holder.gone(name), holder.release_of(name)) == (None, "people")
    assert holder.shown(name) == name[: name.rindex(",")] + ")"
    ended = name.rpartition(",")[0].rpartition(" ")[0] + " 4194303," + name.rpartition(",")[2]
    assert holder.gone(ended) == 4194303
    machine = name[-11:-5]
    assert holder.gone(ended.replace(machine, "0" * 6)) is None
    # The pid of a process that ended may be another one's by now.
    assert holder.gone(name[:-5] + ("0000" if name[-5:-1] != "0000" else "1111") + ")") is not None
    for other in ("qblock people (process 12)", "psql", "", None):
        assert holder.gone(other) is None
    assert len(holder.session_name("p" * 40)) == holder.MOST_BYTES


@on_postgresql
@pytest.mark.parametrize(("pool_mode", "status"), [("transaction", 2), ("session", 0)])
def test_pgbouncer_itself(released: Job, pool_mode: str, status: int, capfd: pytest.CaptureFixture[str]) -> None:
    with pgbouncer(released.url, pool_mode) as url:
        path = released.set(source={"url": url, "table": "people"}).write()
        for command in ("release", "verify", "search"):
            assert run([command, str(path)]) == status
            assert (TRANSACTION in capfd.readouterr().err) == (status == 2)
    assert locks(released.url) == []


@contextmanager
def pgbouncer(server: str, pool_mode: str) -> Iterator[str]:
    """URL of a database through PgBouncer, where Debian's package is installed."""
    program, there = Path("/usr/sbin/pgbouncer"), sa.make_url(server)
    host = str(there.query.get("host", there.host))
    if not program.exists():
        pytest.skip("PgBouncer is not installed (Debian: pgbouncer)")
    # It does not run as root, and whoever runs it must reach the server's socket.
    owner = Path(host).stat().st_uid if host.startswith("/") and os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="qblock-pgbouncer-", dir="/tmp"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "users").write_text(f'"{there.username}" ""\n', "utf-8")
    (folder / "ini").write_text(
        f"[databases]\n{there.database} = host={host} port={there.port or 5432}\n[pgbouncer]\npool_mode = {pool_mode}\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = trust\n"
        f"auth_file = {folder}/users\n",
        "utf-8",
    )
    for path in (folder, *folder.iterdir()):
        os.chown(path, -1 if owner is None else owner, -1)
    started = subprocess.Popen([program, folder / "ini"], user=owner, stderr=subprocess.PIPE, text=True)
    try:
        assert started.stderr is not None
        assert any("process up" in line for line in started.stderr), "PgBouncer did not start"
        made = sa.URL.create("postgresql", there.username, host="127.0.0.1", port=port, database=there.database)
        yield made.render_as_string(hide_password=False)
    finally:
        started.kill()
        started.communicate()
        shutil.rmtree(folder)
