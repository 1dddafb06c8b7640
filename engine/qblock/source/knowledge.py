"""What models are told beside the source: priors of values, guarded values, sizes of a population's blocks."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from qblock.blocks import Blocks, Guards, Reference, number_keys
from qblock.engines import queries
from qblock.engines.queries import Expression, whole
from qblock.engines.session import Session
from qblock.engines.tables import Column, TableName
from qblock.engines.values import NUMERIC, fits
from qblock.errors import InputError, counted, quoted
from qblock.frequency import FrequencySets, positions
from qblock.frequency.coding import Coding, packed
from qblock.hierarchy import TOP
from qblock.lattice import Node
from qblock.source.columns import Scan, check_covered
from qblock.source.levels import require_columns
from qblock.source.open import SourceTable, Values, beside
from qblock.source.recoded import Recoding
from qblock.spec import GuardTable, Requirement
from qblock.spec.privacy import PriorTable, PriorValues


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
    place = source.spec.at_requirement(requirement)
    require_columns(f"{place}: the prior's table {table}", columns, [prior.column, *(name for name, _ in prior.where)])
    relation = session.relation(table)
    value = session.comparable(relation.c[prior.column], columns[prior.column])
    conditions = []
    for name, wanted in prior.where:
        if wanted is not None and not fits(wanted, columns[name]):
            raise InputError(
                f"{place}: {quoted(wanted)} is not a value of column {name} of the prior's table {table}, whose type "
                f"is {columns[name].type}; correct it"
            )
        conditions.append(_equals(session, session.comparable(relation.c[name], columns[name]), wanted, columns[name]))
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


def _equals(session: Session, value: Expression, wanted: str | None, column: Column) -> sa.ColumnElement[bool]:
    return value.is_(None) if wanted is None else value == session.convert(sa.literal(wanted), column)


def _as_own(session: Session, relation: sa.FromClause, theirs: Column, own: Column) -> Expression:
    """Another table's column in the type in which the source's column compares."""
    value = session.comparable(relation.c[theirs.name], theirs)
    return value if own.kind == theirs.kind else session.convert(session.text_of(value, theirs.kind), own)


class GuardSets:
    """The predicates that the source's people guard, and which of them the people of each block guard, node by node.

    sets: each distinct predicate as ascending value codes, what Reference.guarded holds; warnings: for a person.
    """

    def __init__(
        self, source: SourceTable, guards: GuardTable, values: Values, place: str, prefix: str = "qblock_guards"
    ) -> None:
        self._source, self._place, self._prefix = source, place, prefix
        self._table = TableName.parse(guards.table)
        scan = self._scan(self._people(guards, values))
        texts = source.session.fetch(sa.select(scan.c.members).distinct())["members"].to_pylist()
        self.sets = tuple(sorted({_codes(text) for text in texts}))
        whole = sum(len(members) == values.reference.values > 1 for members in self.sets)
        if whole:
            raise InputError(
                f"{place}: a person of {self._table} guards every value of {values.name}; a set of values to guard "
                "must leave some out"
            )
        self.warnings = [] if texts else [f"{place}: nobody in the source is in {self._table}, so nothing is guarded"]
        self.frequency_sets = self._counts(scan, texts)

    def counted(self, node: Node, blocks: Blocks) -> Blocks:
        """The blocks with what their people guard."""
        theirs = self.frequency_sets.blocks(node, (0,))[0]
        assert blocks.keys is not None
        assert theirs.keys is not None
        place = positions(theirs.keys, blocks.keys)
        theirs = theirs.select(np.argsort(place))
        sizes = np.zeros(len(blocks), dtype=np.int64)
        sizes[np.sort(place)] = theirs.support
        start = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        return replace(blocks, guards=Guards(start, theirs.value))

    def _people(self, guards: GuardTable, values: Values) -> sa.TableClause:
        """Each person (e) with each of the person's sets of values (members: their codes as text)."""
        session, spec = self._source.session, self._source.spec
        assert spec.entity is not None
        columns = session.columns(self._table)
        require_columns(f"{self._place}: the table of predicates {self._table}", columns, guards.columns)
        relation = session.relation(self._table)
        scanned = {
            "e": _as_own(session, relation, columns[guards.entity], self._source.columns[spec.entity]),
            "v": _as_own(session, relation, columns[guards.value], values.column),
        }
        if guards.group is not None:
            scanned["g"] = session.comparable(relation.c[guards.group], columns[guards.group])
        raw = session.store(f"{self._prefix}_raw", queries.raw_scan(relation, scanned))
        keep = [name for name in scanned if name != "v"]
        coded = session.store(f"{self._prefix}_coded", queries.coded(raw, {"v": values.dimension}, [*keep, "n"]))
        self._check(coded, guards, values.name)
        code = sa.cast(coded.c.v, sa.Text)
        if guards.group is not None:
            members = sa.func.aggregate_strings(code, ",").aggregate_order_by(coded.c.v)
            query = sa.select(coded.c.e, members.label("members")).group_by(coded.c.e, coded.c.g)
        else:
            query = sa.select(coded.c.e, code.label("members")).distinct()
        people = session.store(f"{self._prefix}_people", query)
        for table in (raw, coded):
            session.drop(table)
        return people

    def _check(self, coded: sa.TableClause, guards: GuardTable, sensitive: str) -> None:
        names = {"e": guards.entity, "v": guards.value, "g": guards.group}
        there = [c.name for c in coded.columns if c.name != "n"]
        uncovered = self._source.session.fetch(queries.uncovered_rows(coded, there)).to_pylist()[0]
        for key in there:
            if uncovered[key]:
                what = f"NULL or not in the domain of {sensitive}" if key == "v" else "NULL"
                rows = counted(uncovered[key], "row")
                raise InputError(
                    f"{self._place}: column {names[key]} of {self._table} is {what} in {rows}; correct the table"
                )

    def _scan(self, people: sa.TableClause) -> sa.TableClause:
        """The raw quasi-identifiers of the people who guard something, by what they guard."""
        source = self._source
        assert source.spec.entity is not None
        expressions = {f"q{i}": source.expression(name) for i, name in enumerate(source.quasi_identifiers)}
        same = source.expression(source.spec.entity) == people.c.e
        columns = {**expressions, "members": people.c.members}
        query = sa.select(*(c.label(name) for name, c in columns.items())).select_from(
            source.relation.join(people, same)
        )
        scan = source.session.store(f"{self._prefix}_scan", query)
        source.session.drop(people)
        return scan

    def _counts(self, scan: sa.TableClause, texts: list[str]) -> FrequencySets:
        """A frequency set whose sensitive attribute is the predicate that somebody guards."""
        source, session = self._source, self._source.session
        codes = {members: code for code, members in enumerate(self.sets)}
        mapping = session.load(
            f"{self._prefix}_sets",
            pa.table(
                {
                    "members": pa.array(texts, pa.string()),
                    "s0": pa.array([codes[_codes(text)] for text in texts], pa.int64()),
                }
            ),
        )
        names = [f"q{i}" for i in range(len(source.dimensions))]
        query = sa.select(*(scan.c[name] for name in names), mapping.c.s0).select_from(
            scan.join(mapping, scan.c.members == mapping.c.members)
        )
        numbered = session.store(f"{self._prefix}_numbered", query)
        quasi = [(numbered.c[name], dimension) for name, dimension in zip(names, source.dimensions, strict=True)]
        coding = Coding(source.hierarchies, (len(self.sets),))
        base = session.store(f"{self._prefix}_base", packed(numbered, coding, quasi, [(numbered.c.s0, None)]))
        for table in (scan, mapping, numbered):
            session.drop(table)
        rows = int(session.scalar(sa.select(sa.func.count()).select_from(base)))
        return FrequencySets(session, base, coding, rows, name=f"{self._prefix}_set")


