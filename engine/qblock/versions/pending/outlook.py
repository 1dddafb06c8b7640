"""What the next version has to show, by sizes alone: who waits, and whether enough do for a version to be tried.

No model is asked and nothing is written: of newcomers only the block counts, of changed values only whether they are
other ones, and of leavers what versions show of their joint cell. Whether a batch passes depends on more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from qblock.source import SourceTable
from qblock.spec.sections import Newcomers
from qblock.versions.batching.cohort import Sizes
from qblock.versions.batching.proposals import in_cells, stale_cells, touched, whole_cells
from qblock.versions.batching.rules import Rules
from qblock.versions.batching.state import Block, Cell, Pending, Person, Unit
from qblock.versions.crosswalk import FAILED, QUEUED, Crosswalk
from qblock.versions.episodes import VersionKey
from qblock.versions.explanation import plural
from qblock.versions.pending.cohorts import due, least_box
from qblock.versions.pending.decision import newcomers_of, rules_of, sensitive_of, shared, sizes_of, stated_after
from qblock.versions.pending.differences import Differences, differences
from qblock.versions.pending.state import State, another_unit, cell_text, cells_of, units_in
from qblock.versions.people import entities_apart
from qblock.versions.recorded import recorded
from qblock.versions.texts import owner_of

NOT_LOOKED_AT = "whether they pass depends on values, which plan does not read"
AS_IT_IS = "no version would be tried: nobody came, left or changed"
STOPPED = "a version would be tried: an earlier run decided what it shows, and was stopped before it was published"


MOST_SIZED = 100
"""Blocks in which nobody could close a batch whose cohorts are reckoned all the same: each takes up to a tenth of a
second, and a recoding map has thousands."""


@dataclass(frozen=True)
class Outlook:
    """newcomers: who wait, in `blocks` blocks, of whom `closing` in `closing_blocks` blocks are enough for a batch;
    cohorts: the least and the most that close one in the others, None where there is none; never: blocks of them in
    which no batch ever closes; both of `looked_at` blocks, where there are too many. leavers: shown, and not in the
    source, or withdrawn; changed: shown with another value; units, where people have several rows. whole_cells: joint
    cells that everybody has left; leaver_cells: others of which
    enough have left; changed_cells: in which as many changed as a batch needs, at least; weighed_cells: whose weights
    would be others, whatever passes. gone: shown, and erased since;
    stopped: a run before decided, and published nothing. together: whether newcomers close as one cohort, whichever
    their blocks."""

    newcomers: int
    blocks: int
    closing: int
    closing_blocks: int
    cohorts: tuple[int, int] | None
    never: int
    looked_at: int
    leavers: int
    changed: int
    whole_cells: int
    leaver_cells: int
    changed_cells: int
    weighed_cells: int
    gone: int
    stopped: bool
    together: bool = False

    @property
    def tried(self) -> bool:
        """Whether a run would try a version, as far as sizes tell."""
        return bool(self.stopped or self.gone or self._batches or self.weighed_cells)

    @property
    def _batches(self) -> int:
        return self.closing_blocks + self.whole_cells + self.leaver_cells + self.changed_cells

    def to_json(self) -> dict[str, Any]:
        """What docs/json.md describes."""
        kept = {name: n for name, n in asdict(self).items() if name not in ("gone", "stopped", "together")}
        cohorts = None if self.cohorts is None else list(self.cohorts)
        return {**kept, "cohorts": cohorts, "tried": self.tried, "why": str(self)}

    def __str__(self) -> str:
        if self.stopped:
            return STOPPED
        if not self.tried:
            waiting = self._waiting()
            return f"no batch is full: {waiting}" if waiting else AS_IT_IS
        parts = []
        if self.together and self.closing:
            parts.append(f"a cohort of {plural(self.closing, 'newcomer')} closes")
        elif self.closing_blocks:
            parts.append(
                f"batches of {plural(self.closing, 'newcomer')} in {plural(self.closing_blocks, 'block')} close"
            )
        if self.whole_cells:
            parts.append(f"{plural(self.whole_cells, 'joint cell')} would go whole")
        if self.leaver_cells:
            parts.append(f"enough people left {plural(self.leaver_cells, 'joint cell')}")
        if self.changed_cells:
            parts.append(f"values of enough people changed in {plural(self.changed_cells, 'joint cell')}")
        if self.gone:
            parts.append(f"{plural(self.gone, 'person')} who withdrew would no longer be shown")
        if self.weighed_cells:
            parts.append(f"the weights of {plural(self.weighed_cells, 'joint cell')} would change")
        unknown = f"; {NOT_LOOKED_AT}" if self._batches else ""
        return f"by sizes alone, a new version would be tried: {', '.join(parts)}{unknown}"

    def _waiting(self) -> str:
        parts = []
        if self.newcomers and self.together:
            needed = "" if self.cohorts is None else f" (a cohort needs {self.cohorts[0]:,})"
            parts.append(f"{plural(self.newcomers, 'newcomer')}{needed}")
        elif self.newcomers:
            text = f"{plural(self.newcomers, 'newcomer')} in {plural(self.blocks, 'block')}"
            if self.cohorts is not None:
                least, most = self.cohorts
                text += f" (a batch needs {least:,}{f' to {most:,}' if least < most else ''})"
            if self.never:
                text += f" ({plural(self.never, 'block')} in which none ever closes)"
            if self.looked_at < self.blocks:
                text += f" (by {self.looked_at:,} of the blocks)"
            parts.append(text)
        parts += [plural(self.leavers, "leaver")] if self.leavers else []
        parts += [plural(self.changed, "changed value")] if self.changed else []
        if not parts:
            return ""
        waits = "waits" if self.newcomers + self.leavers + self.changed == 1 else "wait"
        named = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
        return f"{named} {waits}"


def _spread(blocks: Sequence[Block]) -> list[Block]:
    """At most MOST_SIZED of them, evenly spread."""
    if len(blocks) <= MOST_SIZED:
        return list(blocks)
    return [blocks[i * len(blocks) // MOST_SIZED] for i in range(MOST_SIZED)]


def _by_block(waiting: Mapping[Block, int], size: Sizes) -> dict[str, Any]:
    """Newcomers who wait by block. waiting: how many, by block."""
    enough = {block for block, n in waiting.items() if n >= size.least}
    sizes = {block: size(block) for block in [*sorted(enough), *_spread(sorted(waiting.keys() - enough))]}
    closing = [block for block, n in sizes.items() if n is not None and waiting[block] >= n]
    open_sizes = [n for block, n in sizes.items() if n is not None and block not in closing]
    return {
        "blocks": len(waiting),
        "closing": sum(waiting[block] for block in closing),
        "closing_blocks": len(closing),
        "cohorts": (min(open_sizes), max(open_sizes)) if open_sizes else None,
        "never": sum(n is None for n in sizes.values()),
        "looked_at": len(sizes),
    }


def _as_cohort(changes: Differences, state: State, cohorts: Newcomers, least: int | None) -> dict[str, Any]:
    """The same of newcomers who close together, as one block. least: people of a box."""
    n, run = len(set(map(owner_of, changes.newcomers))), state.memory.run + 1
    oldest = min((state.memory.since.get(entity, run) for entity in changes.newcomers), default=run)
    closes = least is not None and n >= least and due(cohorts, state.moments)(run, oldest)
    return {
        "blocks": min(n, 1),
        "closing": n if closes else 0,
        "closing_blocks": int(closes),
        "cohorts": None if least is None or closes else (least, least),
        "never": int(least is None and n > 0),
        "looked_at": min(n, 1),
        "together": True,
    }


def outlook(crosswalk: Crosswalk, source: SourceTable, state: State, newest: int) -> Outlook:
    """Compare the source with the state shown; writes nothing.

    source: opened by an Admission, at whose lattice the node is; newest: the newest version that was published.
    """
    spec, release = source.spec, source.spec.release
    versions = recorded(crosswalk)
    others = shared(spec, versions)
    rules, cohorts = rules_of(spec, others), newcomers_of(source, others)
    withdrawn = entities_apart(crosswalk, release, [QUEUED, FAILED])
    changes = differences(crosswalk, source, state.node, state.layout, (), withdrawn)
    first = next(v for v in versions if v.key == VersionKey(release, state.first))
    sizes = sizes_of(crosswalk, spec, state, first, rules)
    if cohorts is None:
        newcomers = _by_block(Counter(newcomer.block for newcomer in changes.newcomers.values()), sizes)
    else:
        newcomers = _as_cohort(changes, state, cohorts, least_box(spec, cohorts, rules, sizes.of_whole))
    whole, leaver_cells, changed_cells, weighed = _cells(crosswalk, source, state, changes, rules)
    return Outlook(
        newcomers=len(changes.newcomers),
        **newcomers,
        leavers=len(changes.left),
        changed=len(changes.values),
        whole_cells=whole,
        leaver_cells=leaver_cells,
        changed_cells=changed_cells,
        weighed_cells=weighed,
        gone=len(changes.gone),
        stopped=state.awaits == newest,
    )


def _cells(
    crosswalk: Crosswalk, source: SourceTable, state: State, changes: Differences, rules: Rules
) -> tuple[int, int, int, int]:
    """Joint cells that may go whole, of which enough have left, in which values of enough people changed, and whose
    weights would be others."""
    spec, release = source.spec, source.spec.release
    concerned = {*changes.left, *changes.values}
    if not (concerned or state.stated):
        return 0, 0, 0, 0
    cells = cells_of(crosswalk, release, concerned) | set(map(cell_text, state.stated or ()))
    rows = units_in(crosswalk, release, cells) | another_unit(crosswalk, release, cells)
    units = {entity: row.unit for entity, row in rows.items() if entity not in changes.gone}
    # As they are shown: a new value is nobody's before it is.
    present = {
        entity: Person(unit.cell.block, unit.values[-1]) for entity, unit in units.items() if entity not in changes.left
    }
    members = touched(units, present, {}, ())
    whole, left = set(), len(units)
    for batch in whole_cells(members, present, state.memory):
        # A version shows somebody.
        if left > len(batch.members):
            whole.add(batch.cell)
            left -= len(batch.members)
    leave = spec.versions.leave or 0
    others = {cell: people for cell, people in members.items() if cell not in whole}
    for batch in stale_cells(others, present, state.memory, rules, leave, spec.versions.stale):
        if left > len(batch.members):
            whole.add(batch.cell)
            left -= len(batch.members)
    there = {entity: unit for entity, unit in units.items() if unit.cell not in whole}
    _, weighed = stated_after(spec, state, units, there, present, rules.k)
    if not rules.cells:
        return len(whole), 0, 0, weighed
    staying = {cell: people for cell, people in members.items() if cell not in whole}
    counted = sensitive_of(spec, state.layout)
    batches = in_cells(
        units, staying, present, {}, state.memory, rules, lambda value: counted(str(value)), leave, lambda *_: ()
    )
    changed = _changed(units, changes, state, rules, leave)
    return len(whole), sum(1 for _ in batches), len(changed - whole), weighed


def _changed(units: Mapping[str, Unit], changes: Differences, state: State, rules: Rules, leave: int) -> set[Cell]:
    """Joint cells in which values of as many people changed as a batch has at least."""
    changed = {entity: Pending(None, 1) for entity in changes.values if entity in units}
    cells = touched(units, dict.fromkeys(units, Person((), None)), changed, ())
    enough = set()
    for cell, people in cells.items():
        n = sum(entity in changed for entity in people)
        if cell not in state.memory.frozen and n >= max(rules.k, leave) and len(people) - n >= rules.k:
            enough.add(cell)
    return enough
