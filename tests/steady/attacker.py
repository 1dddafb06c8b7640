"""The exact attacker: every assignment of values to a frame, told apart by nothing but what readers saw.

Nothing here knows the rules. The attacker runs a policy on each assignment, and compares what it publishes: the runs
that published, and the linked rows of all versions, each with its block and values. People of whom the same is known
are alike, so assignments are tried up to exchange of these (a policy that told such people apart by their names would
fail the tests of its order).
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, NamedTuple

from .beginnings import Chosen, balanced, same_first_rows
from .bundles import Bundled, balanced_bundles
from .frames import ABSENT, Frame, Values, arrangements
from .players import Player

Transcript = tuple[tuple[int, ...], tuple[int, ...]]
"""The runs that published (-1 - run: readers see an older version again), and the rows of all versions, as numbers."""


@dataclass
class Possible:
    """All assignments with one transcript.

    seen: a bit for each column, run and value that some of them has; shown: a bit for each column and run whose very
    value a version shows; alone: columns that are in a cell with one value.
    """

    seen: int = 0
    shown: int = 0
    alone: int = 0
    histories: int = 0
    assignments: int = 0
    several: bool = False


@dataclass
class Path:
    """What became of a beginning of the histories. rows: number of each person's row so far; versions: how many were
    published with other rows than before, whatever their weights."""

    state: Any
    rows: dict[str, int]
    published: tuple[int, ...]
    shown: int
    events: tuple[tuple[str, str], ...]
    versions: int = 0


@dataclass
class Found:
    """An attack on a frame. possible: by transcript; sensitive: how many attributes are, the first ones; events: how
    often a batch came to what, by histories."""

    frame: Frame
    sensitive: int
    possible: dict[Transcript, Possible]
    events: Counter[tuple[str, str]] = field(default_factory=Counter)
    histories: int = 0
    assignments: int = 0

    def candidates(self, transcript: Transcript) -> Iterator[tuple[int, int, int, int]]:
        """Column, run, sensitive attribute, and how many values of it are possible there: 1 where one is certain."""
        seen, size = self.possible[transcript].seen, self.frame.size
        for c, (column, _) in enumerate(self.frame.people):
            for run, here in enumerate(column.present):
                if here:
                    found = (seen >> (c * self.frame.runs + run) * size) & ((1 << size) - 1)
                    for attribute, projected in enumerate(self.frame.masks[: self.sensitive]):
                        certain = any(found & ~mask == 0 for mask in projected)
                        yield c, run, attribute, 1 if certain else sum(bool(found & mask) for mask in projected)

    def disclosed(self, transcript: Transcript, promised: Sequence[int]) -> list[tuple[int, int]]:
        """Columns and runs of which one value is possible, or fewer than were promised of what is shown.

        promised: for each sensitive attribute; 1 for models that let cells with one value pass: then whoever is in one
        is not counted.
        """
        one = self.possible[transcript]
        return [
            (c, run)
            for c, run, attribute, n in self.candidates(transcript)
            if n < max(2, promised[attribute] if one.shown >> (c * self.frame.runs + run) & 1 else 2)
            and not (promised[attribute] == 1 and one.alone >> c & 1)
        ]


class Choice(NamedTuple):
    """The values of the people of one column.

    begins: numbers of what they share with other choices, run by run; bits: as Possible.seen; weight: the
    assignments for which it stands.
    """

    values: tuple[Values, ...]
    begins: tuple[int, ...]
    bits: int
    weight: int


class Attack:
    """A policy on all assignments to one frame."""

    def __init__(self, frame: Frame, player: Player) -> None:
        self.frame = frame
        self.player = player
        self.rows: dict[Any, int] = {}
        self.values: list[tuple[Any, ...]] = []
        self.erased = [
            [name for c, (column, _) in enumerate(frame.people) if column.erased == run for name in frame.names[c]]
            for run in range(frame.runs)
        ]
        self._begins: list[dict[Any, int]] = [{} for _ in frame.people]

    def _choice(self, c: int, chosen: tuple[Values, ...]) -> Choice:
        frame, size, known = self.frame, self.frame.size, self._begins[c]
        begins = [tuple(values[:run] for values in chosen) for run in range(frame.runs + 1)]
        bits = [
            1 << ((c * frame.runs + run) * size + value)
            for values in chosen
            for run, value in enumerate(values)
            if value != ABSENT
        ]
        return Choice(
            chosen,
            tuple(known.setdefault(begin, len(known)) for begin in begins),
            _all_bits(bits),
            arrangements(chosen),
        )

    def transcript_of(self, chosen: Sequence[tuple[Values, ...]], coin: int = 0) -> Transcript:
        """What readers see of one assignment, when the coin sets nobody aside."""
        return self.transcript(self._played(chosen, coin))

    def told(self, chosen: Sequence[Sequence[Values]], coin: int = 0) -> tuple[tuple[int, ...], list[Any]]:
        """The same in words that two policies share: the runs that published, and the linked rows."""
        path = self._played(chosen, coin)
        return path.published, sorted((name, self._spelt(number)) for name, number in path.rows.items())

    def _spelt(self, number: int) -> tuple[Any, ...]:
        before, version, row = self.values[number]
        return (version, row) if before is None else (*self._spelt(before), row)

    def drawn(self, rng: random.Random, draws: int = 24) -> tuple[float, bool]:
        """The share of a few random histories that publish more than one version, and whether one tries a batch of a
        cell."""
        columns = [(column.values(self.frame.widths), size) for column, size in self.frame.people]
        paths = [self._played([rng.choices(v, k=size) for v, size in columns], 0) for _ in range(draws)]
        tried = any(kind in ("leavers", "changed values") for path in paths for kind, _ in path.events)
        return sum(map(_several, paths)) / draws, tried

    def begun(self, rng: random.Random, l: int, draws: int = 24) -> tuple[Chosen | None, float, bool]:  # noqa: E741
        """A drawn assignment whose first run shows a version; the share of some such assignments that publish more than
        one, and whether one tries a batch of a cell."""
        found = [(chosen, self._played(chosen, 0)) for chosen in (self._balanced(l, rng) for _ in range(draws))]
        shown = [(chosen, path) for chosen, path in found if path.published[:1] == (0,)]
        tried = [one for one in shown if any(kind in ("leavers", "changed values") for kind, _ in one[1].events)]
        if not shown:
            return None, 0.0, False
        return (tried or shown)[0][0], sum(_several(path) for _, path in shown) / len(shown), bool(tried)

    def _balanced(self, l: int, rng: random.Random) -> Chosen:  # noqa: E741
        frame = self.frame
        return balanced_bundles(frame, l, rng) if isinstance(frame, Bundled) else balanced(frame, l, rng)

    def _played(self, chosen: Sequence[Sequence[Values]], coin: int) -> Path:
        path = Path(None, {}, (), 0, ())
        for run in range(self.frame.runs):
            path = self._next(path, chosen, run, coin)
        return path

    def all(self) -> Found:
        """Run the policy on every assignment, and with every fall of the coin where it has one."""
        columns = [[self._choice(c, one) for one in column] for c, column in enumerate(self.frame.choices())]
        return self._found(lambda: itertools.product(*columns))

    def given(self, chosen: Sequence[Sequence[Values]]) -> Found:
        """Run it on every assignment with the rows of the first run of this one: all that are possible, if it shows
        them."""
        made = [cache(partial(self._choice, c)) for c in range(len(self.frame.people))]
        return self._found(
            lambda: (
                tuple(one(values) for one, values in zip(made, choice, strict=True))
                for choice in same_first_rows(self.frame, chosen)
            )
        )

    def _found(self, assignments: Callable[[], Iterable[tuple[Choice, ...]]]) -> Found:
        found = Found(self.frame, self.player.sensitive, {})
        coins = self.frame.coins if self.player.coin else 0
        for coin in range(1 << coins):
            paths: list[dict[tuple[int, ...], Path]] = [{} for _ in range(self.frame.runs + 1)]
            for choices in assignments():
                path = self._path(paths, choices, coin)
                weight, seen = 1, 0
                for choice in choices:
                    weight *= choice.weight
                    seen |= choice.bits
                key = self.transcript(path)
                one = found.possible.get(key)
                if one is None:
                    one = found.possible[key] = Possible(alone=self.alone(path), several=_several(path))
                one.seen |= seen
                one.shown |= path.shown
                one.histories += 1
                one.assignments += weight
                found.histories += 1
                found.assignments += weight
                found.events.update(set(path.events))
        return found

    def _path(self, paths: list[dict[tuple[int, ...], Path]], choices: Sequence[Choice], coin: int) -> Path:
        """Run the policy on a choice of values for each column, from the longest beginning that was run before."""
        runs = self.frame.runs
        keys = [tuple(choice.begins[run] for choice in choices) for run in range(runs + 1)]
        done = runs
        while done and keys[done] not in paths[done]:
            done -= 1
        path = paths[done][keys[done]] if done else Path(None, {}, (), 0, ())
        for run in range(done, runs):
            path = paths[run + 1][keys[run + 1]] = self._next(path, [c.values for c in choices], run, coin)
        return path

    def _next(self, path: Path, chosen: Sequence[Sequence[Values]], run: int, coin: int) -> Path:
        present = {
            name: (column.block, values[run])
            for (column, _), names, some in zip(self.frame.people, self.frame.names, chosen, strict=True)
            if column.present[run]
            for name, values in zip(names, some, strict=True)
        }

        def aside(block: tuple[int, ...], number: int) -> bool:
            return bool(coin >> (block[0] * (self.frame.runs - 1) + number - 1) & 1)

        played = self.player.run(path.state, present, self.erased[run], self.frame.cohorts, aside, self.frame.widths)
        events = path.events + played.events
        again = (-1 - run,) if self.frame.rollback == run and path.published else ()
        if played.rows is None:
            return Path(played.state, path.rows, path.published + again, path.shown, events, path.versions)
        rows, shown, other = dict(path.rows), path.shown, False
        version = len(path.published)
        for name in {*rows, *played.rows}:
            row = played.rows.get(name)
            before = rows.get(name)
            rows[name] = self._number((before, version if before is None else None, row))
            now = present.get(name)
            anew = before is None or _unweighted(self.values[before][2]) != _unweighted(row)
            other |= anew
            if row and now and now[1] == row[1] and anew:
                shown |= 1 << (int(name.split(".")[0]) * self.frame.runs + run)
        return Path(played.state, rows, (*path.published, run, *again), shown, events, path.versions + other)

    def _number(self, row: tuple[Any, ...]) -> int:
        if row not in self.rows:
            self.rows[row] = len(self.values)
            self.values.append(row)
        return self.rows[row]

    def transcript(self, path: Path) -> Transcript:
        return path.published, tuple(sorted(path.rows.values()))

    def alone(self, path: Path) -> int:
        """The columns that are in a cell of linked rows that all have the same values."""
        cells: dict[Any, set[int]] = {}
        for number in path.rows.values():
            cells.setdefault(self._label(number), set()).add(number)
        return _all_bits(
            1 << int(name.split(".")[0]) for name, number in path.rows.items() if len(cells[self._label(number)]) == 1
        )

    def _label(self, number: int) -> tuple[Any, ...]:
        """What is known of a row but for its values: block and versions, and where the value changed."""
        before, version, row = self.values[number]
        if before is None:
            return (version, row[0])
        last = self.values[before][2]
        return (*self._label(before), None if row is None else _unweighted(row) == _unweighted(last))


def _unweighted(row: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    """Block and value of a row."""
    return None if row is None else row[:2]


def _several(path: Path) -> bool:
    return path.versions > 1


def _all_bits(bits: Any) -> int:
    found = 0
    for bit in bits:
        found |= bit
    return found
