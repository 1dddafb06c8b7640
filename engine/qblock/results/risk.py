"""What a report says of risk, measured and declared."""

from __future__ import annotations

from qblock.results.base import Real, Shown


class ThresholdShown(Shown):
    """A chance that the spec declares acceptable, and what is measured. value: of the threshold; text: the same,
    exactly; on: `highest` or `mean`; because: where it is from; measured, measured_text: what the published rows have;
    met: decided by fractions, not by the numbers here; least: people who must look the same for it;
    rows_above: of which the own chance is above it; of_version:
    whether it is measured in this version alone, and not what somebody finds who holds all versions."""

    value: Real
    text: str
    on: str
    because: str | None
    measured: Real
    measured_text: str
    met: bool
    least: int
    rows_above: int
    of_version: bool = True


class ExposedShown(Shown):
    """What somebody learns of a sensitive attribute who knows one more fact of a person: that a value is not theirs.
    rows: of which the value is certain then; share: of the published rows; many: whether these are more than a tenth;
    """

    sensitive: str
    rows: int
    share: Real
    many: bool


class DeclaredShown(Shown):
    """A column of the spec, its role in the words of the spec, and why. published: whether readers see it."""

    name: str
    role: str
    because: str | None
    published: bool


class AnswerShown(Shown):
    """A risk that WP29 names, and what answers it. risk: `singling out`, `linkability`, `inference`; models: of the
    guarantees that answer it; in_words: these guarantees, or that none does."""

    risk: str
    models: tuple[str, ...]
    in_words: str


class AttackerShown(Shown):
    """Chances of one attacker (docs/report.md has the formulas). attacker: `prosecutor`, who knows that a person is in
    the table; `journalist`, who knows that they are of the population, by estimate; `marketer`, who matches all rows.
    highest: of any row, None of the marketer; mean: over the rows; rows_above, share_above: of which the chance is
    above the threshold, None without one; estimated: whether it rests on a declared population."""

    attacker: str
    highest: Real | None
    mean: Real
    rows_above: int | None
    share_above: Real | None
    estimated: bool


class UniquenessShown(Shown):
    """An estimate of how many people of the population are unique by these columns. estimate: its name; people: how
    many, None where it has no answer; share: of the rows that are unique in the table, who are unique there, too; why:
    it has no answer."""

    estimate: str
    people: Real | None
    share: Real | None
    why: str | None


class PopulationShown(Shown):
    """The population that the spec declares. size: how many people; fraction: the share of them that the table has;
    unique: rows that are alone in their block; uniqueness: estimates of how many people are; why: there is none."""

    size: int | None
    fraction: Real | None
    unique: int | None
    uniqueness: tuple[UniquenessShown, ...]
    why: str | None = None


class ContextShown(Shown):
    """What the spec declares of the surroundings, as it is written there. declared_by: who declared the roles of the
    columns; release: public, registered, controlled."""

    purpose: str | None = None
    recipients: str | None = None
    release: str | None = None
    agreement: str | None = None
    controls: tuple[str, ...] = ()
    declared_by: str | None = None


class BeforeShown(Shown):
    """The quasi-identifiers as the source has them, before anything is generalized. rows: how many `counted` there are,
    rows or people; unique: those that are alone; population: None where none is declared."""

    counted: str
    rows: int
    blocks: int
    least: int
    unique: int
    attackers: tuple[AttackerShown, ...]
    population: PopulationShown | None = None
