"""Episodes and their signatures: what an audience was shown of a person while the sensitive value stayed the same.

An EPISODE is the longest run of versions in which a person is present with the same sensitive value, and its LABEL in a
version is `P:block` if published, `S:block` if suppressed in a block of k rows or more, else `-`. A JOINT CELL is the
episodes with equal label vectors over all versions that were ever readable. The vectors are kept as rolling digests: a
version that shows something replaces a signature by the digest of it with the version's label, and `-` leaves it as it
is. So the check of a version reads the rolled episodes and the version's own rows, however many versions there were
before.

A row source of a version has the columns entity, block, shown (`P`, `S` or `-`) and value.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from qblock.engines.queries import Query
from qblock.versions.crosswalk import Crosswalk, as_text, digest, fresh_name

Mode = Literal["episodes", "linked"]
PUBLISHED, FAILED, NOTHING = "P", "S", "-"
"""Labels without their block."""


def shown(published: sa.ColumnElement[bool], block_rows: sa.ColumnElement[Any], least: int) -> sa.ColumnElement[str]:
    """The label of a row without its block. least: k, below which a block fails whatever its values are."""
    return sa.case((published, PUBLISHED), (block_rows >= least, FAILED), else_=NOTHING)


@dataclass(frozen=True, order=True)
class VersionKey:
    """A version of a release; its text is part of signatures."""

    release: str
    version: int

    @property
    def text(self) -> str:
        return f"{self.release}:{self.version}"

    @classmethod
    def of_text(cls, text: str) -> VersionKey:
        release, _, version = text.rpartition(":")
        return cls(release, int(version))


def next_episodes(crosswalk: Crosswalk, checked: str, rows: sa.FromClause, version: VersionKey) -> Query:
    """The episodes of a release's check after one more version, one row for each episode of each entity.

    Columns: entity, episode (1, 2, ...), begun (the version in which it began), running (the entity's newest one),
    value, signature, before (the signature without this version), published (1 where this version shows it).
    """
    t = crosswalk.tables.episode
    # Joined by one equality: with more conditions DuckDB compares every row with every other.
    present = sa.case((t.c.running, t.c.entity))
    old = sa.select(t, present.label("present")).where(t.c.release == checked).subquery("qblock_old")
    newest = sa.select(t).where(t.c.release == checked, t.c.running).subquery("qblock_newest")
    same = rows.c.value == old.c.value
    kept = sa.select(
        old.c.entity,
        old.c.episode,
        old.c.begun,
        sa.and_(old.c.running, sa.func.coalesce(same, sa.true())).label("running"),
        old.c.value,
        sa.case((same, _signature(crosswalk, old.c.signature, rows, version)), else_=old.c.signature).label(
            "signature"
        ),
        old.c.signature.label("before"),
        sa.case((sa.and_(same, rows.c.shown == PUBLISHED), 1), else_=0).label("published"),
    ).select_from(old.outerjoin(rows, rows.c.entity == old.c.present))
    none = sa.literal_column("''", sa.Text)
    begun = (
        sa.select(
            rows.c.entity,
            (sa.func.coalesce(newest.c.episode, 0) + 1).label("episode"),
            as_text(version.text).label("begun"),
            sa.true().label("running"),
            rows.c.value,
            _signature(crosswalk, none, rows, version).label("signature"),
            none.label("before"),
            sa.case((rows.c.shown == PUBLISHED, 1), else_=0).label("published"),
        )
        .select_from(rows.outerjoin(newest, newest.c.entity == rows.c.entity))
        .where(sa.or_(newest.c.value.is_(None), rows.c.value != newest.c.value))
    )
    both = sa.union_all(kept, begun).subquery("qblock_next")
    return sa.select(*both.c)


def _signature(
    crosswalk: Crosswalk, before: sa.ColumnElement[Any], rows: sa.FromClause, version: VersionKey
) -> sa.ColumnElement[Any]:
    label = rows.c.shown.concat(":").concat(sa.cast(rows.c.block, sa.Text))
    after = digest(crosswalk.own, before.concat(as_text(f"|{version.text}|")).concat(label))
    return sa.case((rows.c.shown == NOTHING, before), else_=after)


def episodes(crosswalk: Crosswalk, checked: str) -> Query:
    """The rolled episodes of a release's check, in the columns of `next_episodes`."""
    old = crosswalk.tables.episode
    return sa.select(
        old.c.entity,
        old.c.episode,
        old.c.begun,
        old.c.running,
        old.c.value,
        old.c.signature,
        old.c.signature.label("before"),
        sa.literal_column("0").label("published"),
    ).where(old.c.release == checked)


def placed(crosswalk: Crosswalk, query: Query, mode: Mode) -> sa.Subquery:
    """Episodes with the joint cell that they are in: the columns of `next_episodes`, and cell and part.

    mode "episodes": the cell is the signature. "linked": cells are persons by their whole label vector and by the steps
    that changed the value (J1-linked, releases.md section 2); each of their episodes is a part of its own.
    """
    rows = query.subquery("qblock_episodes")
    if mode == "episodes":
        return sa.select(*rows.c, rows.c.signature.label("cell"), sa.literal_column("0").label("part")).subquery()
    # The first episode's beginning is not a change; the labels show who comes late.
    step = sa.case((rows.c.episode > 1, rows.c.begun), else_="").concat("|").concat(rows.c.signature)
    whole = sa.func.string_agg(step, sa.literal_column("';'")).aggregate_order_by(rows.c.episode)
    person = (
        sa.select(rows.c.entity, digest(crosswalk.own, whole).label("cell")).group_by(rows.c.entity).subquery("persons")
    )
    joined = rows.join(person, person.c.entity == rows.c.entity)
    return sa.select(*rows.c, person.c.cell, rows.c.episode.label("part")).select_from(joined).subquery()


def joint_cells(crosswalk: Crosswalk, checked: str, query: Query, mode: Mode) -> Query:
    """One GROUP BY over (joint cell, sensitive value), for the cells that were ever shown.

    Columns: cell, part, value, n, before (the earlier versions that show it, as text), published (1: the newest does),
    latest (the highest number of an episode of anybody: with 1 both modes have the same cells).
    """
    rows = placed(crosswalk, query, mode)
    grouped = (
        sa.select(
            rows.c.cell,
            rows.c.part,
            rows.c.value,
            sa.func.count().label("n"),
            sa.func.max(rows.c.before).label("before"),
            sa.func.max(rows.c.published).label("published"),
            sa.func.max(sa.func.max(rows.c.episode)).over().label("latest"),
        )
        .group_by(rows.c.cell, rows.c.part, rows.c.value)
        .subquery("qblock_cells")
    )
    known = crosswalk.tables.signature
    earlier = sa.func.coalesce(known.c.shown, "")
    same = sa.and_(known.c.signature == grouped.c.before, known.c.release == checked)
    return (
        sa.select(
            grouped.c.cell,
            grouped.c.part,
            grouped.c.value,
            grouped.c.n,
            earlier.label("before"),
            grouped.c.published,
            grouped.c.latest,
        )
        .select_from(grouped.outerjoin(known, same))
        .where(sa.or_(grouped.c.published == 1, earlier != ""))
    )


def roll(crosswalk: Crosswalk, checked: str, versions: Sequence[VersionKey]) -> None:
    """Bring the episodes of a release's check up to these versions, oldest first.

    What is rolled already is kept where it is the beginning of the list; else (a version was discarded, another release
    joined the audience) the episodes are rolled again from the crosswalk.
    """
    t, own = crosswalk.tables, crosswalk.own
    rolled = own.scalar(sa.select(t.rolled.c.versions).where(t.rolled.c.release == checked))
    done = [VersionKey.of_text(text) for text in json.loads(rolled)] if rolled else []
    if not done or done != list(versions[: len(done)]):
        for table in (t.episode, t.signature):
            crosswalk.write(sa.delete(table).where(table.c.release == checked), checked)
        done = []
    for version in versions[len(done) :]:
        own_rows = sa.select(t.row).where(t.row.c.release == version.release, t.row.c.version == version.version)
        _append(crosswalk, checked, own_rows.subquery("qblock_rows"), version)
    keys = json.dumps([version.text for version in versions])
    if rolled is None and versions:
        crosswalk.write(sa.insert(t.rolled).values(release=checked, versions=keys), checked)
    elif rolled not in (None, keys):
        crosswalk.write(sa.update(t.rolled).where(t.rolled.c.release == checked).values(versions=keys), checked)


def _append(crosswalk: Crosswalk, checked: str, rows: sa.FromClause, version: VersionKey) -> None:
    t, own = crosswalk.tables, crosswalk.own
    following = own.store(fresh_name(), next_episodes(crosswalk, checked, rows, version))
    names = ["entity", "episode", "begun", "running", "value", "signature"]
    release = as_text(checked).label("release")
    shows = sa.select(
        following.c.signature,
        sa.func.max(following.c.before).label("before"),
        sa.func.max(following.c.published).label("published"),
    )
    new = shows.where(following.c.signature != following.c.before).group_by(following.c.signature).subquery("new")
    known = t.signature.alias("known")
    earlier = sa.func.coalesce(known.c.shown, "")
    now = sa.case((new.c.published == 1, earlier.concat(as_text(f"{version.text} "))), else_=earlier)
    signatures = sa.select(release, new.c.signature, now).select_from(
        new.outerjoin(known, sa.and_(known.c.signature == new.c.before, known.c.release == checked))
    )
    crosswalk.write(sa.insert(t.signature).from_select(["release", "signature", "shown"], signatures), checked)
    crosswalk.write(sa.delete(t.episode).where(t.episode.c.release == checked), checked)
    columns = sa.select(release, *(following.c[name] for name in names))
    crosswalk.write(sa.insert(t.episode).from_select(["release", *names], columns), checked)
    own.drop(following)
