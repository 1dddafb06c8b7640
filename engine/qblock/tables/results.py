"""What the functions on tables return: values alone, for programs (`to_dict`), pandas (`to_frame`) and notebooks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from qblock.profiling.people import Entity as ProfiledEntity
from qblock.tables.beliefs import Beliefs
from qblock.tables.html import page, table

if TYPE_CHECKING:
    import pandas as pd

Number = int | float | str | None
"""As JSON has it: infinity is the text "inf", and nothing is None."""
Role = Literal["identifying", "quasi_identifier", "sensitive", "insensitive", "decide", "left out"]


@dataclass(frozen=True)
class Reached:
    """The strongest value of a parameter that a table satisfies. exact: a fraction, where `value` is rounded.

    attained: False where every weaker value holds and this one does not.
    """

    parameter: str
    value: Number
    attained: bool
    exact: str | None = None


@dataclass(frozen=True)
class Guarantee:
    """A model on a table. sensitive: of which attributes; asked: its parameters; holds: None where nobody asked."""

    model: str
    sensitive: tuple[str, ...]
    asked: tuple[tuple[str, Any], ...]
    holds: bool | None
    reached: tuple[Reached, ...]

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Guarantee:
        """From an entry of `tightest` in an answer of the command line."""
        return cls(
            entry["model"],
            tuple(entry["sensitive"]),
            tuple((name, _frozen(value)) for name, value in entry["asked"].items()),
            entry["holds"],
            tuple(Reached(v["parameter"], v["value"], v["attained"], v.get("exact")) for v in entry["values"]),
        )


@dataclass(frozen=True)
class Attack:
    """What an attacker finds of a sensitive attribute, in a sentence. name: homogeneity, background_knowledge, ..."""

    sensitive: str
    name: str
    sentence: str

    @classmethod
    def all_of(cls, entries: Iterable[Mapping[str, Any]]) -> tuple[Attack, ...]:
        """From `attacks` in an answer of the command line."""
        return tuple(
            cls(entry["sensitive"], name, figure["sentence"])
            for entry in entries
            for name, figures in entry.items()
            if name != "sensitive"
            for figure in (figures if isinstance(figures, list) else [figures])
        )


@dataclass(frozen=True)
class Audited:
    """A table as it stands: the tightest parameter of every model, attacks, and utility. answer: all of it as JSON.

    not_computed: what was not, each with what the table would have to have for it (an order, numbers, ...); beliefs: of
    the adversary that was asked about, for each sensitive attribute.
    """

    rows: int
    guarantees: tuple[Guarantee, ...]
    attacks: tuple[Attack, ...]
    metrics: tuple[tuple[str, Number], ...]
    not_computed: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    answer: str = field(repr=False)
    beliefs: tuple[Beliefs, ...] = ()

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Audited:
        """From the answer of `qblock audit --json`."""
        return cls(
            answer["rows"],
            tuple(map(Guarantee.of, answer["tightest"])),
            Attack.all_of(answer["attacks"]),
            tuple(answer["metrics"].items()),
            tuple((entry["what"], entry["why"]) for entry in answer["not_computed"]),
            tuple(answer["warnings"]),
            json.dumps(answer),
            Beliefs.all_of(answer.get("beliefs", ())),
        )

    def to_dict(self) -> dict[str, Any]:
        """What `qblock audit --json` prints."""
        return dict(json.loads(self.answer))

    def to_frame(self) -> pd.DataFrame:
        """A row for each model, sensitive attribute and parameter that is reported."""
        return frame(COLUMNS, guarantee_rows(self.guarantees))

    def _repr_html_(self) -> str:
        return page(
            f"Audit of {self.rows:,} rows",
            table(COLUMNS, guarantee_rows(self.guarantees)),
            *(attack.sentence for attack in self.attacks),
            *(sentence for belief in self.beliefs for sentence in belief.sentences),
            *(f"Not computed: {what}, {why}." for what, why in self.not_computed),
            *self.notes,
        )


@dataclass(frozen=True, eq=False)
class Anonymized:
    """One publication of a table: generalized, checked again by itself, in an order that its own values give.

    table: the rows; levels: the level of each quasi-identifier; digest: of the rows in no order; source_digest: of the
    columns that were read, the same for the same data from pandas, Arrow, Parquet and CSV; protected: whether an
    attacker who knows the search learns nothing from what was chosen; notes: what whoever hands it on should know.
    """

    table: pa.Table = field(repr=False)
    levels: tuple[tuple[str, int], ...]
    rows: int
    suppressed: int
    guarantees: tuple[Guarantee, ...]
    metrics: tuple[tuple[str, Number], ...]
    minimal: tuple[tuple[int, ...], ...]
    choice: str
    why: str
    protected: bool
    digest: str
    source_digest: str
    notes: tuple[str, ...]
    answer: str = field(repr=False)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The rows as a data frame with an index of its own. Imports pandas."""
        return self.table.to_pandas()

    def to_frame(self) -> pd.DataFrame:
        """The same as a frame that is nobody else's."""
        return self.table.to_pandas()

    def to_dict(self) -> dict[str, Any]:
        """Everything but the rows."""
        return dict(json.loads(self.answer))

    def _repr_html_(self) -> str:
        suppressed = f", {self.suppressed:,} suppressed" if self.suppressed else ""
        return page(
            f"Anonymized: {self.rows:,} rows{suppressed}",
            table(("column", "level"), self.levels),
            table(COLUMNS, guarantee_rows(self.guarantees)),
            *self.notes,
        )


