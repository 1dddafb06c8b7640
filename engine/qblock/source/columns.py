"""Columns of the source: which a run reads, what codes them, and checks of both against the spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa

from qblock.engines import queries
from qblock.engines.copied import no_column
from qblock.engines.from_spec import where_of
from qblock.engines.queries import Dimension, Expression
from qblock.engines.session import Session
from qblock.engines.tables import Column, TableName
from qblock.engines.values import load_dimension
from qblock.errors import InputError, counted
from qblock.hierarchy import Hierarchy
from qblock.source.levels import NAMED, Distinct, Observed, domain_of, hierarchy_of, is_made_of_values, listed
from qblock.spec import Cuts, Spec
from qblock.spec.repeats import may_stand_for_people, repeats_people

WEIGHT = "qblock weight"
SINCE = "qblock since"
"""The weights of rows, as texts, where a relation stands for the source."""


def columns_read(spec: Spec) -> tuple[str, ...]:
    """The columns of the source that a run cannot do without."""
    own = [name for name, attribute in spec.attributes.items() if attribute.role != "identifying"]
    return tuple(dict.fromkeys([*own, *(name for name in (spec.entity, spec.groups) if name is not None)]))


def columns_granted(spec: Spec) -> tuple[str, ...]:
    """Those that its login must be able to read: of the rows that are read, and to tell which rows these are."""
    where = where_of(spec)
    return tuple(dict.fromkeys([*columns_read(spec), *(() if where is None else where.columns)]))


def no_rows(spec: Spec) -> str:
    """What is said of a source without rows, or without any that the spec is about."""
    table = TableName.parse(spec.source.table)
    if spec.source.where is None:
        return f"the source {table} is empty"
    return f"{spec.at('source', 'where')}: no row of the source {table} meets the condition"


def nothing_left(spec: Spec, *, uncovered: bool) -> str:
    """Why nothing of a source can be released. uncovered: whether it has rows, with values that no
    hierarchy covers."""
    table = TableName.parse(spec.source.table)
    none = f"no row of the source {table} has only values that the hierarchies cover" if uncovered else no_rows(spec)
    return f"{none}: there is nothing to release"


def columns_looked_at(spec: Spec) -> tuple[str, ...]:
    """Those that it does without: whether they repeat people, where the spec does not say who a row is about."""
    if spec.entity is not None:
        return ()
    return tuple(name for name, attribute in spec.attributes.items() if attribute.role == "identifying")


Coded = tuple[Hierarchy, Dimension]
"""A hierarchy, or a domain, with the dimension table that codes its column."""
NOTHING: Mapping[str, Coded] = {}


@dataclass(frozen=True, eq=False)
class Scan:
    """Rows that a run reads, and the columns of the source that they are made of.

    compared: whether the rows have each column in the type that it compares in. A value is turned into that type once:
    the text of bytes is not bytes.
    """

    spec: Spec
    session: Session
    relation: sa.FromClause
    columns: dict[str, Column]
    compared: bool = field(default=False, kw_only=True)

    def expression(self, name: str) -> Expression:
        """A source column in the type that it compares in."""
        if self.compared:
            return self.relation.c[name]
        return self.session.comparable(self.relation.c[name], self.columns[name])

    def observed(self, names: Sequence[str]) -> dict[str, Observed]:
        """The distinct values of columns; those that hierarchies are made of are read together."""
        columns = {name: (self.expression(name), self.columns[name].kind) for name in names}
        made_of = {name: of for name, of in columns.items() if is_made_of_values(self.spec.attributes[name])}
        together = Distinct(self.session, self.relation, made_of)
        return {name: Observed(name, *of, together) for name, of in columns.items()}


def checked_columns(spec: Spec, session: Session, table: TableName) -> dict[str, Column]:
    columns = session.columns(table)
    problems: list[str] = []
    near: list[str] = []
    named = [(name, spec.at("attributes", name)) for name in spec.attributes]
    if spec.entity is not None:
        named.append((spec.entity, spec.at("entity")))
    if spec.groups is not None:
        named.append((spec.groups, spec.at("groups")))
    for name, place in named:
        if name not in columns:
            sentence, close = no_column(f"{place}: the source {table}", name, columns)
            problems.append(sentence)
            near += close
    if problems:
        raise InputError(*dict.fromkeys(problems), suggestions=near)
    return columns


def check_entity(
    spec: Spec, session: Session, entity: sa.ColumnElement[Any], column: Column, *, recoded: bool = False
) -> None:
    """Raise InputError for rows that are of nobody, or of people who have several; once in a session.

    recoded: whether they are those of a map, which leaves out those that wait.
    """
    all_rows = ("entity", spec.source.table, column.name, spec.count)
    what = (*all_rows, "recoded") if recoded else all_rows
    if not session.checked.isdisjoint((all_rows, what)):
        return
    # Both engines group faster than they count distinct values.
    groups = sa.select(entity.label("entity"), sa.func.count().label("rows")).group_by(entity).subquery("entities")
    without = sa.case((groups.c.entity.is_(None), groups.c.rows), else_=0)
    query = sa.select(
        queries.whole(sa.func.coalesce(sa.func.sum(groups.c.rows), 0)).label("rows"),
        queries.whole(sa.func.coalesce(sa.func.sum(without), 0)).label("unnamed"),
        sa.func.count(groups.c.entity).label("n"),
    )
    totals = session.fetch(query).to_pylist()[0]
    if totals["unnamed"]:
        raise InputError(
            f"{spec.at('entity')}: column {column.name} is NULL in {counted(totals['unnamed'], 'row')}; "
            "every row must say who it is about"
        )
    if spec.count == "rows" and totals["n"] < totals["rows"]:
        raise InputError(
            f"{spec.at('entity')}: column {column.name} has {totals['n']} entities in {totals['rows']} rows, but "
            "`count: rows` needs one row per entity; write `count: entities`"
        )
    session.checked.add(what)


def code_quasi_identifiers(
    scan: Scan, prefix: str, *, published: bool = True, loaded: Mapping[str, Coded] = NOTHING
) -> dict[str, Coded]:
    """Build the hierarchies and load them as dimension tables.

    Args:
        prefix: of the tables' names.
        published: whether labels are for publication, so that no two may read the same.
        loaded: what coded each attribute in this session before; it is taken again where the hierarchy is the same.
    """
    coded, observed = {}, scan.observed(scan.spec.quasi_identifiers)
    for i, name in enumerate(scan.spec.quasi_identifiers):
        column, seen = scan.columns[name], observed[name]
        hierarchy = hierarchy_of(scan.spec, scan.session, name, column, seen, published=published)
        coded[name] = hierarchy, _load(scan, f"{prefix}{i}", name, hierarchy, loaded.get(name))
    return coded


def code_sensitives(scan: Scan, prefix: str, *, loaded: Mapping[str, Coded] = NOTHING) -> dict[str, Coded]:
    """Build the domains and load them, as `code_quasi_identifiers` does."""
    coded, observed = {}, scan.observed(scan.spec.sensitives)
    for i, name in enumerate(scan.spec.sensitives):
        domain = domain_of(scan.spec, scan.session, name, scan.columns[name], observed[name])
        coded[name] = domain, _load(scan, f"{prefix}{i}", name, domain, loaded.get(name))
    return coded


def _load(scan: Scan, table: str, name: str, hierarchy: Hierarchy, loaded: Coded | None) -> Dimension:
    if loaded is not None:
        before, dimension = loaded
        if before == hierarchy:
            return dimension
        scan.session.drop(dimension.table)
    attribute = scan.spec.attributes[name]
    quasi = attribute.role == "quasi_identifier"
    return load_dimension(
        scan.session,
        table,
        hierarchy,
        scan.columns[name],
        _origin_of(scan.spec, name),
        nulls=attribute.nulls == ("top" if quasi else "value"),
        uncovered=quasi and attribute.uncovered == "top",
        observed=is_made_of_values(attribute),
    )


def _origin_of(spec: Spec, name: str) -> str:
    """Where a hierarchy or a domain comes from, for messages."""
    attribute = spec.attributes[name]
    quasi = attribute.role == "quasi_identifier"
    source = attribute.hierarchy if quasi else attribute.taxonomy
    file = None if source is None else spec.file(source)
    return str(file) if file else f"{spec.at('attributes', name)}: {'hierarchy' if quasi else 'taxonomy'} of {name}"


def rows_uncovered(scan: Scan, coded: Mapping[str, Coded]) -> int:
    """How many rows wait, since a quasi-identifier has a value other than NULL that is not a leaf of its hierarchy."""
    without = _without_leaf(scan, coded)
    if not without:
        return 0
    return int(scan.session.scalar(sa.select(sa.func.count()).select_from(scan.relation).where(sa.or_(*without))))


def without_uncovered(scan: Scan, coded: Mapping[str, Coded]) -> Scan:
    """The other rows. Of the source's columns those that a run reads, since the login may be granted no other."""
    read, relation = columns_read(scan.spec), scan.relation
    query = sa.select(*(column for column in relation.c if column.name in read or column.name not in scan.columns))
    for condition in _without_leaf(scan, coded):
        query = query.where(sa.not_(condition))
    return replace(scan, relation=query.subquery("qblock_covered"))


