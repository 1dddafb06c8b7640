"""Where a hierarchy comes from, as the spec says it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Union

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema
from pydantic.dataclasses import dataclass

from qblock.comparison import Kind
from qblock.hierarchy import Grid, Hierarchy, HierarchyError, Layout, cuts, dates, digits, edges, ranges, suppress
from qblock.hierarchy.builders import UNITS, check_edges, check_ends, check_finest, check_units, check_widths
from qblock.hierarchy.written import LabelForm
from qblock.spec.fields import NUMBERS, Level, Name, Positive, TableName, exact_number, listed, read_items, text_of

DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
STRICT = ConfigDict(
    extra="forbid",
    defer_build=True,
    hide_input_in_errors=True,
    arbitrary_types_allowed=True,
    validate_by_name=True,
    validate_by_alias=True,
)


def _widths(raw: object) -> tuple[int | Fraction, ...]:
    if not isinstance(raw, list | tuple):
        raise ValueError("{it} is not a list; write the widths, finer first: [5, 10, 20]")
    widths = tuple(read_items(exact_number, raw))
    check_widths(widths)
    return widths


def _edges(raw: object) -> tuple[int | Fraction, ...]:
    if not isinstance(raw, list | tuple):
        raise ValueError("{it} is not a list; write where ranges begin, in order: [0, 1, 5, 10]")
    given = tuple(read_items(exact_number, raw))
    check_edges(given)
    return given


def _units(raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list | tuple):
        raise ValueError("{it} is not a list; write the levels, finer first: [month, quarter, year]")
    units = tuple(read_items(text_of, raw))
    check_units(units)
    return units


def _point(raw: object) -> int | Fraction | date:
    if isinstance(raw, date):
        return raw
    try:
        return date.fromisoformat(raw) if isinstance(raw, str) and DAY.fullmatch(raw) else exact_number(raw)
    except ValueError:
        raise ValueError("{it} is neither a number nor a date; write 0, or 2000-01-01") from None


def _step(raw: object) -> int | Fraction:
    step = exact_number(raw)
    if step <= 0:
        raise ValueError("{it} is out of range; valid: a number above 0, which each width is a multiple of")
    return step


Step = Annotated[int | Fraction, BeforeValidator(_step), WithJsonSchema({"type": "number", "exclusiveMinimum": 0})]
Unit = Literal["day", "week", "month", "quarter"]
Exact = Annotated[int | Fraction, BeforeValidator(exact_number), WithJsonSchema(NUMBERS)]
Labels = Annotated[
    LabelForm,
    Field(
        description="How ranges of whole numbers are written: 15-19, or [15, 20), as those of other numbers are.",
        examples=["half_open"],
    ),
]
Finest = Annotated[
    Step | None,
    Field(
        description="The width of the cells that values are read as; nothing finer is counted or published.",
        examples=[1, 0.5],
    ),
]
Max = Annotated[
    Level | None,
    Field(
        description="The highest level that may be published; no highest where it is left out.",
        examples=[2],
    ),
]


class HierarchySource:
    """Where a hierarchy comes from: one of `FORMS`. form: the key that tells it, or the word that is all of it.

    example: how it is written. max, of every form with keys: the highest level that may be published; None for any.
    """

    form: ClassVar[str]
    example: ClassVar[str]

    @property
    def highest(self) -> int | None:
        """`max`, where it is given."""
        return getattr(self, "max", None)

    @classmethod
    def is_word(cls) -> bool:
        """Whether the form has no keys, and is written as its word alone."""
        return not fields(cls)  # type: ignore[arg-type]

    def hierarchy_of(self, attribute: str, values: Sequence[str], kind: Kind) -> Hierarchy:
        """What it builds over the distinct values of a column."""
        raise TypeError(f"a hierarchy from a {self.form} is read, not built")


def _in_cells(hierarchy: Hierarchy, cells: Hierarchy) -> Hierarchy:
    """The same over the cells that values are read as."""
    return hierarchy.in_cells(cells.columns[1])


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Suppress(HierarchySource):
    """Two levels: the value, and `*`."""

    form = "suppress"
    example = "suppress"

    def hierarchy_of(self, attribute: str, values: Sequence[str], kind: Kind) -> Hierarchy:
        return suppress(attribute, values, kind)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Digits(HierarchySource):
    """Codes of a fixed length, one character masked per level."""

    form = "digits"
    example = "{digits: 5}"
    digits: Positive = Field(description="The length of the codes; each level masks one character more.", examples=[5])
    from_: Annotated[
        Literal["right", "left"],
        Field(alias="from", description="The end at which masking begins.", examples=["right", "left"]),
    ] = "right"
    max: Max = None

    def hierarchy_of(self, attribute: str, values: Sequence[str], kind: Kind) -> Hierarchy:
        return digits(attribute, values, self.digits, self.from_, kind)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Ranges(HierarchySource):
    """Half-open intervals of growing widths; each width is a multiple of the one before.

    from, to: what lies outside of them is of one open label at each level, <15 or >=90; None for none. labels: how
    ranges of whole numbers are written. finest: the width of the cells that values are read as; None: as they are.
    """

    form = "ranges"
    example = "{ranges: [5, 10, 20]}"
    ranges: Annotated[
        tuple[int | Fraction, ...],
        BeforeValidator(_widths),
        WithJsonSchema({"type": "array", "minItems": 1, "items": {"type": "number", "exclusiveMinimum": 0}}),
    ] = Field(
        description="The width of the ranges at each level; each is a multiple of the one before.",
        examples=[[5, 10, 20]],
    )
    start: Exact = Field(default=0, description="Where a range begins.", examples=[0])
    from_: Annotated[
        Exact | None,
        Field(
            alias="from",
            description="Bottom coding: what lies below the first range from here on is one open label, <15.",
            examples=[15],
        ),
    ] = None
    to: Exact | None = Field(
        default=None,
        description="Top coding: what lies from the last range up to here on is one open label, >=90.",
        examples=[90],
    )
    labels: Labels = "plain"
    finest: Finest = None
    max: Max = None

    def __post_init__(self) -> None:
        check_ends(self.ranges, self.start, self.from_, self.to)
        check_finest(self.finest, self.ranges)

    def hierarchy_of(self, attribute: str, values: Sequence[str], kind: Kind) -> Hierarchy:
        ends = (self.from_, self.to)
        hierarchy = ranges(attribute, values, self.ranges, self.start, kind, *ends, self.labels)
        if self.finest is None:
            return hierarchy
        return _in_cells(hierarchy, ranges(attribute, values, [self.finest], self.start, kind, labels=self.labels))


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Edges(HierarchySource):
    """Ranges that begin at each of these numbers; what lies below the first, or from the last on, has an open label.

    labels, finest: as of Ranges.
    """

    form = "edges"
    example = "{edges: [0, 1, 5, 10]}"
    edges: Annotated[
        tuple[int | Fraction, ...],
        BeforeValidator(_edges),
        WithJsonSchema({"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "number"}}),
    ] = Field(
        description="Where ranges begin: below the first, and from the last on, labels are open.",
        examples=[[0, 1, 5, 10]],
    )
    labels: Labels = "plain"
    finest: Finest = None
    max: Max = None

    def __post_init__(self) -> None:
        check_finest(self.finest, self.edges)

    def hierarchy_of(self, attribute: str, values: Sequence[str], kind: Kind) -> Hierarchy:
        hierarchy = edges(attribute, values, self.edges, kind, self.labels)
        if self.finest is None:
            return hierarchy
        return _in_cells(hierarchy, ranges(attribute, values, [self.finest], 0, kind, labels=self.labels))


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Dates(HierarchySource):
    """Calendar units of dates and times: (day) week iso_year, or (day) month quarter year. finest: the unit that values
    are read as; None: as they are."""

    form = "dates"
    example = "{dates: [month, year]}"
    dates: Annotated[
        tuple[str, ...],
        BeforeValidator(_units),
        WithJsonSchema({"type": "array", "minItems": 1, "uniqueItems": True, "items": {"enum": list(UNITS)}}),
    ] = Field(
        description="The calendar unit of each level, finer first.",
        examples=[["month", "year"], ["week", "iso_year"]],
    )
    finest: Unit | None = Field(
        default=None,
        description="The unit that values are read as; nothing finer is counted or published.",
        examples=["day", "month"],
    )
    max: Max = None

    def __post_init__(self) -> None:
        if self.finest is not None:
            check_units((self.finest, *self.dates))

    def hierarchy_of(self, attribute: str, values: Sequence[str], kind: Kind) -> Hierarchy:
        hierarchy = dates(attribute, values, self.dates, kind)
        return hierarchy if self.finest is None else _in_cells(hierarchy, dates(attribute, values, [self.finest], kind))


Point = Annotated[
    int | Fraction | date,
    BeforeValidator(_point),
    WithJsonSchema({"anyOf": [NUMBERS, {"type": "string", "pattern": f"^{DAY.pattern}$"}]}),
]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Cutting:
    """The cuts of numbers or of dates: every min_width (of dates, days) from start, which is low unless given, and
    between the bounds."""

    start: Point | None = Field(
        default=None, description="Where a cut lies; `low` unless given.", examples=[0, "2000-01-01"]
    )
    min_width: Annotated[
        int | Fraction,
        BeforeValidator(exact_number),
        WithJsonSchema({"type": "number", "exclusiveMinimum": 0}),
    ] = Field(description="The width of the cells of level 1; of dates, days.", examples=[5, 30])
    low: Point = Field(description="The lower bound, which is inside.", examples=[0, "2000-01-01"])
    high: Point = Field(description="The upper bound, which is inside.", examples=[120, "2030-12-31"])

    def __post_init__(self) -> None:
        if self.start is None:
            object.__setattr__(self, "start", self.low)
        self.grid  # noqa: B018 (raises ValueError)

    @property
    def grid(self) -> Grid:
        start = self.low if self.start is None else self.start
        return Grid(start, self.min_width, self.low, self.high)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Cuts(HierarchySource):
    """Cells between declared bounds, whose ends are no values of the data; from level to level twice as wide.

    labels: as of Ranges.
    """

    form = "cuts"
    example = "{cuts: {min_width: 5, low: 0, high: 120}}"
    cuts: Cutting = Field(
        description="Cells between declared bounds, twice as wide at each level.",
        examples=[{"min_width": 5, "low": 0, "high": 120}],
    )
    labels: Labels = "plain"
    max: Max = None

    def __post_init__(self) -> None:
        if self.labels != "plain" and self.cuts.grid.of_dates:
            raise ValueError("labels is for cuts of numbers, and these are dates; leave it out")

    def hierarchy_of(self, attribute: str, values: Sequence[str], kind: Kind) -> Hierarchy:
        return cuts(attribute, values, self.cuts.grid, kind, self.labels)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CsvFile(HierarchySource):
    """A CSV file, leaf first; its path is relative to the spec. layout: with a header, or as other tools have it."""

    form = "file"
    example = "{file: CSV}"
    file: Name = Field(
        description="A CSV file with a header, one row for each value, leaf first.", examples=["hierarchies/age.csv"]
    )
    layout: Layout = Field(
        default="header", description="As other tools write it: semicolons, and no header.", examples=["semicolons"]
    )
    max: Max = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class DimensionTable(HierarchySource):
    """A table of the warehouse, one row per leaf; `levels` are its columns, leaf first."""

    form = "table"
    example = "{table: T, levels: [...]}"
    table: TableName = Field(
        description="A table of the warehouse with one row for each value.", examples=["dimensions.region"]
    )
    levels: Annotated[
        tuple[str, ...],
        BeforeValidator(listed(text_of, "columns, leaf first", 1)),
        WithJsonSchema({"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "string"}}),
    ] = Field(description="Its columns, leaf first.", examples=[["town", "county", "country"]])
    max: Max = None


FORMS: tuple[type[HierarchySource], ...] = (
    Suppress,
    Digits,
    Ranges,
    Edges,
    Dates,
    Cuts,
    CsvFile,
    DimensionTable,
)
"""All forms, in the order in which messages and the JSON Schema name them."""


def build(source: HierarchySource, attribute: str, values: Sequence[str], kind: Kind) -> Hierarchy:
    """The hierarchy that a form describes over the distinct values of a column, in canonical text.

    Raises InputError, UnfitValuesError where values do not fit; HierarchyError where what the builder made is no
    hierarchy, so that nothing is searched or published by it.
    """
    hierarchy = source.hierarchy_of(attribute, values, kind)
    problems = hierarchy.check(observed=True)
    if problems:
        raise HierarchyError(f"hierarchy of {attribute}", problems, in_file=False)
    return hierarchy


def form_of(raw: Any) -> str | None:
    """The tag of the form that a value of the file has."""
    if isinstance(raw, HierarchySource):
        return f"form:{raw.form}"
    if isinstance(raw, dict):
        return next((f"form:{source.form}" for source in FORMS if not source.is_word() and source.form in raw), None)
    return next((f"form:{source.form}" for source in FORMS if source.is_word() and source.form == raw), None)


def _member(source: type[HierarchySource]) -> Any:
    if not source.is_word():
        return Annotated[source, Tag(f"form:{source.form}")]
    without_keys = BeforeValidator(lambda raw: {} if raw == source.form else raw)
    return Annotated[source, without_keys, WithJsonSchema({"const": source.form}), Tag(f"form:{source.form}")]


if TYPE_CHECKING:
    SourceField = HierarchySource
else:
    SourceField = Annotated[Union[tuple(map(_member, FORMS))], Discriminator(form_of)]  # noqa: UP007
