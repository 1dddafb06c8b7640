"""Models to be attacked: the engine's objects, for the rules that they get, and plain verdicts."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction

from qblock.joint.steady import Rules, rules_for
from qblock.models import (
    DistinctLDiversity,
    EntropyLDiversity,
    FrequencyLDiversity,
    KAnonymity,
    Model,
    PdRecursiveCLDiversity,
    RecursiveCLDiversity,
    TCloseness,
)

from .verdicts import Verdict, both, close, distinct, entropy, frequency, protected, recursive, sizes

ALLOWED = "a"


@dataclass(frozen=True)
class Setting:
    """models: for the rules; verdict: for the cells; k, l: as the models imply; promised: the candidates that they
    promise for what is shown (1 where a cell with one value passes)."""

    name: str
    models: tuple[Model, ...]
    verdict: Verdict
    k: int
    l: int  # noqa: E741
    promised: int

    @property
    def rules(self) -> Rules:
        return rules_for(self.models)


def setting(name: str, l: int = 2) -> Setting:  # noqa: E741
    """A model by its short name; with k-anonymity of k = l, below which no cell can have l values."""
    t = Fraction(2, 5) if l == 2 else Fraction(1, 2)
    known: dict[str, tuple[tuple[Model, ...], Verdict, int]] = {
        "distinct": ((DistinctLDiversity(l=l),), distinct(l), l),
        "frequency": ((FrequencyLDiversity(l=l),), frequency(l), l),
        "entropy": ((EntropyLDiversity(l=l),), entropy(l), l),
        "recursive": ((RecursiveCLDiversity(c=2, l=l),), recursive(Fraction(2), l), l),
        "t+distinct": (
            (TCloseness(t=t, distance="equal"), DistinctLDiversity(l=l)),
            both(close(t), distinct(l)),
            l,
        ),
        "t": ((TCloseness(t=t, distance="equal"),), close(t), 1),
        "pd": ((PdRecursiveCLDiversity(c=3, l=2, allowed=(ALLOWED,)),), protected(ALLOWED), 1),
        "k": ((), lambda cell, shares: True, 1),
    }
    models, verdict, promised = known[name]
    return Setting(name, (KAnonymity(k=l), *models), both(sizes(l), verdict), l, l, promised)


NAMES = ("distinct", "frequency", "entropy", "recursive", "t+distinct", "t", "pd", "k")


def value(code: int) -> Hashable:
    return "abcdef"[code]
