"""Where a hierarchy comes from, as the spec says it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass as dataclass_
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
    """Where a hierarchy comes from: one of the forms. form: the key that tells it, or the word that is all of it.

    max, of every form with keys: the highest level that may be published; None for any.
    """

    form: ClassVar[str]

    @property
    def highest(self) -> int | None:
        """`max`, where it is given."""
        return getattr(self, "max", None)


Builder = Callable[[Any, str, Iterable[str], Kind], Hierarchy]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Suppress(HierarchySource):
    """Two levels: the value, and `*`."""

    form = "suppress"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Digits(HierarchySource):
    """Codes of a fixed length, one character masked per level."""

    form = "digits"
    digits: Positive = Field(description="The length of the codes; each level masks one character more.", examples=[5])
    from_: Annotated[
        Literal["right", "left"],
        Field(alias="from", description="The end at which masking begins.", examples=["right", "left"]),
    ] = "right"
    max: Max = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Ranges(HierarchySource):
    """Half-open intervals of growing widths; each width is a multiple of the one before.

    from, to: what lies outside of them is of one open label at each level, <15 or >=90; None for none. labels: how
    ranges of whole numbers are written. finest: the width of the cells that values are read as; None: as they are.
    """

    form = "ranges"
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


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Edges(HierarchySource):
    """Ranges that begin at each of these numbers; what lies below the first, or from the last on, has an open label.

    labels, finest: as of Ranges.
    """

    form = "edges"
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


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Dates(HierarchySource):
    """Calendar units of dates and times: (day) week iso_year, or (day) month quarter year. finest: the unit that values
    are read as; None: as they are."""

    form = "dates"
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
    cuts: Cutting = Field(
        description="Cells between declared bounds, twice as wide at each level.",
        examples=[{"min_width": 5, "low": 0, "high": 120}],
    )
    labels: Labels = "plain"
    max: Max = None

    def __post_init__(self) -> None:
        if self.labels != "plain" and self.cuts.grid.of_dates:
            raise ValueError("labels is for cuts of numbers, and these are dates; leave it out")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CsvFile(HierarchySource):
    """A CSV file, leaf first; its path is relative to the spec. layout: with a header, or as other tools have it."""

    form = "file"
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
    table: TableName = Field(
        description="A table of the warehouse with one row for each value.", examples=["dimensions.region"]
    )
    levels: Annotated[
        tuple[str, ...],
        BeforeValidator(listed(text_of, "columns, leaf first", 1)),
        WithJsonSchema({"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "string"}}),
    ] = Field(description="Its columns, leaf first.", examples=[["town", "county", "country"]])
    max: Max = None


@dataclass_(frozen=True)
class Form:
    """One way of giving a hierarchy in a spec: its class, an example as it is written, and how it is built.

    builder: of the class's instance, the attribute, the distinct values of its column and their kind; None where the
    hierarchy is read, not built. values, kind: a column that the example fits.
    """

    source: type[HierarchySource]
    example: str
    builder: Builder | None = None
    values: tuple[str, ...] = ()
    kind: Kind = "text"

    @property
    def tag(self) -> str:
        """The key that tells the form, or the word that is all of it."""
        return self.source.form

    @property
    def word(self) -> bool:
        """Whether the form has no keys, and is written as its tag alone."""
        return not fields(self.source)  # type: ignore[arg-type]


FORMS: tuple[Form, ...] = (
    Form(Suppress, "suppress", lambda form, *of: suppress(*of), ("f", "m")),
    Form(
        Digits,
        "{digits: 5}",
        lambda form, name, values, kind: digits(name, values, form.digits, form.from_, kind),
        ("13053", "13068", "14850"),
    ),
    Form(
        Ranges,
        "{ranges: [5, 10, 20]}",
        lambda form, name, values, kind: ranges(
            name, values, form.ranges, form.start, kind, form.from_, form.to, form.labels
        ),
        ("0", "7", "31", "32"),
        "integer",
    ),
    Form(
        Edges,
        "{edges: [0, 1, 5, 10]}",
        lambda form, name, values, kind: edges(name, values, form.edges, kind, form.labels),
        ("0", "3", "7", "31"),
        "integer",
    ),
    Form(
        Dates,
        "{dates: [month, year]}",
        lambda form, name, values, kind: dates(name, values, form.dates, kind),
        ("2025-12-31", "2026-01-01", "2026-01-02"),
        "date",
    ),
    Form(
        Cuts,
        "{cuts: {min_width: 5, low: 0, high: 120}}",
        lambda form, name, values, kind: cuts(name, values, form.cuts.grid, kind, form.labels),
        ("0", "7", "31", "120"),
        "integer",
    ),
    Form(CsvFile, "{file: CSV}"),
    Form(DimensionTable, "{table: T, levels: [...]}"),
)
"""All forms, in the order in which messages and the JSON Schema name them."""


def build(source: HierarchySource, attribute: str, values: Iterable[str], kind: Kind) -> Hierarchy:
    """The hierarchy that a form describes over the distinct values of a column, in canonical text.

    Raises InputError, UnfitValuesError where values do not fit; HierarchyError where what the builder made is no
    hierarchy, so that nothing is searched or published by it.
    """
    (form,) = (form for form in FORMS if form.source is type(source))
    if form.builder is None:
        raise TypeError(f"a hierarchy from a {form.tag} is read, not built")
    hierarchy = form.builder(source, attribute, values, kind)
    finest = getattr(source, "finest", None)
    if finest is not None and isinstance(source, Dates):
        hierarchy = hierarchy.in_cells(dates(attribute, values, [finest], kind).columns[1])
    elif finest is not None and isinstance(source, Ranges | Edges):
        start = source.start if isinstance(source, Ranges) else 0
        cells = ranges(attribute, values, [finest], start, kind, labels=source.labels)
        hierarchy = hierarchy.in_cells(cells.columns[1])
    problems = hierarchy.check(observed=True)
    if problems:
        raise HierarchyError(f"hierarchy of {attribute}", problems, in_file=False)
    return hierarchy


def form_of(raw: Any) -> str | None:
    """The tag of the form that a value of the file has."""
    if isinstance(raw, HierarchySource):
        return f"form:{raw.form}"
    if isinstance(raw, dict):
        return next((f"form:{form.tag}" for form in FORMS if not form.word and form.tag in raw), None)
    return next((f"form:{form.tag}" for form in FORMS if form.word and form.tag == raw), None)


def _member(form: Form) -> Any:
    if not form.word:
        return Annotated[form.source, Tag(f"form:{form.tag}")]
    without_keys = BeforeValidator(lambda raw: {} if raw == form.tag else raw)
    return Annotated[form.source, without_keys, WithJsonSchema({"const": form.tag}), Tag(f"form:{form.tag}")]


if TYPE_CHECKING:
    SourceField = HierarchySource
else:
    SourceField = Annotated[Union[tuple(map(_member, FORMS))], Discriminator(form_of)]  # noqa: UP007
