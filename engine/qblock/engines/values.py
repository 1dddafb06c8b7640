"""Which texts are values of a column's type: decided here, the same for every engine, before one of them is asked. Also
the canonical text of a value, as `Session.text_of` writes it, and hierarchies and domains as dimension tables.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from qblock.comparison import NUMBERS, Kind
from qblock.engines.arrow import whole_numbers
from qblock.engines.queries import Dimension
from qblock.engines.session import Session
from qblock.engines.tables import Column
from qblock.errors import InputError, quoted
from qblock.hierarchy import Hierarchy
from qblock.hierarchy.labels import Texts, all_match, places, texts, whole

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


LENGTH = re.compile(r"(?:character varying|character|varchar|char|bpchar)\((\d+)\)", re.IGNORECASE)
MIDNIGHT = " 00:00:00"
ZONE = "+00"


def canonical_text(text: str, column: Column) -> str | None:
    """The canonical text of the value that a text reads as in a column's type; None where it is not a value of it."""
    if not fits(text, column):
        return None
    if column.kind == "integer":
        return str(int(text))
    if column.kind == "decimal":
        return plain_number(text)
    if column.kind == "float":
        return _float(text, is_single(column))
    if column.kind == "boolean":
        return text.lower()
    if column.kind in ("timestamp", "timestamptz"):
        return _timestamp(text, column.kind == "timestamptz")
    return _text(text, (column.base or column.type)) if column.kind == "text" else text


def carried(text: str, kind: Kind, target: Kind) -> str:
    """A canonical text of a kind as it would be written in another one, where the two name the same moment."""
    finite = text[:1].isdigit() and not text.endswith("BC")
    if not finite or kind == target or not {kind, target} <= {"date", "timestamp", "timestamptz"}:
        return text
    moment = text + MIDNIGHT if kind == "date" else text.removesuffix(ZONE)
    if target == "date":
        return moment.removesuffix(MIDNIGHT)
    return moment + ZONE if target == "timestamptz" else moment


def writes_alike(left: Column, right: Column) -> bool:
    """Whether equal values of two columns have one canonical text, as numbers have that are not of single precision."""
    same = left.kind == right.kind or (left.kind in NUMERIC and right.kind in NUMERIC)
    return same and is_single(left) == is_single(right)


def is_single(column: Column) -> bool:
    """Whether a column has floats of single precision, of which 0.1 is another number than 0.1."""
    return column.kind == "float" and column.compare_as.lower() in ("real", "float", "float4")


def plain_number(text: str) -> str:
    """A number that a database has written, without an exponent and trailing zeros."""
    return _not_finite(text) or _plain(Decimal(text))


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def _float(text: str, single: bool) -> str:
    # The shortest text that reads back as the same number, as both engines write it.
    return _not_finite(text) or _plain(Decimal(str(np.float32(text)) if single else repr(float(text))))


def _not_finite(text: str) -> str | None:
    if not NOT_FINITE.fullmatch(text):
        return None
    bare = text.lstrip("+-").lower()
    return "NaN" if bare == "nan" else ("-" if text.startswith("-") else "") + "Infinity"


def _timestamp(text: str, zoned: bool) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text  # beyond Python's calendar: canonical as the column itself wrote it
    if zoned:
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).replace(tzinfo=None)
    written = moment.strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0")
    fraction = re.search(r"\.(\d+)", text)
    digits = fraction[1].rstrip("0") if fraction else ""
    return written + (f".{digits}" if digits else "") + (ZONE if zoned else "")


def _text(text: str, type_: str) -> str | None:
    if type_.lower() == "uuid":
        try:
            return str(UUID(text)) if len(text) == len(str(UUID(int=0))) else None
        except ValueError:
            return None
    match = LENGTH.fullmatch(type_)
    return None if match and len(text) > int(match[1]) else text


IN_UTC = r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?\+00"


