"""Cohorts of newcomers, people who withdraw, and another node: what the job does when versions together are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from qblock.errors import InputError
from qblock.joint.admission import freeze
from qblock.joint.cohorts import Newcomers, failing, keep_out, newcomers
from qblock.joint.crosswalk import Book
from qblock.joint.episodes import VersionKey
from qblock.joint.excluded import counts, digests_of, entities_apart
from qblock.joint.gate import Verdict, check
from qblock.joint.versions import Candidate, candidate, published_node, record
from qblock.joint.withdrawals import batch, failed, left, settle_leaving, take_out, whole_cells, withdraw
from qblock.search.task import Task
from qblock.spec import Spec, read_spec

from .test_admission import change, contents, opened

pytestmark = pytest.mark.either_engine

SPEC = """
version: 1
release: people
source: {{url: "${{URL}}", table: people}}
attributes:
  block: {{role: quasi_identifier, hierarchy: suppress}}
  value: sensitive
entity: id
privacy:
  - k_anonymity: {{k: 2}}
  - distinct_l_diversity: {{l: 2}}
versions: {{on_refusal: hold_back, cohort: {cohort}}}
"""
NODE = (0,)


def make_spec(url: str, folder: Path, cohort: int = 2) -> Spec:
    return read_spec(SPEC.format(cohort=cohort), folder / "spec.yaml", {"URL": url})


def table(text: str) -> dict[str, list[str]]:
    """`person:block:value ...` as columns."""
    rows = [item.split(":") for item in text.split()]
    return {name: [row[i] for row in rows] for i, name in enumerate(("id", "block", "value"))}


def insert(url: str, text: str) -> None:
    for item in text.split():
        person, block, value = item.split(":")
        change(url, "INSERT INTO people VALUES (:p, :b, :v)", p=person, b=block, v=value)


def judged(book: Book, task: Task, version: int, node: tuple[int, ...] = NODE) -> tuple[Candidate, Verdict]:
    chosen = task.assess(node)
    assert chosen.satisfied
    found = candidate(book, task, chosen, version)
    references = [[part.reference for part in parts] for parts in chosen.counts.parts]
    return found, check(book, task.spec, references, found)


def publish(spec: Spec, version: int, **more: Any) -> Verdict:
    with opened(spec, **more) as (task, book, _):
        found, verdict = judged(book, task, version)
        if verdict.passed:
            record(book, found)
            freeze(book, task.source, found)
    return verdict


def publish_with_cohorts(spec: Spec, version: int) -> tuple[Newcomers, set[str]]:
    """The job's turn with hold_back: the newcomers, and who is published."""
    while True:
        with opened(spec) as (task, book, admission):
            found = None if admission.known is None else newcomers(book, task.source, admission, NODE)
        more = {} if found is None else {"admitted": found.admitted}
        with opened(spec, **more) as (task, book, _):
            made, verdict = judged(book, task, version)
            if verdict.passed:
                record(book, made)
                freeze(book, task.source, made)
                return found or Newcomers((), 0), set(contents(task))
            bad, others = failing(book, spec, verdict, made, found.cohorts)
        assert bad
        assert not others
        with opened(spec) as (_, book, _admission):
            keep_out(book, spec, bad, version)


def test_a_cohort_that_fails_stays_out_and_is_not_topped_up(warehouse, tmp_path: Path) -> None:
    """The scenario of waiting until diverse: t and u have one value, w comes later with another one."""
    url = warehouse("people", table("p1:q:a p2:q:b"))
    spec = make_spec(url, tmp_path)
    assert publish_with_cohorts(spec, 1)[1] == {"p1", "p2"}
    insert(url, "t:q:a u:q:a")
    found, shown = publish_with_cohorts(spec, 2)
    assert (found.cohorts, found.waiting) == ((), 0)
    assert shown == {"p1", "p2"}
    with opened(spec) as (_, book, _admission):
        assert entities_apart(book, "people", ["out"]) == sorted(digests_of(book, ["t", "u"]))
    insert(url, "w:q:c")
    found, shown = publish_with_cohorts(spec, 3)
    assert (found.cohorts, found.waiting) == ((), 1)
    assert shown == {"p1", "p2"}
    insert(url, "x:q:a")
    found, shown = publish_with_cohorts(spec, 4)
    assert shown == {"p1", "p2", "w", "x"}
    with opened(spec) as (_, book, _admission):
        assert counts(book, "people") == {"cohort out": 2}


