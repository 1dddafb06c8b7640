"""What a report says, as figures and texts: it knows no HTML. `to_json` is the report's `--format json`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Label:
    """A label that is published, and how many rows have it."""

    label: str
    rows: int


@dataclass(frozen=True)
class ColumnShown:
    """A column of the view. before: the kind of its values in the source, in words; after: what readers see instead;
    labels: those that most rows have; values: how many there are; share_hidden: of the rows, in which it is `*`; bits:
    the entropy of its labels, what a reader learns of a row from this column alone; None of a column that is not a
    quasi-identifier."""

    name: str
    role: str
    before: str | None
    after: str
    how_to_filter: str
    values: int | None = None
    share_hidden: float | None = None
    bits: float | None = None
    labels: tuple[Label, ...] = ()


@dataclass(frozen=True)
class GuaranteeShown:
    """One guarantee, as the helper view of the guarantees has it."""

    model: str
    sensitive: str | None
    asked: str
    holds: bool
    reached: str | None
    in_words: str


@dataclass(frozen=True)
class AttackShown:
    """What an attack on a sensitive attribute finds in the published rows. detail: how many values are ruled out, or at
    which level of the taxonomy values are alike; rows, blocks: exposed with certainty; None of an attack that has no
    such figure."""

    sensitive: str
    attack: str
    detail: int | None
    sentence: str
    rows: int | None
    blocks: int | None


@dataclass(frozen=True)
class RiskWithout:
    """Blocks of the published rows: all quasi-identifiers known (column None), or all but one. least: rows of the
    smallest; most_sure: 1 / least, how sure somebody may be which row is whose; mean: of that chance over the rows."""

    column: str | None
    blocks: int
    least: int
    most_sure: float
    mean: float


@dataclass(frozen=True)
class SizeShown:
    """Blocks of at least `low` and at most `high` rows, and the rows in them."""

    low: int
    high: int
    blocks: int
    rows: int


@dataclass(frozen=True)
class SampleShown:
    """Published rows, spread over the view; values as text, NULL as None."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True)
class Published:
    """What whoever may read the view can find out. at: when the version was made, in UTC; whose: whose a row is, in
    words."""

    release: str
    view: str
    version: int
    at: str
    previous: int | None
    rows: int
    blocks: int
    whose: str
    columns: tuple[ColumnShown, ...]
    guarantees: tuple[GuaranteeShown, ...]
    attacks: tuple[AttackShown, ...]
    risk: tuple[RiskWithout, ...]
    sizes: tuple[SizeShown, ...]
    sample: SampleShown

    @property
    def quasi_identifiers(self) -> tuple[ColumnShown, ...]:
        return tuple(column for column in self.columns if column.bits is not None)

    @property
    def sensitive(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.role == "sensitive attribute")


@dataclass(frozen=True)
class Report:
    """A report. program: the version of qblock that made it; made: when, in UTC."""

    program: str
    made: str
    published: Published

    def to_json(self) -> dict[str, Any]:
        """As JSON: the fields by name."""
        return {**asdict(self)}
