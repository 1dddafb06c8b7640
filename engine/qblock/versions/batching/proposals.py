"""Which batches a run tries: by sizes, presence, counts of changes, and counts that versions show already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from qblock.models import DistinctLDiversity
from qblock.versions.batching.failing import Column, cannot_fail, leaves_candidates
from qblock.versions.batching.rules import Rules
from qblock.versions.batching.state import (
    Batch,
    Block,
    Cell,
    Histogram,
    Kind,
    Memory,
    Pending,
    Person,
    Unit,
    Value,
    held,
    histogram,
)

Cohort = Callable[[Block], int | None]
"""The people who close a batch of newcomers of a block, from what readers already see; None: none closes."""
Divide = Callable[[Collection[str]], Sequence[tuple[Block, Sequence[str]]]]
"""The boxes of a cohort's own map with their people, in the order of the map: by quasi-identifiers and sizes alone."""
Due = Callable[[int, int], bool]
"""Whether a cohort closes in a run, by its number and that from which on somebody has waited longest."""
Members = Mapping[Cell, Sequence[str]]
Change = Callable[[Value, Value], tuple[int, ...]]
"""Which attributes two values differ in, or what else is known of a change."""


def parts_of(
    units: Mapping[str, Unit], members: Collection[str], counted: Callable[[Value], Hashable]
) -> tuple[Histogram, ...]:
    """The counts of each part of a cell among some of its members. counted: the sensitive value in a shown one."""
    columns = zip(*(units[member].values for member in members), strict=True)
    return tuple(histogram(Counter(map(counted, column))) for column in columns)


def by_attribute(part: Histogram, ls: Sequence[int]) -> list[tuple[Histogram, int]]:
    """The counts of each sensitive attribute, with its l. part: by values, which are tuples of one for each attribute
    where there are several."""
    if len(ls) == 1:
        return [({value[0] if isinstance(value, tuple) and value else value: n for value, n in part.items()}, ls[0])]
    counters: list[Counter[Hashable]] = [Counter() for _ in ls]
    for values, n in part.items():
        assert isinstance(values, tuple)
        for counts, value in zip(counters, values, strict=True):
            counts[value] += n
    return list(zip(counters, ls, strict=True))


def people_by_value(part: Histogram) -> Counter[Hashable]:
    """How many people hold each sensitive value."""
    people: Counter[Hashable] = Counter()
    for values, n in part.items():
        for value in held(values):
            people[value] += n
    return people


def touched(
    shown: Mapping[str, Unit], present: Mapping[str, Person], pending: Mapping[str, Pending], erased: Collection[str]
) -> Members:
    """The members of every cell with somebody who left, changed or is erased."""
    cells = {unit.cell for entity, unit in shown.items() if entity not in present}
    cells |= {shown[entity].cell for entity in pending}
    cells |= {shown[entity].cell for entity in erased if entity in shown}
    people: dict[Cell, list[str]] = {cell: [] for cell in sorted(cells)}
    if cells:
        for entity, unit in shown.items():
            if unit.cell in people:
                people[unit.cell].append(entity)
    return {cell: sorted(members) for cell, members in people.items()}


def erasures(members: Members, erased: Collection[str]) -> Iterator[Batch]:
    """The whole cells of people who withdraw, frozen or not."""
    for cell, people in members.items():
        if any(entity in erased for entity in people):
            yield Batch(Kind.ERASED, cell, tuple(people))


def whole_cells(members: Members, present: Mapping[str, Person], memory: Memory) -> Iterator[Batch]:
    """Cells that everybody has left: their difference is a cell that has passed."""
    for cell, people in members.items():
        if cell not in memory.frozen and not any(entity in present for entity in people):
            yield Batch(Kind.WHOLE, cell, tuple(people))


class Waiting(NamedTuple):
    """Who is present, was never shown and was never in a batch. blocks: in that of each; since: the run from which on
    each has waited; run: this one."""

    blocks: Mapping[str, Block]
    since: Mapping[str, int]
    run: int


class Closing(NamedTuple):
    """What closes in a run. batches: the block and the people of each, in the order in which they are tried; left_over:
    units that wait anew from this run on, since another one of their person has its turn; repeated: those that are out
    for good, since their label shows another one of their person."""

    batches: Iterable[tuple[Block, Sequence[str]]] = ()
    left_over: Collection[str] = ()
    repeated: Collection[str] = ()


