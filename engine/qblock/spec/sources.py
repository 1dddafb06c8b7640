"""Where a hierarchy comes from, as the spec says it."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema
from pydantic.dataclasses import dataclass

from qblock.spec.fields import NUMBERS, Name, Positive, TableName, choices, exact_number, listed, read_items, text_of

STRICT = ConfigDict(
    extra="forbid",
    hide_input_in_errors=True,
    arbitrary_types_allowed=True,
    validate_by_name=True,
    validate_by_alias=True,
)
WEEKS = ("day", "week", "iso_year")
MONTHS = ("day", "month", "quarter", "year")
UNITS = (*WEEKS, *MONTHS[1:])


def check_widths(widths: tuple[int | Fraction, ...]) -> None:
    """Raise ValueError unless the widths are positive, growing, and each a multiple of the one before."""
    if not widths:
        raise ValueError("there is no width; write one or more: [5, 10, 20]")
    if min(widths) <= 0:
        raise ValueError(f"the width {_number(min(widths))} is out of range; valid: above 0")
    for fine, coarse in itertools.pairwise(widths):
        if coarse <= fine or Fraction(coarse) % Fraction(fine):
            raise ValueError(
                f"{_number(coarse)} is not a multiple of {_number(fine)}, so the ranges do not nest; "
                "each width must be a multiple of the one before it: [5, 10, 20]"
            )


def check_units(units: tuple[str, ...]) -> None:
    """Raise ValueError unless each unit nests in the next: day, week, iso_year or day, month, quarter, year."""
    if not units:
        raise ValueError("there is no unit; write [week, iso_year] or [month, quarter, year]")
    unknown = [unit for unit in units if unit not in UNITS]
    if unknown:
        raise ValueError(f"{unknown[0]} is not a unit of dates; {choices(UNITS, unknown[0])}")
    if not any(list(units) == [unit for unit in chain if unit in units] for chain in (WEEKS, MONTHS)):
        raise ValueError(
            f"[{', '.join(units)}] does not nest; write levels of [day, week, iso_year] or of "
            "[day, month, quarter, year], finer first (weeks do not nest in months)"
        )


def _number(value: int | Fraction) -> str:
    return str(value) if isinstance(value, int) else f"{float(value):g}"


def _widths(raw: object) -> tuple[int | Fraction, ...]:
    if not isinstance(raw, list | tuple):
        raise ValueError("{it} is not a list; write the widths, finer first: [5, 10, 20]")
    widths = tuple(read_items(exact_number, raw))
    check_widths(widths)
    return widths


def _units(raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list | tuple):
        raise ValueError("{it} is not a list; write the levels, finer first: [month, quarter, year]")
    units = tuple(read_items(text_of, raw))
    check_units(units)
    return units


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Suppress:
    """Two levels: the value, and `*`."""

    form: ClassVar[str] = "suppress"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Digits:
    """Codes of a fixed length, one character masked per level."""

    form: ClassVar[str] = "digits"
    digits: Positive
    from_: Annotated[Literal["right", "left"], Field(alias="from")] = "right"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Ranges:
    """Half-open intervals of growing widths; each width is a multiple of the one before."""

    form: ClassVar[str] = "ranges"
    ranges: Annotated[
        tuple[int | Fraction, ...],
        BeforeValidator(_widths),
        WithJsonSchema({"type": "array", "minItems": 1, "items": {"type": "number", "exclusiveMinimum": 0}}),
    ]
    start: Annotated[int | Fraction, BeforeValidator(exact_number), WithJsonSchema(NUMBERS)] = 0


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Dates:
    """Calendar units of dates and times: (day) week iso_year, or (day) month quarter year."""

    form: ClassVar[str] = "dates"
    dates: Annotated[
        tuple[str, ...],
        BeforeValidator(_units),
        WithJsonSchema({"type": "array", "minItems": 1, "uniqueItems": True, "items": {"enum": list(UNITS)}}),
    ]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CsvFile:
    """A CSV file with a header, leaf first; its path is relative to the spec."""

    form: ClassVar[str] = "file"
    file: Name


@dataclass(frozen=True, kw_only=True, config=STRICT)
class DimensionTable:
    """A table of the warehouse, one row per leaf; `levels` are its columns, leaf first."""

    form: ClassVar[str] = "table"
    table: TableName
    levels: Annotated[
        tuple[str, ...],
        BeforeValidator(listed(text_of, "columns, leaf first", 1)),
        WithJsonSchema({"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "string"}}),
    ]


HierarchySource = Suppress | Digits | Ranges | Dates | CsvFile | DimensionTable
FORMS = "suppress; {digits: 5}; {ranges: [5, 10, 20]}; {dates: [month, year]}; {file: CSV}; {table: T, levels: [...]}"
TAGS = ("digits", "ranges", "dates", "file", "table")


def form_of(raw: Any) -> str | None:
    """The tag of the form that a value of the file has."""
    if isinstance(raw, HierarchySource):
        return f"form:{raw.form}"
    if raw == "suppress":
        return "form:suppress"
    return next((f"form:{tag}" for tag in TAGS if isinstance(raw, dict) and tag in raw), None)


SourceField = Annotated[
    Annotated[
        Suppress,
        BeforeValidator(lambda raw: {} if raw == "suppress" else raw),
        WithJsonSchema({"const": "suppress"}),
        Tag("form:suppress"),
    ]
    | Annotated[Digits, Tag("form:digits")]
    | Annotated[Ranges, Tag("form:ranges")]
    | Annotated[Dates, Tag("form:dates")]
    | Annotated[CsvFile, Tag("form:file")]
    | Annotated[DimensionTable, Tag("form:table")],
    Discriminator(form_of),
]
