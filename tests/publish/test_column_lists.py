"""A changed column list on PostgreSQL: nobody reads an empty view, and what others built on it goes on or is named."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from release.jobs import ATTRIBUTES, Job, MakeJob
from release.test_waiting import HOLD_BACK, people_job

from qblock.cli.app import run
from qblock.engines.postgresql import lock_waits
from qblock.errors import InputError, Refused
from qblock.ledger.history import history
from qblock.publish.targets.postgresql import PostgresqlTarget
from qblock.release.apply import release
from qblock.release.log import Reporter
from qblock.release.preview import preview
from qblock.release.rollback import rollback
from qblock.release.verify import verify

pytestmark = [
    pytest.mark.every_postgresql(alone=True),
    pytest.mark.usefixtures("postgresql_version"),
    pytest.mark.handed_on,
]

FEWER = {name: role for name, role in ATTRIBUTES.items() if name != "ward"}
ADDED = {**ATTRIBUTES, "floor": "insensitive"}
MOVED = {name: ATTRIBUTES[name] for name in ("name", "age", "zip", "disease", "ward")}


@pytest.fixture
def engine_name() -> str:
    """A DuckDB version is a file with a view of its own."""
    return "postgresql"


@pytest.fixture
def job(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> Job:
    """One version of four columns of a source that has a fifth one."""
    monkeypatch.setattr(lock_waits, "PAUSE_SECONDS", 0)
    made = make_job(versions={"joint": "none"})
    made.settings["publish"] |= {"lock_timeout": 0.1, "ranges": "text"}
    made.change("ALTER TABLE people ADD COLUMN floor integer DEFAULT 3")
    made.begin()
    return made


@pytest.fixture
def analyst(job: Job, server: str) -> Iterator[str]:
    """A role with a schema of its own that may read the view."""
    name = f"qblock_analyst_{secrets.token_hex(4)}"
    for statement in (
        f"CREATE ROLE {name}",
        f"CREATE SCHEMA analysis AUTHORIZATION {name}",
        f"GRANT USAGE ON SCHEMA published TO {name}",
        f"GRANT SELECT ON published.people TO {name}",
    ):
        job.change(statement)
    yield name
    job.change(f"DROP OWNED BY {name} CASCADE")
    job.change(f"DROP ROLE {name}")


def own(job: Job, analyst: str, *statements: str) -> None:
    with psycopg.connect(job.url) as connection:
        connection.execute(f"SET ROLE {analyst}")  # type: ignore[arg-type]
        for statement in statements:
            connection.execute(statement)  # type: ignore[arg-type]


def states(job: Job) -> list[tuple[int | None, str]]:
    return [(event["version"], event["state"]) for event in history(job.spec)["events"]]


def without(column: int, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [row[:column] + row[column + 1 :] for row in rows]


def test_a_view_of_an_analyst_goes_on_when_columns_are_appended(job: Job, analyst: str) -> None:
    own(job, analyst, "CREATE VIEW analysis.by_ward AS SELECT ward, count(*) AS n FROM published.people GROUP BY ward")
    oid = job.query("SELECT 'published.people'::regclass::oid")
    assert job.set(attributes=ADDED).run().version == 2
    assert job.query("SELECT 'published.people'::regclass::oid") == oid
    assert sorted(job.query("SELECT * FROM analysis.by_ward")) == [("A", 6), ("B", 6)]
    assert {row[4] for row in job.published()} == {3}
    assert verify(job.spec).problems == ()
    assert job.run().status == "unchanged"


def test_a_view_goes_on_when_rows_begin_to_say_since_when_they_are_shown(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b", **HOLD_BACK)
    job.settings["publish"] |= {"since": False}
    job.begin()
    job.change("CREATE VIEW published.of_an_analyst AS SELECT * FROM published.people")
    job.change("GRANT SELECT (block) ON published.people TO PUBLIC")
    del job.settings["publish"]["since"]
    assert job.run().version == 2
    assert job.query("SELECT since, count(*) FROM published.people GROUP BY since") == [(1, 2)]
    # Nothing that was built on the view has another column, and who may read one of its columns may read that one.
    assert job.query("SELECT * FROM published.of_an_analyst ORDER BY value") == [("q", "a"), ("q", "b")]
    for column, may in (("block", True), ("since", False)):
        asked = f"SELECT has_column_privilege('public', 'published.people', '{column}', 'SELECT')"
        assert job.query(asked) == [(may,)]
    assert not verify(job.spec).problems


@pytest.mark.parametrize(
    ("change", "attributes", "told"),
    [
        (None, ADDED, lambda row: (*row, None)),
        (None, FEWER, lambda row: row[:3]),
        (None, MOVED, lambda row: (row[1], row[0], *row[2:])),
        ("ALTER TABLE people ALTER ward TYPE integer USING ascii(ward)", ATTRIBUTES, lambda row: (*row[:3], None)),
    ],
    ids=["appended", "removed", "moved", "retyped"],
)
def test_a_reader_with_an_older_snapshot_sees_the_whole_older_version(
    job: Job, change: str | None, attributes: dict[str, Any], told: Any
) -> None:
    before = job.published()
    with psycopg.connect(job.url) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("SELECT 1")
        if change:
            job.change(change)
        job.change("INSERT INTO people VALUES ('new', '13053', 33, 'flu', 'A')".replace("'A'", "'1'"))
        assert job.set(attributes=attributes).run().version == 2
        seen = reader.execute("SELECT * FROM published.people").fetchall()
    assert sorted(map(str, seen)) == sorted(str(told(row)) for row in before)
    assert len(job.published()) == 13
    assert verify(job.spec).problems == ()


@pytest.mark.parametrize(
    ("built", "named"),
    [
        (['CREATE VIEW analysis."by Ward" AS SELECT ward FROM published.people'], 'view analysis."by Ward" of {}'),
        (
            ["CREATE MATERIALIZED VIEW analysis.kept AS SELECT ward FROM published.people"],
            "materialized view analysis.kept of {}",
        ),
        (
            ["CREATE FUNCTION analysis.n() RETURNS bigint BEGIN ATOMIC SELECT count(*) FROM published.people; END"],
            "function analysis.n() of {}",
        ),
        (
            ["CREATE FUNCTION analysis.f() RETURNS SETOF published.people LANGUAGE plpgsql AS 'BEGIN END'"],
            "function analysis.f() of {}",
        ),
        (["CREATE TABLE analysis.lists (people published.people[])"], "table analysis.lists of {}"),
        (
            [
                "CREATE TABLE analysis.asked (n int)",
                "CREATE RULE counted AS ON INSERT TO analysis.asked DO ALSO SELECT count(*) FROM published.people",
            ],
            "table analysis.asked of {}",
        ),
        (
            [
                "CREATE VIEW analysis.one AS SELECT zip FROM published.people",
                "CREATE VIEW analysis.two AS SELECT zip FROM analysis.one",
                "CREATE VIEW analysis.three AS SELECT zip FROM analysis.two",
                "CREATE VIEW analysis.four AS SELECT zip FROM analysis.three",
            ],
            "view analysis.one of {0}, view analysis.two of {0}, view analysis.three of {0} and 1 more depend on it",
        ),
    ],
    ids=["view", "materialized", "function", "row_type", "array", "rule", "chain"],
)
def test_what_stands_in_the_way_is_named_before_the_search_and_in_the_plan(
    job: Job, analyst: str, built: list[str], named: str
) -> None:
    own(job, analyst, *built)
    begun: list[str | None] = []
    before = job.published()
    job.set(attributes=FEWER)
    with pytest.raises(InputError, match=re.escape(named.format(analyst))) as raised:
        release(job.spec, reporter=Reporter(entries=lambda entry: begun.append(entry.step)))
    assert "column ward is no longer published, so published.people must be dropped" in str(raised.value)
    assert begun[-1] == "check_readers"
    with pytest.raises(InputError, match=re.escape(named.format(analyst))):
        preview(job.spec)
    assert job.published() == before
    # A run that changes nothing is not in anybody's way.
    assert job.set(attributes=ATTRIBUTES).run().status == "unchanged"
    preview(job.spec)


@pytest.mark.parametrize(
    ("attributes", "change", "said"),
    [
        (MOVED, None, "the published columns are no longer in the order zip, age, disease, ward"),
        (
            ATTRIBUTES,
            "ALTER TABLE people ALTER ward TYPE integer USING ascii(ward)",
            "the type of published columns changes (ward from text to integer)",
        ),
    ],
)
def test_the_message_says_how_the_columns_change(
    job: Job, analyst: str, capsys: pytest.CaptureFixture[str], attributes: dict[str, Any], change: str, said: str
) -> None:
    own(job, analyst, "CREATE VIEW analysis.own AS SELECT * FROM published.people")
    if change:
        job.change(change)
    path = str(job.set(attributes=attributes).write())
    for command in ("plan", "release"):
        assert run([command, path]) == 2
        err = " ".join(capsys.readouterr().err.split())
        assert said in err
        assert f"view analysis.own of {analyst} depends on it" in err
    own(job, analyst, "DROP VIEW analysis.own")
    assert run(["release", path]) == 0


def test_a_view_that_is_made_during_the_run_is_named_and_nothing_is_published(
    job: Job, analyst: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checking = PostgresqlTarget.checking
    before = job.published()

    def meanwhile(self: PostgresqlTarget, *arguments: Any) -> Any:
        own(job, analyst, "CREATE VIEW analysis.late AS SELECT * FROM published.people")
        return checking(self, *arguments)

    job.set(attributes=FEWER)
    with monkeypatch.context() as patch:
        patch.setattr(PostgresqlTarget, "checking", meanwhile)
        with pytest.raises(InputError, match=f"view analysis.late of {analyst} depends on it"):
            job.run()
    assert (job.published(), states(job)[-1]) == (before, (2, "failed"))
    own(job, analyst, "DROP VIEW analysis.late")
    assert job.run().version == 3


def test_a_view_that_is_made_while_ours_is_being_dropped_is_named(
    job: Job, analyst: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its transaction ends while we wait for the lock: the server refuses the drop."""
    dropped: list[str] = []

    def asked(connection: sa.Connection, cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("DROP VIEW") and not dropped:
            dropped.append(statement)
            own(job, analyst, "CREATE VIEW analysis.late AS SELECT * FROM published.people")

    job.set(attributes=FEWER)
    sa.event.listen(sa.Engine, "before_cursor_execute", asked)
    try:
        with pytest.raises(InputError, match=f"view analysis.late of {analyst} depends on it"):
            job.run()
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", asked)
    assert dropped
    assert len(job.published()[0]) == 4


def test_going_back_to_a_version_with_fewer_columns_and_forward_again(job: Job, analyst: str) -> None:
    first = job.published()
    job.set(attributes=ADDED).run()
    second = job.published()
    with pytest.raises(Refused, match="it publishes other columns"):
        rollback(job.spec, 1)
    job.set(attributes=ATTRIBUTES)
    own(job, analyst, "CREATE VIEW analysis.own AS SELECT zip FROM published.people")
    with pytest.raises(InputError, match=f"view analysis.own of {analyst} depends on it"):
        rollback(job.spec, 1)
    own(job, analyst, "DROP VIEW analysis.own")
    assert rollback(job.spec, 1).status == "rolled_back"
    assert (job.published(), verify(job.spec).problems) == (first, ())
    assert job.run().status == "unchanged"
    job.set(attributes=ADDED)
    assert rollback(job.spec, 2).status == "rolled_back"
    assert (job.published(), verify(job.spec).problems) == (second, ())


def test_a_column_that_comes_back_with_another_type_is_another_column(job: Job) -> None:
    first = job.published()
    job.set(attributes=FEWER).run()
    job.change("ALTER TABLE people ALTER ward TYPE integer USING ascii(ward)")
    with psycopg.connect(job.url) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("SELECT 1")
        job.set(attributes=ATTRIBUTES).run()
        assert {row[3] for row in reader.execute("SELECT * FROM published.people")} == {None}
    assert {row[3] for row in job.published()} == {65, 66}
    assert verify(job.spec).problems == ()
    # What was published first is published again as it was.
    assert rollback(job.spec, 1).version == 1
    assert (job.published(), verify(job.spec).problems) == (first, ())
    assert rollback(job.spec, 3).version == 3
    assert {row[3] for row in job.published()} == {65, 66}


def test_tables_of_other_columns_are_dropped_in_their_time(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    job.settings["versions"]["keep"] = 1
    # The table so far has no room: another table.
    monkeypatch.setattr("qblock.publish.targets.postgresql_tables.MOST_COLUMNS", 4)
    assert job.set(attributes={**FEWER, "floor": "insensitive"}).run().version == 2
    tables = "SELECT relname FROM pg_class WHERE relnamespace = 'qblock'::regnamespace AND relname ~ '^(data|v[0-9])'"
    assert sorted(job.query(tables)) == [("data2_people",), ("v2_people",)]
    job.run(force=True)
    assert sorted(job.query(tables)) == [("data2_people",), ("v3_people",)]
    assert (len(job.published()[0]), verify(job.spec).problems) == (4, ())


def test_columns_come_and_go_for_ever(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table has room for so many columns only; then there is another one."""
    monkeypatch.setattr("qblock.publish.targets.postgresql_tables.MOST_COLUMNS", 6)
    for number in range(3):
        job.change(f"ALTER TABLE people ADD COLUMN more{number} integer DEFAULT {number}")
        job.set(attributes={**FEWER, f"more{number}": "insensitive"}).run()
        assert {row[3] for row in job.published()} == {number}
        assert verify(job.spec).problems == ()
    assert job.query("SELECT count(*) FROM pg_class WHERE relname = 'data2_people'") == [(1,)]
