"""The published view as an estimate reads it: its columns by what the helper views say of them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date
from functools import cached_property
from typing import Any

from qblock.comparison import NUMBERS, Kind, key
from qblock.engines.tables import TableName
from qblock.errors import InputError, choices
from qblock.estimate.columns import Bounded, BoundedColumn, Column, LabelColumn, ValueColumn
from qblock.estimate.conditions import Condition, Interval, read_condition, whole, with_intervals
from qblock.hierarchy import TOP
from qblock.publish.helpers import MEAN_ROLE, WEIGHT_ROLE, names
from qblock.publish.helpers import Kind as Helper
from qblock.publish.spread import EPOCH
from qblock.publish.targets.protocol import Rows
from qblock.spec import Spec

DATES = ("date", "timestamp", "timestamptz")
QUASI = "quasi-identifier"
ASKED_ABOUT = (QUASI, "sensitive attribute", "insensitive")
"""Roles of columns that a question may be about."""


class PublishedView:
    """The view of a release, its helper views beside it, read in one session."""

    def __init__(self, spec: Spec, rows: Rows) -> None:
        self._spec = spec
        self.session, self.rows = rows.session, rows.rows

    @cached_property
    def kinds(self) -> Mapping[str, Kind]:
        """The kind of each column of the view."""
        place = TableName(self._spec.publish.schema, self._spec.view)
        return {name: column.kind for name, column in self.session.columns(place).items()}

    @cached_property
    def weight(self) -> str:
        """The column of weights. Raises InputError where there is none."""
        name = next((row["column_name"] for row in self._columns if row["role"] == WEIGHT_ROLE), None)
        if name is None:
            raise InputError("rows have no weights here; leave weights out, or publish them: publish: {weights: true}")
        return str(name)

    def mean_of(self, name: str) -> str | None:
        """The column that has the mean of another one in each block; None where there is none."""
        role = MEAN_ROLE.format(name)
        return next((row["column_name"] for row in self._columns if row["role"] == role), None)

    @cached_property
    def numbers(self) -> list[str]:
        """The columns of which readers see numbers."""
        return [row["column_name"] for row in self._columns if self.has_numbers(row["column_name"])]

    def has_numbers(self, name: str) -> bool:
        """Whether readers see numbers of a column: values, or bounds of labels."""
        row = next(row for row in self._columns if row["column_name"] == name)
        if row["role"] == QUASI:
            return name in self._cells and not self._of_dates(row)
        return row["role"] in ASKED_ABOUT and self.kinds[name] in NUMBERS

    def column(self, name: str) -> Column:
        """A column that a question may be about. Raises InputError for another one."""
        known = {row["column_name"]: row for row in self._columns if row["role"] in ASKED_ABOUT}
        if name not in known:
            raise InputError(
                f"{name} is no column of {self._spec.view} that has labels or values; {choices(list(known), name)}"
            )
        row = known[name]
        if row["role"] != QUASI:
            return ValueColumn(name, self.kinds[name])
        return self._bounded(row) if name in self._cells else self._labelled(name)

    def _bounded(self, row: Mapping[str, Any]) -> BoundedColumn:
        name, dates = row["column_name"], self._of_dates(row)
        step = 1.0 if dates or row["source_type"] == "integer" else 0.0
        labels = {
            entry["label"]: Bounded(
                whole(Interval(_end(entry["low"], -math.inf), _end(entry["high"], math.inf)), step),
                self._cells[name][entry["label"]],
            )
            for entry in self._levels
            if entry["column_name"] == name
        }
        return BoundedColumn(name, step, dates, labels)

    def _labelled(self, name: str) -> LabelColumn:
        own = [entry for entry in self._levels if entry["column_name"] == name]
        levels = {entry["label"]: entry["level"] for entry in own}
        members = {entry["label"]: frozenset(json.loads(entry["members"])) for entry in own if entry["members"]}
        complete = [entry["label"] for entry in own if entry["complete"]]
        return LabelColumn(name, levels, {entry["label"]: entry["rows"] for entry in own}, members, complete)

    def _of_dates(self, row: Mapping[str, Any]) -> bool:
        return row["source_type"] in DATES or row["column_name"] in self._dates

    @cached_property
    def _columns(self) -> list[dict[str, Any]]:
        return self._helper("columns")

    @cached_property
    def _levels(self) -> list[dict[str, Any]]:
        return self._helper("levels")

    @cached_property
    def _spread(self) -> list[dict[str, Any]]:
        return self._helper("spread")

    @cached_property
    def _dates(self) -> set[str]:
        ends = ("from_date", "until_date")
        return {row["column_name"] for row in self._spread if any(row[end] is not None for end in ends)}

    @cached_property
    def _cells(self) -> dict[str, dict[str, list[tuple[Interval, float]]]]:
        """The cells of each label, by column."""
        cells: dict[str, dict[str, list[tuple[Interval, float]]]] = {}
        for row in self._spread:
            interval = Interval(
                -math.inf if row["low"] is None else row["low"], math.inf if row["high"] is None else row["high"]
            )
            cells.setdefault(row["column_name"], {}).setdefault(row["label"], []).append((interval, row["share"]))
        return cells

    def _helper(self, kind: Helper) -> list[dict[str, Any]]:
        name = names(self._spec.view, self._spec.publish.names)[kind]
        table = TableName(self._spec.publish.schema, name)
        try:
            self.session.columns(table)
        except InputError as error:
            raise InputError(
                f"{self._spec.view} has no helper view {name} that this login may read; publish again: `qblock release "
                f"{self._spec.path.name} --force`, or ask for SELECT on it"
            ) from error
        return self.session.read(table).to_pylist()


def _end(text: str | None, otherwise: float) -> float:
    """An end of a label as a number, or as a day."""
    if text is None or text.endswith("infinity"):
        return otherwise
    try:
        return float(text)
    except ValueError:
        return float((date.fromisoformat(text) - EPOCH).days)


def with_condition(column: Column, raw: Any) -> Condition:
    """A condition on a column. Raises InputError for what is none of it."""
    condition = read_condition(column.name, raw)
    if isinstance(column, BoundedColumn):
        if None in condition.values:
            raise InputError(f"{column.name}: no label says that a value is missing; leave None out")
        return with_intervals(column.name, condition, dates=column.dates, step=column.step)
    if isinstance(column, LabelColumn):
        _check_labels(column, condition)
    elif isinstance(column, ValueColumn) and condition.is_range:
        _check_ends(column, condition)
    return condition


def _check_labels(column: LabelColumn, condition: Condition) -> None:
    if condition.is_range:
        raise InputError(f"{column.name}: its labels are in no order; name some of them as a list")
    labels = [label for label in column.levels if label != TOP]
    for value in condition.values:
        if value not in labels:
            raise InputError(f"{column.name}: {value!r} is no published label; {choices(labels, value or '')}")


def _check_ends(column: ValueColumn, condition: Condition) -> None:
    """Ends must be values of the column's kind, which has an order that readers expect."""
    ends = [end for end in condition.ends if end is not None]
    if column.kind not in (*NUMBERS, *DATES):
        raise InputError(f"{column.name}: its values are text, of which no range is asked; name some of them as a list")
    for end in ends:
        if key(end, column.kind)[0] not in (-1, 0, 1):
            raise InputError(f"{column.name}: {end!r} is no value of a column of type {column.kind}")
