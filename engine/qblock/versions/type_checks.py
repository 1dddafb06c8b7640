"""Whether a source's columns still have the types of the versions published: else unchanged data would look changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa

from qblock.errors import Refused
from qblock.spec import Spec
from qblock.versions.crosswalk import Crosswalk
from qblock.versions.gate import members
from qblock.versions.types import First, Types, entity_text, named
from qblock.versions.versions import UNPROTECTED, RecordedVersion, first_of, recorded
from qblock.warehouse.protocol import Column, Session
from qblock.warehouse.texts import writes_alike
from qblock.warehouse.values import type_class

RETYPE = "`qblock ledger retype SPEC`"


def check_types(crosswalk: Crosswalk, spec: Spec, columns: Mapping[str, Column], shown: Collection[int]) -> None:
    """Refuse columns whose type writes values otherwise than that of the newest version, before the source is scanned.

    Raises Refused naming the column, both types and the remedy.
    """
    versions = recorded(crosswalk)
    own = [v for v in versions if v.key.release == spec.release]
    check_known_types(spec, own, columns, shown)
    _check_audience(crosswalk, spec, columns, versions)


def check_known_types(
    spec: Spec, versions: Sequence[RecordedVersion], columns: Mapping[str, Column], shown: Collection[int]
) -> None:
    """Refuse columns whose type writes values otherwise than the one kept with the newest version published: nothing of
    the source is read.

    versions: of the release. Raises Refused naming the column, both types and the remedy.
    """
    own = [v for v in versions if v.key.version in shown]
    problems = [
        f"column {name} is of type {now} now, and was of type {before} when version {own[-1].key.version} of release "
        f"{spec.release} was made"
        for name, before, now in (changed(spec, own[-1].types, columns) if own else ())
    ]
    if problems:
        raise Refused(
            f"{'; '.join(problems)}: values that did not change may read differently, and versions could not be "
            f"checked together; nothing is published. {remedy(spec)}"
        )


def remedy(spec: Spec) -> str:
    """What to do about a column of another type."""
    # What is kept of several rows of somebody is not converted.
    return "Give the column its type again" + ("" if spec.bundles else f", or convert what is kept of it: {RETYPE}")


def changed(spec: Spec, known: Types, columns: Mapping[str, Column]) -> list[tuple[str, str, str]]:
    """Name, type before and type of now of each column whose type writes values otherwise."""
    now = {name: named(column) for name, column in columns.items()}
    names = dict.fromkeys((*spec.quasi_identifiers, *spec.sensitives))
    pairs = [(name, known.columns[name], now[name]) for name in names if name in known.columns]
    if spec.entity is not None:
        pairs.insert(0, (spec.entity, known.columns[known.entity], now[spec.entity]))
    by_name = {name: (before, column) for name, before, column in reversed(pairs)}
    return [
        (name, before.type, column.type)
        for name, (before, column) in reversed(by_name.items())
        if type_class(before.base or before.type) != type_class(column.base or column.type)
    ]


def cannot_hold(column: Column) -> Refused:
    """The refusal of a column whose type has become too narrow: a cast in a query would fail, quote a value or round
    it."""
    return Refused(
        f"column {column.name} has become {column.type}, and values that were published are not values of that type; "
        "nothing is published. Give the column its type again"
    )


def check_somebody(
    crosswalk: Crosswalk,
    spec: Spec,
    session: Session,
    table: sa.TableClause,
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
            f"{spec.entity}, whose values or type have changed: versions cannot be checked together; give the column "
            f"its former values again, or write {UNPROTECTED}"
        )


def people_of(
    crosswalk: Crosswalk,
    spec: Spec,
    session: Session,
    table: sa.TableClause,
    columns: Mapping[str, Column],
    first: First,
) -> sa.FromClause:
    """Everybody in the source, one digest (entity) for each row, with entities written in their first type."""
    assert spec.entity is not None
    column = columns[spec.entity]
    text = entity_text(session, session.comparable(table.c[spec.entity], column), column, first)
    return sa.select(crosswalk.entity(text, table).label("entity")).select_from(table).subquery("qblock_who")


def _check_audience(
    crosswalk: Crosswalk, spec: Spec, columns: Mapping[str, Column], versions: Sequence[RecordedVersion]
) -> None:
    """The releases that the same readers may hold must write people and values as this one does."""
    first = first_of(crosswalk, versions, spec, columns)
    audience = {v.key.release: v.types for v in members(spec, versions)}
    for release, theirs in audience.items():
        if release == spec.release:
            continue
        if first.hashed != theirs.first.hashed:
            raise Refused(
                f"release {release}, which the same readers may hold, knows people by digests that cannot be compared "
                f"with those of release {spec.release}: one of the two is made from a cluster, which is given no keys; "
                "nothing is published. Release both from one engine, or write "
                f"{UNPROTECTED}"
            )
        here, there = first.column, theirs.first.column
        if not writes_alike(here, there):
            raise _disagree(f"people by column {here.name}", spec.release, here.type, release, there.type)
        for name in spec.sensitives:
            if name in theirs.columns and not writes_alike(columns[name], theirs.columns[name]):
                types = named(columns[name]).type, theirs.columns[name].type
                raise _disagree(f"values of column {name}", spec.release, types[0], release, types[1])


def _disagree(what: str, release: str, ours: str, other: str, theirs: str) -> Refused:
    return Refused(
        f"release {release} writes {what} in type {ours}, and release {other}, which the same readers may hold, in "
        f"type {theirs}: what is the same would look different, and versions could not be checked together; nothing is "
        f"published. Give both columns one type, and convert what is kept of the one that changes: {RETYPE}"
    )
