"""A new key for the digests by which the crosswalk knows people."""

from __future__ import annotations

import secrets

import sqlalchemy as sa

from qblock.errors import QblockError
from qblock.joint.crosswalk import Book, key_of, keyed


def new_key(book: Book) -> tuple[int, dict[str, int]]:
    """Give the crosswalk a further key; returns its number, and how many people of each release were moved to it.

    Each digest becomes the digest of itself under the new key, so that nobody has to be in the source for it; the
    older keys are kept, for the digests of whoever comes. In the transaction of the book, while nothing else runs in
    its place. Rolled signatures and joint cells are made of labels alone, so they stay as they are.
    """
    t, own = book.tables, book.own
    number = book.key_numbers()[-1] + 1
    before = people(book)
    own.run(sa.insert(t.key).values(id=number, secret=secrets.token_hex(32)))
    for table in t.of_entities:
        own.run(sa.update(table).values(entity=keyed(own.engine, table.c.entity, [key_of(t.key, number)])))
    if people(book) != before:
        raise QblockError("the crosswalk knows other people under its new key: it was altered, and stays as it was")
    return number, before


def people(book: Book) -> dict[str, int]:
    """How many people the crosswalk knows of each release that it holds."""
    t = book.tables
    everybody = sa.union(*(sa.select(table.c.release, table.c.entity) for table in t.of_entities)).subquery("everybody")
    query = sa.select(everybody.c.release, sa.func.count().label("n")).group_by(everybody.c.release)
    return {row["release"]: int(row["n"]) for row in book.own.fetch(query.order_by(everybody.c.release)).to_pylist()}
