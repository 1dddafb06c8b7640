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
    content: list[Part] = [
        Text(
            f"A node has a level for each of {names}; it stands the higher, the more general it is (the number at the "
            "left is the sum of its levels). Hover over it, or go to the picture with the Tab key and on with the "
            f"arrow keys, for its levels, what it reaches, and its {of.metric}."
        )
    ]
    if not of.whole:
        content.append(
            Text(
                f"Of {of.total:,} nodes, {len(of.nodes):,} are shown: the chosen one, the minimal ones, and of those "
                "one level coarser as many as satisfy the spec and were looked at."
            )
        )
    if of.published is None and report.published is not None:
        content.append(
            Text("Readers see a recoding map, in which blocks have levels of their own: it is no node of these.")
        )
    instead = f"{of.total:,} nodes, {len(of.minimal):,} of them minimal."
    content.append(Picture("The lattice", drawn(_marks(of), instead), LEGEND, instead))
    content.append(_listed(of))
    levels = max(len(said) for _, said in of.words)
    rows = [(name, *said, *[""] * (levels - len(said))) for name, said in of.words]
    content.append(Table("What each level shows", ("column", *(f"level {i}" for i in range(levels))), rows))
    return content


def _marks(of: LatticeShown) -> list[Mark]:
    minimal, frontier = set(of.minimal), set(of.frontier)
    return [
        Mark(sum(node.levels), _kinds(of, minimal, frontier, node), _title(of, node))
        for node in sorted(of.nodes, key=lambda n: n.levels)
    ]


def _kinds(of: LatticeShown, minimal: set[Node], frontier: set[Node], node: NodeShown) -> str:
    return " ".join(
        [
            "satisfied" if node.satisfied else "fails",
            *(["minimal"] if node.levels in minimal else []),
            *(["frontier"] if node.levels in frontier else []),
            *(["chosen"] if node.levels == of.chosen else []),
            *(["published"] if node.levels == of.published else []),
        ]
    )


def _title(of: LatticeShown, node: NodeShown) -> str:
    levels = ", ".join(f"{name} {level}" for (name, _), level in zip(of.words, node.levels, strict=True))
    measure = [] if node.measure is None else [f"{of.metric} {node.measure:.4g}"]
    suppressed = [f"{node.suppressed:,} rows suppressed"] if node.suppressed else []
    return "; ".join([levels, *node.reached, *measure, *suppressed])


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
    nodes = [node for node in of.nodes if node.levels in shown]
    nodes.sort(key=lambda node: (node.measure is None, sign * (node.measure or 0), node.levels))
    rows = [
        (
            ",".join(map(str, node.levels)),
            "; ".join(f"{name} {said[level]}" for (name, said), level in zip(of.words, node.levels, strict=True)),
            "-" if node.measure is None else f"{node.measure:.4g}",
            "-" if node.room is None else share(node.room),
            f"{node.suppressed:,}",
            ", ".join(what for what, levels in kinds.items() if node.levels in levels),
        )
        for node in nodes[:LISTED]
    ]
    more = f", {LISTED} of {len(nodes):,}" if len(nodes) > LISTED else ""
    columns = ("node", "in words", of.metric, "room", "suppressed", "which")
    caption = f"Minimal nodes and the frontier, the best by {of.metric} first{more}"
    return Table(caption, columns, rows, (2, 3, 4), filtered=True)


PAGE = Page("lattice", "The lattice", parts, internal=True)
