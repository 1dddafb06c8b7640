"""Cohorts of newcomers, people who withdraw, and another node: what the job does when versions together are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qblock.errors import InputError
from qblock.search.task import Task
from qblock.spec import Spec, read_spec
from qblock.versions.admission import freeze
from qblock.versions.crosswalk import Crosswalk
from qblock.versions.episodes import VersionKey
from qblock.versions.gate import Verdict, check
from qblock.versions.people import counts, digests_of, entities_apart
from qblock.versions.recorded import Candidate, candidate, published_node, record
from qblock.versions.withdrawals import (
    batch,
    cohort_size,
    failed,
    left,
    settle_leaving,
    take_out,
    whole_cells,
    withdraw,
)

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


def judged(crosswalk: Crosswalk, task: Task, version: int, node: tuple[int, ...] = NODE) -> tuple[Candidate, Verdict]:
    chosen = task.assess(node)
    assert chosen.satisfied
    found = candidate(crosswalk, task, chosen, version)
    references = [[part.reference for part in parts] for parts in chosen.counts.parts]
    return found, check(crosswalk, task.spec, references, found)


def publish(spec: Spec, version: int, **more: Any) -> Verdict:
    with opened(spec, **more) as (task, crosswalk, _):
        found, verdict = judged(crosswalk, task, version)
        if verdict.passed:
            record(crosswalk, found)
            freeze(crosswalk, task.source, found)
    return verdict


def test_a_cohort_is_no_smaller_than_any_block(tmp_path: Path) -> None:
    spec = make_spec("duckdb:///w.duckdb", tmp_path, cohort=1)
    with pytest.raises(InputError, match="Give a number of at least 2"):
        cohort_size(spec)


def test_a_batch_of_leavers_closes_by_size_and_both_parts_must_pass(warehouse, tmp_path: Path) -> None:
    url = warehouse("people", table("p1:q:b p2:q:c p3:q:b t:q:a u:q:a r1:r:a r2:r:b r3:r:a r4:r:b"))
    spec = make_spec(url, tmp_path)
    publish(spec, 1)
    with opened(spec) as (task, crosswalk, _):
        assert withdraw(crosswalk, spec, digests_of(crosswalk, ["t", "r1", "nobody"])) == 2
        assert batch(crosswalk, task.source, NODE, 2).waiting == 2
        assert counts(crosswalk, "people") == {"withdrawn out": 1, "withdrawn queued": 2}
    with opened(spec) as (task, crosswalk, _):
        assert withdraw(crosswalk, spec, digests_of(crosswalk, ["u", "r2", "t"])) == 3
        found = batch(crosswalk, task.source, NODE, 2)
        assert (len(found.members), found.blocks, found.waiting) == (4, 2, 0)
    assert not publish(spec, 2, leaving=found.members).passed
    with opened(spec) as (_, crosswalk, _admission):
        failed(crosswalk, spec, found, 2)
    assert publish(spec, 2).passed
    with opened(spec) as (task, crosswalk, _):
        assert withdraw(crosswalk, spec, digests_of(crosswalk, ["r3", "r4"])) == 2
        second = batch(crosswalk, task.source, NODE, 2)
        assert set(second.members) == set(digests_of(crosswalk, ["r3", "r4"]))
    with opened(spec, leaving=second.members) as (task, crosswalk, _):
        made, verdict = judged(crosswalk, task, 3)
        assert verdict.passed
        record(crosswalk, made)
        left(crosswalk, spec, second, made)
    with opened(spec) as (task, crosswalk, _):
        assert set(contents(task)) == {"p1", "p2", "p3", "t", "u", "r1", "r2"}
        assert settle_leaving(crosswalk, spec, {1, 2}) == 0  # the run was stopped: they are queued again
        assert counts(crosswalk, "people") == {"withdrawn failed": 4, "withdrawn out": 1, "withdrawn queued": 2}
    with opened(spec, leaving=second.members) as (task, crosswalk, _):
        left(crosswalk, spec, second, judged(crosswalk, task, 3)[0])
        assert settle_leaving(crosswalk, spec, {1, 2, 3}) == 2
        assert counts(crosswalk, "people") == {"withdrawn failed": 4, "withdrawn out": 3}


def test_leaving_at_once_takes_whole_joint_cells(warehouse, tmp_path: Path) -> None:
    url = warehouse("people", table("p1:q:b p2:q:c r1:r:a r2:r:b"))
    spec = make_spec(url, tmp_path)
    publish(spec, 1)
    insert(url, "t:q:a u:q:b")
    assert publish(spec, 2).passed
    with opened(spec) as (_, crosswalk, _admission):
        who = digests_of(crosswalk, ["t"])
        removal = whole_cells(crosswalk, spec, who)
        assert set(removal.companions) == set(digests_of(crosswalk, ["u"]))
        assert removal.versions == (VersionKey("people", 2),)
        take_out(crosswalk, spec, removal, 3)
        assert counts(crosswalk, "people") == {"cell out": 1, "withdrawn out": 1}
        assert set(entities_apart(crosswalk, "people", ["out"])) == set(digests_of(crosswalk, ["t", "u"]))
    with opened(spec) as (task, crosswalk, _):
        assert set(contents(task)) == {"p1", "p2", "r1", "r2"}
        assert judged(crosswalk, task, 3)[1].passed


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
    with opened(spec) as (task, crosswalk, _):
        assert published_node(crosswalk, spec) is None
        made, verdict = judged(crosswalk, task, 1, (0, 1))
        assert verdict.passed
        record(crosswalk, made)
    with opened(spec) as (_, crosswalk, _admission):
        assert published_node(crosswalk, spec) == (0, 1)
        other = read_spec(
            two.replace("  y: {role: quasi_identifier, hierarchy: suppress}\n", ""), spec.path, {"URL": url}
        )
        assert published_node(crosswalk, other) is None
