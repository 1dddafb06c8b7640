"""From a URL or a spec to a warehouse, and the engines: for each the schemes of its URLs, its page of facts and its
warehouse. A new one is an entry here.

A server's driver is imported when its engine is used first. DuckDB is always there: counts are rolled up in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.dialects import postgresql

from qblock.errors import InputError
from qblock.spec import Spec
from qblock.spec.condition import condition_of
from qblock.spec.privacy import PriorTable
from qblock.spec.source_file import column_type
from qblock.spec.sources import CsvFile, DimensionTable, TaxonomyLevel
from qblock.spec.urls import url_problem
from qblock.warehouse.condition import Where
from qblock.warehouse.copied import CopiedWarehouse, ServerCopy, Tabular
from qblock.warehouse.duckdb import DuckdbFacts, DuckdbWarehouse
from qblock.warehouse.duckdb_session import DuckdbDialect
from qblock.warehouse.protocol import Facts, Session, TableName, Warehouse, translated
from qblock.warehouse.published import PublishedLevel, PublishedRanges, RowsPublished, Unknown
from qblock.warehouse.quoting import quote
from qblock.warehouse.source_files import FileTable
from qblock.warehouse.spelled import Same


@dataclass(frozen=True)
class Engine:
    """schemes: of its URLs, the first one being its name; title: as a message names it; load_facts: answers its page of
    facts, `facts`; dialect: for statements as text; example: of a URL;
    opened: its warehouse, from a URL, the folder of relative paths and a limit of memory; is_file: whether a URL names
    a file; check_url: raises InputError for a URL that cannot be used; key: its name, where the first scheme is not;
    stores: whether ledger and crosswalk can be kept with it; place_of: what makes the database of a URL another one."""

    schemes: tuple[str, ...]
    title: str
    load_facts: Callable[[], type[Facts]]
    dialect: Callable[[], sa.Dialect]
    example: str
    opened: Callable[[sa.URL, Path, str | None], Warehouse]
    is_file: bool
    check_url: Callable[[sa.URL], None]
    place_of: Callable[[sa.URL], tuple[Any, ...]]
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
    from qblock.warehouse.postgresql_faults import check_parameters

    check_parameters(url)


def _spark_facts() -> type[Facts]:
    from qblock.warehouse.spark_facts import SparkFacts

    return SparkFacts


def _spark_dialect() -> sa.Dialect:
    from qblock.warehouse.spark_facts import SparkDialect

    return SparkDialect()


def _spark_warehouse(url: sa.URL, _: Path, memory: str | None) -> Warehouse:
    from qblock.warehouse.spark import SparkWarehouse

    return SparkWarehouse(url)


def _spark_place(url: sa.URL) -> tuple[Any, ...]:
    from qblock.warehouse.spark_client import DEFAULT_PORT

    return url.host, url.port or DEFAULT_PORT  # what follows says who logs in


def _check_spark(url: sa.URL) -> None:
    from qblock.warehouse.spark_client import check_url

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
    place_of=lambda url: (),  # a release file is never the source's
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
    place_of=lambda url: (url.host, url.port, url.database, url.query),
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
    place_of=_spark_place,
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


def tables_read(spec: Spec) -> list[TableName]:
    """Every table of the warehouse that a run reads: the source, hierarchies, priors, populations and guards."""
    names = [spec.source.table]
    for attribute in spec.attributes.values():
        names += [s.table for s in (attribute.hierarchy, attribute.taxonomy) if isinstance(s, DimensionTable)]
    for requirement in spec.privacy:
        if requirement.guards is not None:
            names.append(requirement.guards.table)
        if isinstance(requirement.prior, PriorTable):
            names.append(requirement.prior.table)
        population = getattr(requirement.model, "population", None)
        if population is not None:
            names.append(population)
    return [TableName.parse(name) for name in dict.fromkeys(names)]


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


PART = "qblock_part"


def gather(
    session: Session, name: str, columns: Sequence[str], parts: Iterable[Mapping[str, NDArray[np.int64]]]
) -> sa.TableClause:
    """Create a temporary table of whole numbers from parts of its rows. session: of `engines.local_warehouse`."""
    nothing = sa.cast(sa.null(), sa.BigInteger)
    table = session.store(name, sa.select(*(nothing.label(column) for column in columns)).where(sa.false()))
    driver: Any = session.connection.connection.driver_connection
    into = f"INSERT INTO {quote(name)} SELECT {', '.join(map(quote, columns))} FROM {PART}"
    for part in parts:
        session.count()
        with translated(DuckdbFacts()):
            driver.register(PART, dict(part))  # arrays by name, for which the driver does not import pandas
            try:
                driver.execute(into)
            finally:
                driver.unregister(PART)
    return table


@runtime_checkable
class Copying(Protocol):
    """A warehouse that copies what is read of it."""

    def copy_only(self, table: TableName, columns: frozenset[str]) -> None:
        """Of this table only these columns are copied."""

    def copy_to(self, path: str) -> None:
        """Copies are stored there, by the server."""


def parse_url(url: str) -> sa.URL:
    """An SQLAlchemy URL; raises InputError that does not repeat the text, which may hold a password."""
    problem = url_problem(url)
    if problem is not None:
        raise InputError(problem)
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise InputError(f"the database URL cannot be read; write {EXAMPLES}") from None
    engine_of(parsed).check_url(parsed)
    return parsed


def open_warehouse(url: str, directory: Path, memory_limit: str | None = None) -> Warehouse:
    """The warehouse of a URL, not connected yet; relative DuckDB paths start at `directory`."""
    parsed = parse_url(url)
    return engine_of(parsed).opened(parsed, directory, memory_limit)


def is_elsewhere(spec: Spec) -> bool:
    """Whether a release is published in another database than the source would hold, with the private state there."""
    if spec.publish.url is None:
        return False
    source, target = parse_url(spec.source.url.url), parse_url(spec.publish.url.url)
    if engine_of(source) is not engine_of(target):
        return True
    return engine_of(source).place_of(source) != engine_of(target).place_of(target)


def is_copied(spec: Spec) -> bool:
    """Whether the source is a server that is only read, since the release is published elsewhere: what a run reads is
    copied."""
    return is_elsewhere(spec) and not engine_of(parse_url(spec.source.url.url)).is_file


NANOSECONDS = "TIMESTAMP_NS"


def place_of(spec: Spec) -> sa.URL:
    """The database that a release is published in, and where its private state is: that of the source, unless it is
    published elsewhere."""
    elsewhere = spec.publish.url if is_elsewhere(spec) else None
    return parse_url((elsewhere or spec.source.url).url)


def engine_of_place(spec: Spec) -> Engine:
    """The engine of that database."""
    return engine_of(place_of(spec))


def published_type(spec: Spec, name: str, type_: str) -> str:
    """The type of a column, as the engine that reads the source names it, in the database that is published in. Raises
    InputError where that has none that holds every value."""
    engine = engine_of_place(spec)
    if not is_elsewhere(spec) or engine is DUCKDB:
        return type_
    if type_ == NANOSECONDS:
        raise InputError(
            f"{spec.at('attributes', name)}: column {name} has nanoseconds ({NANOSECONDS}), and {engine.title} holds "
            "microseconds; cast it to TIMESTAMP in a view"
        )
    return engine.facts.type_of_copy(type_)


def warehouse_of(spec: Spec, *, rows: bool = True, asks_rights: bool = False) -> Warehouse:
    """The warehouse of a spec's source.

    rows: whether they are wanted of files, or only the columns and their types; asks_rights: whether the source is
    copied where the login may store nothing there. What publishes there has other ways to know (`Target.needs`).
    """
    copies = is_copied(spec) or (asks_rights and _only_reads(spec))
    warehouse = _server_copy(spec, rows=rows) if copies else _warehouse_of(spec, rows)
    restrict(warehouse, spec)
    return warehouse


def restrict(warehouse: Warehouse, spec: Spec) -> None:
    """Read of the source what the spec is about: these rows, with NULL for what is unknown, and with sensitive values
    as they are published."""
    where, names = where_of(spec), _columns_kept(spec)
    codes = {name: attribute.unknown for name, attribute in spec.attributes.items() if attribute.unknown}
    unknown = {name: Unknown(of, spec.at("attributes", name, "unknown")) for name, of in codes.items()}
    same = {
        name: Same(attribute.same, spec.plainly, spec.at("attributes", name, "same"))
        for name, attribute in spec.attributes.items()
        if attribute.same
    }
    coarser = {name: shown for name in spec.sensitives if (shown := _published_as(spec, name)) is not None}
    restriction = RowsPublished(where, unknown, same, coarser, names) if unknown or same or coarser else where
    if restriction is not None:
        warehouse.restrict(TableName.parse(spec.source.table), restriction)
    # Populations have the quasi-identifiers of the source.
    unknown = {name: replace(unknown[name], place=None) for name in spec.quasi_identifiers if name in unknown}
    same = {name: same[name] for name in spec.quasi_identifiers if name in same}
    for table in spec.populations if unknown or same else ():
        if table != spec.source.table:
            warehouse.restrict(TableName.parse(table), RowsPublished(None, unknown, same, {}, None))


def _published_as(spec: Spec, name: str) -> PublishedRanges | PublishedLevel | None:
    """What a sensitive attribute is published as, where that is not its values."""
    attribute, place = spec.attributes[name], spec.at("attributes", name, "publish_as")
    published, taxonomy = attribute.publish_as, attribute.taxonomy
    if isinstance(published, TaxonomyLevel):
        assert isinstance(taxonomy, CsvFile | DimensionTable)  # of no other is there a level (checks.py)
        return PublishedLevel(taxonomy, spec.file(taxonomy), published.level, place)
    return None if published is None else PublishedRanges(published, place)


def where_of(spec: Spec) -> Where | None:
    """The condition of a spec, about the rows of its source."""
    if spec.source.where is None:
        return None
    condition, place = condition_of(spec.source.where), spec.at("source", "where")
    return Where(condition, place, str(TableName.parse(spec.source.table)), _columns_kept(spec))


def _columns_kept(spec: Spec) -> tuple[str, ...]:
    """The columns that a run reads of the rows that the condition keeps: as the source, and as a table that a model
    names."""
    names = [name for name, attribute in spec.attributes.items() if attribute.role != "identifying"]
    names += [name for name in (spec.entity, spec.groups) if name is not None]
    for requirement in spec.privacy:
        if isinstance(requirement.prior, PriorTable) and requirement.prior.table == spec.source.table:
            names += [requirement.prior.column, *(name for name, _ in requirement.prior.where)]
        if requirement.guards is not None and requirement.guards.table == spec.source.table:
            names += requirement.guards.columns
    return tuple(dict.fromkeys(names))


def _warehouse_of(spec: Spec, rows: bool) -> Warehouse:
    source = spec.source
    if source.file is None:
        warehouse = open_warehouse(source.url.url, spec.directory, spec.search.memory_limit)
        if isinstance(warehouse, Copying):
            warehouse.copy_only(TableName.parse(source.table), frozenset(_needed(spec)))
            if spec.private is not None and spec.private.path is not None:
                warehouse.copy_to(spec.private.path)
        return warehouse
    types = {name: column_type(text) for name, text in source.types.items()}
    return copied(FileTable(source.file, spec.directory, spec.at("source", "file"), types), spec, rows=rows)


def copied(table: Tabular, spec: Spec, *, rows: bool = True) -> CopiedWarehouse:
    """A table that is in no database, with the columns that a spec names, as a warehouse."""
    needed, where = _needed(spec), where_of(spec)
    for name in () if where is None else where.columns:
        needed.setdefault(name, spec.at("source", "where"))
    warehouse = CopiedWarehouse(table, needed, spec.search.memory_limit, rows=rows)
    restrict(warehouse, spec)
    return warehouse


def _needed(spec: Spec) -> dict[str, str]:
    """The columns of a source that are copied, each with where the spec names it."""
    needed = {name: spec.at("attributes", name) for name in spec.attributes}
    if spec.entity is not None:
        needed.setdefault(spec.entity, spec.at("entity"))
    if spec.groups is not None:
        needed.setdefault(spec.groups, spec.at("groups"))
    return needed


def only_reads(url: sa.URL, privilege: Literal["TEMPORARY", "CREATE"] = "TEMPORARY") -> str | None:
    """Why nothing can be stored in a database, for the time of a run or (CREATE) for longer; None where it can, and for
    engines that have no rights."""
    if engine_of(url) is not POSTGRESQL:
        return None
    from qblock.warehouse.postgresql import right_missing

    return right_missing(url, privilege)


def _only_reads(spec: Spec) -> bool:
    """Whether the source is only read for want of rights. Raises InputError where the spec has the work done there."""
    missing = None if spec.source.file is not None else only_reads(parse_url(spec.source.url.url))
    if missing is not None and spec.search.roll_up == "warehouse":
        raise InputError(
            f"{spec.at('search', 'roll_up')}: search.roll_up is warehouse, and {missing}; leave it out, and "
            "rows are counted here"
        )
    return missing is not None


def _server_copy(spec: Spec, *, rows: bool) -> CopiedWarehouse:
    url = parse_url(spec.source.url.url)
    table, *beside = tables_read(spec)
    given = (table, _needed(spec), beside, spec.search.memory_limit)
    if engine_of(url) is SPARK:
        from qblock.warehouse.spark_copied import read_tables

        return ServerCopy(partial(read_tables, url), *given, rows=rows, of_one_moment=False)
    from qblock.warehouse.postgresql_copied import PostgresqlCopy

    return PostgresqlCopy(url, *given, rows=rows)


def files_warehouse(
    text: str, directory: Path, place: str, types: Mapping[str, str] | None = None
) -> tuple[CopiedWarehouse, TableName]:
    """All columns of the files that a path or pattern names, as a warehouse with one table. place: for messages."""
    table = FileTable(text, directory, place, {name: column_type(type_) for name, type_ in (types or {}).items()})
    return CopiedWarehouse(table, dict.fromkeys(table.names(), place)), TableName(None, table.name)
