"""The state of a release whose versions lag: what its newest version shows, who waits, and what else is remembered.

This module alone reads it from the crosswalk and writes it there: one row (`State`, as JSON in `steady`), a row of each
unit that is shown (`Row`, in `shown`), and one of everybody who waits (in `waiting`, filled up with rows of nobody).
Of a release without a state the row says that its first version was refused, or who was in a frozen cell when it was
set down: published otherwise for a while, and lagging again, it must not try these cells again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa
import sqlalchemy as sa

from qblock.engines.arrow import whole_numbers
from qblock.errors import QblockError
from qblock.ledger.events import canonical
from qblock.spec import Spec, spec_digest
from qblock.versions.batching.state import Block, Cell, Memory, Pending, Unit
from qblock.versions.batching.weights import Stated
from qblock.versions.crosswalk import Crosswalk, as_text, clear, load_texts, pad
from qblock.versions.recorded import Candidate, recorded
from qblock.versions.texts import owner

SHOWN, REFUSED, SET_DOWN = 1, 2, 3
"""Forms of the row: of a state, of a first version that was refused, and of a state that was set down."""
COUNTED = ("quiet", "run", "moments", "sizes", "whole")
"""What a run changes that decides nothing."""


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
class State:
    """What is kept of a release beside its units.

    sizes: people who close a batch of newcomers, by block, as the first version has it (None: none closes); whole: of a
    block that was never shown; first: the number of that version; hidden: the blocks that it suppressed. moments: when
    the runs were from which on somebody has waited, as ISO text. closed, failed: batches so far, by kind. types: of the
    columns that are published as they are. awaits: the newest version when batches closed that no version has shown
    yet, or None. stated: how many people of a cell are stated to be present, where that is not all of them; None where
    rows have no weights. began: the newest version when it began, which shows what is of its first `Memory.version`.
    """

    layout: Layout
    node: tuple[int, ...]
    memory: Memory
    first: int
    began: int
    hidden: frozenset[Block] = frozenset()
    sizes: Mapping[Block, int | None] = field(default_factory=dict)
    whole: int | None = None
    moments: Mapping[int, str] = field(default_factory=dict)
    closed: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    awaits: int | None = None
    stated: Mapping[Cell, Stated] | None = None

    def text(self) -> str:
        """Canonical JSON, without what is kept by person."""
        memory = self.memory
        plain = {name: getattr(self, name) for name in ("first", "began", "whole", "awaits")}
        plain |= {name: dict(getattr(self, name)) for name in ("closed", "failed", "types")}
        if self.stated is not None:
            plain["stated"] = sorted([cell_text(cell), *number] for cell, number in self.stated.items())
        return canonical(
            {
                "form": SHOWN,
                "layout": [list(names) for names in self.layout],
                "node": list(self.node),
                "run": memory.run,
                "version": memory.version,
                "frozen": sorted(cell_text(cell) for cell in memory.frozen),
                "batches": _pairs(memory.batches),
                "hidden": sorted(map(block_text, self.hidden)),
                "sizes": _pairs(self.sizes),
                "moments": {str(run): moment for run, moment in self.moments.items()},
                **plain,
            }
        )

    @classmethod
    def of_json(cls, kept: Mapping[str, Any], waiting: Sequence[Mapping[str, Any]]) -> State:
        """What `text` wrote. waiting: the rows of who waits."""
        memory = Memory(
            run=kept["run"],
            version=kept["version"],
            frozen=frozenset(map(cell_of, kept["frozen"])),
            pending={r["entity"]: Pending(r["seen"], r["times"]) for r in waiting if r["times"] is not None},
            since={r["entity"]: r["since"] for r in waiting if r["since"] is not None},
            seen={r["entity"]: r["seen"] for r in waiting if r["seen"] is not None and r["times"] is None},
            batches={block_of(block): n for block, n in kept["batches"]},
        )
        return cls(
            layout=Layout(*map(tuple, kept["layout"])),
            node=tuple(kept["node"]),
            memory=memory,
            hidden=frozenset(map(block_of, kept["hidden"])),
            sizes={block_of(block): n for block, n in kept["sizes"]},
            moments={int(run): moment for run, moment in kept["moments"].items()},
            awaits=kept.get("awaits"),
            stated={cell_of(cell): Stated(*number) for cell, *number in kept["stated"]} if "stated" in kept else None,
            **{name: kept[name] for name in ("first", "began", "whole", "closed", "failed", "types")},
        )


class Row(NamedTuple):
    """A unit as it is kept. place: the texts of its quasi-identifiers as one (`join_texts`)."""

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


def _pairs(sizes: Mapping[Block, int | None]) -> list[list[Any]]:
    return sorted(([block_text(block), n] for block, n in sizes.items()), key=lambda pair: str(pair[0]))


def _read(crosswalk: Crosswalk, release: str) -> dict[str, Any]:
    """The row of a release as it is kept; empty where there is none."""
    t = crosswalk.tables.steady
    text = crosswalk.own.scalar(sa.select(t.c.state).where(t.c.release == release))
    return {} if text is None else dict(json.loads(text))


def _write(crosswalk: Crosswalk, release: str, text: str) -> None:
    t, own = crosswalk.tables.steady, crosswalk.own
    if own.scalar(sa.select(sa.func.count()).select_from(t).where(t.c.release == release)):
        crosswalk.write(sa.update(t).where(t.c.release == release).values(state=text), release)
    else:
        crosswalk.write(sa.insert(t).values(release=release, state=text), release)


def read_state(crosswalk: Crosswalk, release: str) -> State | None:
    """The state of a release; None where the steady job has not begun. Raises QblockError for a newer form."""
    kept, t = _read(crosswalk, release), crosswalk.tables.waiting
    if kept and kept["form"] not in (SHOWN, REFUSED, SET_DOWN):
        raise QblockError("the crosswalk was written by a newer qblock; install that one, or a later one")
    if not kept or kept["form"] != SHOWN:
        return None
    waiting = crosswalk.own.fetch(sa.select(t).where(t.c.release == release)).to_pylist()
    return State.of_json(kept, waiting)


def write_state(
    crosswalk: Crosswalk, release: str, state: State, gone: Iterable[str] = (), rows: Mapping[str, Row] | None = None
) -> None:
    """Write a state, take units out (`gone`), and write units anew (`rows`), in the caller's transaction."""
    t, own, rows = crosswalk.tables, crosswalk.own, rows or {}
    people = sorted({*gone, *rows})
    if people:
        taken = load_texts(own, entity=people)
        with crosswalk.counted(t.shown, release, taken):
            former = [t.shown.c.release == release, t.shown.c.entity.in_(sa.select(taken.c.entity))]
            crosswalk.write(sa.delete(t.shown).where(*former), release)
            _insert_units(crosswalk, release, rows)
        own.drop(taken)
    clear(crosswalk, t.waiting, release)
    memory = state.memory
    people = sorted({*memory.since, *memory.pending, *memory.seen})
    if people:
        pending = [memory.pending.get(entity) for entity in people]
        seen = [
            memory.seen.get(entity) if was is None else was.value for entity, was in zip(people, pending, strict=True)
        ]
        since = whole_numbers([memory.since.get(entity) for entity in people])
        times = whole_numbers([None if change is None else change.times for change in pending])
        _insert(crosswalk, t.waiting, release, entity=people, since=since, seen=seen, times=times)
    pad(crosswalk, t.waiting, release, since=0)
    _write(crosswalk, release, state.text())


