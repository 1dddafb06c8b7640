"""A first run that is copied is the one that the job would have done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from engines import create_table, database

from qblock.release.verify import verify
from qblock.results.release import Published
from release.first import FirstRuns
from release.jobs import PEOPLE, Job, new_job

pytestmark = [pytest.mark.handed_on, pytest.mark.usefixtures("postgresql_version")]


class Counted(Job):
    """A job that counts its runs."""

    ran = 0

    def run(self, **options: object) -> Published:  # type: ignore[override]
        self.ran += 1
        return super().run(**options)  # type: ignore[arg-type]


@pytest.fixture
def jobs(server: str, tmp_path: Path) -> Iterator[list[Counted]]:
    """Four jobs over the same people, each in a database of its own."""
    with ExitStack() as stack:
        made = []
        for number in range(4):
            (folder := tmp_path / str(number)).mkdir()
            url = stack.enter_context(database(server))
            create_table(url, "people", PEOPLE)
            plain = new_job("postgresql", folder, url)
            made.append(Counted(plain.engine, plain.folder, plain.url, plain.settings))
        yield made


def test_it_is_copied_for_the_same_table_and_spec_alone(jobs: list[Counted], server: str, tmp_path: Path) -> None:
    first, same, changed, other = jobs
    changed.change("DELETE FROM people WHERE disease = 'cancer'")
    other.set(versions={"joint": "none"})
    numbers = iter(range(9))
    with closing(FirstRuns(lambda: tmp_path / f"kept {next(numbers)}")) as runs:
        found = [runs.run(job, server, "people") for job in jobs]
    assert [job.ran for job in jobs] == [1, 0, 1, 1]
    assert [result.rows for result in found] == [12, 12, 10, 12]
    assert found[0].ledger_head == found[1].ledger_head
    assert same.published() == first.published()
    assert same.run().status == "unchanged"
    assert verify(same.spec).problems == ()
