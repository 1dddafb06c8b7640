"""A question, asked several times: what it takes, in seconds and in units, and what was answered."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from benchmarks import answers, children
from benchmarks.clock import Taken, medians
from benchmarks.questions import Question
from benchmarks.tables import written

COMMAND = "import sys; from qblock.cli import main; sys.exit(main())"
"""What the command `qblock` does."""


def measure(
    question: Question, spec: dict[str, Any], directory: Path, repeat: int, timeout: float | None
) -> dict[str, Any]:
    """The figures of a question. directory: for the spec. They say `status`, and where it is not "ok" little else."""
    path = written(spec, directory / f"{question.name}.yaml")
    units, runs = _units(path), []
    for _ in range(repeat):
        ended = _process(path, timeout) if question.process else _search(path, timeout)
        if ended["status"] != "ok":
            return {"question": question.name, **ended}
        runs.append(ended)
        units += _units(path)  # before and after each run, since other work on the machine comes and goes
    seconds, cpu = medians([(run["seconds"], run["cpu"]) for run in runs])
    unit = medians(units)
    essences = [answers.essence(run["answer"]) for run in runs]
    last = runs[-1]
    figures = {
        "question": question.name,
        "status": "ok",
        "runs": repeat,
        "unit": dict(zip(("seconds", "cpu"), unit, strict=True)),
        "seconds": seconds,
        "cpu": cpu,
        "u": seconds / unit[0],
        "cu": cpu / unit[1],
        "nodes": last["answer"]["nodes_total"],
        "evaluated": last["answer"]["nodes_evaluated"],
        "satisfying": last["answer"]["satisfying"],
        "minimal": len(essences[-1]["minimal"]),
        "queries": last["answer"]["queries"],
        "peak memory": max(run["peak memory"] for run in runs),
        "essence": essences[-1],
        "digest": answers.digest(essences[-1]),
        "same each time": all(essence == essences[0] for essence in essences),
    }
    if not question.process:
        figures["stages"] = {name: statistics.median(run["stages"][name] for run in runs) for name in last["stages"]}
        for name in ("cpu of opening", "statements", "duckdb memory at the end", "leaf rows", "rows read"):
            figures[name] = last[name]
    return figures


def _units(path: Path) -> list[Taken]:
    """What the unit takes, several times."""
    units: list[Taken] = _json(children.run(["-m", "benchmarks.runner", str(path), "--unit"]))
    return units


def _search(path: Path, timeout: float | None) -> dict[str, Any]:
    ended = children.run(["-m", "benchmarks.runner", str(path)], timeout)
    return _not_ok(ended, timeout) or {"status": "ok", **_json(ended)}


def _process(path: Path, timeout: float | None) -> dict[str, Any]:
    ended = children.run(["-c", COMMAND, "search", str(path), "--json"], timeout)
    if failed := _not_ok(ended, timeout):
        return failed
    taken = {"seconds": ended.seconds, "cpu": ended.cpu, "peak memory": ended.memory}
    return {"status": "ok", **taken, "answer": json.loads(ended.output)}


def _not_ok(ended: children.Ended, timeout: float | None) -> dict[str, Any] | None:
    if ended.status == 0:
        return None
    status = "failed" if ended.status is not None else f"not finished within {timeout:g} s"
    return {"status": status, "cpu": ended.cpu, "peak memory": ended.memory, "errors": ended.errors[-2000:]}


def _json(ended: children.Ended) -> Any:
    if ended.status != 0:
        raise RuntimeError(ended.errors)
    return json.loads(ended.output)
