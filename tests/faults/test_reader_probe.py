"""All that a reader can see or run on PostgreSQL, as the catalog tells and by trying."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from release.jobs import Job, job, make_job  # noqa: F401

from qblock.publish.helpers import KINDS

pytestmark = pytest.mark.every_postgresql

OURS = "n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_toast%'"
RELATIONS = f"""
    SELECT n.nspname || '.' || c.relname
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE {OURS} AND has_schema_privilege(n.oid, 'USAGE') AND CASE c.relkind
        WHEN 'S' THEN has_sequence_privilege(c.oid, 'SELECT, USAGE, UPDATE')
        WHEN 'i' THEN false WHEN 'I' THEN false WHEN 'c' THEN false
        ELSE has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
            OR has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES') END
    ORDER BY 1"""
FUNCTIONS = f"""
    SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE {OURS} AND has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE') ORDER BY 1"""
SCHEMAS = f"""
    SELECT n.nspname, has_schema_privilege(n.oid, 'CREATE') FROM pg_namespace n
    WHERE {OURS} AND n.nspname NOT LIKE 'pg\\_temp%' AND has_schema_privilege(n.oid, 'USAGE, CREATE') ORDER BY 1"""
WRITES = "SELECT has_table_privilege('published.people', 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')"
STATISTICS = (
    "SELECT schemaname, tablename, attname FROM pg_stats WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
)
SPILL = "SELECT query FROM pg_stat_activity WHERE usename <> current_user AND query NOT LIKE '<insufficient%'"

TRIED = [
    "SELECT * FROM people",
    "SELECT age FROM people",
    "SELECT * FROM qblock.event",
    "SELECT * FROM qblock.guarantee",
    "SELECT * FROM qblock.reference",
    "SELECT * FROM qblock.pointer",
    "SELECT * FROM qblock.data_people",
    "SELECT * FROM qblock.v1_people",
    "SELECT * FROM qblock.v2_people",
    "SELECT stavalues1 FROM pg_statistic",
    "SELECT stxdmcv FROM pg_statistic_ext_data",
    "COPY people TO STDOUT",
    "COPY qblock.v1_people TO STDOUT",
    "CREATE VIEW published.mine AS SELECT * FROM published.people",
    "CREATE OR REPLACE VIEW published.people AS SELECT 1",
    "ALTER VIEW published.people SET (security_barrier = false)",
    "UPDATE published.people SET ward = ''",
    "INSERT INTO qblock.pointer VALUES ('people', 1)",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "SELECT pg_read_file('postgresql.conf')",
    "SELECT lo_export(1, '/dev/null')",
]


@pytest.fixture
def engine_name() -> str:
    """DuckDB has no roles."""
    return "postgresql"


@pytest.fixture
def reader(server: str, job: Job) -> Iterator[str]:  # noqa: F811
    """URL of a reader's login, after two versions with different rows; the source has been looked at by ANALYZE."""
    name = f"qblock_reader_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
    job.settings["publish"]["readers"] = [name]
    job.set(versions={"joint": "none"})
    job.run()
    job.change("UPDATE people SET ward = ward || '2'")
    job.run()
    job.change("ANALYZE")
    yield make_conninfo(job.url, user=name)
    with psycopg.connect(job.url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


VIEWS = [(f"published.{name}",) for name in sorted(["people", *(f"people_{kind}" for kind in KINDS)])]


def test_what_the_catalog_lets_a_reader_use_is_the_view(job: Job, reader: str) -> None:  # noqa: F811
    assert job.query(RELATIONS, reader) == VIEWS
    assert job.query(FUNCTIONS, reader) == []
    assert job.query(WRITES, reader) == [(False,)]
    assert job.query(SCHEMAS, reader) == [("public", False), ("published", False)]


def test_the_probe_finds_what_is_open(job: Job, reader: str) -> None:  # noqa: F811
    name = psycopg.conninfo.conninfo_to_dict(reader)["user"]
    job.change(f"GRANT SELECT (age) ON people TO {name}")
    job.change("CREATE SEQUENCE numbers")
    job.change("GRANT USAGE ON SEQUENCE numbers TO PUBLIC")
    job.change(
        "CREATE FUNCTION everybody() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*) FROM people'"
    )
    assert job.query(RELATIONS, reader) == [("public.numbers",), ("public.people",), *VIEWS]
    assert job.query(FUNCTIONS, reader) == [("everybody()",)]
    assert job.query(STATISTICS, reader) == [("public", "people", "age")]


def test_what_a_reader_tries_is_denied(job: Job, reader: str) -> None:  # noqa: F811
    allowed = []
    for statement in TRIED:
        with psycopg.connect(reader) as connection:
            try:
                connection.execute(statement)  # type: ignore[arg-type]
                allowed.append(statement)
            except psycopg.errors.InsufficientPrivilege:
                connection.rollback()
    assert allowed == []


def test_a_reader_becomes_nobody_else(job: Job, reader: str) -> None:  # noqa: F811
    roles = [name for (name,) in job.query("SELECT rolname FROM pg_roles WHERE rolname <> current_user", reader)]
    own = psycopg.conninfo.conninfo_to_dict(reader)["user"]
    tried = [name for name in roles if name != own]
    assert job.query("SELECT current_user")[0][0] in tried
    for name in tried:
        for command in ("SET ROLE {}", "SET SESSION AUTHORIZATION {}"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                job.query(sql.SQL(command).format(sql.Identifier(name)).as_string(None), reader)


def test_statistics_and_activity_show_a_reader_nothing(job: Job, reader: str) -> None:  # noqa: F811
    assert ("public", "people", "age") in job.query(STATISTICS)
    assert job.query(STATISTICS, reader) == []
    assert job.query("SELECT * FROM pg_stats_ext", reader) == []
    with psycopg.connect(job.url) as owner:
        owner.execute("SELECT 'a secret' AS query_of_the_owner")
        assert not [q for (q,) in job.query(SPILL, reader) if q]


def test_a_cheap_function_sees_the_current_version_alone(job: Job, reader: str) -> None:  # noqa: F811
    # The reader may make functions for itself, in its own temporary schema: no grant stands against that.
    with psycopg.connect(reader) as connection:
        connection.execute(
            "CREATE FUNCTION pg_temp.peek(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 "
            "AS 'BEGIN RAISE NOTICE ''%'', $1; RETURN $1 IS NULL; END'"
        )
        seen: list[str] = []
        connection.add_notice_handler(lambda notice: seen.append(notice.message_primary or ""))
        for where in (
            "pg_temp.peek(ward)",
            "pg_temp.peek(ward) AND ward LIKE 'A%'",
            "pg_temp.peek(ward) OR ward = 'A2'",
        ):
            connection.execute(f"SELECT count(*) FROM published.people WHERE {where}")  # type: ignore[arg-type]
            assert set(seen) == {"A2", "B2"}
            seen.clear()


def test_the_plan_of_a_query_shows_a_reader_no_value(job: Job, reader: str) -> None:  # noqa: F811
    plan = "\n".join(line for (line,) in job.query("EXPLAIN (ANALYZE, VERBOSE) SELECT * FROM published.people", reader))
    assert "people" in plan
    for value in ("heart", "viral", "13053", "A2"):
        assert value not in plan
