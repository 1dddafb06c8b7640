"""A question, asked several times: what it takes, in seconds and in units, and what was answered."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from benchmarks import answers, children
from benchmarks.children import Limits
from benchmarks.clock import Clock, Taken, medians
from benchmarks.questions import Question
from benchmarks.tables import written

COMMAND = "import sys; from qblock.cli import main; sys.exit(main())"
"""What the command `qblock` does."""
ANSWERED = (0, 3)
"""Exit statuses of a search that has answered; 3 says besides that a release would stop, as it often would at tables
that are drawn."""


def measure(question: Question, spec: dict[str, Any], directory: Path, repeat: int, limits: Limits) -> dict[str, Any]:
    """The figures of a question. directory: for the spec. They say `status`, and where it is not "ok" little else."""
    path = written(spec, directory / f"{question.name}.yaml")
    clock = Clock(spec["source"]["url"])
    units, runs = units_of(path), []
    for _ in range(repeat):
        ended = (_command if question.process else _search)(path, limits, clock)
        if ended["status"] != "ok":
            return {"question": question.name, **ended}
        runs.append(ended)
        units += units_of(path)  # before and after each run, since other work on the machine comes and goes
    essences = [answers.essence(run["answer"]) for run in runs]
    last = runs[-1]
    figures = {
        "question": question.name,
        "status": "ok",
        **taken(runs, units),
        "nodes": last["answer"]["nodes_total"],
        "evaluated": last["answer"]["nodes_evaluated"],
        "satisfying": last["answer"]["satisfying"],
        "minimal": len(essences[-1]["minimal"]),
        "queries": last["answer"]["queries"],
        "essence": essences[-1],
        "digest": answers.digest(essences[-1]),
        "same each time": all(essence == essences[0] for essence in essences),
    }
    if not question.process:
        figures["stages"] = {name: statistics.median(run["stages"][name] for run in runs) for name in last["stages"]}
        for name in ("cpu of opening", "statements", "duckdb memory at the end", "leaf rows", "rows read"):
            figures[name] = last[name]
    return figures


def taken(runs: list[dict[str, Any]], units: list[Taken]) -> dict[str, Any]:
    """Medians of what runs took, in seconds and in units, with the most memory that one had."""
    seconds, cpu = medians([(run["seconds"], run["cpu"]) for run in runs])
    unit = medians(units)
    return {
        "runs": len(runs),
        "unit": dict(zip(("seconds", "cpu"), unit, strict=True)),
        "seconds": seconds,
        "cpu": cpu,
        "u": seconds / unit[0],
        "cu": cpu / unit[1],
        "peak memory": max(run["peak memory"] for run in runs),
        "others": statistics.fmean(run["others"] for run in runs),
    }


def units_of(path: Path) -> list[Taken]:
    """What the unit takes, several times."""
    units: list[Taken] = _json(children.run(["-m", "benchmarks.runner", str(path), "--unit"]))
    return units


def _search(path: Path, limits: Limits, clock: Clock) -> dict[str, Any]:
    """The search alone; a program of its own says what it takes."""
    ended = _timed(["-m", "benchmarks.runner", str(path)], limits, clock, (0,))
    return ended if ended["status"] != "ok" else {**ended, **json.loads(ended.pop("output"))}


def _command(path: Path, limits: Limits, clock: Clock) -> dict[str, Any]:
    ended = process(["search", str(path), "--json"], limits, clock, ANSWERED)
    return ended if ended["status"] != "ok" else {**ended, "answer": json.loads(ended.pop("output"))}


def process(command: list[str], limits: Limits, clock: Clock, done: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """What a command of qblock takes from its start to its end, and what it printed. done: exit statuses."""
    return _timed(["-c", COMMAND, *command], limits, clock, done)


def _timed(program: list[str], limits: Limits, clock: Clock, done: tuple[int, ...]) -> dict[str, Any]:
    served = clock.server()
    ended = children.run(program, limits)
    cpu = ended.cpu + clock.server() - served
    # How many processors other programs kept busy, on average.
    figures = {"cpu": cpu, "peak memory": ended.memory, "others": max(0.0, (ended.busy - cpu) / ended.seconds)}
    if ended.status in done:
        return {"status": "ok", "seconds": ended.seconds, **figures, "output": ended.output}
    status = "failed"
    if ended.status is None:
        most = f"within {limits.timeout:g} s" if ended.late else f"with {(limits.memory or 0) >> 20:,} MB"
        status = f"not finished {most}"
    return {"status": status, **figures, "errors": ended.errors[-2000:]}


def _json(ended: children.Ended) -> Any:
    if ended.status != 0:
        raise RuntimeError(ended.errors)
    return json.loads(ended.output)