def _check_different(session: Session, table: sa.TableClause, column: Column, origin: str) -> None:
    """Raise InputError for leaves that are equal as values of their column."""
    twice = session.fetch(
        sa.select(session.text_of(table.c.leaf, column.kind).label("value"))
        .where(table.c.leaf.is_not(None))
        .group_by(table.c.leaf)
        .having(sa.func.count() > 1)
        .limit(5)
    )
    if len(twice):
        values = ", ".join(quoted(v) for v in twice["value"].to_pylist())
        raise InputError(
            f"{origin}: duplicate leaf {values}: equal as a value of column {column.name} of type {column.type}; "
            "keep one line for each value"
        )


def load_dimension(
    session: Session,
    name: str,
    hierarchy: Hierarchy,
    column: Column,
    origin: str,
    *,
    nulls: bool = False,
    uncovered: bool = False,
    observed: bool = False,
) -> Dimension:
    """Load a hierarchy as a temporary dimension table whose leaves compare as the column does.

    origin says where the hierarchy comes from, for messages. nulls, uncovered: the hierarchy's leaf None stands for
    NULL, and for values that it does not cover. observed: its leaves are the column's own values. Raises InputError for
    other leaves that are not values of the column's type, or that are equal as such.
    """
    levels, codes, parts = hierarchy.columns, hierarchy.codes, hierarchy.paths
    leaves = levels[0].column
    if not observed and not all_fit(leaves, column):
        for position, leaf in enumerate(hierarchy.leaves):
            if leaf is not None and not fits(leaf, column):
                raise InputError(
                    f"{origin}: leaf {position + 1}, {quoted(leaf)}, is not a value of column {column.name} of type "
                    f"{column.type}; correct or remove it"
                )
    null = int(whole(pc.indices_nonzero(leaves.is_null()))[0]) if leaves.null_count else None
    value, columns_of = leaves, [labels.column for labels in levels]
    numbers = [*codes, *(part.codes for part in parts)]
    if hierarchy.cells is not None:
        # A row for each value of the column, with the codes of its cell.
        values, of = hierarchy.values
        value, columns_of = texts(values), [labels.take(places(of)) for labels in columns_of]
        numbers = [codes[of] for codes in numbers]
    named = [*(f"c{h}" for h in range(len(levels))), *(f"p{i}" for i in range(len(parts)))]
    arrays: dict[str, Any] = {name: whole_numbers(codes) for name, codes in zip(named, numbers, strict=True)}
    arrays |= {f"t{h}": labels for h, labels in enumerate(columns_of)}
    if column.kind == "timestamptz" and not all_match(value.drop_null(), IN_UTC):
        # A leaf without a zone is in UTC, whatever the session's zone is.
        value = texts([None if leaf is None else canonical_text(leaf, column) for leaf in value.to_pylist()])
    arrays["v"] = value
    text = session.load(f"{name}_text", pa.table(arrays))
    size: Any = sa.SmallInteger if len(leaves) < 2**15 else sa.Integer
    leaf_value = session.convert(text.c.v, column)
    columns = [leaf_value.label("leaf")]
    columns += [sa.cast(text.c[f"c{h}"], size).label(f"c{h}") for h in range(len(levels))]
    columns += [text.c[f"p{i}"].label(f"p{i}") for i in range(len(parts))]
    # A value as its column has it; a cell as it is.
    shown = session.text_of(leaf_value, column.kind) if hierarchy.cells is None else text.c.t0
    columns += [shown.label("t0")]
    columns += [text.c[f"t{h}"].label(f"t{h}") for h in range(1, len(levels))]
    table = session.store(name, sa.select(*columns))
    session.drop(text)
    session.analyze(table)
    if not observed:
        _check_different(session, table, column, origin)
    top = () if null is None else tuple(int(part.codes[null]) for part in parts)
    height = len(levels) - 1
    return Dimension(table, height, len(leaves), null if nulls else None, null if uncovered else None, top)
