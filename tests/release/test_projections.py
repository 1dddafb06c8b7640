"""A release whose k-anonymity is of some quasi-identifiers alone: counted again in the copy, and verified."""

from __future__ import annotations

from collections import Counter

import pytest

from qblock.cli.app import run
from qblock.errors import Refused
from qblock.release.verify import verify
from release.jobs import PEOPLE, Job, MakeJob

pytestmark = pytest.mark.either_engine


def asking(job: Job, k: int, **more: object) -> Job:
    return job.set(privacy=[{"k_anonymity": {"k": k, **more}}], versions={"joint": "none"})


@pytest.mark.parametrize(("k", "more"), [(3, {"of": ["zip"]}), (4, {"any": 1})], ids=str)
def test_the_copy_is_counted_as_the_search_counted(make_job: MakeJob, k: int, more: dict[str, object]) -> None:
    job = make_job({**PEOPLE, "zip": ["13053", "13068", "14850"] * 4, "age": sorted([21, 35, 52] * 4)})
    released = asking(job, k, **more).run()
    shown = job.query("SELECT zip, age FROM published.people")
    columns = [0] if "of" in more else [0, 1]
    expected = min(min(Counter(row[i] for row in shown).values()) for i in columns)
    (found,) = released.tightest
    assert (found.values[0].value, found.holds) == (expected, True)
    assert expected >= k > min(Counter(shown).values())
    verified = verify(job.spec)
    assert verified.problems == ()
    assert verified.tightest == released.tightest


def test_one_more_than_the_table_has_is_refused(job: Job) -> None:
    with pytest.raises(Refused, match="k_anonymity asks k 13"):
        asking(job, 13, of=["zip"]).run()


def test_the_command_ends_with_2_where_it_cannot_be_counted(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    asking(job, 5, of=["shoes"])
    assert run(["search", str(job.write())]) == 2
    assert "of names shoes, which is not a quasi_identifier" in capsys.readouterr().err
