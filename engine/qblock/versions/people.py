"""People by their digests: who is set apart from versions, named, or missing from the source; how many went and came.

A name stands for the person whose text it is exactly: 007 is not the number 7. Whoever is taken out is never shown
again, so a name that may mean somebody else stands for nobody.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import sqlalchemy as sa

from qblock.engines.queries import Query
from qblock.engines.session import Session
from qblock.engines.tables import Column, TableName
from qblock.engines.values import canonical_text
from qblock.errors import Refused
from qblock.source import SourceTable
from qblock.source.columns import check_entity, checked_columns, no_rows
from qblock.spec import Spec
from qblock.versions.admission import Admission
from qblock.versions.crosswalk import (
    CELL,
    HEXADECIMAL,
    OUT,
    WITHDRAWN,
    Crosswalk,
    as_text,
    clear,
    fresh_name,
    load_texts,
    pad,
)
from qblock.versions.episodes import PUBLISHED, VersionKey
from qblock.versions.recorded import (
    DIGEST,
    UNPROTECTED,
    Candidate,
    RecordedVersion,
    entity_of,
    first_of,
    person_of,
    recorded,
)
from qblock.versions.texts import owner
from qblock.versions.types import First, changed, entity_text_of, remedy


def set_apart(
    crosswalk: Crosswalk, release: str, entities: Sequence[str], why: str, state: str, version: int | None
) -> None:
    """Set people's state, in place of the one they had. entities: digests. version: the one that it begins with.

    What a check has found must outlast a run that is refused: a cohort that failed, and is tried again with more
    people, would be topped up until it is diverse. Use a transaction of its own.
    """
    t = crosswalk.tables.apart
    known = load_texts(crosswalk.own, entity=entities)
    members = sa.select(known.c.entity).distinct()
    crosswalk.write(sa.delete(t).where(t.c.release == release, t.c.entity.in_(members)), release)
    people = members.subquery()
    columns = [as_text(text) for text in (release, why, state)]
    number = sa.cast(sa.literal(version), sa.BigInteger)
    query = sa.select(people.c.entity, *columns, number)
    crosswalk.write(sa.insert(t).from_select(["entity", "release", "why", "state", "version"], query), release)
    crosswalk.own.drop(known)


def entities_apart(crosswalk: Crosswalk, release: str, states: Sequence[str]) -> list[str]:
    """The digests of people in some states."""
    t = crosswalk.tables.apart
    query = sa.select(t.c.entity).where(t.c.release == release, t.c.state.in_(states)).order_by(t.c.entity)
    return crosswalk.column(query)


def counts(crosswalk: Crosswalk, release: str) -> dict[str, int]:
    """How many people are in each state, by `why state`: for the private ledger, never for readers."""
    t = crosswalk.tables.apart
    query = sa.select(t.c.why, t.c.state, sa.func.count().label("n")).where(t.c.release == release)
    rows = crosswalk.own.fetch(query.group_by(t.c.why, t.c.state)).to_pylist()
    return {f"{row['why']} {row['state']}": row["n"] for row in sorted(rows, key=lambda r: (r["why"], r["state"]))}


def digests_of(crosswalk: Crosswalk, texts: Sequence[str], *, hashed: bool = False) -> list[str]:
    """The digests of entities given as text, as `Crosswalk.entity` makes them. hashed: of the SHA-256 of the text."""
    key, digests = crosswalk.tables.key, [_digest(text) if hashed else text for text in texts]
    for number in crosswalk.key_numbers():
        secret = crosswalk.own.scalar(sa.select(key.c.secret).where(key.c.id == number))
        digests = [_digest(secret + _digest(secret + text)) for text in digests]
    return digests


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:HEXADECIMAL]


Digests = list[str | None]
"""One digest for each name, in order; None where the name is not a text that the column writes."""


def kept_people(crosswalk: Crosswalk, release: str, names: Sequence[str]) -> Digests | None:
    """The digests of names where the crosswalk by itself knows all of them, as people who were shown, who wait or who
    left.

    None where it does not.
    """
    own = recorded(crosswalk, release)
    if not own:
        return None
    types = own[-1].types
    digests = _digests(crosswalk, names, types.columns[types.entity], types.first)
    return digests if not _unknown(digests, _kept(crosswalk, release, digests)) else None


def looked_up(crosswalk: Crosswalk, spec: Spec, session: Session, names: Sequence[str]) -> tuple[Digests, int]:
    """The digests of names, and how many of them belong to nobody: neither in the source nor in the crosswalk.

    session: reads the source. Raises InputError where the source has no such columns.
    """
    assert spec.entity is not None
    name = TableName.parse(spec.source.table)
    columns = checked_columns(spec, session, name)
    table, own = session.relation(name), recorded(crosswalk, spec.release)
    if own:
        types = own[-1].types
        first, column = types.first, types.columns[types.entity]
    else:
        first, column = first_of(crosswalk, recorded(crosswalk), spec, columns), columns[spec.entity]
    digests = _digests(crosswalk, names, column, first)
    wanted = load_texts(session, entity=[d for d in digests if d])
    who = people_of(crosswalk, spec, session, table, columns, first)
    query = sa.select(who.c.entity).where(who.c.entity.in_(sa.select(wanted.c.entity))).distinct()
    there = set(session.fetch(query)["entity"].to_pylist())
    return digests, _unknown(digests, there | _kept(crosswalk, spec.release, digests))


def _digests(crosswalk: Crosswalk, names: Sequence[str], column: Column, first: First) -> Digests:
    texts = [entity_text_of(name, column, first) if _is_text_of(name, column) else None for name in names]
    told = iter(digests_of(crosswalk, [text for text in texts if text is not None], hashed=first.hashed))
    return [None if text is None else next(told) for text in texts]


def _is_text_of(name: str, column: Column) -> bool:
    try:
        name.encode()  # the bytes of a command line need not be text
    except UnicodeEncodeError:
        return False
    return canonical_text(name, column) == name


def _kept(crosswalk: Crosswalk, release: str, digests: Digests) -> set[str]:
    """Those of the digests that the crosswalk has of a release."""
    known = load_texts(crosswalk.own, entity=[d for d in digests if d])
    wanted = sa.select(known.c.entity)
    parts = [
        sa.select(owner(t.c.entity).label("entity")).where(t.c.release == release, owner(t.c.entity).in_(wanted))
        for t in crosswalk.tables.of_entities
    ]
    there = set(crosswalk.column(sa.select(sa.union(*parts).subquery().c.entity)))
    crosswalk.own.drop(known)
    return there


def _unknown(digests: Digests, there: set[str]) -> int:
    return sum(digest is None or digest not in there for digest in digests)


def people_of(
    crosswalk: Crosswalk,
    spec: Spec,
    session: Session,
    table: sa.FromClause,
    columns: Mapping[str, Column],
    first: First,
) -> sa.FromClause:
    """Everybody in the source, one digest (entity) for each row, with entities written in their first type."""
    person = person_of(crosswalk, spec, session, table, columns, first)
    return sa.select(person.label("entity")).select_from(table).subquery("qblock_who")


def check_somebody(
    crosswalk: Crosswalk,
    spec: Spec,
    session: Session,
    table: sa.FromClause,
    columns: Mapping[str, Column],
    newest: RecordedVersion,
    first: First,
) -> None:
    """Raise Refused where nobody of a version is found in the source, with entities written in a first type."""
    row = crosswalk.tables.row
    same = (row.c.release == newest.key.release, row.c.version == newest.key.version)
    known = crosswalk.lend(sa.select(row.c.entity).where(*same))
    who = people_of(crosswalk, spec, session, table, columns, first)
    joined = who.join(known, known.c.entity == who.c.entity)
    if not session.scalar(sa.select(sa.func.count()).select_from(joined)):
        raise Refused(
            f"nobody of version {newest.key.version} of release {spec.release} is found in the source by column "
            f"{spec.entity}. Its values or type have changed, so versions cannot be checked together. Give the column "
            f"its former values again, or write {UNPROTECTED}"
        )


EMPTY = "{}, so it cannot tell who is missing; nothing is done"
RETYPED = (
    "column {} is of type {} now, and was of type {} when the newest version was made; nothing is done. People who "
    "are there would look missing. {}"
)

LEAVERS = (
    "{} of the newest version left. `qblock erase SPEC --missing --now` takes out everybody whom the source has no "
    "more, with their whole joint cells. It says first how many people these are. "
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
        raise Refused(EMPTY.format(no_rows(spec)))
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
    t, rows = crosswalk.tables.row, candidate.rows
    versions = [v.key.version for v in recorded(crosswalk, spec.release) if v.key != candidate.about.key]
    query = sa.select(sa.func.count(sa.distinct(t.c.entity))).where(
        t.c.release == spec.release,
        t.c.version == max(versions, default=0),
        t.c.shown == PUBLISHED,
        t.c.entity.not_in(sa.select(rows.c.entity)),
        t.c.entity.not_in(crosswalk.gone(spec.release)),
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
        return crosswalk.gone(release)
    who = owner(row.c.entity)
    seen = sa.select(who).where(row.c.release == release, row.c.version == current, row.c.shown == PUBLISHED)
    withdrawn = (t.c.release == release, t.c.state == OUT, t.c.why.in_((WITHDRAWN, CELL)))
    return sa.select(t.c.entity).where(*withdrawn, t.c.entity.not_in(seen))


NEW, MISSED = "waiting", "gone"
"""What is kept from run to run: who is in the source and in no version, and whom the newest one shows and the source
has no more."""
ONE_IN = 5
"""More than one in so many of those shown who left, or who came: then a person has to confirm it."""


@dataclass(frozen=True)
class Turnover:
    """How many people left and came since the run before, compared with those whom the newest version shows.

    An entity column that is recoded makes everybody look new: nobody is in two versions then, every joint cell is of
    one version, and the check of versions together is void. So a run counts who left and who came before it lets
    anybody in. Each run keeps the digests, since the thirty who wait today may be others than the thirty of yesterday;
    whoever is kept there does not count again. Every run that passes here keeps them, whatever becomes of it after
    that: a release that is refused each week counts each week's people once. A run that is refused here keeps nothing,
    so that the next one counts the same people again. Who is set apart (cohorts that failed, withdrawals) never counts,
    nor does who moves, being in source and version.

    version: the newest one, or None before the first; shown: the people whom it shows; went, came: since the run
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
    def replaced(self) -> bool:
        """Whether nearly everybody is gone: no people leave like that, and nobody may confirm it."""
        return self.too_many and 10 * self.went >= 9 * self.shown

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
        shown, everybody = sa.select(t.row.c.entity).where(*of_newest), _ever_known(crosswalk, release, versions)
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
    came, waits = _since(crosswalk, waiting, release, NEW)
    went, left = _since(crosswalk, gone, release, MISSED)
    number = _number(crosswalk, shown)
    same = not (came or went or waits or left)
    digests = [None if same else own.fetch(sa.select(table.c.entity)) for table in (waiting, gone)]
    for table in (now, waiting, gone):
        own.drop(table)
    return Turnover(newest, number, went, came, *digests)


def keep_turnover(crosswalk: Crosswalk, release: str, counted: Turnover) -> None:
    """Keep who waits and who is gone for the next run, in a transaction of its own: it outlasts a refused run."""
    t = crosswalk.tables.turnover
    if counted.waiting is None or counted.gone is None:
        return
    clear(crosswalk, t, release)
    for state, digests in ((NEW, counted.waiting), (MISSED, counted.gone)):
        loaded = crosswalk.own.load(fresh_name(), digests)
        same = [as_text(text) for text in (release, state)]
        query = sa.select(loaded.c.entity, *same)
        crosswalk.write(sa.insert(t).from_select(["entity", "release", "state"], query), release)
        crosswalk.own.drop(loaded)
    pad(crosswalk, t, release, state=NEW)


def _ever_known(crosswalk: Crosswalk, release: str, versions: Collection[int]) -> Query:
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
