"""`qblock grants` and the rights that `qblock plan` lists: text, JSON, exit status, on both engines."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from release.jobs import Job
from release.logins import own_login

from cli.conftest import Ran

Qblock = Callable[..., Ran]


@pytest.mark.parametrize("engine_name", ["duckdb"])
def test_files_of_duckdb(job: Job, qblock: Qblock) -> None:
    path = job.write()
    found = qblock("grants", path, "--json")
    assert (found.status, found.json["sql"], found.json["grants"], found.json["job"]) == (0, "", [], None)
    files = {(one["for"], one["access"], Path(one["path"])) for one in found.json["files"]}
    source = job.folder / "warehouse.duckdb"
    assert files == {
        ("job", "read", path),
        ("job", "read", source),
        ("job", "write", job.folder / "qblock"),
        ("job", "write", job.folder),
        ("reader", "read", job.target),
        ("reader", "none", job.folder / "qblock"),
        ("reader", "none", source),
    }
    text = qblock("grants", path)
    assert text.status == 0
    assert "DuckDB has no GRANT" in text.out
    assert "must not read" in text.out
    for option in ("--officer", "--job"):
        wrong = qblock("grants", path, option, "auditor")
        assert (wrong.status, wrong.out) == (2, "")
        assert f"{option} auditor: DuckDB has no roles; leave it out" in wrong.err
    assert qblock("plan", path, "--json").json["missing_rights"] == []


@pytest.mark.parametrize("engine_name", ["duckdb"])
def test_files_of_a_source_that_is_files(job: Job, qblock: Qblock) -> None:
    for name in ("stays-1.csv", "stays-2.csv"):
        (job.folder / name).write_text("age\n1\n2\n3\n")
    (job.folder / "age.csv").write_text("age\n1\n2\n3\n")
    job.settings["source"] = {"file": "stays-*.csv"}
    job.settings["attributes"] = {"age": {"role": "quasi_identifier", "hierarchy": {"file": "age.csv"}}}
    job.settings["privacy"] = [{"k_anonymity": {"k": 1}}]
    found = qblock("grants", job.write(), "--json").json["files"]
    read = {Path(one["path"]).name for one in found if (one["for"], one["access"]) == ("job", "read")}
    assert read == {"spec.yaml", "age.csv", "stays-1.csv", "stays-2.csv"}
    kept = {Path(one["path"]).name for one in found if one["access"] == "none"}
    assert kept == {"qblock", "stays-1.csv", "stays-2.csv"}


def test_statements_of_postgresql(postgresql_url: str, tmp_path: Path, qblock: Qblock) -> None:
    with own_login(postgresql_url, tmp_path) as own:
        path = own.job.write()
        text = qblock("grants", path, "--officer", "auditor of ours")
        assert text.status == 0
        lines = text.out.splitlines()
        assert all(not line or line.startswith(("GRANT ", "CREATE ROLE ", "-- ")) for line in lines)
        assert 'CREATE ROLE "auditor of ours" LOGIN; -- with a password, or as pg_hba.conf asks' in lines
        assert (
            f'GRANT USAGE ON SCHEMA "clinic" TO "{own.login}"; -- the schema of a table that is read; held already'
            in lines
        )
        found = qblock("grants", path, "--officer", "auditor of ours", "--json").json
        assert found["sql"] + "\n" == text.out
        assert (found["job"], found["engine"]) == (own.login, "postgresql")
        assert found["where"] == sa.make_url(postgresql_url).database
        assert {one["for"] for one in found["grants"]} == {"job", "reader", "officer"}
        wrong = qblock("grants", path, "--officer", own.reader)
        assert (wrong.status, wrong.out) == (2, "")
        assert "name another role" in wrong.err


def test_a_plan_lists_the_rights_that_are_missing(postgresql_url: str, tmp_path: Path, qblock: Qblock) -> None:
    with own_login(postgresql_url, tmp_path) as own:
        path = own.job.write()
        assert qblock("plan", path, "--json").json["missing_rights"] == []
        assert "Missing rights" not in qblock("plan", path).out
        own.execute("REVOKE SELECT ON clinic.people FROM LOGIN_")
        (missing, unneeded) = qblock("plan", path, "--json").json["missing_rights"]
        text = qblock("plan", path)
        assert text.status == 0
        assert re.search(rf"Missing rights, .*\n    {re.escape(missing['statement'])}\n", text.out)
        assert f'("name") ON TABLE "clinic"."people" TO "{own.login}"' in unneeded["statement"]
        ran = qblock("release", path, "--quiet")
        assert ran.status == 1
        assert missing["statement"].rstrip(";") in ran.err
        assert "`qblock grants SPEC` says what each is for" in ran.err
        with psycopg.connect(postgresql_url, autocommit=True) as connection:
            connection.execute(missing["statement"])
        assert qblock("release", path, "--quiet").status == 0
