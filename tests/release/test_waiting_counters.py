"""What any login of PostgreSQL sees of the private tables does not follow how many people wait."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from engines import create_table, database
from hypothesis import given
from hypothesis import strategies as st
from psycopg import sql
from psycopg.conninfo import make_conninfo

from qblock.versions.crosswalk import LEAST, size_class
from release.jobs import Job, new_job
from release.test_waiting import ATTRIBUTES, HOLD_BACK, shown

BLOCKS, WEEKS = 8, 3
SEEN = """
    SELECT coalesce(owner.relname || ' (toast)', class.relname), class.reltuples, class.relpages,
        pg_relation_size(class.oid), counted.n_tup_ins, counted.n_tup_upd, counted.n_tup_hot_upd, counted.n_tup_del,
        counted.n_live_tup, counted.n_dead_tup
    FROM pg_class AS class
    JOIN pg_stat_all_tables AS counted ON counted.relid = class.oid
    LEFT JOIN pg_class AS owner ON owner.reltoastrelid = class.oid
    WHERE coalesce(owner.relnamespace, class.relnamespace) = 'qblock'::regnamespace
    ORDER BY 1
"""


@pytest.fixture
def engine_name() -> str:
    """The only engine where others see counters of private tables."""
    return "postgresql"


@pytest.fixture
def outsider(server: str) -> Iterator[str]:
    """A login that was granted nothing."""
    name = f"qblock_outsider_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
        yield name
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def new_release(url: str, folder: Path) -> Job:
    people = [(f"p{block}{number}", f"b{block}", "ab"[number % 2]) for block in range(BLOCKS) for number in range(8)]
    create_table(url, "people", {name: [row[i] for row in people] for i, name in enumerate(("id", "block", "value"))})
    privacy = [{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}]
    own = {"attributes": ATTRIBUTES, "privacy": privacy, "entity": "id", "search": {"node": [0]}}
    return new_job("postgresql", folder, url, versions=HOLD_BACK, **own)


def weeks(job: Job, newcomers: int, leavers: int, changes: int) -> list[dict[str, int]]:
    """Each week so many come, each to a block of their own, and others who were shown leave or change; who waits."""
    waiting = []
    for week in range(WEEKS):
        with psycopg.connect(job.url) as connection:
            for number in range(newcomers):
                person = (f"n{week}{number:03}", f"w{week}{number:03}", "ab"[number % 2])
                connection.execute("INSERT INTO people VALUES (%s, %s, %s)", person)
            if week == 1:
                gone = [f"p{block}0" for block in range(leavers)]
                connection.execute("DELETE FROM people WHERE id = ANY(%s)", [gone])
                others = [f"p{block}1" for block in range(BLOCKS - changes, BLOCKS)]
                connection.execute("UPDATE people SET value = 'c' WHERE id = ANY(%s)", [others])
        waiting.append(job.run().waiting)
    return waiting


def seen(url: str, outsider: str) -> list[tuple[Any, ...]]:
    """What a login without rights sees, once all counters have come in and maintenance has been done."""
    with psycopg.connect(url, autocommit=True) as owner:
        others = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'"
        )
        while owner.execute(others).fetchone() != (0,):
            pass
        owner.execute("VACUUM (ANALYZE)")
    with psycopg.connect(make_conninfo(url, user=outsider)) as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
            connection.execute("SELECT * FROM qblock.crosswalk_waiting")
        return connection.execute(SEEN).fetchall()


@pytest.mark.every_postgresql(alone=True)
def test_how_many_people_wait_is_told_to_no_other_login(
    postgresql_version: str, server: str, outsider: str, tmp_path: Path
) -> None:
    tables, waits, rows = [], [], []
    for counts in ((1, 1, 1), (70, 5, 6)):
        with database(server) as url:
            job = new_release(url, tmp_path)
            job.run()
            waits.append(weeks(job, *counts))
            rows.append(shown(job))
            tables.append(seen(url, outsider))
    assert waits[0][-1] == {"newcomers": 3, "leavers": 1, "changes": 1}
    assert waits[1][-1] == {"newcomers": 210, "leavers": 5, "changes": 6}
    assert rows[0] == rows[1]
    assert {"crosswalk_waiting", "crosswalk_turnover", "event", "event (toast)"} <= {row[0] for row in tables[0]}
    assert tables[0] == tables[1]


@given(st.integers(0, 10**9))
def test_a_size_class_is_that_of_half_to_all_of_its_rows(rows: int) -> None:
    there = size_class(rows)
    assert there >= rows
    assert there == LEAST or there < 2 * rows
    assert there.bit_count() == 1
