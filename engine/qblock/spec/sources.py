"""Where a hierarchy comes from, as the spec says it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Union, get_args

from pydantic import ConfigDict, Discriminator, Tag
from pydantic.dataclasses import dataclass

from qblock.canonical import decimal_text
from qblock.comparison import Kind
from qblock.hierarchy import (
    Grid,
    Hierarchy,
    HierarchyError,
    Layout,
    cuts,
    dates,
    digits,
    edges,
    outer_cuts,
    ranges,
    suppress,
)
from qblock.hierarchy.builders import UNITS, check_edges, check_ends, check_finest, check_units, check_widths
from qblock.hierarchy.core import MOST_EDGES, MOST_LEVELS, check_levels
from qblock.hierarchy.written import LabelForm
from qblock.models.base import Range, more_than
from qblock.spec.fields import (
    NUMBERS,
    Checked,
    Level,
    Name,
    TableName,
    exact_number,
    in_range,
    key,
    listed,
    text_of,
    whole_number,
)

DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
STRICT = ConfigDict(
    extra="forbid",
    defer_build=True,
    hide_input_in_errors=True,
    arbitrary_types_allowed=True,
    validate_by_name=True,
    validate_by_alias=True,
)


def _point(raw: object) -> int | Fraction | date:
    if isinstance(raw, date):
        return raw
    try:
        return date.fromisoformat(raw) if isinstance(raw, str) and DAY.fullmatch(raw) else exact_number(raw)
    except ValueError:
        raise ValueError("{it} is neither a number nor a date; write 0, or 2000-01-01") from None


def _check_columns(columns: Sequence[str]) -> None:
    check_levels(len(columns) + 1, "Leave columns out")


Step = Annotated[int | Fraction, in_range(more_than(0), "a number above 0, which each width is a multiple of")]
Length = Annotated[
    int, in_range(Range(1, MOST_LEVELS - 1), f"a whole number from 1 to {MOST_LEVELS - 1}", whole_number)
]
Unit = Literal["day", "week", "month", "quarter"]
Exact = Annotated[int | Fraction, Checked(exact_number, NUMBERS)]
Width = Annotated[int | Fraction, Checked(exact_number, {"type": "number", "exclusiveMinimum": 0})]
Widths = Annotated[
    tuple[int | Fraction, ...],
    Checked(
        listed(exact_number, "the widths, finer first: [5, 10, 20]", check=check_widths),
        {
            "type": "array",
            "minItems": 1,
            "maxItems": MOST_LEVELS - 2,
            "items": {"type": "number", "exclusiveMinimum": 0},
        },
    ),
]
Ends = Annotated[
    tuple[int | Fraction, ...],
    Checked(
        listed(exact_number, "where ranges begin, in order: [0, 1, 5, 10]", check=check_edges),
        {"type": "array", "minItems": 1, "maxItems": MOST_EDGES, "uniqueItems": True, "items": NUMBERS},
    ),
]
Units = Annotated[
    tuple[str, ...],
    Checked(
        listed(text_of, "the levels, finer first: [month, quarter, year]", check=check_units),
        {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"enum": list(UNITS)}},
    ),
]
Columns = Annotated[
    tuple[str, ...],
    Checked(
        listed(text_of, "a list of columns, leaf first", 1, _check_columns),
        {"type": "array", "minItems": 1, "maxItems": MOST_LEVELS - 1, "uniqueItems": True, "items": {"type": "string"}},
    ),
]
Point = Annotated[
    int | Fraction | date,
    Checked(_point, {"anyOf": [NUMBERS, {"type": "string", "pattern": f"^{DAY.pattern}$"}]}),
]
Labels = Annotated[
    LabelForm,
    key("How ranges of whole numbers are written: 15-19, or [15, 20), as those of other numbers are.", "half_open"),
]
Finest = Annotated[
    Step | None,
    key("The width of the cells that values are read as; nothing finer is counted or published.", 1, 0.5),
]
Max = Annotated[
    Level | None,
    key("The highest level that may be published; no highest where it is left out.", 2),
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
    digits: Length = key("The length of the codes; each level masks one character more.", 5)
    from_: Annotated[
        Literal["right", "left"],
        key("The end at which masking begins.", "right", "left", alias="from"),
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
    ranges: Widths = key("The width of the ranges at each level; each is a multiple of the one before.", [5, 10, 20])
    start: Exact = key("Where a range begins.", 0, default=0)
    from_: Annotated[
        Exact | None,
        key("Bottom coding: what lies below the first range from here on is one open label, <15.", 15, alias="from"),
    ] = None
    to: Exact | None = key(
        "Top coding: what lies from the last range up to here on is one open label, >=90.", 90, default=None
    )
    labels: Labels = "plain"
    finest: Finest = None
    max: Max = None

    def __post_init__(self) -> None:
        check_ends(self.ranges, self.start, self.from_, self.to)
        check_finest(self.finest, self.ranges)

    @property
    def first_and_last(self) -> tuple[int, int] | None:
        """The numbers of the first and the last cut of the first width; None unless both ends are given."""
        first, last = outer_cuts(self.ranges[0], self.start, self.from_, self.to)
        return None if first is None or last is None else (first, last)

    @property
    def begins(self) -> tuple[int | Fraction, ...]:
        """Where ranges of the first width begin, between both ends; none unless both are given."""
        first, last = self.first_and_last or (0, -1)
        return tuple(self.start + cut * self.ranges[0] for cut in range(first, last + 1))

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
    edges: Ends = key("Where ranges begin: below the first, and from the last on, labels are open.", [0, 1, 5, 10])
    labels: Labels = "plain"
    finest: Finest = None
    max: Max = None

    def __post_init__(self) -> None:
        check_finest(self.finest, self.edges)

    @property
    def begins(self) -> tuple[int | Fraction, ...]:
        """As of Ranges."""
        return self.edges

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
    dates: Units = key("The calendar unit of each level, finer first.", ["month", "year"], ["week", "iso_year"])
    finest: Unit | None = key(
        "The unit that values are read as; nothing finer is counted or published.", "day", "month", default=None
    )
    max: Max = None

    def __post_init__(self) -> None:
        if self.finest in self.dates:
            rest = ", ".join(unit for unit in self.dates if unit != self.finest)
            remedy = f"write `dates: [{rest}]`" if rest else "leave `finest` out"
            raise ValueError(f"values are read as {self.finest} (`finest`), which does not nest in itself; {remedy}")
        if self.finest is not None:
            check_units((self.finest, *self.dates))

    def hierarchy_of(self, attribute: str, values: Sequence[str], kind: Kind) -> Hierarchy:
        hierarchy = dates(attribute, values, self.dates, kind)
        return hierarchy if self.finest is None else _in_cells(hierarchy, dates(attribute, values, [self.finest], kind))


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Cutting:
    """The cuts of numbers or of dates: every min_width (of dates, days) from start, which is low unless given, and
    between the bounds."""

    start: Point | None = key("Where a cut lies; `low` unless given.", 0, "2000-01-01", default=None)
    min_width: Width = key("The width of the cells of level 1; of dates, days.", 5, 30)
    low: Point = key("The lower bound, which is inside.", 0, "2000-01-01")
    high: Point = key("The upper bound, which is inside.", 120, "2030-12-31")

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
    cuts: Cutting = key(
        "Cells between declared bounds, twice as wide at each level.", {"min_width": 5, "low": 0, "high": 120}
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
    file: Name = key("A CSV file with a header, one row for each value, leaf first.", "hierarchies/age.csv")
    layout: Layout = key("As other tools write it: semicolons, and no header.", "semicolons", default="header")
    max: Max = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class DimensionTable(HierarchySource):
    """A table of the warehouse, one row per leaf; `levels` are its columns, leaf first."""

    form = "table"
    example = "{table: T, levels: [...]}"
    table: TableName = key("A table of the warehouse with one row for each value.", "dimensions.region")
    levels: Columns = key("Its columns, leaf first.", ["town", "county", "country"])
    max: Max = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class TaxonomyLevel:
    """The labels that a level of the attribute's own taxonomy has, in place of its leaves."""

    form: ClassVar[str] = "level"
    example: ClassVar[str] = "{level: 1}"
    level: Length = key("The level of the taxonomy whose labels are published.", 1)


