"""Laws of the steady job on random histories of the real policy."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction

import pytest

from qblock.models import DistinctLDiversity
from qblock.versions.batching.proposals import by_block
from qblock.versions.batching.rules import Rules
from qblock.versions.batching.state import Memory, Person, Trial, Unit
from qblock.versions.batching.step import Step, step
from steady.pure import first_version

from .attacker import Attack
from .beginnings import balanced
from .bundles import balanced_bundles, bundles, frames_of_bundles
from .cohorts import Cohorts, Drawn, frames_of_cohorts
from .double import Double
from .double_cohorts import DoubleOfCohorts
from .frames import frames
from .players import Engine, EngineOfBundles
from .settings import SEVERAL, setting

CHOSEN = setting("distinct", 2)
RULES = CHOSEN.rules
SEEDS = range(60)
People = Mapping[str, Person]


def passes(trial: Trial) -> bool:
    return all(CHOSEN.verdict(part, {}) for group in trial.groups for part in group.parts)


def churned(rng: random.Random, people: People, names: Iterator[int]) -> dict[str, Person]:
    """Some leave, some change, some come, and some who left come back with another value."""
    found = {one: person for one, person in people.items() if rng.random() > 0.1}
    for one in found:
        if rng.random() < 0.1:
            found[one] = Person(found[one].block, rng.choice("abcd"))
    for _ in range(rng.randrange(5)):
        found[f"p{next(names)}"] = Person((rng.randrange(3),), rng.choice("abcd"))
    return found


def histories(seed: int, rules: Rules = RULES) -> Iterator[tuple[People, Step]]:
    """A first version that passes, and 12 runs."""
    rng = random.Random(seed)
    names = iter(range(10**6))
    present: dict[str, Person] = {
        f"p{next(names)}": Person((block,), "abcd"[i % 4]) for block in range(3) for i in range(rng.choice([8, 12, 20]))
    }
    found = first_version(present, Memory(), passes)
    yield present, found
    for _ in range(12):
        present = churned(rng, present, names)
        erased = rng.sample(sorted(found.shown), 1) if found.shown and rng.random() < 0.1 else []
        found = step(
            found.shown, present, found.memory, rules, passes, newcomers=by_block(lambda block: 4), erased=erased
        )
        yield present, found


def cells_of(shown: Mapping[str, Unit]) -> dict[tuple, Counter]:
    found: dict[tuple, Counter] = {}
    for unit in shown.values():
        for part, value in enumerate(unit.values):
            found.setdefault((unit.cell, part), Counter())[value] += 1
    return found


def test_what_is_shown_of_people_is_a_state_they_were_in_and_every_cell_passes() -> None:
    closed: Counter[str] = Counter()
    for seed in SEEDS:
        states: dict[str, set[Person]] = {}
        gone: set[str] = set()
        before: set[str] = set()
        for present, found in histories(seed, Rules(True, 2, (2,), ((DistinctLDiversity(l=2),),), sure=True)):
            for one, person in present.items():
                states.setdefault(one, set()).add(person)
            for one, unit in found.shown.items():
                assert Person(unit.cell.block, unit.values[-1]) in states[one]
            assert all(CHOSEN.verdict(cell, {}) for cell in cells_of(found.shown).values())
            gone |= before - found.shown.keys()
            before = set(found.shown)
            assert not gone & before
            assert gone <= found.memory.out.keys()
            assert not found.memory.out.keys() & before
            closed.update(found.counts.closed)
    assert closed["newcomers"] > 50
    assert closed["erased"] > 20
    assert closed["leavers"] > 20
    assert closed["changed values"] > 20


def test_when_churn_stops_what_can_close_closes() -> None:
    waited = 0
    for seed in SEEDS:
        # Leavers and changed values have piled up.
        *_, (present, found) = histories(seed, Rules(False, 2, (2,), ((),)))
        runs = 0
        while True:
            found = step(found.shown, present, found.memory, RULES, passes, newcomers=by_block(lambda block: 4))
            runs += 1
            if not found.batches:
                break
            assert runs < 20
        left = {one: person.block for one, person in present.items() if one not in found.shown}
        waiting = Counter(block for one, block in left.items() if one not in found.memory.out)
        assert all(n < 4 for n in waiting.values())
        cells = {unit.cell for unit in found.shown.values()} - found.memory.frozen
        if len(cells) > 1:
            assert all(any(one in present for one, u in found.shown.items() if u.cell == cell) for cell in cells)
        again = step(found.shown, present, found.memory, RULES, passes, newcomers=by_block(lambda block: 4))
        assert (again.shown, again.published) == (found.shown, False)
        waited += runs > 1
    assert waited > 5


def test_the_order_of_what_is_given_does_not_matter() -> None:
    rng = random.Random(1)

    def shuffled(mapping: Mapping) -> dict:
        return dict(rng.sample(list(mapping.items()), len(mapping)))

    for seed in SEEDS:
        before: Step | None = None
        for present, found in histories(seed):
            if before is not None and not any(why in ("erased", "cell") for why in found.memory.out.values()):
                memory = Memory(
                    before.memory.run,
                    before.memory.version,
                    shuffled(before.memory.out),
                    before.memory.frozen,
                    shuffled(before.memory.pending),
                    shuffled(before.memory.since),
                    shuffled(before.memory.batches),
                )
                other = step(
                    shuffled(before.shown),
                    shuffled(present),
                    memory,
                    RULES,
                    passes,
                    newcomers=by_block(lambda block: 4),
                )
                assert other == found
            before = found


def test_names_do_not_matter() -> None:
    """What becomes of people depends on nothing but what is known of them: the attacker relies on it."""
    random_frames = frames(3, 2, 1, 300)
    rng = random.Random(3)
    for _ in range(40):
        one = Attack(next(random_frames), Engine(CHOSEN))
        chosen = [rng.choices(column.values(one.frame.widths), k=size) for column, size in one.frame.people]
        assert one.transcript_of(chosen) == one.transcript_of([rng.sample(some, len(some)) for some in chosen])


@pytest.mark.parametrize("name", ["distinct", "frequency", "recursive", "t+distinct", "t", "pd", *SEVERAL])
def test_the_plain_rules_publish_what_the_engine_does(name: str) -> None:
    chosen = setting(name)
    rules = chosen.rules
    verdicts = [chosen.of(i).verdict for i in range(chosen.sensitive)]
    counting = [chosen.of(i).counting for i in range(chosen.sensitive)]
    stale = Fraction(1, 2)
    double = Double(verdicts, rules.k, rules.ls, rules.sure, rules.cells, rules.coin, counting=counting, stale=stale)
    random_frames = frames(11, 2, 1, 10**6, attributes=chosen.attributes)
    rng = random.Random(11)
    several = 0
    for _ in range(150 * chosen.attributes):
        frame = next(random_frames)
        engine, plain = Attack(frame, Engine(chosen, stale=stale)), Attack(frame, double)
        for _ in range(5):
            values = [rng.choices(column.values(frame.widths), k=size) for column, size in frame.people]
            coin = rng.randrange(16)
            found, expected = engine.told(values, coin), plain.told(values, coin)
            assert found == expected, (frame, values)
            several += len(found[0]) > 2
    assert several > 20


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("name", ["distinct", "frequency", "recursive"])
def test_the_plain_rules_publish_what_the_engine_does_where_people_have_several_rows(name: str, large: bool) -> None:
    chosen = setting(name)
    rules = chosen.rules
    random_frames = frames_of_bundles(12, 2, 1, "changes", 10**12, large)
    rng = random.Random(12)
    several = compared = 0
    while compared < 150:
        frame = next(random_frames)
        engine = Attack(frame, EngineOfBundles(chosen, frame.values))
        sure, named = rules.sure and name == "distinct", bundles(frame.values, 6)
        double = Double([chosen.verdict], rules.k, rules.ls, sure, rules.cells, bundles=named)
        plain = Attack(frame, double)
        for _ in range(5):
            values = balanced_bundles(frame, 2, rng)
            found, expected = engine.told(values), plain.told(values)
            assert found == expected, (frame, values)
            several += len(found[0]) > 2
        compared += 1
    assert several > 20


@pytest.mark.parametrize("name", ["distinct", "frequency", "t+distinct", "t", "pd", "two distinct"])
def test_the_plain_rules_publish_what_the_engine_does_with_newcomers_in_cohorts(name: str) -> None:
    chosen = setting(name)
    rules = chosen.rules
    verdicts = [chosen.of(i).verdict for i in range(chosen.sensitive)]
    counting = [chosen.of(i).counting for i in range(chosen.sensitive)]
    rng = random.Random(13)
    versions: Counter[int] = Counter()
    for within, least, large in itertools.product((1, 2, 3), (2, 3), (False, True)):
        drawn = Drawn(2, within, least, 2, large, chosen.attributes)
        for frame in itertools.islice(frames_of_cohorts(13, drawn, 10**30), 8):
            double = DoubleOfCohorts(
                verdicts, rules.k, rules.ls, rules.sure, rules.cells, rules.coin, frame=frame, counting=counting
            )
            engine, plain = Attack(frame, Cohorts(chosen, frame)), Attack(frame, double)
            for _ in range(4):
                values, coin = balanced(frame, 2, rng), rng.choice([0, 0, rng.randrange(16)])
                decided = engine.told(values, coin)
                assert decided == plain.told(values, coin), (frame, values)
                versions[len(decided[0])] += 1
    assert versions[3] + versions[4] > 20
