"""Which requirement is in the way of more detail, and what a verification of the release found."""

from __future__ import annotations

from collections.abc import Sequence

from qblock.report.data import Internal, Report
from qblock.report.parts import Page, Part, Points, Table, Text, figures, share


def parts(report: Report) -> Sequence[Part]:
    of = report.inside
    content: list[Part] = []
    if of.problems is not None:
        content.append(_verified(of))
    if of.binding is not None:
        content.append(Text(f"More detail would break {of.binding}."))
    content.append(Text(of.candidate))
    if of.notes:
        content.append(Points("Notes of the verification", of.notes))
    if of.room:
        columns = ("version", "model", "about", "asked", "reached", "room")
        rows = [
            (
                f"{guarantee.version}",
                guarantee.model,
                guarantee.sensitive or "everybody",
                guarantee.asked,
                figures(guarantee.reached),
                "-" if guarantee.room is None else share(float(guarantee.room)),
            )
            for guarantee in of.room
        ]
        content.append(Table("Guarantees of each version, and the room that is left", columns, rows, (0, 5)))
    return content


def _verified(of: Internal) -> Part:
    if of.problems:
        return Text(f"A verification found: {'; '.join(of.problems)}.", "failed")
    return Text(
        "Verified: what is published is what was checked, and the ledger's chain agrees. We checked known ways to "
        "reach private tables and found none; the list cannot be complete.",
        "verdict",
    )


PAGE = Page("room", "Room and verification", parts, internal=True)