Newcomers = Callable[[Waiting], Closing]
"""Which of those who wait are tried in a run."""
Owner = Callable[[str], str]
"""Whose a unit is."""
Labels = Callable[[Collection[str]], Mapping[str, Collection[Block]]]
"""Under which labels some people are shown."""


def same(value: Any) -> Any:
    """The value itself, where nothing but the sensitive attribute is published beside the block; as well the unit
    itself, where nobody is in several blocks."""
    return value


def by_block(cohort: Cohort) -> Newcomers:
    """Blocks in which enough people wait."""

    def closing(waiting: Waiting) -> Closing:
        people: dict[Block, list[str]] = {}
        for entity, block in waiting.blocks.items():
            people.setdefault(block, []).append(entity)
        sizes = {block: cohort(block) for block in sorted(people)}
        full = (block for block, size in sizes.items() if size is not None and len(people[block]) >= size)
        return Closing([(block, people[block]) for block in full])

    return closing


def nobody(waiting: Waiting) -> Closing:
    """Nobody: where no number of people passes surely enough."""
    return Closing()


def in_cohorts(due: Due, least: int, divide: Divide, labels: Labels | None = None, owner: Owner = same) -> Newcomers:
    """All who wait, once one of them has waited long enough, in the boxes of a map of their own.

    least: people of a box, and so of a cohort. When it closes and how it is divided depends on nothing but presence and
    quasi-identifiers; who waits, on no verdict (docs/steady-job.md section 2). labels: of what is shown of people,
    where somebody may be shown more than once; owner: whose a unit is.
    """

    def closing(waiting: Waiting) -> Closing:
        longest: dict[str, str] = {}
        for unit in sorted(waiting.blocks, key=lambda unit: (waiting.since[unit], unit)):
            longest.setdefault(owner(unit), unit)
        units = list(longest.values())
        if len(units) < least or not due(waiting.run, min(waiting.since.values())):
            return Closing()
        boxes = divide(units)
        shown = {} if labels is None else labels(longest.keys())
        repeated = {unit for label, part in boxes for unit in part if label in shown.get(owner(unit), ())}
        batches = [(label, [unit for unit in part if unit not in repeated]) for label, part in boxes]
        left_over = waiting.blocks.keys() - set(units)
        return Closing([(label, part) for label, part in batches if part], left_over, repeated)

    return closing


def every(runs: int) -> Due:
    """In each run whose number this one divides, and whenever somebody has waited so many runs."""
    return lambda run, since: run % runs == 0 or run - since >= runs


def stale_cells(
    members: Members, present: Mapping[str, Person], memory: Memory, rules: Rules, leave: int, share: Fraction | None
) -> Iterator[Batch]:
    """Cells that can hardly empty by themselves, of whose people such a share is gone: frozen ones, and those with too
    few people for a batch of leavers. By presence alone: the difference is a cell that has passed."""
    if share is None or not rules.stale or rules.bundles:
        return
    enough = rules.k + max(rules.k, leave) + 2
    for cell, people in members.items():
        gone = sum(entity not in present for entity in people)
        if (cell in memory.frozen or len(people) < enough) and gone and gone >= share * len(people):
            yield Batch(Kind.STALE, cell, tuple(people))


def in_cells(
    shown: Mapping[str, Unit],
    members: Members,
    present: Mapping[str, Person],
    pending: Mapping[str, Pending],
    memory: Memory,
    rules: Rules,
    counted: Callable[[Value], Hashable],
    leave: int,
    change: Change,
) -> Iterator[Batch]:
    """At most one batch of each cell: leavers who can go, or people whose value changed exactly once.

    By turns, so that neither waits for ever where the others are many: leavers first in odd runs. Of the leavers those
    who are gone longest, as many as may go. Of the others those with the same change, so that whoever knows what
    changed of whom tells nobody of the new cell apart. leave: people of a batch, where that is more than the models
    imply: a smaller one fails more often.
    """
    for cell, people in members.items():
        if cell in memory.frozen:
            continue
        leavers = _oldest_first([entity for entity in people if entity not in present], pending, memory)
        once = [entity for entity in people if entity in present and entity in pending and pending[entity].times == 1]
        by_change: dict[Hashable, list[str]] = {}
        for entity in once:
            by_change.setdefault(change(shown[entity].values[-1], present[entity].value), []).append(entity)
        sizes = range(max(rules.k, leave), len(people) - rules.k + 1)
        changed = next((group for _, group in sorted(by_change.items()) if len(group) in sizes), [])
        going = [m for m in reversed(sizes) if m <= len(leavers)]
        if len(leavers) == len(people) or not (going or changed):
            continue
        trial = _bundled(shown, people, rules, counted) if rules.bundles else _valued(shown, people, rules, counted)
        able = []
        gone = next((m for m in going if trial(m, Kind.LEAVERS)), 0)
        if gone:
            able.append(Batch(Kind.LEAVERS, cell, tuple(sorted(leavers[:gone]))))
        if changed and trial(len(changed), Kind.CHANGED):
            able.append(Batch(Kind.CHANGED, cell, tuple(changed)))
        if able:
            yield able[0 if memory.run % 2 == 0 else -1]


