"""DuckDB files that a run opens again and again: attached to an instance of their own that stays, file by file.

Starting an instance takes ten times as long as attaching a file to one, and a run opens its ledger some thirty times.
A file is attached, and locked, only while somebody has it open here; detached, it is as if it had been closed.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb

Start = Callable[[str], duckdb.DuckDBPyConnection]
"""Starts an instance in memory that spills into a folder."""
MOST = 4
"""Instances that stay while none of their files is open."""
# A connection that nobody has closed is closed by the garbage collector, at any moment.
_lock = threading.RLock()
_hosts: OrderedDict[Path | None, Host] = OrderedDict()


class Host:
    """An instance for one file, or for the catalogs of any (None). opened: how many connections to the file there are;
    read_only: of all of them."""

    def __init__(self, file: Path | None, start: Start) -> None:
        self.file, self.name = file, _quoted(file.stem if file is not None else "qblock_file")
        self.opened, self.read_only = 0, False
        # It spills beside the file, as an instance that is started for the file does.
        self.instance = start("" if file is None else f"{file}.tmp")

    def connect(self, read_only: bool) -> duckdb.DuckDBPyConnection:
        self.opened += 1
        if self.opened == 1 and self.file is not None:
            self.attach(self.file, read_only)
        connection = self.instance.cursor()
        connection.execute(f"USE {self.name}")
        return connection

    def let_go(self) -> None:
        self.opened -= 1
        if not self.opened:
            self.detach()

    def attach(self, file: Path, read_only: bool) -> None:
        path = str(file).replace("'", "''")
        self.instance.execute(f"ATTACH '{path}' AS {self.name}{' (READ_ONLY)' if read_only else ''}")
        self.read_only = read_only

    def detach(self) -> None:
        self.instance.execute(f"DETACH {self.name}")


class Attached:
    """A connection of the driver to a file that is attached; closed, it lets the file go."""

    def __init__(self, host: Host, connection: duckdb.DuckDBPyConnection) -> None:
        self._host, self._connection = host, connection
        self._closed = False
        # The driver's own: nothing of ours runs between a commit that is asked for and the one that is done.
        self.begin, self.commit, self.rollback = connection.begin, connection.commit, connection.rollback
        self.execute = connection.execute

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def __enter__(self) -> Attached:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with _lock:
            if self._closed:
                return
            self._closed = True
            try:
                self._connection.close()
                self._host.let_go()
            except duckdb.Error:
                # As for an instance that ends: what a fatal error has shut says nothing, its log is read by the next.
                _end(self._host)
            except BaseException:
                _end(self._host)
                raise


def connect(file: Path, start: Start, *, read_only: bool = False) -> Attached:
    """A connection to a file. start: starts an instance. Raises duckdb.Error, ConnectionException where this process
    has the file open the other way."""
    with _lock:
        host = _hosts.get(file)
        if host is None:
            host = _hosts[file] = Host(file, start)
        _hosts.move_to_end(file)
        if host.opened and read_only != host.read_only:
            raise duckdb.ConnectionException("the file is open with a different configuration")
        try:
            attached = Attached(host, host.connect(read_only))
        except BaseException:
            # After Ctrl-C nobody knows whether it is attached.
            host.opened -= 1
            if not host.opened:
                _end(host)
            raise
        for idle in [known for known in _hosts.values() if not known.opened][: max(0, len(_hosts) - MOST)]:
            _end(idle)
        return attached


def ask(file: Path, start: Start, queries: Sequence[str]) -> list[list[Any]]:
    """The rows of queries of the catalog of a file, which is open read-only meanwhile. Raises duckdb.Error."""
    with _lock:
        host = _hosts.get(None)
        if host is None:
            host = _hosts[None] = Host(None, start)
        _hosts.move_to_end(None)
        try:
            host.attach(file, read_only=True)
            try:
                return [host.instance.execute(query).fetchall() for query in queries]
            finally:
                host.detach()
        except BaseException:
            _end(host)
            raise


def _end(host: Host) -> None:
    for key in [key for key, known in _hosts.items() if known is host]:
        del _hosts[key]
    host.instance.close()


def _forget() -> None:
    """In a process that was forked: instances whose threads are in another process cannot be ended, so they stay."""
    global _lock
    _lock = threading.RLock()
    for host in _hosts.values():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(host.instance))
    _hosts.clear()


os.register_at_fork(after_in_child=_forget)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