def _without_leaf(scan: Scan, coded: Mapping[str, Coded]) -> list[Expression]:
    """For each quasi-identifier with `uncovered: quarantine`, what is true of the rows that wait."""
    conditions = []
    for name, (_, dimension) in coded.items():
        if scan.spec.attributes[name].uncovered == "quarantine":
            conditions.append(dimension.lacks(scan.expression(name)))
    return conditions


def check_covered(
    scan: Scan, base: sa.TableClause, words: int, coded: Mapping[str, tuple[Expression, Dimension]], name_values: bool
) -> int:
    """Refuse values that no hierarchy covers and NULLs without a rule; returns N.

    Args:
        base: the coded table, with keys of so many words.
        coded: the value of each attribute in the scan, and what codes it.
        name_values: whether a message may list values.
    """
    counts = scan.session.counts(queries.uncovered_keys(base, words))
    if not counts["lost"][0]:
        return int(counts["n"][0])
    problems = []
    for name, (value, dimension) in coded.items():
        text = scan.session.text_of(value, scan.columns[name].kind)
        missing = scan.session.fetch(queries.uncovered_values(scan.relation, value, text, dimension)).to_pylist()
        problems += _uncovered(scan.spec, name, missing, name_values)
    raise InputError(*problems)


def _uncovered(spec: Spec, name: str, missing: list[dict[str, Any]], name_values: bool) -> list[str]:
    attribute = spec.attributes[name]
    quasi = attribute.role == "quasi_identifier"
    place = spec.at("attributes", name)
    problems = []
    nulls = sum(row["n"] for row in missing if row["value"] is None)
    if nulls and attribute.nulls == "refuse":
        rule = "`nulls: top` (NULL becomes * at every level)" if quasi else "`nulls: value` (it is an ordinary value)"
        problems.append(
            f"{place}: column {name} is NULL in {counted(nulls, 'row')}; write {rule}, or remove the NULLs from "
            "the source"
        )
    values = [row for row in missing if row["value"] is not None]
    if values:
        rows = sum(row["n"] for row in values)
        what = "hierarchy" if quasi else "taxonomy or domain"
        missed, remedy = f"missing in its {what}", f"add them to the {what}"
        if isinstance(attribute.hierarchy or attribute.taxonomy, Cuts):
            missed, remedy = "outside the bounds of its cuts", "correct them, or widen low and high"
            remedy += ", or write `uncovered: top` (they become *)" if quasi else ""
        shown = ""
        if name_values:
            shown = f": {listed({row['value']: row['n'] for row in values[:NAMED]}, len(values) - NAMED)}"
        problems.append(
            f"{place}: {counted(len(values), 'value')} of column {name} ({counted(rows, 'row')}) "
            f"{'is' if len(values) == 1 else 'are'} {missed}{shown}; {remedy}"
            + ("" if name_values else "; `qblock hierarchy check` lists them")
        )
    return problems


