"""Everything that a reader of a release can look at: relations with their rows, types and comments, and the report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import duckdb
import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from release.jobs import Job

from qblock.release import chosen as release_chosen
from qblock.release import run as release_run
from qblock.report import read as report_read
from qblock.report import read_report, rendered
from qblock.spec import load_spec

Seen = dict[str, Any]
"""What there is, by where it is."""
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


class Clock(datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz: Any = None) -> datetime:
        return NOON


@contextmanager
def same_moment() -> Iterator[None]:
    """Runs of one moment: what two runs may have of their own is when a version was made, and its stamp, which is
    random (`new_stamp`). Nothing else that readers see is left out of a comparison."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(release_chosen, "datetime", Clock)
        patched.setattr(report_read, "datetime", Clock)
        patched.setattr(release_run, "new_stamp", lambda: "0" * 32)
        yield


OF_FILE = (
    "databases",
    "schemas",
    "tables",
    "views",
    "columns",
    "constraints",
    "indexes",
    "sequences",
    "types",
    "dependencies",
)
"""What DuckDB lists of a file: `duckdb_NAME()`."""


def of_file(job: Job) -> Seen:
    """The published file: all that its catalog has, how its columns are stored, and all rows in their order."""
    seen: Seen = {}
    with duckdb.connect(str(job.target), read_only=True) as connection:

        def ask(query: str) -> list[tuple[Any, ...]]:
            return connection.execute(query).fetchall()

        for name in OF_FILE:
            columns = [row[0] for row in ask(f"DESCRIBE FROM duckdb_{name}()")]
            internal = "WHERE NOT internal" if "internal" in columns else ""
            shown = ", ".join(f'"{column}"' for column in columns if column != "path")
            seen[name] = ask(f"SELECT {shown} FROM duckdb_{name}() {internal} ORDER BY ALL")
        for schema, name in ask("SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal"):
            seen[f"stored {name}"] = ask(f"SELECT * FROM pragma_storage_info('{schema}.{name}')")
        relations = "SELECT table_schema, table_name FROM information_schema.tables ORDER BY ALL"
        for schema, name in ask(relations):
            seen[f"rows of {name}"] = ask(f'SELECT * FROM "{schema}"."{name}"')
    return seen


READABLE = """
SELECT c.oid, n.nspname, c.relname, c.relkind, c.reloptions, pg_get_viewdef(c.oid) AS definition
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f', 'S') AND c.oid >= 16384
  AND (has_table_privilege(c.oid, 'SELECT') OR (c.relkind <> 'S' AND has_any_column_privilege(c.oid, 'SELECT')))
ORDER BY n.nspname, c.relname
"""
COLUMNS = """
SELECT attnum, attname, format_type(atttypid, atttypmod), col_description(attrelid, attnum)
FROM pg_attribute WHERE attrelid = %s AND attnum > 0 ORDER BY attnum
"""
COMMENTS = """
SELECT classoid::regclass::text, objsubid, description FROM pg_description WHERE objoid >= 16384 ORDER BY 1, 2, 3
"""
"""Of all objects, the private ones included: whoever may connect may read pg_description."""
NAMES = """
SELECT n.nspname, c.relname, c.relkind, a.attname, format_type(a.atttypid, a.atttypmod)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.oid >= 16384 AND n.nspname NOT IN ('pg_toast') ORDER BY 1, 2, 4
"""
"""Of all relations and their columns, which everybody may read, too."""


def of_database(url: str) -> Seen:
    """What a login of PostgreSQL may select, with definitions, types and comments, and the names of all there is."""
    seen: Seen = {}
    with psycopg.connect(url) as connection:

        def ask(query: str, *given: Any) -> list[tuple[Any, ...]]:
            return connection.execute(query, given or None).fetchall()  # type: ignore[arg-type]

        seen["comments"], seen["names"] = ask(COMMENTS), ask(NAMES)
        for oid, schema, name, *made in ask(READABLE):
            seen[f"{schema}.{name}"] = made
            seen[f"columns of {schema}.{name}"] = ask(COLUMNS, oid)
            seen[f"rows of {schema}.{name}"] = ask(f'SELECT * FROM "{schema}"."{name}"')
    return seen


def everything(job: Job, reader: str | None = None) -> Seen:
    """All that a reader sees. reader: a role, of PostgreSQL."""
    path = job.write()
    if job.engine == "duckdb":
        seen = of_file(job)
        spec = load_spec(path)
    else:
        url = make_conninfo(job.url, user=reader)
        seen = of_database(url)
        assert any(name.startswith("rows of published.people_") for name in seen)
        before, job.settings["source"] = job.settings["source"], {**job.settings["source"], "url": as_url(job, reader)}
        try:
            spec = job.spec
        finally:
            job.settings["source"] = before
    report = read_report(spec)
    return seen | {f"report in {form}": rendered(report, form) for form in ("html", "md", "json")}


def as_url(job: Job, reader: str | None) -> str:
    """The job's URL with a reader's login."""
    import sqlalchemy as sa

    return sa.make_url(job.url).set(username=reader).render_as_string(hide_password=False)


def check_same(one: Seen, other: Seen) -> None:
    """Fail with the places where two readers see different things."""
    assert list(one) == list(other)
    assert not {name: (one[name], other[name]) for name in one if one[name] != other[name]}
