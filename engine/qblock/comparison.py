"""How the text of a value compares as the value of its column's kind: 1.5 is 1.5000, and `10` comes after `9`.

A key is equal for two texts that are one value, and sorts as the column does (text by code points).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from typing import Any, Literal

Kind = Literal["integer", "decimal", "float", "text", "date", "timestamp", "timestamptz", "boolean"]
"""How values of a column compare and print; a type that is none of the others compares as text."""
Key = tuple[int, Any]

NUMBERS: tuple[Kind, ...] = ("integer", "decimal", "float")
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
BEYOND = {"-infinity": -1, "-inf": -1, "infinity": 1, "inf": 1, "+infinity": 1, "+inf": 1, "nan": 2}
"""Before and after everything else; NaN is the greatest, as on both engines."""
MOMENT = re.compile(
    r"(?P<year>\d{4,7})-(?P<month>\d{2})-(?P<day>\d{2})"
    r"(?P<time>[ T](?P<hour>\d{2}):(?P<minute>\d{2})(:(?P<second>\d{2}(\.\d{1,9})?))?)?"
    r"(?P<zone>Z|[+-]\d{2}(:?\d{2})?)?(?P<bc> BC| \(BC\))?",
    re.ASCII,
)
OTHER = 9
"""The class of texts that are not values of the kind: each is equal only to its own text."""


def key(text: str, kind: str | None) -> Key:
    """The key of a text in a column of a kind; kind None: whatever the text looks like (a number, a moment, a text)."""
    if kind in NUMBERS:
        return _number(text, kind == "float") or (OTHER, text)
    if kind == "date" or (kind is not None and kind.startswith("timestamp")):
        return _moment(text, kind == "date") or (OTHER, text)
    if kind == "boolean":
        return (0, text.lower())
    if kind is None:
        return _number(text, False) or _moment(text, False) or (OTHER, text)
    return (0, text)


class Matcher:
    """Finds a named value among labels: by its text, else as the column's kind compares; None is NULL and only that."""

    def __init__(self, labels: Sequence[str | None], kind: str | None) -> None:
        self._kind = kind
        self._exact = {label: i for i, label in reversed(list(enumerate(labels)))}
        self._keys: dict[Key, int] | None = None
        self._labels = labels

    def find(self, named: str | None) -> int | None:
        """The index of the label that is this value; None where there is none."""
        if named in self._exact or named is None or self._kind == "text":
            return self._exact.get(named)
        if self._keys is None:
            pairs = [(key(label, self._kind), i) for i, label in enumerate(self._labels) if label is not None]
            self._keys = dict(reversed(pairs))
        return self._keys.get(key(named, self._kind))


def _number(text: str, double: bool) -> Key | None:
    special = BEYOND.get(text.lower())
    if special is not None:
        return (special, 0)
    if not NUMBER.fullmatch(text):
        return None
    if not double:
        return (0, Fraction(text))
    nearest = float(text)
    return None if math.isinf(nearest) else (0, Fraction(nearest))


def _moment(text: str, day_only: bool) -> Key | None:
    """Seconds since the year 0 of a calendar of 400 years, in UTC where the text has a zone."""
    special = BEYOND.get(text.lower())
    if special in (-1, 1):
        return (special, 0)
    match = MOMENT.fullmatch(text)
    if match is None or (day_only and (match["time"] or match["zone"])):
        return None
    year = 1 - int(match["year"]) if match["bc"] else int(match["year"])
    cycles, within = divmod(year, 400)
    try:
        days = date(within + 400, int(match["month"]), int(match["day"])).toordinal() + cycles * 146_097
    except ValueError:
        return None
    seconds = Fraction(match["second"] or 0) + 60 * int(match["minute"] or 0) + 3600 * int(match["hour"] or 0)
    return (0, 86_400 * days + seconds - _offset(match["zone"]))


def _offset(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    minutes = 60 * int(digits[:2]) + int(digits[2:])
    return 60 * (-minutes if zone[0] == "-" else minutes)
