"""What an attacker knows (values that they rule out, a population) and comes to believe of the people of a node."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from qblock.bayes import Believed, Change, Disclosed, Joint, Thresholds, believed
from qblock.blocks import Ints, Reference, number_keys
from qblock.errors import InputError, ParameterError, choices, quoted
from qblock.lattice import Node
from qblock.search.assessment import number_json
from qblock.search.task import Task
from qblock.source.known_population import OF_SOURCE, Combinations, Depth, KnownPopulation, depths_of, of_source

if TYPE_CHECKING:
    from qblock.search.boxes.recoded import Recoded

WRITTEN = re.compile(r"[+-]?\d{1,40}(\.\d{1,40})?(/\d{1,40}|e[+-]?\d{1,2})?", re.ASCII | re.IGNORECASE)
"""Numbers as people write them; none that takes long to be read."""
ADVERSARIES = ("bayes",)


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
            number = exact_number(value)
            if number is None:
                raise ParameterError(f"{option}{name} {value}: not a number; write 0.5 or 1/2")
            exact[name] = number
        return cls(os.fspath(prior), Thresholds(**exact))


class BlocksOfNode:
    """The blocks of a node."""

    def __init__(self, task: Task, node: Node) -> None:
        self._hierarchies, self._node = task.source.hierarchies, node
        self.depths: Sequence[Depth] = depths_of(task.source, node)

    def shown(self, of: Combinations) -> Combinations:
        """Those that are in one of these blocks."""
        return of

    def of(self, leaves: Ints) -> Ints:
        """int64[L]: the block that each combination of leaves is in, by a number."""
        # One more than there are: the leaf of values that are only `*`.
        codes = [
            np.append(hierarchy.codes[level], hierarchy.codes[level][0])
            for hierarchy, level in zip(self._hierarchies, self._node, strict=True)
        ]
        shown = np.stack([code[column] for code, column in zip(codes, leaves.T, strict=True)], axis=1)
        return number_keys(shown.astype(np.int64))[0]


class BlocksOfMap:
    """The blocks of a recoding map that satisfy the spec now, which are those that a run would publish."""

    def __init__(self, recoded: Recoded) -> None:
        self._tree = recoded.specialized.tree
        self._sizes = np.array([ladder.size for ladder in self._tree.ladders])
        leaves = self._tree.fact("leaves", recoded.specialized.boxes)
        shown = zip((leaves == 1).all(axis=0).tolist(), (leaves == self._sizes).all(axis=0).tolist(), strict=True)
        self.depths: Sequence[Depth] = [Depth(each, whole, "of the map") for each, whole in shown]
        failing = recoded.assessment.counts.failing | recoded.specialized.suppressed
        self._passing = recoded.specialized.boxes[~failing]

    def shown(self, of: Combinations) -> Combinations:
        """Those that are in one of these blocks."""
        there = np.isin(self._parts(of.keys), self._passing)
        return Combinations(of.keys[there], of.values[there], of.weight[there], of.beyond)

    def of(self, leaves: Ints) -> Ints:
        """As of a node. A value that is only `*` is in the block of any other."""
        return number_keys(self._parts(leaves)[:, None])[0]

    def _parts(self, leaves: Ints) -> Ints:
        return self._tree.assign(np.where(leaves < self._sizes, leaves, 0))


Placing = BlocksOfNode | BlocksOfMap


def beliefs_at(
    task: Task, node: Node, adversary: BayesAdversary, recoded: Recoded | None = None
) -> list[dict[str, Any]]:
    """What is believed of the people of a node, all of its blocks published, for each sensitive attribute that the
    prior knows, as JSON. recoded: a map, whose blocks are published instead. Raises InputError, and InconsistentPrior
    with counts alone."""
    source, spec = task.source, task.spec
    if spec.count == "entities":
        raise InputError(
            "the beliefs of an adversary need a table of one row for each person, and the spec has `count: entities`. "
            "Audit a table with one row for each"
        )
    if not source.sensitives:
        raise InputError("the beliefs of an adversary are about sensitive attributes, and there is none; name one")
    population = KnownPopulation(source, adversary.prior)
    names = list(source.sensitives)
    placing: Placing = BlocksOfNode(task, node) if recoded is None else BlocksOfMap(recoded)
    return [_beliefs_about(task, placing, adversary, population, names.index(name)) for name in population.sensitives]


def _beliefs_about(
    task: Task, placing: Placing, adversary: BayesAdversary, population: KnownPopulation, sensitive: int
) -> dict[str, Any]:
    source = task.source
    name = list(source.sensitives)[sensitive]
    mine = placing.shown(of_source(source, sensitive))
    theirs = placing.shown(population.combinations(name).placed(source, placing.depths, adversary.prior))
    keys = np.concatenate([mine.keys, theirs.keys])
    leaves, first = number_keys(keys)
    blocks = placing.of(keys[first])
    rows = len(mine.keys)
    domain = (*source.sensitives[name].reference.domain, *theirs.beyond)
    beliefs = believed(
        Joint.of(leaves[rows:], theirs.values, theirs.weight),
        Joint.of(leaves[:rows], mine.values, mine.weight),
        blocks,
        len(domain),
        adversary.thresholds,
    )
    return _json(name, adversary, beliefs, domain, people=task.spec.entity is not None)


def _json(
    name: str, adversary: BayesAdversary, beliefs: Believed, domain: tuple[str | None, ...], *, people: bool
) -> dict[str, Any]:
    sentences = _BeliefSentences(name, adversary.thresholds, beliefs.people, "people" if people else "rows")

    def change(largest: Change | None) -> dict[str, Any] | None:
        if largest is None:
            return None
        before, after = number_json(largest.prior), number_json(largest.posterior)
        exact = {"exact": {"prior": str(largest.prior), "posterior": str(largest.posterior)}}
        figures = {"value": domain[largest.value], "prior": before, "posterior": after, **exact}
        return {**figures, "sentence": sentences.of_change(largest, domain[largest.value])}

    def disclosed(disclosure: Disclosed, sentence: str) -> dict[str, Any]:
        return {**vars(disclosure), "sentence": sentence}

    moved = {
        "people": beliefs.moved.people,
        "share": beliefs.moved.people / beliefs.people,
        "own": beliefs.moved.own,
        "own_share": beliefs.moved.own / beliefs.people,
    }
    return {
        "sensitive": name,
        "adversary": "bayes",
        "prior": adversary.prior,
        **{field.name: number_json(getattr(adversary.thresholds, field.name)) for field in fields(Thresholds)},
        "combinations": beliefs.combinations,
        "people": beliefs.people,
        "breach": disclosed(beliefs.breach, sentences.breach(beliefs.breach)),
        "positive": disclosed(beliefs.positive, sentences.positive(beliefs.positive)),
        "negative": disclosed(beliefs.negative, sentences.negative(beliefs.negative)),
        "rise": change(beliefs.rise),
        "fall": change(beliefs.fall),
        "moved": {**moved, "sentence": sentences.moved(beliefs)},
        "impossible": beliefs.impossible,
    }


@dataclass(frozen=True)
class _BeliefSentences:
    name: str
    thresholds: Thresholds
    of: int
    who: str

    def breach(self, disclosure: Disclosed) -> str:
        low, high = _number(self.thresholds.rho1), _number(self.thresholds.rho2)
        what = f"a belief about {self.name} rises from below {low} to above {high}, or falls the same way"
        return f"({low}, {high})-breach: for {self._share(disclosure.people)} {what}."

    def positive(self, disclosure: Disclosed) -> str:
        least = _number(1 - self.thresholds.delta)
        what = f"their own value is believed with more than {least}"
        return f"Positive disclosure: of {self._share(disclosure.people)} {what}."

    def negative(self, disclosure: Disclosed) -> str:
        most = _number(self.thresholds.epsilon)
        what = f"a value that they do not have is believed with less than {most}"
        return f"Negative disclosure: of {self._share(disclosure.people)} {what}."

    def moved(self, beliefs: Believed) -> str:
        factor, own = _number(self.thresholds.factor), self._share(beliefs.moved.own)
        what = f"some belief changes by more than a factor of {factor}"
        return f"For {self._share(beliefs.moved.people)} {what}; for {own} the belief in their own value does."

    def of_change(self, change: Change, value: str | None) -> str:
        verb = "rise" if change.posterior > change.prior else "fall"
        said = "NULL" if value is None else value
        figures = f"from {float(change.prior):.4g} to {float(change.posterior):.4g}"
        return f"The largest {verb} of a belief about {self.name} is {figures} ({said})."

    def _share(self, people: int) -> str:
        return f"{people:,} of {self.of:,} {self.who}"


def _number(value: Fraction) -> str:
    return f"{float(value):.6g}"
