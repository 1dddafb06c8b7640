"""Texts of several columns, or rows, as one text that SQL can split again; digests of people and of their units.

Three forms are kept: `encoded`, of the sensitive values in the crosswalk proper, which SQL only compares; `join_texts`,
of columns that SQL takes apart again; and `bundle`, of the rows of a unit, each of which is of one of these two forms.

A unit is a person in a block, where people have several rows (`count: entities`), and a bundle all rows of a unit. The
crosswalk knows a unit by the digest of its person, followed by one of the block's labels. Of whoever comes in a cohort
no block is known before: there a unit is a person at a leaf, all values of the quasi-identifiers as the source has
them, and a digest of the leaf and the person follows. The rows of a bundle are in an order that the database gives
them, so that equal bundles are equal texts.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from qblock.engines.session import Session
from qblock.source import SourceTable
from qblock.versions.crosswalk import HEXADECIMAL

ESCAPE, SEPARATOR, NEXT_ROW = chr(30), chr(31), chr(29)
_ESCAPE, _SEPARATOR, _NEXT_ROW = (sa.literal_column(f"chr({code})", sa.Text) for code in (30, 31, 29))
NAME = 16
"""Hexadecimal digits that stand for a block in the name of a unit."""
Sets = tuple[frozenset[str | None], ...]
"""For each sensitive attribute the values that somebody has of it."""


def encoded(texts: Sequence[sa.ColumnElement[Any]]) -> sa.ColumnElement[Any]:
    """Several texts that may be NULL as one text, which no other texts yield (`decoded` reads it)."""
    result: sa.ColumnElement[Any] = sa.literal_column("''", sa.Text)
    for text in texts:
        length = sa.cast(sa.func.length(text), sa.Text)
        sized = sa.literal_column("'V'", sa.Text).concat(length).concat(":").concat(text)
        result = result.concat(sa.func.coalesce(sized, sa.literal_column("'N'", sa.Text)))
    return result


def decoded(text: str) -> tuple[str | None, ...]:
    """The texts that `encoded` joined."""
    texts: list[str | None] = []
    at = 0
    while at < len(text):
        if text[at] == "N":
            texts.append(None)
            at += 1
            continue
        length, _, _ = text[at + 1 :].partition(":")
        start = at + 2 + len(length)
        texts.append(text[start : start + int(length)])
        at = start + int(length)
    return tuple(texts)


def encoded_texts(texts: Sequence[str | None]) -> str:
    """As `encoded`, in Python."""
    return "".join("N" if text is None else f"V{len(text)}:{text}" for text in texts)


def texts_of(source: SourceTable, names: Sequence[str]) -> list[sa.ColumnElement[Any]]:
    """The canonical texts of columns of a source."""
    return [source.session.text_of(source.expression(name), source.columns[name].kind) for name in names]


def join_texts(texts: Sequence[sa.ColumnElement[Any]]) -> sa.ColumnElement[Any]:
    """Texts that may be NULL as one text that SQL can split again (`part_of`)."""
    result: sa.ColumnElement[Any] = sa.literal_column("''", sa.Text)
    for i, text in enumerate(texts):
        part = sa.func.coalesce(_escaped(text, _SEPARATOR), _ESCAPE.concat("N"))
        result = result.concat(_SEPARATOR).concat(part) if i else part
    return result


def part_of(text: sa.ColumnElement[Any], position: int) -> sa.ColumnElement[Any]:
    """One of the texts that `join_texts` put into one; the first is 0."""
    part = sa.func.split_part(text, _SEPARATOR, position + 1, type_=sa.Text)
    return sa.case((part == _ESCAPE.concat("N"), sa.null()), else_=_unescaped(part, _SEPARATOR))


def joined_text(texts: Sequence[str | None]) -> str:
    """As `join_texts`, in Python."""
    parts = [
        f"{ESCAPE}N" if text is None else text.replace(ESCAPE, f"{ESCAPE}0").replace(SEPARATOR, f"{ESCAPE}1")
        for text in texts
    ]
    return SEPARATOR.join(parts)


def split_text(text: str) -> list[str | None]:
    """The texts that `join_texts` put into one."""
    plain = [None if part == f"{ESCAPE}N" else part for part in text.split(SEPARATOR)]
    return [p if p is None else p.replace(f"{ESCAPE}1", SEPARATOR).replace(f"{ESCAPE}0", ESCAPE) for p in plain]


def bundle(session: Session, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The rows of a group as one text (`row_of`, `rows_of`)."""
    row = _escaped(text, _NEXT_ROW)
    return sa.func.string_agg(row, _NEXT_ROW, type_=sa.Text).aggregate_order_by(session.bytewise(row))


def size(text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """How many rows a bundle has."""
    without = sa.func.replace(text, _NEXT_ROW, sa.literal_column("''"))
    return sa.func.length(text) - sa.func.length(without) + 1


def row_of(text: sa.ColumnElement[Any], number: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """One of the rows of a bundle; the first is 1."""
    return _unescaped(sa.func.split_part(text, _NEXT_ROW, sa.cast(number, sa.Integer), type_=sa.Text), _NEXT_ROW)


def rows_of(text: str) -> list[str]:
    """The rows of a bundle."""
    return [row.replace(f"{ESCAPE}1", NEXT_ROW).replace(f"{ESCAPE}0", ESCAPE) for row in text.split(NEXT_ROW)]


def _escaped(text: sa.ColumnElement[Any], separator: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    first = sa.func.replace(text, _ESCAPE, _ESCAPE.concat("0"))
    return sa.func.replace(first, separator, _ESCAPE.concat("1"), type_=sa.Text)


def _unescaped(part: sa.ColumnElement[Any], separator: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    first = sa.func.replace(part, _ESCAPE.concat("1"), separator)
    return sa.func.replace(first, _ESCAPE.concat("0"), _ESCAPE, type_=sa.Text)


def sets_of(rows: Sequence[Sequence[str | None]], attributes: int) -> Sets:
    """The values of each of the first attributes in some rows."""
    return tuple(frozenset(row[i] for row in rows) for i in range(attributes))


def kept_sets(text: str, attributes: int) -> Sets:
    """The sensitive values in a bundle as the crosswalk proper keeps it."""
    return sets_of([decoded(row) for row in rows_of(text)], attributes)


def grew(before: str, after: str) -> bool:
    """Whether a bundle has all rows that it had before, and more."""
    return Counter(rows_of(before)) < Counter(rows_of(after))


def with_rows(labels: Sequence[Any], n: int) -> tuple[Any, ...]:
    """The labels of a block of people who have so many rows there."""
    return (*labels, str(n))


def block_name(label: str) -> str:
    """What stands for a block in the names of its units. label: its labels as a JSON list."""
    return hashlib.sha256(label.encode()).hexdigest()[:NAME]


AT_LEAF = "x"
"""Begins the names of leaves, in which digits follow that no name of a block begins with."""


def leaf_name(digest: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """What stands for a leaf in the name of a unit, from a digest of `NAME - 1` digits."""
    return sa.literal_column(f"'{AT_LEAF}'", sa.Text).concat(digest)


def name_of(unit: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """What follows the digest of the person in the name of a unit."""
    return sa.func.substr(unit, HEXADECIMAL + 1, type_=sa.Text)


def owner(unit: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The digest of the person, of a unit as of a person."""
    return sa.func.left(unit, HEXADECIMAL, type_=sa.Text)


def owner_of(unit: str) -> str:
    """As `owner`, in Python."""
    return unit[:HEXADECIMAL]
