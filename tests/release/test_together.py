"""Versions of a release that names its entities: checked together before the second one is published."""

from __future__ import annotations

import pytest

from qblock.errors import Refused
from qblock.release.history import history
from qblock.release.verify import verify
from release.jobs import ATTRIBUTES, Job

ENTITIES = {"attributes": ATTRIBUTES, "entity": "name"}
NEWCOMER = "INSERT INTO people (name, zip, age, disease, ward) VALUES ('late', '13053', 28, 'flu', 'A')"
NEWCOMERS = [
    f"INSERT INTO people (name, zip, age, disease, ward) VALUES ('late {i}', '{zip_}', {age}, '{disease}', 'A')"
    for i, (zip_, age, disease) in enumerate(
        (zip_, age, disease)
        for zip_, age in (("13053", 28), ("14853", 50))
        for disease in ("heart", "viral", "cancer", "flu")
    )
]


def test_a_lone_newcomer_is_refused_and_a_group_is_published(job: Job) -> None:
    job.set(**ENTITIES)
    job.run()
    before = job.published()
    job.change(NEWCOMER)
    with pytest.raises(Refused, match=r"2 versions together .* joint cells 1 fail"):
        job.run()
    assert job.published() == before
    event = history(job.spec)["events"][-1]
    assert (event["version"], event["state"]) == (None, "refused")
    assert "late" not in event["reason"]
    job.change("DELETE FROM people WHERE name = 'late'")
    assert job.run().status == "unchanged"
    for statement in NEWCOMERS:
        job.change(statement)
    result = job.run()
    assert (result.status, result.version, result.rows) == ("published", 2, 20)
    assert not verify(job.spec).problems


def test_leavers_of_one_value_are_refused(job: Job) -> None:
    job.set(**ENTITIES)
    job.run()
    job.change("DELETE FROM people WHERE disease = 'cancer'")
    with pytest.raises(Refused, match="versions together"):
        job.run()
    # What an earlier run recorded and never showed does not count against the next one.
    with pytest.raises(Refused, match="2 versions together"):
        job.run()


def test_a_version_published_without_entities_cannot_be_checked_with(job: Job) -> None:
    job.run()
    job.set(**ENTITIES)
    job.change(NEWCOMER)
    with pytest.raises(Refused, match="published without a crosswalk"):
        job.run()
