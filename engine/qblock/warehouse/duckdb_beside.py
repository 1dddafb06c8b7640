"""Further connections to a DuckDB instance, so that questions are answered at once: one for each thread that asks."""

from __future__ import annotations

import os
import threading
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

MOST = 4
"""Questions at once, however many cores there are: each is asked before the verdicts of the others are known."""
EACH = 2
"""Cores that a statement has for itself. With one, two questions on two cores took as long as one after the other."""


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class DuckdbBeside:
    """The Beside protocol. driver: the connection of the session."""

    def __init__(self, driver: duckdb.DuckDBPyConnection) -> None:
        self.max_concurrency = max(1, min(MOST, cores() // EACH))
        self.statements = 0
        self._driver = driver
        self._lock = threading.Lock()
        self._idle: list[duckdb.DuckDBPyConnection] = []
        self._busy: list[duckdb.DuckDBPyConnection] = []
        self._ended = False

    def begin(self) -> None:
        """From now on several questions share the cores."""
        self._driver.execute(f"SET threads = {max(1, cores() // self.max_concurrency)}")

    def counts(self, sql: str, names: list[str]) -> dict[str, NDArray[np.int64]]:
        connection = self._taken()
        try:
            columns = connection.execute(sql).fetchnumpy()
        finally:
            with self._lock:
                self._busy.remove(connection)
                self._idle.append(connection)
        return {name: np.ascontiguousarray(columns[name], dtype=np.int64) for name in names}

    def _taken(self) -> Any:
        with self._lock:
            if self._ended:
                raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")
            self.statements += 1
            connection = self._idle.pop() if self._idle else self._new_connection()
            self._busy.append(connection)
        return connection

    def _new_connection(self) -> duckdb.DuckDBPyConnection:
        connection = self._driver.duplicate()
        connection.execute("SET enable_progress_bar = false")
        return connection

    def interrupt(self) -> None:
        """End the statements that are running, and begin no other."""
        with self._lock:
            self._ended = True
            for connection in self._busy:
                connection.interrupt()

    def close(self) -> None:
        """Close the connections; none may be in use."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()
