"""The engine's policy, as the attacker runs it on the values that they try."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

from qblock.versions.batching.proposals import Newcomers, by_block
from qblock.versions.batching.rules import Coin
from qblock.versions.batching.state import Block, Histogram, Memory, Person, Trial, Unit
from qblock.versions.batching.step import step

from .bundles import Known, bundles
from .frames import difference, split
from .pure import first_version
from .settings import Setting
from .verdicts import Shares

Rows = Mapping[str, tuple[Any, ...]]
"""Block and value that readers see of each person, and the weight of the row where rows have one."""


class Played(NamedTuple):
    """A run. state: for the next one; rows: where a version was published, else None; events: kind and outcome of each
    batch, as the attacker may not see them, for the tally."""

    state: Any
    rows: Rows | None
    events: tuple[tuple[str, str], ...]


class Player(Protocol):
    """A policy. state: None before the first run; aside: whether the coin sets the n-th batch of a block aside; widths:
    of the attributes, of which so many are sensitive."""

    def run(
        self,
        state: Any,
        present: Mapping[str, tuple[int, int]],
        erased: Collection[str],
        cohorts: tuple[int, ...],
        aside: Callable[[Block, int], bool],
        widths: tuple[int, ...],
    ) -> Played: ...

    @property
    def coin(self) -> bool: ...

    @property
    def sensitive(self) -> int: ...


class State(NamedTuple):
    shown: Mapping[str, Unit]
    memory: Memory
    shares: tuple[Shares, ...]


@dataclass
class Engine:
    """The policy of the engine, with plain verdicts."""

    setting: Setting
    leave: int = field(default=0, kw_only=True)
    stale: Fraction | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self.rules = self.setting.rules
        self.verdicts: dict[Hashable, bool] = {}
        self.sensitive = self.setting.sensitive

    @property
    def coin(self) -> bool:
        return self.rules.coin

    def run(
        self,
        state: State | None,
        present: Mapping[str, tuple[int, int]],
        erased: Collection[str],
        cohorts: tuple[int, ...],
        aside: Callable[[Block, int], bool],
        widths: tuple[int, ...],
    ) -> Played:
        def counted(value: Hashable) -> Hashable:
            assert isinstance(value, int)
            return self._counted(value, widths)

        def change(before: Hashable, after: Hashable) -> tuple[bool, ...]:
            assert isinstance(before, int)
            assert isinstance(after, int)
            return self._change(before, after, widths)

        people = self._people(state, present)
        if state is None or not state.memory.version:
            found = first_version(people, Memory() if state is None else state.memory, self._first, counted=counted)
            shares = self._shares(Counter(counted(unit.values[-1]) for unit in found.shown.values()))
        else:
            shares = state.shares
            found = step(
                state.shown,
                people,
                state.memory,
                self.rules,
                lambda trial: self._passes(trial, shares),
                newcomers=self._newcomers(state, people, cohorts, counted),
                coin=self._coin(state, aside),
                leave=self.leave,
                stale=self.stale,
                erased=erased,
                counted=counted,
                change=change,
                owner=self._owner,
            )
        rows = {one: (self._label(unit.cell.block), unit.values[-1]) for one, unit in found.shown.items()}
        events = tuple((decided.batch.kind.value, decided.outcome) for decided in found.batches)
        return Played(State(found.shown, found.memory, shares), rows if found.published else None, events)

    def _people(self, state: State | None, present: Mapping[str, tuple[int, int]]) -> dict[str, Person]:
        return {one: self._person(block, value) for one, (block, value) in present.items()}

    def _person(self, block: int, value: int) -> Person:
        return Person((block,), value)

    def _newcomers(
        self,
        state: State,
        people: Mapping[str, Person],
        cohorts: tuple[int, ...],
        counted: Callable[[Hashable], Hashable],
    ) -> Newcomers:
        diverse: dict[Block, set[Hashable]] = {}
        for unit in state.shown.values():
            diverse.setdefault(unit.cell.block, set()).add(counted(unit.values[-1]))
        return by_block(lambda block: cohorts[min(len(diverse.get(block, ())), len(cohorts) - 1)])

    def _coin(self, state: State, aside: Coin) -> Coin:
        return aside

    def _label(self, block: Block) -> Any:
        return block[0]

    def _owner(self, unit: str) -> str:
        return unit

    def _counted(self, value: int, widths: tuple[int, ...]) -> Hashable:
        found = split(value, widths)[: self.sensitive]
        return found[0] if self.sensitive == 1 else found

    def _change(self, before: int, after: int, widths: tuple[int, ...]) -> tuple[bool, ...]:
        bits = difference(before, after, widths)
        return tuple(bool(bits >> i & 1) for i in range(len(widths)))

    def _first(self, trial: Trial) -> bool:
        counts: Counter[Hashable] = Counter()
        for (_, value), n in trial.change.items():
            counts[value] += n
        return self._passes(trial, self._shares(counts))

    def _shares(self, counts: Counter[Hashable]) -> tuple[Shares, ...]:
        return tuple(shares_of(one) for one in self._each(counts))

    def _each(self, counts: Mapping[Hashable, int]) -> list[Counter[Hashable]]:
        """The counts of each sensitive attribute."""
        found: list[Counter[Hashable]] = [Counter() for _ in range(self.sensitive)]
        for values, n in counts.items():
            for one, value in zip(found, values if isinstance(values, tuple) else (values,), strict=True):
                one[value] += n
        return found

    def _passes(self, trial: Trial, shares: tuple[Shares, ...]) -> bool:
        """The verdict on each part of each cell; the same counts with the same shares are asked once."""
        for group in trial.groups:
            for part in group.parts:
                key = (frozenset(part.items()), *(frozenset(one.items()) for one in shares))
                if key not in self.verdicts:
                    self.verdicts[key] = self._part_passes(part, shares)
                if not self.verdicts[key]:
                    return False
        return True

    def _part_passes(self, part: Histogram, shares: tuple[Shares, ...]) -> bool:
        return all(
            self.setting.of(i).verdict(
                {"abcdefg"[v]: n for v, n in counts.items()}, {"abcdefg"[v]: p for v, p in of.items()}
            )
            for i, (counts, of) in enumerate(zip(self._each(part), shares, strict=True))
        )


@dataclass
class EngineOfBundles(Engine):
    """The same where people have several rows. values: that a row may have; known: what is known of people's rows."""

    values: int = 2
    known: Known = "changes"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rules = replace(self.setting.rules, bundles=True)

    def _rows(self, value: int) -> tuple[int, ...]:
        return bundles(self.values, LONGEST)[value]

    def _person(self, block: int, value: int) -> Person:
        return Person((block, len(self._rows(value))) if self.known == "rows" else (block,), value)

    def _counted(self, value: int, widths: tuple[int, ...]) -> Hashable:
        return frozenset(self._rows(value))

    def _change(self, before: int, after: int, widths: tuple[int, ...]) -> tuple[bool, ...]:
        return (len(self._rows(before)) < len(self._rows(after)),)

    def _each(self, counts: Mapping[Hashable, int]) -> list[Counter[Hashable]]:
        found: Counter[Hashable] = Counter()
        for some, n in counts.items():
            assert isinstance(some, frozenset)
            for one in some:
                found[one] += n
        return [found]

    def _part_passes(self, part: Histogram, shares: tuple[Shares, ...]) -> bool:
        people = sum(part.values())
        by_value = self._each(part)[0]
        return people >= self.setting.k and max(by_value.values()) < people and super()._part_passes(part, shares)


LONGEST = 6
"""Rows of somebody, at the most."""


def shares_of(counts: Mapping[Hashable, int]) -> Shares:
    rows = sum(counts.values())
    return {value: Fraction(n, rows) for value, n in counts.items() if n}
