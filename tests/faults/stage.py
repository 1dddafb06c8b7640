"""A job whose data change from run to run, so that every version can be told from every other, and what it left."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import psycopg

TESTS = Path(__file__).resolve().parents[1]
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))  # where pytest puts it; started by hand nobody does

from engines import database, start_server  # noqa: E402
from release.jobs import Job  # noqa: E402

from faults import readers  # noqa: E402
from qblock.ledger.stores import store_of  # noqa: E402
from qblock.release.verify import verify  # noqa: E402

ZIPS = ("13053", "13068", "14853", "14850")
ELSEWHERE, PRIVATE = "elsewhere", "private"
IN_FILES = ("duckdb", PRIVATE)
"""Where a release file is published."""
DISEASES = ("cancer", "flu", "heart", "viral", "asthma")


class Stage:
    """The people of one wave at a time: how many they are, their ages and diseases follow from its number.

    lost: rows of the source or the ledger found to be missing or altered so far. legal: digests of the complete checked
    versions that have been published, in order.
    """

    def __init__(self, engine: str, folder: Path, url: str) -> None:
        self.wave = 0
        self.lost: list[str] = []
        self.legal: list[str] = []
        self.job = Job("duckdb" if engine in IN_FILES else "postgresql", folder, url, _settings(engine, folder, url))
        self._source = "postgresql" if engine == "postgresql" else "duckdb"
        with self._writer() as execute:
            execute("CREATE TABLE people (name TEXT, zip TEXT, age BIGINT, disease TEXT, wave BIGINT)")
        self.path = self.job.spec.path
        self._events: list[str | None] = []
        self.next_wave()

    @property
    def where(self) -> str:
        """What readers open."""
        return str(self.job.target) if self.job.engine == "duckdb" else self.job.url

    def people(self) -> list[tuple[str, str, int, str, int]]:
        """The source's rows in this wave."""
        w = self.wave
        return [
            (f"person {i} of wave {w}", ZIPS[i % 4], 20 + (i * 7 + w) % 40, DISEASES[(i + w) % 5], w)
            for i in range(150 + w * 37 % 101)
        ]

    def next_wave(self) -> None:
        """Change the source."""
        self.wave += 1
        rows = ", ".join(map(str, self.people()))
        with self._writer() as execute:
            execute("DELETE FROM people")
            execute(f"INSERT INTO people VALUES {rows}")

    @contextmanager
    def _writer(self) -> Iterator[Any]:
        if self._source == "duckdb":
            with duckdb.connect(str(self.job.folder / "warehouse.duckdb")) as connection:
                connection.begin()
                yield connection.execute
                connection.commit()
        else:
            with psycopg.connect(self.job.url) as connection:
                yield connection.execute

    def source(self) -> list[tuple[Any, ...]]:
        """The rows of the source as they are."""
        query = "SELECT name, zip, age, disease, wave FROM people"
        if self._source == "postgresql":
            return self.job.query(query)
        with duckdb.connect(str(self.job.folder / "warehouse.duckdb"), read_only=True) as connection:
            return connection.execute(query).fetchall()

    def share(self) -> None:
        """A second view over the release, where there can be one."""
        if self.job.engine == "postgresql":
            self.job.change("CREATE SCHEMA published_too")
            self.job.change(f"CREATE VIEW published_too.waves AS {readers.WAVES}")

    def check_rows(self) -> None:
        """Source and ledger still have what they had: note what they have not in `lost`."""
        if Counter(self.source()) != Counter(self.people()):
            self.lost.append(f"wave {self.wave}: the source's rows are not what they were")
        with store_of(self.job.spec).read() as reader:
            events = [event.digest for event in reader.history("people")]
            self.lost += reader.verify_chain("people")
        if events[: len(self._events)] != self._events:
            self.lost.append(f"wave {self.wave}: events of the ledger are gone or were rewritten")
        self._events = events

    def check_published(self) -> list[str]:
        """After a run that has succeeded: what is wrong with what readers see; notes its digest as legal."""
        problems = list(verify(self.job.spec).problems)
        rows = self.job.query(readers.ROWS)
        people = self.people()
        if {row[3] for row in rows} != {self.wave} or Counter(row[2] for row in rows) != Counter(p[3] for p in people):
            problems.append(f"what is published is not wave {self.wave}")
        found = readers.digest(rows)
        if found not in self.legal:
            self.legal.append(found)
        return problems

    def leftovers(self) -> list[str]:
        """Versions and working files that are there, and whose newest event does not say that they are kept."""
        with store_of(self.job.spec).read() as reader:
            last = {event.version: event.state for event in reader.history("people")}
        kept = {version for version, state in last.items() if state in ("published", "rolled_back")}
        if self.job.engine == "postgresql":
            tables = self.job.query("SELECT relname FROM pg_class WHERE relname ~ '^v[0-9]+_people$'")
            return [name for (name,) in tables if name not in {f"v{version}_people" for version in kept}]
        folder = self.job.folder / "qblock" / "versions" / "people"
        names = {f"v{version}.duckdb" for version in kept} | {".gitignore"}
        found = [path.name for path in folder.iterdir() if path.name not in names]
        return found + [path.name for path in self.job.folder.glob(".release*")]


@contextmanager
def stage(engine: str, folder: Path, server: str | None = None) -> Iterator[Stage]:
    """A stage on an engine, from DuckDB to PostgreSQL (elsewhere), or of a release file with its ledger on a server.

    server: URL of a PostgreSQL server, one that is started where there is none.
    """
    with ExitStack() as stack:
        if engine == "duckdb":
            url = f"duckdb:///{folder}/warehouse.duckdb"
        else:
            url = stack.enter_context(database(server or start_server()))
        yield Stage(engine, folder, url)


def _settings(engine: str, folder: Path, url: str) -> dict[str, Any]:
    publish, source = {"schema": "published", "view": "people"}, url
    if engine in IN_FILES:
        publish["url"] = f"duckdb:///{folder}/release.duckdb"
    if engine != "postgresql":
        source = f"duckdb:///{folder}/warehouse.duckdb"
    if engine == ELSEWHERE:
        publish["url"] = url
    return {
        **({"private": {"url": url}} if engine == PRIVATE else {}),
        "version": 1,
        "release": "people",
        "source": {"url": source, "table": "people"},
        "attributes": {
            "name": "identifying",
            "zip": {"role": "quasi_identifier", "hierarchy": "suppress"},
            "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 20], "start": 0}},
            "disease": "sensitive",
            "wave": "insensitive",
        },
        "privacy": [{"k_anonymity": {"k": 3}}, {"distinct_l_diversity": {"l": 2}}],
        "versions": {"joint": "none", "keep": 2},
        "accept": [
            {"check": "determines", "column": "disease", "of": of, "because": "both come around"}
            for of in ("zip", "age")
        ],
        "publish": publish,
    }
