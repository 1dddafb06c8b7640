"""Units: a person in a block, where people have several rows (`count: entities`), and bundles: all rows of a unit.

The crosswalk knows a unit by the digest of its person, followed by one of the block's labels. A bundle is one text,
with the texts of the rows in an order that the database gives them, so that equal bundles are equal texts.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from qblock.versions.crosswalk import HEXADECIMAL, decoded
from qblock.warehouse.protocol import Session

NAME = 16
"""Hexadecimal digits that stand for a block."""
ESCAPE, SEPARATOR = chr(30), chr(29)
_ESCAPE, _SEPARATOR = sa.literal_column("chr(30)", sa.Text), sa.literal_column("chr(29)", sa.Text)

Sets = tuple[frozenset[str | None], ...]
"""For each sensitive attribute the values that somebody has of it."""


def block_name(label: str) -> str:
    """What stands for a block in the names of its units. label: its labels as a JSON list."""
    return hashlib.sha256(label.encode()).hexdigest()[:NAME]


def owner(unit: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The digest of the person, of a unit as of a person."""
    return sa.func.left(unit, HEXADECIMAL, type_=sa.Text)


def owner_of(unit: str) -> str:
    return unit[:HEXADECIMAL]


def bundle(session: Session, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The rows of a group as one text (`row_of`, `rows_of`)."""
    escaped = sa.func.replace(text, _ESCAPE, _ESCAPE.concat("0"))
    row = sa.func.replace(escaped, _SEPARATOR, _ESCAPE.concat("1"), type_=sa.Text)
    return sa.func.string_agg(row, _SEPARATOR, type_=sa.Text).aggregate_order_by(session.bytewise(row))


def size(text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """How many rows a bundle has."""
    without = sa.func.replace(text, _SEPARATOR, sa.literal_column("''"))
    return sa.func.length(text) - sa.func.length(without) + 1


def row_of(text: sa.ColumnElement[Any], number: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """One of the rows of a bundle; the first is 1."""
    part = sa.func.split_part(text, _SEPARATOR, sa.cast(number, sa.Integer), type_=sa.Text)
    first = sa.func.replace(part, _ESCAPE.concat("1"), _SEPARATOR)
    return sa.func.replace(first, _ESCAPE.concat("0"), _ESCAPE, type_=sa.Text)


def rows_of(text: str) -> list[str]:
    """The rows of a bundle."""
    return [row.replace(f"{ESCAPE}1", SEPARATOR).replace(f"{ESCAPE}0", ESCAPE) for row in text.split(SEPARATOR)]


def sets_of(rows: Sequence[Sequence[str | None]], attributes: int) -> Sets:
    """The values of each of the first attributes in some rows."""
    return tuple(frozenset(row[i] for row in rows) for i in range(attributes))


def kept_sets(text: str, attributes: int) -> Sets:
    """The sensitive values in a bundle as the crosswalk proper keeps it."""
    return sets_of([decoded(row) for row in rows_of(text)], attributes)


def with_rows(labels: Sequence[Any], n: int) -> tuple[Any, ...]:
    """The labels of a block of people who have so many rows there."""
    return (*labels, str(n))


def grew(before: str, after: str) -> bool:
    """Whether a bundle has all rows that it had before, and more."""
    old, new = Counter(rows_of(before)), Counter(rows_of(after))
    return old < new