def may_be_tried(people: int, absent: int, changed: int, rules: Rules, leave: int, stale: Fraction | None) -> bool:
    """Whether any of the rules above may try a batch of a cell, by counts alone: where not, none looks at its people.

    people: of the cell; absent: those who are not present; changed: those who are, with another value than is shown,
    or one that was another in between.
    """
    least = max(rules.k, leave)
    if absent == people or (stale is not None and absent and absent >= stale * people):
        return True
    return rules.cells and people - rules.k >= least and max(absent, changed) >= least


def _oldest_first(leavers: Sequence[str], pending: Mapping[str, Pending], memory: Memory) -> list[str]:
    """Those who are gone longest, then by digest.

    Whoever changed before comes first: since when such people wait may depend on their values, which may have been
    those shown again.
    """
    since = {entity: 0 if entity in pending else memory.since.get(entity, memory.run + 1) for entity in leavers}
    return sorted(leavers, key=lambda entity: (since[entity], entity))


MayTry = Callable[[int, Kind], bool]
"""Whether a batch of so many people of a cell may be tried."""


def _valued(
    shown: Mapping[str, Unit], people: Sequence[str], rules: Rules, counted: Callable[[Value], Hashable]
) -> MayTry:
    columns = columns_of(shown, people, rules, counted)

    def may_try(m: int, kind: Kind) -> bool:
        sure = rules.sure and kind is Kind.LEAVERS and cannot_fail(columns, m)
        return sure or leaves_candidates(columns, m)

    return may_try


def columns_of(
    shown: Mapping[str, Unit], people: Sequence[str], rules: Rules, counted: Callable[[Value], Hashable]
) -> list[Column]:
    """The values of each sensitive attribute in each part of a cell, person by person."""
    columns = []
    for part in zip(*(shown[entity].values for entity in people), strict=True):
        values = [counted(value) for value in part]
        each = zip(*(value if isinstance(value, tuple) else (value,) for value in values), strict=True)
        columns += [Column(*column) for column in zip(each, rules.ls, rules.models, strict=True)]
    return columns


def _bundled(
    shown: Mapping[str, Unit], people: Sequence[str], rules: Rules, counted: Callable[[Value], Hashable]
) -> MayTry:
    parts = [pair for part in parts_of(shown, people, counted) for pair in by_attribute(part, rules.ls)]
    distinct = all(isinstance(model, DistinctLDiversity) for models in rules.models for model in models)

    def may_try(m: int, kind: Kind) -> bool:
        known = rules.sure and distinct and kind is Kind.LEAVERS and sure(parts, m, len(people))
        return known or diverse(parts, m)

    return may_try


def diverse(parts: Sequence[tuple[Histogram, int]], m: int) -> bool:
    """Whether in each part the bundles that m people or more have each hold l values together, none of which is in all
    of these bundles: then even failing leaves l candidates."""
    return all(_leaves([held(value) for value, n in part.items() if n >= m], l) for part, l in parts)  # noqa: E741


def _leaves(bundles: Sequence[frozenset[Hashable]], l: int) -> bool:  # noqa: E741
    return bool(bundles) and len(frozenset.union(*bundles)) >= l and not frozenset.intersection(*bundles)


def sure(parts: Sequence[tuple[Histogram, int]], m: int, n: int) -> bool:
    """Whether no m of n people, nor the others, can hold fewer than l values: then the batch cannot fail.

    Nor then can all of them hold one value, as l is at least 2.
    """
    most = max(sum(sorted(people_by_value(part).values(), reverse=True)[: l - 1]) for part, l in parts)  # noqa: E741
    return m > most and n - m > most
