"""The table of figures: which questions are its rows, where their figures are kept, and how cost grows."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from benchmarks import job
from benchmarks.tables import MILLIONS

KEPT = Path(__file__).with_name("figures.json")
"""The figures that docs/performance.md shows."""
MIB = 1 << 20
LEAST_UNIT = 0.01
"""Seconds: a GROUP BY that takes less is no unit."""
Result = Mapping[str, Any]
SEARCHES = (
    "retail-k6",
    "retail-entropy6",
    "survey-k5",
    "survey-t0.2",
    "survey-k5-suppress-best",
    "retail-k6-postgresql",
)
MAPS = ("retail-k6-map", "retail-entropy6-map", "survey-k5-map")
GROWTH = {
    "a search, DuckDB": "retail-{}m-k6-process",
    "a map, DuckDB": "retail-{}m-k6-map-process",
    "a search, PostgreSQL": "retail-{}m-k6-postgresql-process",
}
"""What grows, and the name of its question for so many million rows."""
ROWS = (
    *(f"{name}-process" for name in (*SEARCHES, *MAPS)),
    "census-entropy6-process",
    "tiny-k2-process",
    *job.RUNS,
    *(name.format(millions) for name in GROWTH.values() for millions in MILLIONS),
)
IN_MEMORY = {
    "retail-k6-process": 26,
    "retail-entropy6-process": 53,
    "survey-k5-process": 30,
    "survey-t0.2-process": 20,
    "survey-k5-suppress-best-process": 640,
}
"""u of the best in-memory tool that is known, for one best node of tables of the same shapes on two processors."""
FIGURES = ("question", "status", "rows", "runs", "unit", "seconds", "cpu", "u", "cu", "peak memory", "others", "digest")
HEAD = ("question", "rows", "s", "u", "CPU s", "cu", "peak MB", "runs", "others", "in memory, u")
GROWTH_HEAD = (
    "what",
    *(f"CPU s, {m} M rows" for m in MILLIONS),
    "exponent",
    *(f"MB, {m} M" for m in MILLIONS),
    "exponent",
)


def kept(path: Path = KEPT) -> list[dict[str, Any]]:
    """The figures of a file, or none where there is no file."""
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["results"] if path.exists() else []
    return found


def keep(result: Result, path: Path = KEPT) -> None:
    """Put a result into the file, in place of an older one of the same question."""
    found = {older["question"]: older for older in kept(path)}
    where = {
        "date": time.strftime("%Y-%m-%d"),
        "duckdb": duckdb.__version__,
        "python": platform.python_version(),
        "processors": os.cpu_count(),
    }
    found[result["question"]] = {name: result[name] for name in FIGURES if name in result} | {"where": where}
    ordered = [found[name] for name in ROWS if name in found]
    path.write_text(json.dumps({"results": ordered}, indent=1) + "\n", "utf-8")


def text(results: Sequence[Result]) -> str:
    """All of it, as it stands on the page: where it was measured, the table, and how cost grows."""
    lines = [row(result) for result in results if result["question"] in ROWS]
    return "\n\n".join((places(results), table(HEAD, lines), table(GROWTH_HEAD, growth(results))))


def places(results: Iterable[Result]) -> str:
    """The versions and the days, of which there are several where rows were measured anew."""
    where = [result["where"] for result in results]
    said = {key: ", ".join(sorted({str(place[key]) for place in where})) for key in where[0]}
    return f"{said['processors']} processors, DuckDB {said['duckdb']}, Python {said['python']}; {said['date']}."


def row(result: Result) -> list[str]:
    name, rows = f"`{result['question']}`", f"{result['rows']:,}" if "rows" in result else ""
    published = str(IN_MEMORY.get(result["question"], ""))
    memory = f"{result['peak memory'] / MIB:,.0f}" if "peak memory" in result else ""
    others = f"{result['others']:.1f}" if "others" in result else ""
    if result["status"] != "ok":
        cpu = number(result["cpu"]) if "cpu" in result else ""
        return [name, rows, result["status"], "", cpu, "", memory, "1", others, published]
    units = [number(result[unit]) if result["unit"]["seconds"] >= LEAST_UNIT else "" for unit in ("u", "cu")]
    seconds, cpu = number(result["seconds"]), number(result["cpu"])
    return [name, rows, seconds, units[0], cpu, units[1], memory, str(result["runs"]), others, published]


def growth(results: Iterable[Result]) -> list[list[str]]:
    """A line for each of what grows: CPU seconds and memory at each size, with the exponents."""
    found = {result["question"]: result for result in results if result["status"] == "ok"}
    lines = []
    for what, name in GROWTH.items():
        line = [what]
        for figure, scale in (("cpu", 1), ("peak memory", MIB)):
            at = {m: found[name.format(m)][figure] / scale for m in MILLIONS if name.format(m) in found}
            line += [number(at[m]) if m in at else "not finished" for m in MILLIONS]
            line.append(f"{exponent(at):.2f}" if len(at) > 1 else "")
        lines.append(line)
    return lines


def exponent(at: Mapping[int, float]) -> float:
    """The slope of the least-squares line through the logarithms: what is there grows with this power."""
    return statistics.linear_regression([math.log(x) for x in at], [math.log(y) for y in at.values()]).slope


def number(value: float) -> str:
    """Two decimals of what is less than 1, one of what is less than 100."""
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Markdown whose columns stand below each other: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    padded = [
        [cells[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))]
        for cells in (head, rule, *lines)
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in padded)
