"""Opens a source: columns checked, hierarchies loaded, rows coded once, to be counted in the warehouse or here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from qblock.blocks import Reference
from qblock.engines import queries
from qblock.engines.local import gather
from qblock.engines.memory import of_client
from qblock.engines.queries import Dimension, Query
from qblock.engines.registry import ENGINES
from qblock.engines.session import Session
from qblock.engines.tables import Column, SourceFacts, TableName
from qblock.errors import QblockError, Refused
from qblock.frequency import FrequencySets
from qblock.frequency.coding import Coding, packed
from qblock.hierarchy import TOP, Hierarchy
from qblock.lattice import Lattice
from qblock.source.columns import (
    Coded,
    Scan,
    check_covered,
    check_entity,
    checked_columns,
    code_quasi_identifiers,
    code_sensitives,
    nothing_left,
    rows_uncovered,
    without_uncovered,
)
from qblock.source.levels import ordered, reference_of
from qblock.source.recoded import Recoding, recoded_spec
from qblock.spec import Spec
from qblock.spec.fields import in_bytes

MEMORY = "1GiB"
"""The limit that is reckoned with where the spec gives none."""
SHARE = 4
"""The coded table may take one of so many parts of it; hubs take the rest."""
BYTES = 8
"""Of a word of a key, or of the number of an entity."""
GROUPS = "qblock_groups"
FEW = 3
"""Nodes that are counted in the warehouse before the table has been brought here."""
LEAST_COUNTED = 50_000
"""Rows times nodes: below, the nodes of a server that sends a job for none are counted before the table is here."""


@dataclass(frozen=True, eq=False)
class Values:
    """A sensitive attribute's domain as a hierarchy of one or more levels, with the dimension that codes it."""

    name: str
    column: Column
    hierarchy: Hierarchy
    dimension: Dimension
    reference: Reference


@dataclass(frozen=True, eq=False)
class Labels:
    """A dimension table beside the rows of a source. leaf: what joins them; label, code: of each row."""

    table: sa.FromClause
    leaf: sa.ColumnElement[bool]
    label: sa.ColumnElement[Any]
    code: sa.ColumnElement[Any]


@dataclass(frozen=True, eq=False)
class SourceTable(Scan):
    """What a run knows of its source.

    hierarchies and dimensions: one for each quasi-identifier, in the order of the spec; sensitives by name.
    quarantined: rows left out since a hierarchy does not cover them yet (`uncovered: quarantine`). recoding: the map by
    which its quasi-identifiers are labels. groups: the same rows, of which households or other groups are counted as
    entities are (`Spec.groups`); NULLs are one.
    """

    hierarchies: tuple[Hierarchy, ...]
    dimensions: tuple[Dimension, ...]
    sensitives: dict[str, Values]
    frequency_sets: FrequencySets
    quarantined: int = 0
    recoding: Recoding | None = None
    groups: FrequencySets | None = None

    @property
    def rows(self) -> int:
        """N."""
        return self.frequency_sets.rows

    @property
    def files(self) -> SourceFacts | None:
        """What the source was copied from, where it is not a table of a database."""
        return self.session.files

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
    def coded(self) -> dict[str, Coded]:
        """What codes each column."""
        quasi = zip(self.quasi_identifiers, zip(self.hierarchies, self.dimensions, strict=True), strict=True)
        return dict(quasi) | {name: (values.hierarchy, values.dimension) for name, values in self.sensitives.items()}

    def labels(self, number: int, level: int) -> Labels:
        """What a quasi-identifier shows at a level below the highest. number: of it, in the order of the spec."""
        name, dimension = self.quasi_identifiers[number], self.dimensions[number]
        table = dimension.table.alias(f"qblock_labels_{number}")
        label: sa.ColumnElement[Any] = table.c[f"t{level}"]
        code: sa.ColumnElement[Any] = table.c[f"c{level}"]
        default = dimension.null_code if dimension.null_code is not None else dimension.other_code
        if default is not None:
            # Only NULL and uncovered values that the spec maps are left without a leaf: the source was checked.
            label = sa.func.coalesce(label, sa.literal_column(f"'{TOP}'", sa.Text))
            code = sa.func.coalesce(code, int(self.hierarchies[number].codes[level][default]))
        return Labels(table, self.expression(name) == table.c.leaf, label, code)

    def rows_uncovered(self) -> dict[str, int]:
        """Of each quasi-identifier with `uncovered: top`, how many rows have a value that its hierarchy lacks."""
        counts = {}
        for name, dimension in zip(self.quasi_identifiers, self.dimensions, strict=True):
            if self.spec.attributes[name].uncovered == "top":
                lacking = dimension.lacks(self.expression(name))
                rows = sa.select(sa.func.count()).select_from(self.relation).where(lacking)
                counts[name] = int(self.session.scalar(rows))
        return counts

    def rows_of(self, names: Iterable[str]) -> Query:
        """The rows that are released, with these source columns in the types that they compare in."""
        return sa.select(*(self.expression(name).label(name) for name in names)).select_from(self.relation)


