"""What PostgreSQL tells a reader by its statistics is about the version that is shown, and nothing else."""

from __future__ import annotations

import json
import random
import re
import secrets
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from release.jobs import Job, MakeJob

from qblock.publish.helpers import KINDS
from qblock.release.retire import retire
from qblock.release.rollback import rollback

pytestmark = [pytest.mark.every_postgresql(alone=True), pytest.mark.usefixtures("postgresql_version")]

DISEASES = [f"disease {number}" for number in range(8)]
WARDS = ["A", "B", "", "999", "ä'"]
RELATIONS = re.compile(r"Seq Scan on (\S+)")


@pytest.fixture
def engine_name() -> str:
    """The only engine with a planner that readers may ask."""
    return "postgresql"


def drawn(rng: random.Random, people: int) -> dict[str, list[Any]]:
    """People whose values are as often as no other draw has them."""
    diseases = rng.choices(DISEASES, [rng.random() + 0.05 for _ in DISEASES], k=people)
    diseases[: len(DISEASES)] = DISEASES
    return {
        "name": [f"person {number}" for number in range(people)],
        "zip": rng.choices(["13053", "13068", "14853", "14850"], [rng.random() for _ in range(4)], k=people),
        "age": [rng.randrange(20, 60) for _ in range(people)],
        "disease": diseases,
        "ward": rng.choices([*WARDS, None], [rng.random() for _ in range(len(WARDS) + 1)], k=people),
    }


@pytest.fixture
def job(make_job: MakeJob, server: str) -> Iterator[Job]:
    """A release of people, and a reader of it."""
    reader = f"qblock_reader_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(reader)))
    job = make_job(drawn(random.Random(1), 400), versions={"joint": "none"}, search={"node": [4, 2]})
    job.settings["privacy"] = [{"k_anonymity": {"k": 2}}]
    job.settings["publish"]["readers"] = [reader]
    yield job
    with psycopg.connect(job.url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(reader)))
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(reader)))


def as_reader(job: Job) -> psycopg.Connection:
    return psycopg.connect(make_conninfo(job.url, user=job.settings["publish"]["readers"][0]), autocommit=True)


def replace_people(job: Job, columns: dict[str, list[Any]]) -> None:
    with psycopg.connect(job.url) as connection:
        connection.execute("TRUNCATE people")
        with connection.cursor() as cursor, cursor.copy("COPY people FROM STDIN") as copy:
            for row in zip(*columns.values(), strict=True):
                copy.write_row(row)


def questions() -> list[str]:
    """Equalities for every value that any version has, ranges, groups, joins, and the helper views."""
    literals = {
        "disease": [*DISEASES, "none"],
        "ward": WARDS,
        "zip": ["1305*", "1306*", "1485*", "*"],
        "age": ["20-39"],
    }
    where = [
        f"{column} = '" + value.replace("'", "''") + "'" for column, values in literals.items() for value in values
    ]
    where += ["ward IS NULL", "disease < 'disease 3'", "disease BETWEEN 'disease 2' AND 'disease 4'", "age_low < 40"]
    queries = [f"SELECT * FROM published.people WHERE {condition}" for condition in where]
    queries += [f"SELECT {column}, count(*) FROM published.people GROUP BY 1" for column in literals]
    queries.append("SELECT count(*) FROM published.people AS a JOIN published.people AS b USING (disease, ward)")
    queries += [f"SELECT * FROM published.people_{kind}" for kind in KINDS]
    return [*queries, "SELECT * FROM published.people_levels WHERE label = '1305*' AND rows > 10"]


