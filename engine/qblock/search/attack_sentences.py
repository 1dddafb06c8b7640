"""Attacks as sentences for a person: whom an attacker finds, at worst (models.md section 8)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from qblock.attacks import (
    Attacks,
    BackgroundKnowledge,
    Certainty,
    Eliminated,
    Homogeneity,
    Proximity,
    Similarity,
    Skewness,
)
from qblock.blocks import Blocks, Reference

WHO = "Somebody who knows the quasi-identifiers"
MOST = 5
"""Values that are named."""

Blockwise = Homogeneity | BackgroundKnowledge | Certainty | Eliminated | Similarity | Proximity


@dataclass(frozen=True)
class Sentences:
    """What is said about the attacks on one sensitive attribute. values: the size of its domain; of, blocks: all people
    (or rows) and q*-blocks; people: whether people are counted, once in each block in which they have rows.
    """

    name: str
    values: int
    of: int
    blocks: int
    people: bool

    @classmethod
    def about(cls, name: str, blocks: Blocks, reference: Reference, *, people: bool) -> Sentences:
        return cls(name, reference.values, int(blocks.rows.sum()), len(blocks), people)

    def added_to(self, attacks: Attacks) -> dict[str, Any]:
        """The attacks as JSON, each with its sentence."""
        result = attacks.to_json()
        for name, figures in result.items():
            attack = getattr(attacks, name)
            if isinstance(figures, list):
                for element, entry in zip(attack, figures, strict=True):
                    entry["sentence"] = self.of_attack(element)
            else:
                figures["sentence"] = self.of_attack(attack)
        return result

    def of_attack(self, attack: Any) -> str:
        """One attack; where nobody is found with certainty, how sure the attacker is at worst."""
        if self.values == 1:
            return f"{self.name} has only one value, so nothing about it can be found out."
        match attack:
            case Homogeneity():
                otherwise = "every block holds at least 2 values of it"
                return f"{WHO} finds {self.name} with certainty for {self._how_many(attack, otherwise)}."
            case BackgroundKnowledge():
                ruled = "1 value" if attack.eliminated == 1 else f"{attack.eliminated} values"
                who = f"{WHO} and can rule out {ruled} of {self.name} finds it with certainty for"
                return f"{who} {self._how_many(attack, f'they are at most {_percent(attack.posterior)} sure')}."
            case Certainty():
                return self._certainty(attack)
            case Eliminated():
                who = (
                    f"{WHO} and rules out {len(attack.values)} given values of {self.name} finds it with certainty for"
                )
                return f"{who} {self._how_many(attack, f'they are at most {_percent(attack.posterior)} sure')}."
            case Skewness():
                return self._skewness(attack)
            case Similarity():
                otherwise = f"one label makes up at most {_percent(attack.share)} of a block"
                what = f"the label of {self.name} at level {attack.level} of its taxonomy"
                return f"{WHO} finds {what} with certainty for {self._how_many(attack, otherwise)}."
            case Proximity():
                near = f"{float(attack.epsilon):.6g}"
                otherwise = f"at most {_percent(attack.share)} of a block are within {near} of one of its values"
                return f"{WHO} finds {self.name} to within {near} for {self._how_many(attack, otherwise)}."
        raise TypeError(f"no sentence for {attack!r}")

    def _skewness(self, attack: Skewness) -> str:
        if attack.gain is None or attack.gain <= 1:
            return f"No value of {self.name} is more frequent in a block than in the whole table."
        value = "NULL" if attack.value is None else attack.value
        times = f"{float(attack.gain):.3g} times as frequent in a block as in the whole table"
        return f"{WHO} finds a value of {self.name} ({value}) up to {times}."

    def _certainty(self, attack: Certainty) -> str:
        n = attack.eliminated
        if not n:
            who = self._how_many(attack, "nobody has a row")
            return f"{WHO} has to rule out no value of {self.name} to find it with certainty for {who}."
        least = f"at least {n} {'value' if n == 1 else 'values'} of {self.name}"
        named = ", ".join("NULL" if value is None else value for value in attack.values[:MOST])
        such = f"{named} and {n - MOST} more" if n > MOST else named
        return f"{WHO} has to rule out {least} ({such}) to find it with certainty for {self._how_many(attack, '')}."

    def _how_many(self, attack: Blockwise, none: str) -> str:
        noun, nouns = ("person", "people") if self.people else ("row", "rows")
        everybody = f"{self.of:,} {noun if self.of == 1 else nouns}"
        if not attack.blocks:
            return f"none of {everybody}: {none}"
        least = "up to " if isinstance(attack, BackgroundKnowledge) else ""
        where = f"{attack.blocks:,} of {self.blocks:,} {'block' if self.blocks == 1 else 'blocks'}"
        return f"{least}{attack.rows:,} of {everybody}, in {where}"


def _percent(share: Fraction | None) -> str:
    """A share below 1, rounded up, but never to certainty."""
    if share is None:
        return "0%"
    percent = 100 * share
    for digits in range(3, 18):
        up = Context(prec=digits, rounding=ROUND_CEILING)
        rounded = up.divide(Decimal(percent.numerator), Decimal(percent.denominator))
        if rounded < 100:
            return f"{rounded.normalize():f}%"
    return "nearly 100%"
