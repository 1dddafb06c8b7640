"""A source in files or DuckDB, whose release is in a database of PostgreSQL, with the private state there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from engines import database

from qblock.errors import InputError, QblockError
from qblock.publish.targets import target_of
from qblock.release.preview import preview
from qblock.release.verify import verify
from release.jobs import ATTRIBUTES, PEOPLE, Job

SHOWN: dict[str, Any] = {
    "tiny": "UTINYINT",
    "large": "HUGEINT",
    "paid": "DECIMAL(10,4)",
    "seen": "TIMESTAMPTZ",
    "second": "TIMESTAMP_S",
    "born": "DATE",
    "share": "DOUBLE",
    "here": "BOOLEAN",
    "kind": "ENUM('a', 'b,c', '')",
}
"""Columns that are published as they are, each with values that four rows or more have."""
VALUES: dict[str, list[Any]] = {
    "tiny": [0, 255, None],
    "large": [2**100, -(2**100), None],
    "paid": ["0.1", "-7.0500", None],
    "seen": ["2026-11-01 12:00:00.5+02", "1969-12-31 23:59:59Z", None],
    "second": ["2026-11-01 12:00:00", "0001-01-01 00:00:00", None],
    "born": ["0001-01-01", "9999-12-31", None],
    "share": [5e-324, "inf", -0.0],
    "here": [True, False, None],
    "kind": ["b,c", "", None],
}
WARDS = ["A\nB", "", None, 'say "x"', "\\N", "ü%s\\"]


@pytest.fixture
def elsewhere(server: str) -> Iterator[str]:
    """The URL of a database, which the job may create schemas in."""
    with database(server) as url:
        yield url


def add(connection: duckdb.DuckDBPyConnection, names: list[str], ages: list[int]) -> None:
    for i, (name, age) in enumerate(zip(names, ages, strict=True)):
        shown = [VALUES[column][i % 3] for column in SHOWN]
        row = [name, PEOPLE["zip"][i % 12], age, PEOPLE["disease"][i % 12], WARDS[i % 6], *shown]
        connection.execute(f"INSERT INTO people VALUES ({', '.join('?' * len(row))})", row)


def make(folder: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(str(folder / "warehouse.duckdb"))
    typed = ", ".join(f"{name} {type_}" for name, type_ in SHOWN.items())
    connection.execute(
        f"CREATE TABLE people (name VARCHAR, zip VARCHAR, age INTEGER, disease VARCHAR, ward VARCHAR, {typed})"
    )
    add(connection, [f"person {i}" for i in range(36)], PEOPLE["age"] * 3)
    return connection


def job_of(folder: Path, url: str | None, source: dict[str, Any] | None = None, **settings: Any) -> Job:
    """A job of that table, published at a URL of PostgreSQL, or as a release file."""
    folder.mkdir(exist_ok=True)
    if not (folder / "warehouse.duckdb").exists():
        make(folder).close()
    publish = {"schema": "published", "view": "people", "url": url or "duckdb:///release.duckdb"}
    attributes = {**ATTRIBUTES, **dict.fromkeys(SHOWN, "insensitive")}
    stated = {
        "version": 1,
        "release": "people",
        "source": source or {"url": "duckdb:///warehouse.duckdb", "table": "people"},
        "attributes": attributes,
        "privacy": [{"k_anonymity": {"k": 4}}],
        "publish": publish,
        **settings,
    }
    return Job("duckdb" if url is None else "postgresql", folder, url or "", stated)


def test_the_content_is_that_of_a_release_file(elsewhere: str, tmp_path: Path) -> None:
    job, in_a_file = job_of(tmp_path / "server", elsewhere), job_of(tmp_path / "file", None)
    first = job.run()
    assert (first.status, first.rows) == ("published", 36)
    assert first.digest == in_a_file.run().digest
    assert not verify(job.spec).problems
    asked = (
        "SELECT zip, disease, ward, tiny, CAST(large AS VARCHAR), paid, seen, second, here, kind FROM published.people"
    )
    assert sorted(map(repr, job.query(asked))) == sorted(map(repr, in_a_file.query(asked)))
    types = dict(job.query("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'people'"))
    assert {name: types[name] for name in ("tiny", "large", "paid", "second", "kind")} == {
        "tiny": "smallint",
        "large": "numeric",
        "paid": "numeric",
        "second": "timestamp without time zone",
        "kind": "text",
    }
    assert not (tmp_path / "server" / "qblock" / "ledger.sqlite").exists()


def test_plan_says_how_the_source_is_read_and_what_the_server_needs(elsewhere: str, tmp_path: Path) -> None:
    job = job_of(tmp_path, elsewhere)
    text = "\n".join(step.description for step in preview(job.spec).steps)
    assert "a read-only session, while nobody can write to the file" in text
    needs = target_of(job.spec).needs()
    assert not [right for right in needs.rights if "people" in right.statement and "published" not in right.statement]


def test_a_value_that_the_server_does_not_hold_publishes_nothing(elsewhere: str, tmp_path: Path) -> None:
    job = job_of(tmp_path, elsewhere)
    with duckdb.connect(str(tmp_path / "warehouse.duckdb")) as connection:
        connection.execute("UPDATE people SET ward = chr(0)")
    with pytest.raises(QblockError, match="not valid in its encoding"):
        job.run()
    with psycopg.connect(elsewhere) as owner:
        assert owner.execute("SELECT to_regclass('published.people')").fetchone() == (None,)


@pytest.mark.parametrize("day", ["infinity", "-infinity", "0044-03-15 (BC)", "12345-01-01"])
def test_days_far_away_arrive_as_they_are(day: str, elsewhere: str, tmp_path: Path) -> None:
    """DuckDB and the server write none of them alike: the digest is that of a release file."""
    digests = []
    for folder, url in ((tmp_path / "file", None), (tmp_path / "server", elsewhere)):
        folder.mkdir()
        job = job_of(folder, url)
        with duckdb.connect(str(folder / "warehouse.duckdb")) as connection:
            connection.execute(f"UPDATE people SET born = '{day}'::DATE, second = '{day}'::TIMESTAMP")
        digests.append(job.run().digest)
    assert digests[0] == digests[1]


def test_a_database_named_like_the_schema_is_no_ambiguity_of_duckdb(tmp_path: Path) -> None:
    job = job_of(tmp_path, "postgresql://h/published")
    assert not [warning for warning in job.spec.warnings if "DuckDB calls" in warning]


def test_nanoseconds_are_refused_before_anything_is_counted(elsewhere: str, tmp_path: Path) -> None:
    job = job_of(tmp_path, elsewhere)
    with duckdb.connect(str(tmp_path / "warehouse.duckdb")) as connection:
        connection.execute("ALTER TABLE people DROP second; ALTER TABLE people ADD second TIMESTAMP_NS")
    with pytest.raises(InputError, match=r"column second has nanoseconds .* cast it to TIMESTAMP in a view"):
        job.run()


def test_versions_of_a_release_file_are_not_forgotten(elsewhere: str, tmp_path: Path) -> None:
    job_of(tmp_path, None).run()
    job = job_of(tmp_path, elsewhere)
    with pytest.raises(InputError, match=r"readers may hold its versions.*release: people_2"):
        job.run()
    assert job.set(release="people_2").run().status == "published"
