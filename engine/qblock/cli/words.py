"""Answers in words: what readers see of each column, which requirement binds, and what is hidden."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.padding import Padding
from rich.table import Table

from qblock.cli.output import console, shown

LISTED = 10
"""Minimal nodes that are listed unless somebody asks for all."""


def print_columns(words: Mapping[str, str]) -> None:
    """`age: by year (33 values)`, a line for each quasi-identifier; one that is long goes on below its words."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(overflow="fold")
    grid.add_column(overflow="fold")
    for name, said in words.items():
        grid.add_row(f"{name}:", said)
    console().print(Padding(grid, (0, 0, 0, 2), expand=False))


def node_words(levels: Sequence[int], words: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The words of a node, of those of every level."""
    return {name: said[level] for (name, said), level in zip(words.items(), levels, strict=True)}


def print_minimal(nodes: Sequence[Sequence[int]], words: Mapping[str, Sequence[str]], *, every: bool) -> None:
    """The minimal nodes in words, finest first; ten of them unless all are asked for."""
    ordered = sorted(nodes, key=lambda node: (sum(node), list(node)))
    listed = ordered if every else ordered[:LISTED]
    out = console()
    out.print()
    out.print(f"Minimal nodes (levels of {', '.join(words)}):")
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(overflow="fold")
    grid.add_column(overflow="fold")
    for node in listed:
        said = "; ".join(f"{name} {text}" for name, text in node_words(node, words).items())
        grid.add_row(",".join(map(str, node)), said)
    out.print(Padding(grid, (0, 0, 0, 2), expand=False))
    if len(listed) < len(ordered):
        out.print(f"  ... and {len(ordered) - len(listed):,} more: --nodes minimal")


def few_shown(hidden: int, names: Sequence[str]) -> str | None:
    """That most of the quasi-identifiers are hidden, where that is so."""
    if 2 * hidden <= len(names):
        return None
    noun, verb = "quasi-identifier" if len(names) == 1 else "quasi-identifiers", "is" if hidden == 1 else "are"
    return f"{hidden} of {len(names)} {noun} {verb} hidden: of little use"


def publishable(rows: int, chosen: Mapping[str, Any], unit: str) -> str:
    """What a search says first: how many rows can be published, in how large groups. unit: what is counted."""
    groups = chosen.get("boxes")
    least = next((entry["values"][0]["value"] for entry in chosen["tightest"] if entry["model"] == "k_anonymity"), None)
    within = "" if groups is None else f" in {groups:,} groups"
    if isinstance(least, int):
        within += f"{' in groups' if groups is None else ''} of at least {least:,} {unit}"
    said = f"You can publish this: {rows - chosen['suppressed']:,} rows{within}."
    if chosen["suppressed"]:
        said += f" {chosen['suppressed']:,} of {rows:,} rows are left out."
    return said


def limit(tightest: Iterable[Mapping[str, Any]]) -> str | None:
    """The requirement with the least relative room between what is asked and what is reached, which is the one in the
    way of more detail; None where no room is known."""
    distances: list[tuple[float, bool, str]] = []
    for entry in tightest:
        for value in entry["values"]:
            requested, reached = entry["asked"].get(value["parameter"]), value["value"]
            if entry["holds"] is None or not _number(requested) or not _number(reached) or not requested:
                continue
            # What holds is at least as strict as what is asked, whichever direction that is.
            distance = abs(reached - requested) / abs(requested)
            told = f"{value['parameter']} asked {shown(requested)}, reached {shown(reached)}"
            distances.append((distance if entry["holds"] else -distance, entry["holds"], f"{_model(entry)} ({told})"))
    if not distances:
        return None
    _, holds, told = min(distances)
    return f"Limit: {told}" if holds else f"Not met: {told}"


def _model(entry: Mapping[str, Any]) -> str:
    return entry["model"] + (f" of {', '.join(entry['sensitive'])}" if entry["sensitive"] else "")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
