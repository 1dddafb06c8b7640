"""The page on what a release keeps of its source."""

from __future__ import annotations

from collections.abc import Sequence

from qblock.report.parts import Bar, Page, Part, Table, Text, share
from qblock.results.report import Report
from qblock.results.report_utility import ColumnKept, NumbersKept, PairKept

NOT_PUBLISHED = "Nothing is published yet: there is nothing to compare the source with."
SIDES = ("source", "release")
SHARED = {"plain": "in both", "hidden": "missing in the release", "coarse": "more than in the source"}
"""The pieces of a bar, by their marks."""
MEASURES = {"pearson": "Pearson", "cramers_v": "Cramer's V"}


def utility_page(report: Report) -> Sequence[Part]:
    """Each column in the source and as it is published, and how columns go together in both."""
    of = report.inside.utility
    if of is None:
        return (Text(NOT_PUBLISHED),)
    return (
        Text(
            f"The source as it is now ({of.rows_source:,} rows) beside the version that readers see "
            f"({of.rows_released:,} rows). Labels are compared at the level that is published. Those of a recoding map "
            "are spread evenly over the values below them, as an analyst would; so is what is hidden (*)."
        ),
        _columns(of.columns),
        *_numbers(of.columns),
        *_pairs(of.pairs, of.pairs_total),
        *(_shares(column) for column in of.columns),
    )


def _columns(columns: Sequence[ColumnKept]) -> Part:
    rows = [(column.name, column.role, share(column.distance)) for column in columns]
    bars = [column.distance for column in columns]
    caption = "How far the shares of labels are from those of the source"
    return Table(caption, ("column", "role", "difference"), rows, (2,), bars, "half the sum of all differences")


def _numbers(columns: Sequence[ColumnKept]) -> list[Part]:
    shown = [(column.name, column.source, column.released) for column in columns if column.source or column.released]
    if not shown:
        return []
    rows = [
        (name, which, *_figures(of))
        for name, *both in shown
        for which, of in zip(("source", "release"), both, strict=True)
    ]
    columns_ = ("column", "of", "mean", "lower quartile", "median", "upper quartile")
    return [
        Table("Numbers in the source, and as the middles of labels tell them", columns_, rows, (2, 3, 4, 5)),
        Text("What is hidden or has an open end has no middle, and is left out of the release's figures."),
    ]


def _figures(of: NumbersKept | None) -> tuple[str, ...]:
    if of is None:
        return ("-",) * 4
    return tuple(f"{value:,.6g}" for value in (of.mean, of.lower, of.median, of.upper))


def _pairs(pairs: Sequence[PairKept], total: int) -> list[Part]:
    if not pairs:
        return []
    rows = [
        (f"{pair.first}, {pair.second}", MEASURES[pair.measure], *map(_value, (pair.source, pair.released, pair.loss)))
        for pair in pairs
    ]
    caption = f"How columns go together: the {len(pairs):,} of {total:,} pairs that change most"
    columns = ("columns", "measure", "source", "release", "difference")
    return [
        Table(caption, columns, rows, (2, 3, 4)),
        Text(
            "Pearson's correlation of two columns of numbers, else Cramer's V of their labels. Labels that are not "
            "listed below count as one. '-': a column has a single value."
        ),
    ]


def _value(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _shares(column: ColumnKept) -> Part:
    labels = [("NULL" if of.label is None else of.label, of.source, of.released) for of in column.labels]
    if column.rest_source or column.rest_released:
        labels.append(("(all others)", column.rest_source, column.rest_released))
    most = max((share for _, *both in labels for share in both), default=0) or 1
    rows = [(label, share(ours), share(theirs), _beside(ours, theirs, most)) for label, ours, theirs in labels]
    columns = ("label", "source", "release", "beside each other")
    return Table(f"Shares of the rows by {column.name}", columns, rows, (1, 2), legend=list(SHARED.items()))


def _beside(ours: float, theirs: float, most: float) -> Bar:
    pieces = {"plain": min(ours, theirs), "hidden": max(0, ours - theirs), "coarse": max(0, theirs - ours)}
    change = theirs - ours
    said = "the same" if not change else f"{share(abs(change))} {'more' if change > 0 else 'less'} than in the source"
    return Bar([(mark, SHARED[mark], value) for mark, value in pieces.items()], said, most)


PAGE = Page("utility", "Utility against the source", utility_page, internal=True)
