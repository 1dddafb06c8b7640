"""Which texts are values of a column's type: decided here, the same for every engine, before one of them is asked."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa

from qblock.comparison import NUMBERS
from qblock.hierarchy.labels import Texts, all_match, whole
from qblock.warehouse.protocol import Column, Kind

NUMERIC: frozenset[Kind] = frozenset(NUMBERS)

INTEGER = re.compile(r"[+-]?\d{1,100}", re.ASCII)
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE | re.ASCII)
DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?)?", re.ASCII)
ZONED = re.compile(TIMESTAMP.pattern + r"(Z|[+-]\d{2}(:?\d{2})?)?", re.ASCII)
BEYOND = re.compile(
    r"[+-]?infinity|\d{4,7}-\d{2}-\d{2}( \d{2}:\d{2}:\d{2}(\.\d{1,9})?(\+00)?)?( BC| \(BC\))?", re.ASCII
)
"""Days that an engine knows and Python's calendar does not: they come from the column itself."""
BITS = {"tinyint": 8, "smallint": 16, "integer": 32, "bigint": 64, "hugeint": 128}
EXACT = re.compile(r"(?:numeric|decimal)\((\d+),\s*(-?\d+)\)")
CLASSES = {
    "integer": re.compile(rf"u?({'|'.join(BITS)})", re.IGNORECASE),
    "decimal": re.compile(r"(numeric|decimal)(\(\d+(,\s*-?\d+)?\))?", re.IGNORECASE),
    "text": re.compile(r"(character varying|varchar)(\(\d+\))?|text|string", re.IGNORECASE),
    "timestamp": re.compile(r"TIMESTAMP(_S|_MS|_NS)?|timestamp(\(\d\))? without time zone"),
    "timestamptz": re.compile(r"timestamp(\(\d\))? with time zone", re.IGNORECASE),
}
"""Types that write each value which they share alike: of floats REAL does not, whose 0.1 is another number."""
DECIMALS = {"timestamp_s": 0, "timestamp_ms": 3, "timestamp_ns": 9}
"""Of a second, in DuckDB's types."""


def is_value(text: str, kind: Kind) -> bool:
    """Whether a text can be cast to a kind of column on every engine (whatever its range)."""
    try:
        if kind == "integer":
            return INTEGER.fullmatch(text) is not None
        if kind == "decimal":
            return NUMBER.fullmatch(text) is not None
        if kind == "float":
            return NUMBER.fullmatch(text) is not None or NOT_FINITE.fullmatch(text) is not None
        if kind == "date":
            return _beyond(text) or (DATE.fullmatch(text) is not None and bool(date.fromisoformat(text)))
        if kind == "timestamp":
            return _beyond(text) or (TIMESTAMP.fullmatch(text) is not None and bool(datetime.fromisoformat(text)))
        if kind == "timestamptz":
            return _beyond(text) or (ZONED.fullmatch(text) is not None and bool(datetime.fromisoformat(text)))
    except ValueError:
        return False
    return kind != "boolean" or text.lower() in ("true", "false")


def fits(text: str, column: Column) -> bool:
    """Whether a text is a value that a column can hold: also within the range and the decimals of its type."""
    type_ = column.compare_as.lower()
    if column.kind == "decimal" and type_.startswith("numeric") and NOT_FINITE.fullmatch(text):
        return text.lower().endswith("nan") or "(" not in type_
    if not is_value(text, column.kind):
        return False
    if column.kind == "integer":
        number = int(text)
        bits = BITS.get(type_.removeprefix("u"))
        if bits is None:
            return True
        return 0 <= number < 2**bits if type_.startswith("u") else -(2 ** (bits - 1)) <= number < 2 ** (bits - 1)
    if column.kind == "decimal" and (match := EXACT.fullmatch(type_)):
        precision, scale = int(match[1]), int(match[2])
        scaled = Fraction(text) * Fraction(10) ** scale
        return scaled.denominator == 1 and abs(scaled) < 10**precision
    if column.kind == "float" and not NOT_FINITE.fullmatch(text):
        with np.errstate(over="ignore", under="ignore"):
            number_ = np.float32(text) if type_ in ("real", "float", "float4") else np.float64(text)
        return bool(np.isfinite(number_)) and (bool(number_) or not Decimal(text))
    if column.kind in ("timestamp", "timestamptz"):
        return _within(text, type_)
    return True


def type_class(type_: str) -> str:
    """What a type has in common with those that write values alike; the type itself where there are none."""
    return next((name for name, types in CLASSES.items() if types.fullmatch(type_)), type_)


def _within(moment: str, type_: str) -> bool:
    """Whether a type has the decimals of a moment, and its year."""
    declared = re.search(r"\((\d)\)", type_)
    most = int(declared[1]) if declared else DECIMALS.get(type_, 6)
    decimals = re.search(r"\.(\d*[1-9])", moment)
    year = re.match(r"\d+", moment)
    there = type_ != "timestamp_ns" or year is None or ("BC" not in moment and 1677 < int(year[0]) < 2262)
    return there and (decimals is None or len(decimals[1]) <= most)


def all_fit(leaves: Texts, column: Column) -> bool:
    """Whether all texts are values that a column can hold; False also where `fits` has to be asked of each."""
    if column.kind == "text":
        return True
    present = leaves.drop_null()
    bits = BITS.get(column.compare_as.lower(), 0)
    if column.kind != "integer" or not all_match(present, "-?[0-9]{1,18}") or not bits:
        return False
    numbers = whole(present.cast(pa.int64()))
    least, most = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    return -(2 ** (bits - 1)) <= least and most < 2 ** (bits - 1)


def _beyond(text: str) -> bool:
    """An infinite day, one before Christ or after the year 9999."""
    match = BEYOND.fullmatch(text)
    return match is not None and (text[0] in "i+-" or "BC" in text or len(text.split("-", 1)[0]) > 4)
