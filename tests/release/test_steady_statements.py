"""What a run asks the database for does not grow with the versions that there are."""

from __future__ import annotations

from typing import Any

import pytest

from qblock.joint import turn
from release.jobs import MakeJob
from release.test_waiting import HOLD_BACK, insert, people_job

pytestmark = pytest.mark.either_engine


def test_the_check_of_versions_together_is_as_many_statements_however_many_there_are(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    check = turn.check

    def counting(book: Any, *arguments: Any, **more: Any) -> Any:
        before = book.own.statements
        found = check(book, *arguments, **more)
        counted.append(book.own.statements - before)
        return found

    monkeypatch.setattr(turn, "check", counting)
    job = people_job(make_job, "p1:q:a p2:q:b", **HOLD_BACK)
    job.run()
    for week in range(6):
        insert(job, f"n{week}a:q:a n{week}b:q:b")
        assert job.run().status == "published"
    assert len(counted) == 7
    assert len(set(counted[2:])) == 1
