"""The state shown in other column types: `qblock ledger retype` moves it with the rest of the crosswalk."""

from __future__ import annotations

import json

import sqlalchemy as sa

from qblock.joint.crosswalk import Book
from qblock.joint.lag.memory import load
from qblock.joint.moves import Moves, placed_texts, replace_texts, through
from qblock.joint.type_checks import parts_of
from qblock.ledger.events import canonical


def move_state(book: Book, release: str, moves: Moves) -> None:
    """Write the texts of the state, and of changes that wait, as they are in the present types."""
    kept = load(book, release)
    if kept is None:
        return
    shown, waiting = book.tables.shown, book.tables.waiting

    def moved(text: str, names: tuple[str, ...]) -> str:
        return placed_texts(through(moves, names, parts_of(text)))

    for column, names in (
        (shown.c.place, kept.layout.quasi),
        (shown.c.value, kept.layout.valued),
        (waiting.c.seen, kept.layout.valued),
    ):
        same = (column.table.c.release == release, column.is_not(None))
        texts = book.own.fetch(sa.select(column.label("text")).where(*same).distinct())["text"].to_pylist()
        replace_texts(book, column, {text: moved(text, names) for text in texts}, same)
    same = (shown.c.release == release, shown.c.earlier.is_not(None))
    lists = book.own.fetch(sa.select(shown.c.earlier.label("text")).where(*same).distinct())["text"].to_pylist()
    after = {text: canonical([moved(value, kept.layout.valued) for value in json.loads(text)]) for text in lists}
    replace_texts(book, shown.c.earlier, after, same)
