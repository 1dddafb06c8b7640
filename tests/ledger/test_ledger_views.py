"""What a privacy officer can ask the ledger, in SQL, on both engines."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from qblock.ledger.chain import record, set_pointer
from qblock.ledger.events import Event, Guarantee, Stage
from qblock.ledger.store import Store

Ask = Callable[[str], list[dict[str, Any]]]


def guarantee(parameter: str, stage: Stage, margin: float, holds: bool = True) -> Guarantee:
    return Guarantee(
        stage=stage,
        model="recursive_cl_diversity",
        sensitive="condition",
        parameters='{"c":3,"l":6}',
        parameter=parameter,
        asked="3",
        satisfied="2",
        satisfied_number=2.0,
        attained=True,
        holds=holds,
        margin=margin,
    )


@pytest.fixture
def ask(ledger: Store) -> Ask:
    """`ask(query)`: rows of a query over the views, `{}` standing for where they are."""

    def rows(query: str) -> list[dict[str, Any]]:
        prefix = "qblock." if ledger.engine == "postgresql" else ""
        with ledger.opened(read_only=True) as connection:
            return [dict(row) for row in connection.execute(sa.text(query.format(prefix))).mappings()]

    return rows


@pytest.fixture
def published(ledger: Store) -> Store:
    """Versions 1 and 3 of release r published, 2 refused; release s staged only."""
    with ledger.write() as connection:
        for version, margin in ((1, 0.5), (2, -0.25), (3, 0.125)):
            event: dict[str, Any] = {"release": "r", "run": f"run {version}", "version": version, "node": (version, 0)}
            both = [guarantee(p, "search", margin) for p in "lc"]
            record(connection, Event(state="staged", rows_source=100, quasi_identifiers=("age", "zip"), **event), both)
            again = [guarantee(p, "recheck", margin, holds=version != 2) for p in "lc"]
            if version == 2:
                record(connection, Event(state="refused", reason="recheck failed", **event), again)
                continue
            record(connection, Event(state="checked", **event), again)
            more: dict[str, Any] = {"view": "published.r", "stale_after": timedelta(days=7), "protected": version == 3}
            record(connection, Event(state="published", rows_published=98, rows_suppressed=2, **event, **more))
            set_pointer(connection, "r", version)
        record(connection, Event(release="s", state="staged", run="s", version=1), [guarantee("c", "search", 1.0)])
    return ledger


def test_release_history_has_a_row_for_each_transition(published: Store, ask: Ask) -> None:
    rows = ask("SELECT * FROM {}release_history WHERE release = 'r' ORDER BY number")
    states = ["staged", "checked", "published", "staged", "refused", "staged", "checked", "published"]
    assert [row["state"] for row in rows] == states
    assert [row["reason"] for row in rows if row["state"] == "refused"] == ["recheck failed"]
    assert (
        rows[0]
        | {
            "quasi_identifiers": '["age","zip"]',
            "node": "[1,0]",
            "rows_source": 100,
            "run": "run 1",
        }
        == rows[0]
    )
    assert {row["protected_against_search"] for row in rows} == {None, False, True}


def test_version_guarantees_are_of_published_versions(published: Store, ask: Ask) -> None:
    rows = ask("SELECT * FROM {}version_guarantees ORDER BY release, number, position")
    assert [(row["release"], row["version"], row["stage"], row["parameter"]) for row in rows] == [
        ("r", version, stage, parameter) for version in (1, 3) for stage in ("search", "recheck") for parameter in "lc"
    ]
    assert {(row["asked"], row["satisfied"], row["sensitive"]) for row in rows} == {("3", "2", "condition")}


def test_the_margin_trend_compares_published_versions(published: Store, ask: Ask) -> None:
    rows = ask("SELECT * FROM {}margin_trend ORDER BY parameter, version")
    assert [(r["parameter"], r["version"], r["margin"], r["margin_change"]) for r in rows] == [
        (parameter, version, margin, change)
        for parameter in "cl"
        for version, margin, change in ((1, 0.5, None), (3, 0.125, -0.375))
    ]
    with published.write() as connection:
        record(
            connection, Event(release="r", state="rolled_back", run="x", version=1), [guarantee("c", "recheck", 0.25)]
        )
    rows = ask("SELECT * FROM {}margin_trend WHERE parameter = 'c' ORDER BY version")
    assert [(r["version"], r["margin"], r["margin_change"]) for r in rows] == [(1, 0.25, None), (3, 0.125, -0.125)]


def test_the_current_version_is_the_pointers(published: Store, ask: Ask) -> None:
    (row,) = ask("SELECT * FROM {}current_version")
    assert row | {"release": "r", "version": 3, "view": "published.r", "node": "[3,0]", "rows_published": 98} == row
    assert (row["stale"], row["protected_against_search"]) == (False, True)
    with published.write() as connection:
        set_pointer(connection, "r", 1)
    (row,) = ask("SELECT * FROM {}current_version")
    assert (row["version"], row["protected_against_search"]) == (1, False)
    with published.write() as connection:
        set_pointer(connection, "r", None)
    assert ask("SELECT * FROM {}current_version") == []


@pytest.mark.parametrize(
    ("stale_after", "stale"), [(timedelta(hours=71), True), (timedelta(hours=73), False), (None, None)]
)
def test_a_release_older_than_the_spec_allows_is_stale(
    ledger: Store, ask: Ask, stale_after: timedelta | None, stale: bool | None
) -> None:
    event = Event(
        release="r",
        state="published",
        run="u",
        version=1,
        stale_after=stale_after,
        recorded_at=datetime.now(UTC) - timedelta(hours=72),
    )
    with ledger.write() as connection:
        record(connection, event)
        set_pointer(connection, "r", 1)
        # The age does not depend on where the person who asks lives.
        if ledger.engine == "postgresql":
            database = connection.dialect.identifier_preparer.quote(ledger.url.database)
            connection.execute(sa.text(f"ALTER DATABASE {database} SET timezone = 'Pacific/Auckland'"))
    (row,) = ask("SELECT stale, age_seconds FROM {}current_version")
    assert row["stale"] == stale
    with ledger.read() as reader:
        freshness = reader.freshness("r")
    assert freshness is not None
    assert freshness["stale"] is stale
    assert 72 * 3600 <= row["age_seconds"] < 72 * 3600 + 600


def test_runs_have_a_row_for_each_run_as_it_ended(published: Store, ask: Ask) -> None:
    rows = ask("SELECT * FROM {}runs ORDER BY release, run")
    assert [(row["release"], row["run"], row["outcome"], row["version"]) for row in rows] == [
        ("r", "run 1", "published", 1),
        ("r", "run 2", "refused", 2),
        ("r", "run 3", "published", 3),
        ("s", "s", "staged", 1),
    ]
    assert all(row["began_at"] <= row["ended_at"] for row in rows)
    assert (rows[0]["rows_published"], rows[1]["reason"], rows[2]["view"]) == (98, "recheck failed", "published.r")


def test_refusals_are_runs_that_published_nothing(published: Store, ask: Ask) -> None:
    (row,) = ask("SELECT * FROM {}refusals")
    assert row | {"release": "r", "run": "run 2", "outcome": "refused", "reason": "recheck failed"} == row


def test_current_guarantees_are_of_the_last_check_of_what_is_shown(published: Store, ask: Ask) -> None:
    with published.write() as connection:
        again = Event(release="r", state="published", run="run 4", version=3)
        record(connection, again, [guarantee("c", "recheck", 0.5), guarantee("l", "search", 0.5)])
    rows = ask("SELECT * FROM {}current_guarantees ORDER BY position")
    assert [(row["version"], row["parameter"], row["stage"], row["margin"]) for row in rows] == [
        (3, "c", "recheck", 0.5),
        (3, "l", "search", 0.5),
    ]
