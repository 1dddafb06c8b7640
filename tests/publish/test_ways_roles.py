"""Powers of a reader's roles, and what a reader could put in the place of what the job reads, are found and closed."""

from __future__ import annotations

import psycopg
import pytest
import sqlalchemy as sa
from release.jobs import Job

from publish.test_ways import EVERY, advice, as_role, engine_name, follow  # noqa: F401
from publish.ways import VALUE
from qblock.errors import Refused

pytestmark = [pytest.mark.every_postgresql, pytest.mark.handed_on]


def version_of(job: Job) -> int:
    return int(job.query("SELECT current_setting('server_version_num')::int / 10000")[0][0])


POWERS = {
    "superuser": (["ALTER ROLE {reader} SUPERUSER"], "is a superuser; ALTER ROLE .* NOSUPERUSER"),
    "replication": (
        ["ALTER ROLE {reader} REPLICATION"],
        "may replicate the whole database; ALTER ROLE .* NOREPLICATION",
    ),
    "a_role_with_all_data": (["GRANT pg_read_all_data TO {reader}"], 'REVOKE "pg_read_all_data" FROM "{reader}"'),
    "program": (["GRANT pg_execute_server_program TO {reader}"], 'REVOKE "pg_execute_server_program" FROM'),
    "a_role_of_a_role": (
        ["GRANT pg_read_all_data TO {staff}", "GRANT {staff} TO {reader}"],
        'REVOKE "pg_read_all_data" FROM "{staff}"',
    ),
    "a_superuser": (["ALTER ROLE {staff} SUPERUSER", "GRANT {staff} TO {reader}"], 'REVOKE "{staff}" FROM "{reader}"'),
    "the_login_of_the_job": (["GRANT postgres TO {reader}"], 'REVOKE "postgres" FROM "{reader}"'),
}


@pytest.mark.parametrize("name", POWERS)
def test_a_power_is_taken_away_by_its_advice(job: Job, roles: dict[str, str], name: str) -> None:
    statements, says = POWERS[name]
    for statement in statements:
        job.change(statement.format(**roles))
    with pytest.raises(Refused, match=says.format(**roles)):
        job.run()
    follow(job)
    assert advice(job, 0) == []
    if name == next(iter(POWERS)) or EVERY:
        assert job.run().status == "published"


def test_who_monitors_reads_what_others_write(job: Job, roles: dict[str, str]) -> None:
    job.change(f"GRANT pg_monitor TO {roles['reader']}")
    asked = ["SELECT query FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"]
    with psycopg.connect(job.url) as writing:
        writing.execute(f"UPDATE people SET disease = 'flu' WHERE name = '{VALUE}'")
        assert VALUE in as_role(job, roles["reader"], asked)
        writing.rollback()
    with pytest.raises(Refused, match="who can become pg_read_all_stats, may read the text of everybody's statements"):
        job.run()
    follow(job)
    assert job.run().status == "published"
    with psycopg.connect(job.url) as writing:
        writing.execute(f"UPDATE people SET disease = 'flu' WHERE name = '{VALUE}'")
        assert VALUE not in as_role(job, roles["reader"], asked)
        writing.rollback()


def test_a_membership_counts_by_its_options(job: Job, roles: dict[str, str]) -> None:
    """Up to PostgreSQL 15 every member can become the role."""
    if version_of(job) < 16:
        pytest.skip("memberships have options since PostgreSQL 16")
    reader, staff, owner = roles["reader"], roles["staff"], roles["owner"]
    job.change(f"GRANT SELECT ON people TO {owner}")
    reads = ["SELECT name FROM people"]
    becomes = [f"SET ROLE {owner}", *reads]
    gives = [f"GRANT {owner} TO {reader} WITH SET TRUE, INHERIT TRUE", *reads]
    for options, ways in (
        ("INHERIT FALSE, SET FALSE", {}),
        ("INHERIT TRUE, SET FALSE", {"reads"}),
        ("INHERIT FALSE, SET TRUE", {"becomes"}),
        ("INHERIT FALSE, SET FALSE, ADMIN TRUE", {"gives"}),
    ):
        job.change(f"GRANT {owner} TO {reader} WITH {options}")
        found = advice(job, 0)
        shown = {
            name
            for name, tried in (("reads", reads), ("becomes", becomes), ("gives", gives))
            if VALUE in as_role(job, reader, tried)
        }
        assert shown == set(ways), options
        assert found == ([f'REVOKE SELECT ON "public"."people" FROM "{owner}"'] if ways else []), options
        job.change(f"REVOKE {owner} FROM {reader} CASCADE")
    # A chain is no longer than its parts: what is only inherited cannot then be become.
    job.change(f"GRANT {staff} TO {reader} WITH INHERIT TRUE, SET FALSE")
    job.change(f"GRANT {owner} TO {staff} WITH INHERIT FALSE, SET TRUE")
    assert VALUE not in as_role(job, reader, becomes)
    assert advice(job, 0) == []
    assert job.run().status == "published"


