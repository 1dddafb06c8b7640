"""One run at a time for each release, on both engines."""

from __future__ import annotations

import re
import secrets
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from qblock.errors import Busy, QblockError
from qblock.ledger.store import WHOLE, Store
from qblock.ledger.stores import store_of_url
from qblock.ledger.stores.postgresql_locks import lock_key

pytestmark = pytest.mark.every_postgresql

HOLDER = "with place.lock('r'): print('held', flush=True); sys.stdin.readline()\n"


def test_a_second_run_leaves_and_says_who_holds_the_lock(place: Store, start) -> None:
    holder = start(HOLDER)
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(Busy, match="another run of release r is in progress") as raised, place.lock("r"):
        pass
    message = str(raised.value)
    assert raised.value.exit_status == 4
    assert f"process {holder.pid}" in message
    assert re.search(r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", message)
    holder.communicate("\n")
    with place.lock("r"):
        pass


def test_a_second_run_waits_as_long_as_told(place: Store, start) -> None:
    holder = start(HOLDER)
    assert holder.stdout.readline() == "held\n"
    waiting = start("print('waits', flush=True)\nwith place.lock('r', wait_seconds=60): print('held', flush=True)\n")
    assert waiting.stdout.readline() == "waits\n"
    with pytest.raises(Busy), place.lock("r", wait_seconds=0.3):
        pass
    assert waiting.running()
    holder.communicate("\n")
    assert waiting.communicate()[0] == "held\n"
    assert waiting.returncode == 0


def test_a_killed_run_leaves_no_lock(place: Store, start) -> None:
    holder = start(HOLDER)
    assert holder.stdout.readline() == "held\n"
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with place.lock("r", wait_seconds=10) as lock:
        lock.check()


def test_releases_do_not_wait_for_each_other(place: Store) -> None:
    with place.lock("a") as a, place.lock("b") as b:
        a.check()
        b.check()


def test_the_lock_ends_with_the_block_even_after_an_error(place: Store) -> None:
    with pytest.raises(RuntimeError), place.lock("r"):
        raise RuntimeError
    with place.lock("r"), pytest.raises(Busy), place.lock("r"):
        pass
    with place.lock("r") as lock:
        lock.check()


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
def test_the_lock_file_is_private_and_stays(place: Store) -> None:
    with place.lock("r"):
        pass
    file = place.folder / "r.lock"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.folder.stat().st_mode) == 0o700
    assert file.read_text() == ""


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
@pytest.mark.parametrize("again", [False, True])
def test_a_removed_lock_file_is_noticed(place: Store, again: bool) -> None:
    with place.lock("r") as lock:
        file = place.folder / "r.lock"
        file.unlink()
        if again:  # by another run, which holds the lock of that name now
            file.touch(0o600)
        with pytest.raises(QblockError, match=r"the lock of release r was lost: .* was removed"):
            lock.check()


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
def test_a_lock_file_that_leads_elsewhere_is_not_followed(place: Store) -> None:
    place.folder.mkdir(mode=0o700)
    (place.folder / "r.lock").symlink_to(place.folder / "elsewhere")
    with pytest.raises(QblockError, match=r"r\.lock cannot be opened"), place.lock("r"):
        pass
    assert not (place.folder / "elsewhere").exists()


@pytest.mark.parametrize("engine_name", ["postgresql"], indirect=True)
def test_a_session_that_the_database_ended_is_noticed(place: Store) -> None:
    engine = place.create_engine()
    with place.lock("r") as lock:
        lock.check()
        with engine.connect() as connection:
            ended = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND database = "
            connection.execute(sa.text(ended + "(SELECT oid FROM pg_database WHERE datname = current_database())"))
        with pytest.raises(QblockError, match="the lock of release r was lost: the database ended its session"):
            lock.check()
    engine.dispose()


@pytest.mark.parametrize("engine_name", ["postgresql"], indirect=True)
def test_the_holder_is_found_whatever_the_sign_of_the_key(place: Store) -> None:
    names = [f"r{i}" for i in range(8)]
    assert {lock_key(name) < 0 for name in names} == {True, False}
    for name in names:
        with place.lock(name) as lock:
            lock.check()
            with pytest.raises(Busy, match=r"\(qblock " + name), place.lock(name):
                pass


