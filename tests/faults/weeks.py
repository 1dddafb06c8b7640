"""A release that lags behind its source, killed week after week, and the same weeks without a kill.

    python -m tests.faults.weeks --engine postgresql --kills 200 --seed 1

First every state boundary, then random lines of the job. In each week people come, leave and change, so that batches
close and fail; the job is killed and run again until it succeeds. Readers must see the version before or the new one,
and what is shown of whom, who is out and what is remembered must be that of a job that nobody killed: a batch that was
decided goes with exactly its people, and nobody is tried twice. Exit status 1 unless all of this held.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import sqlalchemy as sa
from engines import database, start_server
from release.jobs import Job

from faults.nursery import Nursery
from qblock.ledger.stores import store_of
from qblock.release.verify import verify
from qblock.versions.crosswalk import open_crosswalk
from qblock.versions.people import digests_of
from qblock.versions.texts import owner_of

BLOCKS, VALUES = "qrs", "abcd"
COHORT = 4
Rows = Counter[tuple[Any, ...]]


class People:
    """Who is there in each week, as drawn: block and values by name, a letter for each row. Each week's people of one
    block leave together later, so that a batch closes in every week. several: whether some have several rows."""

    def __init__(self, seed: int, several: bool = False) -> None:
        self.random, self.several = random.Random(seed), several
        self.known = self.weeks = 0
        self.there: dict[str, tuple[str, str]] = {}
        self.cohorts: list[list[str]] = []
        for block in BLOCKS:
            self.join(block, VALUES * 16)

    def join(self, block: str, values: str) -> list[str]:
        names = [f"n{self.known + i:05}" for i in range(len(values))]
        self.known += len(values)
        self.there |= {name: (block, self._rows(value)) for name, value in zip(names, values, strict=True)}
        return names

    def _rows(self, values: str) -> str:
        return values + self.random.choice(VALUES) if self.several and self.random.random() < 0.4 else values

    def next_week(self) -> None:
        draw = self.random
        self.cohorts.append(self.join(BLOCKS[self.weeks % len(BLOCKS)], VALUES))
        self.weeks += 1
        if len(self.cohorts) > 4:
            for name in self.cohorts.pop(0):
                self.there.pop(name, None)
        if draw.random() < 0.3:
            self.join(draw.choice(BLOCKS), draw.choice(VALUES) * draw.randint(1, 4))
        block, others = draw.choice(BLOCKS), {name for cohort in self.cohorts for name in cohort}
        known = sorted(name for name, (b, _) in self.there.items() if b == block and name not in others)
        leave = draw.sample(known, min(len(known), draw.randint(0, 5)))
        for name in leave:
            del self.there[name]
        known = [name for name in known if name not in leave]
        for name in draw.sample(known, min(len(known), draw.randint(0, 5))):
            _, values = self.there[name]
            grows = self.several and draw.random() < 0.5
            self.there[name] = (block, (values if grows else "") + draw.choice(VALUES))


class Weekly:
    """One job on an engine over these people."""

    def __init__(self, engine: str, folder: Path, url: str, several: bool = False) -> None:
        publish = {"schema": "published", "view": "people"}
        if engine == "duckdb":
            publish["url"] = f"duckdb:///{folder}/release.duckdb"
        settings = {
            "version": 1,
            "release": "people",
            "source": {"url": url, "table": "people"},
            "attributes": {"block": {"role": "quasi_identifier", "hierarchy": "suppress"}, "value": "sensitive"},
            "privacy": [{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}],
            "entity": "id",
            "count": "entities" if several else "rows",
            "versions": {"on_refusal": "hold_back", "cohort": COHORT, "keep": 2},
            "publish": publish,
        }
        self.several = several
        self.job = Job(engine, folder, url, settings)
        self.job.change("CREATE TABLE people (id TEXT, block TEXT, value TEXT)")
        self.path = self.job.write()

    def write(self, people: People) -> None:
        rows = ", ".join(
            str((name, block, value)) for name, (block, values) in people.there.items() for value in values
        )
        self.job.change("DELETE FROM people")
        self.job.change(f"INSERT INTO people VALUES {rows}")
        self.job.changes.clear()

    def seen(self) -> Rows:
        """What readers see."""
        return Counter(self.job.published())

    def run_number(self) -> int:
        """Of the last run that has decided."""
        with open_crosswalk(store_of(self.job.spec), read_only=True) as crosswalk:
            t = crosswalk.tables.steady
            return int(json.loads(crosswalk.own.scalar(sa.select(t.c.state)))["run"])

    def use_run_number(self) -> None:
        """As if a run had decided nothing."""
        with open_crosswalk(store_of(self.job.spec)) as crosswalk:
            t, release = crosswalk.tables.steady, self.job.spec.release
            state = json.loads(crosswalk.own.scalar(sa.select(t.c.state)))
            state["run"] += 1
            crosswalk.write(sa.update(t).where(t.c.release == release).values(state=json.dumps(state)), release)

    def kept(self, people: People) -> dict[str, Any]:
        """What the steady job keeps, with names for digests, but for when anything was."""
        names = [f"n{i:05}" for i in range(people.known)]
        with open_crosswalk(store_of(self.job.spec)) as crosswalk:
            name_of = dict(zip(digests_of(crosswalk, names), names, strict=True))
            t, fetch = crosswalk.tables, crosswalk.own.fetch

            def named(unit: str) -> str:
                return name_of[owner_of(unit)] + unit.removeprefix(owner_of(unit))

            found: dict[str, Any] = {
                table.name: sorted(
                    str({**row, "entity": named(row["entity"]), "since": None, "version": None})
                    for row in fetch(table.select().where(table.c.release == self.job.spec.release)).to_pylist()
                )
                for table in (t.shown, t.apart, t.waiting)
            }
            state = json.loads(crosswalk.own.scalar(t.steady.select().with_only_columns(t.steady.c.state)))
        # Numbers of runs and versions, of which killed ones may have used some, and what the last run came to.
        for name in ("run", "moments", "awaits", "quiet"):
            state.pop(name, None)
        return {**found, **state}


@dataclass
class Report:
    """problems has to be empty. closed, failed: batches in all, by kind."""

    engine: str
    kills: int = 0
    weeks: int = 0
    runs: int = 0
    versions: int = 0
    closed: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)
    boundaries_not_reached: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Weeks:
    """The job that is killed, the one that is not, and the report."""

    def __init__(self, killed: Weekly, calm: Weekly, nursery: Nursery, seed: int) -> None:
        self.killed, self.calm, self.nursery = killed, calm, nursery
        self.people, self.random = People(seed, killed.several), random.Random(seed)
        self.report = Report(killed.job.engine)
        self.output = killed.job.folder / "output.txt"
        self.lines = 0

    def first(self, *, counted_later: bool) -> None:
        """The first version, without a kill, and how many lines a run has. counted_later: of the run after it, which
        random kills are like."""
        counted = self.killed.job.folder / "lines.txt"
        for point in (None, {"lines": str(counted)}) if counted_later else ({"lines": str(counted)},):
            self._write()
            if self._run(point) != 0:
                raise RuntimeError(f"a run that nobody disturbed failed: {self.output.read_text()}")
            self.calm.job.run()
            self._compare("without a kill")
            self.people.next_week()
        self.lines = int(counted.read_text())

    def _write(self) -> None:
        for one in (self.killed, self.calm):
            one.write(self.people)

    def _run(self, point: dict[str, Any] | None) -> int:
        self.report.runs += 1
        command = ["release", str(self.killed.path), "--wait", "60", "--json"]
        return self.nursery.wait(self.nursery.start(command, self.output, point))

    def week(self, point: dict[str, Any]) -> None:
        """One week whose job is killed at a point, and run until it succeeds."""
        self.report.weeks += 1
        self._write()
        before, at = self.killed.seen(), f"week {self.report.weeks}, {point}"
        self.calm.job.run()
        after = self.calm.seen()
        while (status := self._run(point)) == -signal.SIGKILL:
            self.report.kills += 1
            seen = self.killed.seen()
            if seen not in (before, after):
                self._problem(at, "readers see neither the version before nor the new one")
            if seen == after:
                # What follows is a run more.
                self.calm.job.run()
                before, after = after, self.calm.seen()
            again = self.random.random() < 0.2
            point = {"line": self.random.randint(1, self.lines)} if again else {}
        if status == 0 and point and "line" not in point:
            self.report.boundaries_not_reached.append(at)
        if status != 0:
            self._problem(at, f"exit status {status}: {self.output.read_text()[-400:]}")
        self._compare(at)
        self.people.next_week()

    def _compare(self, at: str) -> None:
        if self.killed.seen() != self.calm.seen():
            self._problem(at, "readers see another table than without the kill")
        killed, calm = self.killed.kept(self.people), self.calm.kept(self.people)
        for name, found in killed.items():
            if found != calm[name]:
                self._problem(at, f"{name} is not what it is without the kill")
        self.report.versions = killed["version"]
        self.report.closed, self.report.failed = killed["closed"], killed["failed"]
        # Leavers and changes go first by turns, and a killed run that has decided has had its turn.
        if (self.killed.run_number() - self.calm.run_number()) % 2:
            self.calm.use_run_number()

    def _problem(self, at: str, what: str) -> None:
        self.report.problems.append(f"{at}: {what}")

    def end(self) -> Report:
        self.report.problems += verify(self.killed.job.spec).problems
        return self.report


def run(
    engine: str,
    kills: int,
    seed: int,
    folder: Path,
    points: list[dict[str, Any]],
    server: str | None = None,
    several: bool = False,
) -> Report:
    """Kills at these points, a week each, and at random lines until there were so many. several: rows of somebody."""
    with ExitStack() as stack:
        jobs = []
        for name in ("killed", "calm"):
            (folder / name).mkdir()
            url = f"duckdb:///{folder / name}/warehouse.duckdb"
            if engine == "postgresql":
                url = stack.enter_context(database(server or start_server()))
            jobs.append(Weekly(engine, folder / name, url, several))
        weeks = Weeks(*jobs, stack.enter_context(Nursery()), seed)
        weeks.first(counted_later=kills > len(points))
        for point in points:
            weeks.week(point)
        while weeks.report.kills < kills:
            weeks.week({"line": weeks.random.randint(1, weeks.lines)})
        return weeks.end()


def main() -> int:
    """The command line."""
    from faults.harness import boundaries

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=["duckdb", "postgresql"], required=True)
    parser.add_argument("--kills", type=int, default=200, help="how many, those at state boundaries among them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--several", action="store_true", help="people with several rows")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="qblock-weeks-") as folder:
        points = [*boundaries(given.engine), *DECIDED]
        report = run(given.engine, given.kills, given.seed, Path(folder), points, several=given.several)
    print(json.dumps(asdict(report), indent=2))
    return 1 if report.problems or report.boundaries_not_reached else 0


DECIDED = [{"decided": "before"}, {"decided": "after"}, {"decided": "committed"}, {"crosswalk": "after"}]
"""Around keeping what was decided, in its transaction and after it, and before the version's own is committed."""


if __name__ == "__main__":
    sys.exit(main())
