"""Of a cell of which no batch may be tried a run is given who left or changed: it decides as with everybody."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from qblock.models import DistinctLDiversity, KAnonymity
from qblock.versions.batching.proposals import (
    by_block,
    in_cells,
    may_be_tried,
    same,
    stale_cells,
    touched,
    whole_cells,
)
from qblock.versions.batching.rules import Rules, rules_for
from qblock.versions.batching.state import Cell, Memory, Pending, Person, Trial, Unit
from qblock.versions.batching.step import Step, one_attribute, step

from .settings import setting

CHOSEN = setting("distinct", 2)
FULL = rules_for([KAnonymity(k=2), DistinctLDiversity(l=2)])
CORE = rules_for([KAnonymity(k=2)])
VALUES = "abcd"


def passes(trial: Trial) -> bool:
    return all(CHOSEN.verdict(part, {}) for group in trial.groups for part in group.parts)


@dataclass(frozen=True)
class Run:
    """What a run is given."""

    shown: Mapping[str, Unit]
    present: Mapping[str, Person]
    memory: Memory
    rules: Rules
    leave: int
    stale: Fraction | None


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Up to six cells of 2 to 12 people, of whom few or most left, changed, or had changed before."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    shown: dict[str, Unit] = {}
    present: dict[str, Person] = {}
    pending: dict[str, Pending] = {}
    frozen = set()
    for number in range(draw(st.integers(1, 6))):
        cell = Cell((number // 2,), 1 + number % 2)
        share, change = draw(st.sampled_from([0.1, 0.4, 0.8, 1.0])), draw(st.sampled_from([0.0, 0.2, 0.6]))
        if draw(st.integers(0, 3)) == 0:
            frozen.add(cell)
        for i in range(draw(st.integers(2, 12))):
            name = f"c{number}p{i:02}"
            shown[name] = Unit(cell, (rng.choice(VALUES),))
            if rng.random() < change / 2:
                pending[name] = Pending(rng.choice(VALUES), rng.choice([1, 2]))
            if rng.random() > share:
                value = rng.choice(VALUES) if rng.random() < change else shown[name].values[0]
                present[name] = Person(cell.block, value)
    for i in range(draw(st.integers(0, 6))):
        present[f"new{i}"] = Person((draw(st.integers(0, 3)),), rng.choice(VALUES))
    since = {name: draw(st.integers(1, 3)) for name in shown if name not in present}
    memory = Memory(draw(st.integers(3, 4)), 2, {}, frozenset(frozen), pending, since)
    stale = draw(st.sampled_from([None, Fraction(3, 5)]))
    return Run(shown, present, memory, draw(st.sampled_from([FULL, CORE])), draw(st.integers(0, 4)), stale)


def tried(run: Run) -> set[Cell]:
    """The cells of which a batch may be tried."""
    people = Counter(unit.cell for unit in run.shown.values())
    absent = Counter(unit.cell for one, unit in run.shown.items() if one not in run.present)
    changed = Counter(run.shown[one].cell for one in found_changed(run) if one in run.present)
    return {
        cell
        for cell, n in people.items()
        if may_be_tried(n, absent[cell], changed[cell], run.rules, run.leave, run.stale)
    }


def found_changed(run: Run) -> set[str]:
    other = {one for one, unit in run.shown.items() if one in run.present and run.present[one].value != unit.values[-1]}
    return other | run.memory.pending.keys()


def decided(run: Run, **more) -> Step:
    return step(
        run.shown,
        run.present,
        run.memory,
        run.rules,
        passes,
        newcomers=by_block(lambda block: 2),
        leave=run.leave,
        stale=run.stale,
        **more,
    )


@given(runs())
def test_a_run_decides_the_same_with_fewer_people(run: Run) -> None:
    whole = tried(run)
    concerned = {one for one in run.shown if one not in run.present} | found_changed(run)
    given = {one: unit for one, unit in run.shown.items() if unit.cell in whole or one in concerned}
    kept = next((one for one in run.shown if one not in given), None)
    if kept is not None:
        given[kept] = run.shown[kept]
    left_out = run.shown.keys() - given.keys()
    fewer = replace(run, shown=given, present={one: p for one, p in run.present.items() if one not in left_out})
    old, new = decided(run), decided(fewer, whole=whole)
    assert new.shown == {one: unit for one, unit in old.shown.items() if one not in left_out}
    assert (new.memory, new.batches, new.published) == (old.memory, old.batches, old.published)
    assert replace(new.counts, source=0) == replace(old.counts, source=0)


@given(runs())
def test_no_rule_proposes_a_batch_of_a_cell_of_which_none_may_be_tried(run: Run) -> None:
    members = touched(run.shown, run.present, run.memory.pending, ())
    given = (members, run.present, run.memory)
    batches = [*whole_cells(*given), *stale_cells(*given, run.rules, run.leave, run.stale)]
    if run.rules.cells:
        more = (run.memory.pending, run.memory, run.rules, same, run.leave, one_attribute)
        batches += in_cells(run.shown, members, run.present, *more)
    assert {batch.cell for batch in batches} <= tried(run)


def test_ten_people_by_hand() -> None:
    """Two or more go together, and two stay; half a cell that is stale at three fifths is not yet."""
    share = Fraction(3, 5)
    assert [may_be_tried(10, gone, 0, FULL, 0, share) for gone in (0, 1, 2)] == [False, False, True]
    assert [may_be_tried(10, 0, changed, FULL, 0, share) for changed in (1, 2)] == [False, True]
    assert [may_be_tried(10, gone, 0, FULL, 4, share) for gone in (3, 4)] == [False, True]
    assert [may_be_tried(3, gone, 0, FULL, 0, share) for gone in (1, 2)] == [False, True]
    assert [may_be_tried(3, gone, 0, FULL, 0, None) for gone in (2, 3)] == [False, True]
    assert [may_be_tried(10, gone, 9, CORE, 0, None) for gone in (9, 10)] == [False, True]
