"""A source table ready to be counted: columns checked, hierarchies loaded, the base table scanned once."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import sqlalchemy as sa

from qblock.blocks import Reference
from qblock.errors import InputError, Refused
from qblock.frequency import FrequencySets
from qblock.hierarchy import Hierarchy
from qblock.hierarchy import builders as hierarchies_of
from qblock.spec import Attribute, Spec
from qblock.spec.sources import DimensionTable
from qblock.warehouse import queries
from qblock.warehouse.dimensions import is_value, load_dimension
from qblock.warehouse.protocol import Column, Session, TableName
from qblock.warehouse.queries import Dimension

NAMED = 10
"""How many uncovered values a message lists."""


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
    """

    spec: Spec
    session: Session
    relation: sa.TableClause
    columns: dict[str, Column]
    hierarchies: tuple[Hierarchy, ...]
    dimensions: tuple[Dimension, ...]
    sensitives: dict[str, Values]
    rows: int
    frequency_sets: FrequencySets

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        return self.spec.quasi_identifiers

    def expression(self, name: str) -> sa.ColumnElement[Any]:
        """A source column in the type that it compares in."""
        return self.session.comparable(self.relation.c[name], self.columns[name])


def open_source(spec: Spec, session: Session, *, name_values: bool = True) -> SourceTable:
    """Check the source against the spec, scan it once and code it.

    name_values: whether a message may list values that a hierarchy does not cover (interactive commands), or only the
    column and their number (output that ends in logs). Raises InputError, and Refused for an empty table.
    """
    table = TableName.parse(spec.source.table)
    columns = _checked_columns(spec, session, table)
    relation = session.relation(table)
    quasi = {f"q{i}": name for i, name in enumerate(spec.quasi_identifiers)}
    sensitive = {f"s{i}": name for i, name in enumerate(spec.sensitives)}
    kept = ("e",) if spec.count == "entities" else ()
    if spec.entity is not None:
        _check_entity(spec, session, relation.c[spec.entity], columns[spec.entity])

    coded = {**quasi, **sensitive}
    expressions = {key: session.comparable(relation.c[name], columns[name]) for key, name in coded.items()}
    if kept and spec.entity is not None:
        expressions["e"] = relation.c[spec.entity]
    raw = session.store("qblock_raw", queries.raw_scan(relation, expressions))
    if session.scalar(sa.select(sa.func.count()).select_from(sa.select(raw.c.n).limit(1).subquery())) == 0:
        raise Refused(f"the source {table} is empty: there is nothing to release")

    dimensions: dict[str, Dimension] = {}
    hierarchies = []
    for key, name in quasi.items():
        attribute = spec.attributes[name]
        hierarchy = build_hierarchy(spec, session, name, columns[name], raw, key)
        if attribute.nulls == "top" or attribute.uncovered == "top":
            hierarchy = hierarchy.add_null_leaf()
        hierarchies.append(hierarchy)
        dimensions[key] = load_dimension(
            session,
            f"qblock_dimension_{key}",
            hierarchy,
            columns[name],
            _origin(spec, name, "hierarchy"),
            nulls=attribute.nulls == "top",
            others=attribute.uncovered == "top",
        )
    domains = {}
    for key, name in sensitive.items():
        domains[key] = _domain(spec, session, name, columns[name], raw, key)
        dimensions[key] = load_dimension(
            session,
            f"qblock_dimension_{key}",
            domains[key],
            columns[name],
            _origin(spec, name, "taxonomy", "domain"),
            nulls=spec.attributes[name].nulls == "value",
        )
    leaf = session.store("qblock_leaf", queries.coded(raw, dimensions, kept))
    session.analyze(leaf)
    rows = _check_covered(spec, session, raw, leaf, coded, columns, dimensions, name_values)
    session.drop(raw)

    values = {}
    for key, name in sensitive.items():
        reference = _reference(session, leaf, key, domains[key], dimensions[key], columns[name], rows, bool(kept))
        order = spec.attributes[name].order
        reference = replace(reference, ordered=order is not None or reference.numbers is not None)
        values[name] = Values(name, columns[name], domains[key], dimensions[key], reference)
    quasi_dimensions = [dimensions[key] for key in quasi]
    sets = FrequencySets(session, leaf, quasi_dimensions, len(sensitive), rows, entities=bool(kept))
    return SourceTable(
        spec, session, relation, columns, tuple(hierarchies), tuple(quasi_dimensions), values, rows, sets
    )


