"""What a release keeps of its source, as figures: shares of labels, numbers, correlations."""

from __future__ import annotations

from typing import Literal

from qblock.results.base import Real, Shown


class ShareKept(Shown):
    """A label, with its share of the rows of the source and of the published ones. label: None where it is NULL."""

    label: str | None
    source: Real
    released: Real


class NumbersKept(Shown):
    """Of the rows that have a number. lower, upper: quartiles; each is the least number that so many rows do not
    exceed."""

    mean: Real
    lower: Real
    median: Real
    upper: Real


class ColumnKept(Shown):
    """A column in the source and as it is published. labels: at most 20 of a quasi-identifier and 10 of another column,
    all of them published or of a hierarchy; rest_source, rest_released: the shares of what is not named; distance: half
    the sum of the differences, 0 where all shares are kept; source, released: its numbers, None where it has none."""

    name: str
    role: str
    labels: tuple[ShareKept, ...]
    rest_source: Real
    rest_released: Real
    distance: Real
    source: NumbersKept | None
    released: NumbersKept | None


class PairKept(Shown):
    """How two columns go together. source, released: None where it is not defined, of a column with one value; loss:
    the difference."""

    first: str
    second: str
    measure: Literal["pearson", "cramers_v"]
    source: Real | None
    released: Real | None
    loss: Real | None


class UtilityKept(Shown):
    """The source as it is now beside the version that readers see. pairs: those that lose most, of pairs_total."""

    rows_source: int
    rows_released: int
    columns: tuple[ColumnKept, ...]
    pairs: tuple[PairKept, ...]
    pairs_total: int
