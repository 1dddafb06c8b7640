"""What a page is made of, whatever it is shown in: HTML and Markdown have a form for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from qblock.results.report import Report


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


@dataclass(frozen=True)
class Table:
    """A table below its caption; None is NULL. numbers: the columns that are aligned to the right; bars: a share of 1
    for each row, shown as a bar beside it, below `bars_of`; first: whether the first column names the row; filtered:
    whether rows may be looked for by their words, where there is a script."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | None]]
    numbers: Sequence[int] = ()
    bars: Sequence[float] = ()
    bars_of: str = ""
    first: bool = True
    filtered: bool = False


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
    instead: what it shows, for whoever does not see it, and in Markdown."""

    caption: str
    svg: Markup
    instead: str


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
