"""The rules of docs/steady-job.md section 2 once more, as plainly as they can be said, with switches that break them.

For one block. It shares nothing with the engine: without a switch it must publish what the engine does.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from .frames import split
from .players import Played
from .verdicts import Shares, Verdict


@dataclass(frozen=True)
class Wrong:
    """Obvious rules, each of which tells somebody's value.

    leavers_by_size: leavers go wherever k of them and k others do; thaw: a cell goes on after a batch of it failed,
    with the people of other batches; as_it_is: no batches: every version shows the source if plain J1 lets it; whole: a
    changed batch may be the whole cell; often: whoever changed at all may be shown as changed, "flag", or whoever has
    another value than shown, "difference"; returners: whoever was taken out is a newcomer again; retry: a refused first
    version is tried again with the same people; together: batches are tried each alone, and applied together; no_coin:
    batches are never set aside; moving: the distribution is that of the rows shown; mixed: people whose values changed
    in different attributes share a batch, or with a row more and with another one; first: the conditions on leavers and
    changed values look at the first sensitive attribute alone; two: they ask for two candidates, whatever l is; inside:
    they ask for candidates of who is in the batch alone; merged: leavers of all cells are a batch; readmitted: who
    stays when a stale cell goes is a newcomer again. Of people with several rows, common: a cell passes in which
    everybody holds one value; grown: newcomers are shown whose rows became more while they waited; alike: the condition
    on leavers and changed values counts values and lets one be in all.
    """

    leavers_by_size: bool = False
    thaw: bool = False
    as_it_is: bool = False
    whole: bool = False
    often: str = ""
    returners: bool = False
    retry: bool = False
    together: bool = False
    no_coin: bool = False
    moving: bool = False
    mixed: bool = False
    first: bool = False
    two: bool = False
    inside: bool = False
    merged: bool = False
    readmitted: bool = False
    common: bool = False
    grown: bool = False
    alike: bool = False


@dataclass(frozen=True)
class Kept:
    """cell: of each who is shown, as block, first run and runs of changes; history: the values shown of each; seen: the
    value of each when last present; times: how often each changed since last shown; since: the run from which on each
    waits; gone: the first run of an absence that goes on; failed: newcomers of batches that did, of the last run and of
    all."""

    run: int = 0
    cell: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    history: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    seen: Mapping[str, int] = field(default_factory=dict)
    times: Mapping[str, int] = field(default_factory=dict)
    gone: Mapping[str, int] = field(default_factory=dict)
    out: frozenset[str] = frozenset()
    frozen: frozenset[Any] = frozenset()
    spent: frozenset[str] = frozenset()
    closed: int = 0
    shares: Shares = field(default_factory=dict)
    begun: bool = False
    since: Mapping[str, int] = field(default_factory=dict)
    failed: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    versions: tuple[Mapping[str, int], ...] = ()


@dataclass
class Double:
    """A policy of one block. verdicts: for each sensitive attribute, which are the first ones; ls: as its models
    imply, at least 2; sure: whether nothing but the counts of values matters; leave: people of a batch of leavers or
    changed values; stale: the share of absent people at which small and frozen cells go; bundles: the rows of each
    value, where people have several; counting: verdicts that look at nothing but the counts of values, for the
    conditions on these."""

    verdicts: Sequence[Verdict]
    k: int = 2
    ls: Sequence[int] = (2,)
    sure: bool = True
    cells: bool = True
    coin: bool = False
    wrong: Wrong = field(default_factory=Wrong)
    widths: tuple[int, ...] = (0,)
    bundles: Sequence[tuple[int, ...]] = ()
    leave: int = 0
    stale: Fraction | None = None

    counting: Sequence[Verdict] = ()

    def __post_init__(self) -> None:
        self.able: dict[Any, set[int]] = {}
        self.counting = self.counting or self.verdicts
        self.conditions = 1 if self.wrong.first else self.sensitive

    @property
    def sensitive(self) -> int:
        return len(self.ls)

    def run(
        self,
        state: Kept | None,
        present: Mapping[str, tuple[int, int]],
        erased: Collection[str],
        cohorts: tuple[int, ...],
        aside: Callable[[tuple[int, ...], int], bool],
        widths: tuple[int, ...],
    ) -> Played:
        before = state or Kept()
        self.widths = widths
        values = {one: value for one, (_, value) in present.items()}
        if self.wrong.as_it_is:
            after, published = self._as_it_is(before, values)
        elif before.begun:
            after, published = self._step(before, values, set(erased), cohorts, aside)
        else:
            after, published = self._begin(before, values)
        rows = {one: (name[0] if name else 0, after.history[one][-1]) for one, name in after.cell.items()}
        return Played(after, rows if published else None, ())

    def _begin(self, before: Kept, values: Mapping[str, int]) -> tuple[Kept, bool]:
        people = {one: value for one, value in values.items() if one not in before.out}
        shares = self._shares(people.values())
        boxes = self._first_boxes(people)
        if people and self._passes([[(value,) for value in box.values()] for _, box in boxes], shares):
            cell = {one: (label, before.run) for label, box in boxes for one in box}
            history = {one: (value,) for one, value in people.items()}
            return Kept(before.run + 1, cell, history, values, out=before.out, shares=shares, begun=True), True
        out = before.out if self.wrong.retry else before.out | people.keys()
        return Kept(before.run + 1, out=out), False

    def _step(
        self,
        before: Kept,
        values: Mapping[str, int],
        erased: set[str],
        cohorts: tuple[int, ...],
        aside: Callable[[tuple[int, ...], int], bool],
    ) -> tuple[Kept, bool]:
        wrong = self.wrong
        cell: dict[str, tuple[Any, ...]] = dict(before.cell)
        history = dict(before.history)
        out, frozen, spent = set(before.out), set(before.frozen), set(before.spent)
        diverse = len({self._has(before.history[one][-1]) for one in cell})
        times = {one: n for one, n in before.times.items() if one in cell}
        for one in cell:
            if one in values and values[one] != before.seen[one]:
                times[one] = times.get(one, 0) + 1
        absent = {one: before.gone.get(one, before.run) for one in cell if one not in values}
        published = False

        def people(*names: tuple[Any, ...]) -> list[str]:
            return [one for one in cell if cell[one] in names]

        def passes(*groups: Iterable[tuple[int, ...]], rows: Iterable[int]) -> bool:
            return self._passes(groups, self._shares(rows) if wrong.moving else before.shares)

        def rows(less: Collection[str] = (), more: Mapping[str, int] | None = None) -> list[int]:
            last = {one: history[one][-1] for one in cell if one not in less}
            return list({**last, **(more or {})}.values())

        def remove(gone: Collection[str]) -> None:
            for one in gone:
                del cell[one]
            if not wrong.returners:
                out.update(gone)

        for name in sorted(set(cell.values())):
            if erased & set(people(name)):
                remove(people(name))
                frozen.discard(name)
                published = True
        out |= {one for one in erased if one not in history}
        for name in sorted(set(cell.values())):
            members = people(name)
            if name in frozen or any(one in values for one in members) or len(members) == len(cell):
                continue
            if passes([history[one] for one in members], rows=rows(less=members)):
                remove(members)
                published = True
            else:
                frozen.add(name)

        for name in sorted(set(cell.values())) if self.stale is not None else ():
            members = people(name)
            gone = [one for one in members if one not in values]
            small = len(members) < self.k + max(self.k, self.leave) + 2 or name in before.frozen
            if small and gone and len(gone) >= self.stale * len(members) and len(members) < len(cell):
                remove(members)
                frozen.discard(name)
                published = True
                if wrong.readmitted:
                    out -= set(members) - set(gone)

        if self.bundles and not wrong.grown:
            out |= {o for o in values if o not in cell and o in before.seen and before.seen[o] != values[o]}
        waiting = {one: value for one, value in values.items() if one not in cell and one not in out}
        closed, failed = before.closed, set[str]()
        since = {one: before.since.get(one, before.run) for one in waiting}
        size = cohorts[min(diverse, len(cohorts) - 1)]
        for label, batch in self._closing(before, waiting, since, size) if waiting else ():
            closed += 1
            if self.coin and not wrong.no_coin and aside((0,), closed):
                out.update(batch)
            elif passes([(value,) for value in batch.values()], rows=rows(more=batch)):
                cell.update(dict.fromkeys(batch, (label, before.run)))
                history.update({one: (value,) for one, value in batch.items()})
                published = True
            else:
                failed.update(batch)
                if not self._tried_again():
                    out.update(batch)

        old = set(before.cell) & set(cell)
        if wrong.merged:
            leavers, staying = [o for o in old if o not in values], [o for o in old if o in values]
            groups = [[history[one][-1:] for one in group] for group in (leavers, staying)]
            if len(leavers) >= self.k and passes(*filter(None, groups), rows=()):
                remove(leavers)
                old, published = set(staying), True
        for names in self._cells_of_batches({cell[one] for one in old}) if self.cells else ():
            members = people(*names)
            if frozen & set(names):
                continue
            leavers = [one for one in members if one not in values and one not in spent]
            changed = [one for one in members if one in values and self._counts(one, values, history, times)]
            changed = self._alike(changed, members, values, history)
            # Of those who changed before it is not known since when they wait.
            leavers.sort(key=lambda one: (0 if one in times else absent[one], one))
            while leavers and not (self._may_go(leavers, members, history) and len(leavers) < len(members)):
                leavers = leavers[:-1] if len(leavers) < len(members) else []
            gone = bool(leavers)
            moved = self._may_change(changed, members, history)
            if gone and moved and not wrong.together:  # by turns
                gone, moved = before.run % 2 == 0, before.run % 2 == 1
            taken: list[str] = []
            if gone:
                stay = [one for one in members if one not in leavers]
                if passes([history[o] for o in leavers], [history[o] for o in stay], rows=rows(less=leavers)):
                    taken = leavers
                elif wrong.thaw:
                    spent.update(leavers)
                else:
                    frozen.update(names)
            if moved:
                stay = [one for one in members if one not in changed]
                new = {one: (*history[one], values[one]) for one in changed}
                groups = [list(new.values()), [history[one] for one in stay]]
                if passes(*filter(None, groups), rows=rows(more={one: values[one] for one in changed})):
                    history.update(new)
                    cell.update({one: (*cell[one], before.run) for one in changed})
                    times = {one: n for one, n in times.items() if one not in changed}
                    published = True
                else:
                    frozen.update(names)
            if taken:
                remove(taken)
                published = True
        after = Kept(
            before.run + 1,
            cell,
            history,
            {**before.seen, **values},
            times,
            absent,
            frozenset(out),
            frozenset(frozen),
            frozenset(spent),
            closed,
            before.shares,
            True,
            {one: run for one, run in since.items() if one not in cell and one not in out},
            (frozenset(failed), before.failed[1] | failed),
        )
        return after, published

    def _first_boxes(self, people: Mapping[str, int]) -> list[tuple[Any, Mapping[str, int]]]:
        """The blocks of the first version with the values of their people."""
        return [(0, people)]

    def _closing(
        self, before: Kept, waiting: Mapping[str, int], since: Mapping[str, int], size: int
    ) -> list[tuple[Any, Mapping[str, int]]]:
        """The batches of newcomers that are tried, with their blocks."""
        return [(0, waiting)] if len(waiting) >= size else []

    def _tried_again(self) -> bool:
        return False

    def _cells_of_batches(self, names: Collection[tuple[Any, ...]]) -> list[list[tuple[Any, ...]]]:
        """The cells of which a batch may have people."""
        return [[name] for name in sorted(names)]

    def _counts(
        self,
        one: str,
        values: Mapping[str, int],
        history: Mapping[str, tuple[int, ...]],
        times: Mapping[str, int],
    ) -> bool:
        if self.wrong.often == "flag":
            return times.get(one, 0) > 0
        if self.wrong.often == "difference":
            return values[one] != history[one][-1]
        return times.get(one, 0) == 1

    def _alike(
        self,
        changed: Collection[str],
        members: Collection[str],
        values: Mapping[str, int],
        history: Mapping[str, tuple[int, ...]],
    ) -> list[str]:
        """Those who changed in the same attributes: the first of these groups that is large enough."""
        if self.wrong.mixed or self.wrong.whole:
            return list(changed)
        kinds = {one: self._kind(history[one][-1], values[one]) for one in changed}
        for kind in sorted(set(kinds.values())):
            found = [one for one in changed if kinds[one] == kind]
            if len(found) >= max(self.k, self.leave) and len(members) - len(found) >= self.k:
                return found
        return []

    def _kind(self, old: int, new: int) -> tuple[bool, ...]:
        if self.bundles:
            return (len(self.bundles[old]) < len(self.bundles[new]),)
        return tuple(a != b for a, b in zip(split(old, self.widths), split(new, self.widths), strict=True))

    def _has(self, value: int) -> tuple[frozenset[int], ...]:
        """The values of each sensitive attribute."""
        if self.bundles:
            return (frozenset(self.bundles[value]),)
        return tuple(frozenset([one]) for one in split(value, self.widths)[: self.sensitive])

    def _parts(
        self, members: Collection[str], history: Mapping[str, tuple[int, ...]]
    ) -> Iterable[tuple[list[frozenset[int]], int]]:
        """The values of each sensitive attribute in each part of a cell, person by person, with its l."""
        for part in zip(*(history[one] for one in members), strict=True):
            for attribute in range(self.conditions):
                yield [self._has(value)[attribute] for value in part], self.ls[attribute]

    def _held(self, some: Collection[str], members: Collection[str], history: Mapping[str, tuple[int, ...]]) -> bool:
        """Whether everybody keeps enough candidates if `some` fail, whatever they have."""
        if not self.bundles:
            sizes = [len(some), len(members) - len(some)]
            return all(self._left(size, members, history) for size in sizes[: 1 if self.wrong.inside else 2])
        for part, least in self._parts(members, history):
            often = [sets for sets, n in Counter(part).items() if n >= len(some)]
            every = {value for sets in often for value in sets}
            in_all = {value for value in every if all(value in sets for sets in often)}
            if len(every) < least or (in_all and not self.wrong.alike):
                return False
        return True

    def _left(self, size: int, members: Collection[str], history: Mapping[str, tuple[int, ...]]) -> bool:
        """Whether those who can be among so many, if these or the others fail, have enough values of each attribute."""
        columns = [([*map(min, part)], least) for part, least in self._parts(members, history)]
        able: set[int] = set()
        for i, (column, _) in enumerate(columns):
            values = self._able(Counter(column), size, i % self.conditions)
            able |= {place for place, value in enumerate(column) if value in values}
        return all(
            len({column[place] for place in able}) >= (2 if self.wrong.two else least) for column, least in columns
        )

    def _able(self, counts: Counter[int], size: int, attribute: int) -> set[int]:
        """The values of all choices of so many that fail, or leave others who do."""
        key = (frozenset(counts.items()), size, attribute)
        if key not in self.able:
            self.able[key] = set()
            for chosen in itertools.product(*(range(n + 1) for n in counts.values())):
                taken = +Counter(dict(zip(counts, chosen, strict=True)))
                if taken.total() == size:
                    groups = (taken, counts - taken)
                    if not all(self.counting[attribute](group, {}) for group in groups):
                        self.able[key] |= set(taken)
        return self.able[key]

    def _may_go(self, some: Collection[str], members: Collection[str], history: Mapping[str, tuple[int, ...]]) -> bool:
        m, n = len(some), len(members)
        if m < max(self.k, self.leave) or n - m < self.k:
            return False
        if self.wrong.leavers_by_size or self._held(some, members, history):
            return True
        if not self.bundles:
            return self.sure and self._cannot_fail(m, members, history)
        parts = self._parts(members, history)
        people = [(Counter(value for sets in part for value in sets), least) for part, least in parts]
        tops = [sum(n for _, n in held.most_common(least - 1)) for held, least in people]
        return self.sure and min(m, n - m) > max(tops)

    def _cannot_fail(self, m: int, members: Collection[str], history: Mapping[str, tuple[int, ...]]) -> bool:
        columns = [Counter(map(min, part)) for part, _ in self._parts(members, history)]
        return not any(self._able(column, m, i % self.conditions) for i, column in enumerate(columns))

    def _may_change(
        self, some: Collection[str], members: Collection[str], history: Mapping[str, tuple[int, ...]]
    ) -> bool:
        m, n = len(some), len(members)
        if self.wrong.whole and m == n:
            return m >= self.k
        return m >= max(self.k, self.leave) and n - m >= self.k and self._held(some, members, history)

    def _as_it_is(self, before: Kept, values: Mapping[str, int]) -> tuple[Kept, bool]:
        """The source as it is, where the episodes of all versions pass together."""
        versions = (*before.versions, values)
        cells: dict[tuple[int, ...], list[tuple[int]]] = {}
        for one in {one for version in versions for one in version}:
            found = [version.get(one) for version in versions]
            for value, same in itertools.groupby(enumerate(found), key=lambda pair: pair[1]):
                if value is not None:
                    cells.setdefault(tuple(v for v, _ in same), []).append((value,))
        if not self._passes(cells.values(), {}):
            return before, False
        history = {one: (value,) for one, value in values.items()}
        return Kept(cell=dict.fromkeys(values, ()), history=history, versions=versions), True

    def _passes(self, groups: Iterable[Iterable[tuple[int, ...]]], shares: Shares) -> bool:
        """Each part of each group. Values by their letters, as verdicts may name them."""
        for group in groups:
            for part in zip(*group, strict=True):
                for attribute in range(self.sensitive):
                    named: dict[Hashable, Fraction] = {}
                    for value, p in () if self.bundles else shares.items():
                        assert isinstance(value, int)
                        letter = "abcdefg"[split(value, self.widths)[attribute]]
                        named[letter] = named.get(letter, Fraction(0)) + p
                    held = Counter("abcdefg"[one] for value in part for one in self._has(value)[attribute])
                    if not self.verdicts[attribute](held, named):
                        return False
                    if self.bundles and len(part) < self.k:
                        return False
                    if self.bundles and max(held.values()) == len(part) and not self.wrong.common:
                        return False
        return True

    def _shares(self, values: Iterable[int]) -> Shares:
        counts = Counter(values)
        return {value: Fraction(n, counts.total()) for value, n in counts.items()}
