"""What a search for a recoding map promises, against a search and models that share no code with it."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from engines import examples
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from reference.recoding import Published

from qblock.search.assessment import same
from qblock.search.boxes import recoded
from qblock.search.run import open_task, run_search
from qblock.spec import Spec

from .answers import Answer, answered
from .drawn import SUPPORTED, Drawn, drawn

pytestmark = pytest.mark.either_engine

few = settings(
    max_examples=examples(3), deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
METRICS = ("loss", "discernibility", "kl_divergence")
TABLES = itertools.count()
seeds = st.integers(0, 10**6)


def folder_of(parent: Path) -> tuple[Path, str]:
    (folder := parent / (name := f"t{next(TABLES)}")).mkdir()
    return folder, name


def check_boxes(answer: Answer, made: Drawn, limit: int) -> None:
    """Whatever the spec asks: a partition, whose published parts pass."""
    table = made.table
    everything = {**answer.boxes, **answer.suppressed}
    for row in table.rows:
        assert sum(table.has(box, row) for box in everything) == 1
    leaves = [[(one.name, leaf) for leaf in one.paths] for one in table.attributes]
    disjoint = [answer.part(number) for number in answer.tree.boxes()]
    for combination in itertools.product(*leaves):
        assert sum(table.has(box, dict(combination)) for box in disjoint) <= 1
    assert all(made.passes(box, path) for box, path in answer.boxes.items())
    lost = sum(len(table.inside(box)) for box in answer.suppressed)
    assert lost == answer.map.specialized.suppressed_rows <= limit
    for box, path in everything.items():
        for above, below in itertools.pairwise((*path, box)):
            apart = [(x, y) for x, y in zip(above, below, strict=True) if x != y]
            assert all(y < x for x, y in apart)
            # The first step leads to where the splits begin.
            assert len(apart) <= 1 or above == table.everything
    for read in answer.texts():
        assert all(len(sets) == 1 for sets in read.values())
        assert len(set().union(*read.values())) == len(read)


def check_figures(answer: Answer, made: Drawn) -> None:
    """The metrics of the answer, cell by cell; never more loss than full-domain recoding has."""
    found, slow = answer.result.metrics, answer.published
    nothing = {"average_block_size": math.inf, "kl_divergence": math.inf}
    expected = {name: float(getattr(slow, name)()) for name in found if name != "query_error"}
    if "query_error" in found:
        domain = answer.task.source.sensitives["s"].reference.domain
        values = dict(zip(domain, made.world.table.values(), strict=True))
        expected["query_error"] = slow.query_error(answer.workload(values))
    assert found == pytest.approx(expected, abs=1e-11)
    assert slow.boxes or nothing.items() <= expected.items()
    if answer.result.full_domain is not None:
        assert found["loss"] <= answer.result.full_domain["metrics"]["loss"] + 1e-12


def check_named(answer: Answer, spec: Spec) -> None:
    """What is kept of a map gives it again, with all that was said of it."""
    stated = json.loads(json.dumps(answer.map.stated))
    with open_task(spec) as task:
        result = run_search(task, stated=stated)
        again = result.recoded
        assert again is not None
        assert (result.chosen is not None, result.choice, result.minimal) == (True, "pinned", [])
        assert again.boxes == answer.map.boxes
        assert again.stated == stated
        assert (again.start, again.specialized.rounds) == (answer.map.start, answer.map.specialized.rounds)
        assert again.shares() == answer.map.shares()
        assert again.assessment.suppressed == answer.map.assessment.suppressed
        pairs = zip(again.assessment.tightest, answer.map.assessment.tightest, strict=True)
        assert all(same(one, other) for one, other in pairs)
        assert result.metrics == pytest.approx(answer.result.metrics, abs=1e-11)


@pytest.mark.parametrize("model", SUPPORTED)
@few
@given(seed=seeds)
def test_the_map_is_the_one_that_a_slow_search_finds(warehouse: Any, tmp_path: Path, model: str, seed: int) -> None:
    folder, name = folder_of(tmp_path)
    made = drawn(f"{model} {seed}", folder, model, people=False)
    by = METRICS[seed % 3]
    spec = made.spec(made.fill(warehouse, name), name, folder, search={"choose_by": by})
    with answered(made.table, spec) as answer:
        check_boxes(answer, made, 0)
        check_figures(answer, made)
        check_named(answer, spec)
        assert answer.result.chosen is not None
        assert answer.result.chosen.satisfied
    found = made.table.specialize(answer.begun, by, made.passes)
    assert found is not None
    assert set(answer.boxes) == set(found)
    for box, path in answer.boxes.items():
        for at in range(len(box)):
            for parts in made.table.splits(box, at, made.passes, (*path, box)):
                assert not all(made.passes(part, (*path, box)) for part in parts)


@pytest.mark.parametrize(("people", "limit"), [(True, 0), (False, 5), (True, 5)])
@settings(few, max_examples=examples(6))
@given(seed=seeds)
def test_people_and_a_limit(warehouse: Any, tmp_path: Path, people: bool, limit: int, seed: int) -> None:
    folder, name = folder_of(tmp_path)
    made = drawn(f"people {seed}", folder, people=people)
    more = {"search": {"choose_by": METRICS[seed % 3]}, "suppression_limit": limit}
    spec = made.spec(made.fill(warehouse, name), name, folder, **more)
    with answered(made.table, spec) as answer:
        check_boxes(answer, made, limit)
        check_figures(answer, made)
        check_named(answer, spec)
    if limit:
        return
    for box, path in answer.boxes.items():
        for at in range(len(box)):
            each = next(made.table.splits(box, at, made.passes, (*path, box)), None)
            assert each is None or not all(made.passes(part, (*path, box)) for part in each)


@few
@given(seed=seeds)
@example(seed=5)
@example(seed=36)
@example(seed=77)
@example(seed=82)
def test_a_large_table_begins_at_the_node_only_where_the_top_loses_more(
    warehouse: Any, tmp_path: Path, seed: int
) -> None:
    folder, name = folder_of(tmp_path)
    made = drawn(f"large {seed}", folder, people=False)
    by, top = METRICS[seed % 3], tuple(attribute.height for attribute in made.table.attributes)
    spec = made.spec(made.fill(warehouse, name), name, folder, search={"choose_by": by})
    with patch.object(recoded, "LARGE", 0), answered(made.table, spec) as answer:
        assert answer.result.full_domain is not None
        node = Fraction(answer.result.full_domain["metrics"]["loss"])
        begun, loss = answer.map.start, answer.result.metrics["loss"]
    assert loss <= float(node) + 1e-12
    boxes = made.table.specialize(top, by, made.passes)
    first = None if boxes is None else Published(made.table, boxes, top).loss()
    assert begun == ("top" if first is not None and first <= node + Fraction(1, 10**9) else "node")
