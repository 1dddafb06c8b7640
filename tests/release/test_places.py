"""Where the source is, where readers find the release, and where private state is: each combination that is claimed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psycopg
import pytest
from engines import create_table, database

from qblock.errors import InputError, QblockError
from qblock.ledger.stores import store_of
from release.jobs import PEOPLE, Job, check_second_version, new_job

COLUMNS = {name: values * 3 for name, values in PEOPLE.items()} | {"name": [f"person {i}" for i in range(36)]}
MORE = {"name": [f"new {i}" for i in range(12)], "zip": ["13053"] * 12, "age": list(range(20, 32)),
        "disease": ["flu", "heart", "viral"] * 4, "ward": ["A"] * 12}  # fmt: skip
SOURCES = ("duckdb", "parquet", "csv", "postgresql")
PLACES = (("file", "beside"), ("file", "a file"), ("file", "a database"), ("database", "there"))
"""Where it is published, and where ledger and crosswalk are."""


@dataclass
class Cell:
    """One combination. job: as readers of its release see it; url: of the source, where that is a database."""

    source: str
    folder: Path
    job: Job
    url: str

    def write(self, columns: dict[str, list[object]]) -> None:
        """Make the source anew with these rows, as far as it can be."""
        if self.source == "postgresql":
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute("DROP TABLE IF EXISTS people")
            create_table(self.url, "people", columns)
            return
        (self.folder / "warehouse.duckdb").unlink(missing_ok=True)
        create_table(f"duckdb:///{self.folder}/warehouse.duckdb", "people", columns)
        if self.source != "duckdb":
            with duckdb.connect(str(self.folder / "warehouse.duckdb")) as connection:
                connection.execute(f"COPY people TO '{self.folder}/people.{self.source}'")


def cell_of(source: str, publish: str, private: str, folder: Path, server: str, stack: ExitStack) -> Cell:
    url = stack.enter_context(database(server)) if source == "postgresql" else f"duckdb:///{folder}/warehouse.duckdb"
    there = stack.enter_context(database(server)) if "database" in (publish, *private.split()) else ""
    job = new_job("duckdb", folder, url)
    if source in ("parquet", "csv"):
        job.settings["source"] = {"file": f"people.{source}"}
    if source == "csv":
        job.settings["source"]["types"] = {"age": "integer"}
    if publish == "database":
        job.engine, job.url = "postgresql", there
        job.settings["publish"] |= {"url": there}
    if private.startswith("a "):
        job.set(private={"url": there or "sqlite:///elsewhere/ledger.sqlite"})
    job.set(entity="name", privacy=[{"k_anonymity": {"k": 3}}], versions={"newcomers": {"within": 1, "box": 6}})
    job.set(search={"recoding": "multidimensional"})
    job.settings["attributes"] = {**job.settings["attributes"], "ward": "identifying"}
    return Cell(source, folder, job, url)


@pytest.fixture(scope="module")
def digest(tmp_path_factory: pytest.TempPathFactory) -> str | None:
    """The content digest of the first version, from DuckDB to a release file."""
    with ExitStack() as stack:
        cell = cell_of("duckdb", "file", "beside", tmp_path_factory.mktemp("plain"), "", stack)
        cell.write(COLUMNS)
        return cell.job.run().digest


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as entered:
        yield entered


@pytest.mark.parametrize(("publish", "private"), PLACES, ids=[" ".join(places) for places in PLACES])
@pytest.mark.parametrize("source", SOURCES)
def test_a_release_from_anywhere_to_anywhere(
    source: str, publish: str, private: str, tmp_path: Path, server: str, digest: str, stack: ExitStack
) -> None:
    cell = cell_of(source, publish, private, tmp_path, server, stack)
    cell.write(COLUMNS)
    job = cell.job
    assert job.run().digest == digest
    assert job.run().status == "unchanged"
    cell.write({name: [*values, *MORE[name]] for name, values in COLUMNS.items()})
    check_second_version(job)
    with store_of(job.spec).read() as reader:
        assert not reader.verify_chain("people")
    beside = [tmp_path / "qblock" / name for name in ("ledger.sqlite", "crosswalk.duckdb")]
    assert [path.exists() for path in beside] == [private == "beside"] * 2


def test_a_ledger_is_no_duckdb_file(tmp_path: Path, stack: ExitStack) -> None:
    job = cell_of("duckdb", "file", "beside", tmp_path, "", stack).job.set(private={"url": "duckdb:///ledger.duckdb"})
    with pytest.raises(InputError, match=r"write sqlite:///qblock/ledger.sqlite, or postgresql://USER@HOST/DATABASE$"):
        store_of(job.spec)


@pytest.mark.parametrize("private", ["a file", "a database"])
def test_another_private_place_does_not_know_what_readers_see(
    private: str, tmp_path: Path, server: str, stack: ExitStack
) -> None:
    cell = cell_of("duckdb", "file", private, tmp_path, server, stack)
    cell.write(COLUMNS)
    there = cell.job.settings.pop("private")
    cell.job.run()
    with pytest.raises(QblockError, match=r"shows version 1 of release people, .*ledger"):
        cell.job.set(private=there).run()
    assert len(cell.job.published()) == 36


def test_a_release_on_spark_keeps_its_private_state_elsewhere(postgresql_url: str, tmp_path: Path) -> None:
    """A Spark server holds no ledger, and nothing is published beside the source instead."""
    create_table(postgresql_url, "people", COLUMNS)
    job = new_job("postgresql", tmp_path, postgresql_url)
    job.settings["publish"] |= {"url": "sc://127.0.0.1:15002"}
    with pytest.raises(InputError, match=r"Spark cannot hold the ledger of a release; give it a database: private: "):
        job.run()
    with psycopg.connect(postgresql_url) as connection:
        assert connection.execute("SELECT to_regclass('published.people')").fetchone() == (None,)
