"""How likely an outsider names the right person, against what the spec declares acceptable."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import sqlalchemy as sa

from qblock.engines.session import Session
from qblock.errors import InputError
from qblock.estimate.uniqueness import Sample, chances, estimates
from qblock.frequency.arrays import Sizes
from qblock.publish.helpers import PEOPLE_ROLE
from qblock.results.report import AttackShown, GuaranteeShown
from qblock.results.risk import (
    AnswerShown,
    AttackerShown,
    BeforeShown,
    ContextShown,
    DeclaredShown,
    ExposedShown,
    PopulationShown,
    ThresholdShown,
    UniquenessShown,
)
from qblock.search.task import Task
from qblock.spec import Spec
from qblock.spec.reporting import chance_text

MANY = Fraction(1, 10)
"""The share of the rows above which one more fact exposes many."""
ANSWERS: Mapping[str, tuple[str, ...]] = {
    "singling out": (
        "k_anonymity",
        "distinct_l_diversity",
        "frequency_l_diversity",
        "entropy_l_diversity",
        "alpha_k_anonymity",
        "k_map",
    ),
    "linkability": ("k_map", "delta_presence"),
    "inference": (
        "distinct_l_diversity",
        "frequency_l_diversity",
        "entropy_l_diversity",
        "recursive_cl_diversity",
        "pd_recursive_cl_diversity",
        "npd_recursive_cl_diversity",
        "epsilon_m_anonymity",
        "delta_l_diversity",
        "t_closeness",
        "nt_closeness",
        "epsilon_privacy",
        "alpha_k_anonymity",
        "beta_likeness",
        "delta_disclosure",
    ),
}
"""The risks of WP29 Opinion 05/2014, and the models that bound each."""
NOT_ALONE = "k_map"
"""The model of these under which a row may be alone in the table: others of the population look the same."""
NOBODY = "no guarantee answers it"
K_ASKED = re.compile(r"k = ([1-9][0-9]*)")
LEAST_ASKED = re.compile(r"[kl] = ([0-9.]+)")
LEAST = ("distinct_l_diversity", "entropy_l_diversity", "frequency_l_diversity")
"""The models with so many rows in each group at least, by their own parameter."""
IN_SPEC = {"quasi-identifier": "quasi_identifier", "sensitive attribute": "sensitive", "insensitive": "insensitive"}
"""Roles of the view's columns, by the words of its helper view, as a spec has them."""
SEVERAL = "a person may have several rows, and the published rows do not tell how many people these are"


@dataclass(frozen=True)
class People:
    """Of whom blocks are. sizes: in people; in_words: how these are known; rows: that are published; bounded: whether a
    person may have several rows, and sizes are only bounds."""

    sizes: Sizes
    in_words: str
    rows: int
    bounded: bool = False

    @property
    def number(self) -> int:
        return int((self.sizes.size * self.sizes.blocks).sum())

    @property
    def highest(self) -> Fraction:
        return Fraction(1, int(self.sizes.size.min()))

    @property
    def mean(self) -> Fraction:
        return Fraction(self.sizes.number, self.number)

    def above(self, threshold: Fraction) -> int:
        """How many of them are in blocks in which the chance is above the threshold, exactly."""
        pairs = zip(self.sizes.size.tolist(), self.sizes.blocks.tolist(), strict=True)
        return sum(size * blocks for size, blocks in pairs if size * threshold < 1)


def people_of(
    spec: Spec,
    session: Session,
    view: sa.FromClause,
    columns: Sequence[Mapping[str, Any]],
    guarantees: Sequence[GuaranteeShown],
    sizes: Sizes,
) -> People:
    """The people of each published block: by their number where it is published, by k where it is asked, or rows."""
    rows = int((sizes.size * sizes.blocks).sum())
    if spec.entity is None or spec.count == "rows":
        told = "each row is a person" if spec.entity is not None else "each row is taken as another person"
        return People(sizes, told, rows)
    people = next((row["column_name"] for row in columns if row["role"] == PEOPLE_ROLE), None)
    if people is not None:
        known = [row["column_name"] for row in columns if row["role"] == "quasi-identifier"]
        return People(_people_published(session, view, known, people), "the people of each block are published", rows)
    matches = [K_ASKED.fullmatch(of.asked) for of in guarantees if of.model == "k_anonymity" and of.holds]
    least = max((int(match[1]) for match in matches if match), default=1)
    words = f"each block has at least {least} people, by k_anonymity" if least > 1 else "a block may be one person"
    return People(Sizes(np.array([least]), np.array([sizes.number])), words, rows, bounded=True)


