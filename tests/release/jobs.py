"""A release job on each engine: a table of people, a spec beside it, and what readers see."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
import yaml
from attached import duckdb_file
from engines import create_table, database
from spark_tables import spark_database_of

from qblock.engines.quoting import quote
from qblock.release.apply import release
from qblock.release.log import Reporter
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from qblock.releases import Release
from qblock.results.release import Published
from qblock.spec import Spec, load_spec
from release.first import FirstRuns

DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
PEOPLE: dict[str, list[Any]] = {
    "name": [f"person {i}" for i in range(12)],
    "zip": ["13053", "13068", "13068", "13053", "14853", "14853", "14850", "14850", "13053", "13053", "13068", "13068"],
    "age": [28, 29, 21, 23, 50, 55, 47, 49, 31, 37, 36, 35],
    "disease": [
        "heart",
        "heart",
        "viral",
        "viral",
        "cancer",
        "heart",
        "viral",
        "viral",
        "cancer",
        "viral",
        "flu",
        "heart",
    ],
    "ward": ["A", "B", "A", "B", "A", "B", "A", "B", "A", "B", "A", "B"],
}
"""LD Figure 1, but for four sensitive values."""
ATTRIBUTES: dict[str, Any] = {
    "name": "identifying",
    "zip": {"role": "quasi_identifier", "hierarchy": {"digits": 5}},
    "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 20], "start": 0}},
    "disease": "sensitive",
    "ward": "insensitive",
}


@dataclass
class Job:
    """One release of a table: `spec` is written anew for each run from `settings`."""

    engine: str
    folder: Path
    url: str
    settings: dict[str, Any]
    changes: list[str] = field(default_factory=list, kw_only=True)
    """What was done to the source."""
    first_run: Callable[..., Published] | None = field(default=None, kw_only=True)

    @property
    def target(self) -> Path:
        return self.folder / "release.duckdb"

    def write(self) -> Path:
        """Write the spec."""
        path = self.folder / "spec.yaml"
        path.write_text(yaml.dump(self.settings, Dumper=DUMPER, sort_keys=False, allow_unicode=True), "utf-8")
        return path

    @property
    def spec(self) -> Spec:
        return load_spec(self.write())

    def set(self, **settings: Any) -> Job:
        self.settings |= settings
        return self

    def run(self, *, confirm: bool = True, log: Callable[[str], None] | None = None, **options: Any) -> Published:
        """Release. confirm: more than a fifth of so few people may go or come without anybody's saying so."""
        with pytest.MonkeyPatch.context() as patched:
            if confirm:
                patched.setattr("qblock.versions.people.ONE_IN", 0)
            return release(self.spec, reporter=Reporter(log), **options)

    def begin(self, more: Callable[[Job], object] | None = None) -> Published:
        """`run()` as the first one of a job of `make_job`: done once for the same table, spec and files, and copied.

        more: what is done after it, and copied with it: a function of a module, which leaves the spec as it is.
        """
        if self.first_run is not None:
            return self.first_run(self, more)
        result = self.run()
        if more is not None:
            more(self)
        return result

    def query(self, statement: str, url: str | None = None) -> list[tuple[Any, ...]]:
        """Ask what is published, as the owner (or as the login of another URL)."""
        if self.engine == "duckdb":
            with duckdb_file(self.target, read_only=True) as connection:
                return connection.execute(statement).fetchall()
        if self.engine == "spark":
            return spark_database_of(self.url).query(statement)
        with psycopg.connect(url or self.url) as connection:
            return connection.execute(statement).fetchall()  # type: ignore[arg-type]

    def change(self, statement: str) -> None:
        """Change the source."""
        self.changes.append(statement)
        if self.engine == "duckdb":
            with duckdb_file(self.folder / "warehouse.duckdb") as connection:
                connection.execute(statement)
            return
        if self.engine == "spark":
            spark_database_of(self.url).execute(statement)
            return
        with psycopg.connect(self.url) as connection:
            connection.execute(statement)  # type: ignore[arg-type]

    def published(self) -> list[tuple[Any, ...]]:
        """The rows of the view as they come, without what is derived of them, and of the versions."""
        publish = self.settings["publish"]
        schema, view = publish["schema"].strip('"'), publish["view"].strip('"')
        if self.engine == "spark":
            names = spark_database_of(self.url).columns(schema, view)
        else:
            columns = self.query(
                "SELECT column_name FROM information_schema.columns "
                f"WHERE table_schema = '{schema}' AND table_name = '{view}' ORDER BY ordinal_position"
            )
            names = [name for (name,) in columns]
        shown = [quote(name) for name in names if not name.endswith(DERIVED)]
        found = self.query(f"SELECT {', '.join(shown)} FROM {quote(schema)}.{quote(view)}")
        if self.engine == "spark":  # each file is sorted (tests/publish/test_spark.py), and they come in any order
            found.sort(key=lambda row: [(value is not None, str(value).encode()) for value in row])
        return found


