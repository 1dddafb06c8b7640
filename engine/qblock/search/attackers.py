"""What an attacker knows beyond the quasi-identifiers: values that they rule out, and how near numbers are alike."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from qblock.blocks import Reference
from qblock.errors import InputError, ParameterError, choices, quoted

WRITTEN = re.compile(r"[+-]?\d{1,40}(\.\d{1,40})?(/\d{1,40}|e[+-]?\d{1,2})?", re.ASCII | re.IGNORECASE)
"""Numbers as people write them; none that takes long to be read."""


def exact_number(given: Any) -> Fraction | None:
    """A number, or its text, exactly (0.1 is 1/10); None for anything else."""
    text = str(given).strip()
    try:
        return Fraction(text) if WRITTEN.fullmatch(text) else None
    except (ValueError, ZeroDivisionError):
        return None


@dataclass(frozen=True)
class Attacker:
    """rule_out: by sensitive attribute the values that the attacker rules out; near: by sensitive attribute the
    distance up to which numbers are alike to them."""

    rule_out: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    near: Mapping[str, Fraction] = field(default_factory=dict)

    @classmethod
    def of(
        cls, rule_out: Mapping[str, Sequence[Any]] | None, near: Mapping[str, Any] | None, option: str = ""
    ) -> Attacker:
        """From values and numbers as a program has them. option: as of `BayesAdversary.of`. Raises InputError."""
        texts = {}
        for name, values in (rule_out or {}).items():
            if isinstance(values, str):
                raise InputError(f"rule_out.{name}: write a list of values: [{values!r}]")
            texts[name] = tuple(None if value is None else str(value) for value in values)
        distances = {}
        for name, distance in (near or {}).items():
            number = exact_number(distance)
            if number is None:
                raise ParameterError(f"{option}near {name}: not a number; write {name}=50")
            distances[name] = number
            if number < 0:
                raise ParameterError(f"{option}near {name} is out of range; valid: a number from 0 on")
        return cls(texts, distances)

    def check(self, references: Mapping[str, Reference]) -> None:
        """Raises InputError where an attribute is not sensitive, lacks a value, or has no numbers."""
        for what, named in (("rule_out", self.rule_out), ("near", self.near)):
            for name in named:
                if name not in references:
                    raise InputError(f"{what} {name}: not a sensitive attribute; {choices(references, name)}")
        for name, values in self.rule_out.items():
            for value in values:
                if references[name].code_of(value) is None:
                    raise InputError(f"rule_out {name}: {quoted(value)} is not a value of {name}; correct it")
        for name in self.near:
            if references[name].numbers is None:
                raise InputError(f"near {name}: {name} has values that are not numbers; leave it out")

    def about(self, name: str, reference: Reference) -> dict[str, Any]:
        """What `attacks` is told of one sensitive attribute: values as its domain has them."""
        codes = [reference.code_of(value) for value in self.rule_out.get(name, ())]
        ruled_out = tuple(reference.domain[code] for code in codes if code is not None)
        return {"eliminated": ruled_out, "epsilon": self.near.get(name)}


NOBODY = Attacker()