def _people_published(session: Session, view: sa.FromClause, known: Sequence[str], name: str) -> Sizes:
    blocks = sa.select(*(view.c[column] for column in known), view.c[name].label("people")).distinct().subquery()
    query = sa.select(blocks.c.people.label("size"), sa.func.count().label("n")).group_by(blocks.c.people)
    rows = sorted((row["size"], row["n"]) for row in session.fetch(query).to_pylist())
    return Sizes(np.array([size for size, _ in rows]), np.array([n for _, n in rows]))


def risks(
    spec: Spec,
    people: People,
    version: int,
    guarantees: Sequence[GuaranteeShown],
    attacks: Sequence[AttackShown],
    columns: Mapping[str, str],
) -> dict[str, Any]:
    """What a report says of them, by the keys of `Published`. Raises InputError for a population that is too small."""
    sample = sample_of(spec, people)
    together = together_of(spec, version, guarantees)
    return {
        "threshold": threshold_of(spec, people, together),
        "together": None if together is None else float(together),
        "exposed": tuple(exposed_of(attacks, people.rows)),
        "declared": tuple(declared_of(spec, columns)),
        "answers": tuple(answers_of(guarantees, people.highest)),
        "attackers": tuple(attackers_of(spec, people, sample)),
        "counted": people.in_words,
        "population": population_of(spec, sample),
        "context": context_of(spec),
    }


def together_of(spec: Spec, version: int, guarantees: Sequence[GuaranteeShown]) -> Fraction | None:
    """The highest chance of somebody who holds all versions and knows when each person came, left or changed.

    Versions that are checked together promise their guarantees to the people of a joint cell, who are the same to that
    attacker (docs/releases.md): so many share it as k asks at least, or l where a row is a person, however large the
    blocks of one version are. None of a first version, and where versions are not checked together.
    """
    if version == 1 or spec.entity is None or spec.versions.joint == "none":
        return None
    models = ("k_anonymity", *(LEAST if spec.count == "rows" else ()))
    matches = [LEAST_ASKED.fullmatch(of.asked) for of in guarantees if of.model in models and of.holds]
    return Fraction(1, max((math.ceil(Fraction(match[1])) for match in matches if match), default=1))


def threshold_of(spec: Spec, people: People, together: Fraction | None = None) -> ThresholdShown | None:
    """Whether the chance is acceptable, decided by fractions: 1/11 is met by blocks of 11, and 0.09 is not. together:
    that of somebody who holds all versions, which a highest chance is not below."""
    declared = spec.report
    if declared.threshold is None:
        return None
    measured = max(people.highest, together or Fraction(0)) if declared.threshold_on == "highest" else people.mean
    return ThresholdShown(
        value=float(declared.threshold),
        text=chance_text(declared.threshold),
        on=declared.threshold_on,
        because=declared.threshold_because,
        measured=float(measured),
        measured_text=chance_text(measured),
        of_version=measured == people.highest or declared.threshold_on == "mean",
        met=measured <= declared.threshold,
        least=math.ceil(1 / declared.threshold),
        rows_above=people.above(declared.threshold),
    )


def attackers_of(spec: Spec, people: People, sample: Sample | None) -> Iterator[AttackerShown]:
    """The three attackers of El Emam and Dankar (2008)."""
    threshold, number = spec.report.threshold, people.number
    above = None if threshold is None else people.above(threshold)
    share = None if above is None else above / number
    highest, mean = float(people.highest), float(people.mean)
    yield AttackerShown(
        attacker="prosecutor", highest=highest, mean=mean, rows_above=above, share_above=share, estimated=False
    )
    if sample is not None:
        yield _journalist(sample, threshold)
    yield AttackerShown(
        attacker="marketer", highest=None, mean=mean, rows_above=None, share_above=None, estimated=False
    )


def _journalist(sample: Sample, threshold: Fraction | None) -> AttackerShown:
    rows, each = sample.size * sample.blocks, np.array(chances(sample))
    above = None if threshold is None else int(rows[each > float(threshold)].sum())
    return AttackerShown(
        attacker="journalist",
        highest=float(each.max()),
        mean=float((rows * each).sum()) / sample.rows,
        rows_above=above,
        share_above=None if above is None else above / sample.rows,
        estimated=True,
    )


