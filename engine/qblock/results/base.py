"""What all answers share: frozen values with a form in JSON, a data frame, and a table for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from qblock.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

Number = int | float | str | None
"""As JSON has it: infinity is the text "inf", and nothing is None."""
Real = int | float
Levels = tuple[int, ...]
Metrics = Mapping[str, Number]
Weights = Mapping[str, Real] | None


def _open(schema: dict[str, Any]) -> None:
    """Keys are only added: so more keys than those of a schema are valid. A title would say the name of a key again."""
    schema.pop("additionalProperties", None)
    for key in schema.get("properties", {}).values():
        key.pop("title", None)


class Value(BaseModel):
    """Frozen data, which is named as its JSON is. Keys that an answer does not have are not set."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        defer_build=True,
        serialize_by_alias=True,
        validate_by_name=True,
        json_schema_extra=_open,
        protected_namespaces=(),
    )

    columns_shown: ClassVar[tuple[str, ...]] = ("key", "value")
    """The names of the columns of `rows_shown`."""

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        return self.model_dump(mode="json", exclude_unset=True)

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        """The rows of the table that stands for it; by default its keys with plain values."""
        return [(name, value) for name, value in self if isinstance(value, str | int | float)]

    def _repr_html_(self) -> str:
        return page(type(self).__name__, table(self.columns_shown, self.rows_shown()))

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


class Shown(Value):
    """A part of a report: every key is there."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class Answer(Value):
    """What a command prints with --json, and the Python function of the same name returns."""

    @property
    def title(self) -> str:
        """One line for a notebook."""
        return f"{type(self).__name__}: {getattr(self, 'release', '')}".removesuffix(": ")

    @property
    def remarks(self) -> Sequence[str]:
        """Sentences below the table."""
        return [*getattr(self, "notes", ()), *getattr(self, "warnings", ())]

    def to_frame(self) -> pd.DataFrame:
        """The table that stands for it. Imports pandas."""
        return frame(self.columns_shown, self.rows_shown())

    def _repr_html_(self) -> str:
        return page(self.title, table(self.columns_shown, self.rows_shown()), *self.remarks)


class Reached(Value):
    """The strongest value of a parameter that a table satisfies. exact: where `value` is rounded; attained: False where
    every weaker value holds and this one does not."""

    parameter: str
    value: Number
    attained: bool
    exact: Fraction | None = None


class Guarantee(Value):
    """A model on a table. sensitive: of which attributes; asked: its parameters; holds: None where nobody asked."""

    model: str
    holds: bool | None
    values: tuple[Reached, ...]
    sensitive: tuple[str, ...]
    asked: Mapping[str, Any]
    meaning: str | None = None


class Guaranteed(Answer):
    """An answer whose table is that of its guarantees."""

    columns_shown = ("model", "sensitive", "asked", "parameter", "value", "attained", "holds")

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """Those of `tightest`."""
        return getattr(self, "tightest", ())

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        return [
            (
                guarantee.model,
                ", ".join(guarantee.sensitive),
                ", ".join(f"{name}={value}" for name, value in guarantee.asked.items()),
                value.parameter,
                value.value,
                value.attained,
                guarantee.holds,
            )
            for guarantee in self.guarantees
            for value in guarantee.values
        ]


class NotComputed(Value):
    """A model that was not computed. what: in words; why: what the table would have to have for it."""

    model: str
    sensitive: tuple[str, ...]
    what: str
    why: str


class ColumnLabels(Value):
    """Labels of one kind. level, name: of the hierarchy; form: one label, neighbours, or others together; like: the
    label that most rows have; share: of the published rows."""

    level: int
    name: str
    form: Literal["plain", "range", "rest"]
    like: str | None = None
    share: Real


class ShownColumn(Value):
    """What readers see of a quasi-identifier, as shares of the published rows. suppressed: of those that have `*`."""

    attribute: str
    suppressed: Real
    labels: tuple[ColumnLabels, ...]
    words: str


class ExpectedNode(Value):
    """How a job goes on that publishes a node, where versions lag behind the source, over 52 runs. blocks: how many it
    has; mean_wait, worst_wait: of newcomers, in runs, the mean None where nobody was shown; lag, worst_lag: share of
    the rows that the view does not show as they are; never: share of the newcomers whose block shows none."""

    node: Levels
    blocks: int
    mean_wait: Real | None
    worst_wait: int
    lag: Real
    worst_lag: Real
    never: Real


class Churn(Value):
    """Shares of the people in each run: who come, leave, and whose value changes."""

    coming: Real
    leaving: Real
    changing: Real


class Forecast(Value):
    """How a job would go on at some nodes. recommended: the node with which it does."""

    churn: Churn
    nodes: tuple[ExpectedNode, ...]
    recommended: Levels
    why: str


class FrontierChoice(Value):
    """What a job may be told. least: people of a box of the first version; within: runs until newcomers are shown; box:
    people of a box of newcomers; today: whether the spec says so."""

    least: int
    within: int
    box: int
    today: bool


class FrontierRow(FrontierChoice):
    """What a year comes to with a choice, after the last run where nothing else is said.

    boxes: of the first version; not_shown, most_not_shown: share of the people present who are in no row, over the
    runs; longest_wait: of newcomers, in runs; newcomers: share of those who came later who were shown; left: share of
    the rows that are of people who left; gone: share of those who were shown and left who are in no row any more;
    error, error_unweighted: the median of a workload of counts, with weighted rows and without; versions: with the
    first; moves: whether newcomers and leavers both come to be shown as they are.
    """

    boxes: int
    loss: Real
    not_shown: Real
    most_not_shown: Real
    longest_wait: int
    newcomers: Real
    left: Real
    gone: Real
    error: Real
    error_unweighted: Real
    versions: int
    moves: bool


class Frontier(Value):
    """A year of the job with each choice of boxes and delay. people: of the table; recommended: the choice to make,
    None where there is none, and why; assumes: what the simulation takes for granted."""

    churn: Churn
    runs: int
    seed: int
    people: int
    rows: tuple[FrontierRow, ...]
    recommended: FrontierChoice | None
    why: str
    assumes: tuple[str, ...]


class Markup(str):
    """HTML that is done; every other text is escaped."""


def page(title: str, *parts: str) -> str:
    """A title and what is below it: tables, and sentences as paragraphs."""
    below = "".join(part if isinstance(part, Markup) else f"<p>{escape(part)}</p>" for part in parts)
    return f"<div><p><strong>{escape(title)}</strong></p>{below}</div>"


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Markup:
    """A table; None is an empty cell."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows)
    return Markup(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return escape(f"{value:.6g}" if isinstance(value, float) else str(value))


def frame(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> pd.DataFrame:
    """Rows as a data frame. Raises InputError where pandas is not installed."""
    return pandas().DataFrame(rows, columns=list(columns))


def pandas() -> Any:
    """The library of data frames, which is an extra. Raises InputError where it is not installed."""
    try:
        import pandas
    except ImportError:
        raise InputError('a data frame needs pandas, which is not installed: pip install "qblock[frames]"') from None
    return pandas
