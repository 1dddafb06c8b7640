"""What an adversary who knows a population believes of the people of a table, as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Threshold = Fraction | int | float | str
"""From where on a belief is a disclosure: a number, or its text (0.1 and "1/10" are the same)."""


@dataclass(frozen=True)
class Disclosures:
    """Disclosures of one kind: pairs of a combination of quasi-identifiers and a value, combinations, people."""

    disclosures: int
    combinations: int
    people: int
    sentence: str


@dataclass(frozen=True)
class BeliefChange:
    """A belief in a value about the people of one combination, before and after they saw the table, exactly."""

    value: str | None
    prior: Fraction
    posterior: Fraction
    sentence: str

    @classmethod
    def of(cls, entry: Mapping[str, Any] | None) -> BeliefChange | None:
        if entry is None:
            return None
        exact = entry["exact"]
        return cls(entry["value"], Fraction(exact["prior"]), Fraction(exact["posterior"]), entry["sentence"])


@dataclass(frozen=True)
class Beliefs:
    """What is believed about a sensitive attribute (l-diversity, section 3; models.md section 5).

    people: of the table (rows, where it does not say who a row is about); breach, positive, negative: (rho1,rho2)-
    breaches, positive and negative disclosures; rise, fall: the largest ones, None where no belief rises; moved,
    moved_own: people of whom any belief, or that in their own value, changes by more than the factor; impossible:
    people whose own value the prior holds impossible.
    """

    sensitive: str
    prior: str
    combinations: int
    people: int
    breach: Disclosures
    positive: Disclosures
    negative: Disclosures
    rise: BeliefChange | None
    fall: BeliefChange | None
    moved: int
    moved_own: int
    impossible: int

    @classmethod
    def all_of(cls, entries: Iterable[Mapping[str, Any]]) -> tuple[Beliefs, ...]:
        """From `beliefs` in an answer of the command line."""
        same = ("sensitive", "prior", "combinations", "people", "impossible")
        return tuple(
            cls(
                **{name: entry[name] for name in same},
                breach=Disclosures(**entry["breach"]),
                positive=Disclosures(**entry["positive"]),
                negative=Disclosures(**entry["negative"]),
                rise=BeliefChange.of(entry["rise"]),
                fall=BeliefChange.of(entry["fall"]),
                moved=entry["moved"]["people"],
                moved_own=entry["moved"]["own"],
            )
            for entry in entries
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a person is told of them, but for what moved."""
        parts = (self.breach, self.positive, self.negative, self.rise, self.fall)
        return tuple(part.sentence for part in parts if part is not None)