DERIVED = ("_low", "_high", "_from", "_until", "people", "since")
MakeJob = Callable[..., Job]
CopyJob = Callable[[str, Callable[[Job], object]], Job]


def check_second_version(job: Job) -> None:
    """What follows on a first version of 36 people, 12 more having come: version 2, back to 1, an erasure, evidence."""
    second = job.run()
    assert (second.status, second.version, second.rows) == ("published", 2, 48)
    rollback(job.spec, 1)
    assert len(job.published()) == 36
    rollback(job.spec, 2)
    of_job = Release(job.write())
    assert of_job.erase(["person 1"], now=True) is not None
    assert len(job.published()) < 48
    assert not verify(job.spec).problems
    assert of_job.report().published is not None
    assert of_job.history().events


def new_job(engine: str, folder: Path, url: str, table: str = "people", **settings: Any) -> Job:
    """A job over a table that is there."""
    publish = {"schema": "published", "view": "people"}
    if engine == "duckdb":
        publish["url"] = f"duckdb:///{folder}/release.duckdb"
    if engine == "spark":
        publish |= {"path": f"{folder}/published", "readers_checked": "by operator"}
        ledger = {"url": f"sqlite:///{folder}/qblock/ledger.sqlite", "path": f"{folder}/private"}
        settings = {"private": ledger, **settings}
    return Job(
        engine,
        folder,
        url,
        {
            "version": 1,
            "release": "people",
            "source": {"url": url, "table": table},
            "attributes": ATTRIBUTES,
            "privacy": [{"k_anonymity": {"k": 3}}, {"distinct_l_diversity": {"l": 2}}],
            "publish": publish,
            **settings,
        },
    )


@pytest.fixture(scope="session")
def job_templates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, str], tuple[Job, ExitStack]]]:
    """Jobs that were run once, to be copied, by engine and name."""
    made: dict[tuple[str, str], tuple[Job, ExitStack]] = {}
    yield made
    for _, stack in made.values():
        stack.close()


@pytest.fixture
def copy_job(
    engine_name: str,
    job_templates: dict[tuple[str, str], tuple[Job, ExitStack]],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[CopyJob]:
    """`copy_job(name, build)`: a copy of a job over PEOPLE and of all that `build` left, which runs once a name."""
    with ExitStack() as stack:

        def copied(name: str, build: Callable[[Job], object]) -> Job:
            if engine_name == "spark":  # where a database cannot be copied
                made = new_job(engine_name, tmp_path, request.getfixturevalue("warehouse")("people", PEOPLE))
                build(made)
                return made
            server = request.getfixturevalue("server") if engine_name == "postgresql" else ""
            kind = server or engine_name
            if (kind, name) not in job_templates:
                folder, kept = tmp_path_factory.mktemp("template"), ExitStack()
                url = kept.enter_context(database(server)) if server else f"duckdb:///{folder}/warehouse.duckdb"
                create_table(url, "people", PEOPLE)
                first = new_job(engine_name, folder, url)
                build(first)
                job_templates[kind, name] = first, kept
            template, _ = job_templates[kind, name]
            shutil.copytree(template.folder, tmp_path, dirs_exist_ok=True)
            url = f"duckdb:///{tmp_path}/warehouse.duckdb"
            if server:
                url = stack.enter_context(database(server, sa.make_url(template.url).database or ""))
            made = new_job(engine_name, tmp_path, url)
            # A test that changes what is in them changes its own.
            settings = copy.deepcopy(template.settings)
            return made.set(**{k: v for k, v in settings.items() if k not in ("source", "publish")})

        yield copied


@pytest.fixture(scope="session")
def first_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FirstRuns]:
    """What first runs have left, to be copied."""
    made = FirstRuns(lambda: tmp_path_factory.mktemp("first"))
    yield made
    made.close()


@pytest.fixture
def make_job(
    engine_name: str,
    warehouse: Callable[..., str],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> MakeJob:
    """`make_job(columns=PEOPLE, types=None, table="people", schema=None, **settings)`: a table and its job."""

    def make(
        columns: Mapping[str, Sequence[Any]] = PEOPLE,
        types: Mapping[str, str] | None = None,
        table: str = "people",
        schema: str | None = None,
        **settings: Any,
    ) -> Job:
        url = warehouse(table, columns, types, schema)
        quoted = ".".join(f'"{part}"' for part in (schema, table) if part)
        made = new_job(engine_name, tmp_path, url, quoted, **settings)
        if engine_name == "spark":
            return made
        server = request.getfixturevalue("server") if engine_name == "postgresql" else ""
        made.first_run = lambda job, more: request.getfixturevalue("first_runs").run(
            job, server, (columns, types, quoted), more
        )
        return made

    return make


@pytest.fixture
def job(make_job: MakeJob) -> Job:
    """The job over PEOPLE."""
    return make_job()


@pytest.fixture
def released(copy_job: CopyJob) -> Job:
    """The job over PEOPLE after its first run."""
    return copy_job("released", Job.run)
