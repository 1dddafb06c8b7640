"""What a run asks the database for does not grow with the versions that there are, nor with the runs of a process."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import sqlalchemy as sa

from qblock.engines.postgresql import session as postgresql_session
from qblock.versions import crosswalk
from qblock.versions.policy import batched
from release.jobs import Job, MakeJob
from release.test_waiting import HOLD_BACK, insert, people_job

pytestmark = pytest.mark.either_engine


def test_the_check_of_versions_together_is_as_many_statements_however_many_there_are(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    check = batched.check

    def counting(crosswalk: Any, *arguments: Any, **more: Any) -> Any:
        before = crosswalk.own.statements
        found = check(crosswalk, *arguments, **more)
        counted.append(crosswalk.own.statements - before)
        return found

    monkeypatch.setattr(batched, "check", counting)
    job = people_job(make_job, "p1:q:a p2:q:b", **HOLD_BACK)
    job.run()
    for week in range(6):
        insert(job, f"n{week}a:q:a n{week}b:q:b")
        assert job.run().status == "published"
    assert len(counted) == 7
    assert len(set(counted[2:])) == 1


@pytest.mark.parametrize("engine_name", ["postgresql"], indirect=True)
def test_a_run_right_after_the_first_knows_how_many_are_shown(make_job: MakeJob) -> None:
    """Else the planner takes them for a few, and compares everybody with everybody: 50,000 people took hours."""
    job = people_job(make_job, "p1:q:a p2:q:b", **HOLD_BACK)
    job.run()
    # -1 of a table that was never measured.
    assert job.query("SELECT reltuples FROM pg_class WHERE relname = 'crosswalk_frozen'") == [(2.0,)]


def test_a_run_asks_in_the_words_of_the_run_before(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[str] = []
    make = crosswalk.fresh_name

    def naming() -> str:
        named.append(make())
        return named[-1]

    for module in [module for name, module in sys.modules.items() if name.startswith("qblock.versions.")]:
        if hasattr(module, "fresh_name"):
            monkeypatch.setattr(module, "fresh_name", naming)
    job.set(entity="name")
    runs = []
    for _ in range(3):
        job.run(force=True)
        runs.append(tuple(named))
        named.clear()
    assert len(set(runs[1])) == len(runs[1]) > 0
    assert runs[1] == runs[2]


MOST = {"duckdb": (95, 80), "postgresql": (132, 113)}
"""Statements of an unchanged run: without an entity, and of the steady job."""
SESSIONS = 5
"""Of an unchanged run: two for the lock and the question whether a pooler lends it, the source's, and two at most for
ledger and target, where one is asked while the other is open."""


@pytest.mark.each_engine
@pytest.mark.parametrize("together", [False, True])
def test_an_unchanged_run_asks_little_in_few_sessions(
    job: Job, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.set(**({"entity": "name"} if together else {}))
    job.begin()
    job.run()
    asked: list[str] = []
    started: list[Any] = []
    settle = postgresql_session._settle
    monkeypatch.setattr(postgresql_session, "_settle", lambda *given: (started.append(given[0]), settle(*given))[1])

    def ask(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        asked.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", ask)
    try:
        assert job.run().status == "unchanged"
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", ask)
    assert 0 < len(asked) <= MOST[job.engine][together]
    assert len(started) <= SESSIONS
