"""Who has which rights, or may reach which files."""

from __future__ import annotations

from collections.abc import Sequence

from qblock.report.data import Report
from qblock.report.parts import Page, Part, Table, Text

HELD = {True: "yes", False: "NO", None: "to be seen to"}


def parts(report: Report) -> Sequence[Part]:
    rows = [(right.whose, right.what, HELD[right.held], right.why) for right in report.inside.rights]
    if not rows:
        return (Text("No rights are needed of anybody."),)
    return (Table("Rights", ("whose", "what", "held", "why"), rows),)


PAGE = Page("rights", "Rights", parts, internal=True)
