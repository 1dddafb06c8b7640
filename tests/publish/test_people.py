"""How many people each block has (`publish.people`): as the source says, checked, and as it was in older versions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import pytest
import sqlalchemy as sa
from release.jobs import Job, MakeJob

from qblock.errors import InputError, Refused
from qblock.publish import copy
from qblock.release.apply import plan
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from qblock.source import SourceTable
from qblock.spec.load import spec_of

VALUES = ("flu", "heart", "cancer", "burn", "asthma")
VISITS: dict[str, list[Any]] = {
    "name": [f"p{i % 40 if i < 60 else i % 7}" for i in range(90)],
    "age": [20 + (i % 40 if i < 60 else i % 7) % 20 for i in range(90)],
    "ward": ["ABC"[(i % 40 if i < 60 else i % 7) % 3] for i in range(90)],
    "disease": [VALUES[i * i % 11 % 5] for i in range(90)],
}
"""Of 40 people, some of whom have one row, some two, and some six and more."""
ATTRIBUTES: dict[str, Any] = {
    "name": "identifying",
    "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [5, 10]}},
    "ward": {"role": "quasi_identifier", "hierarchy": "suppress"},
    "disease": "sensitive",
}


def visits(make_job: MakeJob, publish: dict[str, Any] | None = None, **settings: Any) -> Job:
    defaults: dict[str, Any] = {
        "attributes": ATTRIBUTES,
        "entity": "name",
        "count": "entities",
        "search": {"node": [1, 1]},
        "privacy": [{"k_anonymity": {"k": 3}}, {"distinct_l_diversity": {"l": 2}}],
    }
    job = make_job(VISITS, **{**defaults, **settings})
    job.settings["publish"] |= {"people": True} if publish is None else publish
    return job


def blocks(job: Job, columns: str = "age, ward, rows, people") -> list[tuple[Any, ...]]:
    return job.query(f"SELECT {columns} FROM published.people_blocks ORDER BY block")


def truth(job: Job, width: int) -> dict[str, int]:
    """The people of each range of ages."""
    found = defaultdict(set)
    for name, age in zip(VISITS["name"], VISITS["age"], strict=True):
        found[f"{age // width * width}-{age // width * width + width - 1}"].add(name)
    return {label: len(people) for label, people in found.items()}


def test_each_block_says_how_many_people_its_rows_are_about(make_job: MakeJob) -> None:
    job = visits(make_job)
    job.run()
    assert {age: people for age, _, _, people in blocks(job)} == truth(job, 5)
    of_rows = job.query("SELECT DISTINCT age, people FROM published.people")
    assert dict(of_rows) == truth(job, 5)
    assert job.query("SELECT count(*) FROM published.people") == [(90,)]
    said = job.query("SELECT role, how_to_filter FROM published.people_columns WHERE column_name = 'people'")
    assert said[0][0] == "people of the block"
    assert "people_blocks" in said[0][1]
    assert not verify(job.spec).problems


def test_everybody_is_in_the_only_block_of_a_table_that_is_hidden(make_job: MakeJob) -> None:
    job = visits(make_job, search={"node": [3, 1]})
    job.run()
    assert blocks(job) == [("*", "*", 90, 40)]


def test_what_is_suppressed_has_nobody(make_job: MakeJob) -> None:
    job = visits(make_job, suppression_limit=0.95, search={"node": [0, 1]}, privacy=[{"k_anonymity": {"k": 3}}])
    ages = Counter(age for _, age in {*zip(VISITS["name"], VISITS["age"], strict=True)})
    job.change("INSERT INTO people (name, age, ward, disease) VALUES ('q', 20, 'A', 'flu'), ('q', 21, 'A', 'flu')")
    job.run()
    wanted = {age: n + (age in (20, 21)) for age, n in ages.items()}
    shown = {int(age): people for age, _, _, people in blocks(job)}
    assert shown == {age: n for age, n in wanted.items() if n >= 3}
    assert 0 < len(shown) < len(wanted)


def test_boxes_of_a_map_have_people(make_job: MakeJob) -> None:
    asked = [{"k_anonymity": {"k": 7}}, {"distinct_l_diversity": {"l": 3}}]
    job = visits(make_job, search={"recoding": "multidimensional"}, privacy=asked)
    job.run()
    found = blocks(job, "age_low, age_high, ward, people")
    assert len(found) > 2
    for low, high, ward, people in found:
        wards = set("ABC") if ward == "*" else {ward}
        inside = {
            name
            for name, age, at in zip(VISITS["name"], VISITS["age"], VISITS["ward"], strict=True)
            if low <= age < high and at in wards
        }
        assert people == len(inside)


def test_an_older_version_is_shown_as_it_was(make_job: MakeJob) -> None:
    job = visits(make_job, {"people": False})
    job.run()
    job.settings["publish"]["people"] = True
    assert job.run().version == 2
    rollback(job.spec, 1)
    with pytest.raises(Exception, match="people"):
        blocks(job)
    rollback(job.spec, 2)
    assert {age: people for age, _, _, people in blocks(job)} == truth(job, 5)
    assert not verify(job.spec).problems
    assert job.run().status == "unchanged"
    # A plan counts nothing, and knows the columns.
    plan(job.spec)


def test_a_copy_with_other_people_is_not_published(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows_instead(_: SourceTable, joined: sa.FromClause, codes: Mapping[str, sa.ColumnElement[int]]) -> sa.Subquery:
        selected = [*(code.label(name) for name, code in codes.items()), sa.func.count().label("n")]
        return sa.select(*selected).select_from(joined).group_by(*codes.values()).subquery("qblock_people")

    job = visits(make_job)
    monkeypatch.setattr(copy, "_people_of_blocks", rows_instead)
    with pytest.raises(Refused, match="blocks of the copy have other numbers of people than the search counted"):
        job.run()
    monkeypatch.undo()
    assert job.run().status == "published"


def test_a_name_that_is_taken_is_told_and_another_one_given(make_job: MakeJob) -> None:
    columns = {**VISITS, "People": ["x"] * 90}
    job = visits(make_job)
    job = make_job(columns, table="others", **{k: v for k, v in job.settings.items() if k not in ("source", "publish")})
    job.settings["publish"]["people"] = True
    with pytest.raises(InputError, match=r"people of each block would be published as people, and that is a column"):
        job.run()
    job.settings["publish"]["names"] = {"people": "heads"}
    job.run()
    assert {age: people for age, _, _, people in blocks(job, "age, ward, rows, heads")} == truth(job, 5)


def test_versions_are_checked_together(make_job: MakeJob) -> None:
    job = visits(make_job, versions={"joint": "none"})
    message = "who knows how many rows nobody exceeds could learn a value"
    with pytest.raises(InputError, match=message):
        job.run()
    with pytest.raises(InputError, match=message):
        spec_of(job.settings)


@pytest.mark.parametrize("count", [{"count": "rows"}, {"count": "rows", "entity": None}])
def test_people_are_not_counted_in_rows(make_job: MakeJob, count: dict[str, Any]) -> None:
    job = visits(make_job)
    job.settings |= count
    job.settings = {key: value for key, value in job.settings.items() if value is not None}
    with pytest.raises(InputError, match=r"publish\.people: people are told apart from rows with `count: entities`"):
        job.run()


def test_some_guarantee_is_about_the_people_of_a_block(make_job: MakeJob) -> None:
    both = {"distinct_l_diversity": {"l": 2, "sensitive": ["disease", "ward"]}}
    job = visits(make_job, privacy=[both], search={"node": [1]})
    job.settings["attributes"] = {**ATTRIBUTES, "ward": "sensitive"}
    with pytest.raises(InputError, match="the people of a block are what k_anonymity"):
        job.run()
