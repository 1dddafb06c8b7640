"""What a reader sees of each column, before and after, and some published rows."""

from __future__ import annotations

from collections.abc import Sequence

from qblock.report.data import ColumnShown, Report
from qblock.report.parts import Page, Part, Table, Text


def parts(report: Report) -> Sequence[Part]:
    shown = report.shown
    rows = [
        (column.name, column.role, column.before or "", column.after, _labels(column))
        for column in shown.columns
        if not column.role.startswith("bound of ")
    ]
    bounds = [column.name for column in shown.columns if column.role.startswith("bound of ")]
    content: list[Part] = [
        Table("Columns of the view", ("column", "role", "in the source", "what readers see", "most frequent"), rows)
    ]
    if bounds:
        content.append(Text(f"Beside them stand the bounds of what is written, for filters: {', '.join(bounds)}."))
    sample = shown.sample
    content.append(Table("Published rows, spread over the view", sample.columns, sample.rows, first=False))
    return content


def _labels(column: ColumnShown) -> str:
    return "; ".join(label.label for label in column.labels)


PAGE = Page("columns", "What readers see", parts)
