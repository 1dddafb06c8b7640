"""The weights of rows: a function of presence and cells alone, near the truth, and nothing to an exact attacker."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qblock.versions.batching.proposals import by_block
from qblock.versions.batching.state import Cell, Person
from qblock.versions.batching.step import step
from qblock.versions.batching.weights import NOTHING, Stated, moved, partly, restated

from .attack import play
from .attacker import Attack
from .beginnings import balanced
from .bundles import bundled_frame, bundles
from .cohorts import Cohorts, Drawn, cohort_frame_of, frames_of_cohorts
from .double import Double
from .double_cohorts import DoubleOfCohorts
from .frames import Frame, frame_of
from .players import Engine, EngineOfBundles
from .settings import setting
from .test_laws import RULES, histories, passes
from .weights import Plainly, Variant, weighed

CELLS = [Cell((block,), first) for block in range(3) for first in (1, 2)]
SIZES = st.dictionaries(st.sampled_from(CELLS), st.integers(1, 30))


class Drawing(NamedTuple):
    before: dict[Cell, int]
    stated: dict[Cell, Stated]
    after: dict[Cell, int]
    absent: dict[Cell, int]
    k: int


@st.composite
def drawings(draw: st.DrawFn) -> Drawing:
    before, after = draw(SIZES), draw(SIZES)
    stated = {cell: Stated(n, draw(st.integers(0, n - 1))) for cell, n in before.items() if draw(st.booleans())}
    after |= {cell: n for cell, n in before.items() if cell in after and draw(st.booleans())}
    absent = {cell: draw(st.integers(0, n)) for cell, n in after.items()}
    return Drawing(before, stated, after, absent, draw(st.integers(1, 12)))


@given(drawings())
def test_a_number_is_near_the_truth_and_the_truth_of_a_cell_that_is_new_or_other(drawn: Drawing) -> None:
    before, stated, after, absent, k = drawn
    numbers = restated(stated, before, after, absent, k)
    assert numbers.keys() == after.keys()
    for cell, number in numbers.items():
        truth = after[cell] - absent[cell]
        assert number.people == after[cell]
        far = min(k, max(2, math.ceil(after[cell] / 10)))
        assert abs(number.present - truth) < far
        assert 0 <= number.weight <= 1
        if before.get(cell) != after[cell]:
            assert number.present == truth
        else:
            last = stated.get(cell, Stated(before[cell], before[cell]))
            assert number == (last if abs(last.present - truth) < far else Stated(after[cell], truth))
    assert moved(stated, numbers, before) == sum(
        numbers[cell] != stated.get(cell, Stated(n, n)) for cell, n in before.items() if after.get(cell) == n
    )
    # Where everybody is present nothing is kept, and that says the same in the next run.
    again = restated(partly(numbers), after, after, absent, k)
    assert again == numbers


def test_ten_people_by_hand() -> None:
    cell, other = Cell(("q",), 1), Cell(("q",), 2)
    ten = {cell: 10}
    assert restated({}, {}, ten, {}, 2) == {cell: (10, 10)}
    assert restated({}, ten, ten, {cell: 1}, 2) == {cell: (10, 10)}
    eight = restated({}, ten, ten, {cell: 2}, 2)
    assert eight == {cell: (10, 8)}
    assert eight[cell].weight == 0.8
    assert restated(eight, ten, ten, {cell: 1}, 2) == eight
    assert restated(eight, ten, ten, {}, 2) == {cell: (10, 10)}
    # Two newcomers make a cell of their own; four of the ten go, and of the six that stay one is absent.
    assert restated(eight, ten, {cell: 6, other: 2}, {cell: 1}, 2) == {cell: (6, 5), other: (2, 2)}
    # Where one is gone the number is that of the other nine, though it was wrong by one alone.
    assert restated(eight, ten, {cell: 9}, {cell: 2}, 2) == {cell: (9, 7)}
    # What is not known any more is stated anew.
    assert restated({cell: NOTHING}, ten, ten, {cell: 1}, 2) == {cell: (10, 9)}


def test_values_do_not_matter_where_the_cells_are_the_same() -> None:
    """Of histories of the policy: with the values of everybody exchanged for others, one for one, cells stay, and so
    do the numbers."""
    rng, compared = random.Random(5), 0
    for seed in range(20):
        letters = dict(zip("abcd", rng.sample("abcd", 4), strict=True))
        told = []
        for exchanged in (False, True):
            shown, stated, numbers_of = {}, {}, []
            before = None
            for present, found in histories(seed):
                if exchanged and before is not None:
                    other = {one: Person(p.block, letters[str(p.value)]) for one, p in present.items()}
                    found = step(before.shown, other, before.memory, RULES, passes, newcomers=by_block(lambda _: 4))
                elif exchanged:
                    units = {o: u._replace(values=(letters[str(u.values[0])],)) for o, u in found.shown.items()}
                    found = replace(found, shown=units)
                elif before is not None:
                    found = step(before.shown, present, before.memory, RULES, passes, newcomers=by_block(lambda _: 4))
                absent = Counter(unit.cell for one, unit in found.shown.items() if one not in present)
                sizes = (Counter(unit.cell for unit in units.values()) for units in (shown, found.shown))
                stated = partly(restated(stated, *sizes, absent, 3))
                numbers_of.append(stated)
                shown, before = found.shown, found
            told.append(numbers_of)
        assert told[0] == told[1]
        compared += sum(map(len, told[0]))
    assert compared > 100


@pytest.mark.parametrize("name", ["distinct", "frequency", "pd", "two distinct"])
def test_the_plain_rule_states_what_the_engine_does(name: str) -> None:
    chosen = setting(name)
    rules, rng = chosen.rules, random.Random(17)
    verdicts = [chosen.of(i).verdict for i in range(chosen.sensitive)]
    weights: Counter[bool] = Counter()
    for large in (False, True):
        drawn = Drawn(2, 1, 2, 2, large, chosen.attributes)
        for frame in itertools.islice(frames_of_cohorts(17, drawn, 10**30), 25):
            double = DoubleOfCohorts(verdicts, rules.k, rules.ls, rules.sure, rules.cells, rules.coin, frame=frame)
            engine, plain = (Attack(frame, weighed(player)) for player in (Cohorts(chosen, frame), double))
            for _ in range(4):
                values, coin = balanced(frame, 2, rng), rng.choice([0, 0, rng.randrange(16)])
                told = engine.told(values, coin)
                assert told == plain.told(values, coin), (frame, values)
                weights.update(row[-1][2] < 1 for _, row in told[1] if row[-1] is not None)
    assert weights[True] > 20


@pytest.mark.parametrize("exact", [False, True])
def test_nobody_is_certain_whatever_the_weights_follow_of_presence(exact: bool) -> None:
    tally = play("distinct", 2, 1, 1500, seed=3, most=400, cells=True, cohorts=(1, 4), exact=exact)
    assert not tally.disclosed, tally.worst[:1]
    assert tally.events["leavers", "failed"]


class Example(NamedTuple):
    """variant: of the rule; people as frames, cohorts or bundles are written; values: how many there are."""

    variant: Variant
    people: str
    values: int
    model: str = "distinct"


EXAMPLES = {
    "each value of a cell has a weight of its own": Example("value", "a- a- bb bb", 2),
    "weights are stated anew where a batch of newcomers failed, pd": Example("failed", "aaa bbb b-- -bb -bb", 2, "pd"),
    "the share is of rows, people have several": Example("rows", "ab.- ab.- c.c d.d", 4),
}


def played(example: Example, *, right: bool) -> list[bool]:
    """Whether somebody's value is certain in this very history, with the plain rules and, if the rule is right, with
    the engine's."""
    chosen, people = setting(example.model), example.people.split()
    rules = chosen.rules
    parameters = ([chosen.verdict], rules.k, rules.ls, rules.sure, rules.cells, rules.coin)
    frame: Frame
    if example.variant == "rows":
        frame, values = bundled_frame(people, example.values)
        double = Double(*parameters, bundles=bundles(example.values, 6))
        engine: Engine = EngineOfBundles(chosen, example.values)
    elif example.variant == "failed":
        frame, values = cohort_frame_of(people, example.values)
        double, engine = DoubleOfCohorts(*parameters, frame=frame), Cohorts(chosen, frame)
    else:
        frame, values = frame_of(people, (example.values,))
        double, engine = Double(*parameters), Engine(chosen)
    told = []
    variant: Variant = "" if right else example.variant
    for player in [Plainly(double, rules.k, variant=variant, width=example.values), *[weighed(engine)] * right]:
        attack = Attack(frame, player)
        seen = attack.transcript_of(values)
        told.append(bool(attack.given(values).disclosed(seen, chosen.promises)))
    return told


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_weight_that_looks_at_more_tells_somebodys_value(name: str) -> None:
    assert played(EXAMPLES[name], right=False) == [True]


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_weight_of_presence_and_cells_does_not(name: str) -> None:
    assert played(EXAMPLES[name], right=True) == [False, False]
