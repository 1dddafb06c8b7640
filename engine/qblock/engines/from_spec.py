"""From a spec to its tables: where they are, which rows of them are read, and where a release is published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import sqlalchemy as sa

from qblock.engines.condition import Where
from qblock.engines.copied import CopiedWarehouse, Tabular
from qblock.engines.engine import Engine
from qblock.engines.published import PublishedLevel, PublishedRanges, RowsPublished, Unknown
from qblock.engines.registry import engine_of, open_warehouse, parse_url
from qblock.engines.session import Warehouse
from qblock.engines.source_files import FileTable
from qblock.engines.spelled import Same
from qblock.engines.tables import TableName
from qblock.errors import InputError
from qblock.spec import Spec
from qblock.spec.condition import condition_of
from qblock.spec.privacy import PriorTable
from qblock.spec.source_file import column_type
from qblock.spec.sources import CsvFile, DimensionTable, TaxonomyLevel


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


@runtime_checkable
class Copying(Protocol):
    """A warehouse that copies what is read of it."""

    def copy_only(self, table: TableName, columns: frozenset[str]) -> None:
        """Of this table only these columns are copied."""

    def copy_to(self, path: str) -> None:
        """Copies are stored there, by the server."""


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
    if not is_elsewhere(spec) or engine.is_file:
        return type_
    if type_ == NANOSECONDS:
        raise InputError(
            f"{spec.at('attributes', name)}: column {name} has nanoseconds ({NANOSECONDS}), and {engine.title} holds "
            "microseconds; cast it to TIMESTAMP in a view"
        )
    return engine.adapter.type_of_copy(type_)


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


def _only_reads(spec: Spec) -> bool:
    """Whether the source is only read for want of rights. Raises InputError where the spec has the work done there."""
    missing = None
    if spec.source.file is None:
        url = parse_url(spec.source.url.url)
        missing = engine_of(url).right_missing(url, "TEMPORARY")
    if missing is not None and spec.search.roll_up == "warehouse":
        raise InputError(
            f"{spec.at('search', 'roll_up')}: search.roll_up is warehouse, and {missing}; leave it out, and "
            "rows are counted here"
        )
    return missing is not None


def _server_copy(spec: Spec, *, rows: bool) -> Warehouse:
    url = parse_url(spec.source.url.url)
    table, *beside = tables_read(spec)
    limit = spec.search.memory_limit
    return engine_of(url).copier(url, limit)(table, _needed(spec), beside, limit, rows=rows)


def files_warehouse(
    text: str, directory: Path, place: str, types: Mapping[str, str] | None = None
) -> tuple[CopiedWarehouse, TableName]:
    """All columns of the files that a path or pattern names, as a warehouse with one table. place: for messages."""
    table = FileTable(text, directory, place, {name: column_type(type_) for name, type_ in (types or {}).items()})
    return CopiedWarehouse(table, dict.fromkeys(table.names(), place)), TableName(None, table.name)
