"""Failing scenarios beside those of faults/wrong.py: data that the database cannot read, and every other command."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import duckdb
from faults.wrong import ENGINES, attribute, both, change, with_
from release.jobs import Job

COLUMNS = "name, zip, age, disease, ward"


@dataclass(frozen=True)
class Scenario:
    """do: what is done to the job; command: the command line, {spec} the spec; statuses: how it may end."""

    what: str
    statuses: tuple[int, ...]
    do: Callable[[Job], object]
    command: tuple[str, ...] = ("release", "{spec}")
    engines: Sequence[str] = ENGINES


def view(columns: str, *before: str) -> Callable[[Job], object]:
    """The source becomes a view over the people, who are in people_rows then."""

    def do(job: Job) -> None:
        for statement in before:
            job.change(statement)
        job.change("ALTER TABLE people RENAME TO people_rows")
        job.change(f"CREATE VIEW people AS SELECT {columns} FROM people_rows")

    return do


def altered(job: Job) -> None:
    """The published content is changed behind the job's back."""
    if job.engine == "postgresql":
        job.change("UPDATE qblock.data_people SET disease = 'another'")
        return
    with duckdb.connect(str(job.target)) as connection:
        connection.execute("UPDATE published.people_v1 SET disease = 'another'")


def lost(job: Job) -> None:
    if job.engine == "postgresql":
        job.change("DELETE FROM qblock.reference")
        return
    with closing(sqlite3.connect(job.folder / "qblock" / "ledger.sqlite", isolation_level=None)) as connection:
        connection.execute("DELETE FROM reference")


def quasi(hierarchy: Any) -> dict[str, Any]:
    return {"role": "quasi_identifier", "hierarchy": hierarchy}


RAISES = (
    "CREATE FUNCTION tell(value text) RETURNS text LANGUAGE plpgsql VOLATILE AS "
    "$$ BEGIN RAISE EXCEPTION 'bad value %', value USING DETAIL = value, HINT = value; END $$"
)
TABLE = {"table": "zips", "levels": ["zip", "area"]}
TWICE = "CREATE TABLE zips AS SELECT zip, zip || name AS area FROM people"
CASTS = {
    "text to integer": "CAST(disease AS INTEGER)",
    "text to date": "CAST(disease AS DATE)",
    "text to timestamp": "CAST(name AS TIMESTAMP)",
    "text to boolean": "CAST(ward AS BOOLEAN)",
    "text to decimal": "CAST(zip AS DECIMAL(10, 2))",
    "number out of range": "CAST(age AS SMALLINT)",
}
CHECK = ("hierarchy", "check", "{spec}")
EXPLORE = {
    "audit": ("audit", "{spec}"),
    "compare": ("compare", "{spec}"),
    "verify": ("verify", "{spec}"),
    "rollback to no version": ("rollback", "{spec}", "7"),
    "erase nobody": ("erase", "{spec}", "nobody-of-that-name"),
    "an unknown option": ("release", "{spec}", "--frce"),
}

