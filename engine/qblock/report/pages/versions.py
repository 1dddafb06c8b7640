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
            run.at.replace("T", " "),
            run.state,
            "" if run.version is None else f"{run.version}",
            "" if run.rows is None else f"{run.rows:,}",
            run.how,
            "; ".join(run.why),
        )
        for run in of.runs
    ]
    head = () if of.head is None else (Text(f"Ledger head: {of.head}"),)
    return (Table("Runs, newest first", ("time (UTC)", "state", "version", "rows", "node", "why"), rows, (2, 3)), *head)


PAGE = Page("versions", "Versions", parts, internal=True)