def _codes(members: str) -> tuple[int, ...]:
    return tuple(sorted({int(code) for code in members.split(",")}))


class Population:
    """The blocks of a population table over the same quasi-identifiers, node by node."""

    def __init__(self, source: SourceTable, table_name: str, place: str, prefix: str = "qblock_population") -> None:
        session, spec = source.session, source.spec
        table = TableName.parse(table_name)
        columns = session.columns(table)
        names = spec.quasi_identifiers
        require_columns(f"{place}: the population {table}", columns, names, "it needs every quasi-identifier")
        relation = session.relation(table)
        coded = {
            name: (_as_own(session, relation, columns[name], source.columns[name]), dimension)
            for name, dimension in zip(source.quasi_identifiers, source.dimensions, strict=True)
        }
        coding = Coding(source.hierarchies, ())
        base = session.store(f"{prefix}_base", packed(relation, coding, list(coded.values()), ()))
        session.analyze(base)
        try:
            scan = Scan(spec, session, relation, source.columns)
            rows = check_covered(scan, base, coding.words, coded, name_values=False)
        except InputError as error:
            said = (f"{place}: in the population {table}: {line}" for line in error.args)
            raise InputError(*said) from None
        sets = FrequencySets(session, base, coding, rows, name=f"{prefix}_set")
        self.frequency_sets = beside(source, sets, f"{prefix}_set")
        bottom = self.frequency_sets.lattice.bottom
        mine = self.counted(bottom, source.frequency_sets.blocks(bottom, ())[0])
        lost = 0 if mine.population is None else int(np.count_nonzero(mine.population == 0))
        if lost:
            raise InputError(
                f"{place}: {lost} combinations of quasi-identifiers of the source are not in the population {table}; "
                "a population must hold everybody who is in the source"
            )

    def counted(self, node: Node, blocks: Blocks) -> Blocks:
        """The blocks with the population's rows in each, and the sizes of the population's other blocks."""
        theirs = self.frequency_sets.blocks(node, ())[0]
        assert blocks.keys is not None
        assert theirs.keys is not None
        numbers, _ = number_keys(np.concatenate([blocks.keys, theirs.keys]))
        rows = np.zeros(int(numbers.max(initial=-1)) + 1, dtype=np.int64)
        rows[numbers[len(blocks) :]] = theirs.rows
        alone = ~np.isin(numbers[len(blocks) :], numbers[: len(blocks)])
        return replace(blocks, population=rows[numbers[: len(blocks)]], population_only=theirs.rows[alone])


