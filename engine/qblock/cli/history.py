"""history: the ledger of a release, a line for each run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from fractions import Fraction
from typing import Any

import typer
from rich.padding import Padding

from qblock.cli.opening import load_release
from qblock.cli.output import Json, SpecPath, answer, console, shown, table

DROPPED = "retired"
"""The state of an older version that a run dropped: no outcome of the run itself."""
COLUMNS = ("time (UTC)", "version", "state", "rows", "node", "chosen")


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("history")(history)


def history(spec: SpecPath, json_: Json = False) -> None:
    """The ledger of a release: a line for each run, what was asked and reached, refusals and their reasons.

    --json has every event of a run.
    """
    from qblock.api import NOT_PROTECTED

    past = load_release(spec).history().to_dict()
    if json_:
        answer(past)
        return
    out = console()
    if not past["events"]:
        out.print(f"No event of release {past['release']} yet.")
        return
    _print_runs(past["events"])
    if any(_choice(event).endswith("*") for event in past["events"]):
        out.print(f"* {NOT_PROTECTED}")
    if past["headroom_trend"]:
        cells = [
            [
                g["version"],
                g["model"] + (f" ({g['sensitive']})" if g["sensitive"] else ""),
                f"{g['parameter']}={g['asked']}",
                _reached(g),
                _percent(g["headroom"]),
                _percent(g["headroom_change"]),
            ]
            for g in past["headroom_trend"]
        ]
        out.print()
        out.print("Guarantees, as last checked, and the room that is left")
        out.print(table("", ["version", "model", "asked", "reached", "room", "change"], cells))
    if past["current"] is not None:
        age = timedelta(seconds=past["age_seconds"] or 0)
        stale = ", longer ago than the spec allows: STALE" if past["stale"] else ""
        out.print()
        out.print(f"Readers see version {past['current']}, published {age} ago{stale}.")
    if past["retired_at"] is not None:
        out.print()
        out.print(f"Readers see nothing: the release was retired on {past['retired_at'][:10]}.")


def _print_runs(events: Sequence[dict[str, Any]]) -> None:
    """A line for each run, and below it at full width why, and what it dropped."""
    out = console()
    names: list[str] = next(
        (event["quasi_identifiers"] for event in reversed(events) if event["quasi_identifiers"]), []
    )
    lines, below = [list(COLUMNS)], [[f"(node: levels of {', '.join(names)})"] if names else []]
    for run in _runs(events):
        last = next((event for event in reversed(run) if event["state"] != DROPPED), run[-1])
        lines.append(
            [
                last["recorded_at"][:19].replace("T", " "),
                str(last["version"] or ""),
                last["state"],
                shown(last["rows_published"]),
                _levels(last, names),
                _choice(last),
            ]
        )
        dropped = [str(event["version"]) for event in run if event["state"] == DROPPED and event is not last]
        reasons = dict.fromkeys(event["reason"] for event in run if event["reason"])
        below.append([*reasons, *([f"dropped: version {', '.join(dropped)}"] if dropped else [])])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line, more in zip(lines, below, strict=True):
        out.print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        for text in more:
            out.print(Padding(text, (0, 0, 0, 4)))


def _runs(events: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The events of each run, in the order in which the runs began."""
    runs: dict[Any, list[dict[str, Any]]] = {}
    for event in events:
        runs.setdefault(event["run"] or event["number"], []).append(event)
    return list(runs.values())


def _choice(event: dict[str, Any]) -> str:
    if event["choice"] is None:
        return ""
    return event["choice"] + ("" if event["protected"] else " *")


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:+.1%}"


def _reached(guarantee: dict[str, Any]) -> str:
    from qblock.api import number_json

    reached = guarantee["reached"]
    return shown(reached if reached in (None, "inf") else number_json(Fraction(reached)))


def _levels(event: dict[str, Any], names: Sequence[str]) -> str:
    """The levels of a node; with the names where they are of other quasi-identifiers than `names`."""
    node = event["node"]
    boxes = (event["detail"] or {}).get("boxes")
    if node is None and boxes is not None:
        return f"map of {boxes:,} boxes"
    own = event["quasi_identifiers"]
    if not own or not node:
        return ""
    if list(own) == list(names):
        return ",".join(map(str, node))
    return " ".join(f"{name}={level}" for name, level in zip(own, node, strict=True))
