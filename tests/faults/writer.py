"""A writer that inserts, updates and deletes in the source throughout releases on PostgreSQL.

    python -m tests.faults.writer --releases 50 --report report.json

Every transaction of the writer keeps the number of rows and how often each disease occurs, so that a release which was
not read from one snapshot shows. Every published version is verified. Exit status 1 when one was not as it has to be.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults.nursery import Nursery
from faults.stage import ZIPS, stage
from qblock.release.verify import verify

COUNTED = "SELECT disease, count(*) FROM {} GROUP BY disease"
PAUSE = 0.005


class Writer(threading.Thread):
    """Changes until it is told to stop. changes: transactions that are committed; failed: why it ended before that."""

    def __init__(self, url: str, seed: int) -> None:
        super().__init__(daemon=True)
        self.changes = 0
        self.failed: str | None = None
        self._url = url
        self._random = random.Random(seed)
        self._end = threading.Event()

    def run(self) -> None:
        try:
            with psycopg.connect(self._url, autocommit=True) as connection:
                while not self._end.wait(PAUSE):
                    with connection.transaction():
                        self._change(connection)
                    self.changes += 1
        except Exception as error:
            self.failed = f"{type(error).__name__}: {error}"

    def stop(self) -> None:
        self._end.set()
        self.join()

    def _change(self, connection: psycopg.Connection) -> None:
        # Somebody leaves and somebody with the same disease comes, one row after the other; others move.
        gone = connection.execute(
            "DELETE FROM people WHERE ctid IN (SELECT ctid FROM people ORDER BY random() LIMIT 3) "
            "RETURNING disease, wave"
        ).fetchall()
        for disease, wave in gone:
            connection.execute(
                "INSERT INTO people VALUES (%s, %s, %s, %s, %s)",
                ("somebody", self._random.choice(ZIPS), self._random.randint(20, 59), disease, wave),
            )
        connection.execute(
            "UPDATE people SET age = %s, zip = %s WHERE ctid IN (SELECT ctid FROM people ORDER BY random() LIMIT 3)",
            (self._random.randint(20, 59), self._random.choice(ZIPS)),
        )


def run(releases: int, seed: int, folder: Path, server: str | None = None) -> dict[str, Any]:
    """So many releases, and what was wrong with any."""
    problems: list[str] = []
    outcomes: Counter[str] = Counter()
    digests = set()
    with stage("postgresql", folder, server) as play, Nursery() as nursery:
        wanted = Counter(dict(play.job.query(COUNTED.format("people"))))
        writer = Writer(play.job.url, seed)
        writer.start()
        output = folder / "output.txt"
        idle = 0
        for number in range(releases):
            before = writer.changes
            status = nursery.wait(nursery.start(["release", str(play.path), "--json", "--quiet"], output))
            idle += writer.changes == before
            text = output.read_text()
            outcomes[json.loads(text)["status"] if status == 0 else f"exit status {status}"] += 1
            if status != 0:
                problems.append(f"release {number + 1}: exit status {status}: {text[-300:]}")
                continue
            checked = verify(play.job.spec)
            digests.add(checked.digest)
            problems += [f"release {number + 1}: {problem}" for problem in checked.problems]
            if Counter(dict(play.job.query(COUNTED.format("published.people")))) != wanted:
                problems.append(f"release {number + 1}: not of one snapshot")
        writer.stop()
        problems += [f"the writer failed: {writer.failed}"] if writer.failed else []
        if Counter(dict(play.job.query(COUNTED.format("people")))) != wanted:
            problems.append("the source has lost rows")
    return {
        "releases": releases,
        "outcomes": dict(outcomes),
        "different_contents": len(digests),
        "changes": writer.changes,
        "releases_without_a_change_meanwhile": idle,
        "problems": problems,
    }


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=Path, help="where to write the report, which is printed too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="qblock-writer-") as folder:
        report = run(given.releases, given.seed, Path(folder))
    text = json.dumps(report, indent=2)
    print(text)
    if given.report:
        given.report.write_text(text + "\n", "utf-8")
    return 1 if report["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