def test_the_worked_scenarios_of_holding_back(warehouse, tmp_path: Path, scenarios) -> None:
    """By size only, what is listed as published is published; the table that waiting until diverse gives is not."""
    known = {scenario["id"]: scenario for scenario in scenarios}
    listed = known["hold_back_by_size_only"]["published_csv"]
    disclosing = known["hold_back_until_diverse"]["published_csv"]
    people = table(" ".join(f"p{i}:{line.replace(',', ':')}" for i, line in enumerate(listed[0].split()[1:])))
    url = warehouse("people", people)
    spec = make_spec(url, tmp_path)
    arrivals = {1: "", 2: "t:q:a u:q:a", 3: "w:q:c"}
    values = known["hold_back_by_size_only"]["true_values"]
    assert {item.split(":")[0]: item.split(":")[2] for text in arrivals.values() for item in text.split()} == values
    for version, text in arrivals.items():
        insert(url, text)
        publish_with_cohorts(spec, version)
        with opened(spec, admitted=[]) as (task, _, _admission):
            relation = task.source.relation
            rows = task.source.session.fetch(sa.select(relation.c.block, relation.c.value)).to_pylist()
        published = ["block,value", *sorted(f"{row['block']},{row['value']}" for row in rows)]
        assert published == listed[version - 1].split()
        assert (published == disclosing[version - 1].split()) == (version < 3)


def test_newcomers_wait_by_block_and_size(warehouse, tmp_path: Path) -> None:
    url = warehouse("people", table("p1:q:a p2:q:b r1:r:a r2:r:b"))
    spec = make_spec(url, tmp_path, cohort=3)
    publish(spec, 1)
    insert(url, "n1:q:a n2:q:b n3:r:a n4:r:b n5:r:c")
    found, shown = publish_with_cohorts(spec, 2)
    assert (len(found.cohorts), found.waiting) == (1, 2)
    assert shown == {"p1", "p2", "r1", "r2", "n3", "n4", "n5"}
    insert(url, "n6:q:c")
    found, shown = publish_with_cohorts(spec, 3)
    assert (len(found.cohorts), found.waiting) == (1, 0)
    assert {"n1", "n2", "n6"} <= shown


def test_a_failure_that_is_not_of_newcomers_alone_is_no_cohorts(warehouse, tmp_path: Path) -> None:
    url = warehouse("people", table("p1:q:a p2:q:b p3:q:a p4:q:b"))
    spec = make_spec(url, tmp_path)
    publish(spec, 1)
    change(url, "DELETE FROM people WHERE id = 'p1'")
    insert(url, "t:q:a u:q:b")
    with opened(spec) as (task, book, admission):
        found = newcomers(book, task.source, admission, NODE)
        made, verdict = judged(book, task, 2)
        assert not verdict.passed
        assert failing(book, spec, verdict, made, found.cohorts)[1]


@pytest.mark.parametrize("cohort", [1, None])
def test_a_cohort_needs_a_size(tmp_path: Path, cohort: int | None) -> None:
    from qblock.joint.cohorts import cohort_size

    text = SPEC.format(cohort=cohort or 1).replace("cohort: 1", "" if cohort is None else "cohort: 1")
    text = text.replace("on_refusal: hold_back, ", "on_refusal: refuse, ").replace(", }", "}")
    spec = read_spec(text, tmp_path / "spec.yaml", {"URL": "duckdb:///w.duckdb"})
    with pytest.raises(InputError, match="give a number of at least 2"):
        cohort_size(spec)


