"""A release whose blocks each have k households as well as k people: published, verified, told to readers, rolled
back to."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from qblock.errors import Refused
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from release.jobs import PEOPLE, Job, MakeJob

pytestmark = pytest.mark.either_engine
FAMILIES = ["f1", "f1", "f1", "f1", "", None, "f2", "f3", "f1", "f5", "f6", "f7"]
"""Of PEOPLE: five are one family, '' is another, and None is of none: 8 in all."""


def asking(job: Job, k: int, **more: Any) -> Job:
    return job.set(privacy=[{"k_anonymity": {"k": k}}], groups="family", versions={"joint": "none"}, **more)


def slow_least(job: Job, table: dict[str, list[Any]]) -> int:
    """The fewest families of a published block. Rows are told by their values in ward and disease and by zip and age,
    which the view shows as labels: so each of them is looked up by what its label stands for."""
    found: dict[tuple[str, str], list[Any]] = defaultdict(list)
    blocks = set(job.query("SELECT zip, age FROM published.people"))
    for zip_code, age, family in zip(table["zip"], table["age"], table["family"], strict=True):
        for shown_zip, shown_age in blocks:
            low, _, high = shown_age.partition("-")
            of_zip = zip_code.startswith(shown_zip.rstrip("*"))
            if of_zip and (shown_age == "*" or int(low) <= age <= int(high)):
                found[shown_zip, shown_age].append(family)
    assert found.keys() == blocks
    return min(len(dict.fromkeys(families)) for families in found.values())


@pytest.mark.parametrize("limit", [0, 4])
def test_readers_are_shown_blocks_of_k_families(make_job: MakeJob, limit: int) -> None:
    table = {**PEOPLE, "family": FAMILIES}
    job = asking(make_job(table), 3, suppression_limit=limit)
    released = job.run()
    (found,) = released.tightest
    expected = slow_least(job, table)
    assert (found.values[0].value, found.holds) == (expected, True)
    assert expected >= 3
    assert {"family", "f1"} & {
        str(value) for row in job.query("SELECT * FROM published.people") for value in row
    } == set()
    (told,) = job.query("SELECT asked, holds, satisfied, in_words FROM published.people_guarantees")
    assert told[:3] == ("k = 3", True, None)
    assert told[3].endswith("at least 3 rows that look the same, of at least 3 households or other groups")
    verified = verify(job.spec)
    assert (verified.problems, verified.not_recomputed) == ((), ())
    assert verified.tightest == released.tightest
    assert verified.recomputed_privately == ("k_anonymity",)


def test_people_alone_would_be_shown_in_more_detail(make_job: MakeJob) -> None:
    job = make_job({**PEOPLE, "family": FAMILIES})
    alone = job.set(privacy=[{"k_anonymity": {"k": 3}}], versions={"joint": "none"}).run()
    asked = asking(job, 3).run()
    assert (alone.status, asked.status) == ("published", "published")
    assert sum(asked.node.values()) > sum(alone.node.values())
    # The first version was never checked for families.
    with pytest.raises(Refused, match="was not checked for it"):
        rollback(job.spec, 1)


def test_one_more_than_the_table_has_is_refused(make_job: MakeJob) -> None:
    with pytest.raises(Refused, match="k_anonymity asks k 9"):
        asking(make_job({**PEOPLE, "family": FAMILIES}), 9).run()


def test_who_lives_with_whom_is_part_of_the_source(make_job: MakeJob) -> None:
    job = asking(make_job({**PEOPLE, "family": FAMILIES}), 3)
    job.run()
    assert job.run().status == "unchanged"
    job.change("UPDATE people SET family = 'f1' WHERE family IN ('f5', 'f6', 'f7')")
    again = job.run()
    (found,) = again.tightest
    assert found.values[0].value == slow_least(
        job, {**PEOPLE, "family": ["f1" if f in {"f5", "f6", "f7"} else f for f in FAMILIES]}
    )


def test_families_are_counted_among_the_rows_that_the_condition_keeps(make_job: MakeJob) -> None:
    table = {**PEOPLE, "family": FAMILIES}
    job = asking(make_job(table), 2, search={"node": [2, 2]})
    job.set(source={**job.settings["source"], "where": "family <> 'f1' OR family IS NULL"})
    released = job.run()
    kept = {name: [v for v, f in zip(values, FAMILIES, strict=True) if f != "f1"] for name, values in table.items()}
    assert (released.rows, released.tightest[0].values[0].value) == (7, slow_least(job, kept))
