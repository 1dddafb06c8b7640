"""What `qblock grants` prints is enough for job, readers and officers on PostgreSQL, and each statement is needed."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

import psycopg
import pytest
import sqlalchemy as sa
from release.jobs import PEOPLE, Job, MakeJob

from qblock.errors import InputError, QblockError
from qblock.ledger.history import history
from qblock.ledger.stores import store_of
from qblock.release import apply
from qblock.release.erase import erase
from qblock.release.grants import grants
from qblock.release.job import Plan
from qblock.release.preview import preview
from qblock.release.rollback import rollback
from qblock.release.verify import verify

pytestmark = pytest.mark.every_postgresql

ENTITY = {"entity": "name", "versions": {"on_refusal": "refuse"}}
PLACES = {
    "nothing there": [],
    "schemas of another": ["CREATE SCHEMA qblock", "CREATE SCHEMA published"],
    "ledger of another": ["CREATE SCHEMA published", "LEDGER"],
}


@pytest.fixture
def engine_name() -> str:
    """DuckDB has no roles."""
    return "postgresql"


@dataclass
class World:
    """A job whose login, reader and officer exist and have nothing, in a database where PUBLIC has nothing either."""

    job: Job
    roles: dict[str, str]
    owner: str
    database: str = field(init=False)

    def __post_init__(self) -> None:
        self.database = str(sa.make_url(self.owner).database)

    def as_role(self, name: str) -> str:
        return sa.make_url(self.owner).set(username=self.roles[name], password=None).render_as_string(False)

    def log_in(self, name: str) -> Job:
        """Let what follows connect as one of the roles."""
        self.job.settings["source"]["url"] = self.owner if name == "owner" else self.as_role(name)
        return self.job

    def printed(self, *, officer: bool = False) -> dict:
        """What an administrator is told before the login could connect."""
        spec = self.log_in("owner").spec
        return grants(spec, job=self.roles["login"], officer=self.roles["officer"] if officer else None)

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.owner, autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[arg-type]

    def query(self, statement: str, name: str) -> list[tuple]:
        with psycopg.connect(self.as_role(name)) as connection:
            return connection.execute(statement).fetchall()  # type: ignore[arg-type]

    def prepare(self, place: str) -> None:
        for statement in PLACES[place]:
            if statement == "LEDGER":
                store_of(self.log_in("owner").spec).upgrade()
            else:
                self.execute(statement)

    def join(self) -> None:
        """Eight newcomers, in two blocks that pass."""
        for zip_, age in (("13053", 28), ("14853", 50)):
            for disease in ("heart", "viral", "cancer", "flu"):
                row = f"('{zip_} {disease}', '{zip_}', {age}, '{disease}', 'A')"
                self.execute(f"INSERT INTO clinic.inpatient VALUES {row}")


@pytest.fixture
def world(make_job: MakeJob, server: str) -> Iterator[World]:
    suffix = secrets.token_hex(4)
    roles = {name: f"qblock_{name}_{suffix}" for name in ("login", "reader", "officer", "other")}
    with psycopg.connect(server, autocommit=True) as connection:
        for role in roles.values():
            connection.execute(f"CREATE ROLE {role} LOGIN")  # type: ignore[arg-type]
    job = make_job(PEOPLE, table="inpatient", schema="clinic", **ENTITY)
    job.settings["publish"]["readers"] = [roles["reader"]]
    made = World(job, roles, job.url)
    made.execute(f"REVOKE ALL ON DATABASE {made.database} FROM PUBLIC; REVOKE ALL ON SCHEMA public FROM PUBLIC")
    yield made
    names = ", ".join(roles.values())
    made.execute(f"DROP OWNED BY {names} CASCADE; DROP ROLE {names}")


@pytest.mark.parametrize("place", PLACES)
def test_what_is_printed_is_enough(world: World, place: str) -> None:
    world.prepare(place)
    world.execute(world.printed()["sql"])
    job = world.log_in("login")
    assert preview(job.spec).missing_rights == ()
    assert job.run().version == 1
    world.join()
    assert job.run().version == 2
    assert job.run().status == "unchanged"
    assert rollback(job.spec, 1).status == "rolled_back"
    assert verify(job.spec).problems == ()
    assert erase(job.spec, ["person 1"]).status == "queued"
    assert erase(job.spec, ["person 2"], now=True).status in ("published", "erased")
    assert world.query("SELECT count(*) FROM published.people", "reader") != [(0,)]
    for table in ("qblock.event", "clinic.inpatient"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.query(f"SELECT count(*) FROM {table}", "reader")

    world.execute(world.printed(officer=True)["sql"])
    assert world.log_in("officer").settings["release"] == history(job.spec)["release"]
    assert world.query("SELECT count(*) FROM qblock.release_history", "officer") != [(0,)]
    for table in ("qblock.crosswalk", "qblock.crosswalk_key", "qblock.reference", "published.people"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.query(f"SELECT count(*) FROM {table}", "officer")
    # And with an officer the job still finds that nobody sees what is private.
    assert world.log_in("login").run(force=True).status == "published"


@pytest.mark.parametrize("entity", ["name", None])
def test_a_run_reads_no_more_columns_and_other_tables_whole(world: World, entity: str | None) -> None:
    world.execute(
        "ALTER TABLE clinic.inpatient ADD ssn text, ADD notes text; CREATE SCHEMA geo; "
        "CREATE TABLE geo.zips AS SELECT DISTINCT zip, left(zip, 3) AS area, 1 AS extra FROM clinic.inpatient; "
        "INSERT INTO clinic.inpatient VALUES ('nowhere', '99999', 28, 'flu', 'A')"
    )
    zips = {"table": "geo.zips", "levels": ["zip", "area"]}
    settings = world.job.settings
    settings["attributes"] = {**settings["attributes"], "ssn": "identifying"}
    settings["attributes"]["zip"] = {"role": "quasi_identifier", "hierarchy": zips, "uncovered": "quarantine"}
    settings["versions"] = {"max_lag": 0.5}
    if entity is None:
        settings["versions"] = {"joint": "none"}
        del settings["entity"]
    printed = world.printed()
    needed = [one["statement"] for one in printed["grants"] if one["when"] == "now" and "without" not in one["why"]]
    assert not any("ssn" in statement or "notes" in statement for statement in needed)
    for statement in needed:
        world.execute(statement)
    job = world.log_in("login")
    assert job.run().version == 1
    world.join()
    assert {job.run().status for _ in range(3)} <= {"published", "unchanged"}
    assert verify(job.spec).problems == ()
    assert rollback(job.spec, 1).status in ("rolled_back", "unchanged")
    if entity is not None:
        assert erase(job.spec, ["person 1"]).status == "queued"
        assert erase(job.spec, ["person 2"], now=True).status in ("published", "erased")


def test_a_source_without_a_schema_is_found_where_the_login_would_find_it(world: World) -> None:
    world.job.settings["source"]["table"] = "inpatient"
    world.execute(f"GRANT CONNECT ON DATABASE {world.database} TO {world.roles['login']}")
    notes = world.printed()["notes"]
    assert notes == ["table inpatient was not found, so the rights on it are not listed"]
    world.execute(f"ALTER ROLE {world.roles['login']} SET search_path = clinic")
    world.execute(grants(world.log_in("login").spec)["sql"])
    assert world.job.run().status == "published"


def test_what_no_grant_gives_is_noted(world: World) -> None:
    world.execute("ALTER TABLE clinic.inpatient ENABLE ROW LEVEL SECURITY")
    assert any("BYPASSRLS" in note for note in world.printed()["notes"])
    world.execute("CREATE VIEW clinic.stays WITH (security_invoker) AS SELECT * FROM clinic.inpatient")
    world.job.settings["source"]["table"] = "clinic.stays"
    assert any("rights of who asks" in note for note in world.printed()["notes"])


def undone(statement: str) -> str:
    """The statement that takes away what one grants."""
    return re.sub(r" TO (\"[^\"]+\";)$", r" FROM \1", re.sub(r"^GRANT ", "REVOKE ", statement))


@pytest.mark.parametrize("place", PLACES)
def test_each_statement_for_the_job_is_needed(world: World, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database itself refuses, where the job does not look at its rights first."""
    monkeypatch.setattr(Plan, "stopping", ())
    world.prepare(place)
    printed = world.printed()
    world.execute(printed["sql"])
    needed = [one for one in printed["grants"] if one["when"] == "now" and "CONNECT" not in one["statement"]]
    needed += [one for one in printed["grants"] if one["for"] == "job" and "CONNECT" in one["statement"]]
    assert len(needed) >= 5
    job = world.log_in("login")
    for one in needed:
        world.execute(undone(one["statement"]))
        with pytest.raises(QblockError, match=r"denied a privilege|may not grant USAGE|no permission to connect"):
            job.run()
        assert world.job.query("SELECT count(*) FROM pg_class WHERE relname = 'people' AND relkind = 'v'") == [(0,)]
        world.execute(one["statement"])
    assert job.run().status == "published"


