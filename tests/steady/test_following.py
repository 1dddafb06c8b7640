"""Whether the next run would decide anything of the same source, which a run that publishes asks."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np

from qblock.blocks import Reference
from qblock.models import DistinctLDiversity, KAnonymity, Model
from qblock.versions.batching.proposals import by_block
from qblock.versions.batching.rules import rules_for
from qblock.versions.batching.state import Memory, Person
from qblock.versions.batching.step import Step, step
from qblock.versions.pending.following import quiet_step
from steady.pure import first_version, judge

MODELS: tuple[Model, ...] = (KAnonymity(k=2), DistinctLDiversity(l=2))
PASSES = judge(MODELS, Reference(0, (), np.zeros(0, dtype=np.int64)))
RULES = rules_for(MODELS)
PAIRS = by_block(lambda block: 2)


def people(block: int = 0, **values: str) -> dict[str, Person]:
    return {one: Person((block,), value) for one, value in values.items()}


def begun(*each: dict[str, Person]) -> Step:
    return first_version({one: person for some in each for one, person in some.items()}, Memory(), PASSES)


def following(found: Step, present: dict[str, Person], closing=PAIRS, **more) -> Step | None:
    cells = {unit.cell for unit in found.shown.values()}
    return quiet_step(partial(step, **more), found, present, RULES, cells, closing)


def test_where_nothing_is_left_the_next_run_is_the_one_that_is_told() -> None:
    now = people(p="a", q="b", r="a", s="b", t="c")
    found = step(begun(people(p="a", q="b")).shown, now, Memory(1, 1), RULES, PASSES, newcomers=PAIRS)
    assert found.published
    told = following(found, now)
    assert told is not None
    assert told == step(found.shown, now, found.memory, RULES, PASSES, newcomers=PAIRS)
    waiting = following(found, now | people(block=1, u="a"))
    assert waiting is not None
    assert waiting.counts.newcomers == 1


def test_whoever_waits_for_a_cohort_has_the_next_run_decide() -> None:
    first, now = begun(people(p="a", q="b")), people(p="a", q="b", r="a")
    assert following(first, now) is not None
    assert following(first, now, None) is None
    assert following(first, people(p="a", q="b"), None) is not None


def test_a_batch_that_would_be_tried_has_the_next_run_decide_whether_it_passes_or_not() -> None:
    values = dict(zip("pqrs", "aabb", strict=True))
    first = begun(people(**values), people(block=1, x="a", y="b"))
    other = people(block=1, x="a", y="b")
    assert following(first, people(p="a", r="b", s="b") | other) is not None
    for left in ("pr", "pq"):
        stay = people(**{one: value for one, value in values.items() if one not in left})
        assert following(first, stay | other) is None
    assert following(first, people(**values) | other | people(u="a", v="b")) is None


def test_a_cell_that_would_be_taken_out_without_a_verdict_has_the_next_run_decide() -> None:
    first = begun(people(p="a", q="b", r="a"), people(block=1, x="a", y="b"))
    now = people(p="a") | people(block=1, x="a", y="b")
    assert following(first, now, stale=Fraction(3, 5)) is None
    assert following(first, now) is not None
