"""The lattice of full-domain recoding as a picture, and its minimal nodes in words."""

from __future__ import annotations

from collections.abc import Sequence

from qblock.report.data import LatticeShown, NodeShown, Report
from qblock.report.parts import Page, Part, Picture, Table, Text
from qblock.report.svg import Mark
from qblock.report.svg import lattice as drawn

LISTED = 50
LEGEND = (
    ("fails", "fails the spec"),
    ("satisfied", "satisfies it"),
    ("satisfied minimal", "minimal: no node with more detail satisfies it"),
    ("satisfied minimal chosen", "what a search takes now"),
    ("satisfied published", "what readers see"),
)


def parts(report: Report) -> Sequence[Part]:
    of = report.inside.lattice
    names = ", ".join(name for name, _ in of.words)
    found: list[Part] = [
        Text(
            f"A node has a level for each of {names}; it stands the higher, the more general it is (the number at the "
            "left is the sum of its levels). Hover over it, or go to the picture with the Tab key and on with the "
            f"arrow keys, for its levels, what it reaches, and its {of.metric}."
        )
    ]
    if not of.whole:
        found.append(Text(f"Of {of.total:,} nodes, the minimal ones and the chosen one are shown."))
    if of.published is None and report.published is not None:
        found.append(
            Text("Readers see a recoding map, in which blocks have levels of their own: it is no node of these.")
        )
    instead = f"{of.total:,} nodes, {len(of.minimal):,} of them minimal."
    found.append(Picture("The lattice", drawn(_marks(of), instead), LEGEND, instead))
    found.append(_listed(of))
    levels = max(len(said) for _, said in of.words)
    rows = [(name, *said, *[""] * (levels - len(said))) for name, said in of.words]
    found.append(Table("What each level shows", ("column", *(f"level {i}" for i in range(levels))), rows))
    return found


def _marks(of: LatticeShown) -> list[Mark]:
    minimal = set(of.minimal)
    return [
        Mark(sum(one.levels), _kinds(of, minimal, one), _title(of, one))
        for one in sorted(of.nodes, key=lambda n: n.levels)
    ]


def _kinds(of: LatticeShown, minimal: set[tuple[int, ...]], one: NodeShown) -> str:
    return " ".join(
        [
            "satisfied" if one.satisfied else "fails",
            *(["minimal"] if one.levels in minimal else []),
            *(["chosen"] if one.levels == of.chosen else []),
            *(["published"] if one.levels == of.published else []),
        ]
    )


def _title(of: LatticeShown, one: NodeShown) -> str:
    levels = ", ".join(f"{name} {level}" for (name, _), level in zip(of.words, one.levels, strict=True))
    measure = [] if one.measure is None else [f"{of.metric} {one.measure:.4g}"]
    suppressed = [f"{one.suppressed:,} rows suppressed"] if one.suppressed else []
    return "; ".join([levels, *one.reached, *measure, *suppressed])


def _listed(of: LatticeShown) -> Table:
    """The minimal nodes and the two that are marked, the best by the metric first."""
    shown = {*of.minimal, of.chosen, of.published}
    sign = -1 if of.more_is_better else 1
    nodes = [one for one in of.nodes if one.levels in shown]
    nodes.sort(key=lambda one: (one.measure is None, sign * (one.measure or 0), one.levels))
    rows = [
        (
            ",".join(map(str, one.levels)),
            "; ".join(f"{name} {said[level]}" for (name, said), level in zip(of.words, one.levels, strict=True)),
            "-" if one.measure is None else f"{one.measure:.4g}",
            ", ".join(
                what
                for what, levels in (("a search takes it", of.chosen), ("published", of.published))
                if one.levels == levels
            ),
        )
        for one in nodes[:LISTED]
    ]
    more = f", {LISTED} of {len(nodes):,}" if len(nodes) > LISTED else ""
    return Table(
        f"Minimal nodes, the best by {of.metric} first{more}", ("node", "in words", of.metric, "which"), rows, (2,)
    )


PAGE = Page("lattice", "The lattice", parts, internal=True)
