"""The first state of a steady job: what a version shows that has just been recorded, or was published before."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

import sqlalchemy as sa

from qblock.engines.queries import Query
from qblock.ledger.events import canonical
from qblock.source import SourceTable
from qblock.spec import Spec
from qblock.versions.admission import frozen
from qblock.versions.batching.state import Cell, Memory, Unit
from qblock.versions.batching.weights import Stated
from qblock.versions.crosswalk import FAILED, LEFT, OUT, Crosswalk, fresh_name
from qblock.versions.episodes import PUBLISHED, episodes, next_episodes, placed, roll
from qblock.versions.gate import members
from qblock.versions.pending.state import Layout, Row, State, block_of, stuck_people, write_state, write_units
from qblock.versions.people import entities_apart, set_apart
from qblock.versions.recorded import Candidate, RecordedVersion, entity_of, recorded
from qblock.versions.texts import decoded, join_texts, joined_text, texts_of


def begin_state(crosswalk: Crosswalk, spec: Spec, source: SourceTable, candidate: Candidate) -> None:
    """Keep what a version shows, in the transaction that records it: the first one of the state.

    source: that the version is made of. Blocks that it suppresses are part of the state, and no batch touches them.
    """
    own, release, layout = crosswalk.own, candidate.about.key.release, Layout.of(source.spec)
    if spec.bundles:
        rows_now = candidate.rows
        texts = own.store(fresh_name(), sa.select(rows_now.c.entity, rows_now.c.place, rows_now.c.whole.label("value")))
    else:
        columns = {
            "entity": entity_of(crosswalk, source),
            "place": join_texts(texts_of(source, layout.quasi)),
            "value": join_texts(texts_of(source, layout.valued)),
        }
        query = sa.select(*(value.label(name) for name, value in columns.items())).select_from(source.relation)
        texts = crosswalk.bring(query)
    joined = candidate.rows.join(texts, texts.c.entity == candidate.rows.c.entity)
    cells = [Cell(tuple(json.loads(label)), 1) for label in candidate.labels]
    types = {name: source.columns[name].compare_as for name in layout.further}
    hidden = [cell for cell, shown in zip(cells, candidate.shown, strict=True) if shown != PUBLISHED]
    if len(recorded(crosswalk, release)) == 1:
        write_units(crosswalk, candidate, texts, joined, cells)
        write_state(crosswalk, release, _first_state(spec, candidate.about, candidate.about, hidden, types))
    else:
        now = sa.select(texts.c.entity, candidate.rows.c.block, texts.c.place, texts.c.value).select_from(joined)
        past = _past(crosswalk, spec, next_episodes(crosswalk, release, candidate.rows, candidate.about.key))
        rows: dict[str, Row] = {}
        for row in own.fetch(now).to_pylist():
            cell, values = past[row["entity"]]
            unit = Unit(cells[row["block"]]._replace(was=cell), (*values[:-1], row["value"]))
            rows[row["entity"]] = Row(unit, row["place"])
        blocks = {cell.block for cell in hidden}
        frozen_cells = [row.unit.cell for row in rows.values() if row.unit.cell.block in blocks]
        left_alone = [rows[entity].unit.cell for entity in stuck_people(crosswalk, release) if entity in rows]
        set_apart(crosswalk, release, [entity for entity in past if entity not in rows], LEFT, OUT, None)
        write_state(
            crosswalk,
            release,
            _first_state(spec, candidate.about, candidate.about, frozen_cells, types, left_alone),
            (),
            rows,
        )
    own.drop(texts)


def _first_state(
    spec: Spec,
    newest: RecordedVersion,
    first: RecordedVersion,
    hidden: Iterable[Cell],
    types: Mapping[str, str],
    stuck: Iterable[Cell] = (),
) -> State:
    cells = frozenset(hidden)
    memory = Memory(run=1, version=1, frozen=cells | frozenset(stuck))
    blocks = frozenset(cell.block for cell in cells)
    stated: dict[Cell, Stated] | None = {} if spec.shows_weights else None
    return State(
        Layout.of(spec),
        newest.node,
        memory,
        first.key.version,
        newest.key.version,
        hidden=blocks,
        types=types,
        stated=stated,
    )


def _past(crosswalk: Crosswalk, spec: Spec, history: Query) -> dict[str, tuple[str, list[str]]]:
    """The joint cell of J1-linked of everybody who was ever shown, and the values in its parts, oldest first."""
    rows = placed(crosswalk, history, "linked")
    query = sa.select(rows.c.entity, rows.c.value, rows.c.cell).order_by(rows.c.entity, rows.c.episode)
    past: dict[str, tuple[str, list[str]]] = {}
    for row in crosswalk.own.fetch(query).to_pylist():
        past.setdefault(row["entity"], (row["cell"], []))[1].append(joined_text(decoded(row["value"])))
    return past


def adopt_newest(crosswalk: Crosswalk, spec: Spec, shown: frozenset[int]) -> bool:
    """Keep what the newest version of a release shows that was published before the steady job; False where the
    crosswalk does not have all of it, since columns are published as they are.

    Its joint cells are those of J1-linked, with what earlier versions showed of them. Whoever was shown before, and is
    not now, is never shown again.
    """
    if spec.insensitives or spec.bundles:
        return False
    t, own, release = crosswalk.tables, crosswalk.own, spec.release
    own_versions = [v for v in recorded(crosswalk, release) if v.key.version in shown]
    if not own_versions:
        return False  # they were published without a crosswalk, as the check of this version will say
    newest, layout = own_versions[-1], Layout.of(spec)
    roll(crosswalk, release, [v.key for v in members(spec, recorded(crosswalk))])
    past = _past(crosswalk, spec, episodes(crosswalk, release))
    places = frozen(crosswalk, release).subquery("places")
    query = (
        sa.select(t.row.c.entity, t.row.c.shown, t.row.c.value, t.block.c.label, places.c.place, places.c.names)
        .select_from(t.row_in_block.join(places, places.c.entity == t.row.c.entity))
        .where(t.row.c.release == release, t.row.c.version == newest.key.version)
    )
    names = canonical(list(layout.quasi))
    rows: dict[str, Row] = {}
    failed = {*entities_apart(crosswalk, release, [FAILED]), *stuck_people(crosswalk, release)}
    hidden: set[Cell] = set()
    frozen_cells: set[Cell] = set()
    for row in own.fetch(query).to_pylist():
        was, values = past[row["entity"]]
        if row["names"] != names or values[-1] != joined_text(decoded(row["value"])):
            return False
        cell = Cell(block_of(row["label"]), 1, (), was)
        rows[row["entity"]] = Row(Unit(cell, tuple(values)), row["place"])
        if row["shown"] != PUBLISHED:
            hidden.add(cell)
        if row["entity"] in failed:
            frozen_cells.add(cell)
    set_apart(crosswalk, release, [entity for entity in past if entity not in rows], LEFT, OUT, None)
    # Who had left by then was shown without a weight.
    first = _first_state(spec, newest, own_versions[0], hidden, {}, frozen_cells)
    write_state(crosswalk, release, replace(first, stated=None), (), rows)
    return True
