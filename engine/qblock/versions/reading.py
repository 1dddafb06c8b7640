"""What is in the crosswalk, without writing to it: for checks before and during a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa

from qblock.errors import Busy
from qblock.ledger import schema
from qblock.ledger.stamps import SHOWN
from qblock.ledger.store import Store
from qblock.versions.excluded import OUT
from qblock.versions.tables import tables
from qblock.versions.withdrawals import CELL, WITHDRAWN


@dataclass(frozen=True)
class Contents:
    """versions: of a release, with their stamps; out: how many people have left it; there:
    whether there is a crosswalk at all."""

    versions: Mapping[int, str | None] = field(default_factory=dict)
    out: int = 0
    there: bool = True


READ = ("crosswalk_version", "crosswalk_apart")
GONE = Contents(there=False)


def contents(place: Store, release: str, seconds: float) -> Contents | None:
    """What the crosswalk of a place holds of a release; nothing where there is no crosswalk.

    seconds: to wait for another process that has the DuckDB file open. None where it is not known what is in it: the
    login lacks permission to read it, or (with 0 seconds) another process has it open. Raises Busy after waiting in
    vain.
    """
    if not place.crosswalk.exists:
        return GONE
    try:
        with place.crosswalk.opened(read_only=True, seconds=seconds) as connection:
            if schema.known_revision(connection) is None:
                return GONE
            readable = place.may_read(connection, READ)
            if not readable:
                return None if readable is None else GONE
            return _contents(connection, release)
    except Busy:
        if seconds:
            raise
        return None


def _contents(connection: sa.Connection, release: str) -> Contents:
    t = tables(connection.dialect.name)
    query = sa.select(t.version.c.version, t.version.c.stamp).where(t.version.c.release == release)
    rows = connection.execute(query)
    versions = {row.version: row.stamp for row in rows}
    gone = sa.and_(t.apart.c.release == release, t.apart.c.state == OUT, t.apart.c.why.in_((WITHDRAWN, CELL)))
    out = connection.scalar(sa.select(sa.func.count(sa.distinct(t.apart.c.entity))).where(gone))
    return Contents(versions, int(out or 0))


def lacking(place: Store, versions: list[int], *, there: bool) -> str:
    """What is reported about versions whose part of the crosswalk is missing."""
    named = ", ".join(map(str, versions[:SHOWN])) + (", ..." if len(versions) > SHOWN else "")
    said = f"the ledger has shown version {named} checked together with others, and the crosswalk lacks it"
    return said if there else f"{said}: {place.crosswalk_named} gone"
