"""What a page is made of, whatever it is shown in: HTML and Markdown have a form for each."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from markupsafe import Markup

from qblock.results.report import Report

UNBROKEN = 16
"""Characters of a text in a cell that is not broken."""
ACROSS = 90
"""Characters that stand beside each other on a sheet of paper."""


@dataclass(frozen=True)
class Text:
    """A paragraph. kind: how it stands out."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Points:
    """A list of sentences below a title."""

    title: str
    points: Sequence[str]


class Piece(NamedTuple):
    """A piece of a bar. mark: its class; start, width: in percent of the bar; said: what a pointer shows."""

    mark: str
    start: float
    width: float
    said: str


@dataclass(frozen=True)
class Bar:
    """A cell that is a bar. pieces: the mark of each, what it means and its share, from left to right; said: all of it
    in words, for whoever does not see it, in print and in Markdown; whole: the share that fills the cell."""

    pieces: Sequence[tuple[str, str, float]]
    said: str
    whole: float = 1.0

    @property
    def placed(self) -> Sequence[Piece]:
        """The pieces that are there, each where the one before ends."""
        starts = itertools.accumulate((100 * value / self.whole for *_, value in self.pieces), initial=0.0)
        return [
            Piece(mark, start, 100 * value / self.whole, f"{meaning}: {share(value)}")
            for (mark, meaning, value), start in zip(self.pieces, starts, strict=False)
            if value
        ]


@dataclass(frozen=True)
class Table:
    """A table below its caption; None is NULL. On a phone each row is a card. numbers: the columns that are aligned to
    the right; bars: a share of 1 for each row, shown as a bar beside it, below `bars_of`; first: whether the first
    column names the row; filtered: whether rows may be looked for by their words, where there is a script; legend: what
    the pieces of bars in cells mean, by their marks."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Bar | None]]
    numbers: Sequence[int] = ()
    bars: Sequence[float] = ()
    bars_of: str = ""
    first: bool = True
    filtered: bool = False
    legend: Sequence[tuple[str, str]] = ()

    @property
    def fit(self) -> str:
        """How its columns stand beside each other: `many` where texts of several words are broken for it, `crowded`
        where each text may be, else as they are."""
        texts = [
            [text for text in column if isinstance(text, str)] for column in zip(self.columns, *self.rows, strict=True)
        ]
        words = [[word for text in column for word in text.split()] for column in texts]
        if sum(map(_longest, words)) > ACROSS:
            return "crowded"
        return "many" if sum(map(_longest, texts)) > ACROSS else ""

    @property
    def keys(self) -> Sequence[tuple[str, str]]:
        """The legend of all its bars."""
        return (*self.legend, ("", self.bars_of), ("all", "the rest, up to 100 %")) if self.bars else self.legend


@dataclass(frozen=True)
class Signature:
    """Lines to be filled in by hand."""

    of: Sequence[str] = field(default=("Name", "Date", "Signature"))


@dataclass(frozen=True)
class Picture:
    """A picture below its caption. svg: made by report/drawings.py; legend: what its marks mean, by the class of the
    mark; instead: what it shows, for whoever does not see it, and in Markdown. Its marks have titles, which a pointer
    shows, and arrow keys one after the other."""

    caption: str
    svg: Markup
    legend: Sequence[tuple[str, str]]
    instead: str


@dataclass(frozen=True)
class Figure:
    """A drawing of figures that are in a table beside it. svg: made by report/drawings.py, with texts of its own;
    instead: what it shows, for whoever does not see it, and in Markdown; legend: what its marks mean, by their classes,
    where the drawing does not say so itself."""

    caption: str
    svg: Markup
    instead: str
    legend: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Code:
    """A text as it is, below its caption."""

    caption: str
    text: str


Part = Text | Points | Table | Signature | Picture | Figure | Code


@dataclass(frozen=True)
class Page:
    """One page. id: of its heading, in links; parts: what it says of a report; internal: for whoever runs the job
    alone."""

    id: str
    title: str
    parts: Callable[[Report], Sequence[Part]]
    internal: bool = False


def _longest(texts: Sequence[str]) -> int:
    """Characters of the longest text that is not broken by itself."""
    return max((len(text) for text in texts if len(text) <= UNBROKEN), default=0)


def share(value: float) -> str:
    """A share as percent, never rounded to nothing or to all."""
    if 0 < value < 0.001:
        return "under 0.1 %"
    return "over 99.9 %" if 0.999 < value < 1 else f"{100 * value:.1f} %"


def figures(text: str) -> str:
    """A text whose numbers have no more digits than a person reads."""
    return re.sub(r"\d+\.\d{5,}", lambda number: f"{float(number[0]):.5g}", text)


def counted(number: int, singular: str, plural: str = "") -> str:
    """`1 row`, `2,000 rows`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
