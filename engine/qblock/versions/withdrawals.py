"""People who withdraw: they leave in batches that close by size alone, or at once with their whole joint cells.

k leavers of a block may share one value, and then the difference of two versions reveals it. So those who leave and
those who stay of each joint cell must both satisfy the models, which is what the check of the version without them
finds. A batch that fails is not topped up: its people can leave at once only. What readers have copied cannot be
recalled.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from qblock.errors import InputError
from qblock.lattice import Node
from qblock.results.release import Sharing
from qblock.source import SourceTable
from qblock.spec import Spec
from qblock.versions.crosswalk import CELL, FAILED, GONE, LEAVING, OUT, QUEUED, WITHDRAWN, Crosswalk, load_texts
from qblock.versions.episodes import PUBLISHED, VersionKey, episodes, placed, roll
from qblock.versions.gate import members
from qblock.versions.people import entities_apart, set_apart
from qblock.versions.recorded import Candidate, coded, entity_of, least_rows, recorded
from qblock.versions.texts import owner, owner_of

NOT_RECALLED = "copies that readers have made of earlier versions cannot be recalled"


@dataclass(frozen=True)
class Batch:
    """People whose withdrawal takes effect with the next version. waiting: those whose block has too few yet."""

    members: tuple[str, ...]
    blocks: int
    waiting: int


NOBODY = Batch((), 0, 0)


@dataclass(frozen=True)
class Removal:
    """Whole joint cells. withdrawn, companions: digests; versions: those that show anybody who withdrew; cells: how
    many joint cells are taken out, with anybody in them who is not out yet."""

    withdrawn: tuple[str, ...]
    companions: tuple[str, ...]
    versions: tuple[VersionKey, ...]
    cells: int


def withdraw(crosswalk: Crosswalk, spec: Spec, digests: Sequence[str]) -> int:
    """Queue people who withdraw; returns how many of them any version has shown.

    Whoever was never shown is out at once; of a batch of the steady job that closed and that no version has shown, with
    everybody in it, since the others might fail alone. Whoever is queued stays in the versions until a batch closes, so
    the source must keep the row as long. Whoever was in a batch that failed is not queued again, which would top it up.
    """
    t = crosswalk.tables.row
    known = load_texts(crosswalk.own, entity=digests)
    who = owner(t.c.entity)
    query = sa.select(who.label("entity")).where(
        t.c.release == spec.release, t.c.shown == PUBLISHED, who.in_(sa.select(known.c.entity))
    )
    shown = set(crosswalk.column(query.distinct()))
    gone = set(entities_apart(crosswalk, spec.release, [OUT, LEAVING, FAILED]))
    queued = [digest for digest in digests if digest in shown and digest not in gone]
    set_apart(crosswalk, spec.release, queued, WITHDRAWN, QUEUED, None)
    never = [digest for digest in digests if digest not in shown]
    set_apart(crosswalk, spec.release, _with_never_shown(crosswalk, spec, never), CELL, OUT, None)
    set_apart(crosswalk, spec.release, never, WITHDRAWN, OUT, None)
    return len(shown)


def _with_never_shown(crosswalk: Crosswalk, spec: Spec, digests: Sequence[str]) -> list[str]:
    """Everybody in the cells that people whom no version has shown have in the state of the steady job."""
    t = crosswalk.tables.shown
    known = load_texts(crosswalk.own, entity=digests)
    wanted = owner(t.c.entity).in_(sa.select(known.c.entity))
    theirs = sa.select(t.c.cell).where(t.c.release == spec.release, wanted)
    query = sa.select(t.c.entity).where(t.c.release == spec.release, t.c.cell.in_(theirs))
    return crosswalk.column(query)


def batch(crosswalk: Crosswalk, source: SourceTable, node: Node, size: int) -> Batch:
    """The queued people of each block of a node where they are `size` many, by sizes and quasi-identifiers alone.

    source: with the queued people still in it. Open the source again with Admission(leaving=batch.members), check, and
    call `left` or `failed`.
    """
    queued = entities_apart(crosswalk, source.spec.release, [QUEUED])
    if not queued:
        return NOBODY
    people = load_texts(source.session, entity=queued)
    joined, codes = coded(source, node)
    columns = [entity_of(crosswalk, source).label("entity"), *(c.label(f"q{i}") for i, c in codes.items())]
    rows = sa.select(*columns).select_from(joined).subquery("rows")
    query = sa.select(*rows.c).join(people, people.c.entity == rows.c.entity).order_by(rows.c.entity)
    blocks: dict[tuple[int, ...], list[str]] = {}
    for row in source.session.fetch(query).to_pylist():
        blocks.setdefault(tuple(int(row.get(f"q{i}", 0)) for i in range(len(node))), []).append(row["entity"])
    closing = [entities for entities in blocks.values() if len(entities) >= size]
    leaving = tuple(entity for entities in closing for entity in entities)
    return Batch(leaving, len(closing), len(queued) - len(leaving))


def left(crosswalk: Crosswalk, spec: Spec, batch: Batch, candidate: Candidate) -> None:
    """The version has passed: the batch's people leave with it, and so do queued people who are not in it anyway.

    In the transaction that records the version. `settle_leaving` says that they are out, once it is published.
    """
    queued = set(entities_apart(crosswalk, spec.release, [QUEUED]))
    if queued:
        rows = candidate.rows
        known = load_texts(crosswalk.own, entity=sorted(queued))
        who = owner(rows.c.entity)
        query = sa.select(who.label("entity")).where(who.in_(sa.select(known.c.entity)))
        queued -= set(crosswalk.column(query))
    leaving = [*batch.members, *sorted(queued - set(batch.members))]
    set_apart(crosswalk, spec.release, leaving, WITHDRAWN, LEAVING, candidate.about.key.version)


def settle_leaving(crosswalk: Crosswalk, spec: Spec, published: Collection[int]) -> int:
    """Set people out who left with a version that is published, and queue the others again; returns how many are out.

    To be called after a publication, and by the next run where that one was stopped before.
    """
    t = crosswalk.tables.apart
    query = sa.select(t.c.entity, t.c.version).where(t.c.release == spec.release, t.c.state == LEAVING)
    rows = crosswalk.own.fetch(query).to_pylist()
    out: dict[int, list[str]] = {}
    for row in rows:
        out.setdefault(row["version"], []).append(row["entity"])
    done = 0
    for version, people in out.items():
        shown = version in published
        set_apart(crosswalk, spec.release, people, WITHDRAWN, OUT if shown else QUEUED, version if shown else None)
        done += len(people) if shown else 0
    return done


def failed(crosswalk: Crosswalk, spec: Spec, batch: Batch, version: int) -> None:
    """The batch has failed, and its people can leave at once only. In a transaction of its own."""
    set_apart(crosswalk, spec.release, batch.members, WITHDRAWN, FAILED, version)


def whole_cells(crosswalk: Crosswalk, spec: Spec, entities: Sequence[str]) -> Removal:
    """What must leave when people (digests) leave at once: everybody who shares a joint cell with them now.

    The difference that readers see then is cells that have passed already: those of the steady job where there is one.
    """
    gone = set(entities_apart(crosswalk, spec.release, [OUT]))
    wanted = load_texts(crosswalk.own, entity=entities)
    cells: sa.FromClause
    state, steady = crosswalk.tables.shown, crosswalk.tables.steady
    if crosswalk.own.scalar(sa.select(sa.func.count()).select_from(steady).where(steady.c.release == spec.release)):
        cells = sa.select(state.c.entity, state.c.cell).where(state.c.release == spec.release).subquery("cells")
    else:
        roll(crosswalk, spec.release, [version.key for version in members(spec, recorded(crosswalk))])
        rows = placed(crosswalk, episodes(crosswalk, spec.release), "episodes")
        cells = sa.select(rows.c.entity, rows.c.cell).where(rows.c.running).subquery("cells")
    theirs = sa.select(cells.c.cell).where(owner(cells.c.entity).in_(sa.select(wanted.c.entity)))
    query = sa.select(cells.c.entity, cells.c.cell).where(cells.c.cell.in_(theirs)).distinct()
    pairs = [
        (row["entity"], row["cell"]) for row in crosswalk.own.fetch(query).to_pylist() if row["entity"] not in gone
    ]
    everybody = {entity for entity, _ in pairs}
    t = crosswalk.tables.row
    shows = sa.select(t.c.version).where(
        t.c.release == spec.release, t.c.shown == PUBLISHED, owner(t.c.entity).in_(sa.select(wanted.c.entity))
    )
    numbers = sorted(crosswalk.column(shows.distinct()))
    keys = tuple(VersionKey(spec.release, number) for number in numbers)
    withdrawn = set(entities)
    companions = tuple(entity for entity in sorted(everybody) if owner_of(entity) not in withdrawn)
    return Removal(tuple(sorted(withdrawn)), companions, keys, len({cell for _, cell in pairs}))


def withdrawn(crosswalk: Crosswalk, release: str) -> list[str]:
    """Everybody whose withdrawal takes effect or has taken it, and who left with them."""
    t = crosswalk.tables.apart
    states = t.c.state.in_(GONE)
    query = sa.select(t.c.entity).where(t.c.release == release, states, t.c.why.in_((WITHDRAWN, CELL)))
    return crosswalk.column(query)


def showing_withdrawn(crosswalk: Crosswalk, release: str) -> list[int]:
    """The versions that show anybody whose withdrawal has taken effect, or who left with them."""
    t, gone = crosswalk.tables.row, crosswalk.tables.apart
    who = sa.select(gone.c.entity).where(
        gone.c.release == release, gone.c.state == OUT, gone.c.why.in_((WITHDRAWN, CELL))
    )
    # Of people with several rows a unit, or all that somebody has.
    shows = sa.or_(t.c.entity.in_(who), owner(t.c.entity).in_(who))
    query = sa.select(t.c.version).where(t.c.release == release, t.c.shown == PUBLISHED, shows)
    return sorted(crosswalk.column(query.distinct()))


def take_out(crosswalk: Crosswalk, spec: Spec, removal: Removal, version: int | None = None) -> None:
    """Set whole cells apart for good; the next version is made without them, and the versions named are retired."""
    set_apart(crosswalk, spec.release, removal.companions, CELL, OUT, version)
    set_apart(crosswalk, spec.release, removal.withdrawn, WITHDRAWN, OUT, version)


def sharing(crosswalk: Crosswalk, spec: Spec, digests: Sequence[str], published: Collection[int]) -> Sharing:
    """What `take_out` of the whole cells of these people would come to. published: the versions that are kept.

    Where versions do not lag, it rolls the episodes of the release's check on, which may be undone.
    """
    removal = whole_cells(crosswalk, spec, digests)
    gone = set(entities_apart(crosswalk, spec.release, [OUT]))
    leaving = sorted(set(digests) - gone)
    going = load_texts(crosswalk.own, entity=[*leaving, *removal.companions])
    t, excluded = crosswalk.tables.row, crosswalk.tables.apart
    out = sa.select(excluded.c.entity).where(excluded.c.release == spec.release, excluded.c.state == OUT)
    # Of people with several rows a unit may leave while others of the same person stay.
    person = owner(t.c.entity)
    shown = sa.select(sa.func.count(sa.distinct(person))).where(
        t.c.release == spec.release,
        t.c.version == max(published, default=0),
        t.c.shown == PUBLISHED,
        t.c.entity.not_in(out),
        t.c.entity.not_in(sa.select(going.c.entity)),
        person.not_in(out),
        person.not_in(sa.select(going.c.entity)),
    )
    staying = int(crosswalk.own.scalar(shown))
    crosswalk.own.drop(going)
    companions = len({owner_of(companion) for companion in removal.companions})
    return Sharing(leaving=len(leaving), companions=companions, cells=removal.cells, staying=staying)


def check_cohorts(spec: Spec) -> None:
    """Raise InputError for a size that is smaller than any block must be."""
    if not spec.checked_together:
        return
    cohort_size(spec)
    least, box = least_rows(spec.privacy), "auto" if spec.newcomers is None else spec.newcomers.box
    if box != "auto" and box < least:
        raise InputError(
            f"{spec.at('versions', 'newcomers', 'box')}: a box of fewer than {least} people fails whatever its values "
            f"are; give {least} or more, or `auto`"
        )


def cohort_size(spec: Spec) -> int:
    """The size that a spec declares, or the least that it could. Raises InputError for one that no block may have."""
    least, declared = least_rows(spec.privacy), spec.cohort
    if declared == "auto":
        return least
    if declared < least:
        raise InputError(
            f"{spec.at('versions', 'cohort')}: newcomers wait until there are `cohort` of them. Give a number of at "
            f"least {least}, the rows that every block must have, or `auto`. Several times as many make it likely that "
            "a cohort passes"
        )
    return declared
