"""Sessions of a server that a run keeps: whoever asks next is given the session that was left last.

A run asks private state and target at some twenty moments. Starting a session costs the server more than most of what
is asked in it, and what it has learned about the catalog ends with it. So within `kept_sessions` a session that was
closed waits for the next one who wants the same; at most one does, since a login may have few, and it holds no
transaction, no lock, no setting of one and no temporary table.

Engines that share a dialect (`SharedDialect`) also keep what it has asked a server, and the statements that it has
compiled: once in a process, not for every URL, search path and warehouse.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import sqlalchemy as sa

OLDEST_SECONDS = 60
"""What lies between may forget a session that says nothing for long: one that is older is not handed on."""

_TEMPORARY = "qblock temporary tables"
Resource = TypeVar("Resource")
_run: ContextVar[dict[Hashable, Any] | None] = ContextVar("sessions of the run", default=None)


@contextmanager
def kept_sessions() -> Iterator[None]:
    """Keep sessions until the end of the outermost of these."""
    if _run.get() is not None:
        yield
        return
    kept: dict[Hashable, Any] = {}
    token = _run.set(kept)
    try:
        yield
    finally:
        _run.reset(token)
        for resource in kept.values():
            if isinstance(resource, sa.Pool):
                resource.dispose()


def are_kept() -> bool:
    """Whether sessions are kept now."""
    return _run.get() is not None


def run_scoped(key: Hashable, make: Callable[[], Resource]) -> Resource:
    """What was made under a key within the outermost `kept_sessions`; outside of it, made anew."""
    kept = _run.get()
    if kept is None:
        return make()
    if key not in kept:
        kept[key] = make()
    resource: Resource = kept[key]
    return resource


def pool_of(connect: Callable[[Any], Any], dialect: sa.Dialect) -> sa.Pool:
    """A pool that keeps one session. connect: makes one, for an entry of the pool."""
    maker: Any = connect
    pool = sa.QueuePool(maker, pool_size=1, max_overflow=-1, recycle=OLDEST_SECONDS, dialect=dialect)
    sa.event.listen(pool, "checkout", _check_alive)
    sa.event.listen(pool, "checkin", _check_empty)
    return pool


def leave(connection: sa.Connection) -> None:
    """Do not hand on the session of a connection that an error came through."""
    if not connection.closed and not connection.invalidated:
        connection.detach()


def count_temporary(connection: sa.Connection, number: int) -> None:
    """So many temporary tables more, or fewer, are in the session, which is not handed on with any."""
    connection.info[_TEMPORARY] = connection.info.get(_TEMPORARY, 0) + number


def _check_empty(driver: Any, entry: Any) -> None:
    if driver is not None and entry.info.get(_TEMPORARY):
        entry.invalidate()


def _check_alive(driver: Any, entry: Any, checked_out: Any) -> None:
    """A server says nothing to a session that asks nothing, unless it ends it: then another one is made instead."""
    waiting = select.poll()
    waiting.register(driver.fileno(), select.POLLIN)
    if waiting.poll(0):
        raise sa.exc.DisconnectionError


MOST_COMPILED = 1000
"""Statements whose text is kept for a dialect."""


Connect = Callable[[Any], Any]
"""Makes a connection of the driver. Argument: the entry of the pool that it is for."""


class SharedDialect:
    """A dialect, and what is compiled for it. It holds no connection, so that a process that is forked may use it."""

    def __init__(self, dialect: sa.Dialect) -> None:
        self.dialect = dialect
        self._compiled: sa.util.LRUCache[Any, Any] = sa.util.LRUCache(MOST_COMPILED)
        self._known = False

    def engine(
        self,
        url: sa.URL,
        connect: Connect,
        poolclass: type[sa.pool.Pool] = sa.NullPool,
        pool: sa.pool.Pool | None = None,
        **options: Any,
    ) -> sa.Engine:
        """An engine of this dialect. pool: what its connections come from, where there is one; options: SQLAlchemy's
        execution options."""
        maker: Any = connect
        pool = poolclass(maker, dialect=self.dialect) if pool is None else pool
        execution_options = {"compiled_cache": self._compiled, **options}
        engine = sa.Engine(pool, self.dialect, url, execution_options=execution_options)
        sa.event.listen(engine, "engine_connect", self._ask)
        return engine

    def _ask(self, connection: sa.Connection) -> None:
        """Have the dialect ask who it speaks with, on its first connection."""
        if self._known:
            return
        try:
            self.dialect.initialize(connection)
            connection.rollback()
        except BaseException:
            connection.close()
            raise
        self._known = True
