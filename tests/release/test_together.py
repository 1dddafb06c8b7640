"""Versions of a release that names its entities: checked together before the second one is published."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from qblock.errors import QblockError, Refused
from qblock.ledger.history import history
from qblock.release import apply
from qblock.release.erase import erase
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from qblock.versions.policy import common
from release.jobs import ATTRIBUTES, Job, MakeJob

pytestmark = pytest.mark.either_engine

ENTITIES = {"attributes": ATTRIBUTES, "entity": "name", "versions": {"on_refusal": "refuse"}}
NEWCOMER = "INSERT INTO people (name, zip, age, disease, ward) VALUES ('nobody else', '13053', 28, 'flu', 'A')"
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
    with pytest.raises(Refused, match=r"2 versions together .* 1 of [0-9]+ joint cells fail"):
        job.run()
    assert job.published() == before
    event = history(job.spec)["events"][-1]
    assert (event["version"], event["state"]) == (None, "refused")
    assert "nobody else" not in event["reason"]
    assert "since version 1 of people too few people came to 1 block" in event["reason"]
    assert "13053" not in event["reason"]
    assert "disease: knowing only one person's blocks leaves an attacker at least" in event["reason"]
    job.change("DELETE FROM people WHERE name = 'nobody else'")
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


def test_a_version_published_without_entities_cannot_be_checked_with(released: Job) -> None:
    released.set(**ENTITIES)
    released.change(NEWCOMER)
    with pytest.raises(Refused, match="has no crosswalk"):
        released.run()


XOR = {
    "who": [f"p{i}" for i in range(8)],
    "x": ["0", "0", "0", "0", "1", "1", "1", "1"],
    "y": ["0", "0", "1", "1", "0", "0", "1", "1"],
    "s": ["a", "a", "b", "b", "b", "b", "a", "a"],
}
"""Each of x and y alone hides the value; both together tell it."""


def crossed_columns(make_job: MakeJob) -> Job:
    """A job over XOR."""
    return make_job(
        XOR,
        attributes={
            "x": {"role": "quasi_identifier", "hierarchy": "suppress"},
            "y": {"role": "quasi_identifier", "hierarchy": "suppress"},
            "s": "sensitive",
        },
        entity="who",
        privacy=[{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}],
    )


def crossed(make_job: MakeJob) -> Job:
    """A job whose first version showed y alone, and whose best node would now show x alone."""
    job = crossed_columns(make_job).set(search={"node": [1, 0]}, versions={"cohort": "auto"})
    job.run()
    return job.set(search={"choose_by": "height"}, versions={"on_refusal": "refuse"})


def test_another_node_of_the_same_people_is_refused(make_job: MakeJob) -> None:
    job = crossed(make_job)
    with pytest.raises(Refused, match=r"4 of 4 joint cells fail, with 8 people in them \(distinct_l_diversity"):
        job.run()


def test_somebody_who_moved_stays_where_the_first_version_showed_them(make_job: MakeJob) -> None:
    job = crossed(make_job).set(search={"node": [1, 0]})
    before = job.query("SELECT y, s, count(*) FROM published.people GROUP BY y, s ORDER BY y, s")
    job.change("UPDATE people SET y = '1' WHERE who = 'p0'")
    job.run()
    assert job.query("SELECT y, s, count(*) FROM published.people GROUP BY y, s ORDER BY y, s") == before


def named(job: Job, release: str, other: str) -> Job:
    """A release of the table of `crossed` that names another one, as a view of its own."""
    settings = copy.deepcopy(job.settings) | {"release": release}
    settings["versions"] = {"on_refusal": "refuse", "audience": [other]}
    settings["publish"]["view"] = release
    if job.engine == "duckdb":
        settings["publish"]["url"] = f"duckdb:///{job.folder}/{release}.duckdb"
    return Job(job.engine, job.folder, job.url, settings)


# A run on DuckDB has the file with the crosswalk to itself from its check until it has recorded its version.
@pytest.mark.parametrize("engine_name", ["postgresql"], indirect=True)
def test_what_the_same_readers_are_shown_meanwhile_is_not_added_to(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = crossed_columns(make_job)
    one, two = (named(job, *names) for names in (("one", "two"), ("two", "one")))
    real = common.freeze
    ended = []

    def meanwhile(*arguments: Any) -> None:
        if not ended:  # the first has passed its check, and nobody else can see yet that it is recorded
            ended.append("begun")
            ended.append(two.set(search={"node": [0, 1]}).run().status)
        real(*arguments)

    monkeypatch.setattr(common, "freeze", meanwhile)
    with pytest.raises(Refused, match="another release that the same readers may hold was published meanwhile"):
        one.set(search={"node": [1, 0]}).run()
    assert ended[1] == "published"


def test_a_version_that_shows_who_has_left_is_not_published_again(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [("p1", "q", "b"), ("p2", "q", "c"), *((f"r{i}", "r", "ab"[i % 2]) for i in range(4))]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("id", "block", "value"))}
    job = make_job(
        columns,
        attributes={"block": {"role": "quasi_identifier", "hierarchy": "suppress"}, "value": "sensitive"},
        privacy=[{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}],
        entity="id",
        versions={"on_refusal": "refuse"},
    )
    job.run()
    erase(job.spec, ["r0", "r1"])

    def stays(*_: Any) -> Any:
        raise QblockError("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(apply.Run, "retire_versions", stays)
        assert job.run().rows == 4
    with pytest.raises(Refused, match=r"version 1 .* people have withdrawn since it was published"):
        rollback(job.spec, 1)
    assert len(job.published()) == 4
