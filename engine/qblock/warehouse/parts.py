"""A table of whole numbers that is read in parts, so that the whole of it is never in memory as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from qblock.warehouse.queries import KEYS, PRIMES, Query

VALUES = 2_000_000
"""In a part, about."""
Part = dict[str, NDArray[np.int64]]
"""Rows by column, all of one length."""


def queries_of_parts(table: sa.TableClause, rows: int, values: int = VALUES) -> Iterator[Query]:
    """Queries that give each row of a coded table once, for engines that have no quicker way to part one.

    Rows with the same key are in one part.
    """
    number = -(-rows * len(table.c) // values)
    words = [column for column in table.c if column.key in KEYS]
    total: sa.ColumnElement[int] = sa.literal_column("0")
    for i, word in enumerate(words):
        total = total + sa.func.mod(word, sa.literal_column(str(PRIMES[i % 2])))
    for i in range(number):
        remainder = sa.func.mod(total, sa.literal_column(str(number)))
        yield sa.select(*table.c).where(remainder == sa.literal_column(str(i)))


def joined(pieces: Iterable[Mapping[str, NDArray[np.int64]]], values: int = VALUES) -> Iterator[Part]:
    """The same rows in fewer parts: pieces are put together until they have so many values."""
    waiting: list[Mapping[str, NDArray[np.int64]]] = []
    count = 0
    for piece in pieces:
        waiting.append(piece)
        count += sum(len(column) for column in piece.values())
        if count >= values:
            yield _together(waiting)
            waiting, count = [], 0
    if count:
        yield _together(waiting)


def _together(pieces: list[Mapping[str, NDArray[np.int64]]]) -> Part:
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
