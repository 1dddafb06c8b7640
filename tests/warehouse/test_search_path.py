"""A reader who may create in a schema of the job's search path runs nothing as the job (PostgreSQL)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg
import pytest
from engines import create_table
from release.jobs import PEOPLE, Job, new_job
from release.logins import OwnLogin, own_login

from qblock.cli.app import run
from qblock.engines.postgresql import session as postgresql_session
from qblock.release.verify import verify
from warehouse.traps import READY, SPRING, calls, set_traps

pytestmark = pytest.mark.every_postgresql


@pytest.fixture
def engine_name() -> str:
    """DuckDB has no search path that others could write to."""
    return "postgresql"


@pytest.fixture
def attacked(postgresql_url: str, tmp_path: Path) -> Iterator[OwnLogin]:
    """The table is clinic.people, and the spec names it without its schema."""
    with own_login(postgresql_url, tmp_path, "people") as made:
        made.job.set(entity="name")
        yield made


PLACES: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "public and a schema named like the login": (
        [
            "GRANT CREATE ON SCHEMA public TO READER_",
            "CREATE SCHEMA LOGIN_ AUTHORIZATION READER_",
            "GRANT USAGE ON SCHEMA LOGIN_ TO PUBLIC",
            'ALTER ROLE LOGIN_ SET search_path TO "$user", public, clinic',
        ],
        ["public", "LOGIN_"],
    ),
    "a schema before pg_catalog": (
        [
            "CREATE SCHEMA early AUTHORIZATION READER_",
            "GRANT USAGE ON SCHEMA early TO PUBLIC",
            "ALTER ROLE LOGIN_ SET search_path TO early, pg_catalog, clinic",
        ],
        ["early"],
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_what_a_reader_puts_into_the_path_never_runs_as_the_job(
    attacked: OwnLogin, place: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    statements, schemas = PLACES[place]
    attacked.execute(READY, *statements)
    for schema in schemas:
        set_traps(attacked.as_role(attacked.reader), schema.replace("LOGIN_", attacked.login))
    spec = attacked.job.write()

    def qblock(*arguments: object, status: int = 0) -> str:
        capfd.readouterr()
        found = run([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        assert calls(attacked.owner) == 0, f"{arguments[0]} ran it: {err}"
        assert found == status, err
        return out

    qblock("init", attacked.job.url, "clinic.people", "--directory", tmp_path / "made")
    qblock("hierarchy", "load", spec)
    qblock("search", spec)
    notes = json.loads(qblock("plan", spec, "--json"))["notes"]
    for schema in schemas:
        named = schema.replace("LOGIN_", attacked.login)
        assert any(f"reader {attacked.reader} may create in schema {named}," in note for note in notes)
    qblock("audit", spec)
    released = json.loads(qblock("release", spec, "--json"))
    assert {note for note in notes if "may create in schema" in note} <= set(released["notes"])
    qblock("verify", spec)
    qblock("release", spec, "--force")
    qblock("rollback", spec, 1)
    qblock("history", spec)
    with psycopg.connect(attacked.as_role(attacked.reader)) as connection:
        found = connection.execute("SELECT pg_catalog.count(*) FROM published.people").fetchone()
    assert found == (released["rows"],)
    assert released["digest"] == _on_duckdb(tmp_path)
    qblock("erase", spec, "person 1", "--now", "--yes")
    qblock("erase", spec, "person 2")
    qblock("verify", spec)
    qblock("ledger", "upgrade", spec)

    # The traps are good: the same login runs them where its path is in force.
    with psycopg.connect(attacked.as_role(attacked.login)) as connection:
        connection.execute("SELECT length(CAST('a' AS varchar)) FROM event")
    assert calls(attacked.owner) > 0


@pytest.mark.parametrize("command", ["release", "search", "plan", "audit", "init", "hierarchy load"])
def test_a_view_that_stands_before_the_source_is_not_taken_for_it(
    attacked: OwnLogin, command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A view runs functions as whoever reads it."""
    attacked.execute(
        READY,
        "GRANT CREATE ON SCHEMA public TO READER_",
        "ALTER ROLE LOGIN_ SET search_path TO public, clinic",
    )
    columns = ", ".join(f"CAST('1' AS text) AS {name}" for name in PEOPLE)
    with psycopg.connect(attacked.as_role(attacked.reader)) as connection:
        connection.execute(SPRING.format(schema="public"))
        connection.execute(f"CREATE VIEW public.people AS SELECT {columns} WHERE public.spring()")
        connection.execute("GRANT SELECT ON public.people TO PUBLIC")
    arguments = [*command.split(), str(attacked.job.write())]
    if command == "init":
        arguments = ["init", attacked.job.url, "people", "--directory", str(tmp_path / "made")]
    status = run(arguments)
    err = " ".join(capfd.readouterr().err.split())
    assert calls(attacked.owner) == 0
    assert (status, "Write the one that is meant: public.people or clinic.people" in err) == (2, True), err


def _on_duckdb(folder: Path) -> str:
    """The digest of the same release on the other engine, where nobody attacks."""
    url = f"duckdb:///{folder}/other.duckdb"
    create_table(url, "people", PEOPLE)
    (folder / "duckdb").mkdir()
    found = new_job("duckdb", folder / "duckdb", url).set(entity="name").run()
    return str(found.digest)


def test_a_view_that_was_made_along_another_path_is_still_intact(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """A login named qblock had the private schema in its path, and the server shows a view's text along the path."""
    settle = postgresql_session._settle
    with monkeypatch.context() as before:
        before.setattr(
            postgresql_session, "_settle", lambda driver, url, _, info: settle(driver, url, ("qblock", "public"), info)
        )
        first = job.run()
        assert job.run().status == "unchanged"
    assert job.run().status == "unchanged"
    assert verify(job.spec).problems == ()
    columns = "zip, age, age_low, age_high, disease, ward"
    job.change(
        "CREATE OR REPLACE VIEW published.people AS SELECT * FROM published.people_before".replace(
            "published.people_before", f"(SELECT {columns} FROM qblock.v{first.version}_people) AS other"
        )
    )
    assert verify(job.spec).problems != ()
