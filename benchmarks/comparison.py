"""Results as lines of text, and two of them side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

MIB = 1 << 20
Result = Mapping[str, Any]
FIGURES: dict[str, Callable[[Result], Any]] = {
    "seconds": lambda r: r["seconds"],
    "u": lambda r: r["u"],
    "cpu": lambda r: r["cpu"],
    "cu": lambda r: r["cu"],
    "evaluated": lambda r: r.get("evaluated"),
    "minimal": lambda r: r.get("minimal"),
    "queries": lambda r: r.get("queries"),
    "rows read": lambda r: r.get("rows read"),
    "memory MB": lambda r: r["peak memory"] / MIB,
    "opening": lambda r: r["stages"]["opening"] if "stages" in r else None,
    "search": lambda r: r["stages"]["search"] if "stages" in r else None,
    "metrics": lambda r: r["stages"]["metrics"] if "stages" in r else None,
    "unit": lambda r: r["unit"]["seconds"],
}


def line(result: Result) -> str:
    """One question's figures, in one line and one for where the time went."""
    name = f"{result['question']:33}"
    if result["status"] != "ok":
        memory = f", {result['peak memory'] / MIB:,.0f} MB" if "peak memory" in result else ""
        errors = "\n" + result["errors"] if result.get("errors") else ""
        return f"{name} {result['status']}{memory}{errors}"
    text = (
        f"{name} {result['seconds']:.2f} s = {result['u']:.1f} u; CPU {result['cpu']:.2f} s = {result['cu']:.1f} u; "
        f"{result['peak memory'] / MIB:,.0f} MB"
    )
    if "digest" in result:
        text += (
            f"; {result['evaluated']:,} of {result['nodes']:,} nodes asked, {result['minimal']:,} minimal; "
            f"{result['queries']:,} statements; {result['digest'][:12]}"
        )
    if not result.get("same each time", True):
        text += "; NOT THE SAME EACH TIME"
    if "stages" in result:
        stages = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in result["stages"].items())
        kinds = ", ".join(f"{kind} {of['seconds']:.2f} ({of['calls']:,})" for kind, of in result["statements"].items())
        text += f"\n{'':33} {stages}; in the session: {kinds}; u = {result['unit']['seconds']:.3f} s"
    return text


def beside(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Two results of --json, each question's figures with the ratio of the second to the first."""
    second = {result["question"]: result for result in after["results"]}
    lines = []
    for first in before["results"]:
        other = second.get(first["question"])
        if other is None:
            continue
        if first["status"] != "ok" or other["status"] != "ok":
            lines.append(f"{first['question']}: {first['status']}; {other['status']}")
            continue
        lines.append(f"{first['question']}: {_answers(first, other)}")
        for name, figure in FIGURES.items():
            a, b = figure(first), figure(other)
            if a is not None or b is not None:
                lines.append(f"  {name:<10} {_number(a):>14} {_number(b):>14} {_ratio(a, b):>8}")
    return "\n".join(lines)


def _answers(first: Result, second: Result) -> str:
    if "digest" not in first or "digest" not in second:
        return "answers are not compared"
    if first["digest"] == second["digest"]:
        return "the same answer"
    a, b = first.get("essence", {}), second.get("essence", {})  # the figures of the table are kept without
    return "ANOTHER ANSWER: " + (", ".join(part for part in a if a[part] != b.get(part)) or "its digest")


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


def _ratio(first: Any, second: Any) -> str:
    return f"{second / first:.3f}" if first and second is not None else ""
