"""Before a version is published on PostgreSQL: nobody who reads it reaches what is private by another way."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from release.jobs import ATTRIBUTES, Job

from publish.ways import beside
from qblock.errors import Refused
from qblock.ledger.history import history
from qblock.ledger.stores import store_of
from qblock.release.rollback import rollback
from qblock.release.verify import verify

pytestmark = [pytest.mark.every_postgresql, pytest.mark.handed_on]


@pytest.fixture
def engine_name() -> str:
    """DuckDB has no roles."""
    return "postgresql"


OPENINGS = {
    "the source": (["GRANT SELECT ON people TO {reader}"], "SELECT on table .*people.*; REVOKE SELECT ON"),
    "one column": (["GRANT SELECT (age) ON people TO {reader}"], r"SELECT \(.?age.?\) on table"),
    "to write": (["GRANT UPDATE ON people TO {reader}"], "UPDATE on table"),
    "everybody": (["GRANT SELECT ON people TO PUBLIC"], r"everybody \(PUBLIC\) has SELECT .* FROM PUBLIC"),
    "a role": (
        ["GRANT SELECT ON people TO {staff}", "GRANT {staff} TO {reader}"],
        "who can become {staff}, has SELECT",
    ),
    "a role that is not inherited": (
        ["ALTER ROLE {reader} NOINHERIT", "GRANT SELECT ON people TO {staff}", "GRANT {staff} TO {reader}"],
        "who can become {staff}, has SELECT",
    ),
    "a role of a role": (
        ["GRANT SELECT ON people TO {owner}", "GRANT {owner} TO {staff}", "GRANT {staff} TO {reader}"],
        "who can become {owner}, has SELECT",
    ),
    "its owner": (["ALTER TABLE people OWNER TO {staff}", "GRANT {staff} TO {reader}"], "{staff}, owns .*people"),
    "a superuser": (["ALTER ROLE {reader} SUPERUSER"], "is a superuser"),
    "to become one": (["ALTER ROLE {staff} SUPERUSER", "GRANT {staff} TO {reader}"], "{staff}, is a superuser"),
    "to replicate": (["ALTER ROLE {reader} REPLICATION"], "may replicate"),
    "to read all": (["GRANT pg_read_all_data TO {reader}"], "may reach every table"),
    "a view": (
        ["CREATE VIEW old AS SELECT age FROM people", "GRANT SELECT ON old TO {reader}"],
        "SELECT on view over it .*old",
    ),
    "a view of a view": (
        [
            "CREATE VIEW old AS SELECT age FROM people",
            "CREATE VIEW older AS SELECT * FROM old",
            "GRANT SELECT ON older TO {reader}",
        ],
        "SELECT on view over it .*older",
    ),
    "a copy that is refreshed": (
        ["CREATE MATERIALIZED VIEW old AS SELECT age FROM people", "GRANT SELECT ON old TO {reader}"],
        "materialized view over it",
    ),
    "a function": (
        [
            "CREATE FUNCTION peek() RETURNS SETOF people LANGUAGE sql SECURITY DEFINER AS 'SELECT * FROM people'",
            "GRANT USAGE ON SCHEMA public TO {reader}",
        ],
        r"may call public\.peek\(\), which runs with the rights of",
    ),
    "a view over a function in a closed schema": (
        [
            "CREATE SCHEMA closed",
            "CREATE FUNCTION closed.peek() RETURNS SETOF people LANGUAGE sql SECURITY DEFINER "
            "AS 'SELECT * FROM people'",
            "CREATE VIEW sneak AS SELECT * FROM closed.peek()",
            "GRANT SELECT ON sneak TO {reader}",
        ],
        r"may call closed.peek\(\), which runs with the rights of",
    ),
    "a part of the source": (
        ["CREATE TABLE part () INHERITS (people)", "GRANT SELECT ON part TO {reader}"],
        "SELECT on table .*part",
    ),
    "the ledger": (["GRANT SELECT ON qblock.event TO {reader}"], "SELECT on table .*qblock.*event"),
    "the crosswalk": (["GRANT SELECT ON qblock.crosswalk TO {reader}"], "SELECT on table .*crosswalk"),
    "long values of the ledger": (
        [beside("qblock.event", "GRANT SELECT ON %s TO {reader}")],
        "SELECT on the TOAST table of qblock.event",
    ),
    "long values of the crosswalk": (
        [beside("qblock.crosswalk_shown", "GRANT SELECT ON %s TO PUBLIC")],
        r"everybody \(PUBLIC\) has SELECT on the TOAST table of qblock.crosswalk_shown",
    ),
    "long values of PostgreSQL's own": (
        [beside("pg_statistic", "GRANT SELECT ON %s TO {reader}")],
        "SELECT on the TOAST table of pg_catalog.pg_statistic",
    ),
    "an officer's view": (["GRANT SELECT ON qblock.release_history TO {reader}"], "SELECT on view .*release_history"),
}


@pytest.mark.parametrize("opening", OPENINGS)
def test_whatever_is_open_is_named_and_nothing_is_published(job: Job, roles: dict[str, str], opening: str) -> None:
    statements, message = OPENINGS[opening]
    store_of(job.spec).upgrade()
    for statement in statements:
        job.change(statement.format(**roles))
    with pytest.raises(Refused, match=message.format(**roles)):
        job.run()
    (event,) = history(job.spec)["events"]
    assert (event["state"], event["version"]) == ("refused", None)


def test_what_opens_later_is_found_by_the_next_run_and_by_verify(job: Job, roles: dict[str, str]) -> None:
    job.run()
    before = job.published()
    job.change("UPDATE people SET ward = ward || '2'")
    job.change(f"GRANT SELECT ON qblock.v1_people TO {roles['reader']}")
    with pytest.raises(Refused, match=r"SELECT on table .*v1_people"):
        job.run()
    assert job.published() == before
    assert any("v1_people" in problem for problem in verify(job.spec).problems)
    job.change(f"REVOKE SELECT ON qblock.v1_people FROM {roles['reader']}")
    job.change(beside("qblock.v1_people", f"GRANT SELECT ON %s TO {roles['reader']}"))
    assert any("TOAST table of qblock.v1_people" in problem for problem in verify(job.spec).problems)


@pytest.mark.parametrize(
    "statements",
    [
        ["GRANT SELECT ON people TO {staff}"],
        ["CREATE VIEW own WITH (security_invoker = true) AS SELECT age FROM people", "GRANT SELECT ON own TO {reader}"],
        ["CREATE VIEW further AS SELECT * FROM published.people", "GRANT SELECT ON further TO {reader}"],
        ["CREATE TABLE other (a int)", "GRANT SELECT ON other TO PUBLIC"],
        ["CREATE FUNCTION plain() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people'"],
        [
            "CREATE FUNCTION noted() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'",
            "CREATE EVENT TRIGGER noted ON ddl_command_end EXECUTE FUNCTION noted()",
        ],
    ],
    ids=["somebody_else", "invoker", "on_the_release", "another_table", "plain_function", "event_trigger"],
)
def test_what_is_no_way_in_is_let_be(job: Job, roles: dict[str, str], statements: list[str]) -> None:
    job.run()
    job.change("UPDATE people SET ward = ward || '2'")
    for statement in statements:
        job.change(statement.format(**roles))
    assert job.run().version == 2
    assert not verify(job.spec).problems


def test_a_way_that_opens_during_the_run_is_found_before_publication(
    job: Job, roles: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from qblock.publish.targets.postgresql import PostgresqlTarget

    checking = PostgresqlTarget.checking

    def meanwhile(self: PostgresqlTarget, *arguments: object) -> object:
        job.change(f"GRANT SELECT ON people TO {roles['reader']}")
        return checking(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(PostgresqlTarget, "checking", meanwhile)
    with pytest.raises(Refused, match="nothing is published: reader"):
        job.run()
    assert not [e for e in history(job.spec)["events"] if e["state"] == "published"]


@pytest.mark.parametrize("privilege", ["SELECT", "SELECT (zip)"])
def test_who_was_given_the_view_by_hand_is_a_reader_too(job: Job, roles: dict[str, str], privilege: str) -> None:
    job.run()
    job.change(f"GRANT {privilege} ON published.people TO {roles['staff']}")
    job.change(f"GRANT SELECT ON people TO {roles['staff']}")
    job.change("UPDATE people SET ward = ward || '2'")
    with pytest.raises(Refused, match=f"reader {roles['staff']} has SELECT"):
        job.run()


def test_a_rollback_proves_it_too(job: Job, roles: dict[str, str]) -> None:
    job.run()
    job.change("UPDATE people SET ward = ward || '2'")
    job.run()
    job.change(f"GRANT SELECT ON people TO {roles['reader']}")
    with pytest.raises(Refused, match="could reach what is private"):
        rollback(job.spec, 1)


def test_hierarchies_and_what_a_source_view_reads_are_private(job: Job, roles: dict[str, str]) -> None:
    job.change("CREATE TABLE zips AS SELECT DISTINCT zip, left(zip, 3) AS area FROM people")
    job.change("CREATE VIEW seen AS SELECT * FROM people")
    zips = {"role": "quasi_identifier", "hierarchy": {"table": "zips", "levels": ["zip", "area"]}}
    job.set(attributes=ATTRIBUTES | {"zip": zips}, source={"url": job.url, "table": "seen"})
    for table in ("zips", "people", "seen"):
        job.change(f"GRANT SELECT ON {table} TO {roles['reader']}")
        with pytest.raises(Refused, match=f"has SELECT on .*{table}"):
            job.run()
        job.change(f"REVOKE SELECT ON {table} FROM {roles['reader']}")
    assert job.run().status == "published"


def test_a_source_that_the_search_path_finds(job: Job, roles: dict[str, str]) -> None:
    """The reader may not use its schema, so that for the reader the name stands for nothing, or for another table."""
    job.change("CREATE SCHEMA clinic")
    job.change("ALTER TABLE people SET SCHEMA clinic")
    job.change(f"ALTER DATABASE {sa.make_url(job.url).database} SET search_path = clinic, public")
    assert job.run().status == "published"
    job.change("CREATE TABLE public.people (a int)")
    job.change(f"GRANT SELECT ON public.people TO {roles['reader']}")
    job.change("UPDATE clinic.people SET ward = ward || '2'")
    assert job.run().status == "published"


def test_where_the_job_may_become_a_reader_it_tries(job: Job, roles: dict[str, str]) -> None:
    """The owner of the tests' database may; a login that may not says so."""
    assert not [note for note in job.run().notes if "not tried" in note]
    job.change(f"ALTER ROLE {roles['owner']} NOINHERIT")
    job.change(f"GRANT CREATE ON DATABASE {sa.make_url(job.url).database} TO {roles['owner']}")
    job.change(f"GRANT SELECT ON people TO {roles['owner']}")
    job.change("DROP SCHEMA qblock CASCADE")
    job.change("DROP SCHEMA published CASCADE")
    url = sa.make_url(job.url).set(username=roles["owner"], password=None).render_as_string(False)
    job.settings["source"]["url"] = url
    notes = job.run().notes
    assert [note for note in notes if "not tried" in note and roles["reader"] in note]
