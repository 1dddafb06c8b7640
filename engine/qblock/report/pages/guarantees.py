"""What was asked for, and what the published rows reach."""

from __future__ import annotations

from collections.abc import Sequence

from qblock.report.data import Report
from qblock.report.parts import Page, Part, Table, Text, figures


def parts(report: Report) -> Sequence[Part]:
    rows = [
        (
            guarantee.model,
            guarantee.sensitive or "everybody",
            guarantee.asked,
            figures(guarantee.reached or "-"),
            "yes" if guarantee.holds else "NO",
            guarantee.in_words,
        )
        for guarantee in report.shown.guarantees
    ]
    columns = ("model", "about", "asked", "reached", "holds", "in words")
    return (
        Table("Guarantees", columns, rows),
        Text("Reached: recomputed from the published rows ('-': not possible from them alone)."),
    )


PAGE = Page("guarantees", "Asked and reached", parts)
