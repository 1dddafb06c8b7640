"""What the steady job keeps of a release in the crosswalk: the units of the state shown, who waits, and the rest."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import sqlalchemy as sa

from qblock.errors import QblockError
from qblock.ledger.events import canonical
from qblock.spec import Spec
from qblock.versions.batching.state import Block, Cell, Memory, Pending, Unit
from qblock.versions.crosswalk import Crosswalk, clear, fresh_name, pad
from qblock.versions.stuck import HAS_STATE, SET_DOWN

FORM, REFUSED = HAS_STATE, 2
"""Forms of what is kept: of a release that has a state, and of one whose first version was refused."""


class Layout(NamedTuple):
    """The columns of a release by what they are; further: those published as they are."""

    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    further: tuple[str, ...]

    @classmethod
    def of(cls, spec: Spec) -> Layout:
        return cls(spec.quasi_identifiers, spec.sensitives, spec.insensitives)

    @property
    def valued(self) -> tuple[str, ...]:
        """The columns of which a unit's value is made."""
        return (*self.sensitive, *self.further)


@dataclass(frozen=True)
class Kept:
    """What is remembered of a release beside its units.

    sizes: people who close a batch of newcomers, by block, as the first version has it (None: none closes); whole: of a
    block that was never shown; first: the number of that version; hidden: the blocks that it suppressed. moments: when
    the runs were from which on somebody has waited, as ISO text. closed, failed: batches so far, by kind. types: of the
    columns that are published as they are. awaits: the newest version when batches closed that no version has shown
    yet, or None.
    """

    layout: Layout
    node: tuple[int, ...]
    memory: Memory
    first: int
    hidden: frozenset[Block] = frozenset()
    sizes: Mapping[Block, int | None] = field(default_factory=dict)
    whole: int | None = None
    moments: Mapping[int, str] = field(default_factory=dict)
    closed: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    awaits: int | None = None

    def text(self) -> str:
        """Canonical JSON, without what is kept by person."""
        memory = self.memory
        return canonical(
            {
                "form": FORM,
                "layout": [list(names) for names in self.layout],
                "node": list(self.node),
                "run": memory.run,
                "version": memory.version,
                "frozen": sorted(cell_text(cell) for cell in memory.frozen),
                "batches": sorted([block_text(block), n] for block, n in memory.batches.items()),
                "first": self.first,
                "hidden": sorted(map(block_text, self.hidden)),
                "sizes": sorted(
                    ([block_text(block), n] for block, n in self.sizes.items()), key=lambda pair: str(pair[0])
                ),
                "whole": self.whole,
                "moments": {str(run): moment for run, moment in self.moments.items()},
                "closed": dict(self.closed),
                "failed": dict(self.failed),
                "types": dict(self.types),
                "awaits": self.awaits,
            }
        )


class Row(NamedTuple):
    """A unit as it is kept. place: the texts of its quasi-identifiers as one (`admission.together`)."""

    unit: Unit
    place: str


def cell_text(cell: Cell) -> str:
    return canonical([list(cell.block), cell.first, list(cell.changed), cell.was])


def cell_of(text: str) -> Cell:
    block, first, changed, was = json.loads(text)
    return Cell(tuple(block), first, tuple(changed), was)


def block_text(block: Block) -> str:
    return canonical(list(block))


def block_of(text: str) -> Block:
    return tuple(json.loads(text))


def load(crosswalk: Crosswalk, release: str) -> Kept | None:
    """What is remembered of a release; None where the steady job has not begun. Raises QblockError for a newer form."""
    t = crosswalk.tables
    text = crosswalk.own.scalar(sa.select(t.steady.c.state).where(t.steady.c.release == release))
    if text is None:
        return None
    state = json.loads(text)
    if state["form"] not in (FORM, REFUSED, SET_DOWN):
        raise QblockError("the crosswalk was written by a newer qblock; install that one, or a later one")
    if state["form"] != FORM:
        return None
    rows = crosswalk.own.fetch(sa.select(t.waiting).where(t.waiting.c.release == release)).to_pylist()
    memory = Memory(
        run=state["run"],
        version=state["version"],
        frozen=frozenset(map(cell_of, state["frozen"])),
        pending={r["entity"]: Pending(r["seen"], r["times"]) for r in rows if r["times"] is not None},
        since={r["entity"]: r["since"] for r in rows if r["since"] is not None},
        seen={r["entity"]: r["seen"] for r in rows if r["seen"] is not None and r["times"] is None},
        batches={block_of(block): n for block, n in state["batches"]},
    )
    return Kept(
        Layout(*map(tuple, state["layout"])),
        tuple(state["node"]),
        memory,
        state["first"],
        frozenset(map(block_of, state["hidden"])),
        {block_of(block): n for block, n in state["sizes"]},
        state["whole"],
        {int(run): moment for run, moment in state["moments"].items()},
        state["closed"],
        state["failed"],
        state["types"],
        state.get("awaits"),
    )


