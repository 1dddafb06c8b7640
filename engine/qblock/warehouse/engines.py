"""The engines: for each the schemes of its URLs, its page of facts and its warehouse. A new one is an entry here.

A server's driver is imported when its engine is used first. DuckDB is always there: counts are rolled up in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from qblock.errors import InputError
from qblock.warehouse.duckdb import DuckdbFacts, DuckdbWarehouse
from qblock.warehouse.duckdb_dialect import DuckdbDialect
from qblock.warehouse.facts import Facts
from qblock.warehouse.protocol import Warehouse


@dataclass(frozen=True)
class Engine:
    """schemes: of its URLs, the first one being its name; title: as a message names it; load_facts: answers its page of
    facts, `facts`; dialect: for statements as text; example: of a URL;
    opened: its warehouse, from a URL, the folder of relative paths and a limit of memory; is_file: whether a URL names
    a file; check_url: raises InputError for a URL that cannot be used; key: its name, where the first scheme is not;
    stores: whether ledger and crosswalk can be kept with it."""

    schemes: tuple[str, ...]
    title: str
    load_facts: Callable[[], type[Facts]]
    dialect: Callable[[], sa.Dialect]
    example: str
    opened: Callable[[sa.URL, Path, str | None], Warehouse]
    is_file: bool
    check_url: Callable[[sa.URL], None]
    key: str | None = None
    stores: bool = True

    @property
    def name(self) -> str:
        return self.key or self.schemes[0]

    @property
    def facts(self) -> type[Facts]:
        """What differs between engines."""
        return self.load_facts()


def database_file(url: sa.URL, directory: Path) -> Path:
    """The file of a URL that names one; relative paths start at `directory`. Raises InputError for one in memory."""
    if not url.database or url.database == ":memory:":
        raise InputError("a DuckDB URL must name a file: duckdb:///warehouse.duckdb")
    return (directory / url.database).resolve()


def _postgresql_facts() -> type[Facts]:
    from qblock.warehouse.postgresql import PostgresqlFacts

    return PostgresqlFacts


def _postgresql_warehouse(url: sa.URL, _: Path, memory: str | None) -> Warehouse:
    from qblock.warehouse.postgresql import PostgresqlWarehouse

    return PostgresqlWarehouse(url.set(drivername="postgresql"), memory)


def _check_postgresql(url: sa.URL) -> None:
    from qblock.warehouse.postgresql_addresses import check_parameters

    check_parameters(url)


def _spark_facts() -> type[Facts]:
    from qblock.warehouse.spark_facts import SparkFacts

    return SparkFacts


def _spark_dialect() -> sa.Dialect:
    from qblock.warehouse.spark_dialect import SparkDialect

    return SparkDialect()


def _spark_warehouse(url: sa.URL, _: Path, memory: str | None) -> Warehouse:
    from qblock.warehouse.spark import SparkWarehouse

    return SparkWarehouse(url)


def _check_spark(url: sa.URL) -> None:
    from qblock.warehouse.spark_urls import check_url

    check_url(url)


DUCKDB = Engine(
    ("duckdb",),
    "DuckDB",
    lambda: DuckdbFacts,
    # A driver's own way of writing parameters would double every percent sign in a name.
    lambda: DuckdbDialect(paramstyle="named"),
    "duckdb:///FILE",
    lambda url, directory, memory: DuckdbWarehouse(database_file(url, directory), memory),
    is_file=True,
    check_url=lambda url: None,
)
POSTGRESQL = Engine(
    ("postgresql", "postgres"),
    "PostgreSQL",
    _postgresql_facts,
    lambda: postgresql.dialect(paramstyle="named"),  # type: ignore[no-untyped-call]
    "postgresql://USER@HOST/DATABASE",
    _postgresql_warehouse,
    is_file=False,
    check_url=_check_postgresql,
)
SPARK = Engine(
    ("sc",),
    "Spark",
    _spark_facts,
    _spark_dialect,
    "sc://HOST:15002/;token=${TOKEN}",
    _spark_warehouse,
    is_file=False,
    check_url=_check_spark,
    key="spark",
    stores=False,
)
ENGINES = {engine.name: engine for engine in (DUCKDB, POSTGRESQL, SPARK)}
"""By name, as `Session.engine` and `Place.engine` say it."""
EXAMPLES = " or ".join(engine.example for engine in ENGINES.values())


def engine_of(url: sa.URL) -> Engine:
    """The engine of a URL. Raises InputError where there is none."""
    name = url.get_backend_name()
    for engine in ENGINES.values():
        if name in engine.schemes:
            return engine
    raise InputError(f"no engine for {name!r}; write {EXAMPLES}")


def facts_of(connection: sa.Connection) -> type[Facts]:
    """The page of facts of the engine that a connection is to."""
    return ENGINES[connection.dialect.name].facts


@contextmanager
def private_names(connection: sa.Connection) -> Iterator[None]:
    """Within it names without a schema are those of the private tables."""
    schema = facts_of(connection).private_schema
    if schema is None:
        yield
        return
    from qblock.warehouse.postgresql_session import TEMPORARY, looking_along

    with looking_along(connection, (schema, TEMPORARY)):
        yield


def local_warehouse(memory_limit: str | None = None) -> Warehouse:
    """A database of this process without tables: where frequency sets are rolled up apart from their source."""
    return DuckdbWarehouse(None, memory_limit)
