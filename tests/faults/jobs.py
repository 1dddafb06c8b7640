"""Every command that changes a release, killed at random lines, and the same commands without a kill.

    python -m tests.faults.jobs --engine duckdb --kills 200 --seed 1

In each week people come, leave and change, and one of release, erase --now, rollback, ledger move and ledger rekey is
killed, and run again until it ends by itself. Then what is shown of whom, who is out and what is remembered must be
that of a job that nobody killed, the exit status as well, and `verify` finds nothing. Exit status 1 unless all of this
held.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import duckdb
import psycopg
from engines import database, start_server
from release.state import ask

from faults.nursery import Nursery
from faults.weeks import BLOCKS, VALUES, Rows, Weekly, Weeks
from qblock.ledger.stores import store_of
from qblock.release.verify import verify

COMMANDS = ("release", "erase", "rollback", "move", "rekey")
MOST_RERUNS = 5
NO_VIEW = (duckdb.Error, psycopg.errors.UndefinedTable)


@dataclass
class Report:
    """What the kills did, by command. Its lists have to be empty. stuck: those that no rerun has ended; wrong_status:
    those that some rerun has ended otherwise than without a kill."""

    engine: str
    commands: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COMMANDS, 0))
    kills: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COMMANDS, 0))
    most_kills_of_one: int = 0
    runs: int = 0
    reads: int = 0
    versions: int = 0
    stuck: list[str] = field(default_factory=list)
    wrong_status: list[str] = field(default_factory=list)
    wrong_reads: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not (self.stuck or self.wrong_status or self.wrong_reads or self.lost or self.problems)


class Jobs(Weeks):
    """The job whose commands are killed, the one whose are not, and the report."""

    def __init__(self, killed: Weekly, calm: Weekly, nursery: Nursery, seed: int) -> None:
        super().__init__(killed, calm, nursery, seed)
        self.counts = Report(killed.job.engine)
        self.moves = 0

    def step(self, name: str) -> None:
        """One week, whose command is killed at random lines."""
        self._write()
        before, events = self.killed.seen(), self._events()
        commands = [self._command(name, weekly) for weekly in (self.killed, self.calm)]
        views = [self.killed.job.settings["publish"]["view"]]
        if name == "move":
            views.append(self._rename())
        self.counts.commands[name] += 1
        at = f"week {sum(self.counts.commands.values())}, {name}"
        status, after = self._calm(commands[1])
        kills = 0
        point: dict[str, Any] = {"line": self.random.randint(1, self.lines)}
        while (ended := self._ended(commands[0], point)) == -signal.SIGKILL:
            at, kills = f"{at}, {point}", kills + 1
            seen = self._read(views)
            if seen not in (before, after):
                self.counts.wrong_reads.append(f"{at}: neither the version before nor the new one")
            if seen == after and name in ("release", "erase"):
                # What follows is a run more.
                before, (_, after) = after, self._calm(commands[1])
            point = {"line": self.random.randint(1, self.lines)} if self.random.random() < 0.4 else {}
        self.counts.kills[name] += kills
        self.counts.most_kills_of_one = max(self.counts.most_kills_of_one, kills)
        for _ in range(MOST_RERUNS):
            if ended == status:
                break
            self.counts.wrong_status.append(f"{at}: {ended} and not {status}: {self.output.read_text()[:400]}")
            ended = self._ended(commands[0], {})
        else:
            self.counts.stuck.append(at)
        self._check(at, events)
        self.people.next_week()
        if name == "erase":
            self.people.join(self.random.choice(BLOCKS), VALUES * 2)

    def _rename(self) -> str:
        """Give both specs another release and view, which is returned."""
        self.moves += 1
        view = f"people{self.moves}"
        for weekly in (self.killed, self.calm):
            weekly.job.set(release=view, publish={**weekly.job.settings["publish"], "view": view}).write()
        return view

    def _command(self, name: str, weekly: Weekly) -> list[str]:
        path = str(weekly.path)
        if name == "erase":
            who = self.people.cohorts[-1][0]
            return ["erase", path, who, "--now", "--yes", "--wait", "60", "--json"]
        if name == "rollback":
            with store_of(weekly.job.spec).read() as reader:
                release = weekly.job.settings["release"]
                older = sorted(set(reader.kept_versions(release)) - {reader.pointer(release)})
            return ["rollback", path, str(older[-1] if older else 1), "--wait", "60", "--json"]
        words = {
            "release": ["release", path],
            "move": ["ledger", "move", path, "--from", weekly.job.settings["release"]],
            "rekey": ["ledger", "rekey", path],
        }
        return [*words[name], "--wait", "60", "--json"]

    def _calm(self, command: list[str]) -> tuple[int, Rows]:
        """The command without a kill: its exit status, what readers see, and how many lines it has."""
        counted = self.calm.job.folder / "lines.txt"
        status = self._ended(command, {"lines": str(counted)})
        self.lines = int(counted.read_text())
        return status, self.calm.seen()

    def _ended(self, command: list[str], point: dict[str, Any]) -> int:
        self.counts.runs += 1
        return self.nursery.wait(self.nursery.start(command, self.output, point))

    def _read(self, views: list[str]) -> Rows | None:
        """What readers see by any of these views, the new one first."""
        job = self.killed.job
        settings = job.settings
        self.counts.reads += 1
        try:
            for view in reversed(views):
                job.settings = {**settings, "publish": {**settings["publish"], "view": view}}
                with suppress(*NO_VIEW):
                    return self.killed.seen()
            return None
        finally:
            job.settings = settings

    def _events(self) -> set[str]:
        return {digest for (digest,) in ask(self.killed.job, "ledger", "SELECT digest FROM {}event")}

    def _check(self, at: str, events: set[str]) -> None:
        """After a command that has ended: nothing is lost, and everything is as without the kill."""
        if events - self._events():
            self.counts.lost.append(f"{at}: events of the ledger")
        if self._source(self.killed) != self._source(self.calm):
            self.counts.lost.append(f"{at}: rows of the source")
        self.counts.problems += [f"{at}: {problem}" for problem in verify(self.killed.job.spec).problems]
        self.report.problems.clear()
        self._compare(at)
        self.counts.problems += self.report.problems
        self.counts.reads += 1

    def _source(self, weekly: Weekly) -> Rows:
        if weekly.job.engine == "postgresql":
            return Counter(weekly.job.query("SELECT * FROM people"))
        with duckdb.connect(str(weekly.job.folder / "warehouse.duckdb"), read_only=True) as connection:
            return Counter(connection.execute("SELECT * FROM people").fetchall())


def run(
    engine: str,
    kills: int,
    seed: int,
    folder: Path,
    server: str | None = None,
    names: tuple[str, ...] = COMMANDS,
) -> Report:
    """Kills at random lines of these commands, each a week, until there were so many."""
    with ExitStack() as stack:
        weeklies = []
        for name in ("killed", "calm"):
            (folder / name).mkdir()
            url = f"duckdb:///{folder / name}/warehouse.duckdb"
            if engine == "postgresql":
                url = stack.enter_context(database(server or start_server()))
            weeklies.append(Weekly(engine, folder / name, url))
        jobs = Jobs(*weeklies, stack.enter_context(Nursery()), seed)
        jobs.first(counted_later=True)
        left = list(names)
        while sum(jobs.counts.kills.values()) < kills and not jobs.counts.stuck:
            jobs.step(left.pop() if left else jobs.random.choice(names))
        jobs.counts.versions = jobs.report.versions
        return jobs.counts


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=["duckdb", "postgresql"], required=True)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="qblock-jobs-") as folder:
        report = run(given.engine, given.kills, given.seed, Path(folder))
    print(json.dumps(asdict(report), indent=2))
    return 0 if report.clean else 1


if __name__ == "__main__":
    sys.exit(main())
