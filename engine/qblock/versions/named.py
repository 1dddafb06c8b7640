"""People whom somebody names by the text of the entity column: their digests, and whether the names belong to anybody.

A name stands for the person whose text it is exactly: 007 is not the number 7. Whoever is taken out is never
shown again, so a name that may mean somebody else stands for nobody.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import sqlalchemy as sa

from qblock.source.columns import checked_columns
from qblock.spec import Spec
from qblock.versions.crosswalk import Crosswalk, fresh_name
from qblock.versions.excluded import digests_of
from qblock.versions.type_checks import people_of
from qblock.versions.types import First, entity_text_of
from qblock.versions.units import owner
from qblock.versions.versions import first_of, recorded
from qblock.warehouse.protocol import Column, Session, TableName
from qblock.warehouse.texts import canonical_text

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
    wanted = session.load(fresh_name(), pa.table({"entity": pa.array([d for d in digests if d], pa.string())}))
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
    known = crosswalk.own.load(fresh_name(), pa.table({"entity": pa.array([d for d in digests if d], pa.string())}))
    wanted = sa.select(known.c.entity)
    parts = [
        sa.select(owner(t.c.entity).label("entity")).where(t.c.release == release, owner(t.c.entity).in_(wanted))
        for t in crosswalk.tables.of_entities
    ]
    there = set(crosswalk.own.fetch(sa.select(sa.union(*parts).subquery().c.entity))["entity"].to_pylist())
    crosswalk.own.drop(known)
    return there


def _unknown(digests: Digests, there: set[str]) -> int:
    return sum(digest is None or digest not in there for digest in digests)
