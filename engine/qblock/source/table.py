"""A source table ready to be counted: columns checked, hierarchies loaded, the base table scanned once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from qblock.blocks import Reference
from qblock.errors import Refused
from qblock.frequency import FrequencySets
from qblock.frequency.coding import Coding
from qblock.frequency.packing import packed
from qblock.hierarchy import Hierarchy
from qblock.lattice import Lattice
from qblock.source.columns import check_covered, check_entity, checked_columns, covered, rows_uncovered
from qblock.source.levels import domain_of, hierarchy_of, observed, ordered, origin_of, reference_of
from qblock.source.recoded import Recoding, recoded_spec
from qblock.spec import Spec
from qblock.spec.sources import CsvFile, DimensionTable
from qblock.warehouse.dimensions import load_dimension
from qblock.warehouse.memory import of_client
from qblock.warehouse.protocol import Column, Session, SourceFacts, TableName
from qblock.warehouse.queries import Dimension, Expression, Query


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
    source was copied from, where it is not a table of a database. recoding: the map by which its quasi-identifiers are
    labels.
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
    recoding: Recoding | None = None

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        return self.spec.quasi_identifiers

    @cached_property
    def lattice(self) -> Lattice:
        """The nodes that may be published: up to `max` of each hierarchy. Those of frequency_sets go on to `*`."""
        highest = [self.spec.attributes[name].highest for name in self.quasi_identifiers]
        heights = [hierarchy.height for hierarchy in self.hierarchies]
        return Lattice(tuple(h if most is None else most for most, h in zip(highest, heights, strict=True)))

    @property
    def origins(self) -> tuple[Hierarchy, ...]:
        """The hierarchies of the source as it is, also where its quasi-identifiers are labels."""
        return self.hierarchies if self.recoding is None else self.recoding.hierarchies

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
"""Takes the source's table and gives what is released of it: a relation with the columns that a run reads. One whose
attribute `instead` is true reads nothing of the table."""


def open_source(
    spec: Spec,
    session: Session,
    *,
    name_values: bool = True,
    published: bool = True,
    relation: Admitted | None = None,
    instead_of: SourceTable | None = None,
    recoding: Recoding | None = None,
) -> SourceTable:
    """Check the source against the spec, scan it once and code it.

    name_values: whether a message may list values that a hierarchy does not cover (interactive commands), or only the
    column and their number (output that ends in logs). published: whether labels are for publication, so that no two
    may read the same. relation: what stands for the table, where not all of it is released as it is. instead_of: what
    was opened of it in this session before, with the same spec, and is used no more. recoding: by which its
    quasi-identifiers are labels; spec: is `recoded_spec` of the release's then. Raises InputError, and Refused for an
    empty table.
    """
    earlier = {} if instead_of is None else instead_of.coded
    if instead_of is not None:
        session.clear(keep=[dimension.table for _, dimension in earlier.values()])
    table = TableName.parse(spec.source.table)
    columns = checked_columns(spec, session, table)
    base = session.relation(table)
    if recoding is not None:
        if not getattr(relation, "instead", False):
            base = recoding.relation(session, base, columns)
        columns = recoding.columns(columns, session.engine)
    quasi = {f"q{i}": name for i, name in enumerate(spec.quasi_identifiers)}
    sensitive = {f"s{i}": name for i, name in enumerate(spec.sensitives)}
    entities = spec.count == "entities"
    if spec.entity is not None:
        check_entity(spec, session, base.c[spec.entity], columns[spec.entity])
    admitted = base if relation is None else relation(session, base, columns)

    scanned: sa.FromClause = admitted
    stored = None
    if relation is not None or session.computed(table):
        # What takes joins to find out is read once.
        names = [*quasi.values(), *sensitive.values(), *([spec.entity] if entities and spec.entity else [])]
        scanned = stored = session.store("qblock_raw", sa.select(*(admitted.c[name] for name in dict.fromkeys(names))))

    def value(name: str) -> Expression:
        return session.comparable(scanned.c[name], columns[name])

    first_row = sa.select(sa.literal_column("1").label("one")).select_from(scanned).limit(1).subquery()
    if not session.scalar(sa.select(sa.func.count()).select_from(first_row)):
        raise Refused(f"the source {table} is empty: there is nothing to release")

    def coder(
        key: str, name: str, hierarchy: Hierarchy, *parts: str, nulls: bool, uncovered: bool = False
    ) -> Dimension:
        known, dimension = earlier.get(key, (None, None))
        if dimension is not None:
            if known == hierarchy:
                return dimension
            session.drop(dimension.table)
        origin = origin_of(spec, name, *parts)
        table = f"qblock_dimension_{key}"
        own = not isinstance(spec.attributes[name].hierarchy, CsvFile | DimensionTable) and key in quasi
        return load_dimension(
            session, table, hierarchy, columns[name], origin, nulls=nulls, uncovered=uncovered, observed=own
        )

    dimensions: dict[str, Dimension] = {}
    hierarchies = []
    for key, name in quasi.items():
        attribute = spec.attributes[name]
        seen = observed(session, scanned, value(name), columns[name])
        hierarchy = hierarchy_of(spec, session, name, columns[name], seen, published=published)
        hierarchies.append(hierarchy)
        nulls_to_top, uncovered = attribute.nulls == "top", attribute.uncovered == "top"
        dimensions[name] = coder(key, name, hierarchy, "hierarchy", nulls=nulls_to_top, uncovered=uncovered)
    waiting = {name: d for name, d in dimensions.items() if spec.attributes[name].uncovered == "quarantine"}
    quarantined = rows_uncovered(session, scanned, [(value(name), d) for name, d in waiting.items()])
    if quarantined:
        # Before anything is learned about the sensitive values, which are those of the rows that are released.
        admitted = covered(spec, session, admitted, waiting, columns)
        scanned = covered(spec, session, scanned, waiting, columns)
    domains = {}
    for key, name in sensitive.items():
        seen = observed(session, scanned, value(name), columns[name])
        domains[name] = domain_of(spec, session, name, columns[name], seen)
        null = spec.attributes[name].nulls == "value"
        dimensions[name] = coder(key, name, domains[name], "taxonomy", "domain", nulls=null)
    coding = Coding(hierarchies, [dimensions[name].leaves for name in sensitive.values()])
    coded = {name: (value(name), dimension) for name, dimension in dimensions.items()}
    kept = {"e": scanned.c[spec.entity]} if entities and spec.entity is not None else {}
    of_quasi, of_values = ([coded[name] for name in names.values()] for names in (quasi, sensitive))
    base = session.store("qblock_base", packed(scanned, coding, of_quasi, of_values, kept))
    session.analyze(base)
    rows = check_covered(spec, session, base, coding.words, scanned, coded, columns, name_values)
    if not rows:
        raise Refused(
            f"no row of the source {table} has only values that the hierarchies cover: there is nothing to release"
        )
    if stored is not None:
        session.drop(stored)

    sets = FrequencySets(session, base, coding, rows, entities=entities, memory=of_client(spec.search.memory_limit))
    values = {}
    for i, name in enumerate(sensitive.values()):
        domain, dimension = domains[name], dimensions[name]
        reference = reference_of(session, sets, i, domain, dimension, columns[name])
        reference = replace(reference, ordered=ordered(spec.attributes[name], columns[name], reference.domain))
        values[name] = Values(name, columns[name], domain, dimension, reference)
    quasi_dimensions = tuple(dimensions[name] for name in quasi.values())
    if recoding is not None:
        quarantined += recoding.quarantined
    return SourceTable(
        spec,
        session,
        admitted,
        columns,
        tuple(hierarchies),
        quasi_dimensions,
        values,
        rows,
        sets,
        quarantined,
        session.files,
        recoding,
    )


def open_recoded(
    spec: Spec,
    session: Session,
    stated: Mapping[str, Any] | None,
    *,
    relation: Admitted | None = None,
    instead_of: SourceTable | None = None,
) -> SourceTable:
    """The source as a map shows it, for output that ends in logs; or as it is, where there is none. stated: the map;
    the others as of `open_source`, which says what is raised."""
    if stated is None:
        return open_source(spec, session, name_values=False, relation=relation, instead_of=instead_of)
    recoding = instead_of.recoding if instead_of is not None else Recoding(spec, stated)
    flat = recoded_spec(spec)
    return open_source(flat, session, name_values=False, relation=relation, instead_of=instead_of, recoding=recoding)
