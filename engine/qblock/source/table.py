"""A source table ready to be counted: columns checked, hierarchies loaded, the base table scanned once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from qblock.blocks import Reference
from qblock.errors import Refused
from qblock.frequency import FrequencySets
from qblock.hierarchy import Hierarchy
from qblock.source.columns import check_covered, check_entity, checked_columns, covered, rows_uncovered
from qblock.source.levels import build_hierarchy, domain_of, ordered, origin_of, reference_of, with_null
from qblock.spec import Spec
from qblock.warehouse import queries
from qblock.warehouse.dimensions import load_dimension
from qblock.warehouse.protocol import Column, Session, SourceFacts, TableName
from qblock.warehouse.queries import Dimension, Query


@dataclass(frozen=True, eq=False)
class Values:
    """A sensitive attribute's domain as a hierarchy of one or more levels, with the dimension that codes it."""

    name: str
    column: Column
    hierarchy: Hierarchy
    dimension: Dimension
    reference: Reference


@dataclass(frozen=True, eq=False)
class SourceTable:
    """What a run knows of its source.

    hierarchies and dimensions: one for each quasi-identifier, in the order of the spec; sensitives by name.
    quarantined: rows left out since a hierarchy does not cover them yet (`uncovered: quarantine`). files: what the
    source was copied from, where it is not a table of a database.
    """

    spec: Spec
    session: Session
    relation: sa.FromClause
    columns: dict[str, Column]
    hierarchies: tuple[Hierarchy, ...]
    dimensions: tuple[Dimension, ...]
    sensitives: dict[str, Values]
    rows: int
    frequency_sets: FrequencySets
    quarantined: int = 0
    files: SourceFacts | None = None

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        return self.spec.quasi_identifiers

    @property
    def coded(self) -> dict[str, tuple[Hierarchy, Dimension]]:
        """What codes each column, by the name of its codes."""
        quasi = enumerate(zip(self.hierarchies, self.dimensions, strict=True))
        values = enumerate(self.sensitives.values())
        return {f"q{i}": pair for i, pair in quasi} | {f"s{i}": (v.hierarchy, v.dimension) for i, v in values}

    def expression(self, name: str) -> sa.ColumnElement[Any]:
        """A source column in the type that it compares in."""
        return self.session.comparable(self.relation.c[name], self.columns[name])

    def rows_of(self, names: Iterable[str]) -> Query:
        """The rows that are released, with these source columns in the types that they compare in."""
        return sa.select(*(self.expression(name).label(name) for name in names)).select_from(self.relation)


Admitted = Callable[[Session, sa.TableClause, dict[str, Column]], sa.FromClause]
"""Takes the source's table and gives what is released of it: a relation with the columns that a run reads."""