def units_in(crosswalk: Crosswalk, release: str, cells: Collection[str]) -> dict[str, Row]:
    """Everybody in some cells, by digest. cells: as text."""
    t, own = crosswalk.tables.shown, crosswalk.own
    wanted = own.load(fresh_name(), pa.table({"cell": pa.array(sorted(cells), pa.string())}))
    query = sa.select(t.c.entity, t.c.cell, t.c.place, t.c.value, t.c.earlier).where(
        t.c.release == release, t.c.cell.in_(sa.select(wanted.c.cell))
    )
    units = own.fetch(query.order_by(t.c.entity))
    own.drop(wanted)
    known: dict[str, Cell] = {}
    rows: dict[str, Row] = {}
    columns = (units[name].to_pylist() for name in ("entity", "cell", "place", "value", "earlier"))
    for entity, text, place, value, earlier in zip(*columns, strict=True):
        cell = known.get(text)
        if cell is None:
            cell = known[text] = cell_of(text)
        values = (value,) if earlier is None else (*json.loads(earlier), value)
        rows[entity] = Row(Unit(cell, values), place)
    return rows


def cells_of(crosswalk: Crosswalk, release: str, entities: Collection[str]) -> set[str]:
    """The cells, as text, in which some people are."""
    t, own = crosswalk.tables.shown, crosswalk.own
    wanted = own.load(fresh_name(), pa.table({"entity": pa.array(sorted(entities), pa.string())}))
    query = sa.select(t.c.cell).where(t.c.release == release, t.c.entity.in_(sa.select(wanted.c.entity))).distinct()
    cells = set(own.fetch(query)["cell"].to_pylist())
    own.drop(wanted)
    return cells


def another_unit(crosswalk: Crosswalk, release: str, cells: Collection[str]) -> dict[str, Row]:
    """One unit outside some cells, if there is any: whether a version would be left without anybody."""
    t, own = crosswalk.tables.shown, crosswalk.own
    wanted = own.load(fresh_name(), pa.table({"cell": pa.array(sorted(cells), pa.string())}))
    query = (
        sa.select(sa.func.min(t.c.cell))
        .select_from(t.outerjoin(wanted, wanted.c.cell == t.c.cell))
        .where(t.c.release == release, wanted.c.cell.is_(None))
    )
    cell = own.scalar(query)
    own.drop(wanted)
    if cell is None:
        return {}
    entity = own.scalar(sa.select(sa.func.min(t.c.entity)).where(t.c.release == release, t.c.cell == cell))
    return {entity: units_in(crosswalk, release, [cell])[entity]}


def counts_by_block(
    crosswalk: Crosswalk, release: str, blocks: Collection[Block] | None = None
) -> dict[Block, dict[str, int]]:
    """People by value in the blocks of the state shown. blocks: only these."""
    t, own = crosswalk.tables.shown, crosswalk.own
    query = sa.select(t.c.block, t.c.value, sa.func.count().label("n")).where(t.c.release == release)
    if blocks is not None:
        texts = pa.array(sorted(map(block_text, blocks)), pa.string())
        wanted = own.load(fresh_name(), pa.table({"block": texts}))
        query = query.where(t.c.block.in_(sa.select(wanted.c.block)))
    counts: dict[Block, dict[str, int]] = {}
    for row in own.fetch(query.group_by(t.c.block, t.c.value)).to_pylist():
        counts.setdefault(block_of(row["block"]), {})[row["value"]] = int(row["n"])
    return counts


