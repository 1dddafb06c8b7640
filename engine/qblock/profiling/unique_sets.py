"""Which few columns together tell people apart: whoever knows these of somebody finds them in the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import sqlalchemy as sa

from qblock.blocks import Ints
from qblock.engines.session import Session
from qblock.errors import counted
from qblock.hierarchy.labels import Labels
from qblock.profiling.columns import Proposal
from qblock.profiling.profiles import Table

MOST_COLUMNS = 12
MOST_ROWS = 100_000
LARGEST = 3
"""Columns that somebody may well know of a person."""
MOST = 0.5
"""More than this share are most people."""
SHOWN = 3


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of a table. codes: of each column a number for each of its values; rows: how many there are."""

    codes: Mapping[str, Ints] = field(default_factory=dict)
    rows: int = 0


@dataclass(frozen=True)
class UniqueSet:
    """A set of columns, and the share of the people whom nobody else is like in all of them."""

    columns: tuple[str, ...]
    share: float


def sample(table: Table, rows: int, columns: Sequence[str], people: Sequence[str], person: str | None) -> Sample:
    """Rows of a table, in these columns and in those that may say who a row is about; one statement.

    Of a table of more rows than MOST_ROWS those whose person (None: whose values) has the least digest: they are the
    same whatever order the rows are in, and all rows of a person are among them, but perhaps of the last one.
    """
    session, known = table.session, table.columns
    names = list(dict.fromkeys([*columns[:MOST_COLUMNS], *people]))
    if not names:
        return Sample()
    texts = table.texts([known[name] for name in names])
    query = sa.select(*texts).select_from(table.relation)
    if rows > MOST_ROWS:
        order = _drawn(session, [text.element for text in texts], None if person is None else names.index(person))
        # Spark computes what it orders by in every comparison, unless it is a column.
        keyed = query.add_columns(*(key.label(f"k{i}") for i, key in enumerate(order))).subquery("qblock_keyed")
        query = sa.select(*(keyed.c[text.name] for text in texts))
        query = query.order_by(*(keyed.c[f"k{i}"] for i in range(len(order)))).limit(MOST_ROWS)
    rows_drawn = session.fetch(query)
    codes = {name: Labels.of(rows_drawn[f"c{i}"]).of_leaf.astype(np.int64) for i, name in enumerate(names)}
    return Sample(codes, rows_drawn.num_rows)


def _drawn(session: Session, texts: Sequence[sa.ColumnElement[str]], person: int | None) -> list[sa.ColumnElement[str]]:
    """An order of rows by digests, in which rows that are equal in all columns alone have the same place."""

    def digest(of: Sequence[sa.ColumnElement[str]]) -> sa.ColumnElement[str]:
        # Lengths tell where texts end, so that no two rows read as one.
        lengths = [sa.cast(sa.func.length(text), sa.Text).concat(":") for text in of]
        parts = [
            sa.func.coalesce(length.concat(text), sa.literal_column("'-'"), type_=sa.Text)
            for length, text in zip(lengths, of, strict=True)
        ]
        whole: sa.ColumnElement[str] = parts[0]
        for part in parts[1:]:
            whole = whole.concat(part)
        return session.bytewise(session.sha256(whole))

    return [digest([texts[person]]), digest(texts)] if person is not None else [digest(texts)]


def unique_shares(rows: Sample, columns: Sequence[str], person: str | None) -> list[UniqueSet]:
    """For each set of at most three columns, the share of the people whom it tells apart, the greatest first.

    person: the column that says who a row is about; None: each row is somebody.
    """
    who = np.arange(rows.rows, dtype=np.int64) if person is None else rows.codes[person]
    people = len(np.unique(who))
    names = [name for name in columns if name in rows.codes]
    named = [of for size in range(1, LARGEST + 1) for of in combinations(names, size)]
    sets = [UniqueSet(of, _alone(rows, of, who) / people) for of in named] if people else []
    return sorted(sets, key=lambda columns_set: (-round(columns_set.share, 3), len(columns_set.columns)))


def _alone(rows: Sample, of: Sequence[str], who: Ints) -> int:
    """How many people have a combination of values that nobody else has."""
    key = np.zeros(rows.rows, dtype=np.int64)
    for name in of:
        codes = rows.codes[name]
        key = key * (int(codes.max(initial=0)) + 1) + codes
    _, key = np.unique(key, return_inverse=True)
    # Each person once for each combination that they have.
    pairs = np.unique(key.reshape(-1) * (int(who.max(initial=0)) + 1) + who)
    of_pair, people = pairs // (int(who.max(initial=0)) + 1), pairs % (int(who.max(initial=0)) + 1)
    unique = np.bincount(of_pair)[of_pair] == 1
    return len(np.unique(people[unique]))


def minimal(sets: Sequence[UniqueSet]) -> list[UniqueSet]:
    """The sets that tell most people apart and hold no smaller one that does; the smallest first. Where none does, the
    one that tells most."""
    most = sorted(
        (candidate for candidate in sets if candidate.share > MOST),
        key=lambda candidate: (len(candidate.columns), -candidate.share),
    )
    kept: list[UniqueSet] = []
    for smallest in most:
        if not any(set(other.columns) < set(smallest.columns) for other in kept):
            kept.append(smallest)
    return kept or [candidate for candidate in sets[:1] if candidate.share]


def said(sets: Sequence[UniqueSet]) -> dict[str, str]:
    """What is said of each column that is in such a set."""
    words: dict[str, str] = {}
    for columns_set in sets:
        for name in columns_set.columns:
            rest = [other for other in columns_set.columns if other != name]
            together = f"with {' and '.join(rest)} " if rest else ""
            words.setdefault(name, f"{together}unique for {percent(columns_set.share)} of the people")
    return words


def reasoned(proposals: Sequence[Proposal], sets: Sequence[UniqueSet]) -> list[Proposal]:
    """The proposals with what is said of quasi-identifiers among their reasons."""
    words = said(sets)
    return [
        replace(p, reason=f"{p.reason}; {words[p.name]}") if p.role == "quasi_identifier" and p.name in words else p
        for p in proposals
    ]


def sentence(sets: Sequence[UniqueSet], sampled: int, rows: int) -> str:
    """The sets in words. sampled: the rows that were looked at; rows: of the table."""
    of = f" (of {sampled:,} rows drawn by a digest)" if sampled < rows else ""
    listed = [f"{' + '.join(columns_set.columns)} {percent(columns_set.share)}" for columns_set in sets[:SHOWN]]
    more = f", and {counted(len(sets) - SHOWN, 'other set')}" if len(sets) > SHOWN else ""
    return f"Unique people, by column{of}: " + (", ".join(listed) + more if listed else "nobody")


def percent(share: float) -> str:
    """A share as it is said: all only of all."""
    return "100 %" if share == 1 else f"{min(100 * share, 99.9):.3g} %"