def _insert_units(crosswalk: Crosswalk, release: str, rows: Mapping[str, Row]) -> None:
    if not rows:
        return
    units = [rows[entity] for entity in sorted(rows)]
    _insert(
        crosswalk,
        crosswalk.tables.shown,
        release,
        entity=sorted(rows),
        block=[block_text(row.unit.cell.block) for row in units],
        cell=[cell_text(row.unit.cell) for row in units],
        place=[row.place for row in units],
        value=[str(row.unit.values[-1]) for row in units],
        earlier=[canonical(list(row.unit.values[:-1])) if len(row.unit.values) > 1 else None for row in units],
    )


def write_units(
    crosswalk: Crosswalk, candidate: Candidate, texts: sa.TableClause, joined: sa.FromClause, cells: Sequence[Cell]
) -> None:
    """Write the units of a first version where they are. texts: their place and value; joined: with their block;
    cells: of each block."""
    own, numbers = crosswalk.own, whole_numbers(range(len(cells)))
    blocks = load_texts(own, block=numbers, label=candidate.labels, cell=[cell_text(cell) for cell in cells])
    release = as_text(candidate.about.key.release)
    names = ["release", "entity", "block", "cell", "place", "value"]
    chosen: list[Any] = [release, texts.c.entity, blocks.c.label, blocks.c.cell, texts.c.place, texts.c.value]
    query = sa.select(*chosen).select_from(joined.join(blocks, blocks.c.block == candidate.rows.c.block))
    crosswalk.write(sa.insert(crosswalk.tables.shown).from_select(names, query), candidate.about.key.release)
    own.drop(blocks)


