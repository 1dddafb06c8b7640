"""The views that qblock made on PostgreSQL, in `qblock.view`: whose they are, and by what they are known again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from qblock.ledger.store import SCHEMA
from qblock.warehouse import postgresql_session

TABLE = sa.Table(
    "view",
    sa.MetaData(schema=SCHEMA),
    sa.Column("schema", sa.Text),
    sa.Column("name", sa.Text),
    sa.Column("release", sa.Text),
    sa.Column("role", sa.Text),
    sa.Column("object", sa.BigInteger),
    sa.Column("digest", sa.Text),
    sa.Column("comment", sa.Text),
)
KNOWN = "qblock_views_are_kept"


@dataclass(frozen=True)
class Row:
    """A view: its place, its release and its role there, its oid, the digest of how it was made, and its comment."""

    schema: str
    name: str
    release: str
    role: str
    object: int
    digest: str
    comment: str


def readable(connection: sa.Connection) -> bool:
    """Whether the ledger has come to keep them, and this login may read it; asked until it is so."""
    if not connection.info.get(KNOWN):
        connection.info[KNOWN] = connection.scalar(postgresql_session.statement("views_readable")) is not None
    return bool(connection.info[KNOWN])


def rows(connection: sa.Connection, schema: str, names: Sequence[str]) -> dict[str, Row]:
    """What is known of views by name; none of one that qblock did not make."""
    return {row.name: row for row in _rows(connection, TABLE.c.schema == schema, TABLE.c.name.in_(names))}


def rows_of(connection: sa.Connection, release: str) -> list[Row]:
    """The views of a release."""
    return _rows(connection, TABLE.c.release == release)


def _rows(connection: sa.Connection, *where: sa.ColumnElement[bool]) -> list[Row]:
    if not readable(connection):
        return []
    return [Row(**row._mapping) for row in connection.execute(sa.select(TABLE).where(*where))]


def write(connection: sa.Connection, row: Row) -> None:
    """Write a view down, in the place of what is known of it."""
    forget(connection, row.schema, row.name)
    connection.execute(TABLE.insert(), [asdict(row)])


def forget(connection: sa.Connection, schema: str, name: str) -> None:
    """Forget a view that is gone, or has another name."""
    connection.execute(TABLE.delete().where(TABLE.c.schema == schema, TABLE.c.name == name))


def own(connection: sa.Connection) -> list[int]:
    """The oids of views that this login made as views of releases: what they show is what is published."""
    if not readable(connection):
        return []
    return [int(oid) for oid in connection.scalars(postgresql_session.statement("own_views"))]
