"""Answers about a table that a program holds or names, and a first spec for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from qblock.errors import InputError
from qblock.results.base import Answer, Guarantee, Guaranteed, Levels, Metrics, Real, Value, page, pandas, table

Role = Literal["identifying", "quasi_identifier", "sensitive", "insensitive", "decide", "left out"]

Library = Literal["pandas", "polars", "arrow", "pyspark"]
ROWS_SHOWN = 10
"""Of an anonymized table in a notebook."""


class Anonymized(Guaranteed):
    """One publication of a table: generalized, checked again by itself, in an order that its own values give.

    table: the rows, as Arrow; library: that `frame` is of; spark: the session that makes it, where it is of Spark;
    quasi_identifiers: each with its hierarchy, as `anonymize` takes them again; node: the level of each; digest: of the
    rows in no order; source_digest: of the columns that were read, the same for the same data from pandas, Arrow,
    Parquet and CSV; protected: whether an attacker who knows the search learns nothing from what was chosen; notes:
    what whoever hands it on should know.
    """

    table: Any = Field(exclude=True, repr=False)
    library: Library = Field(default="pandas", exclude=True, repr=False)
    spark: Any = Field(default=None, exclude=True, repr=False)
    rows: int
    suppressed: int
    quasi_identifiers: Mapping[str, Any]
    node: Mapping[str, int]
    boxes: int | None
    tightest: tuple[Guarantee, ...]
    metrics: Metrics
    minimal: tuple[Levels, ...]
    choice: str
    why: str
    protected: bool
    digest: str
    source_digest: str
    notes: tuple[str, ...]

    @cached_property
    def frame(self) -> Any:
        """The rows in the library that they came in: a data frame of pandas, with an index of its own, of polars or of
        Spark, or an Arrow table. Files come back as a frame of pandas."""
        return self.to_frame()

    def to_frame(self) -> Any:
        """The same as a frame that is nobody else's. Raises InputError for a file's rows where pandas is missing."""
        if self.library == "arrow":
            return self.table
        if self.library == "polars":
            import polars

            return polars.from_arrow(self.table)
        if self.library == "pyspark":
            if self.spark is None:
                raise InputError("no session came along; give the rows to one: spark.createDataFrame(made.table)")
            return self.spark.createDataFrame(self.table)
        pandas()
        return self.table.to_pandas()

    def __getstate__(self) -> dict[Any, Any]:
        state = super().__getstate__()
        # No session can be kept, nor a frame of one.
        fields = {name: value for name, value in state["__dict__"].items() if name != "frame"}
        return {**state, "__dict__": {**fields, "spark": None}}

    def _repr_html_(self) -> str:
        suppressed = f", {self.suppressed:,} suppressed" if self.suppressed else ""
        first = self.table.slice(0, ROWS_SHOWN)
        return page(
            f"Anonymized: {self.rows:,} rows{suppressed}",
            table(("column", "hierarchy", "level"), self._columns()),
            table(self.columns_shown, self.rows_shown()),
            table(self.table.column_names, list(zip(*first.to_pydict().values(), strict=True))),
            *([f"These are the first {ROWS_SHOWN} of {self.rows:,} rows."] if self.rows > ROWS_SHOWN else []),
            *self.notes,
        )

    def _columns(self) -> list[tuple[str, str, int | None]]:
        """Each quasi-identifier with its hierarchy in the words of a spec."""
        return [
            (name, _in_words(entry["hierarchy"]), self.node.get(name)) for name, entry in self.quasi_identifiers.items()
        ]


def _in_words(form: Any) -> str:
    """A hierarchy on one line."""
    return ", ".join(f"{key}: {value}" for key, value in form.items()) if isinstance(form, Mapping) else str(form)


class Candidate(Value):
    """A column that may say who a row is about. count: `rows` where each value has one row, else `entities`; distinct:
    values; nulls: rows without one; rows_mean, rows_most: rows of a value, on average and at most; meaning: in words.
    """

    column: str
    count: str
    distinct: int
    nulls: int
    rows_mean: Real
    rows_most: int
    meaning: str


class Entity(Value):
    """Who the rows of a table are about. column, count: as a spec would say it, None where nobody is named; how:
    `found` (there is one clear candidate), `asked`, `given`, `open` (none is clear) or `nobody` (there is none)."""

    column: str | None
    count: str | None
    how: Literal["found", "asked", "given", "open", "nobody"]
    why: str
    candidates: tuple[Candidate, ...]


class ProfiledColumn(Value):
    """A column with the role that is proposed, and why. entry: what `attributes` of a spec says of it besides;
    approximate: whether the number of distinct values is, which decided nothing then."""

    name: str
    type: str
    role: Role
    distinct: int
    nulls: int
    reason: str
    entry: Mapping[str, Any]
    approximate: bool


class Profiled(Answer):
    """A first look at a table: a role for each column and who a row is about, to be checked by a person."""

    columns_shown = ("column", "type", "role", "distinct", "nulls", "reason")

    rows: int
    columns: tuple[ProfiledColumn, ...]
    entity: Entity

    @property
    def quasi_identifiers(self) -> Mapping[str, Any]:
        """The columns that others may know, as `anonymize` takes them."""
        return {column.name: column.entry for column in self.columns if column.role == "quasi_identifier"}

    @property
    def sensitive(self) -> Mapping[str, Any]:
        """The sensitive columns, as `anonymize` takes them."""
        return {column.name: column.entry for column in self.columns if column.role == "sensitive"}

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        return [(c.name, c.type, c.role, c.distinct, c.nulls, c.reason) for c in self.columns]

    def _repr_html_(self) -> str:
        candidates = [(c.column, c.distinct, c.rows_mean, c.rows_most, c.meaning) for c in self.entity.candidates]
        columns = ("column", "values", "rows of a value", "at most", "as entity")
        return page(
            f"Profile of {self.rows:,} rows",
            table(self.columns_shown, self.rows_shown()),
            *([table(columns, candidates)] if candidates else []),
            f"{'' if self.entity.how == 'open' else 'Person column: '}{self.entity.why}.",
        )


class ProposedColumn(Value):
    """A column, and the role that is proposed for it. approximate: whether the number of distinct values is, which
    decided nothing then; nulls: rows without a value; values: how many distinct ones, in words."""

    name: str
    role: Role
    distinct: int
    approximate: bool
    reason: str
    nulls: int = Field(default=0, exclude=True)
    values: str = Field(default="", exclude=True)


class TellingSet(Value):
    """Columns that tell most people apart. share: of those who are alone with their values."""

    columns: tuple[str, ...]
    share: Real


class History(Value):
    """A table that keeps what was. key: the column that its rows repeat; where: the condition of the current rows, as
    the spec has it; rows: of the table, of which `kept` are current; why: in words."""

    key: str
    where: str
    rows: int
    kept: int
    why: str


class Proposed(Answer):
    """A first spec. files: that were written, the spec last; page: of them the one to choose roles on, if it was
    written; regime: `steady` where later versions lag behind the
    source, `once` for one publication; open: the lines of the spec, by column, on which a role is left to a person: no
    command reads it before; nodes: of the lattice as it is proposed; apart: sets of columns that tell most people apart
    (alone: in words); types: of columns of CSV files that are no texts; notes: on what of them nearly has a type;
    history: where the table is one, of whose current rows all this is."""

    columns_shown = ("column", "role", "distinct", "reason")

    rows: int
    files: tuple[Path, ...]
    columns: tuple[ProposedColumn, ...]
    entity: Entity
    regime: Literal["steady", "once"]
    open: Mapping[str, int]
    nodes: int
    apart: tuple[TellingSet, ...]
    types: Mapping[str, str]
    notes: tuple[str, ...]
    history: History | None
    alone: str = Field(default="", exclude=True)
    page: Path | None = Field(default=None, exclude=True)

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        return [(column.name, column.role, column.distinct, column.reason) for column in self.columns]