def sample_of(spec: Spec, people: People) -> Sample | None:
    """The table as a sample of the declared population. Raises InputError for a population that is too small."""
    declared = spec.report.population
    if declared is None or people.bounded:
        return None
    size = declared.size
    if size is None:
        assert declared.fraction is not None
        size = round(people.number / declared.fraction)
    if size < people.number:
        raise InputError(
            f"{spec.at('report', 'population', 'size')}: report.population.size: {size} people are fewer than the "
            f"{people.number} of the table, who are of them; write `size: {people.number}` or more"
        )
    return Sample(people.sizes.size, people.sizes.blocks, size)


def population_of(spec: Spec, sample: Sample | None) -> PopulationShown | None:
    """The declared population, with estimates of how many of it are unique."""
    if spec.report.population is None:
        return None
    if sample is None:
        return PopulationShown(size=None, fraction=None, unique=None, uniqueness=(), why=SEVERAL)
    shown = (
        UniquenessShown(estimate=of.name, people=of.people, share=of.share, why=of.why) for of in estimates(sample)
    )
    return PopulationShown(
        size=sample.population, fraction=sample.fraction, unique=sample.unique, uniqueness=tuple(shown)
    )


def before_of(task: Task) -> BeforeShown:
    """The risk of the source: of the quasi-identifiers as they are read, before anything is generalized."""
    spec, sizes = task.spec, task.source.frequency_sets.sizes(task.lattice.bottom)
    number = int((sizes.size * sizes.blocks).sum())
    people = People(sizes, "people" if spec.bundles else "rows", number)
    sample = sample_of(spec, people)
    return BeforeShown(
        counted=people.in_words,
        rows=number,
        blocks=sizes.number,
        least=int(sizes.size.min()),
        unique=int(sizes.blocks[sizes.size == 1].sum()),
        attackers=tuple(attackers_of(spec, people, sample)),
        population=population_of(spec, sample),
    )


def exposed_of(attacks: Sequence[AttackShown], rows: int) -> Iterator[ExposedShown]:
    """Rows of which one more fact makes the value certain, of each sensitive attribute."""
    for attack in attacks:
        if attack.attack == "background_knowledge" and attack.detail == 1 and attack.rows is not None:
            many = attack.rows > MANY * rows
            yield ExposedShown(sensitive=attack.sensitive, rows=attack.rows, share=attack.rows / rows, many=many)


def declared_of(spec: Spec, columns: Mapping[str, str]) -> Iterator[DeclaredShown]:
    """The columns that the spec names, with the reason for the role of each. columns: of the view, with their roles:
    those that readers see, whatever the spec says by now."""
    for name, attribute in spec.attributes.items():
        role = IN_SPEC.get(columns.get(name, ""), attribute.role)
        because = attribute.because if role == attribute.role else None
        yield DeclaredShown(name=name, role=role, because=because, published=name in columns)
    for key, column in (("entity", spec.entity), ("groups", spec.groups)):
        if column is not None and column not in spec.attributes:
            yield DeclaredShown(name=column, role=key, because=None, published=False)


def answers_of(guarantees: Sequence[GuaranteeShown], highest: Fraction) -> Iterator[AnswerShown]:
    """What answers singling out, linkability and inference. highest: chance of naming a person: where that is 1, only
    a model of the population answers singling out."""
    for risk, models in ANSWERS.items():
        answering = [of for of in guarantees if of.holds and of.model in models]
        if risk == "singling out" and highest == 1:
            answering = [of for of in answering if of.model == NOT_ALONE]
        names = tuple(dict.fromkeys(of.model for of in answering))
        words = "; ".join(dict.fromkeys(of.in_words for of in answering)) or NOBODY
        yield AnswerShown(risk=risk, models=names, in_words=words)


def context_of(spec: Spec) -> ContextShown:
    """What the spec declares of the surroundings."""
    of = spec.report.context
    return ContextShown(
        declared_by=spec.report.declared_by,
        purpose=of.purpose,
        recipients=of.recipients,
        release=of.release,
        agreement=of.agreement,
        controls=spec.report.controls,
    )