def _insert(crosswalk: Crosswalk, table: sa.Table, release: str, **columns: Sequence[str | None] | pa.Array) -> None:
    own = crosswalk.own
    loaded = load_texts(own, **columns)
    query = sa.select(as_text(release).label("release"), *(loaded.c[name] for name in columns))
    crosswalk.write(sa.insert(table).from_select(["release", *columns], query), release)
    own.drop(loaded)


def forget_state(crosswalk: Crosswalk, release: str) -> None:
    """Forget all of a release: of a first version that nobody ever saw."""
    t = crosswalk.tables
    for table in (t.shown, t.waiting, t.steady, t.cohort):
        clear(crosswalk, table, release)


def set_down(crosswalk: Crosswalk, release: str) -> None:
    """Forget what a release that lagged shows and who waits, but for who is in a frozen cell."""
    t, kept = crosswalk.tables, _read(crosswalk, release)
    if kept.get("form") == SET_DOWN:
        return
    clear(crosswalk, t.waiting, release)
    of_release = t.steady.c.release == release
    if kept.get("form") == SHOWN:
        frozen = [t.shown.c.release == release, t.shown.c.cell.in_(kept["frozen"])]
        people = sa.select(t.shown.c.release, t.shown.c.entity).where(*frozen)
        crosswalk.write(sa.insert(t.waiting).from_select(["release", "entity"], people), release)
        pad(crosswalk, t.waiting, release)
        crosswalk.write(sa.update(t.steady).where(of_release).values(state=canonical({"form": SET_DOWN})), release)
    else:
        crosswalk.write(sa.delete(t.steady).where(of_release), release)
    crosswalk.write(sa.delete(t.shown).where(t.shown.c.release == release), release)


def stuck_people(crosswalk: Crosswalk, release: str) -> set[str]:
    """The digests of people who were in a frozen cell when a release was set down."""
    t = crosswalk.tables.waiting
    if _read(crosswalk, release).get("form") != SET_DOWN:
        return set()
    return set(crosswalk.column(sa.select(t.c.entity).where(t.c.release == release)))


def refused_before(crosswalk: Crosswalk, spec: Spec) -> bool | None:
    """Whether a first version was refused under the same spec (True) or another one; None where none was."""
    kept = _read(crosswalk, spec.release)
    return spec_digest(spec) == kept["spec"] if kept.get("form") == REFUSED else None


def remember_refusal(crosswalk: Crosswalk, spec: Spec) -> None:
    """Remember that the first version was refused."""
    _write(crosswalk, spec.release, canonical({"form": REFUSED, "spec": spec_digest(spec)}))


def one_more_run(state: State) -> State:
    """The state after a run that found everything as it was, and decided nothing."""
    run = state.memory.run + 1
    moments = {**state.moments, run: datetime.now(UTC).isoformat(timespec="seconds")}
    waited = {*state.memory.since.values(), run}
    kept = {number: moment for number, moment in moments.items() if number in waited}
    return replace(state, memory=replace(state.memory, run=run), moments=kept, awaits=None)


def decided(crosswalk: Crosswalk, release: str, newest: int) -> str | None:
    """What is remembered beside the units, as it stays where nothing is decided. newest: the newest version that was
    published; that an older one was awaited means nothing any more, and the next run forgets it."""
    kept = _read(crosswalk, release)
    if kept.get("awaits") != newest:
        kept.pop("awaits", None)
    return canonical({name: value for name, value in kept.items() if name not in COUNTED}) if kept else None


def keep_result(crosswalk: Crosswalk, release: str, result: Mapping[str, Any]) -> None:
    """Keep what a run came to that decided nothing, until something is decided again (`write_state`)."""
    t = crosswalk.tables.steady
    text = canonical({**_read(crosswalk, release), "quiet": json.dumps(result)})
    crosswalk.write(sa.update(t).where(t.c.release == release).values(state=text), release)


def result_of(crosswalk: Crosswalk, release: str) -> dict[str, Any] | None:
    """What the run before came to, if it decided nothing."""
    result = _read(crosswalk, release).get("quiet")
    return None if result is None else dict(json.loads(result))


def units_in(crosswalk: Crosswalk, release: str, cells: Collection[str]) -> dict[str, Row]:
    """Everybody in some cells, by digest. cells: as text."""
    return _units(crosswalk, release, crosswalk.tables.shown.c.cell, cells)


def units_of(crosswalk: Crosswalk, release: str, entities: Collection[str]) -> dict[str, Row]:
    """Those of some people who are shown, by digest."""
    return _units(crosswalk, release, crosswalk.tables.shown.c.entity, entities)