@pytest.fixture
def logins(place: Store, server: str) -> Iterator[list[str]]:
    """URLs of two logins: one that may make the ledger, and one that may do nothing but connect."""
    names = [f"qblock_{who}_{secrets.token_hex(4)}" for who in ("job", "stranger")]
    with psycopg.connect(server, autocommit=True) as connection:
        for name in names:
            connection.execute(f"CREATE ROLE {name} LOGIN")
        connection.execute(f"GRANT CREATE ON DATABASE {place.url.database} TO {names[0]}")
    url = place.url.set(drivername="postgresql", password=None)
    yield [url.set(username=name).render_as_string(False) for name in names]
    with psycopg.connect(url.set(username=sa.make_url(server).username).render_as_string(False)) as connection:
        connection.execute(f"DROP OWNED BY {names[0]} CASCADE")
    with psycopg.connect(server, autocommit=True) as connection:
        for name in names:
            connection.execute(f"DROP ROLE {name}")


@pytest.fixture
def stranger(logins: list[str]) -> Iterator[psycopg.Connection]:
    with psycopg.connect(logins[1], autocommit=True) as connection:
        yield connection


HELD = (
    "SELECT (CAST(classid AS bigint) << 32) | CAST(objid AS bigint) FROM pg_locks WHERE locktype = 'advisory' "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@pytest.mark.parametrize("engine_name", ["postgresql"], indirect=True)
@pytest.mark.parametrize("upgraded", [False, True])
def test_a_login_without_rights_holds_up_no_run(
    stranger: psycopg.Connection, logins: list[str], tmp_path: Path, upgraded: bool
) -> None:
    """Keys of advisory locks are no secret, and whoever may connect can take one."""
    place = store_of_url(logins[0], tmp_path)
    if upgraded:
        place.upgrade()
    for key in (lock_key("r"), lock_key(WHOLE)):
        stranger.execute("SELECT pg_advisory_lock(%s)", [key])
    with place.lock("r") as lock:
        lock.check()
        user = sa.make_url(logins[0]).username
        said = rf"another run of release r .*\(qblock r \(process \d+\), server process \d+ of user {user}, since"
        with pytest.raises(Busy, match=said), place.lock("r"):
            pass
        # Whatever it sees that the run has taken, and when it has let go.
        for (key,) in stranger.execute(HELD).fetchall():
            stranger.execute("SELECT pg_try_advisory_lock(%s)", [key])
        lock.check()
        with pytest.raises(Busy, match="release r"), place.lock_all("ledger rekey"):
            pass
        stranger.execute("SELECT pg_advisory_unlock_all()")
        with pytest.raises(Busy, match="another run of release r is in progress"), place.lock("r"):
            pass
        with place.lock("other") as other:
            other.check()
    for key in (lock_key("r"), lock_key(WHOLE)):
        stranger.execute("SELECT pg_advisory_lock_shared(%s)", [key])
    with place.lock_all("ledger rekey") as all_:
        all_.check()
        with pytest.raises(Busy, match="the key of the crosswalk is being changed"), place.lock("r"):
            pass
    with place.lock("r"):
        pass
    assert not [key for (key,) in stranger.execute(HELD).fetchall() if key not in (lock_key("r"), lock_key(WHOLE))]


@pytest.mark.parametrize("engine_name", ["postgresql"], indirect=True)
@pytest.mark.parametrize("upgraded", [False, True])
def test_logins_that_may_run_a_release_exclude_each_other(
    place: Store, logins: list[str], tmp_path: Path, upgraded: bool
) -> None:
    """Also one that is only a member of the role that has the rights, and does not inherit them."""
    job, member = (sa.make_url(url) for url in logins)
    owner = store_of_url(logins[0], tmp_path)
    if upgraded:
        owner.upgrade()
    with place.create_engine().begin() as connection:
        connection.exec_driver_sql(f"ALTER ROLE {member.username} NOINHERIT; GRANT {job.username} TO {member.username}")
    becomes = member.update_query_dict({"options": f"-c role={job.username}"}).render_as_string(False)
    stores = [place, owner, store_of_url(becomes, tmp_path)]
    for holder in stores:
        with holder.lock("r"):
            for other in stores:
                with pytest.raises(Busy, match="another run of release r is in progress"), other.lock("r"):
                    pass
