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
    content: list[Part] = []
    for name in shown.sensitive:
        own = [attack for attack in shown.attacks if attack.sensitive == name]
        content.append(Points(f"Attacks on {name}", [attack.sentence for attack in own]))
    rows = [
        (attack.sensitive, _named(attack), f"{attack.rows:,}", f"{attack.blocks:,}")
        for attack in shown.attacks
        if attack.rows is not None
    ]
    if not content:
        return (Text("No column is sensitive: nothing is to be found out but whose a row is."),)
    exposed = [attack.rows or 0 for attack in shown.attacks if attack.rows is not None]
    bars = [rows_of / shown.rows for rows_of in exposed]
    columns = ("about", "attack", "rows exposed", "blocks")
    content.append(Table("Rows of which the value is certain", columns, rows, (2, 3), bars, "share of the rows"))
    return content


def _named(attack: AttackShown) -> str:
    number = attack.detail or 0
    of_values = attack.attack in ("background_knowledge", "certainty")
    return NAMES[attack.attack].format(counted(number, "value") if of_values else number)


PAGE = Page("attacks", "Attacks", parts)