NOBODY_LEFT = (
    "nobody is left whom a version could show: everybody shown so far has left or withdrawn, or shares a joint cell "
    "with somebody who withdrew at once, and nobody new may come in yet. `qblock retire SPEC` takes the view away"
)
Admitted = Callable[[Session, sa.FromClause, dict[str, Column]], sa.FromClause]
"""Takes the source's table and gives what is released of it: that table, or a relation with the columns that a run
reads, in the types that they compare in. One whose attribute `instead` is true reads nothing of the table; one that is
`stored` then gave rows that are in a table of the session."""


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

    Args:
        name_values: whether a message may list values that a hierarchy does not cover (interactive commands), or only
            the column and their number (output that ends in logs).
        published: whether labels are for publication, so that no two may read the same.
        relation: what stands for the table, where not all of it is released as it is.
        instead_of: what was opened of it in this session before, with the same spec, and is used no more.
        recoding: by which its quasi-identifiers are labels; spec is `recoded_spec` of the release's then.

    Raises InputError, and Refused for an empty table.
    """
    loaded = {} if instead_of is None else instead_of.coded
    if instead_of is not None:
        session.clear(keep=[dimension.table for _, dimension in loaded.values()])
    admitted = _admit(spec, session, relation, recoding)
    there = getattr(relation, "stored", False) or (session.embedded and getattr(relation, "instead", False))
    stored = _scan(admitted, computed=relation is not None and not there)
    quasi = code_quasi_identifiers(stored, "qblock_dimension_q", published=published, loaded=loaded)
    quarantined = rows_uncovered(stored, quasi)
    released, scanned = admitted, stored
    if quarantined:
        # Before anything is learned about the sensitive values, which are those of the rows that are released.
        released, scanned = without_uncovered(admitted, quasi), without_uncovered(stored, quasi)
    domains = code_sensitives(scanned, "qblock_dimension_s", loaded=loaded)
    sets = _coded_rows(scanned, quasi, domains, name_values)
    groups = _coded_groups(scanned, quasi)
    if stored is not admitted and isinstance(stored.relation, sa.TableClause):
        session.drop(stored.relation)
    return SourceTable(
        spec,
        session,
        released.relation,
        released.columns,
        compared=released.compared,
        hierarchies=sets.coding.hierarchies,
        dimensions=tuple(dimension for _, dimension in quasi.values()),
        sensitives=_sensitives(scanned, sets, domains),
        frequency_sets=sets,
        quarantined=quarantined + (0 if recoding is None else recoding.quarantined),
        recoding=recoding,
        groups=groups,
    )


def _admit(spec: Spec, session: Session, relation: Admitted | None, recoding: Recoding | None) -> Scan:
    """What is released of the source's table, whose columns and entities are checked."""
    table = TableName.parse(spec.source.table)
    columns = checked_columns(spec, session, table)
    base = session.relation(table)
    if recoding is not None:
        if not getattr(relation, "instead", False):
            base = recoding.relation(session, base, columns)
        columns = recoding.columns(columns, session.engine)
    if spec.entity is not None:
        check_entity(spec, session, base.c[spec.entity], columns[spec.entity], recoded=recoding is not None)
    admitted = base if relation is None else relation(session, base, columns)
    return Scan(spec, session, admitted, columns, compared=admitted is not base)


def _scan(admitted: Scan, *, computed: bool) -> Scan:
    """The rows to be coded, of which there must be one; what takes joins to find out is stored, to be read once."""
    spec, session, scanned = admitted.spec, admitted.session, admitted
    table = TableName.parse(spec.source.table)
    if computed or session.computed(table):
        names = [*spec.quasi_identifiers, *spec.sensitives]
        names += [spec.entity] if spec.entity is not None and spec.count == "entities" else []
        names += [spec.groups] if spec.groups is not None else []
        columns = (admitted.relation.c[name] for name in dict.fromkeys(names))
        scanned = replace(admitted, relation=session.store("qblock_raw", sa.select(*columns)))
    if not _has_rows(session, scanned.relation):
        others = admitted.compared and _has_rows(session, session.relation(table))
        raise Refused(NOBODY_LEFT if others else nothing_left(spec, uncovered=False))
    return scanned


def _has_rows(session: Session, relation: sa.FromClause) -> bool:
    first_row = sa.select(sa.literal_column("1").label("one")).select_from(relation).limit(1).subquery()
    return bool(session.scalar(sa.select(sa.func.count()).select_from(first_row)))


