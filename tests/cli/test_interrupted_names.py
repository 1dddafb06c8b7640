"""A signal is known by the class of what is raised and an error by its SQLSTATE: names and texts say nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
import sqlalchemy as sa
from engines import create_table
from integration.sources import execute
from release.jobs import PEOPLE
from release.logins import own_login

from qblock.engines.duckdb.faults import interrupted

pytestmark = pytest.mark.either_engine

QUASI: dict[str, Any] = {"role": "quasi_identifier", "hierarchy": "suppress"}
COLUMN = "treatment_interrupted"
TABLES = ["KeyboardInterrupt", "query_canceled", "Query interrupted"]


@pytest.mark.parametrize("table", TABLES)
def test_a_fault_while_a_table_of_such_a_name_is_read_is_no_signal(
    warehouse: Callable[..., str], engine_name: str, spec: Callable[..., Path], qblock: Callable[..., Any], table: str
) -> None:
    """The value that does not fit is called like it, too."""
    url = warehouse("people", {"a": ["interrupted", "Query interrupted"], "s": ["u", "v"]})
    cast = "CAST(a AS INTEGER)"
    execute(url, f'CREATE VIEW "{table}" AS SELECT {cast} AS {COLUMN}, s FROM people')
    file = spec(url, f'"{table}"', {COLUMN: QUASI, "s": "sensitive"})
    for command in ("search", "release"):
        ran = qblock(command, file, "--quiet")
        assert (ran.status, ran.out) == (1 if engine_name == "postgresql" or command == "search" else 2, "")
        assert not ran.err.startswith(("qblock: interrupted", "qblock: terminated"))


@pytest.mark.parametrize("engine_name", ["postgresql"])
def test_a_missing_privilege_on_a_column_of_such_a_name(
    engine_name: str, postgresql_url: str, tmp_path: Path, qblock: Callable[..., Any]
) -> None:
    with own_login(postgresql_url, tmp_path) as own:
        own.execute(
            f"CREATE VIEW clinic.treatments_interrupted AS SELECT *, ward AS {COLUMN} FROM clinic.people",
            "GRANT SELECT ON clinic.treatments_interrupted TO LOGIN_",
            "ALTER VIEW clinic.treatments_interrupted SET (security_invoker = true)",
            "REVOKE SELECT ON clinic.people FROM LOGIN_",
        )
        own.job.settings["source"]["table"] = "clinic.treatments_interrupted"
        own.job.settings["attributes"] = own.job.settings["attributes"] | {COLUMN: "insensitive"}
        for command in ("search", "release"):
            ran = qblock(command, own.job.spec.path, "--quiet")
            assert (ran.status, "SQLSTATE 42501" in ran.err) == (1, True), ran.err
            assert "interrupted:" not in ran.err


@pytest.mark.parametrize("engine_name", ["postgresql"])
def test_a_statement_timeout_is_no_signal(
    engine_name: str, postgresql_url: str, spec: Callable[..., Path], qblock: Callable[..., Any]
) -> None:
    create_table(postgresql_url, "people", PEOPLE)
    execute(postgresql_url, f"CREATE VIEW slow AS SELECT zip AS {COLUMN}, disease FROM people, pg_sleep(5)")
    name = sa.make_url(postgresql_url).database
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET statement_timeout = 200")  # type: ignore[arg-type]
    ran = qblock("search", spec(postgresql_url, "slow", {COLUMN: QUASI, "disease": "sensitive"}), "--quiet")
    assert (ran.status, "SQLSTATE 57014" in ran.err) == (1, True), ran.err
    assert "a statement_timeout, or an administrator" in ran.err


def test_the_driver_is_believed_by_its_class_alone() -> None:
    text = "Query interrupted"
    caused = RuntimeError(text)
    caused.__cause__ = KeyboardInterrupt()
    assert interrupted(caused)
    assert interrupted(duckdb.InterruptException("INTERRUPT Error: Interrupted!"))
    # As of a thread that could not be started.
    assert not interrupted(RuntimeError(text))
    for class_ in (duckdb.BinderException, duckdb.ConversionException, duckdb.Error, psycopg.errors.UndefinedColumn):
        assert not interrupted(class_(f"{text} KeyboardInterrupt"))
