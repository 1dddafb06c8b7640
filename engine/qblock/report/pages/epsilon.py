"""Requirements and nodes in the terms of epsilon-privacy: what adversaries of each class may learn."""

from __future__ import annotations

from collections.abc import Sequence

from qblock.report.data import CurveShown, Internal, Report
from qblock.report.figures import curves, heat_map
from qblock.report.parts import Figure, Page, Part, Points, Table, Text


def parts(report: Report) -> Sequence[Part]:
    of = report.inside
    if not of.epsilon:
        return (Text("No column is sensitive, or no node satisfies the spec: there is nothing to weigh."),)
    content: list[Part] = [
        Text(
            "Epsilon bounds by which factor somebody's being in the table changes what is believed of them: 1 is not "
            "at all, and less is better. What an adversary of class I or II believes beforehand weighs as much as so "
            "many people (the stubbornness); of class I it is known, of class II it may be anything. Classes III and "
            "IV weigh it infinitely: of class III it is known, and against class IV, of which it may be anything, "
            "nothing helps."
        )
    ]
    for shown in of.epsilon:
        rows = [
            (",".join(map(str, levels)), *values) for levels, values in zip(shown.levels, shown.values, strict=True)
        ]
        numbers = tuple(range(1, len(shown.adversaries) + 1))
        caption = f"Smallest epsilon of {shown.sensitive} at the chosen and the minimal nodes, by adversary"
        instead = "The deeper a cell, the larger its epsilon (up to 100), which it says; inf: none is large enough."
        content.append(Figure(f"{caption}: a map", heat_map(shown, f"{caption}. {instead} A table follows."), instead))
        content.append(Table(caption, ("node", *shown.adversaries), rows, numbers))
    for name in dict.fromkeys(curve.sensitive for curve in of.curves):
        content += _by_stubbornness(name, [curve for curve in of.curves if curve.sensitive == name])
    return [*content, *_granted(of)]


def _by_stubbornness(name: str, shown: Sequence[CurveShown]) -> list[Part]:
    """As Figure 2a of EP."""
    node = ",".join(map(str, shown[0].levels))
    caption = f"Smallest epsilon of {name} by stubbornness, at node {node}"
    instead = (
        "Against exactly this stubbornness; against whoever knows the prior, epsilon may rise or fall with it. "
        "Infinite values are signs above the plot, and no points of it."
    )
    across = sorted({text for curve in shown for text in curve.stubbornness}, key=float)
    rows = []
    for curve in shown:
        there = dict(zip(curve.stubbornness, curve.values, strict=True))
        rows.append((curve.adversary, *(_value(there[text]) if text in there else "-" for text in across)))
    return [
        Figure(caption, curves(shown, f"{caption}. {instead} A table follows."), instead),
        Table(f"{caption}, as numbers", ("adversary", *across), rows, tuple(range(1, len(across) + 1))),
    ]


def _value(value: float | None) -> str:
    return "inf" if value is None else f"{value:.4g}"


def _granted(of: Internal) -> list[Part]:
    grants = [grant for grant in of.granted if grant.epsilon is not None]
    none = {(grant.requirement, grant.sensitive): grant.why for grant in of.granted if grant.epsilon is None}
    lost = [key for key in none if not any((grant.requirement, grant.sensitive) == key for grant in grants)]
    content: list[Part] = []
    if grants:
        rows = [
            (grant.requirement, grant.sensitive, grant.adversary, grant.epsilon, grant.reached or "-")
            for grant in grants
        ]
        columns = ("requirement", "about", "adversary", "grants", "reached")
        caption = "Epsilon that each requirement grants, whatever the table, and the largest that these nodes reach"
        content.append(Table(caption, columns, rows, (3, 4)))
    if lost:
        points = [
            f"{requirement} grants no epsilon of {name}: {none[requirement, name]}." for requirement, name in lost
        ]
        content.append(Points("Requirements that grant none", points))
    return content


PAGE = Page("epsilon", "Epsilon", parts, internal=True)
