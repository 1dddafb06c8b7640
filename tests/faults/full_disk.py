"""Releases on a disk that is nearly full: every amount of free space, then the same with room again.

    python -m tests.faults.full_disk --step 0.1 --most 6 --report report.json

A file system of limited size holds the spec's folder: the private folder and the release file; the source is elsewhere.
For each amount the first release is made with room, the source changes, the disk is filled but for that amount, and
the job runs twice, as cron would, the second time with as much room or less; then there is room again, and it runs once
more. Readers must have one whole checked
version throughout, in the same bytes while no run has published; a run that fails must say that there is no room; the
run with room must publish what the source holds, with everything verified and nothing left behind. A run that the
database library aborts counts as a kill. Exit status 1 unless all of this held.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults.nursery import Nursery
from faults.small_disk import MB, SmallDisk, run_inside
from qblock.ledger.stores import store_of
from qblock.release.verify import verify
from qblock.spec import load_spec

SIZE = 64 * MB
PEOPLE = 600
SHARES = (10, 7, 4, 1, 8, 5, 2, 9, 6, 3)
"""Tenths of the amount that are left for the second run, which finds what the first one left: by turns."""
ZIPS = ("13053", "13068", "14853", "14850")
DISEASES = ("cancer", "flu", "heart", "viral", "asthma")
ROWS = "SELECT zip, age, disease FROM published.people"
NO_ROOM = re.compile(r"no room|disk is full|make room")
FOREIGN = re.compile(r"internal error|Traceback|terminate called")


@dataclass
class Report:
    """What happened. All but the counts has to be empty; statuses are of the runs on the full disk."""

    joint: str
    amounts: int = 0
    runs: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    aborts: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        return {
            "joint": self.joint,
            "amounts": self.amounts,
            "runs": self.runs,
            "statuses": dict(self.statuses),
            "aborts": len(self.aborts),
            "aborts_at": self.aborts,
            "messages": dict(self.messages),
            "problems": self.problems,
        }


class Sweep:
    """A job on a small disk, with what every amount begins from: the first release, and a source that has changed."""

    def __init__(self, disk: SmallDisk, outside: Path, nursery: Nursery, joint: str, people: int) -> None:
        self.disk, self.nursery = disk, nursery
        self.source, self.output = outside / "warehouse.duckdb", outside / "output.txt"
        self.template = outside / "template"
        self.folder = disk.folder / "job"
        self.folder.mkdir()
        self.report = Report(joint)
        self.path = self.folder / "spec.yaml"
        self.target = self.folder / "release.duckdb"
        settings = _settings(self.source, self.target, joint)
        self.path.write_text(yaml.safe_dump(settings, sort_keys=False), "utf-8")
        self.people = _people(0, people)
        self._write()
        if self.run() != 0:
            raise RuntimeError(f"the first release failed: {self.output.read_text()}")
        self.first = self.rows()
        self.people += _people(people, people + people // 10)
        self._write()
        shutil.copytree(self.folder, self.template, symlinks=True)

    def run(self, *more: str) -> int:
        return self.nursery.wait(self.nursery.start(["release", str(self.path), "--json", *more], self.output))

    def rows(self) -> Counter[tuple[Any, ...]]:
        with duckdb.connect(str(self.target), read_only=True, config={"threads": 1}) as connection:
            return Counter(connection.execute(ROWS).fetchall())

    def _write(self) -> None:
        self.source.unlink(missing_ok=True)
        with duckdb.connect(str(self.source)) as connection:
            connection.execute("CREATE TABLE people (name TEXT, zip TEXT, age BIGINT, disease TEXT)")
            columns = [pa.array(values) for values in zip(*self.people, strict=True)]
            connection.register("given", pa.table(columns, names=["name", "zip", "age", "disease"]))
            connection.execute("INSERT INTO people SELECT * FROM given")

    def amount(self, free: int) -> None:
        """One amount of free space, in bytes."""
        shutil.rmtree(self.folder)
        shutil.copytree(self.template, self.folder, symlinks=True)
        share = SHARES[self.report.amounts % len(SHARES)]
        self.report.amounts += 1
        published = False
        for number, left in enumerate((free, free * share // 10), 1):
            self.disk.fill(left)
            at = f"{free / MB:.2f} MB free, run {number} with {left / MB:.2f} MB"
            before = _bytes(self.target)
            status = self.run()
            said = self.output.read_text("utf-8", "replace")
            self._note(at, status, said)
            self.disk.make_room()
            same = _bytes(self.target) == before
            if status not in (0, -6) and not same:
                self._problem(at, f"exit status {status}, and readers have another file")
            published |= not same
            self._readers(at, whole=published)
            if status == 0:
                break
        self._with_room(f"{free / MB:.2f} MB free")

    def _note(self, at: str, status: int, said: str) -> None:
        self.report.runs += 1
        self.report.statuses[str(status)] += 1
        if status == 0:
            return
        # The message is the last line, but for an answer that a buffer held; a path or a number in it would make each
        # another one.
        lines = said.strip().splitlines() or [""]
        last = next((line for line in reversed(lines) if line.startswith("qblock: ")), lines[-1])
        last = last.replace(str(self.folder), ".")
        self.report.messages[re.sub(r"[\d.]+ [kM]B", "N MB", last)] += 1
        if status == -6:
            self.report.aborts.append(f"{at}: {last}"[:300])
        elif status != 1 or not NO_ROOM.search(said) or FOREIGN.search(said):
            self._problem(at, f"exit status {status}: {said[-500:]}")

    def _readers(self, at: str, *, whole: bool) -> None:
        try:
            rows = self.rows()
        except duckdb.Error as error:
            self._problem(at, f"readers cannot read: {type(error).__name__}: {error}")
            return
        if whole and sum(rows.values()) != len(self.people):
            self._problem(at, "readers see neither the version before nor the one that was published")
        if not whole and rows != self.first:
            self._problem(at, "readers do not see the version before")

    def _with_room(self, at: str) -> None:
        status = self.run()
        said = self.output.read_text("utf-8", "replace")
        if status != 0:
            self._problem(f"{at}, then room", f"exit status {status}: {said[-500:]}")
            return
        if Counter(row[2] for row in self.rows().elements()) != Counter(p[3] for p in self.people):
            self._problem(f"{at}, then room", "what is published is not what the source holds")
        spec = load_spec(self.path)
        for problem in verify(spec).problems:
            self._problem(f"{at}, then room", problem)
        with store_of(spec).read() as reader:
            for problem in [*reader.verify_chain("people"), *reader.verify_pointer("people")]:
                self._problem(f"{at}, then room", problem)
        for name in self._leftovers():
            self._problem(f"{at}, then room", f"left behind: {name}")

    def _leftovers(self) -> Iterable[str]:
        folder = self.folder / "qblock"
        wanted = {"spec.yaml", "release.duckdb"}
        kept = {".gitignore", ".lock", "people.lock", "ledger.sqlite", "crosswalk.duckdb"}
        yield from (p.name for p in self.folder.iterdir() if p.is_file() and p.name not in wanted)
        yield from (p.name for p in folder.iterdir() if p.is_file() and p.name not in kept)
        versions = folder / "versions" / "people"
        yield from (p.name for p in versions.iterdir() if not re.fullmatch(r"v\d+\.duckdb|\.gitignore", p.name))

    def _problem(self, at: str, what: str) -> None:
        self.report.problems.append(f"{at}: {what}")


def _bytes(file: Path) -> str:
    wal = file.with_name(f"{file.name}.wal")
    return hashlib.sha256(file.read_bytes()).hexdigest() + (" with a .wal" if wal.exists() else "")


def _people(start: int, end: int) -> list[tuple[str, str, int, str]]:
    return [(f"person {i}", ZIPS[i % 4], 20 + i * 7 % 40, DISEASES[i % 5]) for i in range(start, end)]


def _settings(source: Path, target: Path, joint: str) -> dict[str, Any]:
    together = {} if joint == "none" else {"entity": "name"}
    return {
        "version": 1,
        "release": "people",
        "source": {"url": f"duckdb:///{source}", "table": "people"},
        "attributes": {
            "name": "identifying",
            "zip": {"role": "quasi_identifier", "hierarchy": "suppress"},
            "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 20], "start": 0}},
            "disease": "sensitive",
        },
        **together,
        "privacy": [{"k_anonymity": {"k": 3}}, {"distinct_l_diversity": {"l": 2}}],
        "search": {"node": {"zip": 1, "age": 2}},
        "versions": {"joint": joint, "keep": 2, "cohort": "auto"},
        "publish": {"schema": "published", "view": "people", "url": f"duckdb:///{target}"},
    }


def sweep(amounts: Sequence[int], joint: str, folder: Path, people: int = PEOPLE) -> Report:
    """All amounts of free space, in bytes; within a namespace where this process may mount."""
    disk = SmallDisk(folder / "disk", SIZE)
    try:
        with Nursery() as nursery:
            found = Sweep(disk, folder, nursery, joint, people)
            for free in amounts:
                found.amount(free)
                print(f"{free / MB:.2f} MB: {dict(found.report.statuses)}", file=sys.stderr, flush=True)
            return found.report
    finally:
        disk.unmount()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step", type=float, default=0.1, help="MB between two amounts")
    parser.add_argument("--least", type=float, default=0, help="MB of the first amount")
    parser.add_argument("--most", type=float, default=8, help="MB of the last amount")
    parser.add_argument("--at", type=float, action="append", help="these amounts, in MB, in place of all")
    parser.add_argument("--joint", choices=["none", "episodes", "both"], default="both")
    parser.add_argument("--people", type=int, default=PEOPLE)
    parser.add_argument("--report", type=Path, help="where to write the report, which is printed too")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.inside:
        try:
            done = run_inside("faults.full_disk", [*sys.argv[1:], "--inside"])
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 2
        print(done.stdout, end="")
        return done.returncode
    number = round((given.most - given.least) / given.step) + 1
    steps = given.at or [given.least + step * given.step for step in range(number)]
    reports = []
    for joint in ("none", "episodes") if given.joint == "both" else (given.joint,):
        with tempfile.TemporaryDirectory(prefix="qblock-disk-", dir=os.environ.get("TMPDIR")) as folder:
            reports.append(sweep([round(step * MB) for step in steps], joint, Path(folder), given.people))
    text = json.dumps([report.to_json() for report in reports], indent=2)
    print(text)
    if given.report:
        given.report.write_text(text + "\n", "utf-8")
    return 0 if all(report.clean for report in reports) else 1


if __name__ == "__main__":
    sys.exit(main())