def build_hierarchy(
    spec: Spec, session: Session, name: str, column: Column, raw: sa.TableClause, key: str, part: str = "hierarchy"
) -> Hierarchy:
    """The hierarchy of an attribute: from its file or table, or built over the values that the source holds."""
    source = getattr(spec.attributes[name], part)
    if isinstance(source, DimensionTable):
        return _from_table(spec, session, name, source)
    file = spec.file(source)
    if file is not None:
        return hierarchies_of.from_csv(file, attribute=name)
    try:
        return hierarchies_of.build(source, name, observed(session, raw, key, column), column.kind)
    except InputError as error:
        raise InputError(f"{spec.at('attributes', name)}: {error}") from None


def observed(session: Session, raw: sa.TableClause, key: str, column: Column) -> list[str]:
    """The distinct values of a scanned column as text, NULL left out."""
    found = session.fetch(queries.distinct_values(raw, key, session.text_of(raw.c[key], column.kind)))
    return [value for value in found["value"].to_pylist() if value is not None]


def _checked_columns(spec: Spec, session: Session, table: TableName) -> dict[str, Column]:
    columns = session.columns(table)
    problems = []
    named = [(name, spec.at("attributes", name)) for name in spec.attributes]
    if spec.entity is not None:
        named.append((spec.entity, spec.at("entity")))
    for name, place in named:
        if name not in columns:
            near = difflib.get_close_matches(name, columns, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"its columns are {', '.join(columns)}"
            problems.append(f"{place}: the source {table} has no column {name!r}; {hint}")
    if problems:
        raise InputError("\n".join(dict.fromkeys(problems)))
    return columns


def _check_entity(spec: Spec, session: Session, entity: sa.ColumnElement[Any], column: Column) -> None:
    query = sa.select(
        sa.func.count().label("rows"),
        sa.func.count(entity).label("named"),
        sa.func.count(sa.distinct(entity)).label("n"),
    )
    found = session.fetch(query).to_pylist()[0]
    if found["named"] < found["rows"]:
        raise InputError(
            f"{spec.at('entity')}: column {column.name} is NULL in {found['rows'] - found['named']} rows; "
            "every row must say who it is about"
        )
    if spec.count == "rows" and found["n"] < found["rows"]:
        raise InputError(
            f"{spec.at('entity')}: column {column.name} has {found['n']} entities in {found['rows']} rows, but "
            "`count: rows` needs one row per entity; write `count: entities`"
        )


def _from_table(spec: Spec, session: Session, name: str, source: DimensionTable) -> Hierarchy:
    table = TableName.parse(source.table)
    columns = session.columns(table)
    missing = [level for level in source.levels if level not in columns]
    if missing:
        raise InputError(
            f"{spec.at('attributes', name)}: the dimension table {table} has no column {missing[0]!r}; "
            f"its columns are {', '.join(columns)}"
        )
    relation = session.relation(table)
    texts = [session.text_of(relation.c[level], columns[level].kind).label(level) for level in source.levels]
    found = session.fetch(sa.select(*texts).distinct())
    rows = sorted(zip(*(found[level].to_pylist() for level in source.levels), strict=True), key=str)
    return hierarchies_of.from_rows(source.levels, rows, attribute=name, origin=f"table {table}")


def _domain(spec: Spec, session: Session, name: str, column: Column, raw: sa.TableClause, key: str) -> Hierarchy:
    """dom(S) with its taxonomy if it has one: the leaves in the declared order, else ascending."""
    attribute = spec.attributes[name]
    declared = _declared(spec, name, attribute)
    if attribute.taxonomy is not None:
        domain = build_hierarchy(spec, session, name, column, raw, key, "taxonomy")
        if declared is not None:
            unknown = [v for v in declared if v not in domain.labels[0]]
            if unknown:
                raise InputError(
                    f"{spec.at('attributes', name)}: {unknown[0]!r} is not a leaf of the taxonomy of {name}"
                )
            domain = domain.select([domain.labels[0].index(v) for v in declared])
    else:
        values = declared if declared is not None else observed(session, raw, key, column)
        if declared is None:
            values = sorted(values, key=_number if column.kind in ("integer", "decimal", "float") else None)
        domain = hierarchies_of.flat(name, values)
    return domain.add_null_leaf() if attribute.nulls == "value" else domain


def _declared(spec: Spec, name: str, attribute: Attribute) -> list[str] | None:
    domain = None if attribute.domain in (None, "observed") else list(attribute.domain or ())
    order = list(attribute.order) if isinstance(attribute.order, tuple) else None
    if domain is not None and order is not None and set(domain) != set(order):
        raise InputError(
            f"{spec.at('attributes', name, 'order')}: order and domain of {name} do not list the same values"
        )
    chosen = order if order is not None else domain
    return None if chosen is None else [v for v in chosen if v is not None]


def _number(text: str) -> Fraction:
    return Fraction(text) if is_value(text, "decimal") and text not in ("NaN", "Infinity", "-Infinity") else Fraction(0)


def _check_covered(
    spec: Spec,
    session: Session,
    raw: sa.TableClause,
    leaf: sa.TableClause,
    coded: dict[str, str],
    columns: dict[str, Column],
    dimensions: dict[str, Dimension],
    name_values: bool,
) -> int:
    """Refuse values that no hierarchy covers and NULLs without a rule; returns N."""
    found = session.fetch(queries.uncovered_rows(leaf, coded)).to_pylist()[0]
    problems = []
    for key, name in coded.items():
        if found[key]:
            text = session.text_of(raw.c[key], columns[name].kind)
            missing = session.fetch(queries.uncovered_values(raw, key, text, dimensions[key])).to_pylist()
            problems += _uncovered(spec, name, missing, name_values)
    if problems:
        raise InputError("\n".join(problems))
    return int(found["n"])


def _uncovered(spec: Spec, name: str, missing: list[dict[str, Any]], name_values: bool) -> list[str]:
    attribute = spec.attributes[name]
    quasi = attribute.role == "quasi_identifier"
    place = spec.at("attributes", name)
    problems = []
    nulls = sum(row["n"] for row in missing if row["value"] is None)
    if nulls and attribute.nulls == "refuse":
        rule = "nulls: top (NULL becomes * at every level)" if quasi else "nulls: value (NULL is an ordinary value)"
        problems.append(
            f"{place}: column {name} is NULL in {nulls} rows; write `{rule}`, or remove the NULLs from the source"
        )
    values = [row for row in missing if row["value"] is not None]
    if values:
        rows = sum(row["n"] for row in values)
        what = "hierarchy" if quasi else "taxonomy or domain"
        shown = ""
        if name_values:
            listed = ", ".join(f"{row['value']!r} ({row['n']} rows)" for row in values[:NAMED])
            shown = f": {listed}" + (f" and {len(values) - NAMED} more" if len(values) > NAMED else "")
        problems.append(
            f"{place}: {len(values)} values of column {name} ({rows} rows) are missing in its {what}{shown}; "
            f"add them to the {what}" + ("" if name_values else "; `qblock hierarchy check` lists them")
        )
    return problems


def _reference(
    session: Session,
    leaf: sa.TableClause,
    key: str,
    domain: Hierarchy,
    dimension: Dimension,
    column: Column,
    rows: int,
    entities: bool,
) -> Reference:
    names = session.fetch(sa.select(dimension.table.c.c0, dimension.table.c.t0))
    texts: list[str | None] = [None] * dimension.leaves
    for code, text in zip(names["c0"].to_pylist(), names["t0"].to_pylist(), strict=True):
        texts[code] = text
    found = session.counts(queries.entity_totals(leaf, key) if entities else queries.totals(leaf, key))
    totals = np.zeros(dimension.leaves, dtype=np.int64)
    totals[found["code"]] = found["n"]
    numeric = column.kind in ("integer", "decimal", "float") and None not in texts
    return Reference(
        rows=rows,
        domain=tuple(texts),
        totals=totals,
        numbers=tuple(Fraction(text) for text in texts if text is not None) if numeric else None,
        taxonomy=np.asarray(domain.codes, dtype=np.int64).T if domain.height else None,
    )


def _origin(spec: Spec, name: str, *parts: str) -> str:
    for part in parts:
        source = getattr(spec.attributes[name], part, None)
        file = spec.file(source) if source is not None and not isinstance(source, str | tuple) else None
        if file is not None:
            return str(file)
    return f"{spec.at('attributes', name)}: {parts[0]} of {name}"


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