def test_a_batch_of_leavers_closes_by_size_and_both_parts_must_pass(warehouse, tmp_path: Path) -> None:
    url = warehouse("people", table("p1:q:b p2:q:c p3:q:b t:q:a u:q:a r1:r:a r2:r:b r3:r:a r4:r:b"))
    spec = make_spec(url, tmp_path)
    publish(spec, 1)
    with opened(spec) as (task, book, _):
        assert withdraw(book, spec, digests_of(book, ["t", "r1", "nobody"])) == 2
        assert batch(book, task.source, NODE, 2).waiting == 2
        assert counts(book, "people") == {"withdrawn out": 1, "withdrawn queued": 2}
    with opened(spec) as (task, book, _):
        assert withdraw(book, spec, digests_of(book, ["u", "r2", "t"])) == 3
        found = batch(book, task.source, NODE, 2)
        assert (len(found.members), found.blocks, found.waiting) == (4, 2, 0)
    assert not publish(spec, 2, leaving=found.members).passed
    with opened(spec) as (_, book, _admission):
        failed(book, spec, found, 2)
    assert publish(spec, 2).passed
    with opened(spec) as (task, book, _):
        assert withdraw(book, spec, digests_of(book, ["r3", "r4"])) == 2
        second = batch(book, task.source, NODE, 2)
        assert set(second.members) == set(digests_of(book, ["r3", "r4"]))
    with opened(spec, leaving=second.members) as (task, book, _):
        made, verdict = judged(book, task, 3)
        assert verdict.passed
        record(book, made)
        left(book, spec, second, made)
    with opened(spec) as (task, book, _):
        assert set(contents(task)) == {"p1", "p2", "p3", "t", "u", "r1", "r2"}
        assert settle_leaving(book, spec, {1, 2}) == 0  # the run was stopped: they are queued again
        assert counts(book, "people") == {"withdrawn failed": 4, "withdrawn out": 1, "withdrawn queued": 2}
    with opened(spec, leaving=second.members) as (task, book, _):
        left(book, spec, second, judged(book, task, 3)[0])
        assert settle_leaving(book, spec, {1, 2, 3}) == 2
        assert counts(book, "people") == {"withdrawn failed": 4, "withdrawn out": 3}


def test_leaving_at_once_takes_whole_joint_cells(warehouse, tmp_path: Path) -> None:
    url = warehouse("people", table("p1:q:b p2:q:c r1:r:a r2:r:b"))
    spec = make_spec(url, tmp_path)
    publish(spec, 1)
    insert(url, "t:q:a u:q:b")
    assert publish(spec, 2).passed
    with opened(spec) as (_, book, _admission):
        who = digests_of(book, ["t"])
        removal = whole_cells(book, spec, who)
        assert set(removal.companions) == set(digests_of(book, ["u"]))
        assert removal.versions == (VersionKey("people", 2),)
        take_out(book, spec, removal, 3)
        assert counts(book, "people") == {"cell out": 1, "withdrawn out": 1}
        assert set(entities_apart(book, "people", ["out"])) == set(digests_of(book, ["t", "u"]))
    with opened(spec) as (task, book, _):
        assert set(contents(task)) == {"p1", "p2", "r1", "r2"}
        assert judged(book, task, 3)[1].passed


def test_the_published_node(warehouse, tmp_path: Path) -> None:
    two = """
version: 1
release: people
source: {url: "${URL}", table: people}
attributes:
  x: {role: quasi_identifier, hierarchy: suppress}
  y: {role: quasi_identifier, hierarchy: suppress}
  value: sensitive
entity: id
privacy: [{k_anonymity: {k: 2}}, {distinct_l_diversity: {l: 2}}]
"""
    people = {"id": list("abcd"), "x": list("0011"), "y": list("0101"), "value": list("stts")}
    url = warehouse("people", people)
    spec = read_spec(two, tmp_path / "spec.yaml", {"URL": url})
    with opened(spec) as (task, book, _):
        assert published_node(book, spec) is None
        made, verdict = judged(book, task, 1, (0, 1))
        assert verdict.passed
        record(book, made)
    with opened(spec) as (_, book, _admission):
        assert published_node(book, spec) == (0, 1)
        other = read_spec(
            two.replace("  y: {role: quasi_identifier, hierarchy: suppress}\n", ""), spec.path, {"URL": url}
        )
        assert published_node(book, other) is None
