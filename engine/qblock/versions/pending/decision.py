"""What one run of the steady job decides: which batches close, what the next version shows, what is remembered."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa

from qblock.blocks import Reference
from qblock.engines.queries import Query
from qblock.source import SourceTable
from qblock.spec import Spec
from qblock.spec.sections import Newcomers
from qblock.versions.batching.cohort import ByValues, Sizes, Values, added, size_of, size_of_bundles
from qblock.versions.batching.proposals import by_block, in_cohorts, nobody
from qblock.versions.batching.rules import Coin, Rules, combine_rules, no_coin, private_coin, rules_for
from qblock.versions.batching.state import Block, Cell, Histogram, Kind, Memory, Person, Unit, Value
from qblock.versions.batching.step import Step, standing, step
from qblock.versions.batching.weights import NOTHING, Stated, moved, partly, restated
from qblock.versions.crosswalk import (
    ASIDE,
    CELL,
    CHANGED,
    COHORT,
    FAILED,
    HEXADECIMAL,
    LEFT,
    MOVED,
    OUT,
    QUEUED,
    REPEATED,
    STALE,
    WITHDRAWN,
    Crosswalk,
    fresh_name,
)
from qblock.versions.episodes import PUBLISHED, VersionKey
from qblock.versions.gate import judged, members
from qblock.versions.pending.cohorts import Division, due, keep_map, least_box
from qblock.versions.pending.differences import Differences, Newcomer, concerned, differences
from qblock.versions.pending.following import Behind, Following, Situation, quiet_step
from qblock.versions.pending.state import (
    Layout,
    Row,
    State,
    block_of,
    cell_text,
    cells_of,
    counts_by_block,
    labels_of,
    read_state,
    units_in,
    write_state,
)
from qblock.versions.people import entities_apart, set_apart
from qblock.versions.recorded import RecordedVersion, recorded
from qblock.versions.texts import decoded, grew, joined_text, kept_sets, owner_of, rows_of, sets_of, split_text

OUT_WHY = {
    "left": LEFT,
    "erased": WITHDRAWN,
    "cell": CELL,
    "failed": COHORT,
    "aside": ASIDE,
    "changed": CHANGED,
    "moved": MOVED,
    "repeated": REPEATED,
    "stale": STALE,
}
"""Why somebody is set apart for good, by what became of them."""


@dataclass(frozen=True)
class Decision:
    """What a run decided.

    state: to be remembered; gone: units that are shown no more; rows: units that are new or shown otherwise; out: who
    is set apart for good, and why; batches: how many were decided; failed: by kind; detail: counts for the private
    ledger; stands: nothing was tried, since batches that closed before are to be shown first; cohort: the map of the
    newcomers who closed; by_time: whether newcomers close because time goes by, also where nothing changed; weighed:
    joint cells that show who they did and have other weights; following: what the next run comes to once a version
    shows what was decided, where it finds the same source and decides nothing (None: it may decide something).
    """

    state: State
    gone: frozenset[str]
    rows: Mapping[str, Row]
    out: Mapping[str, str]
    batches: int
    failed: Mapping[str, int]
    behind: Behind
    detail: Mapping[str, Any]
    stands: bool
    cohort: Mapping[str, Any] | None = None
    by_time: bool = False
    weighed: int = 0
    following: Following | None = None

    @property
    def quiet(self) -> bool:
        """Whether the run tried no batch and found the same people in the same state as the run before."""
        waits = self.by_time and bool(self.detail.get("newcomers_waiting"))
        return not (waits or self.batches or self.gone or self.rows or self.out or self.weighed)


def shared(spec: Spec, versions: Sequence[RecordedVersion]) -> bool:
    """Whether readers may hold versions of other releases, too."""
    return any(version.key.release != spec.release for version in members(spec, versions))


def rules_of(spec: Spec, other_releases: bool) -> Rules:
    """The rules that a spec gets. other_releases: whether readers may hold some too, which was not simulated.

    Models of one sensitive attribute do not make up for those of another: each one is asked for by itself.
    """
    pairs = [(q, name) for name in spec.sensitives for q in spec.privacy if name in q.sensitive]
    by_name = {name: [q.models[q.sensitive.index(n)] for q, n in pairs if n == name] for name in spec.sensitives}
    sizes = [q.model for q in spec.privacy if not q.sensitive]
    rules = [
        rules_for([*sizes, *models], suppression=spec.suppression_limit != 0) for models in by_name.values() or [[]]
    ]
    reasons = []
    if other_releases:
        reasons.append("several releases to the same readers were not simulated")
    if spec.bundles and (len(spec.sensitives) > 1 or spec.insensitives):
        reasons.append("several columns of people who have several rows were not simulated")
    return replace(combine_rules(rules, reasons), bundles=spec.bundles)


def sensitive_of(spec: Spec, layout: Layout) -> Callable[[str], Hashable]:
    """What tells the sensitive values in the value of a unit: those that it has, a set of each where it has several
    rows."""
    number = len(layout.sensitive)
    if spec.bundles:
        return lambda value: sets_of([split_text(row) for row in rows_of(value)], number)
    return lambda value: tuple(split_text(value)[:number])


def decide(
    crosswalk: Crosswalk,
    source: SourceTable,
    current: Sequence[Sequence[Reference]],
    state: State,
    *,
    whole: sa.FromClause,
    newest: int,
    moves: int,
) -> Decision:
    """Decide the batches of one run; writes nothing.

    source: opened by an Admission; current: its references, one list for each requirement; whole: the source with
    everybody who is set apart; newest: the newest version that was published; moves: people who moved. People who
    withdrew and wait to leave, and those whose batch failed before there was a state, count as absent. Where an earlier
    run closed batches and did not live to publish them, nothing is tried: a cell has at most one batch in a version.
    Raises Refused as `judged` does.
    """
    spec, release = source.spec, source.spec.release
    versions = recorded(crosswalk)
    others = shared(spec, versions)
    rules, newcomers = rules_of(spec, others), newcomers_of(source, others)
    queued = entities_apart(crosswalk, release, [QUEUED])
    withdrawn = {*queued, *entities_apart(crosswalk, release, [FAILED])}
    everybody = 0 if spec.bundles else int(source.session.scalar(sa.select(sa.func.count()).select_from(whole)))
    changes = differences(crosswalk, source, state.node, state.layout, state.memory.pending, withdrawn)
    looked_at = concerned(crosswalk, spec, changes, state, rules)
    rows = looked_at.rows
    shown = {entity: row.unit for entity, row in rows.items()}
    present = {entity: Person(new.block, new.value) for entity, new in changes.newcomers.items()}
    present |= {
        entity: Person(unit.cell.block, changes.values.get(entity, unit.values[-1]))
        for entity, unit in shown.items()
        if entity not in changes.left
    }
    present |= {entity: Person((), value) for entity, value in changes.out.items()}
    first = next(v for v in versions if v.key == VersionKey(release, state.first))
    sizes = sizes_of(crosswalk, spec, state, first, rules)
    pending = {entity: p for entity, p in state.memory.pending.items() if entity not in changes.gone}
    memory = replace(state.memory, pending=pending, out=dict.fromkeys(changes.out, OUT))
    stands, division = state.awaits == newest, None
    sensitive = cache(sensitive_of(spec, state.layout))
    run_once = partial(
        step,
        coin=_coin(crosswalk, spec) if rules.coin else no_coin,
        leave=spec.versions.leave or 0,
        stale=spec.versions.stale,
        counted=lambda value: sensitive(str(value)),
        change=(_counted if spec.by_rows else _grew) if spec.bundles else _change,
        owner=owner_of,
    )
    if stands:
        result = standing(shown, present, memory)
    else:
        come = Counter(new.block for new in changes.newcomers.values())

        def of_blocks(blocks: Sequence[Block]) -> Mapping[Block, Histogram]:
            return {
                block: added((sensitive(value), n) for value, n in counts.items())
                for block, counts in counts_by_block(crosswalk, release, blocks).items()
            }

        def cohort(block: Block) -> int | None:
            # A simulation of each of thousands of blocks in which nobody could close a batch would take minutes.
            return sizes(block) if come[block] >= sizes.least else None

        closing = by_block(cohort)
        if newcomers is not None:
            least = least_box(spec, newcomers, rules, sizes.of_whole)
            division = Division(crosswalk, source, least or 1, memory.version + 1)
            closing = (
                nobody
                if least is None
                else in_cohorts(
                    due(newcomers, state.moments),
                    least,
                    division,
                    partial(labels_of, crosswalk, release) if spec.bundles else None,
                    owner_of,
                )
            )
        result = run_once(
            shown,
            present,
            memory,
            rules,
            judged(spec, first, current, of_blocks),
            newcomers=closing,
            whole=looked_at.whole,
        )
    after = _state_after(state, result, sizes, newest if stands or result.published else None)
    weighed = 0
    if not stands:
        stated, weighed = stated_after(spec, state, shown, result.shown, present, rules.k, looked_at.others)
        after = replace(after, stated=stated)
    new = {
        entity: Row(unit, rows[entity].place if entity in rows else _place(unit, changes.newcomers[entity], division))
        for entity, unit in result.shown.items()
        if unit is not shown.get(entity)
    }
    # Whoever is set apart is in the source, and in no version; whoever is from now on is in the lag already.
    if spec.bundles:
        everybody, before = changes.units, 0
    else:
        before = max(0, everybody - source.rows - source.quarantined)
    counts, out, since = result.counts, result.memory.out, state.memory.since
    situation = Situation(
        changes.newcomers, present, withdrawn, everybody, before, source.quarantined, moves, newcomers is not None
    )
    behind = situation.behind(result, after)
    figures = {
        "came": sum(entity not in since for entity in changes.newcomers),
        "left": sum(entity not in since for entity in changes.left),
        "changed": _changed(changes, shown, state.memory),
        "newcomers": sum(entity not in rows for entity in new),
        **situation.figures(result, behind),
        "cells_weighed": weighed,
    }
    following = None
    if (result.published or weighed) and not spec.bundles:
        cells = {*looked_at.whole, *(row.unit.cell for row in new.values())}
        again = quiet_step(run_once, result, present, rules, cells, None if newcomers is not None else closing)
        if again is not None:
            _, others_weighed = stated_after(spec, after, result.shown, again.shown, present, rules.k, looked_at.others)
            following = None if others_weighed else _following(situation, again, after)
    return Decision(
        after,
        gone=frozenset({*changes.gone, *(entity for entity in rows if entity not in result.shown)}),
        rows=new,
        # The withdrawal of those who were queued takes effect when a version without them is published (`left`).
        out={entity: why for entity, why in out.items() if entity not in {*queued, *changes.out}},
        batches=len(result.batches),
        failed=counts.failed,
        behind=behind,
        detail={name: n for name, n in figures.items() if n},
        stands=stands,
        # The map of a cohort of which no box passed is of no version.
        cohort=division.stated if division is not None and counts.closed.get(Kind.NEWCOMERS.value) else None,
        by_time=newcomers is not None,
        weighed=weighed,
        following=following,
    )


def _following(situation: Situation, again: Step, after: State) -> Following:
    behind = situation.behind(again, after)
    return Following({name: n for name, n in situation.figures(again, behind).items() if n}, behind)


def stated_after(
    spec: Spec,
    state: State,
    before: Mapping[str, Unit],
    shown: Mapping[str, Unit],
    present: Collection[str],
    k: int,
    others: Mapping[Cell, int] = MappingProxyType({}),
) -> tuple[dict[Cell, Stated] | None, int]:
    """How many people of each cell are stated to be present from now on, and of how many cells that have the same
    people another number is stated. before, shown: what is shown of the cells that are looked at, until now and then;
    others: how many people each cell has of which there is no more than who is absent.
    """
    if not spec.shows_weights:
        return None, 0
    last = state.stated
    were, are = ({**Counter(unit.cell for unit in units.values()), **others} for units in (before, shown))
    absent = Counter(unit.cell for entity, unit in shown.items() if entity not in present)
    numbers = restated(last or {}, {} if last is None else were, are, absent, k)
    return partly(numbers), moved(last or {}, numbers, were)


def newcomers_of(source: SourceTable, other_releases: bool) -> Newcomers | None:
    """How newcomers are shown as cohorts, if they are. other_releases: as of `rules_of`."""
    if source.recoding is None or other_releases:
        return None
    # The spec of a source that a map shows has nothing left to be searched.
    return source.recoding.spec.newcomers


def _place(unit: Unit, newcomer: Newcomer, division: Division | None) -> str:
    """The quasi-identifiers of somebody who is new: the labels of the box of a cohort."""
    return newcomer.place if division is None else joined_text([str(label) for label in unit.cell.block])


def _change(before: Value, after: Value) -> tuple[bool, ...]:
    return tuple(old != new for old, new in zip(split_text(str(before)), split_text(str(after)), strict=True))


def _grew(before: Value, after: Value) -> tuple[bool, ...]:
    return (grew(str(before), str(after)),)


def _counted(before: Value, after: Value) -> tuple[int, ...]:
    return (len(rows_of(str(before))), len(rows_of(str(after))), *_grew(before, after))


def _changed(changes: Differences, shown: Mapping[str, Unit], before: Memory) -> int:
    """How many changed since the run before. Somebody whose changed value waited and who then leaves does not count,
    among those who left neither: whether they had left by the run before is not kept."""
    seen = {
        entity: before.pending[entity].value if entity in before.pending else unit.values[-1]
        for entity, unit in shown.items()
    }
    return sum(value != seen[entity] for entity, value in changes.values.items() if entity in seen)


def _state_after(state: State, result: Step, sizes: Sizes, awaits: int | None) -> State:
    memory, run = result.memory, result.memory.run
    moments = {**state.moments, run: datetime.now(UTC).isoformat(timespec="seconds")}
    waited = {*memory.since.values(), run}
    return replace(
        state,
        memory=replace(memory, out={}),
        sizes=sizes.blocks,
        whole=sizes.whole,
        moments={number: moment for number, moment in moments.items() if number in waited},
        closed=added([*state.closed.items(), *result.counts.closed.items()]),
        failed=added([*state.failed.items(), *result.counts.failed.items()]),
        awaits=awaits,
    )


def keep(crosswalk: Crosswalk, release: str, decision: Decision) -> None:
    """Remember what was decided, in a transaction of its own: a verdict outlasts the run, whatever becomes of it."""
    if decision.stands:
        return
    write_state(crosswalk, release, decision.state, decision.gone, decision.rows)
    if decision.cohort is not None:
        keep_map(crosswalk, release, decision.cohort)
    for reason, why in OUT_WHY.items():
        people = [entity for entity, outcome in decision.out.items() if outcome == reason]
        if people:
            set_apart(crosswalk, release, people, why, OUT, None)


def _coin(crosswalk: Crosswalk, spec: Spec) -> Coin:
    """By the first key of the digests, which stays whatever keys come later."""
    t = crosswalk.tables.key
    secret = crosswalk.own.scalar(sa.select(t.c.secret).where(t.c.id == min(crosswalk.key_numbers())))
    return private_coin(str(secret).encode(), spec.release, spec.versions.skip)


def never_shown(crosswalk: Crosswalk, release: str, people: Query, shown: Collection[int]) -> frozenset[str]:
    """Those of some people (entity) whom no version that readers saw has shown. shown: these versions."""
    t, own = crosswalk.tables.row, crosswalk.own
    stored = own.store(fresh_name(), people)
    known = sa.select(t.c.entity).where(
        t.c.release == release, t.c.version.in_(list(shown)), t.c.shown == PUBLISHED, t.c.entity == stored.c.entity
    )
    new = frozenset(own.fetch(sa.select(stored.c.entity).where(~known.exists()).distinct())["entity"].to_pylist())
    own.drop(stored)
    return new


def let_fail(crosswalk: Crosswalk, release: str, people: Collection[str]) -> None:
    """Set everybody in the batches of some newcomers apart for good. In a transaction of its own."""
    state = read_state(crosswalk, release)
    assert state is not None
    members = list(units_in(crosswalk, release, cells_of(crosswalk, release, people)))
    write_state(crosswalk, release, state, members)
    set_apart(crosswalk, release, members, COHORT, OUT, None)


def refine(crosswalk: Crosswalk, release: str, moved: Mapping[str, str]) -> None:
    """Split the joint cells of people who are shown in another block from now on: versions before tell them apart.

    In a transaction of its own. What is frozen stays so.
    """
    state = read_state(crosswalk, release)
    assert state is not None
    rows = units_in(crosswalk, release, cells_of(crosswalk, release, moved))
    split, frozen, stated = {}, set(state.memory.frozen), dict(state.stated or {})
    for entity, label in moved.items():
        if entity not in rows:
            continue
        before = rows[entity].unit
        digest = hashlib.sha256(cell_text(before.cell).encode()).hexdigest()[:HEXADECIMAL]
        cell = Cell(block_of(label), before.cell.first, before.cell.changed, digest)
        if before.cell in state.memory.frozen:
            frozen.add(cell)
        stated |= {before.cell: NOTHING, cell: NOTHING}
        split[entity] = rows[entity]._replace(unit=before._replace(cell=cell))
    memory = replace(state.memory, frozen=frozenset(frozen))
    after = replace(state, memory=memory, stated=None if state.stated is None else stated)
    write_state(crosswalk, release, after, (), split)


def sizes_of(crosswalk: Crosswalk, spec: Spec, state: State, first: RecordedVersion, rules: Rules) -> Sizes:
    """The sizes of a release's batches of newcomers, as far as they are known."""
    references = cache(lambda: first.references)
    size = size_of_bundles if spec.bundles else size_of
    cohort = spec.cohort

    def sized(counts: ByValues) -> int | None:
        return size(spec, references(), rules.k, counts)

    return Sizes(
        lambda: _first_counts(crosswalk, first, spec.bundles),
        sized,
        rules.k,
        declared=None if cohort == "auto" else cohort,
        hidden=state.hidden,
        known=state.sizes,
        whole=state.whole,
    )


def _first_counts(crosswalk: Crosswalk, first: RecordedVersion, bundles: bool) -> dict[Block, dict[Values, int]]:
    """The people by sensitive values whom each block of the first version shows."""
    t = crosswalk.tables
    key = first.key
    query = (
        sa.select(t.block.c.label, t.row.c.value, sa.func.count().label("n"))
        .select_from(t.row_in_block)
        .where(t.row.c.release == key.release, t.row.c.version == key.version, t.row.c.shown == PUBLISHED)
        .group_by(t.block.c.label, t.row.c.value)
    )
    counts: dict[Block, dict[Values, int]] = {}
    for row in crosswalk.own.fetch(query).to_pylist():
        values = kept_sets(row["value"], len(first.sensitive)) if bundles else decoded(row["value"])
        block = counts.setdefault(block_of(row["label"]), {})
        block[values] = block.get(values, 0) + int(row["n"])
    return counts
