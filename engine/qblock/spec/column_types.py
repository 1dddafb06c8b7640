"""The types of a CSV file's columns, as `source.types` says them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from qblock.spec.fields import choices

WORDS: dict[str, str] = {
    "integer": "a whole number",
    "float": "a number",
    "boolean": "true or false",
    "date": "a date (2026-02-03)",
    "timestamp": "a date with a time (2026-02-03 04:05:06)",
    "timestamptz": "a date with a time and a zone (2026-02-03 04:05:06+01:00)",
    "text": "a text",
}
ALSO: dict[str, str] = {
    **dict.fromkeys(("int", "smallint", "bigint", "int64"), "integer"),
    **dict.fromkeys(("double", "double precision", "real", "float64"), "float"),
    **dict.fromkeys(("varchar", "string"), "text"),
    **dict.fromkeys(("timestamp with time zone",), "timestamptz"),
    "bool": "boolean",
    "datetime": "timestamp",
}
"""Other names of the same types."""
DECIMAL = re.compile(r"(?:decimal|numeric) *(?:\( *([0-9]{1,2}) *(?:, *([0-9]{1,2}) *)?\))?", re.ASCII)
MOST_DIGITS = 38


@dataclass(frozen=True)
class ColumnType:
    """A type. word: of WORDS, or decimal with `digits` in all and `decimals` of them after the point."""

    word: str
    digits: int = 0
    decimals: int = 0

    def __str__(self) -> str:
        return f"decimal({self.digits},{self.decimals})" if self.word == "decimal" else self.word

    @property
    def meaning(self) -> str:
        """What a text must be to be a value of it."""
        if self.word != "decimal":
            return WORDS[self.word]
        return f"a number of at most {self.digits} digits, {self.decimals} of them after the point"


def column_type(text: str) -> ColumnType:
    """The type of that name. Raises ValueError with the names that there are."""
    word = " ".join(text.lower().split())
    found = DECIMAL.fullmatch(word)
    if found:
        digits, decimals = int(found[1] or 0), int(found[2] or 0)
        if not 1 <= digits <= MOST_DIGITS or decimals > digits:
            raise ValueError(
                f"{{it}} needs its digits: decimal(10,2) has 10, 2 of them after the point; at most {MOST_DIGITS}"
            )
        return ColumnType("decimal", digits, decimals)
    word = ALSO.get(word, word)
    if word not in WORDS:
        raise ValueError(f"{{it}} is not a type of a column; {choices([*WORDS, 'decimal(10,2)'], word)}")
    return ColumnType(word)
