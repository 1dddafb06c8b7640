"""How many people left and came since the run before, compared with those whom the newest version shows.

An entity column that is recoded makes everybody look new: nobody is in two versions then, every joint cell is of one
version, and the check of versions together is void. So a run counts who left and who came before it lets anybody in.

People are counted, and not how many they are, since the thirty who wait today may be others than the thirty of
yesterday: each run keeps the digests of all who are in the source and in no version (WAITING: cohorts that do not
close, rows that no hierarchy covers, versions that were refused) and of all whom the newest version shows and the
source has no more (GONE: carried, or in a version that could not be replaced). Whoever is kept there does not count
again. Every run that passes here keeps it, whatever becomes of the run after that: a release that is refused each week
counts each week's people once. A run that is refused here keeps nothing, so that the next one counts the same people
again. Who is set apart (cohorts that failed, withdrawals) never counts, nor does who moves, being in source and
version.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field

import pyarrow as pa
import sqlalchemy as sa

from qblock.source import SourceTable
from qblock.versions.admission import Admission
from qblock.versions.crosswalk import Crosswalk, clear, fresh_name, pad
from qblock.versions.episodes import PUBLISHED, VersionKey
from qblock.versions.recorded import DIGEST, entity_of, recorded
from qblock.versions.texts import owner
from qblock.warehouse.queries import Query

WAITING, GONE = "waiting", "gone"
ONE_IN = 5
"""More than one in so many of those shown who left, or who came: then a person has to confirm it."""


@dataclass(frozen=True)
class Turnover:
    """version: the newest one, or None before the first; shown: the people whom it shows; went, came: since the run
    before. waiting and gone: the digests to be kept, where they differ from those kept (else None)."""

    version: int | None
    shown: int
    went: int
    came: int
    waiting: pa.Table | None = field(default=None, repr=False)
    gone: pa.Table | None = field(default=None, repr=False)

    @property
    def too_many(self) -> bool:
        return self.version is not None and ONE_IN * max(self.went, self.came) > self.shown

    @property
    def detail(self) -> dict[str, int]:
        """For the private ledger."""
        return {"shown": self.shown, "went": self.went, "came": self.came}


def turnover(crosswalk: Crosswalk, source: SourceTable, admission: Admission, published: Collection[int]) -> Turnover:
    """Count who left and who came. source: opened by `admission`; published: the versions that readers saw."""
    release, t, own = source.spec.release, crosswalk.tables, crosswalk.own
    versions = [v.key.version for v in recorded(crosswalk, release) if v.key.version in published]
    newest = versions[-1] if versions else None
    if newest is None:
        # Everybody will be in the first version, except rows that no hierarchy covers yet.
        if not source.quarantined:
            return Turnover(None, 0, 0, 0)
        known = crosswalk.bring(
            sa.select(entity_of(crosswalk, source).label("entity")).select_from(source.relation).distinct()
        )
        shown: Query = sa.select(known.c.entity).where(sa.false())
        everybody = sa.select(known.c.entity)
    else:
        of_newest = (t.row.c.release == release, t.row.c.version == newest, t.row.c.shown == PUBLISHED)
        shown, everybody = sa.select(t.row.c.entity).where(*of_newest), _known(crosswalk, release, versions)
        if source.spec.bundles:
            shown, everybody = _owners(shown), _owners(everybody)
    assert admission.everybody is not None
    # Somebody may have several rows.
    now = crosswalk.bring(sa.select(admission.everybody.c[DIGEST].label("entity")).distinct())
    own.analyze(now)
    excluded = sa.select(t.apart.c.entity).where(t.apart.c.release == release)
    here = sa.select(now.c.entity)
    waiting = own.store(fresh_name(), _without(here, sa.union(everybody, excluded)))
    gone = own.store(fresh_name(), _without(shown, sa.union(here, excluded)))
    came, waits = _since(crosswalk, waiting, release, WAITING)
    went, left = _since(crosswalk, gone, release, GONE)
    number = _number(crosswalk, shown)
    same = not (came or went or waits or left)
    digests = [None if same else own.fetch(sa.select(table.c.entity)) for table in (waiting, gone)]
    for table in (now, waiting, gone):
        own.drop(table)
    return Turnover(newest, number, went, came, *digests)


def keep(crosswalk: Crosswalk, release: str, counted: Turnover) -> None:
    """Keep who waits and who is gone for the next run, in a transaction of its own: it outlasts a refused run."""
    t = crosswalk.tables.turnover
    if counted.waiting is None or counted.gone is None:
        return
    clear(crosswalk, t, release)
    for state, digests in ((WAITING, counted.waiting), (GONE, counted.gone)):
        loaded = crosswalk.own.load(fresh_name(), digests)
        same = [sa.cast(sa.literal(text), sa.Text) for text in (release, state)]
        query = sa.select(loaded.c.entity, *same)
        crosswalk.own.run(sa.insert(t).from_select(["entity", "release", "state"], query))
        crosswalk.own.drop(loaded)
    pad(crosswalk, t, release, state=WAITING)


def _known(crosswalk: Crosswalk, release: str, versions: Collection[int]) -> Query:
    """Everybody who was in any of these versions; from the rolled episodes as far as they go, to read each one once."""
    t = crosswalk.tables
    text = crosswalk.own.scalar(sa.select(t.rolled.c.versions).where(t.rolled.c.release == release))
    rolled = {VersionKey.of_text(key) for key in json.loads(text)} if text else set()
    unrolled = [version for version in versions if VersionKey(release, version) not in rolled]
    of_others = (t.row.c.release == release, t.row.c.version.in_(unrolled))
    both = sa.union(
        sa.select(t.episode.c.entity).where(t.episode.c.release == release), sa.select(t.row.c.entity).where(*of_others)
    ).subquery()
    return sa.select(both.c.entity)


def _owners(units: Query) -> Query:
    rows = units.subquery()
    return sa.select(owner(rows.c.entity).label("entity")).distinct()


def _without(people: Query, without: sa.SelectBase) -> Query:
    rows, known = people.subquery(), without.subquery()
    joined = rows.outerjoin(known, known.c.entity == rows.c.entity)
    return sa.select(rows.c.entity).select_from(joined).where(known.c.entity.is_(None))


def _since(crosswalk: Crosswalk, people: sa.TableClause, release: str, state: str) -> tuple[int, int]:
    """How many of these people were not in a state before, and how many who were in it are not now."""
    t = crosswalk.tables.turnover
    before = sa.select(t.c.entity).where(t.c.release == release, t.c.state == state)
    now = sa.select(people.c.entity)
    return _number(crosswalk, _without(now, before)), _number(crosswalk, _without(before, now))


def _number(crosswalk: Crosswalk, people: Query) -> int:
    return int(crosswalk.own.scalar(sa.select(sa.func.count()).select_from(people.subquery())))
