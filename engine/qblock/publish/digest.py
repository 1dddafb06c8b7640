"""The content digest of a version: of its rows in no order, the same on every engine."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa

from qblock.ledger.events import canonical
from qblock.ledger.kept import PublishedColumn
from qblock.warehouse.protocol import Session, TableName
from qblock.warehouse.queries import Query

PREFIX = 3
"""Hexadecimal digits by which row digests are grouped: 4,096 sorted lists of them, however many rows there are."""


def content_digest(session: Session, rows: sa.FromClause, columns: Sequence[PublishedColumn]) -> str:
    """sha256 as hexadecimal text over column names and the sorted digests of all rows.

    A row's digest is the sha256 of the texts of its values, each with its length in bytes, so that no two different
    rows read the same; NULL differs from every text. Raises what the database raises.
    """
    groups = session.fetch(digests(session, rows, columns)).to_pylist()
    buckets = sorted([row["prefix"], row["n"], row["digest"]] for row in groups)
    content = {"columns": [c.name for c in columns], "rows": sum(b[1] for b in buckets), "buckets": buckets}
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def relation_digest(session: Session, table: TableName, without: Collection[str] = ()) -> str:
    """The content digest of a table or view as it is; without: columns that are not published."""
    rows = session.relation(table)
    columns = [
        PublishedColumn(column.name, "insensitive", column.type, column.kind)
        for column in session.columns(table).values()
        if column.name in rows.c and column.name not in without
    ]
    return content_digest(session, rows, columns)


def digests(session: Session, rows: sa.FromClause, columns: Sequence[PublishedColumn]) -> Query:
    """The statement: one digest for all row digests that begin alike."""
    encoded: sa.ColumnElement[Any] = sa.literal_column("''")
    for column in columns:
        text = session.text_of(rows.c[column.name], column.kind)
        sized = sa.literal_column("'V'").concat(sa.cast(session.byte_length(text), sa.Text)).concat(":").concat(text)
        encoded = encoded.concat(sa.func.coalesce(sized, sa.literal_column("'N'")))
    row = sa.select(session.sha256(encoded).label("h")).select_from(rows).subquery("qblock_rows")
    prefix = sa.func.substr(row.c.h, 1, PREFIX)
    together = sa.func.string_agg(row.c.h, sa.literal_column("''")).aggregate_order_by(session.bytewise(row.c.h))
    return sa.select(
        prefix.label("prefix"), sa.func.count().label("n"), session.sha256(together).label("digest")
    ).group_by(prefix)
