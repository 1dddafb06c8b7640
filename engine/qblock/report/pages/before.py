"""The risk of the source beside that of what is published, for those who run the job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qblock.report.pages.chances import attacker_row, population_parts
from qblock.report.parts import Page, Part, Table, Text, counted
from qblock.results.report import Report
from qblock.results.risk import AttackerShown


def before_page(report: Report) -> Sequence[Part]:
    """Of the quasi-identifiers as the source has them: how many are alone, and what each attacker could do."""
    of = report.inside.before
    if of is None:
        return (Text("The source was not counted as it is."),)
    after = () if report.published is None else report.published.attackers
    columns = ("when", "attacker", "highest chance", "mean chance", "above the threshold", "share above")
    rows = [*_rows("before", of.attackers), *_rows("after", after)]
    return (
        Text(
            f"Before anything is generalized, {of.rows:,} {of.counted} are in "
            f"{counted(of.blocks, 'block')}, the smallest of {of.least:,}; {of.unique:,} are alone in their block."
        ),
        Table("Chances before and after", columns, rows, (2, 3, 4, 5)),
        *population_parts(of.population, "columns of the source"),
        Text("The source is counted as it is now; what is published may be older."),
    )


def _rows(when: str, attackers: Sequence[AttackerShown]) -> Iterator[tuple[str, ...]]:
    for of in attackers:
        yield when, *attacker_row(of)


PAGE = Page("before", "Risk before and after", before_page, internal=True)
