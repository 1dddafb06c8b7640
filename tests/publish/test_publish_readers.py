"""Who can read what on PostgreSQL, tried by connecting as that login; and names that are taken."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql
from psycopg.conninfo import make_conninfo
from release.jobs import PEOPLE, Job, MakeJob

from qblock.errors import InputError, QblockError
from qblock.ledger.history import history
from qblock.publish.helpers import KINDS
from qblock.release.verify import verify

pytestmark = [pytest.mark.every_postgresql, pytest.mark.handed_on]


@pytest.fixture
def engine_name() -> str:
    """DuckDB has no roles."""
    return "postgresql"


@pytest.fixture
def logins(server: str) -> Iterator[list[str]]:
    """Two logins that own nothing."""
    names = [f'qblock "reader" % {secrets.token_hex(4)}' for _ in range(2)]
    with psycopg.connect(server, autocommit=True) as connection:
        for name in names:
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
    yield names
    with psycopg.connect(server, autocommit=True) as connection:
        for name in names:
            for (database,) in connection.execute("SELECT datname FROM pg_database WHERE datallowconn").fetchall():
                if database.startswith("qblock_test_"):
                    with psycopg.connect(with_database(server, database), autocommit=True) as inside:
                        inside.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def with_database(url: str, database: str) -> str:
    return sa.make_url(url).set(database=database).render_as_string(hide_password=False)


def as_login(job: Job, name: str) -> str:
    return make_conninfo(job.url, user=name)


@pytest.fixture
def job(make_job: MakeJob, logins: list[str]) -> Job:
    made = make_job()
    made.settings["publish"] |= {"readers": logins[:1], "ranges": "text"}
    return made


def relations(job: Job) -> list[tuple[str, str]]:
    return job.query(
        "SELECT nspname, relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
        "WHERE relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND nspname NOT LIKE 'pg\\_%' "
        "AND nspname <> 'information_schema'"
    )


def test_a_reader_reads_the_view_and_nothing_else(job: Job, logins: list[str]) -> None:
    # What somebody once set up for every new table must not open the private ones.
    job.change("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC")
    job.run()
    job.run(force=True)
    reader = as_login(job, logins[0])
    assert len(job.query("SELECT * FROM published.people", reader)) == 12
    tried = relations(job)
    assert ("public", "people") in tried
    assert {("qblock", "event"), ("qblock", "v2_people"), ("qblock", "data_people"), ("qblock", "reference")} <= {
        *tried
    }
    readable = []
    for schema, name in tried:
        query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(schema, name)).as_string(None)
        try:
            job.query(query, reader)
            readable.append((schema, name))
        except psycopg.errors.InsufficientPrivilege:
            pass
    # The source is the publisher's own to close: here its default privileges opened it before.
    assert set(readable) - {("public", "people")} == {
        ("published", name) for name in ("people", *(f"people_{kind}" for kind in KINDS))
    }
    for statement in (
        "INSERT INTO published.people VALUES ('a', 'b', 'c', 'd')",
        "DELETE FROM published.people",
        "CREATE TABLE published.mine (a int)",
        "CREATE VIEW published.mine AS SELECT 1 AS a",
        "UPDATE qblock.pointer SET version = 1",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            job.query(statement, reader)


def test_rows_of_other_versions_do_not_leak_through_a_cheap_function(job: Job, logins: list[str]) -> None:
    job.set(versions={"joint": "none"})
    job.run()
    job.change("DELETE FROM people WHERE name = 'person 0'")
    job.run()
    job.change("GRANT CREATE ON SCHEMA public TO PUBLIC")
    reader = as_login(job, logins[0])
    with psycopg.connect(reader) as connection:
        connection.execute(
            "CREATE FUNCTION public.peek(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 "
            "AS 'BEGIN RAISE NOTICE ''%'', $1; RETURN true; END'"
        )
        seen: list[str] = []
        connection.add_notice_handler(lambda notice: seen.append(notice.message_primary or ""))
        connection.execute("SELECT count(*) FROM published.people WHERE public.peek(disease)")
    assert len(seen) == 11


def test_another_login_reads_nothing(job: Job, logins: list[str]) -> None:
    job.change("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC")
    job.run()
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        job.query("SELECT * FROM published.people", as_login(job, logins[1]))


def test_a_reader_that_is_added_gets_its_grant_without_a_new_version(job: Job, logins: list[str]) -> None:
    job.run()
    job.change(sql.SQL("GRANT USAGE ON SCHEMA published TO {}").format(sql.Identifier(logins[0])).as_string(None))
    job.settings["publish"]["readers"] = logins
    job.run()
    assert len(job.query("SELECT * FROM published.people", as_login(job, logins[1]))) == 12


def test_a_grant_that_was_taken_away_is_given_again(job: Job, logins: list[str]) -> None:
    job.run()
    job.change(sql.SQL("REVOKE ALL ON published.people FROM {}").format(sql.Identifier(logins[0])).as_string(None))
    assert job.run().status == "unchanged"
    assert len(job.query("SELECT * FROM published.people", as_login(job, logins[0]))) == 12


def test_an_unknown_reader_is_refused_before_anything_is_written(job: Job) -> None:
    job.settings["publish"]["readers"] = ["nobody knows"]
    with pytest.raises(InputError, match="no role 'nobody knows'"):
        job.run()
    assert relations(job) == [("public", "people")]


@pytest.mark.parametrize("kind", ["VIEW", "TABLE"])
def test_a_name_that_is_taken_is_left_alone(job: Job, kind: str) -> None:
    job.change("CREATE SCHEMA published")
    job.change(f"CREATE {kind} published.people AS SELECT 1 AS a")
    with pytest.raises(InputError, match="already exists"):
        job.run()
    assert job.query("SELECT * FROM published.people") == [(1,)]
    assert history(job.spec)["events"] == []


def test_a_changed_column_list_makes_a_new_view_and_keeps_grants(job: Job, logins: list[str]) -> None:
    job.run()
    job.change(sql.SQL("GRANT SELECT ON published.people TO {}").format(sql.Identifier(logins[1])).as_string(None))
    job.change(sql.SQL("GRANT USAGE ON SCHEMA published TO {}").format(sql.Identifier(logins[1])).as_string(None))
    attributes = {k: v for k, v in job.settings["attributes"].items() if k != "ward"}
    job.set(attributes=attributes, versions={"joint": "none", "keep": 1})
    job.run()
    for login in logins:
        assert len(job.query("SELECT * FROM published.people", as_login(job, login))[0]) == 3
    assert ("qblock", "data_people") in relations(job)
    assert ("qblock", "data2_people") not in relations(job)
    assert verify(job.spec).problems == ()


def test_publishing_again_does_not_touch_the_view(job: Job) -> None:
    job.run()
    facts = "SELECT oid, xmin, relacl::text FROM pg_class WHERE relname = 'people' AND relkind = 'v'"
    before = job.query(facts)
    job.run(force=True)
    assert job.query(facts) == before


def test_a_reader_in_a_transaction_keeps_its_version(job: Job, logins: list[str]) -> None:
    job.set(versions={"joint": "none", "keep": 1})
    job.run()
    count = "SELECT count(*) FROM published.people"
    with psycopg.connect(as_login(job, logins[0])) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT 1")
        for number in range(3):
            job.change(f"INSERT INTO people VALUES ('new {number}', '13053', 33, 'flu', 'A')")
            result = job.run()
            assert connection.execute(count).fetchall() == [(12,)]
            assert not any("stays" in note for note in result.notes)
    assert job.query(count) == [(15,)]
    assert [e["version"] for e in history(job.spec)["events"] if e["state"] == "retired"] == [1, 2, 3]


def test_the_url_of_the_source_is_a_place_to_publish(job: Job) -> None:
    job.settings["publish"]["url"] = job.url
    assert job.run().rows == len(PEOPLE["zip"])


def test_the_private_schema_is_no_place_to_publish(job: Job) -> None:
    job.settings["publish"]["schema"] = "qblock"
    with pytest.raises(InputError, match="qblock is the private schema"):
        job.run()


def test_a_name_longer_than_postgresql_keeps_is_refused(job: Job) -> None:
    job.settings["publish"]["view"] = "ö" * 32
    with pytest.raises(InputError, match="more than 63 bytes"):
        job.run()
    job.settings["publish"]["view"] = "ö" * 31
    job.run()
    assert len(job.published()) == 12


def test_a_login_that_may_read_the_source_and_create_schemas_is_enough(job: Job, logins: list[str]) -> None:
    worker = sql.Identifier(logins[1])
    database = sql.Identifier(sa.make_url(job.url).database or "")
    job.change(sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(database, worker).as_string(None))
    job.change(sql.SQL("GRANT SELECT ON people TO {}").format(worker).as_string(None))
    owner, job.url = job.url, as_login(job, logins[1])
    job.settings["source"]["url"] = as_url(job, logins[1])
    job.set(versions={"joint": "none", "keep": 1})
    assert job.run().version == 1
    assert job.run(force=True).version == 2
    assert verify(job.spec).problems == ()
    assert len(job.query("SELECT * FROM published.people", as_login(job, logins[0]))) == 12
    job.url = owner


def test_schemas_that_another_owns_are_used_as_they_are(job: Job, logins: list[str]) -> None:
    worker, reader = (sql.Identifier(name) for name in (logins[1], logins[0]))
    for statement in (
        "CREATE SCHEMA qblock",
        "CREATE SCHEMA published",
        "GRANT USAGE, CREATE ON SCHEMA qblock, published TO {worker}",
        "GRANT USAGE ON SCHEMA published TO {reader}",
        "GRANT SELECT ON people TO {worker}",
    ):
        job.change(sql.SQL(statement).format(worker=worker, reader=reader).as_string(None))
    owner, job.url = job.url, as_login(job, logins[1])
    job.settings["source"]["url"] = as_url(job, logins[1])
    assert job.run().version == 1
    assert len(job.query("SELECT * FROM published.people", as_login(job, logins[0]))) == 12
    job.url = owner


def test_a_schema_that_the_job_may_not_open_to_its_readers(job: Job, logins: list[str]) -> None:
    worker = sql.Identifier(logins[1])
    for statement in (
        "CREATE SCHEMA qblock",
        "CREATE SCHEMA published",
        "GRANT USAGE, CREATE ON SCHEMA qblock, published TO {worker}",
        "GRANT SELECT ON people TO {worker}",
    ):
        job.change(sql.SQL(statement).format(worker=worker).as_string(None))
    job.settings["source"]["url"] = as_url(job, logins[1])
    with pytest.raises(QblockError, match=r"must first run: GRANT USAGE ON SCHEMA .published. TO "):
        job.run()
    assert job.query("SELECT count(*) FROM pg_class WHERE relname = 'people' AND relkind = 'v'") == [(0,)]


def as_url(job: Job, name: str) -> str:
    return sa.make_url(job.settings["source"]["url"]).set(username=name, password=None).render_as_string(False)
