"""Locks that readers of PostgreSQL may hold are waited for only briefly, again and again: nobody queues behind the job
for long.

Whoever comes after a statement that waits for a lock waits behind it. So such a statement waits for
`publish.lock_timeout` at most; then the job releases everything that it has taken since (a savepoint), pauses without
queueing, and tries again a few times. If it fails, it names who holds the lock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, TypeVar

import sqlalchemy as sa

from qblock.engines.faults import original_of
from qblock.errors import Busy, QblockError
from qblock.resources import sql_text

Seconds = int | float | Fraction
Result = TypeVar("Result")
Wanted = tuple[str, tuple[str, ...]] | tuple[int, ...]
"""Relations by a schema and their names, which are looked up for a message alone, or by their oids."""

LOCK_SECONDS = 1
"""The time to wait where no spec gives one."""
ATTEMPTS = 5
PAUSE_SECONDS = 0.5
"""After the first attempt; twice that after the second one, and so on."""
REST_SECONDS = 0.02
"""How long an attempt whose time is up still waits for each further lock, which nobody should hold."""
NAMED = 3
"""How many sessions a message names."""

LOCK, DEADLOCK = "55P03", "40P01"
CHANGED = "XX000"
"""A row of the catalog that another session has changed meanwhile ("tuple concurrently updated")."""
DEPENDENT = "2BP01"
AGAIN = (LOCK, DEADLOCK, CHANGED, DEPENDENT)

READ, WRITE, ROW = "AccessShareLock", "RowExclusiveLock", "row"
ATTACH, KEEP, REPLACE = "ShareUpdateExclusiveLock", "ShareLock", "AccessExclusiveLock"
"""Locks as pg_locks calls them, and `row` for rows of a relation."""

CATALOG = ("pg_class", "pg_namespace", "pg_description", "pg_rewrite")
RELATIONS = sa.text(
    "SELECT class.oid FROM pg_catalog.pg_class AS class "
    "JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace "
    "WHERE namespace.nspname = :schema AND class.relname = ANY(:names)"
)


class Held(Busy):
    """A lock that could not be taken; the message names who holds it."""


class Attempt:
    """One attempt at the locks of a piece of work."""

    def __init__(self, connection: sa.Connection, seconds: Seconds) -> None:
        self.connection = connection
        self.wanted: list[tuple[str, Wanted]] = []
        self._seconds = float(seconds)
        self._end = math.inf
        self._limit(self._seconds)

    def wants(self, mode: str, schema: str, *names: str, catalog: bool = False) -> None:
        """What the next statements lock, for the message. catalog: they change rows of the catalog, too."""
        self.wanted = [(mode, (schema, names))]
        if catalog:
            self.wanted.append((ROW, ("pg_catalog", CATALOG)))

    def wants_oids(self, mode: str, *oids: int) -> None:
        """What the next statements lock, by the oids of relations."""
        self.wanted = [(mode, oids)]

    def begin(self) -> None:
        """From here on readers may queue behind this session: all waiting together takes no longer than one wait."""
        self._end = time.monotonic() + self._seconds

    def use_time_left(self) -> None:
        """Wait for the next lock for the rest of the attempt."""
        self._limit(max(REST_SECONDS, min(self._seconds, self._end - time.monotonic())))

    def _limit(self, seconds: float) -> None:
        self.connection.exec_driver_sql(f"SET LOCAL lock_timeout = {max(1, math.ceil(seconds * 1000))}")


def retry_with_backoff(
    connection: sa.Connection,
    seconds: Seconds,
    what: str,
    work: Callable[[Attempt], Result],
    *,
    attempts: int = ATTEMPTS,
) -> Result:
    """Do work within a savepoint of the connection's transaction, and all of it again while a lock cannot be taken.

    seconds: how long a reader may have to wait behind it. what: the object of the message. Raises Busy, naming who
    holds the lock, after the last attempt; other errors as they come.
    """
    for number in range(1, attempts + 1):
        attempt = None
        try:
            with connection.begin_nested():
                attempt = Attempt(connection, seconds)
                return work(attempt)
        except Held:
            raise
        except (sa.exc.DBAPIError, QblockError) as error:
            state = state_of(error)
            if state not in AGAIN or (number == attempts and state not in (LOCK, DEADLOCK)):
                raise
            if number == attempts:
                raise _busy(connection, what, attempt.wanted if attempt is not None else ()) from error
        pause(number)
    raise AssertionError("no attempt")


def in_one_attempt(connection: sa.Connection, seconds: Seconds, what: str, work: Callable[[Attempt], Result]) -> Result:
    """Do work that needs locks behind which no reader waits: in one attempt, as long as all those of
    `retry_with_backoff` together."""
    return retry_with_backoff(
        connection, ATTEMPTS * float(seconds) + PAUSE_SECONDS * ATTEMPTS * 2, what, work, attempts=1
    )


@contextmanager
def limited(connection: sa.Connection, seconds: float, what: str, schema: str, *names: str) -> Iterator[None]:
    """A transaction that only writes rows of these tables, and waits for each lock so many seconds at most.

    what: the object of the message. Raises Busy, naming who is in the way, for a lock that cannot be taken.
    """
    try:
        with connection.begin():
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {max(1, math.ceil(seconds * 1000))}")
            yield
    except Held:
        raise
    except (sa.exc.DBAPIError, QblockError) as error:
        if state_of(error) not in (LOCK, DEADLOCK):
            raise
        raise _busy(connection, what, [(ROW, (schema, names))]) from error


def pause(number: int) -> None:
    """The pause between two attempts."""
    time.sleep(PAUSE_SECONDS * number)


def state_of(error: BaseException) -> str | None:
    """The SQLSTATE of a driver's error, or of the one that ours was made of."""
    for cause in (error, error.__cause__):
        state = getattr(original_of(cause), "sqlstate", None) if cause is not None else None
        if state is not None:
            return str(state)
    return None