def open_source(
    spec: Spec,
    session: Session,
    *,
    name_values: bool = True,
    published: bool = True,
    relation: Admitted | None = None,
    instead_of: SourceTable | None = None,
) -> SourceTable:
    """Check the source against the spec, scan it once and code it.

    name_values: whether a message may list values that a hierarchy does not cover (interactive commands), or only the
    column and their number (output that ends in logs). published: whether labels are for publication, so that no two
    may read the same. relation: what stands for the table, where not all of it is released as it is. instead_of: what
    was opened of it in this session before, with the same spec, and is used no more. Raises InputError, and Refused for
    an empty table.
    """
    earlier = {} if instead_of is None else instead_of.coded
    if instead_of is not None:
        session.clear(keep=[dimension.table for _, dimension in earlier.values()])
    table = TableName.parse(spec.source.table)
    columns = checked_columns(spec, session, table)
    base = session.relation(table)
    quasi = {f"q{i}": name for i, name in enumerate(spec.quasi_identifiers)}
    sensitive = {f"s{i}": name for i, name in enumerate(spec.sensitives)}
    kept = ("e",) if spec.count == "entities" else ()
    if spec.entity is not None:
        check_entity(spec, session, base.c[spec.entity], columns[spec.entity])
    admitted = base if relation is None else relation(session, base, columns)

    coded = {**quasi, **sensitive}

    def scanned(rows: sa.FromClause) -> sa.TableClause:
        expressions = {key: session.comparable(rows.c[name], columns[name]) for key, name in coded.items()}
        if kept and spec.entity is not None:
            expressions["e"] = rows.c[spec.entity]
        return session.store("qblock_raw", queries.raw_scan(rows, expressions))

    raw = scanned(admitted)
    if session.scalar(sa.select(sa.func.count()).select_from(sa.select(raw.c.n).limit(1).subquery())) == 0:
        raise Refused(f"the source {table} is empty: there is nothing to release")

    def coding(key: str, hierarchy: Hierarchy, *parts: str, nulls: bool, others: bool = False) -> Dimension:
        name, (known, dimension) = coded[key], earlier.get(key, (None, None))
        if dimension is not None:
            if known == hierarchy:
                return dimension
            session.drop(dimension.table)
        origin = origin_of(spec, name, *parts)
        table = f"qblock_dimension_{key}"
        return load_dimension(session, table, hierarchy, columns[name], origin, nulls=nulls, others=others)

    dimensions: dict[str, Dimension] = {}
    hierarchies = []
    for key, name in quasi.items():
        attribute = spec.attributes[name]
        hierarchy = build_hierarchy(spec, session, name, columns[name], raw, key)
        if attribute.nulls == "top" or attribute.uncovered == "top":
            hierarchy = with_null(hierarchy, published=published)
        hierarchies.append(hierarchy)
        top = attribute.nulls == "top"
        dimensions[key] = coding(key, hierarchy, "hierarchy", nulls=top, others=attribute.uncovered == "top")
    waiting = {key: dimensions[key] for key, name in quasi.items() if spec.attributes[name].uncovered == "quarantine"}
    quarantined = rows_uncovered(session, raw, waiting)
    if quarantined:
        # Before anything is learned about the sensitive values, which are those of the rows that are released.
        names = {quasi[key]: dimension for key, dimension in waiting.items()}
        admitted = covered(spec, session, admitted, names, columns)
        session.drop(raw)
        raw = scanned(admitted)
        if session.scalar(sa.select(sa.func.count()).select_from(raw)) == 0:
            raise Refused(
                f"no row of the source {table} has only values that the hierarchies cover: there is nothing to release"
            )
    domains = {}
    for key, name in sensitive.items():
        domains[key] = domain_of(spec, session, name, columns[name], raw, key)
        value = spec.attributes[name].nulls == "value"
        dimensions[key] = coding(key, domains[key], "taxonomy", "domain", nulls=value)
    leaf = session.store("qblock_leaf", queries.coded(raw, dimensions, kept))
    session.analyze(leaf)
    rows = check_covered(spec, session, raw, leaf, coded, columns, dimensions, name_values)
    session.drop(raw)

    values = {}
    for key, name in sensitive.items():
        reference = reference_of(session, leaf, key, domains[key], dimensions[key], columns[name], rows, bool(kept))
        reference = replace(reference, ordered=ordered(spec.attributes[name], columns[name], reference.domain))
        values[name] = Values(name, columns[name], domains[key], dimensions[key], reference)
    quasi_dimensions = [dimensions[key] for key in quasi]
    sets = FrequencySets(session, leaf, quasi_dimensions, len(sensitive), rows, entities=bool(kept))
    return SourceTable(
        spec,
        session,
        admitted,
        columns,
        tuple(hierarchies),
        tuple(quasi_dimensions),
        values,
        rows,
        sets,
        quarantined,
        session.files,
    )


def local_frequency_sets(source: SourceTable, local: Session) -> SourceTable:
    """The same source with its leaf frequency set rolled up in an embedded database from here on."""
    sets = source.frequency_sets
    leaf = local.load("qblock_leaf", source.session.fetch(sa.select(*sets.leaf.columns)))
    dimensions = []
    for i, dimension in enumerate(source.dimensions):
        codes = [dimension.table.c[f"c{level}"] for level in range(dimension.height + 1)]
        table = local.load(f"qblock_dimension_q{i}", source.session.fetch(sa.select(*codes)))
        dimensions.append(replace(dimension, table=table))
    moved = FrequencySets(local, leaf, dimensions, len(source.sensitives), source.rows, entities=sets.entities)
    return replace(source, frequency_sets=moved)
