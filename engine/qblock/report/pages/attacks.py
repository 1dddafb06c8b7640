"""What known attacks find in the published rows, one sentence each."""

from __future__ import annotations

from collections.abc import Sequence

from qblock.report.data import AttackShown, Report
from qblock.report.parts import Page, Part, Points, Table, Text, counted

NAMES = {
    "homogeneity": "homogeneity: all of a block have the same value",
    "background_knowledge": "background knowledge, {} ruled out",
    "certainty": "background knowledge, the least for certainty: {} ruled out",
    "similarity": "similarity: the same label at level {} of the taxonomy",
    "proximity": "proximity: numbers of a block are close to each other",
}


def parts(report: Report) -> Sequence[Part]:
    shown = report.shown
    found: list[Part] = []
    for name in shown.sensitive:
        own = [one for one in shown.attacks if one.sensitive == name]
        found.append(Points(f"Attacks on {name}", [one.sentence for one in own]))
    rows = [
        (one.sensitive, _named(one), f"{one.rows:,}", f"{one.blocks:,}")
        for one in shown.attacks
        if one.rows is not None
    ]
    if not found:
        return (Text("No column is sensitive: nothing is to be found out but whose a row is."),)
    exposed = [one.rows or 0 for one in shown.attacks if one.rows is not None]
    bars = [rows_of / shown.rows for rows_of in exposed]
    columns = ("about", "attack", "rows exposed", "blocks")
    found.append(Table("Rows of which the value is certain", columns, rows, (2, 3), bars, "share of the rows"))
    return found


def _named(one: AttackShown) -> str:
    number = one.detail or 0
    of_values = one.attack in ("background_knowledge", "certainty")
    return NAMES[one.attack].format(counted(number, "value") if of_values else number)


PAGE = Page("attacks", "Attacks", parts)
