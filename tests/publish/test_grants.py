"""The grants that docs/operations.md lists are enough for the job on PostgreSQL, and each of them is needed."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from release.jobs import PEOPLE, Job, MakeJob

from qblock.errors import QblockError
from qblock.ledger.history import history
from qblock.ledger.stores import store_of
from qblock.release.rollback import rollback
from qblock.release.verify import verify

pytestmark = [pytest.mark.every_postgresql, pytest.mark.handed_on]

OPERATIONS = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text("utf-8")
BLOCKS = [block for block in re.findall(r"```sql\n(.*?)```", OPERATIONS, re.DOTALL) if " TO job;" in block]
LEDGER_OF_ANOTHER = re.findall(r"(?m)^(GRANT[^;]*);", BLOCKS.pop())
LISTS = [re.findall(r"(?m)^([A-Z][^;]*);", block) for block in BLOCKS]


@pytest.fixture
def engine_name() -> str:
    """DuckDB has no roles."""
    return "postgresql"


@pytest.fixture
def names(server: str) -> Iterator[dict[str, str]]:
    """The roles of this test for those of the page; what they own goes with the test's database."""
    suffix = secrets.token_hex(4)
    found = {"job": f"qblock_job_{suffix}", "analyst": f"qblock_analyst_{suffix}"}
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {found['analyst']} LOGIN")
    yield found
    with psycopg.connect(server, autocommit=True) as connection:
        databases = connection.execute(
            "SELECT datname FROM pg_database WHERE datname LIKE 'qblock\\_test\\_%'"
        ).fetchall()
        held = connection.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", (list(found.values()),))
        roles = [name for (name,) in held]
        for (database,) in databases:
            inside = sa.make_url(server).set(database=database).render_as_string(False)
            with psycopg.connect(inside, autocommit=True) as other:
                for role in roles:
                    other.execute(f"DROP OWNED BY {role} CASCADE")
        for role in roles:
            connection.execute(f"DROP ROLE {role}")


@pytest.fixture
def job(make_job: MakeJob, names: dict[str, str]) -> Job:
    """A job whose source is the page's, in a database where nobody has anything by being PUBLIC."""
    made = make_job(PEOPLE, table="inpatient", schema="clinic", versions={"joint": "none"})
    made.settings["publish"]["readers"] = [names["analyst"]]
    database = sa.make_url(made.url).database
    made.change(f"REVOKE ALL ON DATABASE {database} FROM PUBLIC")
    made.change("REVOKE ALL ON SCHEMA public FROM PUBLIC")
    made.change(f"GRANT CONNECT ON DATABASE {database} TO {names['analyst']}")
    return made


def granted(job: Job, names: dict[str, str], statements: list[str]) -> None:
    """Give what the page lists, and let the job log in with it."""
    database = sa.make_url(job.url).database
    for statement in statements:
        statement = statement.replace("DATABASE clinic", f"DATABASE {database}")
        for name, role in names.items():
            statement = re.sub(rf"(ROLE|TO) {name}\b", rf"\1 {role}", statement)
        job.change(statement)
    job.settings["source"]["url"] = as_role(job, names["job"])


def as_role(job: Job, role: str) -> str:
    return sa.make_url(job.url).set(username=role, password=None).render_as_string(False)


def test_the_readme_lists_two_ways() -> None:
    assert len(LISTS) == 2
    assert all(len(statements) >= 4 and "CREATE ROLE job LOGIN" in statements for statements in LISTS)


@pytest.mark.parametrize("statements", LISTS, ids=["creates_schemas", "schemas_of_another"])
def test_what_the_readme_lists_is_enough(job: Job, names: dict[str, str], statements: list[str]) -> None:
    granted(job, names, statements)
    role = job.query(
        "SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls, "
        "(SELECT count(*) FROM pg_auth_members WHERE member = pg_roles.oid) "
        f"FROM pg_roles WHERE rolname = '{names['job']}'"
    )
    extensions = job.query("SELECT extname FROM pg_extension ORDER BY extname")
    assert role == [(False, False, False, False, False, 0)]
    assert job.run().version == 1
    job.change("INSERT INTO clinic.inpatient VALUES ('new', '13053', 33, 'flu', 'A')")
    assert job.run().version == 2
    assert verify(job.spec).problems == ()
    assert rollback(job.spec, 1).status == "rolled_back"
    assert verify(job.spec).problems == ()
    # Retention drops versions; an unchanged source is found to be one.
    job.set(versions={"joint": "none", "keep": 1})
    assert job.run().version == 3
    assert {e["version"] for e in history(job.spec)["events"] if e["state"] == "retired"} == {1, 2}
    assert job.run().status == "unchanged"
    assert len(job.query("SELECT * FROM published.people", as_role(job, names["analyst"]))) == 13
    assert job.query("SELECT extname FROM pg_extension ORDER BY extname") == extensions


