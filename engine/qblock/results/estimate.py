"""What a question to a release comes to: what is certain of the published rows, and what is expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from qblock.results.base import Answer, Real, Value

What = Literal["count", "mean", "sum"]


class EstimatedGroup(Value):
    """The same of the rows that have one value of `by`. group: the value as text, None for NULL."""

    group: str | None
    at_least: Real | None
    expected: Real | None
    at_most: Real | None
    rows: int


class Estimate(Answer):
    """A count, a mean or a sum over the published rows.

    question: in words; at_least, at_most: certain of the published rows, None where nothing bounds it; expected: by
    `VIEW_spread`, None where it cannot be said; rows: how many rows surely or possibly meet the conditions; weights:
    whether rows count by their weight; groups: the same for each value of `by`; notes: how far off it may be.
    """

    columns_shown = ("group", "at least", "expected", "at most", "rows")

    what: What
    column: str | None
    question: str
    at_least: Real | None
    expected: Real | None
    at_most: Real | None
    rows: int
    weights: bool
    by: str | None
    groups: tuple[EstimatedGroup, ...]
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"Estimate: {self.question}"

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        whole = ("all", self.at_least, self.expected, self.at_most, self.rows)
        return [*((g.group, g.at_least, g.expected, g.at_most, g.rows) for g in self.groups), whole]

    def __str__(self) -> str:
        return " ".join([f"{self.question}: {in_words(self.expected, 'not known')}.", *self.notes])


def in_words(number: Real | None, none: str) -> str:
    """A number as a reader sees it, at four digits where it is none of whole numbers."""
    if number is None:
        return none
    return f"{number:,}" if isinstance(number, int) else f"{number:,.4g}" if abs(number) < 1e4 else f"{number:,.0f}"