@dataclass(frozen=True)
class ProfiledColumn:
    """A column with the role that is proposed, and why. entry: as `attributes` of a spec has it, as JSON; approximate:
    whether the number of distinct values is, which decided nothing then."""

    name: str
    type: str
    role: Role
    distinct: int
    nulls: int
    reason: str
    entry: str = field(repr=False)
    approximate: bool = False


@dataclass(frozen=True)
class Candidate:
    """A column that may say who a row is about. count: `rows` where each value has one row, else `entities`; distinct:
    values; nulls: rows without one; rows_mean, rows_most: rows of a value, on average and at most; meaning: in words.
    """

    column: str
    count: str
    distinct: int
    nulls: int
    rows_mean: float
    rows_most: int
    meaning: str


@dataclass(frozen=True)
class Entity:
    """Who the rows of a table are about. column, count: as a spec would say it, None where nobody is named; how:
    `found` (there is one clear candidate), `asked`, `given`, `open` (none is clear) or `nobody` (there is none)."""

    column: str | None
    count: str | None
    how: str
    why: str
    candidates: tuple[Candidate, ...]

    @classmethod
    def of(cls, guess: ProfiledEntity) -> Entity:
        """From what profiling has found."""
        answer = guess.to_json()
        candidates = [Candidate(**candidate) for candidate in answer.pop("candidates")]
        return cls(**answer, candidates=tuple(candidates))

    def to_dict(self) -> dict[str, Any]:
        """As `qblock init --json` has it."""
        return {**vars(self), "candidates": [dict(vars(candidate)) for candidate in self.candidates]}


@dataclass(frozen=True)
class Profiled:
    """A first look at a table: a role for each column and who a row is about, to be checked by a person."""

    rows: int
    columns: tuple[ProfiledColumn, ...]
    entity: Entity

    @property
    def quasi_identifiers(self) -> Mapping[str, Any]:
        """The columns that others may know, as `anonymize` takes them."""
        return self._of("quasi_identifier")

    @property
    def sensitive(self) -> Mapping[str, Any]:
        """The sensitive columns, as `anonymize` takes them."""
        return self._of("sensitive")

    def _of(self, role: Role) -> Mapping[str, Any]:
        return {c.name: json.loads(c.entry) for c in self.columns if c.role == role}

    def to_dict(self) -> dict[str, Any]:
        """Rows, columns and who a row is about, with what `qblock init --json` says of each."""
        columns = [{**vars(c), "entry": json.loads(c.entry)} for c in self.columns]
        return {"rows": self.rows, "columns": columns, "entity": self.entity.to_dict()}

    def to_frame(self) -> pd.DataFrame:
        """A row for each column."""
        return frame(PROFILED, self._rows())

    def _repr_html_(self) -> str:
        whose = [(c.column, c.distinct, c.rows_mean, c.rows_most, c.meaning) for c in self.entity.candidates]
        more = [table(CANDIDATES, whose)] if whose else []
        return page(
            f"Profile of {self.rows:,} rows",
            table(PROFILED, self._rows()),
            *more,
            f"Who a row is about: {self.entity.why}.",
        )

    def _rows(self) -> list[tuple[Any, ...]]:
        return [(c.name, c.type, c.role, c.distinct, c.nulls, c.reason) for c in self.columns]


COLUMNS = ("model", "sensitive", "asked", "parameter", "value", "attained", "holds")
CANDIDATES = ("column", "values", "rows of a value", "at most", "as entity")
PROFILED = ("column", "type", "role", "distinct", "nulls", "reason")


def guarantee_rows(guarantees: Iterable[Guarantee]) -> list[tuple[Any, ...]]:
    """A row of COLUMNS for each parameter that is reported."""
    return [
        (
            guarantee.model,
            ", ".join(guarantee.sensitive),
            ", ".join(f"{name}={value}" for name, value in guarantee.asked),
            bound.parameter,
            bound.value,
            bound.attained,
            guarantee.holds,
        )
        for guarantee in guarantees
        for bound in guarantee.reached
    ]


def frame(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> pd.DataFrame:
    """Rows as a data frame. Imports pandas."""
    import pandas as pd

    return pd.DataFrame(rows, columns=list(columns))


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
