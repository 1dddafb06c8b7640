"""Spellings of one value (`same`), which are made one where the rows of the source are read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from qblock.engines.session import Session
from qblock.engines.tables import Column
from qblock.errors import InputError
from qblock.hierarchy.core import MOST_EDGES
from qblock.spellings import Part, commonest, plain

Expression = sa.ColumnElement[Any]
Rows = sa.Select[*tuple[Any, ...]]


@dataclass(frozen=True)
class Spellings:
    """The texts of a column, each with the one that is read in its place. parts: what they differ by."""

    read: Mapping[str, str]
    parts: Sequence[Part]

    def expression(self, value: Expression) -> Expression:
        """What is read of a text; one that is spelled as it is read stays as it is."""
        spelled: dict[str, list[str]] = defaultdict(list)
        for text, shown in self.read.items():
            if text != shown:
                spelled[shown].append(text)
        whens = [(value.in_([_text(text) for text in texts]), _text(shown)) for shown, texts in spelled.items()]
        return sa.case(*whens, else_=value) if whens else value

    def of_same(self, texts: Sequence[str]) -> list[str]:
        """These texts, and those of the column that are spelled otherwise."""
        wanted = {plain(text, self.parts) for text in texts}
        return [*texts, *(text for text in self.read if text not in texts and plain(text, self.parts) in wanted)]


@dataclass(frozen=True)
class Same:
    """What spellings of a column's values differ by. plainly: whether a value is read without that, as `plain` has it,
    and not as most rows spell it; place: of `same`, for messages."""

    parts: tuple[Part, ...]
    plainly: bool
    place: str

    def spellings(self, session: Session, value: Expression, rows: Rows, column: Column) -> Spellings:
        """Of the rows that are read. Raises InputError for a column of no text, or for too many spellings."""
        if column.kind != "text":
            raise InputError(
                f"{self.place}: column {column.name} is of type {column.type}, and spellings are of text; remove `same`"
            )
        counted = rows.with_only_columns(value.label("value"), sa.func.count().label("n"))
        distinct = session.fetch(counted.where(value.is_not(None)).group_by(value))
        texts = zip(distinct["value"].to_pylist(), distinct["n"].to_pylist(), strict=True)
        groups: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for text, n in texts:
            groups[plain(text, self.parts)].append((text, n))
        read = {
            text: shown
            for group, spelled in sorted(groups.items())
            for shown in [group if self.plainly else commonest(spelled)]
            for text, _ in sorted(spelled)
        }
        many = sum(text != shown for text, shown in read.items())
        if many > MOST_EDGES:
            raise InputError(
                f"{self.place}: {many:,} values of column {column.name} are spelled otherwise than they are read; "
                f"valid: at most {MOST_EDGES:,}. Write them alike in a view of the source"
            )
        return Spellings(read, self.parts)


def _text(text: str) -> Expression:
    return sa.literal(text, sa.Text)
