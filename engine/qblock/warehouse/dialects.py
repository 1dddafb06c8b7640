"""Engines that share a dialect: what SQLAlchemy asks a server for each dialect, and what it compiles for one, is asked
and compiled once in a process, not for every URL, search path and warehouse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

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
