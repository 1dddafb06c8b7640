"""What models take from other tables of the warehouse: priors, and counts of a population."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import sqlalchemy as sa

from qblock.blocks import Blocks, Reference
from qblock.errors import InputError, quoted
from qblock.frequency import FrequencySets, number
from qblock.lattice import Node
from qblock.source.columns import check_covered
from qblock.source.table import SourceTable, Values
from qblock.spec import Requirement
from qblock.spec.prior import PriorTable, PriorValues
from qblock.warehouse import queries
from qblock.warehouse.protocol import TableName
from qblock.warehouse.values import NUMERIC, fits


def with_prior(source: SourceTable, requirement: Requirement, values: Values) -> Reference:
    """The reference of a sensitive attribute with the prior that a requirement names, if it names one.

    Weights of the spec, or the counts a(s) of another table; values of that table outside the domain have no part.
    """
    prior = requirement.prior
    if prior is None:
        return values.reference
    if isinstance(prior, PriorValues):
        return replace(values.reference, prior=_weights(source, requirement, prior, values))
    return replace(values.reference, prior=_counts(source, requirement, prior, values))


def _weights(source: SourceTable, requirement: Requirement, prior: PriorValues, values: Values) -> tuple[Fraction, ...]:
    place, domain = f"{source.spec.path}:{requirement.line}", values.reference.domain
    found: dict[int, Fraction] = {}
    for value, weight in prior.weights:
        code = values.reference.code_of(value)
        if code is None:
            raise InputError(
                f"{place}: the prior gives a weight to {quoted(value)}, which is not in the domain of {values.name}; "
                "remove it, or declare the domain"
            )
        if code in found:
            raise InputError(f"{place}: the prior gives two weights to {quoted(domain[code])}; keep one")
        found[code] = Fraction(weight)
    return tuple(found.get(code, Fraction(0)) for code in range(len(domain)))


def _counts(source: SourceTable, requirement: Requirement, prior: PriorTable, values: Values) -> tuple[Fraction, ...]:
    session = source.session
    table = TableName.parse(prior.table)
    columns = session.columns(table)
    for name in (prior.column, *(column for column, _ in prior.where)):
        if name not in columns:
            raise InputError(
                f"{source.spec.path}:{requirement.line}: the prior's table {table} has no column {name!r}; "
                f"its columns are {', '.join(columns)}"
            )
    relation = session.relation(table)
    value = session.comparable(relation.c[prior.column], columns[prior.column])
    conditions = []
    for name, wanted in prior.where:
        of = columns[name]
        if wanted is not None and not fits(wanted, of):
            raise InputError(
                f"{source.spec.path}:{requirement.line}: {quoted(wanted)} is no value of column {name} of the prior's "
                f"table {table}, whose type is {of.type}; correct it"
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
        found = session.counts(query.select_from(joined).group_by(dimension.code(0)))
        counts[found["code"]] = found["n"]
        null = reference.code_of(None)
        if null is not None:  # which no join matches
            counts[null] = session.scalar(sa.select(sa.func.count()).where(value.is_(None), *conditions))
    else:
        # Of another type: compared here, for a cast would fail on values that the source's type cannot hold.
        texts = session.fetch(sa.select(session.text_of(grouped.c.value, theirs).label("value"), grouped.c.n))
        for text, n in zip(texts["value"].to_pylist(), texts["n"].to_pylist(), strict=True):
            code = reference.code_of(text)
            if code is not None:
                counts[code] += n
    return tuple(Fraction(n) for n in counts.tolist())


class Population:
    """The blocks of a population table over the same quasi-identifiers, node by node."""

    def __init__(self, source: SourceTable, table_name: str, place: str, prefix: str = "qblock_population") -> None:
        session, spec = source.session, source.spec
        table = TableName.parse(table_name)
        columns = session.columns(table)
        missing = [name for name in spec.quasi_identifiers if name not in columns]
        if missing:
            raise InputError(
                f"{place}: the population {table} has no column {missing[0]!r}; it needs every quasi-identifier"
            )
        relation = session.relation(table)
        coded = {f"q{i}": name for i, name in enumerate(spec.quasi_identifiers)}
        dimensions = dict(zip(coded, source.dimensions, strict=True))
        scanned = {}
        for key, name in coded.items():
            own, theirs = source.columns[name], columns[name]
            value = session.comparable(relation.c[name], theirs)
            scanned[key] = (
                value if own.kind == theirs.kind else session.convert(session.text_of(value, theirs.kind), own)
            )
        raw = session.store(f"{prefix}_raw", queries.raw_scan(relation, scanned))
        leaf = session.store(f"{prefix}_leaf", queries.coded(raw, dimensions))
        try:
            rows = check_covered(spec, session, raw, leaf, coded, source.columns, dimensions, False)
        except InputError as error:
            raise InputError(f"{place}: in the population {table}: {error}") from None
        session.drop(raw)
        self._leaves = [d.leaves for d in source.dimensions]
        self._sets = FrequencySets(session, leaf, source.dimensions, 0, rows, name=f"{prefix}_set")
        bottom = self._sets.lattice.bottom
        mine = self.counted(bottom, source.frequency_sets.blocks(bottom, ())[0])
        lost = 0 if mine.population is None else int(np.count_nonzero(mine.population == 0))
        if lost:
            raise InputError(
                f"{place}: {lost} combinations of quasi-identifiers of the source are not in the population {table}; "
                "a population must hold everybody that the source holds"
            )

    def counted(self, node: Node, blocks: Blocks) -> Blocks:
        """The blocks with the population's rows in each, and the sizes of the population's other blocks."""
        theirs = self._sets.blocks(node, ())[0]
        assert blocks.keys is not None
        assert theirs.keys is not None
        numbers, _ = number(np.concatenate([blocks.keys, theirs.keys]), self._leaves)
        rows = np.zeros(int(numbers.max(initial=-1)) + 1, dtype=np.int64)
        rows[numbers[len(blocks) :]] = theirs.rows
        alone = ~np.isin(numbers[len(blocks) :], numbers[: len(blocks)])
        return replace(blocks, population=rows[numbers[: len(blocks)]], population_only=theirs.rows[alone])
