"""Databases in memory that are used again within the process of a test run: to start DuckDB and to end it takes 20 ms,
and every search and every run of a job opens one or two.

One is used again only if it is as a new one: no table, no view and no file in it, and every setting as it was.
"""

from __future__ import annotations

import os
import weakref
from collections import defaultdict
from functools import cached_property

import duckdb
import pytest
import sqlalchemy as sa

from qblock.engines.duckdb import dialect as duckdb_session

SETTINGS = "SELECT name, value FROM duckdb_settings() ORDER BY name"
LEFT = """
    SELECT (SELECT count(*) FROM duckdb_databases() WHERE NOT internal AND database_name <> 'memory')
        + (SELECT count(*) FROM duckdb_tables()) + (SELECT count(*) FROM duckdb_views() WHERE NOT internal)
"""
_free: dict[object, list[Database]] = defaultdict(list)


class Database:
    """A database in memory, of which one connection is lent at a time."""

    def __init__(self) -> None:
        self._own = duckdb_session._settled(duckdb.connect(":memory:"))
        self._settings = self._own.execute(SETTINGS).fetchall()

    def lend(self) -> duckdb.DuckDBPyConnection:
        return self._own.cursor()

    def is_as_new(self) -> bool:
        """Whether nothing of the connection that was lent is left, once its settings have been taken back."""
        try:
            settings = self._own.execute(SETTINGS).fetchall()
            for (name, value), (_, now) in zip(self._settings, settings, strict=True):
                if now != value:
                    self._own.execute(f"RESET GLOBAL {name}")
            again = settings == self._settings or self._own.execute(SETTINGS).fetchall() == self._settings
            return bool(again and self._own.execute(LEFT).fetchall() == [(0,)])
        except duckdb.Error:
            return False

    def close(self) -> None:
        self._own.close()


def _taken() -> tuple[object, Database]:
    # Tests change what every connection is given; and a fork has none of a database's threads.
    key = os.getpid(), tuple(duckdb_session.SETTINGS.items())
    return key, _free[key].pop() if _free[key] else Database()


def _give_back(key: object, database: Database) -> None:
    if database.is_as_new():
        _free[key].append(database)
    else:
        database.close()


class Lent(duckdb_session.Connection):
    """A connection whose database goes to the next one when it is closed."""

    def __init__(self) -> None:
        self._key, self._database = _taken()
        super().__init__(self._database.lend())
        self._end, self.close = self.close, self._close

    def _close(self) -> None:
        self._end()
        database, self._database = self._database, None
        if database is not None:
            _give_back(self._key, database)


class Catalogs(duckdb_session.Catalogs):
    """Gives its database back when it is let go."""

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        key, database = _taken()
        lent = database.lend()

        def end() -> None:
            lent.close()
            _give_back(key, database)

        weakref.finalize(self, end).atexit = False
        return lent


def _memory_engine() -> sa.Engine:
    return duckdb_session._dialect().engine(sa.make_url("duckdb://"), lambda _: Lent(), sa.StaticPool)


def recycle(patched: pytest.MonkeyPatch) -> None:
    """Let databases in memory be used again. patched: undone by its owner."""
    patched.setattr(duckdb_session, "memory_engine", _memory_engine)
    patched.setattr("qblock.publish.targets.duckdb.Catalogs", Catalogs)
