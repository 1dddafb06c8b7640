"""One run: batches are proposed in a fixed order and applied one after another, each where it passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, replace

from qblock.versions.steady.coin import Coin, no_coin
from qblock.versions.steady.proposals import (
    Change,
    Cohort,
    erasures,
    in_cells,
    newcomers,
    parts_of,
    touched,
    whole_cells,
)
from qblock.versions.steady.rules import Rules
from qblock.versions.steady.state import (
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
)
from qblock.versions.steady.turn import Counted, Decided, Turn

Owner = Callable[[str], str]
"""Whose a unit is."""


@dataclass(frozen=True)
class Step:
    """The result of a run. published: whether the state shown is another one than before, and so a new version."""

    shown: Mapping[str, Unit]
    memory: Memory
    batches: tuple[Decided, ...]
    counts: Counts
    published: bool


def same(value: Value) -> Hashable:
    """The value itself, where nothing but the sensitive attribute is published beside the block."""
    return value


def same_person(unit: str) -> str:
    """The unit itself, where nobody is in several blocks."""
    return unit


def one_attribute(before: Value, after: Value) -> tuple[bool, ...]:
    """Whether the value is another one."""
    return (before != after,)


def first_version(present: Mapping[str, Person], memory: Memory, passes: Passes, *, counted: Counted = same) -> Step:
    """The first version shows everybody who is present and not out, or nobody.

    Where it is refused, nobody of its people is ever shown: with some of them tried again, the difference tells.
    """
    run, version = memory.run + 1, memory.version + 1
    shown = {
        entity: Unit(Cell(person.block, version), (person.value,))
        for entity, person in sorted(present.items())
        if entity not in memory.out
    }
    members: dict[Cell, list[str]] = {}
    for entity, unit in shown.items():
        members.setdefault(unit.cell, []).append(entity)
    groups = tuple(Group(c, parts_of(shown, m, counted), True) for c, m in sorted(members.items()))
    change = Counter((unit.cell.block, counted(unit.values[-1])) for unit in shown.values())
    if shown and passes(Trial(None, groups, change)):
        return _ended(shown, present, replace(memory, run=run, version=version), (), True)
    out = {**memory.out, **dict.fromkeys(shown, "first")}
    return _ended({}, present, replace(memory, run=run, out=out), (), False)


def step(
    shown: Mapping[str, Unit],
    present: Mapping[str, Person],
    memory: Memory,
    rules: Rules,
    passes: Passes,
    *,
    cohort: Cohort,
    coin: Coin = no_coin,
    least: int = 0,
    erased: Collection[str] = (),
    counted: Counted = same,
    change: Change = one_attribute,
    owner: Owner = same_person,
) -> Step:
    """What the next version shows after one run, by digests of entities.

    shown: units of cells that nobody has left or changed in are not looked at, and may be left out (then `passes` must
    not need them, and one such unit must stay). least: people of a batch of leavers or changed values, where that is
    more than the models imply, so that fewer fail and freeze their cell. erased: people who withdraw at once, with
    their whole joint cells, which no verdict can hold up. counted: the sensitive value in what is published of a
    person, a tuple where `rules.attributes` are several, with a frozenset of values for each attribute where people
    have several rows (`rules.bundles`); change: which attributes two values differ in. owner: whose a unit is, where
    somebody may be in several blocks.
    """
    run, version = memory.run + 1, memory.version + 1
    pending = _seen(shown, present, memory.pending)
    if rules.bundles:
        pending = _both_sides(pending, memory.pending, owner)
    erased = set(erased)
    out = dict(memory.out)
    out.update((entity, "erased") for entity in erased if entity not in shown and entity not in out)
    if rules.bundles:
        out.update(_held_back(shown, present, memory, pending, out, owner))
    members = touched(shown, present, pending, erased)
    turn = Turn(shown, members, passes, counted, out)
    turn.frozen.update(memory.frozen)

    for batch in erasures(members, erased):
        turn.erase(batch, erased)
    for batch in whole_cells({c: m for c, m in members.items() if c not in turn.taken}, present, memory):
        # A version that shows nobody is none: the last cell waits for another one.
        if len(turn.shown) > len(batch.members):
            turn.attempt(batch, (Group(batch.cell, parts_of(shown, batch.members, counted), False),))

    numbers = dict(memory.batches)
    for batch in newcomers(_waiting(shown, present, out), version, cohort):
        block = batch.cell.block
        numbers[block] = numbers.get(block, 0) + 1
        if rules.coin and coin(block, numbers[block]):
            turn.aside(batch)
        else:
            turn.show(batch, present)

    if rules.cells:
        left = {c: m for c, m in members.items() if c not in turn.taken}
        for batch in in_cells(shown, left, present, pending, memory, rules, counted, least, change):
            if batch.kind is Kind.LEAVERS:
                turn.let_go(batch)
            else:
                turn.change(batch, present, version)

    published = any(decided.outcome == "closed" for decided in turn.batches)
    after = Memory(
        run=run,
        version=version if published else memory.version,
        out=turn.out,
        frozen=frozenset(turn.frozen),
        pending={
            entity: p for entity, p in pending.items() if entity in turn.shown and turn.shown[entity] is shown[entity]
        },
        since=memory.since,
        batches=numbers,
    )
    if rules.bundles:
        waiting = _waiting(turn.shown, present, turn.out)
        after = replace(after, seen={entity: present[entity].value for people in waiting.values() for entity in people})
    return _ended(turn.shown, present, after, tuple(turn.batches), published)


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


def _both_sides(pending: dict[str, Pending], before: Mapping[str, Pending], owner: Owner) -> dict[str, Pending]:
    """Two units of one person that changed in one run may be a row that moved: neither is ever shown as changed."""
    now: dict[str, list[str]] = {}
    for entity, change in pending.items():
        if entity not in before or before[entity] != change:
            now.setdefault(owner(entity), []).append(entity)
    moving = {entity for people in now.values() if len(people) > 1 for entity in people}
    return {entity: p._replace(times=p.times + 1) if entity in moving else p for entity, p in pending.items()}


def _held_back(
    shown: Mapping[str, Unit],
    present: Mapping[str, Person],
    memory: Memory,
    pending: Mapping[str, Pending],
    out: Mapping[str, str],
    owner: Owner,
) -> dict[str, str]:
    """Newcomers who are never shown, of bundles: those that changed while they waited, of whom it may be known that
    they have several rows; and those of people who left another block or changed there when they came, whose rows may
    have moved: two versions would show one row beside the people of two blocks."""
    reasons = {}
    moving = {owner(entity) for entity in shown if entity not in present}
    moving |= {owner(entity) for entity, p in pending.items() if memory.pending.get(entity) != p}
    for people in _waiting(shown, present, out).values():
        for entity in people:
            if entity in memory.seen:
                if memory.seen[entity] != present[entity].value:
                    reasons[entity] = "changed"
            elif owner(entity) in moving:
                reasons[entity] = "moved"
    return reasons


def _waiting(
    shown: Mapping[str, Unit], present: Mapping[str, Person], out: Mapping[str, str]
) -> dict[Block, list[str]]:
    blocks: dict[Block, list[str]] = {}
    for entity, person in present.items():
        if entity not in shown and entity not in out:
            blocks.setdefault(person.block, []).append(entity)
    return blocks


def _ended(
    shown: Mapping[str, Unit],
    present: Mapping[str, Person],
    memory: Memory,
    batches: tuple[Decided, ...],
    published: bool,
) -> Step:
    """Who waits now, and the counts."""
    newcomers = {
        entity: person.block for entity, person in present.items() if entity not in shown and entity not in memory.out
    }
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
