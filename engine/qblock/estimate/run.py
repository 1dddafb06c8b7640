"""Reads the published view with its helper views, and answers a question about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import sqlalchemy as sa

from qblock.comparison import NUMBERS
from qblock.engines.queries import whole
from qblock.errors import InputError, choices
from qblock.estimate.columns import ANY, Column, Meets, Number, Text, ValueColumn
from qblock.estimate.combine import ONE, Between, Part, count_of, mean_of, sum_of
from qblock.estimate.conditions import Condition
from qblock.estimate.published import PublishedView, with_condition
from qblock.publish.targets import target_of
from qblock.results.estimate import Estimate, EstimatedGroup, What, in_words
from qblock.spec import Spec

ANSWERS: dict[What, Callable[[Sequence[Part]], Between]] = {"count": count_of, "mean": mean_of, "sum": sum_of}
Groups = list[tuple[tuple[Text, ...], int, float]]
"""Published rows by their labels and values, how many there are, and the sum of their weights."""


@dataclass(frozen=True)
class Question:
    """by: the column whose values are told apart; weights: the column of weights; mean: the one that has the means of
    `column` in each block, where they are the best that is known of it."""

    what: What
    column: str | None
    where: Mapping[str, Condition]
    by: str | None
    weights: str | None
    mean: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are read, once each."""
        more = [name for name in (self.column, self.by, self.mean) if name is not None]
        return tuple(dict.fromkeys([*self.where, *more]))

    @property
    def words(self) -> str:
        said = " and ".join(f"{name} {condition.words}" for name, condition in self.where.items())
        of = self.what if self.column is None else f"{self.what} of {self.column}"
        return f"{of} where {said}" if said else of


def estimate(
    spec: Spec, what: str, column: str | None, where: Mapping[str, Any], by: str | None, *, weights: bool
) -> Estimate:
    """The answer about what is published now. Raises InputError for a question that cannot be asked of it, Refused
    where nothing is published."""
    asks = _checked(what, column)
    with target_of(spec).published() as rows:
        view = PublishedView(spec, rows)
        columns = {name: view.column(name) for name in dict.fromkeys([*where, *filter(None, (column, by))])}
        conditions = {name: with_condition(columns[name], raw) for name, raw in where.items()}
        if column is not None:
            _check_number(view, columns[column])
        weight = view.weight if weights else None
        # Of a part of a label its block's mean says less than where the part is.
        mean = None if column is None or column in conditions else view.mean_of(column)
        question = Question(asks, column, conditions, by, weight, mean)
        groups = _grouped(view, question)
    return _answer(question, columns, groups)


def _checked(what: str, column: str | None) -> What:
    known = next((name for name in ANSWERS if name == what), None)
    if known is None:
        raise InputError(f"an estimate is a count, a mean or a sum; {choices(get_args(What), what)}")
    if what == "count" and column is not None:
        raise InputError('a count is of rows, and takes no column; leave it out: estimate("count")')
    if what != "count" and column is None:
        raise InputError(f'a {what} is of a column; name it: estimate("{what}", "age")')
    return known


def _check_number(view: PublishedView, column: Column) -> None:
    if (isinstance(column, ValueColumn) and column.kind in NUMBERS) or view.has_numbers(column.name):
        return
    raise InputError(
        f"{column.name}: readers see no numbers of it; ask for one of {', '.join(view.numbers) or 'no column'}, or for "
        'estimate("count")'
    )


def _grouped(view: PublishedView, question: Question) -> Groups:
    """The rows by what is read of them."""
    session, rows = view.session, view.rows
    texts = [session.text_of(rows.c[name], view.kinds[name]).label(f"t{i}") for i, name in enumerate(question.names)]
    n = whole(sa.func.count())
    weight = n if question.weights is None else sa.func.sum(rows.c[question.weights])
    query = sa.select(*texts, n.label("n"), weight.label("w")).select_from(rows)
    if texts:
        query = query.group_by(*(text.element for text in texts))
    return [
        (tuple(row[f"t{i}"] for i in range(len(texts))), int(row["n"]), float(row["w"] or 0))
        for row in session.fetch(query).to_pylist()
    ]