def test_without_connecting_no_reader_reads(world: World) -> None:
    printed = world.printed()
    world.execute(printed["sql"])
    assert world.log_in("login").run().status == "published"
    (connect,) = [one["statement"] for one in printed["grants"] if one["for"] == "reader" and one["when"] == "now"]
    assert len(world.query("SELECT * FROM published.people", "reader")) == 12
    world.execute(undone(connect))
    with pytest.raises(psycopg.OperationalError):
        world.query("SELECT * FROM published.people", "reader")


QUERIED = ("release_history", "version_guarantees", "runs", "refusals", "current_guarantees", "spec_texts")
"""Views that `qblock history` does without."""


def test_each_table_is_needed_by_the_officer(world: World) -> None:
    world.execute(world.printed()["sql"])
    assert world.log_in("login").run().status == "published"
    printed = world.printed(officer=True)
    world.execute(printed["sql"])
    spec = world.log_in("officer").spec
    assert history(spec)["current"] == 1
    for one in printed["grants"]:
        if one["for"] != "officer":
            continue
        on = re.search(r"ON (?:TABLE )?(.+) TO", one["statement"])
        assert on is not None
        for name in on[1].split(", "):
            single = one["statement"].replace(on[1], name)
            world.execute(undone(single))
            if any(view in name for view in QUERIED):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    world.query(f"SELECT * FROM {name}", "officer")
            else:
                with pytest.raises(QblockError):
                    history(spec)
            world.execute(single)
    assert history(spec)["current"] == 1


