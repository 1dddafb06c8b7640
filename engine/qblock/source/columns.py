"""Checks of a source's columns, entities and values against the spec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from qblock.errors import InputError, counted
from qblock.source.levels import NAMED, listed
from qblock.source.reads import columns_read
from qblock.spec import Cuts, Spec
from qblock.warehouse import queries
from qblock.warehouse.copied import no_column
from qblock.warehouse.protocol import Column, Session, TableName
from qblock.warehouse.queries import Dimension, Expression


def checked_columns(spec: Spec, session: Session, table: TableName) -> dict[str, Column]:
    columns = session.columns(table)
    problems: list[str] = []
    near: list[str] = []
    named = [(name, spec.at("attributes", name)) for name in spec.attributes]
    if spec.entity is not None:
        named.append((spec.entity, spec.at("entity")))
    for name, place in named:
        if name not in columns:
            sentence, close = no_column(f"{place}: the source {table}", name, columns)
            problems.append(sentence)
            near += close
    if problems:
        raise InputError(*dict.fromkeys(problems), suggestions=near)
    return columns


def check_entity(spec: Spec, session: Session, entity: sa.ColumnElement[Any], column: Column) -> None:
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


def rows_uncovered(session: Session, relation: sa.FromClause, coded: Iterable[tuple[Expression, Dimension]]) -> int:
    """How many rows have a value other than NULL that is not a leaf of its hierarchy."""
    without = [_no_leaf(value, dimension) for value, dimension in coded]
    if not without:
        return 0
    return int(session.scalar(sa.select(sa.func.count()).select_from(relation).where(sa.or_(*without))))


def _no_leaf(value: sa.ColumnElement[Any], dimension: Dimension) -> sa.ColumnElement[bool]:
    leaves = sa.select(dimension.table.c.leaf).where(dimension.table.c.leaf.is_not(None))
    return sa.and_(value.is_not(None), value.not_in(leaves))


def covered(
    spec: Spec,
    session: Session,
    relation: sa.FromClause,
    dimensions: dict[str, Dimension],
    columns: dict[str, Column],
) -> sa.FromClause:
    """The rows whose values are leaves of their hierarchies, by the quasi-identifiers alone; NULL has rules of its
    own. Of the source's columns those that a run reads, since the login may be granted no other."""
    read = columns_read(spec)
    query = sa.select(*(column for column in relation.c if column.name in read or column.name not in columns))
    for name, dimension in dimensions.items():
        query = query.where(sa.not_(_no_leaf(session.comparable(relation.c[name], columns[name]), dimension)))
    return query.subquery("qblock_covered")


def check_covered(
    spec: Spec,
    session: Session,
    base: sa.TableClause,
    words: int,
    relation: sa.FromClause,
    coded: Mapping[str, tuple[Expression, Dimension]],
    columns: Mapping[str, Column],
    name_values: bool,
) -> int:
    """Refuse values that no hierarchy covers and NULLs without a rule; returns N.

    base: the coded table, with keys of so many words; relation: what it was made of; coded: the value of each
    attribute in it, and what codes it.
    """
    counts = session.counts(queries.uncovered_keys(base, words))
    if not counts["lost"][0]:
        return int(counts["n"][0])
    problems = []
    for name, (value, dimension) in coded.items():
        text = session.text_of(value, columns[name].kind)
        missing = session.fetch(queries.uncovered_values(relation, value, text, dimension)).to_pylist()
        problems += _uncovered(spec, name, missing, name_values)
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
