"""Whom the versions of a release show, and the source has no more: by digests, so that nobody is named."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import sqlalchemy as sa

from qblock.errors import Refused
from qblock.source.columns import check_entity, checked_columns
from qblock.spec import Spec
from qblock.versions.crosswalk import Crosswalk
from qblock.versions.episodes import PUBLISHED
from qblock.versions.excluded import CELL, LEAVING, OUT, WITHDRAWN
from qblock.versions.type_checks import changed, people_of, remedy
from qblock.versions.units import owner
from qblock.versions.versions import Candidate, recorded
from qblock.warehouse.protocol import Session, TableName
from qblock.warehouse.queries import Query

EMPTY = "the source {} is empty: who is missing cannot be told from it; nothing is done"
RETYPED = (
    "column {} is of type {} now, and was of type {} when the newest version was made: people who are there would look "
    "missing; nothing is done. {}"
)

LEAVERS = (
    "{} of the newest version left: `qblock erase SPEC --missing --now` takes out whom the source has no more with "
    "their whole joint cells, and says first how many people these are. "
)


@dataclass(frozen=True)
class Missing:
    """people: whom the release has; digests: of those whom the source has no more."""

    people: int
    digests: tuple[str, ...] = field(repr=False)


def missing(
    crosswalk: Crosswalk, spec: Spec, session: Session, kept: Collection[int], current: int | None, *, now: bool
) -> Missing:
    """The people of a release whom its source has no more. Writes nothing.

    People of a release are those whom a version that is kept shows, the batches that no version has shown yet included,
    but for those who have left. now: also those of them who left in a batch, whom older versions may still show, and
    those whose withdrawal was recorded while readers still see them. session: reads the source; kept: the versions that
    are kept; current: the one that readers see. Raises Refused for a source that is empty or whose entity column has
    another type, InputError for one without its columns, or with rows that name nobody.
    """
    assert spec.entity is not None
    name = TableName.parse(spec.source.table)
    columns = checked_columns(spec, session, name)
    table = session.relation(name)
    first_row = sa.select(sa.literal_column("1").label("one")).select_from(table).limit(1).subquery()
    if not session.scalar(sa.select(sa.func.count()).select_from(first_row)):
        raise Refused(EMPTY.format(name))
    check_entity(spec, session, table.c[spec.entity], columns[spec.entity])
    own = recorded(crosswalk, spec.release)
    if not own:
        return Missing(0, ())
    types = own[-1].types
    for column, before, after in changed(spec, types, columns):
        if column == spec.entity:
            raise Refused(RETYPED.format(column, after, before, remedy(spec)))
    who = people_of(crosswalk, spec, session, table, columns, types.first)
    here = crosswalk.bring(sa.select(who.c.entity).distinct())
    crosswalk.own.analyze(here)
    known = _known(crosswalk, spec.release, kept).subquery("qblock_known")
    done = _done(crosswalk, spec.release, current, now).subquery("qblock_done")
    both = known.outerjoin(done, done.c.entity == known.c.entity)
    left = done.c.entity.is_(None)
    people = int(crosswalk.own.scalar(sa.select(sa.func.count()).select_from(both).where(left)))
    query = sa.select(known.c.entity).select_from(both.outerjoin(here, here.c.entity == known.c.entity))
    absent = crosswalk.own.fetch(query.where(left, here.c.entity.is_(None)).order_by(known.c.entity))
    crosswalk.own.drop(here)
    return Missing(people, tuple(absent["entity"].to_pylist()))


def leavers_way_on(crosswalk: Crosswalk, spec: Spec, candidate: Candidate) -> str:
    """What a refusal says of people whom the newest version shows and a candidate does not, but for who is out.

    It is how many they are, and the command that takes them out; empty where there are none.
    """
    t, excluded, rows = crosswalk.tables.row, crosswalk.tables.apart, candidate.rows
    versions = [v.key.version for v in recorded(crosswalk, spec.release) if v.key != candidate.about.key]
    gone = sa.select(excluded.c.entity).where(excluded.c.release == spec.release, excluded.c.state.in_((OUT, LEAVING)))
    query = sa.select(sa.func.count(sa.distinct(t.c.entity))).where(
        t.c.release == spec.release,
        t.c.version == max(versions, default=0),
        t.c.shown == PUBLISHED,
        t.c.entity.not_in(sa.select(rows.c.entity)),
        t.c.entity.not_in(gone),
    )
    people = int(crosswalk.own.scalar(query))
    return LEAVERS.format("1 person" if people == 1 else f"{people:,} people") if people else ""


def _known(crosswalk: Crosswalk, release: str, kept: Collection[int]) -> Query:
    """Whom a version that is kept shows, and the state that the next one is made from."""
    t, state = crosswalk.tables.row, crosswalk.tables.shown
    shown = sa.select(t.c.entity).where(t.c.release == release, t.c.version.in_(kept), t.c.shown == PUBLISHED)
    both = sa.union(shown, sa.select(state.c.entity).where(state.c.release == release)).subquery()
    return sa.select(owner(both.c.entity).label("entity")).distinct()


def _done(crosswalk: Crosswalk, release: str, current: int | None, now: bool) -> Query:
    """Who has left, and can leave no more than that."""
    t, row = crosswalk.tables.apart, crosswalk.tables.row
    if not now:
        return sa.select(t.c.entity).where(t.c.release == release, t.c.state.in_((OUT, LEAVING)))
    who = owner(row.c.entity)
    seen = sa.select(who).where(row.c.release == release, row.c.version == current, row.c.shown == PUBLISHED)
    withdrawn = (t.c.release == release, t.c.state == OUT, t.c.why.in_((WITHDRAWN, CELL)))
    return sa.select(t.c.entity).where(*withdrawn, t.c.entity.not_in(seen))