def test_a_job_that_can_only_append_to_the_ledger(job: Job, names: dict[str, str]) -> None:
    granted(job, names, LISTS[1])
    mine, job.settings["source"]["url"] = job.settings["source"]["url"], job.url
    job.set(entity="name", versions={"on_refusal": "refuse"})
    store_of(job.spec).upgrade()
    job.settings["source"]["url"] = mine
    with pytest.raises(QblockError):
        job.run()
    granted(job, names, LEDGER_OF_ANOTHER)
    assert job.run().version == 1
    for zip_, age in (("13053", 28), ("14853", 50)):
        for disease in ("heart", "viral", "cancer", "flu"):
            job.change(f"INSERT INTO clinic.inpatient VALUES ('{zip_} {disease}', '{zip_}', {age}, '{disease}', 'A')")
    assert job.run().version == 2
    assert rollback(job.spec, 1).status == "rolled_back"
    assert verify(job.spec).problems == ()
    for statement in (
        "UPDATE qblock.event SET reason = 'x'",
        "DELETE FROM qblock.event",
        "DELETE FROM qblock.guarantee",
        "TRUNCATE qblock.event",
        "DROP TABLE qblock.event",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            job.query(statement, mine)


def test_the_columns_of_the_spec_are_enough(job: Job, names: dict[str, str]) -> None:
    job.change("ALTER TABLE clinic.inpatient ADD ssn text, ADD notes text")
    job.settings["attributes"] = {**job.settings["attributes"], "ssn": "identifying"}
    job.settings["attributes"]["zip"] = {
        "role": "quasi_identifier",
        "hierarchy": {"levels": ["zip", "area"], "table": "clinic.zips"},
        "uncovered": "quarantine",
    }
    job.change("CREATE TABLE clinic.zips AS SELECT DISTINCT zip, left(zip, 3) AS area FROM clinic.inpatient")
    job.change("INSERT INTO clinic.inpatient VALUES ('nowhere', '99999', 28, 'flu', 'A')")
    job.set(entity="name", versions={})
    columns = "name, zip, age, disease, ward"
    of_columns = [statement.replace("GRANT SELECT ON", f"GRANT SELECT ({columns}) ON") for statement in LISTS[0]]
    granted(job, names, [*of_columns, "GRANT SELECT ON clinic.zips TO job"])
    assert job.run().version == 1
    job.change("INSERT INTO clinic.inpatient VALUES ('new', '13053', 33, 'flu', 'A')")
    # The second run reads the source beside what was shown; the third one finds it as the run before left it.
    assert [job.run().status for _ in range(2)] == ["unchanged"] * 2


def test_each_of_them_is_needed(job: Job, names: dict[str, str]) -> None:
    """Taken away one at a time, privilege by privilege, from a job that has published nothing yet."""
    granted(job, names, LISTS[0])
    database = sa.make_url(job.url).database
    for privilege, on in (
        ("CONNECT", f"DATABASE {database}"),
        ("CREATE", f"DATABASE {database}"),
        ("TEMPORARY", f"DATABASE {database}"),
        ("USAGE", "SCHEMA clinic"),
        ("SELECT", "clinic.inpatient"),
    ):
        job.change(f"REVOKE {privilege} ON {on} FROM {names['job']}")
        with pytest.raises(QblockError):
            job.run()
        published = job.query("SELECT count(*) FROM pg_class WHERE relname = 'people' AND relkind = 'v'")
        assert published == [(0,)]
        if privilege == "CREATE":
            # Made by a run that got so far, they would be there for the next one.
            assert job.query("SELECT count(*) FROM pg_namespace WHERE nspname = 'published'") == [(0,)]
        job.change(f"GRANT {privilege} ON {on} TO {names['job']}")
    assert job.run().status == "published"
