"""What an adversary who knows a population comes to believe of the people of a node (Bayes-optimal privacy)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np

from qblock.bayes import Believed, Change, Disclosed, Joint, Thresholds, believed
from qblock.errors import InputError, ParameterError, choices
from qblock.frequency import number
from qblock.lattice import Node
from qblock.search.answer import number_json
from qblock.search.attackers import exact_number
from qblock.search.task import Task
from qblock.source.known_population import OF_SOURCE, KnownPopulation, of_source

ADVERSARIES = ("bayes",)


@dataclass(frozen=True)
class BayesAdversary:
    """Who knows f(q,s) of a population. prior: `table`, a table of the warehouse, or the path of a CSV file."""

    prior: str
    thresholds: Thresholds

    @classmethod
    def of(
        cls,
        adversary: str | None,
        prior: str | os.PathLike[str] | None,
        thresholds: Mapping[str, Any],
        option: str = "",
    ) -> BayesAdversary | None:
        """What is asked for; None where it is not. thresholds: numbers or their texts by the names of Thresholds, None
        for the default; option: what an option begins with where it is asked. Raises InputError."""
        given = {name: value for name, value in thresholds.items() if value is not None}
        if adversary is None:
            for name in (*(["prior"] if prior is not None else []), *given):
                raise InputError(f"{option}{name} is about an adversary; add {option}adversary bayes")
            return None
        if adversary not in ADVERSARIES:
            raise InputError(f"{option}adversary {adversary}: valid: {', '.join(ADVERSARIES)}")
        if prior is None:
            raise InputError(
                f"{option}adversary bayes needs {option}prior: {OF_SOURCE} (the source itself), schema.table, or the "
                "path of a CSV file of weights"
            )
        exact, known = {}, [field.name for field in fields(Thresholds)]
        for name, value in given.items():
            if name not in known:
                raise InputError(f"{option}{name}: {choices(known, name)}")
            found = exact_number(value)
            if found is None:
                raise ParameterError(f"{option}{name} {value}: not a number; write 0.5 or 1/2")
            exact[name] = found
        return cls(os.fspath(prior), Thresholds(**exact))


def beliefs_at(task: Task, node: Node, asked: BayesAdversary) -> list[dict[str, Any]]:
    """What is believed of the people of a node, all of its blocks published, for each sensitive attribute that the
    prior knows, as JSON. Raises InputError, and InconsistentPrior with counts alone."""
    source, spec = task.source, task.spec
    if spec.count == "entities":
        raise InputError(
            "the beliefs of an adversary are about tables of one row for each person, and the spec counts entities "
            "(count: entities); audit a table with one row for each"
        )
    if not source.sensitives:
        raise InputError("the beliefs of an adversary are about sensitive attributes, and there is none; name one")
    population = KnownPopulation(source, asked.prior)
    names = list(source.sensitives)
    return [_beliefs_about(task, node, asked, population, names.index(name)) for name in population.sensitives]


def _beliefs_about(
    task: Task, node: Node, asked: BayesAdversary, population: KnownPopulation, sensitive: int
) -> dict[str, Any]:
    source = task.source
    name = list(source.sensitives)[sensitive]
    mine = of_source(source, sensitive)
    theirs = population.combinations(name).placed(source, node, asked.prior)
    # One more than there are: the leaf of values that are only `*`.
    leaves, distinct = number(
        np.concatenate([mine.keys, theirs.keys]), [len(hierarchy.leaves) + 1 for hierarchy in source.hierarchies]
    )
    codes = [
        np.append(hierarchy.codes[level], hierarchy.codes[level][0])
        for hierarchy, level in zip(source.hierarchies, node, strict=True)
    ]
    shown = np.stack([code[column] for code, column in zip(codes, distinct.T, strict=True)], axis=1).astype(np.int64)
    blocks, _ = number(shown, [len(hierarchy.leaves) for hierarchy in source.hierarchies])
    rows = len(mine.keys)
    domain = (*source.sensitives[name].reference.domain, *theirs.beyond)
    found = believed(
        Joint.of(leaves[rows:], theirs.values, theirs.weight),
        Joint.of(leaves[:rows], mine.values, mine.weight),
        blocks,
        len(domain),
        asked.thresholds,
    )
    return _json(name, asked, found, domain, people=task.spec.entity is not None)


def _json(
    name: str, asked: BayesAdversary, found: Believed, domain: tuple[str | None, ...], *, people: bool
) -> dict[str, Any]:
    say = _Sentences(name, asked.thresholds, found.people, "people" if people else "rows")

    def change(one: Change | None) -> dict[str, Any] | None:
        if one is None:
            return None
        before, after = number_json(one.prior), number_json(one.posterior)
        exact = {"exact": {"prior": str(one.prior), "posterior": str(one.posterior)}}
        told = {"value": domain[one.value], "prior": before, "posterior": after, **exact}
        return {**told, "sentence": say.of_change(one, domain[one.value])}

    def disclosed(one: Disclosed, sentence: str) -> dict[str, Any]:
        return {**vars(one), "sentence": sentence}

    moved = {
        "people": found.moved.people,
        "share": found.moved.people / found.people,
        "own": found.moved.own,
        "own_share": found.moved.own / found.people,
    }
    return {
        "sensitive": name,
        "adversary": "bayes",
        "prior": asked.prior,
        **{field.name: number_json(getattr(asked.thresholds, field.name)) for field in fields(Thresholds)},
        "combinations": found.combinations,
        "people": found.people,
        "breach": disclosed(found.breach, say.breach(found.breach)),
        "positive": disclosed(found.positive, say.positive(found.positive)),
        "negative": disclosed(found.negative, say.negative(found.negative)),
        "rise": change(found.rise),
        "fall": change(found.fall),
        "moved": {**moved, "sentence": say.moved(found)},
        "impossible": found.impossible,
    }


@dataclass(frozen=True)
class _Sentences:
    name: str
    asked: Thresholds
    of: int
    who: str

    def breach(self, found: Disclosed) -> str:
        low, high = _number(self.asked.rho1), _number(self.asked.rho2)
        what = f"a belief about {self.name} rises from below {low} to above {high}, or falls the same way"
        return f"({low}, {high})-breach: for {self._share(found.people)} {what}."

    def positive(self, found: Disclosed) -> str:
        least = _number(1 - self.asked.delta)
        return (
            f"Positive disclosure: of {self._share(found.people)} their own value is believed with more than {least}."
        )

    def negative(self, found: Disclosed) -> str:
        most = _number(self.asked.epsilon)
        what = f"a value that they do not have is believed with less than {most}"
        return f"Negative disclosure: of {self._share(found.people)} {what}."

    def moved(self, found: Believed) -> str:
        factor, own = _number(self.asked.factor), self._share(found.moved.own)
        what = f"some belief changes by more than a factor of {factor}"
        return f"For {self._share(found.moved.people)} {what}; for {own} the belief in their own value does."

    def of_change(self, one: Change, value: str | None) -> str:
        verb = "rise" if one.posterior > one.prior else "fall"
        said = "NULL" if value is None else value
        change = f"from {float(one.prior):.4g} to {float(one.posterior):.4g}"
        return f"The largest {verb} of a belief about {self.name} is {change} ({said})."

    def _share(self, people: int) -> str:
        return f"{people:,} of {self.of:,} {self.who}"


def _number(value: Fraction) -> str:
    return f"{float(value):.6g}"
