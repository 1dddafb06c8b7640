"""Blocks that are one household or site: who lives together looks alike."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest

from qblock.checks.groups import OneGroup, one_groups
from qblock.releases import Release
from qblock.search.run import open_task
from release.jobs import Job, MakeJob

pytestmark = pytest.mark.either_engine
ATTRIBUTES: dict[str, Any] = {
    "name": "identifying",
    "household": "identifying",
    "zip": {"role": "quasi_identifier", "hierarchy": {"digits": 4}, "nulls": "top"},
    "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [20, 60]}},
    "disease": "sensitive",
}


def homes(alone: int = 3, shared: int = 40, seed: int = 1) -> dict[str, list[Any]]:
    """alone: homes of four with a zip code of their own; shared: homes of four in four other zip codes."""
    rng = random.Random(seed)
    people = [(f"h{i}", f"{9000 + i}") for i in range(alone) for _ in range(4)]
    people += [(f"g{i}", f"{1000 + i % 4}") for i in range(shared) for _ in range(4)]
    return {
        "name": [f"p{i}" for i in range(len(people))],
        "household": [home for home, _ in people],
        "zip": [zip_ for _, zip_ in people],
        "age": [rng.randrange(60) for _ in people],
        "disease": [rng.choice(["flu", "cold", "gout"]) for _ in people],
    }


def job_of(make_job: MakeJob, columns: dict[str, list[Any]], **settings: Any) -> Job:
    known = {"attributes": ATTRIBUTES, "privacy": [{"k_anonymity": {"k": 3}}], "search": {"node": {"zip": 0, "age": 2}}}
    return make_job(columns, **{**known, **settings})


def groups_of(job: Job, node: tuple[int, ...]) -> list[OneGroup]:
    with open_task(job.spec) as task:
        return one_groups(task, node)


def slowly(columns: dict[str, list[Any]], column: str, label: Any, least: int) -> OneGroup:
    """Block after block. label: of a row's zip code."""
    blocks = defaultdict(list)
    for zip_, value in zip(columns["zip"], columns[column], strict=True):
        blocks[label(zip_)].append(value)
    one = [rows for rows in blocks.values() if len(rows) >= least and None not in rows and len(set(rows)) == 1]
    return OneGroup(column, len(one), sum(map(len, one)))


def test_blocks_of_one_household_are_counted(make_job: MakeJob) -> None:
    columns = homes()
    columns["zip"][-4:] = [None] * 4
    columns["household"][0] = None
    job = job_of(make_job, columns)
    assert (
        groups_of(job, (0, 2)) == [slowly(columns, "household", lambda zip_: zip_, 3)] == [OneGroup("household", 3, 12)]
    )
    # All of 900_ are one block, and NULL is `*`.
    assert groups_of(job, (1, 2)) == [slowly(columns, "household", lambda zip_: zip_ and zip_[:3], 3)]
    assert groups_of(job, (4, 2)) == []


def test_a_block_that_a_model_suppresses_is_none(make_job: MakeJob) -> None:
    columns = homes()
    job = job_of(make_job, columns, privacy=[{"k_anonymity": {"k": 5}}], suppression_limit=0.2)
    assert groups_of(job, (0, 2)) == []


@pytest.mark.parametrize("said", ["a column with a value for each row", "wide areas", "the groups that are counted"])
def test_it_is_silent_of_what_is_no_group(make_job: MakeJob, said: str) -> None:
    columns, settings = homes(), {}
    if said == "a column with a value for each row":
        columns["household"] = columns["name"]
    elif said == "wide areas":  # the region of a zip code, of 80 rows and more
        columns["household"] = [zip_[0] for zip_ in columns["zip"]]
    else:
        settings = {"groups": "household", "attributes": {**ATTRIBUTES, "household": "identifying"}}
    assert groups_of(job_of(make_job, columns, **settings), (0, 2)) == []


def test_the_command_says_how_to_count_groups(make_job: MakeJob) -> None:
    job = job_of(make_job, homes())
    (finding,) = Release(job.spec).check().checks
    assert (finding.check, finding.severity, finding.columns) == ("groups", "warning", ("household",))
    assert finding.figure == {"blocks": 3, "rows": 12}
    assert finding.sentence.startswith("3 groups are of one household each, in 12 rows")
    assert finding.remedy == "groups: household"
    job.set(attributes={**ATTRIBUTES, "household": "insensitive"})
    remedies = {f.check: f.remedy for f in Release(job.spec).check().checks}
    assert remedies["groups"] == "attributes: {household: identifying}, and groups: household"
    job.set(attributes=ATTRIBUTES, groups="household", search={"node": {"zip": 1, "age": 2}})
    assert Release(job.spec).check().checks == ()
