"""One run of the steady job's policy on the crosswalk: what the next version shows, and what is remembered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache

import sqlalchemy as sa

from qblock.blocks import Reference
from qblock.source import SourceTable
from qblock.spec import Spec
from qblock.versions.batching.cohort import Sizes, added
from qblock.versions.batching.rules import Rules, combine_rules, no_coin, private_coin, rules_for
from qblock.versions.batching.state import Block, Counts, Histogram, Memory, Person, Unit, Value
from qblock.versions.batching.step import Step, standing, step
from qblock.versions.crosswalk import ASIDE, CELL, CHANGED, COHORT, LEFT, MOVED, OUT, WITHDRAWN, Crosswalk
from qblock.versions.lag.differences import Differences, differences
from qblock.versions.lag.judged import judged
from qblock.versions.lag.memory import Kept, Row, another_unit, cells_of, counts_by_block, save, units_in
from qblock.versions.lag.sizes import sizes_of
from qblock.versions.people import set_apart
from qblock.versions.recorded import recorded
from qblock.versions.texts import grew, owner_of, rows_of, sets_of, split_text

OUT_WHY = {
    "left": LEFT,
    "erased": WITHDRAWN,
    "cell": CELL,
    "failed": COHORT,
    "aside": ASIDE,
    "changed": CHANGED,
    "moved": MOVED,
}
"""Why somebody is set apart for good, by what became of them."""


@dataclass(frozen=True)
class Turn:
    """What a run decided. kept: to be remembered; gone: units that are shown no more; rows: units that are new or shown
    otherwise; out: who is set apart for good, and why; counts: for the private ledger; admitted: newcomers who are
    shown; blocks: those in which others wait; present_out: people of the source who are out for good; withdrawals:
    people who withdrew and are shown still; batches: how many were decided; came, left, changed: people since the
    run before; stands: nothing was tried, since batches that closed before are to be shown first."""

    kept: Kept
    gone: frozenset[str]
    rows: Mapping[str, Row]
    out: Mapping[str, str]
    counts: Counts
    admitted: int = 0
    blocks: int = 0
    present_out: int = 0
    withdrawals: int = 0
    batches: int = 0
    came: int = 0
    left: int = 0
    changed: int = 0
    stands: bool = False


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


def sensitive_of(spec: Spec, kept: Kept) -> Callable[[str], Hashable]:
    """What tells the sensitive values in the value of a unit: those that it has, a set of each where it has several
    rows."""
    number = len(kept.layout.sensitive)

    def sensitive(value: str) -> Hashable:
        if spec.bundles:
            return sets_of([split_text(row) for row in rows_of(value)], number)
        return tuple(split_text(value)[:number])

    return sensitive


def decide(
    crosswalk: Crosswalk,
    source: SourceTable,
    current: Sequence[Sequence[Reference]],
    kept: Kept,
    *,
    queued: Collection[str],
    stuck: Collection[str],
    other_releases: bool,
    everybody: int,
    newest: int,
) -> Turn:
    """Decide the batches of one run; writes nothing.

    source: opened by an Admission; current: its references, one list for each requirement; queued: digests of people
    who withdrew and wait to leave, stuck: of those whose batch failed before there was a state: both count as absent;
    other_releases: whether readers may hold them; everybody: rows of the whole source; newest: the newest version
    that was published. Where an earlier run closed batches and did not live to publish them, nothing is tried: a cell
    has at most one batch in a version. Raises Refused as `judged` does.
    """
    spec, release = source.spec, source.spec.release
    withdrawn = {*queued, *stuck}
    changes = differences(crosswalk, source, kept.node, kept.layout, kept.memory.pending, withdrawn)
    concerned = {*changes.left, *changes.values}
    cells = cells_of(crosswalk, release, concerned) if concerned else set()
    rows = units_in(crosswalk, release, cells) if cells else {}
    rows |= another_unit(crosswalk, release, cells)
    rows = {entity: row for entity, row in rows.items() if entity not in changes.gone}
    shown = {entity: row.unit for entity, row in rows.items()}
    present = {entity: Person(new.block, new.value) for entity, new in changes.newcomers.items()}
    present |= {
        entity: Person(unit.cell.block, changes.values.get(entity, unit.values[-1]))
        for entity, unit in shown.items()
        if entity not in changes.left
    }

    first = next(version for version in recorded(crosswalk, release) if version.key.version == kept.first)
    sensitive = cache(sensitive_of(spec, kept))

    def of_blocks(blocks: Sequence[Block]) -> Mapping[Block, Histogram]:
        return {
            block: added((sensitive(value), n) for value, n in counts.items())
            for block, counts in counts_by_block(crosswalk, release, blocks).items()
        }

    rules = rules_of(spec, other_releases)
    sizes = sizes_of(crosswalk, spec, kept, first, rules)
    come = Counter(new.block for new in changes.newcomers.values())

    def cohort(block: Block) -> int | None:
        # A simulation of each of thousands of blocks in which nobody could close a batch would take minutes.
        return sizes(block) if come[block] >= sizes.least else None

    memory = replace(
        kept.memory, pending={entity: p for entity, p in kept.memory.pending.items() if entity not in changes.gone}
    )
    stands = kept.awaits == newest
    if stands:
        result = standing(shown, present, memory)
    else:
        result = step(
            shown,
            present,
            memory,
            rules,
            judged(spec, first, current, of_blocks),
            cohort=cohort,
            coin=private_coin(_secret(crosswalk), release, spec.versions.skip) if rules.coin else no_coin,
            least=2 * rules.k,
            counted=lambda value: sensitive(str(value)),
            change=(_counted if spec.by_rows else _grew) if spec.bundles else _change,
            owner=owner_of,
        )
    awaits = newest if stands or result.published else None
    decided = replace(_turn(replace(kept, awaits=awaits), result, changes, rows, shown, sizes), stands=stands)
    turn = _with_churn(decided, changes, shown, kept.memory)
    # The withdrawal of those who were queued takes effect when a version without them is published (`left`).
    out = {entity: why for entity, why in turn.out.items() if entity not in set(queued)}
    withdrawals = len({owner_of(entity) for entity in result.shown} & withdrawn)
    # Whoever is set apart is in the source, and in no version; whoever is from now on is in the lag already.
    if spec.bundles:
        everybody, before = changes.units, changes.excluded
    else:
        before = max(0, everybody - source.rows - source.quarantined)
    counts = replace(turn.counts, source=everybody, lag=turn.counts.lag + before + source.quarantined)
    now_out = sum(entity in changes.newcomers for entity in turn.out)
    return replace(turn, out=out, withdrawals=withdrawals, counts=counts, present_out=before + now_out)


def _change(before: Value, after: Value) -> tuple[bool, ...]:
    return tuple(old != new for old, new in zip(split_text(str(before)), split_text(str(after)), strict=True))


def _grew(before: Value, after: Value) -> tuple[bool, ...]:
    return (grew(str(before), str(after)),)


def _counted(before: Value, after: Value) -> tuple[int, ...]:
    return (len(rows_of(str(before))), len(rows_of(str(after))), *_grew(before, after))


def _with_churn(turn: Turn, changes: Differences, shown: Mapping[str, Unit], before: Memory) -> Turn:
    """With how many came, left and changed since the run before. Somebody whose changed value waited and who then
    leaves counts as neither: whether they had left by the run before is not kept."""
    seen = {
        entity: before.pending[entity].value if entity in before.pending else unit.values[-1]
        for entity, unit in shown.items()
    }
    return replace(
        turn,
        came=sum(entity not in before.since for entity in changes.newcomers),
        left=sum(entity not in before.since for entity in changes.left),
        changed=sum(value != seen[entity] for entity, value in changes.values.items() if entity in seen),
    )


def _turn(
    kept: Kept, result: Step, changes: Differences, rows: Mapping[str, Row], shown: Mapping[str, Unit], sizes: Sizes
) -> Turn:
    new: dict[str, Row] = {}
    for entity, unit in result.shown.items():
        if unit is not shown.get(entity):
            new[entity] = Row(unit, rows[entity].place if entity in rows else changes.newcomers[entity].place)
    memory, run = result.memory, result.memory.run
    moments = {**kept.moments, run: datetime.now(UTC).isoformat(timespec="seconds")}
    waited = {*memory.since.values(), run}
    after = replace(
        kept,
        memory=replace(memory, out={}),
        sizes=sizes.blocks,
        whole=sizes.whole,
        moments={number: moment for number, moment in moments.items() if number in waited},
        closed=added([*kept.closed.items(), *result.counts.closed.items()]),
        failed=added([*kept.failed.items(), *result.counts.failed.items()]),
    )
    gone = {*changes.gone, *(entity for entity in shown if entity not in result.shown)}
    return Turn(
        after,
        frozenset(gone),
        new,
        memory.out,
        result.counts,
        admitted=sum(entity not in rows for entity in new),
        batches=len(result.batches),
        blocks=len({changes.newcomers[entity].block for entity in memory.since if entity in changes.newcomers}),
    )


def keep(crosswalk: Crosswalk, release: str, turn: Turn) -> None:
    """Remember what was decided, in a transaction of its own: a verdict outlasts the run, whatever becomes of it."""
    if turn.stands:
        return
    save(crosswalk, release, turn.kept, turn.gone, turn.rows)
    for reason, why in OUT_WHY.items():
        people = [entity for entity, outcome in turn.out.items() if outcome == reason]
        if people:
            set_apart(crosswalk, release, people, why, OUT, None)


def _secret(crosswalk: Crosswalk) -> bytes:
    """The first key of the digests, which stays whatever keys come later."""
    t = crosswalk.tables.key
    return str(crosswalk.own.scalar(sa.select(t.c.secret).where(t.c.id == min(crosswalk.key_numbers())))).encode()