def _answer(question: Question, columns: Mapping[str, Column], groups: Groups) -> Estimate:
    parts: dict[Text, list[Part]] = {}
    reading = _Reading(question, columns)
    for texts, rows, weight in groups:
        by_name = dict(zip(question.names, texts, strict=True))
        own = parts.setdefault(by_name[question.by] if question.by else None, [])
        if (part := reading.part(by_name, rows, weight)) is not None:
            own.append(part)
    every = [part for own in parts.values() for part in own]
    shown = []
    if question.by is not None:
        order = sorted(parts, key=lambda text: (text is None, text or ""))
        shown = [EstimatedGroup(group=text, **_fields(question, parts[text])) for text in order]
    return Estimate(
        what=question.what,
        column=question.column,
        question=question.words,
        weights=question.weights is not None,
        by=question.by,
        groups=tuple(shown),
        notes=tuple(_notes(question, ANSWERS[question.what](every), every)),
        **_fields(question, every),
    )


class _Reading:
    """What labels and values say to a question, each read once."""

    def __init__(self, question: Question, columns: Mapping[str, Column]) -> None:
        self._question, self._columns = question, columns
        self._met: dict[tuple[str, Text], Meets] = {}
        self._numbers: dict[Text, Number | None] = {}

    def part(self, texts: Mapping[str, Text], rows: int, weight: float) -> Part | None:
        """Rows that read alike; None where none of them meets the conditions, or has a number. texts: what they have in
        each column."""
        surely, share = ANY.surely, ANY.share
        for name in self._question.where:
            meets = self._meets(name, texts[name])
            if not meets.possibly:
                return None
            surely, share = surely and meets.surely, share * meets.share
        number = ONE if self._question.column is None else self._number(texts[self._question.column])
        mean = texts.get(self._question.mean or "")
        if number is not None and mean is not None:
            number = replace(number, expected=float(mean))
        return None if number is None else Part(rows, weight, surely, share, number)

    def _meets(self, name: str, text: Text) -> Meets:
        if (name, text) not in self._met:
            self._met[name, text] = self._columns[name].meets(text, self._question.where[name])
        return self._met[name, text]

    def _number(self, text: Text) -> Number | None:
        if text not in self._numbers:
            name = self._question.column or ""
            self._numbers[text] = self._columns[name].number(text, self._question.where.get(name))
        return self._numbers[text]


def _fields(question: Question, parts: Sequence[Part]) -> dict[str, Any]:
    between = ANSWERS[question.what](parts)
    at_least, at_most = between.at_least, between.at_most
    if question.what == "count" and question.weights is None:
        at_least, at_most = (None if end is None else round(end) for end in (at_least, at_most))
    rows = sum(part.rows for part in parts)
    return {"at_least": at_least, "expected": between.expected, "at_most": at_most, "rows": rows}


def _notes(question: Question, between: Between, parts: Sequence[Part]) -> list[str]:
    notes = [_how_far(between)]
    if question.what == "mean":
        notes.append("A mean is of the rows that have a number.")
    if len(question.where) > 1 and any(not part.surely for part in parts):
        notes.append("What is expected takes the columns of a row to be independent of each other.")
    notes.append("It is about the published rows: those that were suppressed are in none of them.")
    return notes


def _how_far(between: Between) -> str:
    low, expected, high = between.at_least, between.expected, between.at_most
    if low is None and high is None:
        return "Nothing bounds how far off it may be: some labels are open."
    if low is None or high is None:
        ends = f"at most {in_words(high, '')}" if low is None else f"at least {in_words(low, '')}"
        return f"The true answer is {ends}; an open label leaves the other side without a bound."
    if low == high:
        return "It is exact."
    ends = f"The true answer is between {in_words(low, '')} and {in_words(high, '')}"
    if expected is None:
        return f"{ends}."
    off = max(expected - low, high - expected)
    share = f", {off / abs(expected):.0%} of it" if expected else ""
    return f"{ends}, so it is off by {in_words(off, '')} at most{share}."
