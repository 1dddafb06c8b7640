"""What a reader reaches without a privilege on it is found, and the advice closes it: shown on the server each time."""

from __future__ import annotations

import os
from collections.abc import Sequence

import psycopg
import pytest
import sqlalchemy as sa
from release.jobs import Job

from publish.no_ways import ASKED, HARMLESS
from publish.ways import VALUE, WAYS
from qblock.engines.postgresql.session import create_engine
from qblock.errors import Refused
from qblock.ledger.stores import store_of
from qblock.publish.targets import postgresql_access as rights
from qblock.publish.targets.postgresql import PostgresqlTarget

pytestmark = [pytest.mark.every_postgresql, pytest.mark.either_engine]

EVERY = os.environ.get("QBLOCK_TEST_ENGINES") == "all"
"""Else what nothing stands in the way of is published once."""


@pytest.fixture
def engine_name() -> str:
    """DuckDB has no roles."""
    return "postgresql"


def as_role(job: Job, role: str, statements: Sequence[str]) -> str:
    """All that a role is answered and told; what it may not do ends it."""
    told: list[str] = []
    url = sa.make_url(job.url).set(username=role, password=None).render_as_string(False)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        for statement in statements:
            try:
                cursor = connection.execute(statement)  # type: ignore[arg-type]
            except psycopg.Error:
                break
            told += [str(row) for row in cursor] if cursor.description else []
    return " ".join(told)


def advice(job: Job, number: int) -> list[str]:
    """The statements that the refusal names: of each sentence the one with this number, or its last."""
    found = PostgresqlTarget(job.spec, store_of(job.spec)).find_exposures()
    offered = [sentence.rpartition("; ")[2].split(", or ") for sentence in found]
    return [choice[min(number, len(choice) - 1)] for choice in offered]


def follow(job: Job, number: int = 0) -> None:
    for statement in advice(job, number):
        for single in statement.split(", and "):
            job.change(single)


@pytest.mark.parametrize("name", WAYS)
def test_a_way_to_the_source_is_refused_until_its_advice_is_followed(
    job: Job, roles: dict[str, str], name: str
) -> None:
    way = WAYS[name]
    for statement in way.setup:
        job.change(statement.format(**roles))
    shows = [statement.format(**roles) for statement in way.shows]
    assert VALUE in as_role(job, roles["reader"], shows)
    with pytest.raises(Refused, match=way.says.format(**roles)) as refused:
        job.run()
    assert refused.value.exit_status == 3
    follow(job)
    assert advice(job, 0) == []
    if name == next(iter(WAYS)) or EVERY:
        assert job.run().status == "published"
    assert VALUE not in as_role(job, roles["reader"], shows)


@pytest.mark.parametrize(("name", "number"), [(n, i) for n, way in WAYS.items() for i in range(1, way.closed)])
def test_each_remedy_alone_closes_the_way(job: Job, roles: dict[str, str], name: str, number: int) -> None:
    for statement in WAYS[name].setup:
        job.change(statement.format(**roles))
    assert advice(job, number) != advice(job, number - 1)
    follow(job, number)
    assert advice(job, 0) == []
    assert VALUE not in as_role(job, roles["reader"], [s.format(**roles) for s in WAYS[name].shows])


def test_what_is_like_a_way_but_is_none_is_let_be(job: Job, roles: dict[str, str]) -> None:
    """Each alone, in a transaction of its own that is rolled back."""
    spec = job.spec
    engine = create_engine(sa.make_url(job.url), path=("public",))
    found = {}
    for name, statements in HARMLESS.items():
        with engine.connect() as connection:
            for statement in statements:
                connection.execute(sa.text(statement.format(**roles).replace(":", r"\:")))
            found[name] = rights.ways(connection, spec, [roles["reader"]])
            connection.rollback()
    engine.dispose()
    assert found == {name: [] for name in HARMLESS}


@pytest.mark.parametrize("name", ASKED)
def test_where_execute_is_asked_for_a_definer_function_is_no_way(job: Job, roles: dict[str, str], name: str) -> None:
    job.change(
        "CREATE FUNCTION peek(int) RETURNS int LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER "
        "AS $$BEGIN RAISE NOTICE '%', (SELECT string_agg(name, ',') FROM public.people); RETURN 1; END$$"
    )
    made, granted, tried = ASKED[name]
    job.change(made)
    job.change(granted.format(**roles))
    if name != "cast":
        assert VALUE in as_role(job, roles["reader"], [tried])
    job.change("REVOKE EXECUTE ON FUNCTION peek(int) FROM PUBLIC")
    assert VALUE not in as_role(job, roles["reader"], [tried])
    assert job.run().status == "published"
