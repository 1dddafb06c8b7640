"""The content digest of a version: of its rows in no order, the same on every engine."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa

from qblock.engines.queries import Query, whole
from qblock.engines.session import Session
from qblock.engines.tables import Column, TableName
from qblock.ledger.events import canonical
from qblock.ledger.kept import PublishedColumn

PREFIX = 3
"""Hexadecimal digits by which row digests are grouped: 4,096 sorted lists of them, however many rows there are."""


def content_digest(
    session: Session,
    rows: sa.FromClause,
    columns: Sequence[PublishedColumn],
    *,
    repeated: bool = True,
    number: str | None = None,
) -> str:
    """sha256 as hexadecimal text over column names and the sorted digests of all rows.

    A row's digest is the sha256 of the texts of its values, each with its length in bytes, so that no two different
    rows read the same; NULL differs from every text. repeated: whether many rows may be alike, as those of a release
    are; the digest is the same. number: the column that says how many rows each one stands for. Raises what the
    database raises.
    """
    groups = session.fetch(digests(session, rows, columns, repeated=repeated, number=number)).to_pylist()
    buckets = sorted([row["prefix"], row["n"], row["digest"]] for row in groups)
    content = {"columns": [c.name for c in columns], "rows": sum(b[1] for b in buckets), "buckets": buckets}
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def relation_digest(session: Session, table: TableName, without: Collection[str] = (), *, repeated: bool = True) -> str:
    """The content digest of a table or view as it is; without: columns that are not published."""
    rows = session.relation(table)
    columns = [
        PublishedColumn(column.name, "insensitive", column.type, column.kind)
        for column in session.columns(table).values()
        if column.name in rows.c and column.name not in without
    ]
    return content_digest(session, rows, columns, repeated=repeated)


def relation_mark(session: Session, table: TableName, without: Collection[str] = ()) -> list[str]:
    """Tells whether a table or view has the rows that it had, in no order. Private, and nothing but whether a run may
    end early goes by it; without: columns that are not looked at.

    Where the engine has a hash of 64 bits: how many rows there are, and the sum of their hashes, in which a row counts
    as often as it is there. Each is hashed once more: engines combine the columns of a row by XOR, and where two rows
    have swapped a value, one sum of such numbers in 10^8 stays the same. So other rows are taken for those before with
    a chance of 1 in 2^64, and only until anything else changes. Elsewhere it is the content digest.
    """
    if session.row_hash is None:
        return [relation_digest(session, table, without, repeated=False)]
    name, library = session.row_hash
    rows, of_row = session.relation(table), getattr(sa.func, name)
    values = [
        session.text_of(rows.c[column.name], column.kind) if _is_read_as_text(column) else rows.c[column.name]
        for column in session.columns(table).values()
        if column.name in rows.c and column.name not in without
    ]
    total = sa.cast(sa.func.sum(of_row(of_row(*values))), sa.Text).label("total")
    (row,) = session.fetch(sa.select(sa.func.count().label("n"), total).select_from(rows)).to_pylist()
    return [str(row["n"]), str(row["total"]), library]


def _is_read_as_text(column: Column) -> bool:
    """Whether a value may have the hash of one that is written otherwise, as a month has that of 30 days."""
    return column.kind == "text" and column.type != column.compare_as


def digests(
    session: Session,
    rows: sa.FromClause,
    columns: Sequence[PublishedColumn],
    *,
    repeated: bool,
    number: str | None = None,
) -> Query:
    """The statement: one digest for all row digests that begin alike. repeated: whether rows that are alike are hashed
    and sorted once; number: as of `content_digest`."""
    texts = [session.text_of(rows.c[column.name], column.kind).label(f"t{i}") for i, column in enumerate(columns)]
    numbers = [] if number is None else [rows.c[number].label("n")]
    # Each text is written once: that of a double is long, and to plan it may take longer than to count a small table.
    values = sa.select(*texts, *numbers).select_from(rows).subquery("qblock_values")
    text = session.bytewise(_encoded(session, [values.c[text.name] for text in texts])).label("row")
    if number is None:
        written = sa.select(text).select_from(values).subquery()
        counted = whole(sa.func.count()) if repeated else sa.literal_column("1")
        query = sa.select(written.c.row, counted.label("n"))
        query = query.group_by(written.c.row) if repeated else query
    else:
        # Those that are alike all the same come after each other among the sorted ones.
        query = sa.select(text, values.c.n)
    row = query.subquery("qblock_texts")
    hashed = sa.select(session.sha256(row.c.row).label("h"), row.c.n).subquery("qblock_rows")
    h, n = hashed.c.h, hashed.c.n
    each = sa.func.repeat(h, sa.cast(n, sa.Integer), type_=sa.Text) if repeated else h
    together = sa.func.string_agg(each, sa.literal_column("''")).aggregate_order_by(session.bytewise(h))
    prefix = sa.func.substr(h, 1, PREFIX).label("prefix")
    digest = session.sha256(together).label("digest")
    return sa.select(prefix, whole(sa.func.sum(n)).label("n"), digest).group_by(prefix)


def _encoded(session: Session, texts: Sequence[sa.ColumnElement[Any]]) -> sa.ColumnElement[Any]:
    """The texts of a row's values as one."""
    encoded: sa.ColumnElement[Any] = sa.literal_column("''")
    for text in texts:
        sized = sa.literal_column("'V'").concat(sa.cast(session.byte_length(text), sa.Text)).concat(":").concat(text)
        encoded = encoded.concat(sa.func.coalesce(sized, sa.literal_column("'N'")))
    return encoded
