"""A ledger is brought to the schema of a later program by the first run of that."""

from __future__ import annotations

from pathlib import Path

import pytest
from migrated import one_more

from qblock.release.apply import plan
from release.jobs import Job

pytestmark = pytest.mark.either_engine


def test_a_ledger_of_an_older_schema_is_planned_for_and_upgraded(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert job.run().status == "published"
    later = one_more(monkeypatch, tmp_path / "later")
    assert plan(job.spec).steps[1].describe() == f"Bring the ledger from revision 0001 to {later}."
    assert (job.run().status, job.run(force=True).version) == ("unchanged", 2)
