"""Several jobs on one release started at the same time, round after round: exactly one publishes.

    python -m tests.faults.crowd --engine duckdb --rounds 50 --report report.json

The data change before each round. In every other round the jobs wait for each other, and those that come later find
nothing to do; else they leave with exit status 4. Exit status 1 when a round went otherwise.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults.nursery import Nursery
from faults.stage import Stage, stage
from qblock.ledger.history import history

JOBS = 8


def one_round(play: Stage, nursery: Nursery, wait: float, jobs: int = JOBS) -> dict[str, Any]:
    """Start all jobs, and what they came to: {outcome: number}, and problems."""
    before = len(history(play.job.spec)["events"])
    outputs = [play.job.folder / f"job{number}.txt" for number in range(jobs)]
    command = ["release", str(play.path), "--wait", str(wait), "--json", "--quiet"]
    pids = [nursery.start(command, output) for output in outputs]
    outcomes: Counter[str] = Counter()
    problems = []
    for pid, output in zip(pids, outputs, strict=True):
        status, text = nursery.wait(pid), output.read_text()
        outcome = json.loads(text)["status"] if status == 0 else f"exit status {status}"
        outcomes[outcome] += 1
        if outcome not in ("published", "unchanged", "exit status 4"):
            problems.append(f"{outcome}: {text[-300:]}")
    events = history(play.job.spec)["events"][before:]
    published = [event["version"] for event in events if event["state"] == "published"]
    if outcomes["published"] != 1 or len(published) != 1:
        problems.append(f"{outcomes['published']} jobs say that they have published; the ledger: {published}")
    play.check_rows()
    return {"outcomes": outcomes, "problems": problems + play.check_published() + play.leftovers()}


def run(engine: str, rounds: int, folder: Path, server: str | None = None, jobs: int = JOBS) -> dict[str, Any]:
    """All rounds: how many, what jobs came to in rounds with and without waiting, problems, rows lost."""
    totals: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    problems: list[str] = []
    with stage(engine, folder, server) as play, Nursery() as nursery:
        for number in range(rounds):
            waiting = number % 2 == 1
            found = one_round(play, nursery, 300 if waiting else 0, jobs)
            totals[waiting] += found["outcomes"]
            problems += [f"round {number + 1}: {problem}" for problem in found["problems"]]
            play.next_wave()
        return {
            "engine": engine,
            "rounds": rounds,
            "jobs": jobs,
            "waiting": dict(totals[True]),
            "not_waiting": dict(totals[False]),
            "problems": problems,
            "rows_lost": play.lost,
        }


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=["duckdb", "postgresql"], required=True)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--report", type=Path, help="where to write the report, which is printed too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="qblock-crowd-") as folder:
        report = run(given.engine, given.rounds, Path(folder))
    text = json.dumps(report, indent=2)
    print(text)
    if given.report:
        given.report.write_text(text + "\n", "utf-8")
    return 1 if report["problems"] or report["rows_lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