class RecodedPopulation:
    """The same of a source that a recoding map shows, by which the population is recoded, too."""

    def __init__(self, source: SourceTable, table_name: str, place: str) -> None:
        session, spec = source.session, source.spec
        table = TableName.parse(table_name)
        assert source.recoding is not None
        recoding = Recoding(source.recoding.spec, source.recoding.stated)
        try:
            labelled = recoding.relation(session, session.relation(table), session.columns(table))
        except InputError as error:
            raise InputError(f"{place}: in the population {table}: {error}") from None
        names = [labelled.c[name] for name in spec.quasi_identifiers]
        columns = [name.label(f"t{i}") for i, name in enumerate(names)]
        combinations = session.fetch(sa.select(*columns, whole(sa.func.count()).label("n")).group_by(*names))
        session.drop(labelled)
        self._labels = [hierarchy.labels for hierarchy in source.hierarchies]
        texts = zip(*(combinations[f"t{i}"].to_pylist() for i in range(len(names))), strict=True)
        self._rows = dict(zip(texts, combinations["n"].to_pylist(), strict=True))

    def counted(self, node: Node, blocks: Blocks) -> Blocks:
        """As of `Population`."""
        assert blocks.keys is not None
        rows: dict[tuple[str, ...], int] = {}
        for texts, n in self._rows.items():
            key = tuple(TOP if level else text for level, text in zip(node, texts, strict=True))
            rows[key] = rows.get(key, 0) + n
        shown = [labels[level] for labels, level in zip(self._labels, node, strict=True)]
        keys = [tuple(str(text[code]) for text, code in zip(shown, key, strict=True)) for key in blocks.keys.tolist()]
        counted = np.array([rows.pop(key, 0) for key in keys], dtype=np.int64)
        return replace(blocks, population=counted, population_only=np.array(sorted(rows.values()), dtype=np.int64))