def _coded_rows(scanned: Scan, quasi: dict[str, Coded], domains: dict[str, Coded], name_values: bool) -> FrequencySets:
    """The coded table, all of whose values are covered; name_values: as of `open_source`."""
    spec, session = scanned.spec, scanned.session
    coding = Coding([hierarchy for hierarchy, _ in quasi.values()], [d.leaves for _, d in domains.values()])
    coded = {name: (scanned.expression(name), dimension) for name, (_, dimension) in (quasi | domains).items()}
    entities = spec.count == "entities"
    kept = {"e": scanned.relation.c[spec.entity]} if entities and spec.entity is not None else {}
    of_quasi, of_values = ([coded[name] for name in names] for names in (quasi, domains))
    base = session.store("qblock_base", packed(scanned.relation, coding, of_quasi, of_values, kept))
    session.analyze(base)
    rows = check_covered(scanned, base, coding.words, coded, name_values)
    if not rows:
        raise Refused(nothing_left(spec, uncovered=True))
    return FrequencySets(session, base, coding, rows, entities=entities, memory=of_client(spec.search.memory_limit))


def _coded_groups(scanned: Scan, quasi: dict[str, Coded]) -> FrequencySets | None:
    """The same rows by the group that each is of, whose hierarchies are known to cover them."""
    spec, session = scanned.spec, scanned.session
    if spec.groups is None:
        return None
    coding = Coding([hierarchy for hierarchy, _ in quasi.values()], ())
    coded = [(scanned.expression(name), dimension) for name, (_, dimension) in quasi.items()]
    kept = {"e": scanned.relation.c[spec.groups]}
    base = session.store(GROUPS, packed(scanned.relation, coding, coded, (), kept))
    session.analyze(base)
    rows = int(session.scalar(sa.select(sa.func.count()).select_from(base)))
    memory = of_client(spec.search.memory_limit)
    return FrequencySets(session, base, coding, rows, entities=True, name=f"{GROUPS}_set", memory=memory)


def _sensitives(scanned: Scan, sets: FrequencySets, domains: Mapping[str, Coded]) -> dict[str, Values]:
    values = {}
    for i, (name, (domain, dimension)) in enumerate(domains.items()):
        column = scanned.columns[name]
        reference = reference_of(scanned.session, sets, i, domain, dimension, column)
        reference = replace(reference, ordered=ordered(scanned.spec.attributes[name], column, reference.domain))
        values[name] = Values(name, column, domain, dimension, reference)
    return values


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


def fits_memory(rows: int, words: int, *, entities: bool, limit: str | None) -> bool:
    """Whether so many coded rows take a quarter of the memory limit at most."""
    return rows * BYTES * (words + entities) * SHARE <= in_bytes(limit or MEMORY)


def worth_moving(source: SourceTable) -> bool:
    """Whether a search is quicker with the coded table here, and the table small enough for that."""
    jobs = ENGINES[source.session.engine].adapter.statements_are_jobs
    rows, nodes = source.rows, len(source.lattice)
    further = 0 if source.groups is None else rows
    return (jobs or rows * nodes >= LEAST_COUNTED) and nodes > FEW and _fits(source, further)


def _fits(source: SourceTable, further: int = 0) -> bool:
    """further: rows with the same keys."""
    sets, limit = source.frequency_sets, source.spec.search.memory_limit
    return fits_memory(source.rows + further, sets.coding.words, entities=sets.entities, limit=limit)


def local_frequency_sets(source: SourceTable, local: Session) -> SourceTable:
    """The same source with its coded table in an embedded database from here on.

    Entities are numbered in the warehouse: what identifies them stays there.
    """
    session, groups = source.session, source.groups
    moved = _numbered(source.frequency_sets, session, local)
    groups = None if groups is None else _numbered(groups, session, local, f"{GROUPS}_set")
    return replace(source, frequency_sets=moved, groups=groups)


def _numbered(
    sets: FrequencySets, session: Session, local: Session, name: str = "qblock_frequency_set"
) -> FrequencySets:
    coded = sets.base
    if sets.entities:
        coded = session.store("qblock_numbered", sa.select(*queries.numbered_entities(coded)))
    moved = _moved(sets, coded, session, local, name)
    if coded is not sets.base:
        session.drop(coded)
    return moved


def beside(source: SourceTable, sets: FrequencySets, name: str) -> FrequencySets:
    """Frequency sets of another table of the warehouse, where those of the source are counted, if they fit there.

    name: of its temporary tables. sets: whose rows are counted, not entities.
    """
    session, local = source.session, source.frequency_sets.session
    if local is session or not _fits(source, sets.rows):
        return sets
    return _moved(sets, sets.base, session, local, name)


def _moved(
    sets: FrequencySets, coded: sa.TableClause, session: Session, local: Session, name: str = "qblock_frequency_set"
) -> FrequencySets:
    base = gather(local, sets.base.name, [column.name for column in coded.c], session.pull(coded))
    rows = int(local.scalar(sa.select(sa.func.count()).select_from(base)))
    if rows != sets.rows:
        raise QblockError(
            f"{rows} of {sets.rows} coded rows were brought here. This is a fault of qblock or of the database, and "
            "nothing may be published from it"
        )
    moved = FrequencySets(local, base, sets.coding, rows, entities=sets.entities, name=name, memory=sets.memory)
    moved.rows_read = sets.rows_read + rows
    return moved
