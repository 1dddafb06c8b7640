"""One run: batches are proposed in a fixed order and applied one after another, each where it passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from qblock.versions.batching.proposals import (
    Change,
    Closing,
    Members,
    Newcomers,
    Owner,
    Waiting,
    erasures,
    in_cells,
    parts_of,
    same,
    stale_cells,
    touched,
    whole_cells,
)
from qblock.versions.batching.rules import Coin, Rules, no_coin
from qblock.versions.batching.state import (
    Batch,
    Block,
    Cell,
    Counts,
    Group,
    Kind,
    Memory,
    Passes,
    Pending,
    Person,
    Trial,
    Unit,
    Value,
    histogram,
)

Counted = Callable[[Value], Hashable]


class Decided(NamedTuple):
    """A batch and what became of it: "closed", "failed" or "aside". Private."""

    batch: Batch
    outcome: str


class Draft:
    """The next version while batches are decided one after another. taken: cells that were taken out whole."""

    def __init__(
        self, shown: Mapping[str, Unit], members: Members, passes: Passes, counted: Counted, out: dict[str, str]
    ) -> None:
        self.before = shown
        self.shown = dict(shown)
        self.members = members
        self.passes = passes
        self.counted = counted
        self.out = out
        self.frozen: set[Cell] = set()
        self.taken: set[Cell] = set()
        self.batches: list[Decided] = []
        self.changed: Counter[tuple[Block, Hashable]] = Counter()

    def erase(self, batch: Batch, withdrawn: Collection[str]) -> None:
        self._differ(self._rows(batch.members), -1)
        self._remove(batch)
        self.out.update((entity, "erased" if entity in withdrawn else "cell") for entity in batch.members)
        self.batches.append(Decided(batch, "closed"))

    def dissolve(self, batch: Batch, present: Mapping[str, Person]) -> None:
        """Take out a cell that most have left; those who have not are out for good."""
        self._differ(self._rows(batch.members), -1)
        self._remove(batch)
        self.out.update((entity, "stale" if entity in present else "left") for entity in batch.members)
        self.batches.append(Decided(batch, "closed"))

    def attempt(self, batch: Batch, groups: Sequence[Group]) -> bool:
        """Take leavers out where that passes; else their cell is frozen."""
        rows = self._rows(batch.members)
        if not self._tried(batch, groups, rows, ()):
            self.frozen.add(batch.cell)
            return False
        self._remove(batch)
        self.out.update((entity, "left") for entity in batch.members)
        return True

    def let_go(self, batch: Batch) -> None:
        gone, stay = self._split(batch)
        self.attempt(batch, (gone._replace(shown=False), stay))

    def show(self, batch: Batch, present: Mapping[str, Person]) -> None:
        """Show newcomers where their cell passes; else they are out for good."""
        units = {entity: Unit(batch.cell, (present[entity].value,)) for entity in batch.members}
        rows = [(batch.cell.block, self.counted(unit.values[-1])) for unit in units.values()]
        groups = (Group(batch.cell, parts_of(units, batch.members, self.counted), True),)
        if self._tried(batch, groups, (), rows):
            self.shown.update(units)
        else:
            self.out.update((entity, "failed") for entity in batch.members)

    def aside(self, batch: Batch) -> None:
        self.out.update((entity, "aside") for entity in batch.members)
        self.batches.append(Decided(batch, "aside"))

    def change(self, batch: Batch, present: Mapping[str, Person], version: int) -> None:
        """Show changed values where old and new ones pass, and those who keep theirs; else the cell is frozen."""
        moved, stay = self._split(batch)
        cell = batch.cell._replace(changed=(*batch.cell.changed, version))
        units = {entity: Unit(cell, (*self.before[entity].values, present[entity].value)) for entity in batch.members}
        new = [self.counted(unit.values[-1]) for unit in units.values()]
        moved = Group(cell, (*moved.parts, histogram(Counter(new))), True)
        if self._tried(batch, (moved, stay), self._rows(batch.members), [(cell.block, value) for value in new]):
            self.shown.update(units)
        else:
            self.frozen.add(batch.cell)

    def _tried(
        self,
        batch: Batch,
        groups: Sequence[Group],
        less: Iterable[tuple[Block, Hashable]],
        more: Iterable[tuple[Block, Hashable]],
    ) -> bool:
        """Ask for the verdict on a batch after those accepted before. less, more: rows that it takes and adds."""
        kept = self.changed.copy()
        self._differ(less, -1)
        self._differ(more, 1)
        passed = self.passes(Trial(batch, tuple(groups), self.changed))
        if not passed:
            self.changed = kept
        self.batches.append(Decided(batch, "closed" if passed else "failed"))
        return passed

    def _differ(self, rows: Iterable[tuple[Block, Hashable]], by: int) -> None:
        for row in rows:
            self.changed[row] += by

    def _rows(self, members: Iterable[str]) -> list[tuple[Block, Hashable]]:
        return [(self.before[entity].cell.block, self.counted(self.before[entity].values[-1])) for entity in members]

    def _split(self, batch: Batch) -> tuple[Group, Group]:
        """A batch of a cell, and those who stay."""
        moved = set(batch.members)
        staying = [entity for entity in self.members[batch.cell] if entity not in moved]
        return (
            Group(batch.cell, parts_of(self.before, batch.members, self.counted), True),
            Group(batch.cell, parts_of(self.before, staying, self.counted), True),
        )

    def _remove(self, batch: Batch) -> None:
        for entity in batch.members:
            del self.shown[entity]
        if len(self.members[batch.cell]) == len(batch.members):
            self.taken.add(batch.cell)
            self.frozen.discard(batch.cell)


@dataclass(frozen=True)
class Step:
    """The result of a run. published: whether the state shown is another one than before, and so a new version."""

    shown: Mapping[str, Unit]
    memory: Memory
    batches: tuple[Decided, ...]
    counts: Counts
    published: bool


def one_attribute(before: Value, after: Value) -> tuple[bool, ...]:
    """Whether the value is another one."""
    return (before != after,)


def step(
    shown: Mapping[str, Unit],
    present: Mapping[str, Person],
    memory: Memory,
    rules: Rules,
    passes: Passes,
    *,
    newcomers: Newcomers,
    coin: Coin = no_coin,
    leave: int = 0,
    stale: Fraction | None = None,
    erased: Collection[str] = (),
    counted: Counted = same,
    change: Change = one_attribute,
    owner: Owner = same,
    whole: Collection[Cell] | None = None,
) -> Step:
    """What the next version shows after one run, by digests of entities.

    shown: units of cells that nobody has left or changed in are not looked at, and may be left out (then `passes` must
    not need them, and one such unit must stay); so may those who stay as they are in a cell of which no batch may be
    tried (`may_be_tried`). whole: then the cells of which everybody is there. leave: people of a batch of leavers or
    changed values, where that is more than the models imply, so that fewer fail and freeze their cell. stale: the share
    of absent people at which a cell that can hardly empty by itself is taken out whole; None for never. erased: people
    who withdraw at once, with their whole joint cells, which no verdict can hold up. counted: the sensitive value in
    what is published of a person, a tuple where `rules.attributes` are several, with a frozenset of values for each
    attribute where people have several rows (`rules.bundles`); change: which attributes two values differ in. owner:
    whose a unit is, where somebody may be in several blocks.
    """
    run, version = memory.run + 1, memory.version + 1
    pending = _seen(shown, present, memory.pending)
    erased = set(erased)
    out = dict(memory.out)
    out.update((entity, "erased") for entity in erased if entity not in shown and entity not in out)
    if rules.bundles:
        moving = _moving(shown, present, memory, pending, owner)
        pending = _both_sides(pending, memory.pending, moving, owner)
        out.update(_held_back(shown, present, memory, moving, out, owner))
    members = touched(shown, present, pending, erased)
    if whole is not None:
        members = {cell: people for cell, people in members.items() if cell in whole}
    draft = Draft(shown, members, passes, counted, out)
    draft.frozen.update(memory.frozen)

    for batch in erasures(members, erased):
        draft.erase(batch, erased)
    for batch in whole_cells({c: m for c, m in members.items() if c not in draft.taken}, present, memory):
        # A version that shows nobody is none: the last cell waits for another one.
        if len(draft.shown) > len(batch.members):
            draft.attempt(batch, (Group(batch.cell, parts_of(shown, batch.members, counted), False),))
    for batch in stale_cells(
        {c: m for c, m in members.items() if c not in draft.taken}, present, memory, rules, leave, stale
    ):
        if len(draft.shown) > len(batch.members):
            draft.dissolve(batch, present)

    numbers = dict(memory.batches)
    blocks = _waiting(shown, present, out)
    since = {entity: memory.since.get(entity, run) for entity in blocks}
    closing = newcomers(Waiting(blocks, since, run)) if blocks else Closing()
    out.update(dict.fromkeys(closing.repeated, "repeated"))
    for block, people in closing.batches:
        batch = Batch(Kind.NEWCOMERS, Cell(block, version), tuple(sorted(people)))
        numbers[block] = numbers.get(block, 0) + 1
        if rules.coin and coin(block, numbers[block]):
            draft.aside(batch)
        else:
            draft.show(batch, present)

    if rules.cells:
        left = {c: m for c, m in members.items() if c not in draft.taken}
        for batch in in_cells(shown, left, present, pending, memory, rules, counted, leave, change):
            if batch.kind is Kind.LEAVERS:
                draft.let_go(batch)
            else:
                draft.change(batch, present, version)

    published = any(decided.outcome == "closed" for decided in draft.batches)
    after = Memory(
        run=run,
        version=version if published else memory.version,
        out=draft.out,
        frozen=frozenset(draft.frozen),
        pending={
            entity: p for entity, p in pending.items() if entity in draft.shown and draft.shown[entity] is shown[entity]
        },
        since={entity: first for entity, first in memory.since.items() if entity not in closing.left_over},
        batches=numbers,
    )
    if rules.bundles:
        unseen = [entity for entity in present if entity not in draft.shown]
        after = replace(after, seen={entity: present[entity].value for entity in unseen})
    return _ended(draft.shown, present, after, tuple(draft.batches), published)


def standing(shown: Mapping[str, Unit], present: Mapping[str, Person], memory: Memory) -> Step:
    """The state as it is, with who waits: nobody is tried."""
    return _ended(shown, present, replace(memory, pending=_seen(shown, present, memory.pending)), (), False)


def _seen(
    shown: Mapping[str, Unit], present: Mapping[str, Person], before: Mapping[str, Pending]
) -> dict[str, Pending]:
    """How often the value of each shown unit changed, from run to run, since it was last shown."""
    pending = dict(before)
    for entity, unit in shown.items():
        person = present.get(entity)
        if person is None:
            continue
        last = pending.get(entity)
        if last is None:
            if person.value != unit.values[-1]:
                pending[entity] = Pending(person.value, 1)
        elif person.value != last.value:
            pending[entity] = Pending(person.value, last.times + 1)
    return pending


def _moving(
    shown: Mapping[str, Unit],
    present: Mapping[str, Person],
    memory: Memory,
    pending: Mapping[str, Pending],
    owner: Owner,
) -> Counter[str]:
    """How many units of each person, of those that were shown or tried, are absent or became others in this run: a row
    of theirs may be one that another unit of the person has from now on."""
    gone = [entity for entity in shown if entity not in present]
    changed = [entity for entity, change in pending.items() if memory.pending.get(entity) != change]
    out = [
        entity
        for entity, value in memory.seen.items()
        if entity not in memory.since and (entity not in present or present[entity].value != value)
    ]
    return Counter(map(owner, {*gone, *changed, *out}))


def _both_sides(
    pending: Mapping[str, Pending], before: Mapping[str, Pending], moving: Mapping[str, int], owner: Owner
) -> dict[str, Pending]:
    """A unit that changed in a run in which another one of its person left or changed may have a row that moved: it is
    never shown as changed."""
    return {
        entity: p._replace(times=p.times + 1) if before.get(entity) != p and moving[owner(entity)] > 1 else p
        for entity, p in pending.items()
    }


def _held_back(
    shown: Mapping[str, Unit],
    present: Mapping[str, Person],
    memory: Memory,
    moving: Collection[str],
    out: Mapping[str, str],
    owner: Owner,
) -> dict[str, str]:
    """Newcomers who are never shown, of bundles: those that changed while they waited, of whom it may be known that
    they have several rows; and those of people of whom another unit left or changed when they came, whose rows may have
    moved: two versions would show one row beside the people of two blocks, or one would show what a failed batch
    told."""
    reasons = {}
    for entity in _waiting(shown, present, out):
        if entity in memory.seen:
            if memory.seen[entity] != present[entity].value:
                reasons[entity] = "changed"
        elif owner(entity) in moving:
            reasons[entity] = "moved"
    return reasons


def _waiting(shown: Mapping[str, Unit], present: Mapping[str, Person], out: Mapping[str, str]) -> dict[str, Block]:
    """The block of everybody who is present, not shown and not out."""
    return {entity: person.block for entity, person in present.items() if entity not in shown and entity not in out}


def _ended(
    shown: Mapping[str, Unit],
    present: Mapping[str, Person],
    memory: Memory,
    batches: tuple[Decided, ...],
    published: bool,
) -> Step:
    """Who waits now, and the counts."""
    newcomers = _waiting(shown, present, memory.out)
    leavers = {entity: unit.cell.block for entity, unit in shown.items() if entity not in present}
    changes = {
        entity: shown[entity].cell.block
        for entity in memory.pending
        # A value that changed back is shown as it is.
        if entity in present and present[entity].value != shown[entity].values[-1]
    }
    waiting = {**newcomers, **leavers, **changes}
    since = {entity: memory.since.get(entity, memory.run) for entity in waiting}
    closed = Counter(d.batch.kind.value for d in batches if d.outcome == "closed")
    failed = Counter(d.batch.kind.value for d in batches if d.outcome == "failed")
    out = sum(entity in memory.out for entity in present)
    counts = Counts(
        closed=dict(closed),
        failed=dict(failed),
        aside=sum(d.outcome == "aside" for d in batches),
        frozen=len(memory.frozen),
        newcomers=len(newcomers),
        leavers=len(leavers),
        changes=len(changes),
        blocks=len(set(waiting.values())),
        oldest_wait=max((memory.run - run for run in since.values()), default=0),
        oldest_newcomer=max((memory.run - since[entity] for entity in newcomers), default=0),
        source=len(present),
        lag=len(newcomers) + len(changes) + out,
    )
    return Step(shown, replace(memory, since=since), batches, counts, published)
