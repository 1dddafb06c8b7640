"""The mean of a q*-block's numbers beside their label (`publish.typical`), rounded to what one person moves it by.

What it tells attackers, and where it is offered: docs/decisions/0035-typical-values.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from qblock.comparison import NUMBER, NUMBERS, Kind
from qblock.engines.queries import Query, whole
from qblock.engines.session import Session
from qblock.engines.tables import Column
from qblock.errors import Refused
from qblock.hierarchy import TOP, Hierarchy
from qblock.hierarchy.bounds import Reader
from qblock.hierarchy.labels import texts
from qblock.lattice import Node
from qblock.ledger.kept import PublishedColumn
from qblock.source import SourceTable, reader_of
from qblock.source.recoded import AS_NUMBER
from qblock.spec import Spec

MEANS = "qblock_means"
DIGITS = ".12g"
"""What of a mean of doubles counts: in which order an engine adds them shows in the last digits alone."""
HALF = Fraction(1, 2)


def grain(width: Fraction, rows: int) -> Fraction:
    """The least of 1, 2 and 5 times a power of ten that is no less than what one of so many rows moves a mean by, where
    their numbers are this far apart at most (above 0)."""
    most = width / rows
    least = len(str(most.numerator)) - len(str(most.denominator)) - 1
    steps = (first * Fraction(10) ** exponent for exponent in itertools.count(least) for first in (1, 2, 5))
    return next(step for step in steps if step >= most)


@dataclass(frozen=True)
class Within:
    """Where the numbers of a label are: from low to last, which is among them where they are whole."""

    low: Fraction
    last: Fraction
    whole: bool

    def rounded(self, mean: Fraction, rows: int) -> Fraction | None:
        """The multiple of the grain that is next to a mean, of those in the label: one beside it would tell more. None
        where it has none."""
        if self.low == self.last:
            return self.low
        step = grain(self.last - self.low, rows)
        first, last = math.ceil(self.low / step), math.floor(self.last / step)
        last -= not self.whole and last * step == self.last
        return None if first > last else min(max(math.floor(mean / step + HALF), first), last) * step

    def allows(self, mean: float, rows: int) -> bool:
        """Whether a number may be the mean of so many rows as it is shown."""
        near = self.rounded(Fraction(mean), rows)
        return near is not None and float(near) == mean


@dataclass(frozen=True)
class Numbers:
    """A quasi-identifier whose labels have means. place: among the quasi-identifiers; kind: of its column."""

    name: str
    place: int
    kind: Kind
    reader: Reader

    def within(self, label: str) -> Within | None:
        """Where its numbers of a label are; None where that is open at an end."""
        low, high = self.reader.bounds(label)
        if not isinstance(low, Fraction | float) or not isinstance(high, Fraction | float):
            return None
        if NUMBER.fullmatch(label):
            return Within(Fraction(label), Fraction(label), False)
        integers = self.kind == "integer"
        return Within(Fraction(low), Fraction(high) - integers, integers)

    def mean(self, label: str, known: int, total: str | None, rows: int) -> str | None:
        """What is shown of a block: none where its numbers are not all known. known: how many are; total: their sum."""
        within = self.within(label)
        if within is None or known < rows or total is None or not math.isfinite(float(total)):
            return None
        mean = Fraction(total) / rows
        shown = within.rounded(Fraction(format(float(mean), DIGITS)) if self.kind == "float" else mean, rows)
        return None if shown is None else repr(float(shown))


def numbers_of(
    spec: Spec, columns: Mapping[str, Column], stated: Mapping[str, Hierarchy] | None = None, *, joined: bool = False
) -> tuple[Numbers, ...]:
    """The quasi-identifiers whose labels have means. columns: of the source; stated: the hierarchies, where labels are
    to be read; joined: into boxes."""
    if spec.publish.typical == "none":
        return ()
    numbers = []
    for place, name in enumerate(spec.quasi_identifiers):
        kind = columns[name].kind
        reader = reader_of(spec, name, kind, (stated or {}).get(name), joined=joined)
        if reader is not None and reader.of == "numbers" and kind in NUMBERS:
            numbers.append(Numbers(name, place, kind, reader))
    return tuple(numbers)


@dataclass(frozen=True, eq=False)
class Means:
    """The means of the blocks of a copy.

    table: the codes of each block, q0, q1 and so on by quasi-identifier, those of `*` left out, and beside them as text
    the mean of each of the numbers, m0, m1 and so on. None where every quasi-identifier is `*`.
    """

    numbers: tuple[Numbers, ...]
    table: sa.TableClause | None

    def beside(
        self, rows: sa.FromClause, codes: Mapping[str, sa.ColumnElement[int]]
    ) -> tuple[sa.FromClause, list[sa.ColumnElement[Any]]]:
        """Rows with the means of their blocks, and these, in the order of the numbers. codes: of the block of a row, by
        the names that the table has for them."""
        if self.table is None:
            return rows, [sa.null() for _ in self.numbers]
        same = sa.and_(*(self.table.c[name] == code for name, code in codes.items()))
        return rows.outerjoin(self.table, same), [self.table.c[f"m{i}"] for i in range(len(self.numbers))]

    def check(self, session: Session, rows: sa.FromClause, columns: Sequence[PublishedColumn]) -> None:
        """Raise Refused where rows of a copy have means that their blocks cannot have. columns: of the copy."""
        labels = [column for column in columns if column.role == "quasi_identifier"]
        means = [column for column in columns if column.role == "mean"]
        shown = [session.text_of(rows.c[c.name], c.kind).label(f"c{i}") for i, c in enumerate([*labels, *means])]
        query: Query = sa.select(*shown, whole(sa.func.count()).label("n")).select_from(rows).group_by(*shown)
        blocks = set()
        for *texts_, n in zip(*(column.to_pylist() for column in session.fetch(query).columns), strict=True):
            block, own = tuple(texts_[: len(labels)]), texts_[len(labels) :]
            fits = all(_fits(of, block, mean, n) for of, mean in zip(self.numbers, own, strict=True))
            if block in blocks or not fits:
                raise Refused("the copy holds means that its blocks cannot have: nothing is published from it")
            blocks.add(block)


def _fits(of: Numbers, block: Sequence[str], mean: str | None, rows: int) -> bool:
    if mean is None:
        return True
    within = of.within(block[of.place])
    return within is not None and within.allows(float(mean), rows)


def means_of(source: SourceTable, node: Node, kept: Collection[str]) -> Means:
    """The means of the blocks of a node, loaded into the session that the source is in. kept: the quasi-identifiers
    that keep their type, and need none."""
    recoding = source.recoding
    spec, columns = (source.spec, source.columns) if recoding is None else (recoding.spec, recoding.before)
    stated = {hierarchy.attribute: hierarchy for hierarchy in source.origins}
    numbers = [of for of in numbers_of(spec, columns, stated, joined=recoding is not None) if of.name not in kept]
    shown = {i: level for i, level in enumerate(node) if level != source.dimensions[i].height}
    if not numbers or not shown:
        return Means(tuple(numbers), None)
    sums = _sums(source, shown, numbers)
    arrays = {f"q{i}": sums[f"q{i}"] for i in shown}
    for i, of in enumerate(numbers):
        if of.place in shown:
            by_code = _labels(source, of.place, node)
            of_blocks = (sums[f"q{of.place}"], sums[f"k{i}"], sums[f"s{i}"], sums["n"])
            rows = zip(*(column.to_pylist() for column in of_blocks), strict=True)
            means = [of.mean(by_code[code], known, total, n) for code, known, total, n in rows]
        else:
            means = [None] * len(sums)
        arrays[f"m{i}"] = texts(means)
    return Means(tuple(numbers), source.session.load("_".join([MEANS, *map(str, node)]), pa.table(arrays)))


def _sums(source: SourceTable, shown: Mapping[int, int], numbers: Sequence[Numbers]) -> pa.Table:
    """Of each block its codes, its rows (n), how many of each of the numbers are known (k0, k1) and their sum as text
    (s0, s1). shown: the levels of the quasi-identifiers that are not `*`."""
    joined: sa.FromClause = source.relation
    codes = {}
    for i, level in shown.items():
        labels = source.labels(i, level)
        joined, codes[f"q{i}"] = joined.outerjoin(labels.table, labels.leaf), labels.code
    selected = [whole(sa.func.count()).label("n")]
    for i, of in enumerate(numbers):
        recoded = source.recoding is not None
        value = source.relation.c[f"{AS_NUMBER} {of.place}"] if recoded else source.expression(of.name)
        selected.append(whole(sa.func.count(value)).label(f"k{i}"))
        selected.append(sa.cast(sa.func.sum(value), sa.Text).label(f"s{i}"))
    keys = [code.label(name) for name, code in codes.items()]
    return source.session.fetch(sa.select(*keys, *selected).select_from(joined).group_by(*codes.values()))


def _labels(source: SourceTable, place: int, node: Node) -> dict[int, str]:
    """The labels of a quasi-identifier, by their codes."""
    hierarchy, level = source.hierarchies[place], node[place]
    labels = hierarchy.columns[level]
    codes = hierarchy.codes[level][labels.first].tolist()
    return {
        code: TOP if label is None else label for code, label in zip(codes, labels.distinct.to_pylist(), strict=True)
    }
