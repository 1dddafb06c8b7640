"""An adversary's prior that the spec gives itself, or takes from another table (epsilon_privacy)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from qblock.spec.fields import choices, exact_number, null_or_text, table_parts, text_of

NAMED = ("uniform", "table")
FORMS = "uniform, table, {values: {VALUE: WEIGHT}}, {from_table: TABLE, column: COLUMN, where: {COLUMN: VALUE}}"


@dataclass(frozen=True)
class PriorValues:
    """Weights of the sensitive values (None is NULL), in any scale; a value that is not listed has weight 0."""

    weights: tuple[tuple[str | None, int | Fraction], ...]
    kind = "values"


@dataclass(frozen=True)
class PriorTable:
    """The counts of a column's values in another table, in its rows where each column of `where` has that value."""

    table: str
    column: str
    where: tuple[tuple[str, str | None], ...] = ()
    kind = "from_table"

    @property
    def parts(self) -> tuple[str, ...]:
        return table_parts(self.table)


Prior = PriorValues | PriorTable


def read_prior(raw: Any) -> Prior | str:
    """uniform, table, or one of the two mappings. Raises ValueError."""
    if not isinstance(raw, dict):
        if raw not in NAMED:
            raise ValueError(f"{{it}} is not a prior; valid: {FORMS}")
        return str(raw)
    if list(raw) == ["values"]:
        return PriorValues(_weights(raw["values"]))
    valid = ("from_table", "column", "where") if "from_table" in raw else ("values", "from_table")
    unknown = [key for key in raw if key not in valid]
    if unknown:
        raise ValueError(f"{unknown[0]} is not a key of a prior; {choices(valid, unknown[0])}")
    if not {"from_table", "column"} <= set(raw):
        raise ValueError(f"{{it}} is not a prior; valid: {FORMS}")
    where = raw.get("where")
    if where is not None and not isinstance(where, dict):
        raise ValueError("`where` is not a mapping; write the value of each column: {year: 2024}")
    table = text_of(raw["from_table"])
    table_parts(table)
    pairs = tuple((column, null_or_text(value)) for column, value in (where or {}).items())
    return PriorTable(table, text_of(raw["column"]), pairs)


def _weights(raw: Any) -> tuple[tuple[str | None, int | Fraction], ...]:
    if not isinstance(raw, dict) or not raw:
        raise ValueError("`values` is not a mapping; write a weight for each value: {flu: 0.7, cancer: 0.3}")
    weights = []
    for value, weight in raw.items():
        try:
            weights.append((value, exact_number(weight)))
        except ValueError:
            raise ValueError(f"the weight of {'null' if value is None else value} is not a number") from None
    if min(weight for _, weight in weights) < 0 or not any(weight for _, weight in weights):
        raise ValueError("the weights are out of range; valid: 0 or more, and one of them above 0")
    return tuple(weights)
