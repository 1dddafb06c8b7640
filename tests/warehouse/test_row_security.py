"""Row level security hides no row from the job unnoticed (PostgreSQL)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from release.jobs import ATTRIBUTES, PEOPLE
from release.logins import OwnLogin, own_login

from qblock.cli.app import run
from qblock.errors import Refused
from qblock.publish.targets import postgresql_access as rights

pytestmark = [pytest.mark.every_postgresql, pytest.mark.handed_on]

POLICY = "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY; CREATE POLICY shown ON {table} USING ({condition})"
EVERYTHING = len(PEOPLE["zip"])


@pytest.fixture
def engine_name() -> str:
    """DuckDB has no policies."""
    return "postgresql"


@pytest.fixture
def guarded(postgresql_url: str, tmp_path: Path) -> Iterator[OwnLogin]:
    with own_login(postgresql_url, tmp_path) as made:
        made.job.set(versions={"joint": "none"})
        yield made


@pytest.fixture
def qblock(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def ran(*arguments: object) -> tuple[int, str, str]:
        capfd.readouterr()
        return (run([str(argument) for argument in arguments]), *capfd.readouterr())

    return ran


COMMANDS = ["release", "search", "plan", "audit", "init"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("condition", ["zip = '13053'", "true"])
def test_a_policy_that_applies_to_the_job_is_refused(
    guarded: OwnLogin, qblock: Callable[..., tuple[int, str, str]], command: str, condition: str, tmp_path: Path
) -> None:
    guarded.execute(POLICY.format(table="clinic.people", condition=condition))
    spec = guarded.job.write()
    arguments = ["init", guarded.job.url, "clinic.people", "--directory", tmp_path / "made"]
    status, _, err = qblock(*(arguments if command == "init" else [command, spec]))
    assert status == 3, err
    assert "row level security of table people would hide rows from the job's login" in " ".join(err.split())
    assert "BYPASSRLS" in err
    assert not (tmp_path / "made").exists()
    if command == "release":
        _, history, _ = qblock("history", spec, "--json")
        assert "refused" in history
        assert "published" not in [event["state"] for event in json.loads(history)["events"]]


ALLOWED = {
    "the login may bypass policies": ["ALTER ROLE LOGIN_ BYPASSRLS"],
    "the login owns the table": ["ALTER TABLE clinic.people OWNER TO LOGIN_"],
    "the policies are off": ["ALTER TABLE clinic.people DISABLE ROW LEVEL SECURITY"],
}


@pytest.mark.parametrize("allowed", ALLOWED)
def test_a_job_that_sees_every_row_publishes_them_all(
    guarded: OwnLogin, qblock: Callable[..., tuple[int, str, str]], allowed: str
) -> None:
    guarded.execute(POLICY.format(table="clinic.people", condition="zip = '13053'"), *ALLOWED[allowed])
    spec = guarded.job.write()
    for command in ("plan", "search", "release", "verify", "release", "audit"):
        status, _, err = qblock(command, spec)
        assert status == 0, err
    with psycopg.connect(guarded.as_role(guarded.reader)) as connection:
        assert connection.execute("SELECT count(*) FROM published.people").fetchone() == (EVERYTHING,)


def test_an_owner_whom_the_table_does_not_exempt_is_refused(
    guarded: OwnLogin, qblock: Callable[..., tuple[int, str, str]]
) -> None:
    guarded.execute(
        POLICY.format(table="clinic.people", condition="zip = '13053'"),
        "ALTER TABLE clinic.people OWNER TO LOGIN_",
        "ALTER TABLE clinic.people FORCE ROW LEVEL SECURITY",
    )
    status, _, err = qblock("release", guarded.job.write())
    assert (status, "without FORCE ROW LEVEL SECURITY" in " ".join(err.split())) == (3, True)


@pytest.mark.parametrize(("exempt", "expected"), [(True, 0), (False, 3)])
def test_a_source_view_reads_as_its_owner(
    guarded: OwnLogin, qblock: Callable[..., tuple[int, str, str]], exempt: bool, expected: int
) -> None:
    guarded.execute(
        POLICY.format(table="clinic.people", condition="zip = '13053'"),
        "CREATE VIEW clinic.seen AS SELECT * FROM clinic.people",
        "GRANT SELECT ON clinic.seen TO LOGIN_",
    )
    if not exempt:
        guarded.execute("GRANT USAGE, CREATE ON SCHEMA clinic TO LOGIN_", "ALTER VIEW clinic.seen OWNER TO LOGIN_")
    guarded.job.set(source={"url": guarded.job.url, "table": "clinic.seen"})
    spec = guarded.job.write()
    for command in ("plan", "release"):
        status, _, err = qblock(command, spec)
        assert status == expected, err
        assert ("row level security of table people" in " ".join(err.split())) == (not exempt)


OTHERS: dict[str, dict[str, Any]] = {
    "a hierarchy": {
        "attributes": {
            **ATTRIBUTES,
            "zip": {"role": "quasi_identifier", "hierarchy": {"table": "clinic.other", "levels": ["zip", "state"]}},
        }
    },
    "a population": {"privacy": [{"k_map": {"k": 2, "population": {"table": "clinic.other"}}}]},
    "a prior": {
        "privacy": [
            {
                "epsilon_privacy": {
                    "epsilon": 100,
                    "adversary": "I",
                    "stubbornness": 10,
                    "prior": {"from_table": "clinic.other", "column": "disease"},
                }
            }
        ]
    },
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("command", ["plan", "search"])
def test_the_other_tables_of_the_spec_are_seen_whole_too(
    guarded: OwnLogin, qblock: Callable[..., tuple[int, str, str]], other: str, command: str
) -> None:
    guarded.execute(
        "CREATE TABLE clinic.other AS SELECT *, 'NY' AS state FROM clinic.people",
        "GRANT SELECT ON clinic.other TO LOGIN_",
        POLICY.format(table="clinic.other", condition="zip = '13053'"),
    )
    guarded.job.set(**OTHERS[other])
    status, _, err = qblock(command, guarded.job.write())
    assert (status, "row level security of table other" in " ".join(err.split())) == (3, True), err


def test_a_reader_is_tried_with_the_policies_that_hold_for_it(
    guarded: OwnLogin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy leaves a reader some rows: to be refused them by row_security = off would prove nothing."""
    monkeypatch.setattr(rights, "ways", lambda *_: [])
    guarded.execute(
        POLICY.format(table="clinic.people", condition="zip = '13053'"),
        "ALTER ROLE LOGIN_ BYPASSRLS",
        "GRANT READER_ TO LOGIN_",
        "GRANT USAGE ON SCHEMA clinic TO READER_",
        "GRANT SELECT ON clinic.people TO READER_",
    )
    with pytest.raises(Refused, match=f"reader {guarded.reader} could read .*people.* when it was tried"):
        guarded.job.run()
