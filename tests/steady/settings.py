"""Models to be attacked: the engine's objects, for the rules that they get, and plain verdicts."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction

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
from qblock.versions.batching.rules import Rules, combine_rules, rules_for

from .verdicts import Verdict, both, close, distinct, entropy, frequency, protected, recursive, sizes

ALLOWED = "a"


@dataclass(frozen=True)
class Setting:
    """models: for the rules; verdict: for the cells; counting: of the models that look at nothing but counts; k, l: as
    the models imply; promised: the candidates that they promise for what is shown (1 where a cell with one value
    passes); sensitive, further: attributes, each sensitive one with these models, but the second with those of
    `second`, if there are any."""

    name: str
    models: tuple[Model, ...]
    verdict: Verdict
    counting: Verdict
    k: int
    l: int  # noqa: E741
    promised: int
    sensitive: int = 1
    further: int = 0
    second: Setting | None = None

    @property
    def rules(self) -> Rules:
        return combine_rules([rules_for(self.of(i).models) for i in range(self.sensitive)])

    @property
    def promises(self) -> tuple[int, ...]:
        """The candidates that are promised for each sensitive attribute."""
        return tuple(self.of(i).promised for i in range(self.sensitive))

    def of(self, attribute: int) -> Setting:
        """The models of one sensitive attribute."""
        return self.second if attribute and self.second is not None else self

    @property
    def attributes(self) -> int:
        return self.sensitive + self.further


def setting(name: str, l: int = 2) -> Setting:  # noqa: E741
    """A model by its short name; with k-anonymity of k = l, below which no cell can have l values.

    `two NAME`: of each of two sensitive attributes; `NAME and NAME`: of one each, with l = 2 of the second; `NAME,
    further`: beside a column that is published as it is.
    """
    name, _, further = name.partition(", ")
    name, _, other = name.partition(" and ")
    two, name = bool(other) or name.startswith("two "), name.removeprefix("two ")
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
    models = (KAnonymity(k=l), *models)
    second = setting(other, 2) if other else None
    counting = distinct(l) if name == "t+distinct" else verdict
    return Setting(name, models, both(sizes(l), verdict), counting, l, l, promised, 1 + two, int(bool(further)), second)


NAMES = ("distinct", "frequency", "entropy", "recursive", "t+distinct", "t", "pd", "k")
SEVERAL = (
    "two distinct",
    "two frequency",
    "two entropy",
    "two recursive",
    "two t+distinct",
    "entropy and distinct",
    "distinct, further",
)


def value(code: int) -> Hashable:
    return "abcdefg"[code]
