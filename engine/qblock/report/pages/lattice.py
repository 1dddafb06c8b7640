"""The lattice of full-domain recoding as a picture, and its minimal nodes in words."""

from __future__ import annotations

from collections.abc import Sequence

from qblock.lattice import Node
from qblock.report.data import LatticeShown, NodeShown, Report
from qblock.report.parts import Page, Part, Picture, Table, Text, share
from qblock.report.svg import Mark
from qblock.report.svg import lattice as drawn

LISTED = 200
LEGEND = (
    ("fails", "fails the spec"),
    ("satisfied", "satisfies it"),
    ("satisfied minimal", "minimal: no node with more detail satisfies it"),
    ("satisfied minimal chosen", "what a search takes now"),
    ("satisfied frontier", "on the frontier: none has more room and is as good, or is better and has as much room"),
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
        found.append(
            Text(
                f"Of {of.total:,} nodes, {len(of.nodes):,} are shown: the chosen one, the minimal ones, and of those "
                "one level coarser as many as satisfy the spec and were looked at."
            )
        )
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
    minimal, frontier = set(of.minimal), set(of.frontier)
    return [
        Mark(sum(one.levels), _kinds(of, minimal, frontier, one), _title(of, one))
        for one in sorted(of.nodes, key=lambda n: n.levels)
    ]


def _kinds(of: LatticeShown, minimal: set[Node], frontier: set[Node], one: NodeShown) -> str:
    return " ".join(
        [
            "satisfied" if one.satisfied else "fails",
            *(["minimal"] if one.levels in minimal else []),
            *(["frontier"] if one.levels in frontier else []),
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
    """The minimal nodes, those of the frontier and the two that are marked, the best by the metric first."""
    kinds: dict[str, set[Node | None]] = {
        "minimal": {*of.minimal},
        "frontier": {*of.frontier},
        "a search takes it": {of.chosen},
        "published": {of.published},
    }
    shown = set[Node | None]().union(*kinds.values())
    sign = -1 if of.more_is_better else 1
    nodes = [one for one in of.nodes if one.levels in shown]
    nodes.sort(key=lambda one: (one.measure is None, sign * (one.measure or 0), one.levels))
    rows = [
        (
            ",".join(map(str, one.levels)),
            "; ".join(f"{name} {said[level]}" for (name, said), level in zip(of.words, one.levels, strict=True)),
            "-" if one.measure is None else f"{one.measure:.4g}",
            "-" if one.room is None else share(one.room),
            f"{one.suppressed:,}",
            ", ".join(what for what, levels in kinds.items() if one.levels in levels),
        )
        for one in nodes[:LISTED]
    ]
    more = f", {LISTED} of {len(nodes):,}" if len(nodes) > LISTED else ""
    columns = ("node", "in words", of.metric, "room", "suppressed", "which")
    caption = f"Minimal nodes and the frontier, the best by {of.metric} first{more}"
    return Table(caption, columns, rows, (2, 3, 4), filtered=True)


PAGE = Page("lattice", "The lattice", parts, internal=True)
