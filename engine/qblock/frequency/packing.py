"""The coded table: every row of a source as its packed key, in one scan and without a GROUP BY."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from qblock.frequency.coding import Coding, Place
from qblock.warehouse.queries import Dimension, Expression, Query, whole


def packed(
    relation: sa.FromClause,
    coding: Coding,
    quasi: Sequence[tuple[Expression, Dimension]],
    values: Sequence[tuple[Expression, Dimension | None]],
    kept: Mapping[str, Expression] | None = None,
) -> Query:
    """Keys k0, k1, ... of every row; a word is NULL where no dimension covers a value that is in it. Loses no row.

    quasi, values: the raw value of each quasi-identifier and sensitive attribute with what codes it (None: it is a
    code already). kept: further columns by name.
    """
    joined = relation
    words: list[list[Expression]] = [[] for _ in range(coding.words)]

    def join(raw: Expression, dimension: Dimension, number: int) -> sa.FromClause:
        nonlocal joined
        named = dimension.table.alias(f"d{number}")
        joined = joined.outerjoin(named, raw == named.c.leaf)
        return named

    def put(place: Place, code: Expression) -> None:
        shifted = whole(code)
        words[place.word].append(
            shifted.bitwise_lshift(sa.literal_column(str(place.shift))) if place.shift else shifted
        )

    for i, ((raw, dimension), places) in enumerate(zip(quasi, coding.quasi, strict=True)):
        named = join(raw, dimension, i)
        for part, place in enumerate(places):
            put(place, dimension.part(raw, part, named))
    for i, ((raw, coder), place) in enumerate(zip(values, coding.sensitive, strict=True), len(quasi)):
        put(place, raw if coder is None else coder.covered(raw, join(raw, coder, i)))
    columns = []
    for number, codes in enumerate(words):
        word = codes[0] if codes else whole(sa.literal_column("0"))
        for code in codes[1:]:
            word = word.bitwise_or(code)
        columns.append(word.label(f"k{number}"))
    return sa.select(*columns, *(value.label(name) for name, value in (kept or {}).items())).select_from(joined)
