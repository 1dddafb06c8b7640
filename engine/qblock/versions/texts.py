"""Texts of several columns as one text that SQL can split again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from qblock.source import SourceTable

ESCAPE, SEPARATOR = chr(30), chr(31)
_ESCAPE, _SEPARATOR = sa.literal_column("chr(30)", sa.Text), sa.literal_column("chr(31)", sa.Text)


def texts_of(source: SourceTable, names: Sequence[str]) -> list[sa.ColumnElement[Any]]:
    """The canonical texts of columns of a source."""
    return [source.session.text_of(source.expression(name), source.columns[name].kind) for name in names]


def together(texts: Sequence[sa.ColumnElement[Any]]) -> sa.ColumnElement[Any]:
    """Texts that may be NULL as one text that SQL can split again (`part_of`)."""
    result: sa.ColumnElement[Any] = sa.literal_column("''", sa.Text)
    for i, text in enumerate(texts):
        first = sa.func.replace(text, _ESCAPE, _ESCAPE.concat("0"))
        escaped = sa.func.replace(first, _SEPARATOR, _ESCAPE.concat("1"), type_=sa.Text)
        part = sa.func.coalesce(escaped, _ESCAPE.concat("N"))
        result = result.concat(_SEPARATOR).concat(part) if i else part
    return result


def part_of(place: sa.ColumnElement[Any], position: int) -> sa.ColumnElement[Any]:
    """One of the texts that `together` put into one; the first is 0."""
    part = sa.func.split_part(place, _SEPARATOR, position + 1, type_=sa.Text)
    first = sa.func.replace(part, _ESCAPE.concat("1"), _SEPARATOR)
    whole = sa.func.replace(first, _ESCAPE.concat("0"), _ESCAPE, type_=sa.Text)
    return sa.case((part == _ESCAPE.concat("N"), sa.null()), else_=whole)


def joined_text(texts: Sequence[str | None]) -> str:
    """As `together`, in Python."""
    parts = [
        f"{ESCAPE}N" if text is None else text.replace(ESCAPE, f"{ESCAPE}0").replace(SEPARATOR, f"{ESCAPE}1")
        for text in texts
    ]
    return SEPARATOR.join(parts)


def parts_of(text: str) -> list[str | None]:
    """The texts that `together` put into one."""
    plain = [None if part == f"{ESCAPE}N" else part for part in text.split(SEPARATOR)]
    return [p if p is None else p.replace(f"{ESCAPE}1", SEPARATOR).replace(f"{ESCAPE}0", ESCAPE) for p in plain]