def test_a_plan_lists_what_is_missing_and_a_run_ends_there_before_the_scan(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scanned(*_: object, **__: object) -> None:
        raise AssertionError("the source was opened")

    world.execute(f"GRANT CONNECT ON DATABASE {world.database} TO {world.roles['login']}")
    printed = world.printed()
    job = world.log_in("login")
    monkeypatch.setattr(apply, "open_snapshot", scanned)
    found = preview(job.spec).to_dict()
    now = [one for one in printed["grants"] if one["when"] == "now" and not one["held"]]
    assert found["missing_rights"] == now
    assert found["steps"][0]["step"] == "lock"
    with pytest.raises(QblockError) as caught:
        job.run()
    stops = [one["statement"].rstrip(";") for one in now if one["for"] == "job"]
    assert len(stops) == 4
    assert all(statement in str(caught.value) for statement in stops)
    assert "qblock grants SPEC" in str(caught.value)
    monkeypatch.undo()
    for one in now:
        world.execute(one["statement"])
    assert preview(job.spec).missing_rights == ()
    assert job.run().status == "published"
    # In a ledger that there is, such an end is found later.
    world.execute(f'REVOKE SELECT (age) ON clinic.inpatient FROM "{world.roles["login"]}"')
    with pytest.raises(QblockError, match="must first run: GRANT SELECT"):
        job.run()
    assert history(job.spec)["events"][-1]["state"] == "failed"


def test_a_ledger_that_the_login_may_not_read_is_planned_for(world: World) -> None:
    world.prepare("ledger of another")
    world.execute(f"GRANT CONNECT ON DATABASE {world.database} TO {world.roles['login']}")
    found = preview(world.log_in("login").spec).to_dict()
    assert found["steps"][1]["found"] == "unknown"
    listed = [one["statement"] for one in found["missing_rights"]]
    assert any("crosswalk_key" in statement for statement in listed)
    del world.job.settings["entity"]
    listed = [right.statement for right in preview(world.job.spec).missing_rights]
    assert not any("crosswalk" in statement for statement in listed)


def test_columns_that_a_run_does_without_do_not_stop_it(world: World) -> None:
    del world.job.settings["entity"]
    world.execute("INSERT INTO clinic.inpatient SELECT * FROM clinic.inpatient")
    world.execute(world.printed()["sql"])
    note = "rows are counted, not people"
    assert any(note in text for text in preview(world.log_in("login").spec).notes)
    world.execute(f'REVOKE SELECT (name) ON clinic.inpatient FROM "{world.roles["login"]}"')
    made = preview(world.job.spec)
    assert not any(note in text for text in made.notes)
    assert ["name" in right.statement for right in made.missing_rights] == [True]
    assert world.job.run().status == "published"


def test_another_login_goes_on_with_a_release(world: World) -> None:
    world.execute(world.printed()["sql"])
    assert world.log_in("login").run().version == 1
    world.roles["login"], world.roles["other"] = world.roles["other"], world.roles["login"]
    world.execute(world.printed()["sql"])
    world.join()
    assert world.log_in("login").run().version == 2


def test_names_are_quoted_and_none_ends_its_line(world: World, server: str) -> None:
    odd = f'odd " name\n; DROP SCHEMA clinic CASCADE; -- {secrets.token_hex(4)}'
    world.execute('CREATE SCHEMA "pub ""l.1"')
    world.job.settings["publish"] |= {"schema": 'pub "l.1', "readers": [odd]}
    try:
        printed = world.printed()
        world.execute(printed["sql"])
        assert "CREATE ROLE" in printed["sql"]
        assert world.log_in("login").run().status == "published"
        assert [one["held"] for one in world.printed()["grants"] if one["role"] == odd] == [True] * 3
    finally:
        quoted = odd.replace('"', '""')
        world.execute(f'DROP OWNED BY "{quoted}" CASCADE; DROP ROLE "{quoted}"')


def test_no_reader_is_an_officer(world: World) -> None:
    reader, officer = world.roles["reader"], world.roles["officer"]
    spec = world.log_in("owner").spec
    with pytest.raises(InputError, match=f"{reader} is a reader of release people"):
        grants(spec, officer=reader)
    world.execute(f"GRANT {officer} TO {reader}")
    with pytest.raises(InputError, match=f"reader {reader} can become {officer}"):
        grants(spec, officer=officer)


def test_an_owner_is_told_of_a_login_of_its_own(world: World) -> None:
    found = grants(world.log_in("owner").spec)
    assert [one["for"] for one in found["grants"] if one["when"] == "now" and not one["held"]] == ["reader"]
    assert any("--job" in note for note in found["notes"])