SCENARIOS = [
    *(
        Scenario(f"a view that casts {what}", (1,), view(f"name, zip, age, {cast} AS disease, ward"))
        for what, cast in CASTS.items()
    ),
    *(
        Scenario(
            f"a view that casts in {command[0]}",
            (1,),
            view("name, zip, age, CAST(disease AS INTEGER) AS disease, ward"),
            command,
        )
        for command in (
            ("search", "{spec}"),
            ("audit", "{spec}"),
            ("compare", "{spec}"),
            ("hierarchy", "check", "{spec}"),
        )
    ),
    Scenario(
        "a view that divides by zero",
        (1,),
        view("name, zip, age / (age - age) AS age, disease, ward"),
        engines=("postgresql",),
    ),
    Scenario(
        "a cast in a column that is not published",
        (1,),
        both(
            with_(entity="name", versions={"joint": "none"}),
            view("CAST(name AS INTEGER) AS name, zip, age, disease, ward"),
        ),
    ),
    Scenario(
        "a function that raises the value",
        (1,),
        view("name, zip, age, tell(disease) AS disease, ward", RAISES),
        engines=("postgresql",),
    ),
    Scenario(
        "a backend that is killed",
        (1,),
        view("name, zip, age, CASE WHEN pg_terminate_backend(pg_backend_pid()) THEN disease END AS disease, ward"),
        engines=("postgresql",),
    ),
    Scenario(
        "a view whose table has lost a column",
        (1, 2),
        both(
            change("ALTER TABLE people ADD COLUMN extra VARCHAR"),
            view(COLUMNS + ", extra"),
            change("ALTER TABLE people_rows DROP COLUMN extra"),
        ),
        engines=("duckdb",),
    ),
    Scenario(
        "zip became a number that its hierarchy cannot place",
        (2,),
        both(change("ALTER TABLE people ALTER COLUMN age TYPE VARCHAR"), attribute(age=quasi({"ranges": [10, 20]}))),
    ),
    Scenario(
        "uncovered values",
        (2,),
        both(
            change("CREATE TABLE zips AS SELECT zip, 'x' AS area FROM people WHERE age > 48151640"),
            attribute(zip=quasi(TABLE)),
        ),
    ),
    Scenario("a dimension table with duplicate leaves", (2,), both(change(TWICE), attribute(zip=quasi(TABLE)))),
    Scenario(
        "duplicate leaves in hierarchy check of audit",
        (2,),
        both(change(TWICE), attribute(zip=quasi(TABLE))),
        ("audit", "{spec}"),
    ),
    Scenario(
        "uncovered values in audit",
        (2,),
        attribute(disease={"role": "sensitive", "domain": ["flu", "heart"]}),
        ("audit", "{spec}"),
    ),
    Scenario(
        "a domain that names a value twice", (2,), attribute(disease={"role": "sensitive", "domain": ["flu", "flu"]})
    ),
    Scenario(
        "allowed names a value that is not there",
        (2,),
        both(
            change("DELETE FROM people WHERE disease = 'flu'"),
            with_(
                privacy=[{"pd_recursive_cl_diversity": {"c": 2, "l": 2, "allowed": ["flu"]}}],
                versions={"joint": "none"},
            ),
        ),
    ),
    Scenario("dates of a text", (2,), attribute(zip=quasi({"dates": ["month"]}))),
    Scenario("ranges of a text", (2,), attribute(zip=quasi({"ranges": [10]}))),
    Scenario("verify of altered content", (3,), altered, ("verify", "{spec}")),
    Scenario("verify without kept counts", (3,), lost, ("verify", "{spec}")),
    Scenario("rollback without kept counts", (2, 3), lost, ("rollback", "{spec}", "1")),
    *(
        Scenario(f"{what} of a table that is gone", (0, 1, 2, 3), change("DROP TABLE people"), command)
        for what, command in EXPLORE.items()
        if what != "verify"
    ),
]
JOINT = [
    Scenario(
        "a move that the joint check refuses",
        (3,),
        both(
            with_(versions={"on_refusal": "refuse"}), change("UPDATE people SET disease = 'flu' WHERE age > 48151630")
        ),
    ),
    Scenario(
        "a quasi-identifier altered from text to integer",
        (3,),
        change("ALTER TABLE people ALTER COLUMN zip TYPE INTEGER USING length(zip)"),
        engines=("postgresql",),
    ),
    Scenario(
        "a quasi-identifier altered from text to integer",
        (3,),
        change("UPDATE people SET zip = '12345'", "ALTER TABLE people ALTER COLUMN zip TYPE INTEGER"),
        engines=("duckdb",),
    ),
    Scenario("the same in search", (0, 2), change("DELETE FROM people WHERE age > 48151640"), ("search", "{spec}")),
    Scenario(
        "erase from a table that became empty",
        (1, 2, 3),
        change("DELETE FROM people"),
        ("erase", "{spec}", "person 0", "--now", "--yes"),
    ),
    Scenario("an entity that became NULL", (2,), change("UPDATE people SET name = NULL WHERE age > 48151640")),
    Scenario("entities in two rows", (2,), change("INSERT INTO people SELECT * FROM people")),
]
"""Done to a job with an entity."""
