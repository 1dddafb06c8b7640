"""One run: batches are proposed in a fixed order and applied one after another, each where it passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, replace

from qblock.joint.steady.coin import Coin, no_coin
from qblock.joint.steady.proposals import (
    Change,
    Cohort,
    erasures,
    in_cells,
    newcomers,
    parts_of,
    touched,
    whole_cells,
)
from qblock.joint.steady.rules import Rules
from qblock.joint.steady.state import (
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
from qblock.joint.steady.turn import Counted, Decided, Turn

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
        one: Unit(Cell(person.block, version), (person.value,))
        for one, person in sorted(present.items())
        if one not in memory.out
    }
    members: dict[Cell, list[str]] = {}
    for one, unit in shown.items():
        members.setdefault(unit.cell, []).append(one)
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
    out.update((one, "erased") for one in erased if one not in shown and one not in out)
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
        for found in in_cells(shown, left, present, pending, memory, rules, counted, least, change):
            if found.kind is Kind.LEAVERS:
                turn.let_go(found)
            else:
                turn.change(found, present, version)

    published = any(decided.outcome == "closed" for decided in turn.batches)
    after = Memory(
        run=run,
        version=version if published else memory.version,
        out=turn.out,
        frozen=frozenset(turn.frozen),
        pending={one: p for one, p in pending.items() if one in turn.shown and turn.shown[one] is shown[one]},
        since=memory.since,
        batches=numbers,
    )
    if rules.bundles:
        waiting = _waiting(turn.shown, present, turn.out)
        after = replace(after, seen={one: present[one].value for some in waiting.values() for one in some})
    return _ended(turn.shown, present, after, tuple(turn.batches), published)


def standing(shown: Mapping[str, Unit], present: Mapping[str, Person], memory: Memory) -> Step:
    """The state as it is, with who waits: nobody is tried."""
    return _ended(shown, present, replace(memory, pending=_seen(shown, present, memory.pending)), (), False)


def _seen(
    shown: Mapping[str, Unit], present: Mapping[str, Person], before: Mapping[str, Pending]
) -> dict[str, Pending]:
    """How often the value of each shown unit changed, from run to run, since it was last shown."""
    found = dict(before)
    for one, unit in shown.items():
        person = present.get(one)
        if person is None:
            continue
        last = found.get(one)
        if last is None:
            if person.value != unit.values[-1]:
                found[one] = Pending(person.value, 1)
        elif person.value != last.value:
            found[one] = Pending(person.value, last.times + 1)
    return found


def _both_sides(pending: dict[str, Pending], before: Mapping[str, Pending], owner: Owner) -> dict[str, Pending]:
    """Two units of one person that changed in one run may be a row that moved: neither is ever shown as changed."""
    now: dict[str, list[str]] = {}
    for one, found in pending.items():
        if one not in before or before[one] != found:
            now.setdefault(owner(one), []).append(one)
    several = {one for some in now.values() if len(some) > 1 for one in some}
    return {one: p._replace(times=p.times + 1) if one in several else p for one, p in pending.items()}


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
    found = {}
    moving = {owner(one) for one in shown if one not in present}
    moving |= {owner(one) for one, p in pending.items() if memory.pending.get(one) != p}
    for some in _waiting(shown, present, out).values():
        for one in some:
            if one in memory.seen:
                if memory.seen[one] != present[one].value:
                    found[one] = "changed"
            elif owner(one) in moving:
                found[one] = "moved"
    return found


def _waiting(
    shown: Mapping[str, Unit], present: Mapping[str, Person], out: Mapping[str, str]
) -> dict[Block, list[str]]:
    found: dict[Block, list[str]] = {}
    for one, person in present.items():
        if one not in shown and one not in out:
            found.setdefault(person.block, []).append(one)
    return found


def _ended(
    shown: Mapping[str, Unit],
    present: Mapping[str, Person],
    memory: Memory,
    batches: tuple[Decided, ...],
    published: bool,
) -> Step:
    """Who waits now, and the counts."""
    newcomers = {one: person.block for one, person in present.items() if one not in shown and one not in memory.out}
    leavers = {one: unit.cell.block for one, unit in shown.items() if one not in present}
    changes = {
        one: shown[one].cell.block
        for one in memory.pending
        # A value that changed back is shown as it is.
        if one in present and present[one].value != shown[one].values[-1]
    }
    waiting = {**newcomers, **leavers, **changes}
    since = {one: memory.since.get(one, memory.run) for one in waiting}
    closed = Counter(d.batch.kind.value for d in batches if d.outcome == "closed")
    failed = Counter(d.batch.kind.value for d in batches if d.outcome == "failed")
    out = sum(one in memory.out for one in present)
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
        oldest_newcomer=max((memory.run - since[one] for one in newcomers), default=0),
        source=len(present),
        lag=len(newcomers) + len(changes) + out,
    )
    return Step(shown, replace(memory, since=since), batches, counts, published)
