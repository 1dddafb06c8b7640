"""The entry of an engine: how its URLs are told, and how a database of one is opened. One subclass in each folder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import sqlalchemy as sa

from qblock.engines.adapter import Adapter
from qblock.engines.session import Warehouse
from qblock.errors import InputError

Privilege = Literal["TEMPORARY", "CREATE"]


class Engine(ABC):
    """An engine. Drivers are imported within its methods, so that each is loaded for its own URLs alone."""

    name: ClassVar[str]
    """As `Session.engine` says it, and the name of its dialect."""
    schemes: ClassVar[tuple[str, ...]]
    """Those of its URLs."""
    title: ClassVar[str]
    """As a message names it."""
    example: ClassVar[str]
    """Of a URL."""
    drivers: ClassVar[tuple[str, ...]] = ()
    """Packages that raise errors of its own."""
    is_file: ClassVar[bool] = False
    """Whether a URL names a file."""
    publishes: ClassVar[bool] = False
    """Whether releases can be published in it."""
    stores: ClassVar[bool] = False
    """Whether ledger and crosswalk can be kept with it."""

    @property
    @abstractmethod
    def adapter(self) -> type[Adapter]:
        """What differs between engines."""

    @abstractmethod
    def open(self, url: sa.URL, directory: Path, memory_limit: str | None) -> Warehouse:
        """The warehouse of a URL, not connected yet. directory: where relative paths start."""

    def copier(self, url: sa.URL, memory_limit: str | None) -> Callable[..., Warehouse]:
        """What makes a warehouse of tables of a URL that is only read, which are copied when the first snapshot begins.
        Its arguments are those of `ServerCopy` from the second one on."""
        from qblock.engines.copied import ServerCopy, tables_of

        return partial(ServerCopy, tables_of(lambda: self.open(url, Path(), memory_limit)))

    def check_url(self, url: sa.URL) -> None:
        """Raise InputError for a URL that cannot be used."""
        return

    def place_of(self, url: sa.URL) -> tuple[Any, ...]:
        """What makes the database of a URL another one."""
        return url.host, url.port, url.database

    def right_missing(self, url: sa.URL, privilege: Privilege) -> str | None:
        """Why the login may store nothing there, for the time of a run or (CREATE) for longer, with the remedy; None
        where it may."""
        return None


def database_file(url: sa.URL, directory: Path) -> Path:
    """The file of a URL that names one; relative paths start at `directory`. Raises InputError for one in memory."""
    if not url.database or url.database == ":memory:":
        raise InputError("a DuckDB URL must name a file: duckdb:///warehouse.duckdb")
    return (directory / url.database).resolve()