def _units(crosswalk: Crosswalk, release: str, column: sa.Column[Any], among: Collection[str]) -> dict[str, Row]:
    t, own = crosswalk.tables.shown, crosswalk.own
    wanted = load_texts(own, text=sorted(among))
    query = sa.select(t.c.entity, t.c.cell, t.c.place, t.c.value, t.c.earlier).where(
        t.c.release == release, column.in_(sa.select(wanted.c.text))
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


def people_in(
    crosswalk: Crosswalk, release: str, cells: Collection[Cell], without: Collection[str] = ()
) -> dict[Cell, int]:
    """How many people some cells have, of those that have any. without: digests of who does not count."""
    t, own = crosswalk.tables.shown, crosswalk.own
    wanted = load_texts(own, cell=sorted(map(cell_text, cells)))
    left_out = load_texts(own, entity=sorted(without))
    query = sa.select(t.c.cell, sa.func.count().label("n")).where(
        t.c.release == release,
        t.c.cell.in_(sa.select(wanted.c.cell)),
        t.c.entity.not_in(sa.select(left_out.c.entity)),
    )
    counts = own.fetch(query.group_by(t.c.cell))
    own.drop(wanted)
    own.drop(left_out)
    pairs = zip(counts["cell"].to_pylist(), counts["n"].to_pylist(), strict=True)
    return {cell_of(text): int(n) for text, n in pairs}


def cells_of(crosswalk: Crosswalk, release: str, entities: Collection[str]) -> set[str]:
    """The cells, as text, in which some people are."""
    t, own = crosswalk.tables.shown, crosswalk.own
    wanted = load_texts(own, entity=sorted(entities))
    query = sa.select(t.c.cell).where(t.c.release == release, t.c.entity.in_(sa.select(wanted.c.entity))).distinct()
    cells = set(crosswalk.column(query))
    own.drop(wanted)
    return cells


def version_numbers(crosswalk: Crosswalk, release: str, state: State, shown: Collection[int]) -> dict[int, int]:
    """By each `Memory.version` that readers were shown, the version that was the first to show it.

    The two are not the same: a run that ends before it publishes uses up a number of versions, one that publishes the
    same rows again changes no state, and a state may begin after versions without one.
    """
    numbers = {1: state.began}
    for version in recorded(crosswalk, release):
        number = version.key.version
        if version.state is not None and number > state.began and number in shown:
            numbers |= dict.fromkeys(range(max(numbers) + 1, version.state + 1), number)
    return numbers


def first_versions(crosswalk: Crosswalk, release: str, numbers: Mapping[int, int]) -> list[dict[str, int]]:
    """Of each quasi-identifier, the version since which each label has been shown, of rows that still are. numbers: as
    of `version_numbers`."""
    t = crosswalk.tables.shown
    cells = crosswalk.column(sa.select(t.c.cell).where(t.c.release == release).distinct())
    since: list[dict[str, int]] = []
    for cell in map(cell_of, cells):
        since = since or [{} for _ in cell.block]
        for versions, label in zip(since, map(str, cell.block), strict=True):
            number = numbers[cell.first]
            versions[label] = min(versions.get(label, number), number)
    return since


def labels_of(crosswalk: Crosswalk, release: str, people: Collection[str]) -> dict[str, set[Block]]:
    """The blocks in which some people are shown, by the digest of the person."""
    t, own = crosswalk.tables.shown, crosswalk.own
    wanted = load_texts(own, person=sorted(people))
    person = owner(t.c.entity)
    query = sa.select(person.label("person"), t.c.block).where(
        t.c.release == release, person.in_(sa.select(wanted.c.person))
    )
    labels: dict[str, set[Block]] = {}
    for row in own.fetch(query).to_pylist():
        labels.setdefault(row["person"], set()).add(block_of(row["block"]))
    own.drop(wanted)
    return labels


def another_unit(crosswalk: Crosswalk, release: str, cells: Collection[str]) -> dict[str, Row]:
    """One unit outside some cells, if there is any: whether a version would be left without anybody."""
    t, own = crosswalk.tables.shown, crosswalk.own
    wanted = load_texts(own, cell=sorted(cells))
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
        wanted = load_texts(own, block=sorted(map(block_text, blocks)))
        query = query.where(t.c.block.in_(sa.select(wanted.c.block)))
    counts: dict[Block, dict[str, int]] = {}
    for row in own.fetch(query.group_by(t.c.block, t.c.value)).to_pylist():
        counts.setdefault(block_of(row["block"]), {})[row["value"]] = int(row["n"])
    return counts