def repeated_people(spec: Spec, session: Session) -> list[str]:
    """What to say about them: at most one note, which names columns and gives no figure of the source. Nothing where
    the spec has an `entity`. A release does not need these columns, so a login that lacks permission to read one, or a
    view that fails in one, must not stop a run: nothing is said about that one then.
    """
    if spec.entity is not None:
        return []
    table = TableName.parse(spec.source.table)
    columns = session.columns(table)
    repeating = []
    for name, attribute in spec.attributes.items():
        column = columns.get(name)
        if column is None or not may_stand_for_people(name, attribute.role, column.kind, column.type):
            continue
        relation = session.relation(table, [name])
        figures = session.attempt(_figures(session.comparable(relation.c[name], column), relation))
        if figures is not None and repeats_people(name, attribute.role, column.type, *map(int, figures)):
            repeating.append(name)
    return [_note(spec, repeating)] if repeating else []


def _figures(value: sa.ColumnElement[Any], relation: sa.FromClause) -> sa.Select[int, int]:
    """Rows with a value, and distinct values: both engines group faster than they count distinct values."""
    groups = sa.select(sa.func.count().label("n")).select_from(relation).where(value.is_not(None)).group_by(value)
    groups_of_rows = groups.subquery("qblock_people")
    rows: sa.ColumnElement[int] = sa.cast(sa.func.coalesce(sa.func.sum(groups_of_rows.c.n), 0), sa.BigInteger)
    return sa.select(rows, sa.func.count()).select_from(groups_of_rows)


def _note(spec: Spec, names: list[str]) -> str:
    plural = len(names) > 1
    what = f"columns {', '.join(names)} repeat" if plural else f"column {names[0]} repeats"
    unseen = all(spec.attributes[name].role == "identifying" for name in names)
    other = ", or leave it out of `attributes` if it does not name people" if unseen and not plural else ""
    entity = names[0] if not plural else "COLUMN"
    return (
        f"{what} values that look like people's: rows are counted, not people, so k rows of a block may be fewer "
        f"people; to count people write `entity: {entity}` and `count: entities`{other}"
    )
