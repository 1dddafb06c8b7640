"""Types of the columns of CSV files: taken where every value of the files has the form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from qblock.engines.source_files import FileTable
from qblock.profiling.words import suggests
from qblock.spec.source_file import MOST_DIGITS, ColumnType

NUMBER = r"(([1-9][0-9]{0,17}|0)(\.[0-9]*)?|\.[0-9]+)"
DAY, CLOCK = r"[0-9]{4}-(0[1-9]|1[0-2])-[0-3][0-9]", r"[ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
FORMS = {
    "integer": r"-?([1-9][0-9]{0,17}|0)",
    "decimal": f"-?{NUMBER}",
    "float": rf"-?{NUMBER}([eE][+-]?[0-9]{{1,2}})?",
    "boolean": r"(?i:true|false)",
    "date": DAY,
    "timestamp": f"{DAY}({CLOCK})?",
    "timestamptz": rf"{DAY}{CLOCK}(Z|[+-](0[0-9]|1[0-4])(:?[0-5][0-9])?)",
}
"""The narrowest first. A number that begins with a zero (01234) is a code, and stays text."""
NUMBERS, DAYS = ("integer", "decimal", "float"), ("date", "timestamp", "timestamptz")
DIGITS = 18
"""Of decimals that are written down, so that next week's are of the type, too."""
MOST_DECIMALS = 6
"""Numbers with more of them are floats: how many there are next week, nobody knows."""
NEARLY = 10
"""A column with one value in so many that has not the form is said to miss it."""


@dataclass
class _Seen:
    """What was seen of a column. misses: of each form, how many values lack it, and the row of the first; decimals: the
    most after the point; lengths: of texts."""

    values: int = 0
    misses: dict[str, tuple[int, int]] = field(default_factory=dict)
    decimals: int = 0
    lengths: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class TextTypes:
    """The types that were taken, without those of columns that stay text; notes: on columns that nearly have one."""

    types: Mapping[str, ColumnType] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def recognize(table: FileTable) -> TextTypes:
    """The types that all values of the columns have; the files are read once, batch by batch. NULL has any type."""
    names = table.names()
    table.check(dict.fromkeys(names, "the source"))
    schema = pa.schema([pa.field(name, pa.string()) for name in names])
    seen = [_Seen() for _ in names]
    for _, batches in table.parts(names, schema):
        row = 0
        for batch in batches:
            for state, column in zip(seen, batch.columns, strict=True):
                _look(state, column, row)
            row += batch.num_rows
    types, notes = {}, []
    for name, state in zip(names, seen, strict=True):
        type_ = _type(name, state)
        if type_ is not None:
            types[name] = type_
        elif (note := _note(name, state)) is not None:
            notes.append(note)
    return TextTypes(types, tuple(notes))


def _look(seen: _Seen, column: pa.Array, row: int) -> None:
    """Add a batch of a column's texts to what was seen of it. row: how many rows of the file came before."""
    values = len(column) - column.null_count
    if not values:
        return
    seen.values += values
    every = (values, row + 1 + pc.index(column.is_valid(), True).as_py())
    numbers = _misses("float", column, row)
    for form in FORMS:
        # No number is a day, and what is no number is no whole one.
        ruled_out = numbers[0] == (values if form in NUMBERS else 0)
        count, first = every if ruled_out else numbers if form == "float" else _misses(form, column, row)
        before, at = seen.misses.get(form, (0, 0))
        seen.misses[form] = before + count, at or first
    if not seen.misses["decimal"][0]:
        bare = pc.utf8_ltrim(column, "-")
        after = pc.replace_substring_regex(bare, r"^[0-9]*\.?", "")
        seen.decimals = max(seen.decimals, pc.max(pc.utf8_length(pc.utf8_rtrim(after, "0"))).as_py())
        seen.lengths.update(pc.unique(pc.utf8_length(bare).drop_null()).to_pylist())


def _misses(form: str, column: pa.Array, row: int) -> tuple[int, int]:
    """How many texts have not the form, and the row of the first."""
    wrong = pc.fill_null(pc.invert(pc.match_substring_regex(column, f"^({FORMS[form]})$")), False)
    if form in DAYS:
        wrong = pc.or_(wrong, _no_days(column, wrong))
    count = pc.sum(wrong).as_py()
    return count, row + 1 + pc.index(wrong, True).as_py() if count else 0


def _no_days(column: pa.Array, wrong: pa.Array) -> pa.Array:
    """Which texts of the right form name a day that there is not, such as 30 February."""
    days = pc.if_else(wrong, None, pc.utf8_slice_codeunits(column, 0, 10))
    try:
        pc.min(days.cast(pa.date32())).as_py()
    except (pa.ArrowInvalid, ValueError, OverflowError):
        return pa.array([day is not None and not _is_day(day) for day in days.to_pylist()])
    return pa.repeat(pa.scalar(False), len(column))


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _type(name: str, seen: _Seen) -> ColumnType | None:
    """The first type that has every value; None where that is text."""
    word = next((form for form in FORMS if seen.values and not seen.misses[form][0]), None)
    if word == "integer" and len(seen.lengths) == 1 and suggests(name, "code"):
        return None  # a postcode is no number, though none begins with a zero
    if word == "decimal":
        digits = DIGITS if max(seen.lengths) <= DIGITS else MOST_DIGITS
        return ColumnType("decimal", digits, seen.decimals) if seen.decimals <= MOST_DECIMALS else ColumnType("float")
    return None if word is None else ColumnType(word)


def _note(name: str, seen: _Seen) -> str | None:
    """What is said of a column of texts most of which are numbers, or days; no value is named."""
    for form, what in (("float", "number"), ("timestamp", "date")):
        count, first = seen.misses.get(form, (0, 0))
        if 0 < NEARLY * count <= seen.values:
            subject = f"{count:,} of {seen.values:,} values {'is' if count == 1 else 'are'} no {what}"
            remedy = "write a missing value as an empty field"
            return f"{name} is read as text: {subject}, the first in row {first:,} below the header; {remedy}"
    return None
