"""What readers are told of labels: the values of each, and conditions that are true of the column."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from typing import Any

import pytest
from release.jobs import Job, MakeJob

from qblock.hierarchy import suppress
from qblock.publish.levels import Levels

pytestmark = pytest.mark.either_engine

JOBS = ("nurse", "cook", "clerk", "judge", "pilot")
GROUPS = {"nurse": "service", "cook": "service", "clerk": "office", "judge": "office", "pilot": "office"}
SURELY = re.compile(r"surely(?: (?P<words>[^:]*))?: (?P<surely>.*); possibly: (?P<possibly>.*)")


def census(seed: int, rows: int = 120) -> dict[str, list[Any]]:
    draw = random.Random(seed)
    jobs = draw.choices(JOBS, (40, 30, 20, 6, 4), k=rows)
    ages, born = ([draw.randrange(*ends) for _ in range(rows)] for ends in ((18, 80), (0, 2000)))
    return {
        "age": ages,
        "born": [f"{1990 + day // 365}-{1 + day % 12:02}-{1 + day % 28:02}" for day in born],
        "job": jobs,
        "title": jobs,
        "ill": draw.choices("abc", k=rows),
    }


def of_census(make_job: MakeJob, seed: int, **settings: Any) -> tuple[Job, dict[str, list[Any]]]:
    """A release of a census. The titles are as the jobs, which have a file."""
    hierarchies = {"age": {"ranges": [5, 20]}, "born": {"dates": ["month", "year"]}, "job": {"file": "jobs.csv"}}
    attributes = {name: {"role": "quasi_identifier", "hierarchy": of} for name, of in hierarchies.items()}
    attributes |= {"title": {"role": "quasi_identifier", "hierarchy": "suppress"}, "ill": "sensitive"}
    people = census(seed)
    job = make_job(
        people, {"age": "INTEGER", "born": "DATE"}, attributes=attributes, versions={"joint": "none"}, **settings
    )
    lines = ["job,group,all", *(f"{of},{group},*" for of, group in (GROUPS | {"astronaut": "office"}).items())]
    (job.folder / "jobs.csv").write_text("\n".join(lines) + "\n")
    job.run()
    return job, people


MAP = {"search": {"recoding": "multidimensional", "choose_by": "loss"}}
NODE = {"search": {"node": [2, 3, 2, 0]}, "suppression_limit": 0.9}
RARE = [{"k_anonymity": {"k": 12}}]
K = [{"k_anonymity": {"k": 6}}]


@pytest.mark.parametrize(
    "search", [MAP, {"search": {"node": [2, 3, 2, 0]}, "suppression_limit": 0.9}], ids=["map", "node"]
)
@pytest.mark.parametrize("seed", range(3))
def test_conditions_that_are_said_hold_the_truth_between_them(make_job: MakeJob, seed: int, search: Any) -> None:
    job, people = of_census(make_job, seed, privacy=K, **search)
    said = dict(job.query("SELECT column_name, how_to_filter FROM published.people_columns WHERE role LIKE 'quasi%'"))
    assert [*said] == ["age", "born", "job", "title"]
    for name, how in said.items():
        match = SURELY.fullmatch(how)
        if match is None:
            assert not how.startswith("surely")
            continue
        least, most = (
            job.query(f"SELECT count(*) FROM published.people WHERE {match[part]}")[0][0]
            for part in ("surely", "possibly")
        )
        (shown,) = job.query("SELECT count(*) FROM published.people")[0]
        hidden = len(people["age"]) - shown
        assert least > 0 or name in ("age", "born")
        assert least <= truth(match, name, people[name]) <= most + hidden


def truth(match: re.Match[str], name: str, values: list[Any]) -> int:
    """How many rows of the source the words are about, read from the words alone."""
    words = match["words"]
    if words is None:
        (value,) = re.findall("'(.*)'", match["surely"])
        return values.count(value)
    ends = dict(re.findall(r"(from|below) (?:DATE ')?([^ ']+)'?", words))
    least, most = (
        None if end is None else end if name == "born" else int(end) for end in map(ends.get, ("from", "below"))
    )
    return sum((least is None or value >= least) and (most is None or value < most) for value in values)


@pytest.mark.parametrize("seed", range(3))
def test_whoever_has_a_value_has_a_label_that_names_it_or_not_all(make_job: MakeJob, seed: int) -> None:
    job, people = of_census(make_job, seed, privacy=RARE, **MAP)
    listed = job.query("SELECT column_name, label, members, complete, low, rows, share FROM published.people_levels")
    possibly: Counter[tuple[str, str]] = Counter()
    labels = {(name, label) for name, label, *_ in listed}
    for name, label, members, complete, low, n, share in listed:
        assert share == pytest.approx(n / len(people["age"]))
        if low is not None:
            assert (members, complete) == ((None, False) if label == "*" else (None, None))
            continue
        assert (members is None) == (label == "*")
        assert not complete or members is not None
        for value in JOBS:
            named = members is None or value in json.loads(members)
            possibly[name, value] += n if (named if (name, value) in labels else not complete) else 0
    for (name, value), n in possibly.items():
        assert n >= people[name].count(value)


def test_a_value_is_named_where_it_is_a_label_of_its_own(make_job: MakeJob) -> None:
    """A judge and a pilot are too few to stand alone, and that there are any is for nobody to read."""
    job, _ = of_census(make_job, 2, privacy=RARE, **MAP)
    listed = job.query("SELECT label, members, complete FROM published.people_levels WHERE column_name = 'title'")
    labels = {label for label, *_ in listed}
    rests = [(json.loads(members), complete) for label, members, complete in listed if "(other" in label]
    assert rests
    assert {value for named, _ in rests for value in named} <= labels & set(JOBS)
    assert not any(complete for _, complete in rests)
    assert not {"judge", "pilot"} & labels


def test_a_group_names_the_values_that_other_rows_show(make_job: MakeJob) -> None:
    """Not those that the file of the hierarchy lists besides: it may have been made from the source."""
    job, _ = of_census(make_job, 2, privacy=K, search={"node": [3, 3, 1, 1]})
    listed = job.query("SELECT label, members, complete FROM published.people_levels WHERE column_name = 'job'")
    assert sorted(listed) == [("office", "[]", False), ("service", "[]", False)]


def test_a_column_that_is_suppressed_is_no_filter(make_job: MakeJob) -> None:
    job, _ = of_census(make_job, 1, privacy=K, search={"node": [3, 3, 2, 0]}, suppression_limit=0.5)
    said = dict(job.query("SELECT column_name, how_to_filter FROM published.people_columns"))
    assert {said[name].partition(":")[0] for name in ("age", "born", "job")} == {"not by this column"}
    assert said["title"].startswith("title = '")


def test_an_example_has_no_sign_that_an_engine_reads_otherwise() -> None:
    rows = {"a_b": 9, "O'Neil": 8, "back\\slash": 7, "plain": 2, "*": 5}
    hierarchy = suppress("v", [label for label in rows if label != "*"], "text")
    how = Levels("v", hierarchy, rows, None).how_to_filter("published.people_levels")
    assert how.startswith("surely: v = 'plain'; possibly: v IN (SELECT label FROM published.people_levels")
    without = {label: n for label, n in rows.items() if label != "plain"}
    how = Levels("v", hierarchy, without, None).how_to_filter("published.people_levels")
    assert how == "by label: v = 'a_b'; published.people_levels has the values of each label (members)"
