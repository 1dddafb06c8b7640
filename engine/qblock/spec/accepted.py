"""What somebody answers for, of all that the checks find."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints
from pydantic.dataclasses import dataclass

from qblock.spec.fields import key
from qblock.spec.sources import STRICT

CheckName = Literal[
    "determines",
    "single_rows",
    "spellings",
    "unknown_codes",
    "unique_sensitive",
    "skew",
    "groups",
    "uncovered",
    "volatile",
    "history",
]
Because = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Accepted:
    """A finding of `qblock check` that may stay as it is, and why."""

    check: CheckName = key("The check, as `qblock check` names it.", "determines")
    column: str = key("The column that it is about.", "birth_year")
    of: str | None = key("The quasi-identifier that the column tells, or that excludes values.", "age", default=None)
    because: Because = key("Why it may stay; it goes into the ledger.", "readers do not see birth_year")

    @property
    def columns(self) -> tuple[str, ...]:
        """As a finding names them."""
        return (self.column,) if self.of is None else (self.column, self.of)

    @property
    def in_words(self) -> str:
        """As the ledger has it."""
        told = "" if self.of is None else f" {self.of}"
        return f"accepted: {self.column} {self.check}{told}, because: {self.because}"