Published = Ranges | Edges | TaxonomyLevel
"""What a sensitive attribute may be published as."""


def written(published: Published) -> str:
    """In the words of a spec: alike for all that is published alike."""
    if isinstance(published, TaxonomyLevel):
        return f"{{level: {published.level}}}"
    if isinstance(published, Edges):
        return f"{{edges: [{', '.join(decimal_text(Fraction(edge)) for edge in published.edges)}]}}"
    keys = {"start": published.start or None, "from": published.from_, "to": published.to}
    more = "".join(f", {key}: {decimal_text(Fraction(n))}" for key, n in keys.items() if n is not None)
    return f"{{ranges: [{decimal_text(Fraction(published.ranges[0]))}]{more}}}"


def cells_of(source: Ranges | Edges) -> tuple[list[Fraction], list[str]]:
    """Where the ranges of published numbers begin, ascending, and the labels that a hierarchy of the same words has of
    decimals: the first one is of what lies below them all."""
    # Whatever the column's type: one value more can make it another in a file, and the labels must stay.
    begins = sorted({Fraction(begin) for begin in source.begins})
    points = [decimal_text(point) for point in (begins[0] - 1, *begins)]
    labels = source.hierarchy_of("", points, "decimal").labels[1]
    return begins, [str(label) for label in labels]


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


def published_form_of(raw: Any) -> str | None:
    """As `form_of`, of what a sensitive attribute is published as."""
    given = [raw.form] if isinstance(raw, Published) else raw if isinstance(raw, dict) else ()
    return next((f"form:{source.form}" for source in get_args(Published) if source.form in given), None)


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
    without_keys = Checked(lambda raw: {} if raw == source.form else raw, {"const": source.form})
    return Annotated[source, without_keys, Tag(f"form:{source.form}")]


if TYPE_CHECKING:
    SourceField = HierarchySource
    PublishedField = Published
else:
    PublishedField = Annotated[
        Union[tuple(Annotated[source, Tag(f"form:{source.form}")] for source in get_args(Published))],  # noqa: UP007
        Discriminator(published_form_of),
    ]
    SourceField = Annotated[Union[tuple(map(_member, FORMS))], Discriminator(form_of)]  # noqa: UP007
