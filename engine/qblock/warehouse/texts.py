"""The canonical text of a value, from any text that reads as it: what `Session.text_of` writes, in Python."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import numpy as np

from qblock.warehouse.protocol import Column, Kind
from qblock.warehouse.values import NOT_FINITE, NUMERIC, fits

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
        return _not_finite(text) or _plain(Decimal(text))
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
