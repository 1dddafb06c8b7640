"""Weekly runs on the demo's people, each a process of its own: the first, one that publishes, and quiet ones."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.children import Limits
from benchmarks.clock import Clock
from benchmarks.measured import process, taken, units_of

PEOPLE, CHURN = 1_000_000, 0.01
RUNS = {
    "weekly-first": "published",
    "weekly-publishing": "published",
    "weekly-next": "unchanged",
    "weekly-unchanged": "unchanged",
}
"""In this order, and what each says it has done; before the second the people of a week come, leave and change."""


def measure(directory: Path, people: int, limits: Limits) -> Iterator[dict[str, Any]]:
    """The figures of each run; nothing more after one that did not do what it was asked for."""
    from benchmarks.weeks import People, prepared

    with tempfile.TemporaryDirectory(dir=directory) as folder:
        source, spec = prepared(Path(folder), None, people)
        crowd, units = People(people, 1, CHURN), units_of(spec)
        for name, status in RUNS.items():
            if name == "weekly-publishing":
                source.change(*crowd.week())
            ended = _run(spec, source.clock, limits, status)
            if ended["status"] != "ok":
                yield {"question": name, **ended}
                return
            before, units = units, units_of(spec)
            yield {"question": name, "status": "ok", "rows": ended["rows"], **taken([ended], [*before, *units])}


def _run(spec: Path, clock: Clock, limits: Limits, status: str) -> dict[str, Any]:
    result = spec.with_name("result.json")
    ended = process(["release", str(spec), "--quiet", "--result", str(result)], limits, clock)
    if ended["status"] != "ok":
        return ended
    outcome = json.loads(result.read_text("utf-8"))
    if outcome["status"] != status:
        return {"status": f"failed: {outcome['status']} instead of {status}"}
    return ended | {"rows": outcome["rows"]}
