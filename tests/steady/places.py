"""Histories in which people have rows at several places: whose units are whose is known, and which row moved.

A small letter is a row, and a capital one all rows of somebody who is seen at a leaf for the first time: one or two,
since nobody knows how many. Every assignment of values to letters is run through the policy of the engine. A person's
rows in a box of the first map are one unit where that shows it or it is out; all others are one unit for each leaf.

python -m tests.steady.places --histories 100000 --model distinct --first 1
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from qblock.versions.batching.proposals import Newcomers, Waiting, every, in_cohorts
from qblock.versions.batching.rules import Coin
from qblock.versions.batching.state import Block, Person

from .bundles import bundles
from .cohorts import RULES, Part, divided
from .players import LONGEST, EngineOfBundles, Played, State
from .settings import NAMES, Setting, setting
from .weights import Kept, weighed

Leaf = tuple[int, ...]
Rows = Mapping[tuple[str, Leaf], str]
"""The letters of the rows of each person at each leaf."""


@dataclass(frozen=True)
class Story:
    """runs: the rows of each; differ: pairs of letters whose values are known to differ; alike: people of whom the same
    is known, with the letter of the only row of each; base: whether the first map is cut at the first quasi-identifier,
    once for each of its values; erased: the people who withdraw in each run."""

    runs: tuple[Rows, ...]
    values: int
    differ: tuple[tuple[str, str], ...] = ()
    alike: Mapping[str, str] = field(default_factory=dict)
    grid: tuple[int, ...] = (2,)
    base: bool = False
    within: int = 1
    least: int = 2
    rule: str = "even"
    erased: tuple[frozenset[str], ...] = ()

    @property
    def top(self) -> tuple[int, ...]:
        return tuple(bound for width in self.grid for bound in (0, width - 1))

    def base_box(self, leaf: Leaf) -> tuple[int, ...]:
        """The box of the first map that a leaf is in."""
        return (leaf[0], leaf[0], *self.top[2:]) if self.base else self.top

    @property
    def letters(self) -> list[str]:
        """In the order in which they come."""
        return list(dict.fromkeys(letter for run in self.runs for rows in run.values() for letter in rows))

    @property
    def assignments(self) -> int:
        """How many there are at most."""
        return math.prod(len(bundles(self.values, 2 if letter.isupper() else 1)) for letter in self.letters)


@dataclass(frozen=True)
class Wrong:
    """Variants of the rules. twice: all units of a person are in a cohort; pooled: nobody is out because the label
    shows another unit of the person; again: units of a box that failed wait again."""

    twice: bool = False
    pooled: bool = False
    again: bool = False


RIGHT = Wrong()


@dataclass
class Placed(EngineOfBundles):
    """The policy of the engine on the units of a story."""

    story: Story = field(default_factory=lambda: Story((), 2))
    wrong: Wrong = RIGHT

    def run(self, *given: Any) -> Played:
        played = super().run(*given)
        if not self.wrong.again:
            return played
        memory = played.state.memory
        out = {unit: why for unit, why in memory.out.items() if why != "failed"}
        return played._replace(state=played.state._replace(memory=replace(memory, out=out)))

    def _people(self, state: State | None, present: Mapping[str, Any]) -> dict[str, Person]:
        return {unit: Person(block, value) for unit, (block, value) in present.items()}

    def _owner(self, unit: str) -> str:
        return unit[0]

    def _label(self, block: Block) -> Any:
        return block

    def _coin(self, state: State, aside: Coin) -> Coin:
        return aside

    def _newcomers(
        self,
        state: State,
        people: Mapping[str, Person],
        cohorts: tuple[int, ...],
        counted: Callable[[Any], Any],
    ) -> Newcomers:
        story = self.story

        def labels(owners: Collection[str]) -> Mapping[str, set[Block]]:
            shown: dict[str, set[Block]] = {}
            for unit, of in state.shown.items():
                shown.setdefault(self._owner(unit), set()).add(of.cell.block)
            return {} if self.wrong.pooled else shown

        def closing(waiting: Waiting) -> Any:
            def divide(units: Collection[str]) -> list[Part]:
                at: Any = {unit: waiting.blocks[unit] for unit in units}
                return divided(Part(story.top, tuple(units)), at, waiting.since, story.least, story.rule)

            owner = (lambda unit: unit) if self.wrong.twice else self._owner
            return in_cohorts(every(story.within), story.least, divide, labels, owner)(waiting)

        return closing


def units_of(
    story: Story, state: Any, rows: Rows, named: Mapping[tuple[int, ...], int], value: Mapping[str, tuple[int, ...]]
) -> Any:
    """Block and bundle of each unit of a run. state: of the policy."""
    known: Collection[str] = ()
    first = state is None or not state.memory.version
    if not first:
        known = {*state.shown, *state.memory.out}
    held: dict[str, tuple[Block, list[int]]] = {}
    for (person, leaf), letters in rows.items():
        box = story.base_box(leaf)
        whole = f"{person}#{box}"
        unit, block = (whole, box) if first or whole in known else (f"{person}@{leaf}", leaf)
        held.setdefault(unit, (block, []))[1].extend(row for letter in letters for row in value[letter])
    return {unit: (block, named[tuple(sorted(bundle))]) for unit, (block, bundle) in held.items()}


class Path(NamedTuple):
    state: Any
    linked: Mapping[str, tuple[Any, ...]]
    published: tuple[int, ...]
    events: tuple[tuple[str, str], ...]
    shown: Mapping[tuple[str, int], frozenset[int]]
    """The values of each unit whose very bundle a version shows, with the run."""


@dataclass
class Possible:
    """What is possible with one transcript. bundles: the values of each person at a leaf, or altogether, and of each
    unit that is shown, in each run; shown: which of these a version shows."""

    bundles: dict[Any, set[frozenset[int]]] = field(default_factory=dict)
    shown: set[Any] = field(default_factory=set)
    assignments: int = 0
    histories: int = 0
    versions: int = 0


@dataclass
class Outcome:
    """An attack on a story. certain: persons, leaves and runs of which a value is certain, or fewer possible than l."""

    certain: set[Any]
    histories: int = 0
    assignments: int = 0
    disclosed: int = 0
    several: int = 0
    events: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __add__(self, other: Outcome) -> Outcome:
        numbers = {of.name: getattr(self, of.name) + getattr(other, of.name) for of in fields(self)[1:]}
        return Outcome(self.certain | other.certain, **numbers)


def attack(story: Story, setting: Setting, wrong: Wrong = RIGHT, verdicts: dict[Any, bool] | None = None) -> Outcome:
    """Run the policy on every assignment of values to letters, and compare what readers see."""
    engine = Placed(setting, story.values, story=story, wrong=wrong)
    if verdicts is not None:
        engine.verdicts = verdicts
    player = weighed(engine)
    named = {rows: number for number, rows in enumerate(bundles(story.values, LONGEST))}
    possible: dict[Hashable, Possible] = {}
    outcome = Outcome(set())

    def extended(run: int, path: Path, value: dict[str, tuple[int, ...]], weight: int) -> None:
        if run == len(story.runs):
            _end(story, path, value, weight, possible, outcome)
            return
        new = [x for x in dict.fromkeys(itertools.chain(*story.runs[run].values())) if x not in value]
        for chosen in itertools.product(*(bundles(story.values, 2 if letter.isupper() else 1) for letter in new)):
            now = {**value, **dict(zip(new, chosen, strict=True))}
            if any(a in now and b in now and now[a] == now[b] for a, b in story.differ):
                continue
            group = [now[letter] for letter in new if letter in story.alike.values()]
            if group != sorted(group):
                continue
            ways = math.factorial(len(group)) // math.prod(map(math.factorial, Counter(group).values()))
            after = _next(story, player, engine, path, run, named, now)
            # Of a first version that was refused there is no story to tell.
            if after.published:
                extended(run + 1, after, now, weight * ways)

    extended(0, Path(None, {}, (), (), {}), {}, 1)
    outcome.certain = _certain(possible, setting.l, outcome)
    return outcome


def _next(
    story: Story, player: Any, engine: Placed, path: Path, run: int, named: Any, value: Mapping[str, tuple[int, ...]]
) -> Path:
    inner = path.state.state if isinstance(path.state, Kept) else None
    present = units_of(story, inner, story.runs[run], named, value)
    gone = story.erased[run] if story.erased else frozenset()
    erased = [unit for unit in {*present, *(inner.shown if inner else ())} if unit[0] in gone]
    played: Played = player.run(path.state, present, erased, (2,), lambda block, n: False, (len(named),))
    events = path.events + played.events
    if played.rows is None:
        return Path(played.state, path.linked, path.published, events, path.shown)
    linked, shown = dict(path.linked), dict(path.shown)
    for unit in {*linked, *played.rows}:
        row = played.rows.get(unit)
        before = linked.get(unit, ())
        anew = row is not None and (not before or before[-1][1] is None or before[-1][1][:2] != row[:2])
        if row and anew and unit in present and present[unit][1] == row[1]:
            shown[unit, run] = frozenset(engine._rows(row[1]))
        linked[unit] = (*before, (run, row))
    return Path(played.state, linked, (*path.published, run), events, shown)


def _end(
    story: Story,
    path: Path,
    value: Mapping[str, tuple[int, ...]],
    weight: int,
    possible: dict[Hashable, Possible],
    outcome: Outcome,
) -> None:
    key = (path.published, tuple(sorted(map(repr, path.linked.values()))))
    seen = possible.setdefault(key, Possible(versions=len(path.published)))
    first = min(story.alike, default="")

    def known(name: str) -> str:
        return first + name[1:] if name[0] in story.alike else name

    for run, rows in enumerate(story.runs):
        of: dict[str, set[int]] = {}
        for (person, leaf), letters in rows.items():
            held = frozenset(row for letter in letters for row in value[letter])
            of.setdefault(person, set()).update(held)
            seen.bundles.setdefault((known(person), leaf, run), set()).add(held)
        for person, held_by in of.items():
            seen.bundles.setdefault((known(person), None, run), set()).add(frozenset(held_by))
    for (unit, run), held in path.shown.items():
        seen.bundles.setdefault((known(unit), run), set()).add(held)
        seen.shown.add((known(unit), run))
    seen.histories += 1
    seen.assignments += weight
    outcome.histories += 1
    outcome.assignments += weight
    outcome.several += len(path.published) > 1
    outcome.events.update(set(path.events))


def _certain(possible: Mapping[Hashable, Possible], l: int, outcome: Outcome) -> set[Any]:  # noqa: E741
    certain = set()
    for seen in possible.values():
        bad = {
            what
            for what, of in seen.bundles.items()
            if frozenset.intersection(*of) or (what in seen.shown and len(frozenset.union(*of)) < l)
        }
        if bad:
            outcome.disclosed += seen.histories
            certain |= bad
    return certain


def story_of(text: Sequence[str], values: int = 3, **settings: Any) -> Story:
    """Runs such as `p0:ab q1:c`: two rows of p at leaf 0, and one of q at 1."""
    runs = []
    for run in text:
        pairs = (unit.split(":") for unit in run.split())
        runs.append({(name[0], tuple(int(digit) for digit in name[1:])): letters for name, letters in pairs})
    return Story(tuple(runs), values, **settings)


def stories(seed: int, l: int, most: int) -> Iterator[Story]:  # noqa: E741
    """Random stories without end, of at most so many assignments, in which somebody has two units."""
    rng = random.Random(seed)
    while True:
        story = _story(rng, l)
        places: dict[str, set[Leaf]] = {}
        for person, leaf in itertools.chain(*story.runs):
            places.setdefault(person, set()).add(leaf)
        if story.assignments <= most and max(map(len, places.values())) > 1:
            yield story


def _story(rng: random.Random, l: int) -> Story:  # noqa: E741
    runs, grid = rng.choice([3, 3, 4]), rng.choice([(2,), (2,), (3,), (2, 2)])
    base, values = rng.random() < 0.5, rng.choice([l, l, l + 1])
    drawn = Drawing(rng, list(itertools.product(*map(range, grid))), runs, several=values > l)
    for place in range(grid[0] if base and rng.random() < 0.6 else 1):
        here = [leaf for leaf in drawn.leaves if not base or leaf[0] == place]
        for _ in range(rng.choice([l, l, l + 1])):
            lively = rng.random() < 0.4
            drawn.person([rng.choice(here) if lively else here[0]], 0, lively=lively, first=not place)
    for _ in range(rng.choice([2, 2, 3])):
        leaves = rng.sample(drawn.leaves, rng.choice([1, 1, 2]))
        drawn.person(leaves, rng.choice([1, 1, 1, 2]), lively=rng.random() < 0.6)
    return Story(
        tuple(drawn.table),
        values,
        tuple(drawn.differ),
        drawn.alike,
        grid,
        base,
        rng.choice([1, 1, 2]),
        rng.choice([l, l, l + 1]),
        rng.choice(["even", *RULES]),
        tuple(frozenset(rng.choice("abcdef") if rng.random() < 0.02 else "") for _ in range(runs)),
    )


class Drawing:
    """A story that is drawn person by person. several: whether a row may become another one, which two values in all
    would tell."""

    def __init__(self, rng: random.Random, leaves: Sequence[Leaf], runs: int, *, several: bool) -> None:
        self.rng, self.leaves, self.several = rng, leaves, several
        self.table: list[dict[tuple[str, Leaf], str]] = [{} for _ in range(runs)]
        self.differ: list[tuple[str, str]] = []
        self.alike: dict[str, str] = {}
        self._names, self._letters = iter("abcdefghijkl"), iter("abcdefghijklmnopqrstuvwxyz")

    def person(self, leaves: Sequence[Leaf], comes: int, *, lively: bool, first: bool = False) -> None:
        """Write down somebody's rows run by run: they stay, move, become others, go, and more come."""
        name, away = next(self._names), dict[Leaf, str]()
        rows = {leaf: next(self._letters).upper() for leaf in leaves}
        if first and not lively:
            (self.alike[name],) = rows.values()
        for run in range(comes, len(self.table)):
            if run > comes and lively:
                if away:
                    rows, away = (away, {}) if self.rng.random() < 0.5 else ({}, away)
                elif rows and self.rng.random() < 0.2:
                    rows, away = {}, rows
                elif rows:
                    rows = self._changed(rows)
            self.table[run] |= {(name, leaf): letters for leaf, letters in rows.items()}

    def _changed(self, rows: dict[Leaf, str]) -> dict[Leaf, str]:
        rng, rows = self.rng, dict(rows)
        what = rng.choice(["stay", "move", "move", "new", "grow", "grow", "other", "go", "part"])
        leaf = rng.choice(sorted(rows))
        other = rng.choice(self.leaves)
        added = [letter for letter in rows[leaf] if letter.islower()]
        if what == "move":
            letters = rows.pop(leaf)
            rows[other] = rows.get(other, "") + letters
        elif what == "new" and other not in rows:
            rows[other] = next(self._letters).upper()
        elif what == "grow":
            rows[leaf] += next(self._letters)
        elif what == "other" and added and self.several:
            letter = next(self._letters)
            self.differ.append((added[0], letter))
            rows[leaf] = rows[leaf].replace(added[0], letter)
        elif what == "go":
            del rows[leaf]
        elif what == "part" and added and other in rows and other != leaf:
            rows[leaf] = rows[leaf].replace(added[0], "")
            rows[other] += added[0]
        return {leaf: letters for leaf, letters in rows.items() if letters}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=100_000)
    parser.add_argument("--model", choices=NAMES, default="distinct")
    parser.add_argument("--first", type=int, default=1, help="the seed")
    parser.add_argument("--most", type=int, default=100_000, help="assignments of a story")
    options = parser.parse_args(arguments)
    outcome, number, verdicts = Outcome(set()), 0, dict[Any, bool]()
    for story in stories(options.first, 2, options.most):
        result = attack(story, setting(options.model), RIGHT, verdicts)
        outcome, number = outcome + result, number + 1
        if result.certain:
            print(story, result.certain, flush=True)
        if outcome.histories >= options.histories:
            break
    events = ", ".join(f"{kind} {result} {n}" for (kind, result), n in sorted(outcome.events.items()))
    tried = f"{number} stories, {outcome.histories} histories ({outcome.assignments} assignments)"
    several = f"{outcome.several / outcome.histories:.0%} with more than one version"
    print(f"{options.model}: {tried}, {several}, {outcome.disclosed} disclosed\n    {events}")
    return 1 if outcome.disclosed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