def _busy(connection: sa.Connection, what: str, wanted: Sequence[tuple[str, Wanted]]) -> Held:
    by_pid: dict[int | None, str] = {}
    statement = sa.text(sql_text("lock_blockers", "postgresql"))
    there = [(mode, oids) for mode, relations in wanted if (oids := _oids(connection, relations))]
    for mode, oids in there:
        for row in connection.execute(statement, {"mode": mode, "oids": sorted(oids)}):
            by_pid.setdefault(row.pid, _holder(row))
    holders = list(by_pid.values())
    more = [f"{len(holders) - NAMED} more"] if len(holders) > NAMED else []
    by = "held by sessions that have ended since" if there else "being made by another session"
    if holders:
        by = f"held by {' and '.join([*holders[:NAMED], *more])}"
    pids = [pid for pid in by_pid if pid is not None]
    end = f", or have an administrator end it: SELECT pg_terminate_backend({pids[0]})" if pids else ""
    return Held(
        f"{what} could not be locked: it is {by}. Readers see the same as before. Try again when that has ended{end}"
    )


def _oids(connection: sa.Connection, relations: Wanted) -> set[int]:
    match relations:
        case (str(schema), tuple(names)):
            return set(connection.scalars(RELATIONS, {"schema": schema, "names": list(names)}))
        case _:
            return {int(oid) for oid in relations if isinstance(oid, int)}


def _holder(row: Any) -> str:
    if row.pid is None:
        return "a prepared transaction (see pg_prepared_xacts)"
    who = f"user {row.role}" if row.role is not None else row.kind or "an unknown user"
    since = [_time("its transaction began", row.transaction_start), _time("its last statement", row.query_start)]
    more = ", ".join(text for text in (row.state, *since) if text)
    return f"server process {row.pid} of {who}" + (f" ({more})" if more else "")


def _time(what: str, time_: datetime | None) -> str | None:
    return None if time_ is None else f"{what} {time_.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
