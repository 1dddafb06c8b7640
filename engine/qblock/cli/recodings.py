"""compare --recoding both: what a person reads of two recodings of one spec."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import RenderableType

from qblock.cli.explore import model_of, print_weights, reached_of, requested_of
from qblock.cli.output import console, shown, table

TITLES = {"full_domain": "full-domain", "multidimensional": "multidimensional"}
NONE = "-"


def print_recodings(fields: dict[str, Any]) -> None:
    """Figures, tightest values and what is seen of each column, a column of the table for each recoding."""
    out = console()
    out.print(
        f"{fields['rows']:,} rows; two recodings under the same privacy models, at most "
        f"{fields['suppressed_rows_allowed']:,} rows suppressed in each; {fields['queries']:,} statements in "
        f"{fields['seconds']:.1f} s"
    )
    sides: dict[str, Any] = fields["recodings"]
    for name, title in TITLES.items():
        node = ""
        if sides[name] is not None and sides[name]["levels"] is not None:
            levels = zip(fields["quasi_identifiers"], sides[name]["levels"], strict=True)
            node = ", ".join(f"{column} level {level}" for column, level in levels) + "; "
        out.print(f"{title}: {'' if sides[name] else 'no answer: '}{node}{fields['why'][name]}")
    for warning in fields["warnings"]:
        out.print(f"warning: {warning}")
    print_weights(fields["weights"])
    there = [side for side in sides.values() if side is not None]
    if not there:
        return
    out.print()
    out.print("Utility and cost: of precision more is better, of everything else less")
    out.print(_table("figure", _figures(sides)))
    drawn = "drawn queries" if fields["workload"]["drawn"] else "queries of the spec"
    out.print(f"query error: over {fields['workload']['queries']:,} {drawn} (search.workload)")
    guarantees = []
    for i, entry in enumerate(there[0]["tightest"]):
        reached = [NONE if side is None else reached_of(side["tightest"][i]) for side in sides.values()]
        guarantees.append([f"{model_of(entry)}: {requested_of(entry)}", *reached])
    out.print()
    out.print("Tightest values: what each of the two reaches of what is asked")
    out.print(_table("asked", guarantees))
    columns = []
    for i, entry in enumerate(there[0]["attributes"]):
        seen = [NONE if side is None else side["attributes"][i]["words"] or NONE for side in sides.values()]
        columns.append([entry["attribute"], *seen])
    out.print()
    out.print("What readers see, by share of the published rows")
    out.print(_table("column", columns))


def _figures(sides: dict[str, Any]) -> Iterable[list[str]]:
    def line(name: str, values: Iterable[Any]) -> list[str]:
        return [name, *map(shown, values)]

    both = list(sides.values())
    metrics = next(side["metrics"] for side in both if side is not None)
    yield line("published blocks", (side and side["blocks"] for side in both))
    yield line("suppressed rows", (side and side["suppressed"] for side in both))
    for name in metrics:
        yield line(name.replace("_", " "), (side and side["metrics"][name] for side in both))
    yield line("seconds", (side and side["seconds"] for side in both))
    yield line("statements", (side and side["statements"] for side in both))


def _table(of: str, rows: Iterable[list[str]]) -> RenderableType:
    return table("", [of, *TITLES.values()], list(rows))
