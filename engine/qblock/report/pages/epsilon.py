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
    found: list[Part] = [
        Text(
            "Epsilon bounds by which factor somebody's being in the table changes what is believed of them: 1 is not "
            "at all, and less is better. What an adversary of class I or II believes beforehand weighs as much as so "
            "many people (the stubbornness); of class I it is known, of class II it may be anything. Classes III and "
            "IV weigh it infinitely: of class III it is known, and against class IV, of which it may be anything, "
            "nothing helps."
        )
    ]
    for one in of.epsilon:
        rows = [(",".join(map(str, levels)), *values) for levels, values in zip(one.levels, one.values, strict=True)]
        numbers = tuple(range(1, len(one.adversaries) + 1))
        caption = f"Smallest epsilon of {one.sensitive} at the chosen and the minimal nodes, by adversary"
        instead = "The deeper a cell, the larger its epsilon (up to 100), which it says; inf: none is large enough."
        found.append(Figure(f"{caption}: a map", heat_map(one, f"{caption}. {instead} A table follows."), instead))
        found.append(Table(caption, ("node", *one.adversaries), rows, numbers))
    for name in dict.fromkeys(one.sensitive for one in of.curves):
        found += _by_stubbornness(name, [one for one in of.curves if one.sensitive == name])
    return [*found, *_granted(of)]


def _by_stubbornness(name: str, shown: Sequence[CurveShown]) -> list[Part]:
    """As Figure 2a of EP."""
    node = ",".join(map(str, shown[0].levels))
    caption = f"Smallest epsilon of {name} by stubbornness, at node {node}"
    instead = (
        "Against exactly this stubbornness; against whoever knows the prior, epsilon may rise or fall with it. "
        "Infinite values are signs above the plot, and no points of it."
    )
    across = sorted({text for one in shown for text in one.stubbornness}, key=float)
    rows = []
    for one in shown:
        there = dict(zip(one.stubbornness, one.values, strict=True))
        rows.append((one.adversary, *(_value(there[text]) if text in there else "-" for text in across)))
    return [
        Figure(caption, curves(shown, f"{caption}. {instead} A table follows."), instead),
        Table(f"{caption}, as numbers", ("adversary", *across), rows, tuple(range(1, len(across) + 1))),
    ]


def _value(value: float | None) -> str:
    return "inf" if value is None else f"{value:.4g}"


def _granted(of: Internal) -> list[Part]:
    some = [one for one in of.granted if one.epsilon is not None]
    none = {(one.requirement, one.sensitive): one.why for one in of.granted if one.epsilon is None}
    lost = [key for key in none if not any((one.requirement, one.sensitive) == key for one in some)]
    found: list[Part] = []
    if some:
        rows = [(one.requirement, one.sensitive, one.adversary, one.epsilon, one.reached or "-") for one in some]
        columns = ("requirement", "about", "adversary", "grants", "reached")
        caption = "Epsilon that each requirement grants, whatever the table, and the largest that these nodes reach"
        found.append(Table(caption, columns, rows, (3, 4)))
    if lost:
        points = [
            f"{requirement} grants no epsilon of {name}: {none[requirement, name]}." for requirement, name in lost
        ]
        found.append(Points("Requirements that grant none", points))
    return found


PAGE = Page("epsilon", "Epsilon", parts, internal=True)
