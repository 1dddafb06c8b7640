"""A release whose blocks are the boxes of a recoding map, through the job itself."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pandas as pd
import pytest

import qblock
from qblock.errors import InputError, Refused
from qblock.ledger.stores import store_of
from qblock.release.dry_run import dry_run
from qblock.release.erase import erase
from qblock.release.preview import preview
from qblock.release.rekey import rekey
from qblock.release.retype import retype
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from qblock.search.audit import audit_spec
from qblock.search.run import open_task, run_search
from release.jobs import Job, MakeJob
from release.test_waiting import events

pytestmark = pytest.mark.either_engine

ATTRIBUTES: dict[str, Any] = {
    "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 20], "start": 0}},
    "town": {"role": "quasi_identifier", "hierarchy": "suppress"},
    "value": "sensitive",
}
AGES = (21, 22, 23, 24, 25, 31, 32, 33, 34, 35, 47, 48)
TOWNS = ("oslo", "oslo", "oslo", "rome", "rome", "rome", "lima", "bonn")
PEOPLE: dict[str, list[Any]] = {
    "id": [f"p{i:02}" for i in range(48)],
    "age": [AGES[i % len(AGES)] for i in range(48)],
    "town": [TOWNS[i % len(TOWNS)] for i in range(48)],
    "value": ["abc"[i % 3] for i in range(48)],
}
PRIVACY = [{"k_anonymity": {"k": 3}}, {"distinct_l_diversity": {"l": 2}}]
SEARCH = {"recoding": "multidimensional", "choose_by": "loss"}


def map_job(make_job: MakeJob, **settings: Any) -> Job:
    known: dict[str, Any] = {
        "attributes": ATTRIBUTES,
        "privacy": PRIVACY,
        "search": SEARCH,
        "entity": "id",
        "versions": {"cohort": 3},
    }
    return make_job(PEOPLE, {"age": "INTEGER"}, **{**known, **settings})


def boxes(job: Job) -> Counter[tuple[str, ...]]:
    """How many rows each box shows."""
    return Counter(tuple(row[:2]) for row in job.published())


def test_the_first_version_shows_the_boxes_that_a_search_finds(make_job: MakeJob) -> None:
    job = map_job(make_job)
    with open_task(job.spec) as task:
        found = run_search(task)
        assert found.recoded is not None
        expected, shares = found.recoded.boxes, found.recoded.shares()
    made = job.begin()
    assert made.search["attributes"] == shares
    assert (made.status, made.node, made.boxes) == ("published", {}, len(expected))
    assert sorted(boxes(job)) == expected
    assert min(boxes(job).values()) >= 3
    assert len({town for _, town in expected}) > 1
    assert not verify(job.spec).problems
    assert events(job, "published")[0]["node"] is None
    assert events(job, "published")[0]["detail"]["boxes"] == len(expected)
    # What release and verify print of a column is what its published labels say.
    words = dict(qblock.Release(job.spec).verify().in_words)
    for i, name in enumerate(("age", "town")):
        labels = Counter(row[i] for row in job.published())
        suppressed = labels.pop("*", 0)
        said = []
        if labels:
            like = min(labels, key=lambda label: (-labels[label], label))
            share = f"{100 * labels[like] / len(job.published()):.0f} %"
            said.append(f"{len(labels)} label{'s' * (len(labels) > 1)} such as {like} for {share}")
        if suppressed:
            said.append("suppressed to *" + f" for {100 * suppressed / len(job.published()):.0f} %" * bool(labels))
        assert words[name] == ", ".join(said)
        assert made.in_words[name] == words[name]


def test_unchanged_data_stays_and_publishes_the_same_when_forced(make_job: MakeJob) -> None:
    job = map_job(make_job)
    first = job.begin()
    assert (job.run().status, job.run().version) == ("unchanged", 1)
    again = job.run(force=True)
    assert (again.status, again.version, again.digest) == ("published", 2, first.digest)
    assert again.choice == first.choice
    assert again.protected is first.protected is False


def test_later_versions_have_the_boxes_of_the_first(make_job: MakeJob) -> None:
    job = map_job(make_job)
    job.begin()
    before = boxes(job)
    # A combination that nobody had falls into a box all the same.
    job.change("INSERT INTO people VALUES ('n1', 22, 'oslo', 'a'), ('n2', 22, 'oslo', 'b'), ('n3', 22, 'oslo', 'c')")
    job.change("INSERT INTO people VALUES ('n4', 29, 'bonn', 'a'), ('n5', 29, 'bonn', 'c'), ('n6', 29, 'bonn', 'b')")
    found = job.run()
    assert (found.status, found.version, found.waiting) == ("published", 2, {})
    after = boxes(job)
    assert set(before) == set(after)
    assert sum(after.values()) == sum(before.values()) + 6
    assert not verify(job.spec).problems


def test_a_value_that_came_later_has_a_box_of_its_own(make_job: MakeJob) -> None:
    job = map_job(make_job)
    job.begin()
    before = boxes(job)
    job.change("INSERT INTO people VALUES ('n1', 95, 'cairo', 'a'), ('n2', 95, 'cairo', 'b'), ('n3', 95, 'cairo', 'c')")
    found = job.run()
    with store_of(job.spec).read() as reader:
        kept = json.loads(reader.reference("people", 1) or "{}")["map"]
    assert found.status in ("published", "unchanged")
    assert set(before) <= set(boxes(job))
    assert kept["quasi_identifiers"] == ["age", "town"]
    assert not verify(job.spec).problems


def test_who_leaves_and_who_waits(make_job: MakeJob) -> None:
    job = map_job(make_job)
    job.begin()
    job.change("DELETE FROM people WHERE id IN ('p00', 'p01')")
    insert_one = "INSERT INTO people VALUES ('n1', 22, 'oslo', 'a')"
    job.change(insert_one)
    found = job.run()
    assert (found.status, found.waiting) == ("unchanged", {"newcomers": 1, "leavers": 2})
    said = preview(job.spec)
    assert [step.step for step in said.steps if step.step.startswith(("search", "check_map"))] == ["check_map"]
    assert said.changes is not None
    assert (said.changes.newcomers, said.changes.leavers) == (1, 2)
    assert job.run().status == "unchanged"


def test_rolling_back_and_dry_runs(make_job: MakeJob) -> None:
    job = map_job(make_job)
    job.begin()
    before = boxes(job)
    job.change("INSERT INTO people VALUES ('n1', 22, 'oslo', 'a'), ('n2', 22, 'oslo', 'b'), ('n3', 22, 'oslo', 'c')")
    assert dry_run(job.spec).status == "dry_run"
    assert "version 2 would be published" in events(job, "dry_run")[-1]["reason"]
    job.run()
    back = rollback(job.spec, 1)
    assert (back.status, back.node, back.boxes) == ("rolled_back", {}, len(before))
    assert boxes(job) == before
    assert (job.run().status, len(boxes(job))) == ("published", len(before))


def test_recoding_does_not_change_between_versions(make_job: MakeJob) -> None:
    job = map_job(make_job)
    job.begin()
    job.set(search={"choose_by": "loss"})
    with pytest.raises(Refused, match="was published with a recoding map"):
        job.run(force=True)
    job.set(search=SEARCH)
    assert job.run().status == "unchanged"


def test_a_node_is_not_followed_by_a_map(make_job: MakeJob) -> None:
    job = map_job(make_job, search={"choose_by": "loss"})
    job.begin()
    with pytest.raises(Refused, match="was published at a node"):
        job.set(search=SEARCH).run(force=True)


def test_a_kept_map_that_fails_other_models_is_refused(make_job: MakeJob) -> None:
    job = map_job(make_job, versions={"on_refusal": "refuse"})
    job.begin()
    job.set(privacy=[{"k_anonymity": {"k": 20}}])
    with pytest.raises(Refused, match=r"the published recoding map was kept.*fails"):
        job.run()


def test_suppressed_boxes_stay_suppressed(make_job: MakeJob) -> None:
    job = map_job(make_job, suppression_limit=8, privacy=[{"k_anonymity": {"k": 6}}], versions={})
    made = job.begin()
    assert made.suppressed > 0
    assert sum(boxes(job).values()) == 48 - made.suppressed
    assert job.run().status == "unchanged"
    assert not verify(job.spec).problems


def test_the_partition_check_is_verified_from_what_is_kept(make_job: MakeJob) -> None:
    asked = {"n": 20, "t": 0.2, "variant": "partition"}
    job = map_job(make_job, privacy=[{"k_anonymity": {"k": 3}}, {"nt_closeness": asked}], versions={"joint": "none"})
    made = job.begin()
    assert made.boxes is not None
    assert made.boxes > 1
    found = verify(job.spec)
    assert (found.problems, found.recomputed_privately) == ((), ("nt_closeness",))


def test_people_with_several_rows(make_job: MakeJob) -> None:
    people = {**PEOPLE, "id": [f"p{i % 24:02}" for i in range(48)]}
    settings = {"attributes": ATTRIBUTES, "privacy": PRIVACY, "search": SEARCH, "entity": "id", "count": "entities"}
    job = make_job(people, {"age": "INTEGER"}, **settings, versions={"cohort": 4})
    made = job.begin()
    assert made.boxes is not None
    assert made.boxes > 1
    assert job.run().status == "unchanged"
    job.change("INSERT INTO people VALUES " + ", ".join(f"('n{i}', 22, 'oslo', '{'abcd'[i]}')" for i in range(4)))
    assert job.run().status in ("published", "unchanged")
    assert not verify(job.spec).problems


def test_null_has_a_label_of_its_own(make_job: MakeJob) -> None:
    attributes = {**ATTRIBUTES, "town": {"role": "quasi_identifier", "hierarchy": "suppress", "nulls": "top"}}
    people = {**PEOPLE, "town": [None if town == "rome" else town for town in PEOPLE["town"]]}
    settings = {"attributes": attributes, "privacy": PRIVACY, "search": SEARCH, "entity": "id"}
    job = make_job(people, {"age": "INTEGER"}, **settings)
    job.begin()
    assert "(missing)" in {town for _, town in boxes(job)}
    assert not verify(job.spec).problems


def test_an_audit_is_of_the_map(make_job: MakeJob) -> None:
    job = map_job(make_job)
    found = audit_spec(job.spec)
    assert (found["node"], found["levels"]) == ({}, None)
    assert found["boxes"] > 1
    assert found["satisfied"] is True
    assert {one["model"] for one in found["tightest"]} >= {"k_anonymity", "entropy_l_diversity"}
    assert audit_spec(job.spec, "top")["levels"] == [3, 1]


def test_the_type_of_a_source_column_is_not_that_of_its_labels(make_job: MakeJob) -> None:
    job = map_job(make_job)
    job.begin()
    said = preview(job.spec)
    assert not [note for note in said.notes if "types have changed" in note]
    assert retype(job.spec).columns == ()


def kept(job: Job, version: int) -> dict[str, Any]:
    with store_of(job.spec).read() as reader:
        found: dict[str, Any] = json.loads(reader.reference("people", version) or "{}")["map"]
    return found


NAMED: dict[str, Any] = {**SEARCH, "node": {"version": 1}}
"""A map by its version."""
MORE = "INSERT INTO people VALUES " + ", ".join(
    f"('n{i}', {21 + i % 2 * 26}, 'bonn', '{'abc'[i % 3]}')" for i in range(12)
)
"""Where more people are alike a search splits further."""
APART: dict[str, Any] = {"joint": "none"}


def test_a_version_has_the_map_that_the_spec_names(make_job: MakeJob) -> None:
    job = map_job(make_job, versions=APART)
    first = job.begin()
    before = boxes(job)
    job.change(MORE)
    job.set(search=NAMED)
    said = preview(job.spec)
    assert [(step.step, step.description) for step in said.steps if step.step == "check_map"] == [
        (
            "check_map",
            "Give every row its box of the recoding map of version 1, and check the boxes against k_anonymity, "
            "distinct_l_diversity; nothing is searched.",
        )
    ]
    found = job.run()
    assert (found.status, found.version, found.optimality) == ("published", 2, "pinned")
    assert (found.choice, found.protected) == (first.choice, first.protected) == ("minimal", False)
    after = boxes(job)
    assert set(after) == set(before)
    assert sum(after.values()) == sum(before.values()) + 12
    assert kept(job, 2) == kept(job, 1)
    assert not verify(job.spec).problems
    assert job.run().status == "unchanged"
    job.set(search=SEARCH).run()
    assert set(boxes(job)) != set(before), "a search would have found the same: the test shows nothing"


def test_a_search_and_an_audit_are_of_the_map_that_is_named(make_job: MakeJob) -> None:
    job = map_job(make_job, versions=APART)
    made = job.begin()
    searched = qblock.Release(job.spec).search().to_dict()
    release = qblock.Release(job.set(search=NAMED).spec)
    found = release.search().to_dict()
    assert (found["choice"], found["optimality"], found["looked_at_sensitive"]) == ("pinned", "pinned", None)
    assert found["why"].startswith("the recoding map of version 1 was checked")
    for figure in ("boxes", "attributes", "metrics", "tightest", "suppressed"):
        assert found["chosen"][figure] == searched["chosen"][figure], figure
    assert found["chosen"]["attributes"] == made.search["attributes"]
    audited = release.audit().to_dict()
    assert (audited["boxes"], audited["satisfied"]) == (made.boxes, True)
    assert audited["metrics"] == searched["chosen"]["metrics"]


def test_a_named_map_that_fails_is_refused(make_job: MakeJob) -> None:
    job = map_job(make_job, versions=APART)
    made = job.begin()
    before = boxes(job)
    job.set(search=NAMED, privacy=[{"k_anonymity": {"k": 20}}])
    with pytest.raises(Refused, match="the recoding map of version 1, over this data, fails k_anonymity"):
        job.run()
    assert boxes(job) == before
    audited = audit_spec(job.spec, stated=kept(job, 1))
    assert (audited["boxes"], audited["satisfied"]) == (made.boxes, False)
    assert "fails k_anonymity" in (qblock.Release(job.spec).search().refused or "")
    # Those that fail are suppressed where all of them may be.
    smallest = min(before.values())
    lost = sum(rows for rows in before.values() if rows == smallest)
    job.set(privacy=[{"k_anonymity": {"k": smallest + 1}}], suppression_limit=lost)
    found = job.run()
    assert (found.status, found.suppressed) == ("published", lost)
    assert boxes(job) == {box: rows for box, rows in before.items() if rows > smallest}


def test_maps_that_cannot_be_named(make_job: MakeJob) -> None:
    job = map_job(make_job, versions=APART)
    with pytest.raises(InputError, match=r"version 1 of release people was never published; leave search.node out"):
        job.set(search=NAMED).run()
    job.set(search=SEARCH).begin()
    job.set(search={"choose_by": "loss"}).run(force=True)
    for number, said in ((9, "was never published; name one of 1"), (2, "was published at a node and has no")):
        job.set(search={**SEARCH, "node": {"version": number}})
        for command in (job.run, lambda: preview(job.spec), lambda: qblock.Release(job.spec).audit()):
            with pytest.raises(InputError, match=rf"version {number} .*{said}"):
                command()
    for node in ([0, 0], {"age": 0, "town": 1}, {"version": 1, "age": 2}, {"version": "one"}):
        with pytest.raises(InputError, match=r"has no levels; write \{version: N\}|is not a whole number"):
            _ = job.set(search={**SEARCH, "node": node}).spec


def test_the_named_map_outlives_its_version(make_job: MakeJob) -> None:
    job = map_job(make_job, versions={**APART, "keep": 1})
    job.begin()
    named = kept(job, 1)
    job.set(search=NAMED)
    for i in range(3):
        job.change(f"INSERT INTO people VALUES ('n{i}', 21, 'oslo', 'a')")
        assert job.run().status == "published"
    assert {event["version"] for event in events(job, "retired")} == {1, 2, 3}
    assert kept(job, 1) == kept(job, 4) == named
    assert not verify(job.spec).problems
    job.set(search={**SEARCH, "node": {"version": 2}})
    with pytest.raises(InputError, match="version 2 was retired, and its recoding map with it; name one of 1, 4"):
        job.run()


def test_the_map_of_versions_that_are_checked_together_may_be_named(make_job: MakeJob) -> None:
    job = map_job(make_job)
    job.begin()
    job.set(search=NAMED)
    assert job.run().status == "published", "another spec"
    assert job.run().status == "unchanged"


def test_withdrawals_from_boxes(make_job: MakeJob) -> None:
    job = map_job(make_job)
    job.begin()
    before = boxes(job)
    assert erase(job.spec, ["p00"]).status == "queued"
    gone = erase(job.spec, ["p01"], now=True, agree=lambda sharing: True)
    assert gone.published is not None
    left = boxes(job)
    assert set(left) <= set(before)
    assert sum(left.values()) <= sum(before.values()) - 1
    assert min(left.values()) >= 3
    assert not verify(job.spec).problems


def test_a_new_key_keeps_boxes(make_job: MakeJob) -> None:
    job = map_job(make_job)
    job.begin()
    before = boxes(job)
    rekey(store_of(job.spec))
    assert job.run().status == "unchanged"
    job.change("INSERT INTO people VALUES ('n1', 22, 'oslo', 'a'), ('n2', 22, 'oslo', 'b'), ('n3', 22, 'oslo', 'c')")
    assert (job.run().status, set(boxes(job))) == ("published", set(before))


def test_a_table_has_a_map_but_no_versions() -> None:
    data = pd.DataFrame(PEOPLE)
    asked = {name: ATTRIBUTES[name] for name in ("age", "town")}
    found = qblock.anonymize(data, asked, ["value"], privacy=PRIVACY, search=SEARCH)
    number = found.to_dict()["boxes"]
    assert number > 1
    assert found.frame.groupby(["age", "town"]).size().min() >= 3
    assert len(found.frame.groupby(["age", "town"])) == number
    with pytest.raises(InputError, match=r"search\.node: a table has no versions; leave it out"):
        qblock.anonymize(data, asked, ["value"], privacy=PRIVACY, search=NAMED)


@pytest.mark.parametrize("age", [{"ranges": [5], "start": 0}, {"ranges": [5, 10, 20], "start": 0}, "suppress"])
def test_a_named_map_over_another_hierarchy(make_job: MakeJob, age: Any) -> None:
    job = map_job(make_job, versions=APART)
    job.begin()
    before = boxes(job)
    changed = {**ATTRIBUTES, "age": {"role": "quasi_identifier", "hierarchy": age}}
    job.set(search=NAMED, attributes={**job.settings["attributes"], **changed})
    with pytest.raises(InputError, match="age: the recoding map has labels of levels 0 to 3"):
        job.run()
    assert boxes(job) == before


def test_a_named_map_is_of_the_same_quasi_identifiers(make_job: MakeJob) -> None:
    job = map_job(make_job, versions=APART)
    job.begin()
    before = boxes(job)
    own = job.settings["attributes"]
    turned = {name: own[name] for name in ("town", "age", *(name for name in own if name not in ("town", "age")))}
    fewer = {**own, "town": "identifying"}
    for attributes in (turned, fewer):
        job.set(search=NAMED, attributes=attributes)
        for command in (job.run, lambda: preview(job.spec), lambda: qblock.Release(job.spec).search()):
            with pytest.raises(
                InputError, match=r"version 1 is of age, town, and .* are (town, age|age)\. Write them as they were"
            ):
                command()
    assert boxes(job) == before


@pytest.mark.parametrize("recoding", ["multidimensional", "full_domain"])
def test_nothing_that_is_published_tells_where_in_its_cell_a_value_lies(make_job: MakeJob, recoding: str) -> None:
    """Not labels, bounds or helper views; and a value that moves within its cell is no change."""
    doses = [age + (i * 7919 % 997) / 1000 for i, age in enumerate(PEOPLE["age"])]
    attributes = {**ATTRIBUTES, "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 20], "finest": 1}}}
    search = {"recoding": recoding, "choose_by": "loss"}
    settings: dict[str, Any] = {"attributes": attributes, "privacy": PRIVACY, "search": search, "entity": "id"}
    job = make_job({**PEOPLE, "age": doses}, {"age": "DECIMAL(9, 5)"}, versions={"cohort": 3}, **settings)
    job.begin()

    def shown() -> list[Any]:
        views = ("people", "people_levels", "people_columns", "people_blocks", "people_guarantees")
        return [sorted(job.query(f"SELECT * FROM published.{view}"), key=str) for view in views]

    before = shown()
    ends = {str(end) for row in job.query("SELECT low, high FROM published.people_levels") for end in row}
    assert not ends & {repr(dose) for dose in doses if dose % 1}
    job.change("UPDATE people SET age = floor(age) + 0.99999 WHERE id IN ('p01', 'p17')")
    assert job.run().status == "unchanged"
    job.run(force=True)
    assert shown() == before
    assert not verify(job.spec).problems
