"""The runs of the job, as the ledger has them."""

from __future__ import annotations

from collections.abc import Sequence

from qblock.report.data import Report
from qblock.report.parts import Page, Part, Table, Text


def parts(report: Report) -> Sequence[Part]:
    of = report.inside
    if not of.runs:
        return (Text("The job has not run yet."),)
    rows = [
        (
            one.at.replace("T", " "),
            one.state,
            "" if one.version is None else f"{one.version}",
            "" if one.rows is None else f"{one.rows:,}",
            one.how,
            "; ".join(one.why),
        )
        for one in of.runs
    ]
    head = () if of.head is None else (Text(f"Ledger head: {of.head}"),)
    return (Table("Runs, newest first", ("time (UTC)", "state", "version", "rows", "node", "why"), rows, (2, 3)), *head)


PAGE = Page("versions", "Versions", parts, internal=True)