def told(job: Job) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The plans that a reader gets, and what the catalog says of the relations in them and of their columns."""
    with as_reader(job) as reader:
        plans = [
            "\n".join(line for (line,) in reader.execute(f"EXPLAIN (VERBOSE) {question}").fetchall())  # type: ignore[arg-type]
            for question in questions()
        ]
        names = sorted({name.rpartition(".")[2] for plan in plans for name in RELATIONS.findall(plan)})
        query = (
            "SELECT relname, reltuples, relpages, pg_relation_size(oid), "
            "(SELECT count(*) FROM pg_stats WHERE tablename = relname) FROM pg_class WHERE relname = ANY(%s) ORDER BY 1"
        )
        return plans, reader.execute(query, [names]).fetchall()


def estimates(job: Job) -> list[float]:
    """How many rows the planner expects of each question."""
    with as_reader(job) as reader:
        rows = [reader.execute(f"EXPLAIN (FORMAT JSON) {question}").fetchone() for question in questions()]  # type: ignore[arg-type]
    return [json.loads(json.dumps(row[0]))[0]["Plan"]["Plan Rows"] for row in rows if row is not None]


@pytest.mark.parametrize("seed", range(3))
def test_histories_that_end_in_one_version_are_told_alike(job: Job, seed: int) -> None:
    rng = random.Random(seed)
    job.run()
    alone = told(job)
    assert {row[0] for row in alone[1]} == {
        "data_people",
        *(f"now_{kind}_people" for kind in KINDS if kind not in ("blocks", "midpoints")),
    }
    for _ in range(2):
        replace_people(job, drawn(rng, rng.choice((100, 300, 3000))))
        job.run()
        assert told(job) != alone
        rollback(job.spec, 1)
        assert told(job) == alone


def test_the_estimates_change_with_the_version_while_somebody_still_sees_the_older_one(job: Job) -> None:
    job.run()
    alone = estimates(job)
    with as_reader(job) as other, other.transaction():
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT 1")
        replace_people(job, drawn(random.Random(2), 2000))
        job.run()
        assert estimates(job) != alone
        rollback(job.spec, 1)
        assert estimates(job) == alone
        assert other.execute("SELECT count(*) FROM published.people").fetchone() == (400,)


@pytest.mark.parametrize("reads", ["SELECT count(*) FROM published.people", "SELECT 1"])
def test_pages_that_could_not_be_given_back_are_by_the_next_run(job: Job, reads: str) -> None:
    """Since somebody has the table locked, or a snapshot that may still see the rows."""
    job.run()
    alone = told(job)
    with as_reader(job) as other, other.transaction():
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute(reads)  # type: ignore[arg-type]
        replace_people(job, drawn(random.Random(2), 2000))
        job.run()
        rollback(job.spec, 1)
        assert told(job) != alone
    # The source is that of version 2 again, and nothing changes.
    rollback(job.spec, 1)
    assert told(job) == alone


def test_a_version_that_was_refused_leaves_nothing(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    job.run()
    alone = told(job)
    replace_people(job, drawn(random.Random(2), 2000))
    with monkeypatch.context() as patch:
        patch.setattr("qblock.publish.targets.postgresql.PostgresqlTarget.prove", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            job.run()
    assert told(job) == alone


def test_a_view_that_was_taken_away_leaves_no_page(job: Job) -> None:
    job.run()
    retire(job.spec)
    tables = "SELECT sum(pg_relation_size(oid)) FROM pg_class WHERE relname ~ '^(data|now_[a-z]+)_people$'"
    assert job.query(tables) == [(0,)]
    assert job.query("SELECT count(*) FROM published.people") == [(0,)]


def known(job: Job) -> int:
    """How many columns the planner knows values of, or how many distinct ones they have."""
    query = """
        SELECT count(*) FROM pg_stats
        WHERE schemaname = 'qblock' AND tablename ~ '^(data|now_[a-z]+)_people$'
            AND (most_common_vals IS NOT NULL OR histogram_bounds IS NOT NULL OR n_distinct <> 0)
    """
    return int(job.query(query)[0][0])


def test_of_a_view_that_was_taken_away_nothing_is_known(job: Job) -> None:
    job.run()
    assert known(job) > 10
    retire(job.spec)
    assert known(job) == 0