def save(
    crosswalk: Crosswalk, release: str, kept: Kept, gone: Iterable[str] = (), rows: Mapping[str, Row] | None = None
) -> None:
    """Write what is remembered, take units out (`gone`), and write units anew (`rows`), in the caller's transaction."""
    t, own, rows = crosswalk.tables, crosswalk.own, rows or {}
    taken = own.load(fresh_name(), pa.table({"entity": pa.array(sorted({*gone, *rows}), pa.string())}))
    own.run(sa.delete(t.shown).where(t.shown.c.release == release, t.shown.c.entity.in_(sa.select(taken.c.entity))))
    own.drop(taken)
    if rows:
        _insert(crosswalk, t.shown, release, unit_columns(rows))
    clear(crosswalk, t.waiting, release)
    memory = kept.memory
    people = sorted({*memory.since, *memory.pending, *memory.seen})
    if people:
        pending = [memory.pending.get(entity) for entity in people]
        seen = [
            memory.seen.get(entity) if was is None else was.value for entity, was in zip(people, pending, strict=True)
        ]
        columns = {
            "entity": pa.array(people, pa.string()),
            "since": pa.array([memory.since.get(entity) for entity in people], pa.int64()),
            "seen": pa.array(seen, pa.string()),
            "times": pa.array([None if change is None else change.times for change in pending], pa.int64()),
        }
        _insert(crosswalk, t.waiting, release, columns)
    pad(crosswalk, t.waiting, release, since=0)
    save_state(crosswalk, release, kept.text())


def save_state(crosswalk: Crosswalk, release: str, text: str) -> None:
    """Write what is kept beside the units, in a form that `load` knows."""
    t, own = crosswalk.tables.steady, crosswalk.own
    if own.scalar(sa.select(sa.func.count()).select_from(t).where(t.c.release == release)):
        own.run(sa.update(t).where(t.c.release == release).values(state=text))
    else:
        own.run(sa.insert(t).values(release=release, state=text))


COUNTED = ("quiet", "run", "moments", "sizes", "whole")
"""What a run changes that decides nothing."""


def decided(state: str | None) -> str | None:
    """What is remembered beside the units, as it stays where nothing is decided."""
    if state is None:
        return None
    return canonical({name: value for name, value in json.loads(state).items() if name not in COUNTED})


def keep_result(crosswalk: Crosswalk, release: str, result: Mapping[str, Any]) -> None:
    """Keep what a run came to that decided nothing, until something is decided again (`save`)."""
    t = crosswalk.tables.steady
    state = json.loads(crosswalk.own.scalar(sa.select(t.c.state).where(t.c.release == release)))
    text = canonical({**state, "quiet": json.dumps(result)})
    crosswalk.own.run(sa.update(t).where(t.c.release == release).values(state=text))


def result_of(crosswalk: Crosswalk, release: str) -> dict[str, Any] | None:
    """What the run before came to, if it decided nothing."""
    t = crosswalk.tables.steady
    state = crosswalk.own.scalar(sa.select(t.c.state).where(t.c.release == release))
    result = None if state is None else json.loads(state).get("quiet")
    return None if result is None else dict(json.loads(result))


def forget(crosswalk: Crosswalk, release: str) -> None:
    """Forget all of a release: of a first version that nobody ever saw."""
    t = crosswalk.tables
    for table in (t.shown, t.waiting, t.steady):
        clear(crosswalk, table, release)


def unit_columns(rows: Mapping[str, Row]) -> dict[str, pa.Array]:
    """Units as the columns of `crosswalk_shown`."""
    people = sorted(rows)
    units = [rows[entity] for entity in people]
    earlier = [canonical(list(row.unit.values[:-1])) if len(row.unit.values) > 1 else None for row in units]
    texts: dict[str, Sequence[str | None]] = {
        "entity": people,
        "block": [block_text(row.unit.cell.block) for row in units],
        "cell": [cell_text(row.unit.cell) for row in units],
        "place": [row.place for row in units],
        "value": [str(row.unit.values[-1]) for row in units],
        "earlier": earlier,
    }
    return {name: pa.array(column, pa.string()) for name, column in texts.items()}


def _insert(crosswalk: Crosswalk, table: sa.Table, release: str, columns: Mapping[str, pa.Array]) -> None:
    own = crosswalk.own
    loaded = own.load(fresh_name(), pa.table(dict(columns)))
    named = sa.cast(sa.literal(release), sa.Text).label("release")
    query = sa.select(named, *(loaded.c[name] for name in columns))
    own.run(sa.insert(table).from_select(["release", *columns], query))
    own.drop(loaded)
