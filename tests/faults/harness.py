"""Kills the release job again and again while readers read, and counts what that did.

    python -m tests.faults.harness --engine postgresql --kills 200 --seed 1 --report report.json

First every state boundary, then by turns a random time and a random line of the release job. A run that cleans up
after a kill may be killed itself. After each kill the job is run until it succeeds; then the data change. Exit status
1 unless readers saw complete checked versions alone, in their order, no read failed and nothing was lost.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from engines import OLDEST, start_oldest

from faults.nursery import MAIN, Nursery
from faults.readers import PAUSE, Readers
from faults.stage import ELSEWHERE, IN_FILES, PRIVATE, Stage, stage

STEPS = ("CheckPrivateState", "Snapshot", "Search", "CopyVersion", "Recheck", "Publish", "Retire")
MOST_RERUNS = 20


def boundaries(engine: str) -> list[dict[str, Any]]:
    """Every state boundary, writing a version down before it is built, and the renaming on the way to `published`."""
    states = ("staged", "checked", "published", "retired")
    found: list[dict[str, Any]] = [{"record": s, "when": w} for s in states for w in ("before", "after", "committed")]
    found += [{"step": s, "when": w} for s in STEPS for w in ("before", "after")]
    found += [{"begun": "before"}, {"begun": "after"}]
    if engine in IN_FILES:
        found += [{"rename": "before"}, {"rename": "after"}]
    return found


@dataclass
class Report:
    """What the kills did. The last three have to be empty."""

    engine: str
    kills: int = 0
    kills_by_kind: dict[str, int] = field(default_factory=dict)
    reruns_killed_too: int = 0
    runs: int = 0
    ended_before_the_kill: int = 0
    reruns_needed: int = 0
    most_reruns_after_one_kill: int = 0
    versions_published: int = 0
    reads: int = 0
    boundaries_not_reached: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    failed_reads: list[str] = field(default_factory=list)
    reads_of_anything_else: list[str] = field(default_factory=list)
    rows_lost: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not (self.problems or self.failed_reads or self.reads_of_anything_else or self.rows_lost)

    def to_json(self) -> dict[str, Any]:
        shown = {name: value for name, value in asdict(self).items() if not isinstance(value, list)}
        for name in ("boundaries_not_reached", "problems", "failed_reads", "reads_of_anything_else", "rows_lost"):
            found = getattr(self, name)
            shown |= {name: len(found)} | ({f"{name}_first": found[:5]} if found else {})
        return shown


class Harness:
    """One stage, its nursery, and the report."""

    def __init__(self, play: Stage, nursery: Nursery, seed: int) -> None:
        self.play, self.nursery = play, nursery
        self.random = random.Random(seed)
        self.report = Report(play.job.engine)
        self.output = play.job.folder / "output.txt"
        self.seconds, self.lines = 1.0, 1
        self.left: set[str] = set()

    def run(self, point: dict[str, Any] | None = None, delay: float | None = None, code: str = MAIN) -> int:
        """The exit status of one run of the job, killed at a point or after a time. code: the program."""
        self.report.runs += 1
        command = ["release", str(self.play.path), "--wait", "60", "--json"]
        pid = self.nursery.start(command, self.output, point, code=code)
        if delay is not None:
            time.sleep(delay)
            os.kill(pid, signal.SIGKILL)  # it is not waited for yet, so it still has its pid
        return self.nursery.wait(pid)

    def begin(self) -> None:
        """The first versions (the very first run is killed), and how long a run takes, in seconds and in lines."""
        counted = self.play.job.folder / "lines.txt"
        self.kill("boundary", {"step": "Publish", "when": "before"})
        for point in ({"lines": str(counted)}, None):
            began = time.monotonic()
            status = self.run(point)
            self.seconds = time.monotonic() - began
            if status != 0:
                raise RuntimeError(f"a run that nobody disturbed failed: {self.output.read_text()}")
            self.succeeded()
            self.play.next_wave()
        self.lines = int(counted.read_text())
        self.play.share()

    def kill(self, kind: str, point: dict[str, Any] | None = None) -> bool:
        """One kill, and runs until one succeeds; whether the point was reached."""
        killed = self._killed(kind, point)
        needed = 0
        while True:
            self.play.check_rows()
            # A run that cleans up may be killed itself.
            if killed and needed < 3 and self.random.random() < 0.2:
                self.report.reruns_killed_too += self._killed("line", None)
                needed += 1
                continue
            status = self.run()
            needed += killed
            if status == 0:
                break
            self.report.problems.append(f"after {kind} {point}: exit status {status}: {self.output.read_text()[-400:]}")
            if needed > MOST_RERUNS:
                raise RuntimeError(f"{needed} runs after a kill did not publish: {self.report.problems[-1]}")
        self.report.reruns_needed += needed
        self.report.most_reruns_after_one_kill = max(self.report.most_reruns_after_one_kill, needed)
        self.succeeded()
        self.play.next_wave()
        return killed

    def _killed(self, kind: str, point: dict[str, Any] | None) -> bool:
        delay = None
        if kind == "time":
            delay = self.random.uniform(0, self.seconds)
        elif kind == "line":
            point = {"line": self.random.randint(1, self.lines)}
        status = self.run(point, delay)
        if status == -signal.SIGKILL:
            self.report.kills += 1
            self.report.kills_by_kind[kind] = self.report.kills_by_kind.get(kind, 0) + 1
            return True
        self.report.ended_before_the_kill += 1
        if kind == "boundary":
            self.report.boundaries_not_reached.append(str(point))
        if status != 0:
            self.report.problems.append(f"{kind} {point}: exit status {status}: {self.output.read_text()[-400:]}")
        return False

    def succeeded(self) -> None:
        """After a run that ended well: everything is as it has to be."""
        self.play.check_rows()
        self.report.problems += self.play.check_published()
        # A server may not have noticed yet that a run was killed, whose session still holds what it was building:
        # that is cleared by the run after.
        left = set(self.play.leftovers())
        self.report.problems += [f"left behind: {name}" for name in sorted(left & self.left)]
        self.left = left

    def end(self, results: list[dict[str, Any]]) -> Report:
        """Hold what readers saw against the versions that were complete and checked."""
        report, legal = self.report, self.play.legal
        if self.left:
            self.run()
            self.succeeded()
        for number, found in enumerate(results):
            report.reads += found["reads"]
            report.failed_reads += found["failed"]
            report.reads_of_anything_else += ["two reads of one transaction differ"] * found["torn"]
            report.reads_of_anything_else += [f"reader {number}: unknown rows" for d in found["seen"] if d not in legal]
            order = [legal.index(digest) for digest in found["seen"] if digest in legal]
            if order != sorted(order):
                report.reads_of_anything_else.append(f"reader {number} saw an older version again")
        report.rows_lost = list(self.play.lost)
        report.versions_published = len(legal)
        return report


def run(
    engine: str,
    kills: int,
    seed: int,
    folder: Path,
    points: list[dict[str, Any]],
    server: str | None = None,
    pause: float = PAUSE,
) -> Report:
    """Kills at these points, and at random until there were so many. pause: of the readers, in seconds."""
    with stage(engine, folder, server) as play, Nursery() as nursery:
        harness = Harness(play, nursery, seed)
        harness.begin()
        with Readers(play.job.engine, play.where, pause) as readers:
            for point in points:
                harness.kill("boundary", point)
            for kind in itertools.cycle(("time", "line")):
                if harness.report.kills >= kills:
                    break
                harness.kill(kind)
        return harness.end(readers.results)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=["duckdb", "postgresql", ELSEWHERE, PRIVATE, OLDEST], required=True)
    parser.add_argument("--kills", type=int, default=200, help="how many, those at state boundaries among them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--random-only", action="store_true", help="leave the state boundaries out")
    parser.add_argument("--report", type=Path, help="where to write the report, which is printed too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="qblock-faults-") as folder:
        server = start_oldest() if given.engine == OLDEST else None
        engine = "postgresql" if given.engine == OLDEST else given.engine
        points = [] if given.random_only else boundaries(engine)
        report = run(engine, given.kills, given.seed, Path(folder), points, server)
        report.engine = given.engine
    text = json.dumps(report.to_json(), indent=2)
    print(text)
    if given.report:
        given.report.write_text(text + "\n", "utf-8")
    return 0 if report.clean else 1


if __name__ == "__main__":
    sys.exit(main())
