"""People with several rows: what the release refuses for a value that everybody in a block holds, the search does not
take, whatever the recoding is."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from qblock.errors import Refused
from qblock.release.dry_run import dry_run
from qblock.search.run import open_task, run_search
from release.jobs import Job, MakeJob

pytestmark = pytest.mark.either_engine

ATTRIBUTES: dict[str, Any] = {
    "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 20], "start": 0}},
    "value": "sensitive",
}
K = [{"k_anonymity": {"k": 2}}]
DISTINCT = [*K, {"distinct_l_diversity": {"l": 2}}]
MAP = {"recoding": "multidimensional", "choose_by": "loss"}
Visit = tuple[str, int, str]
COMMON: list[Visit] = [
    *(("p0", 21, v) for v in "ab"),
    ("p1", 21, "a"),
    *(("p2", 31, v) for v in "ac"),
    ("p3", 31, "b"),
    *(("p4", 45, v) for v in "bc"),
    ("p5", 45, "a"),
]
"""Whoever is 21 has an a, and the 20s have two values."""


def job_of(make_job: MakeJob, visits: Iterable[Visit], **settings: Any) -> Job:
    columns = dict(zip(("id", "age", "value"), map(list, zip(*visits, strict=True)), strict=True))
    known = {"attributes": ATTRIBUTES, "privacy": DISTINCT, "entity": "id", "count": "entities"}
    return make_job(columns, {"age": "INTEGER"}, **{**known, "versions": {"cohort": 4}, **settings})


def shown_to_all(visits: Iterable[Visit], label: Any) -> bool:
    """Whether everybody in some block holds one value, from the rows themselves. label: of an age."""
    people: defaultdict[Any, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for who, age, value in visits:
        people[label(age)][who].add(value)
    return any(set.intersection(*held.values()) for held in people.values())


def span(text: str) -> range:
    """The ages that a published label stands for: `[20, 40)`, `20 to 29`, `21` or `*`."""
    if text == "*":
        return range(200)
    numbers = [int(part) for part in "".join(c if c.isdigit() else " " for c in text).split()]
    return range(numbers[0], numbers[-1] + (0 if text.endswith(")") else 1))


def published_ok(job: Job, visits: Iterable[Visit]) -> bool:
    spans = {span(str(row[0])) for row in job.published()}
    assert spans
    return not shown_to_all(visits, lambda age: next(one for one in spans if age in one))


@pytest.mark.parametrize("privacy", [K, DISTINCT], ids=["k", "distinct"])
@pytest.mark.parametrize("search", [{}, MAP], ids=["node", "map"])
def test_what_is_searched_is_released(make_job: MakeJob, search: dict[str, Any], privacy: Any) -> None:
    job = job_of(make_job, COMMON, search=search, privacy=privacy)
    assert shown_to_all(COMMON, lambda age: age // 10)
    with open_task(job.spec) as task:
        found = run_search(task)
        assert not task.protected
    assert found.chosen is not None
    assert job.run().status == "published"
    assert published_ok(job, COMMON)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("search", [{}, MAP], ids=["node", "map"])
def test_drawn_visits(make_job: MakeJob, search: dict[str, Any], seed: int) -> None:
    """A person's rows may be in several blocks: search, dry run and release come to the same."""
    rng = random.Random(seed)
    visits = [(f"p{rng.randrange(10)}", rng.choice((21, 25, 31, 33, 45, 47)), rng.choice("aabc")) for _ in range(24)]
    job = job_of(make_job, visits, search=search, privacy=K)
    with open_task(job.spec) as task:
        satisfied = run_search(task).chosen is not None
        by_hand = [not shown_to_all(visits, lambda age, at=w: age // at) for w in (1, 10, 20, 1000)]
        if not search:
            sizes = [task.sizes_pass(node) for node in task.lattice.nodes()]
            # Level 0 of the hierarchy is the age.
            assert [task.passes(node) for node in task.lattice.nodes()] == [
                a and b for a, b in zip(sizes, by_hand, strict=True)
            ]
    assert by_hand[-1]
    assert satisfied
    assert dry_run(job.spec).status == "dry_run"
    assert job.run().status == "published"
    assert published_ok(job, visits)


@pytest.mark.parametrize(
    ("search", "said", "remedy"),
    [
        ({}, r"Write `search: \{choose_from: minimal\}`", {"choose_from": "minimal"}),
        (MAP, r"write `search: \{box: \{least: 4\}\}`", {"choose_from": "sizes", "box": {"least": 4}}),
    ],
    ids=["node", "map"],
)
def test_by_sizes_the_remedy_is_printed_and_helps(
    make_job: MakeJob, search: dict[str, Any], said: str, remedy: dict[str, Any]
) -> None:
    """Sizes alone choose, so that the block is found too late; and who is asked otherwise is not barred."""
    job = job_of(make_job, COMMON, search={**search, "choose_from": "sizes"}, privacy=K)
    with pytest.raises(Refused, match=said) as refused:
        job.run()
    assert "search.node" not in str(refused.value)
    with pytest.raises(Refused, match="the spec asks the same"):
        job.run()
    assert job.set(search={**search, **remedy}).run().status == "published"
    assert published_ok(job, COMMON)


def test_a_pinned_node_is_refused_with_a_remedy_of_nodes(make_job: MakeJob) -> None:
    job = job_of(make_job, COMMON, search={"node": [1]})
    with pytest.raises(Refused, match=r"Pin a coarser node, or leave `search\.node` out"):
        job.run()
    assert job.set(search={}).run().status == "published"


@pytest.mark.parametrize("search", [{}, MAP], ids=["node", "map"])
def test_a_value_that_all_people_hold(make_job: MakeJob, search: dict[str, Any]) -> None:
    visits = [*COMMON, *((f"p{i}", age, "z") for i, age in enumerate((21, 21, 31, 31, 45, 45)))]
    job = job_of(make_job, visits, search=search)
    with pytest.raises(Refused, match="Publish from a view of the source that leaves out the rows") as refused:
        job.run()
    assert "search.node" not in str(refused.value)
    job.change("DELETE FROM people WHERE value = 'z'")
    with pytest.raises(Refused, match="the spec asks the same"):  # the same people: it would tell what they have
        job.run()
    assert job.set(suppression_limit=1).run().status == "published"


def test_versions_that_are_not_checked_together_ask_nothing_of_it(make_job: MakeJob) -> None:
    job = job_of(make_job, COMMON, search={"node": [1]}, versions={"joint": "none"})
    with open_task(job.spec) as task:
        assert not task.forbids_held_by_all
        assert task.monotone
    assert job.run().status == "published"


def test_nodes_are_pruned_only_where_nobody_is_in_two_blocks(make_job: MakeJob) -> None:
    job = job_of(make_job, COMMON)
    with open_task(job.spec) as task:
        assert task.monotone
    # Neither block has a value that both hold; united, both hold both.
    crossed = [("p", 21, "a"), ("q", 21, "b"), ("p", 31, "b"), ("q", 31, "a")]
    job.change("DELETE FROM people")
    job.change(f"INSERT INTO people (id, age, value) VALUES {', '.join(map(str, crossed))}")
    with open_task(job.spec) as task:
        assert not task.monotone
        assert [task.passes(node) for node in task.lattice.nodes()] == [True, True, False, False]


def test_people_with_as_many_rows_in_boxes(make_job: MakeJob) -> None:
    """How many rows somebody has is known: what is refused then is of boxes, not of nodes."""
    versions = {"cohort": 4, "row_counts": "known"}
    job = job_of(make_job, COMMON, search=MAP, versions=versions, privacy=K)
    with pytest.raises(Refused, match=r"ask for larger boxes \(a larger k\)") as refused:
        job.run()
    assert "search.node" not in str(refused.value)