def test_a_reader_who_makes_roles(job: Job, roles: dict[str, str]) -> None:
    job.change(f"ALTER ROLE {roles['reader']} CREATEROLE")
    job.change(f"GRANT SELECT ON people TO {roles['staff']}")
    given = VALUE in as_role(
        job, roles["reader"], [f"GRANT {roles['staff']} TO {roles['reader']}", "SELECT name FROM people"]
    )
    job.change(f"REVOKE {roles['staff']} FROM {roles['reader']}")
    assert given == (version_of(job) < 16)
    assert advice(job, 0) == ([f'ALTER ROLE "{roles["reader"]}" NOCREATEROLE'] if given else [])
    follow(job)
    assert job.run().status == "published"


LAB = "CREATE SCHEMA lab AUTHORIZATION {reader}"
MINE = [
    "CREATE TABLE lab.kept (name text)",
    "CREATE OR REPLACE FUNCTION lab.mine() RETURNS trigger LANGUAGE plpgsql AS "
    "'BEGIN INSERT INTO lab.kept SELECT name FROM public.people; RETURN NEW; END'",
]


def test_a_readers_function_that_the_owner_of_the_source_runs(job: Job, roles: dict[str, str]) -> None:
    job.change(LAB.format(**roles))
    as_role(job, roles["reader"], MINE)
    job.change("CREATE TRIGGER noted BEFORE UPDATE ON people FOR EACH STATEMENT EXECUTE FUNCTION lab.mine()")
    job.change("UPDATE people SET ward = ward")
    assert VALUE in as_role(job, roles["reader"], ["SELECT * FROM lab.kept"])
    with pytest.raises(Refused, match=r"owns the function lab.mine\(\), which runs with the rights of whoever uses"):
        job.run()
    follow(job)
    assert job.run().status == "published"
    as_role(job, roles["reader"], ["DELETE FROM lab.kept"])
    assert as_role(job, roles["reader"], [MINE[1], "SELECT 'replaced'"]) == ""


@pytest.mark.parametrize("used", ["domain", "default", "check", "policy", "index", "event"])
def test_a_readers_function_in_what_others_use(job: Job, roles: dict[str, str], used: str) -> None:
    """The same, wherever else a table names a function."""
    job.change(LAB.format(**roles))
    made = "CREATE FUNCTION lab.mine(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 1; END'"
    if used == "event":
        made = "CREATE FUNCTION lab.mine() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN RETURN; END'"
    as_role(job, roles["reader"], [made])
    job.change(
        {
            "domain": "CREATE DOMAIN one AS int CHECK (lab.mine(VALUE) = 1); ALTER TABLE people ADD b one",
            "default": "ALTER TABLE people ADD b int DEFAULT lab.mine(1)",
            "check": "ALTER TABLE people ADD CHECK (lab.mine(1) = 1)",
            "policy": "CREATE POLICY asks ON people USING (lab.mine(1) = 1)",
            "index": "CREATE INDEX ON people (lab.mine(1))",
            "event": "CREATE EVENT TRIGGER asks ON sql_drop EXECUTE FUNCTION lab.mine()",
        }[used]
    )
    with pytest.raises(Refused, match=r"owns the function lab.mine"):
        job.run()
    follow(job)
    assert advice(job, 0) == []
    if EVERY:
        assert job.run().status == "published"


