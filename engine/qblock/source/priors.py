"""Priors: weights of the spec, or counts of another table of the warehouse."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import sqlalchemy as sa

from qblock.blocks import Reference
from qblock.errors import InputError, quoted
from qblock.source.table import SourceTable, Values
from qblock.spec import Requirement
from qblock.spec.prior import PriorTable, PriorValues
from qblock.warehouse import queries
from qblock.warehouse.protocol import TableName
from qblock.warehouse.values import NUMERIC, fits


def with_prior(source: SourceTable, requirement: Requirement, values: Values) -> Reference:
    """The reference of a sensitive attribute with the prior that a requirement names, if it names one.

    Weights of the spec, or the counts a(s) of another table; values of that table outside the domain are left out.
    """
    prior = requirement.prior
    if prior is None:
        return values.reference
    if isinstance(prior, PriorValues):
        return replace(values.reference, prior=_weights(source, requirement, prior, values))
    return replace(values.reference, prior=_counts(source, requirement, prior, values))


def _weights(source: SourceTable, requirement: Requirement, prior: PriorValues, values: Values) -> tuple[Fraction, ...]:
    place, domain = source.spec.at_requirement(requirement), values.reference.domain
    weights: dict[int, Fraction] = {}
    for value, weight in prior.weights:
        code = values.reference.code_of(value)
        if code is None:
            raise InputError(
                f"{place}: the prior gives a weight to {quoted(value)}, which is not in the domain of {values.name}; "
                "remove it, or declare the domain"
            )
        if code in weights:
            raise InputError(f"{place}: the prior gives two weights to {quoted(domain[code])}; remove one")
        weights[code] = Fraction(weight)
    return tuple(weights.get(code, Fraction(0)) for code in range(len(domain)))


def _counts(source: SourceTable, requirement: Requirement, prior: PriorTable, values: Values) -> tuple[Fraction, ...]:
    session = source.session
    table = TableName.parse(prior.table)
    columns = session.columns(table)
    for name in (prior.column, *(column for column, _ in prior.where)):
        if name not in columns:
            raise InputError(
                f"{source.spec.at_requirement(requirement)}: the prior's table {table} has no column {name!r}; "
                f"its columns are {', '.join(columns)}"
            )
    relation = session.relation(table)
    value = session.comparable(relation.c[prior.column], columns[prior.column])
    conditions = []
    for name, wanted in prior.where:
        of = columns[name]
        if wanted is not None and not fits(wanted, of):
            raise InputError(
                f"{source.spec.at_requirement(requirement)}: {quoted(wanted)} is not a value of column {name} of the "
                f"prior's table {table}, whose type is {of.type}; correct it"
            )
        compared = session.comparable(relation.c[name], of)
        same = compared.is_(None) if wanted is None else compared == session.convert(sa.literal(wanted), of)
        conditions.append(same)
    grouped = sa.select(value.label("value"), sa.func.count().label("n")).where(*conditions).group_by(value).subquery()
    dimension, reference = values.dimension, values.reference
    counts = np.zeros(dimension.leaves, dtype=np.int64)
    own, theirs = values.column.kind, columns[prior.column].kind
    if own == theirs or {own, theirs} <= NUMERIC:
        joined = dimension.table.join(grouped, dimension.table.c.leaf == grouped.c.value)
        query = sa.select(
            queries.whole(dimension.code(0)).label("code"), queries.whole(sa.func.sum(grouped.c.n)).label("n")
        )
        by_code = session.counts(query.select_from(joined).group_by(dimension.code(0)))
        counts[by_code["code"]] = by_code["n"]
        null = reference.code_of(None)
        if null is not None:  # which no join matches
            counts[null] = session.scalar(sa.select(sa.func.count()).where(value.is_(None), *conditions))
    else:
        # Of another type: compared here, since a cast would fail on values that the source's type cannot hold.
        texts = session.fetch(sa.select(session.text_of(grouped.c.value, theirs).label("value"), grouped.c.n))
        for text, n in zip(texts["value"].to_pylist(), texts["n"].to_pylist(), strict=True):
            code = reference.code_of(text)
            if code is not None:
                counts[code] += n
    return tuple(Fraction(n) for n in counts.tolist())