def test_a_reader_who_owns_the_schema_of_the_source(job: Job, roles: dict[str, str]) -> None:
    """Such a reader drops the source and makes a view of that name: the job then calls the reader's function."""
    job.change("CREATE SCHEMA clinic")
    job.change("CREATE TABLE clinic.people AS SELECT * FROM people")
    job.change(f"ALTER SCHEMA clinic OWNER TO {roles['reader']}")
    job.settings["source"]["table"] = "clinic.people"
    replaced = [
        "CREATE TABLE clinic.kept (name text)",
        "CREATE FUNCTION clinic.mine() RETURNS text LANGUAGE plpgsql AS "
        "'BEGIN INSERT INTO clinic.kept SELECT name FROM public.people; RETURN ''flu''; END'",
        "DROP TABLE clinic.people",
        "CREATE VIEW clinic.people AS SELECT clinic.mine() AS disease",
        "GRANT ALL ON clinic.people, clinic.kept TO PUBLIC",
    ]
    with pytest.raises(Refused, match="owns schema clinic, and could put something else in the place"):
        job.run()
    saved = job.query("SELECT oid FROM pg_class WHERE oid = 'clinic.people'::regclass")
    follow(job)
    assert job.run().status == "published"
    as_role(job, roles["reader"], replaced)
    assert job.query("SELECT oid FROM pg_class WHERE oid = 'clinic.people'::regclass") == saved
    job.change(f"ALTER SCHEMA clinic OWNER TO {roles['reader']}")
    as_role(job, roles["reader"], replaced)
    job.query("SELECT * FROM clinic.people")
    with psycopg.connect(job.url) as owner:
        owner.execute("SELECT * FROM clinic.people")
        owner.commit()
    assert VALUE in as_role(job, roles["reader"], ["SELECT * FROM clinic.kept"])


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("GRANT CREATE ON SCHEMA qblock TO {reader}", "REVOKE CREATE ON SCHEMA qblock FROM {reader}"),
        ("ALTER SCHEMA qblock OWNER TO {reader}", "owns schema qblock"),
        ("ALTER SCHEMA published OWNER TO {reader}", "owns schema published"),
        ("ALTER VIEW published.people OWNER TO {reader}", 'owns "published"."people"'),
        (
            "DROP VIEW published.people; CREATE VIEW published.people AS SELECT 1 AS a; "
            "DO $$ BEGIN EXECUTE format('COMMENT ON VIEW published.people IS %L', "
            "(SELECT comment FROM qblock.view WHERE name = 'people')); END $$; "
            "ALTER VIEW published.people OWNER TO {reader}",
            "owns the view published.people",
        ),
    ],
)
def test_a_reader_at_home_in_the_schemas_of_the_job(
    job: Job,
    roles: dict[str, str],
    statement: str,
    says: str,
) -> None:
    job.run()
    job.change("UPDATE people SET ward = ward || '2'")
    job.change(statement.format(**roles))
    with pytest.raises(Refused, match=says.format(**roles)):
        job.run()
    follow(job)
    assert job.run().version == 2


def test_a_server_that_leads_back_to_the_database(job: Job, roles: dict[str, str]) -> None:
    """Shown where postgres_fdw is installed; the catalog is the same without."""
    found = job.query("SELECT current_database(), setting FROM pg_settings WHERE name = 'unix_socket_directories'")
    name, sockets = found[0]
    installed = bool(job.query("SELECT 1 FROM pg_available_extensions WHERE name = 'postgres_fdw'"))
    job.change("CREATE EXTENSION postgres_fdw" if installed else "CREATE FOREIGN DATA WRAPPER postgres_fdw")
    wrapper = f"FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{sockets}', dbname '{name}')"
    owner = sa.make_url(job.url).username or "postgres"
    job.change(f"CREATE SERVER back {wrapper}")
    job.change(f"CREATE SERVER elsewhere {wrapper.replace(name, 'another')}")
    for server in ("back", "elsewhere"):
        job.change(
            f"CREATE USER MAPPING FOR PUBLIC SERVER {server} OPTIONS (user '{owner}', password_required 'false')"
        )
        job.change(f"GRANT USAGE ON FOREIGN SERVER {server} TO {roles['reader']}")
    job.change(f"CREATE SCHEMA lab AUTHORIZATION {roles['reader']}")
    shows = [
        "CREATE FOREIGN TABLE lab.mine (name text) SERVER back OPTIONS (schema_name 'public', table_name 'people')",
        "SELECT * FROM lab.mine",
    ]
    if installed:
        assert VALUE in as_role(job, roles["reader"], shows)
        job.change("DROP FOREIGN TABLE lab.mine")
    assert advice(job, 0) == ["DROP USER MAPPING FOR PUBLIC SERVER back"]
    assert advice(job, 1) == [f'REVOKE USAGE ON FOREIGN SERVER back FROM PUBLIC, "{roles["reader"]}"']
    with pytest.raises(Refused, match="may use server back, which leads back to this database"):
        job.run()
    follow(job, 1)
    assert VALUE not in as_role(job, roles["reader"], shows)
    job.change(
        "CREATE FOREIGN TABLE theirs (name text) SERVER back OPTIONS (schema_name 'public', table_name 'people')"
    )
    job.change("CREATE VIEW shown AS SELECT * FROM theirs")
    job.change("CREATE FOREIGN TABLE far (name text) SERVER elsewhere")
    job.change(f"GRANT SELECT ON shown, far TO {roles['reader']}")
    if installed:
        assert VALUE in as_role(job, roles["reader"], ["SELECT * FROM shown"])
    with pytest.raises(Refused, match=r"SELECT on view over it .*shown"):
        job.run()
    follow(job)
    assert job.run().status == "published"
    assert VALUE not in as_role(job, roles["reader"], ["SELECT * FROM shown"])
