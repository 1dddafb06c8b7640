"""The answers of an audit and of comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from qblock.errors import Refused
from qblock.results.base import (
    Answer,
    Guarantee,
    Guaranteed,
    Levels,
    Metrics,
    NotComputed,
    Number,
    Real,
    ShownColumn,
    Value,
    Weights,
    frame,
    page,
    table,
)

if TYPE_CHECKING:
    import pandas as pd


class Homogeneity(Value):
    """Blocks with one sensitive value: everybody in them is exposed."""

    blocks: int
    rows: int
    mean_size: Real | None
    vulnerable: bool
    sentence: str


class BackgroundKnowledge(Value):
    """The worst posterior once so many values are ruled out."""

    eliminated: int
    posterior: Real | None
    blocks: int
    rows: int
    sentence: str


class Certainty(Value):
    """How many values must be ruled out, at least, until somebody's is certain, and such values."""

    eliminated: int | None
    values: tuple[str | None, ...]
    blocks: int
    rows: int
    sentence: str


class Eliminated(Value):
    """The worst posterior once these values are ruled out."""

    values: tuple[str | None, ...]
    posterior: Real | None
    blocks: int
    rows: int
    sentence: str


class Skewness(Value):
    """The largest factor by which a value's share in a block exceeds its share of the table."""

    gain: Number
    value: str | None
    sentence: str


class Similarity(Value):
    """The largest share of one label of a level of the taxonomy in a block."""

    level: int
    share: Real | None
    blocks: int
    rows: int
    sentence: str


class Proximity(Value):
    """The largest share of a block within epsilon of one of its numbers."""

    epsilon: Real
    share: Real | None
    blocks: int
    rows: int
    sentence: str


class Attacked(Value):
    """What attackers find of a sensitive attribute; attacks that do not apply to it are None or empty."""

    sensitive: str
    homogeneity: Homogeneity
    background_knowledge: tuple[BackgroundKnowledge, ...]
    certainty: Certainty
    eliminated: Eliminated | None = None
    skewness: Skewness
    similarity: tuple[Similarity, ...] = ()
    proximity: Proximity | None = None

    @property
    def sentences(self) -> list[str]:
        """What a person is told of each attack."""
        first: list[Any] = [self.homogeneity, *self.background_knowledge, self.certainty, self.eliminated]
        every = [*first, self.skewness, *self.similarity, self.proximity]
        return [attack.sentence for attack in every if attack is not None]


class Disclosures(Value):
    """Disclosures of one kind: pairs of a combination of quasi-identifiers and a value, combinations, people."""

    disclosures: int
    combinations: int
    people: int
    sentence: str


class ExactBelief(Value):
    """A belief before and after, exactly."""

    prior: Fraction
    posterior: Fraction


class BeliefChange(Value):
    """A belief in a value about the people of one combination, before and after they saw the table."""

    value: str | None
    prior: Real
    posterior: Real
    exact: ExactBelief
    sentence: str


class Moved(Value):
    """People of whom any belief, or that in their own value, changes by more than the factor."""

    people: int
    share: Real
    own: int
    own_share: Real
    sentence: str


class Beliefs(Value):
    """What is believed about a sensitive attribute (l-diversity, section 3; models.md section 5). people: of the table
    (rows, where it does not say who a row is about); breach: (rho1,rho2)-breaches; rise, fall: the largest ones, None
    where no belief rises; impossible: people whose own value the prior holds impossible."""

    sensitive: str
    adversary: Literal["bayes"]
    prior: str
    rho1: Real
    rho2: Real
    delta: Real
    epsilon: Real
    factor: Real
    combinations: int
    people: int
    breach: Disclosures
    positive: Disclosures
    negative: Disclosures
    rise: BeliefChange | None
    fall: BeliefChange | None
    moved: Moved
    impossible: int

    @property
    def sentences(self) -> list[str]:
        """What a person is told of them."""
        parts = (self.breach, self.positive, self.negative, self.rise, self.fall, self.moved)
        return [part.sentence for part in parts if part is not None]


class Audited(Guaranteed):
    """A table as it stands: the tightest parameter of every model, attacks, and utility. satisfied: None where nobody
    asked; not_computed: what was not, each with what the table would have to have for it; beliefs: of the adversary who
    was named, for each sensitive attribute."""

    release: str
    rows: int
    node: Mapping[str, int]
    levels: Levels | None
    satisfied: bool | None
    suppressed: int
    tightest: tuple[Guarantee, ...]
    not_computed: tuple[NotComputed, ...]
    attacks: tuple[Attacked, ...]
    beliefs: tuple[Beliefs, ...] = ()
    metrics: Metrics
    weights: Weights
    warnings: tuple[str, ...]
    boxes: int | None = None

    def _repr_html_(self) -> str:
        return page(
            f"Audit of {self.rows:,} rows",
            table(self.columns_shown, self.rows_shown()),
            *(sentence for attacked in self.attacks for sentence in attacked.sentences),
            *(sentence for belief in self.beliefs for sentence in belief.sentences),
            *(f"Not computed: {missing.what}, {missing.why}." for missing in self.not_computed),
            *self.warnings,
        )


class Definition(Value):
    """A privacy definition that was compared. columns: the names of its tightest values, stricter: whether
    larger or smaller ones are."""

    name: str
    model: str
    sensitive: tuple[str, ...]
    origin: Literal["battery", "spec", "definitions"] = Field(alias="from")
    asked: Mapping[str, Any] | None
    columns: tuple[str, ...]
    stricter: tuple[str, ...] = Field(default=(), exclude=True)


class BestNode(Value):
    """The best value of a metric, and a node that has it."""

    value: Number
    levels: Levels


class Satisfying(Value):
    """How many nodes satisfy a definition that asks for something, the minimal ones, and the best by each metric."""

    definition: str
    satisfying: int
    minimal: tuple[Levels, ...]
    best: Mapping[str, BestNode]


class NodeEpsilons(Value):
    """The smallest epsilon of each adversary at a node."""

    levels: Levels
    epsilon: tuple[Number, ...]


class Epsilons(Value):
    """The smallest epsilon about a sensitive attribute, by adversary and node."""

    sensitive: str
    adversaries: tuple[str, ...]
    nodes: tuple[NodeEpsilons, ...]


class Granted(Value):
    """What a definition grants about a sensitive attribute against an adversary of epsilon-privacy. epsilon: that every
    table with it has ("inf" where there is none, None where no table has it); satisfied: the largest of the nodes that
    satisfy the definition, and levels of such a node."""

    definition: str
    sensitive: str
    adversary: str
    epsilon: Number
    why: str
    satisfied: Number
    levels: Levels | None


class MoreUseful(Value):
    """A pair of definitions of which the first admits every node of the second, and more."""

    more: str
    less: str
    nodes_of_more_only: int


class Violation(Value):
    """A value that gets weaker upward in the lattice."""

    column: str
    finer: Levels
    coarser: Levels


class Monotonicity(Value):
    """The values that may never get weaker upward, and where they do."""

    checked: tuple[str, ...]
    violations: tuple[Violation, ...]


class WorkloadSize(Value):
    """Of the query error: how many queries, and whether they are drawn."""

    queries: int
    drawn: bool


class ComparedNode(Value):
    """A node with the tightest values and verdicts of all definitions."""

    levels: Levels
    blocks: int
    metrics: Metrics
    tightest: Mapping[str, Number]
    satisfied: Mapping[str, bool]


class Compared(Answer):
    """Many definitions at every node. granted: what each definition that asks for something grants as
    epsilon-privacy; same_nodes: pairs that admit the same nodes; workload: of the query error, which is a metric where
    one was given."""

    release: str
    rows: int
    quasi_identifiers: tuple[str, ...]
    heights: Levels
    nodes_total: int
    sensitive: tuple[str, ...]
    suppressed_rows_allowed: int
    queries: int
    seconds: Real
    definitions: tuple[Definition, ...]
    not_computed: tuple[NotComputed, ...]
    asked: tuple[Satisfying, ...]
    epsilon: tuple[Epsilons, ...]
    granted: tuple[Granted, ...]
    more_useful: tuple[MoreUseful, ...]
    same_nodes: tuple[tuple[str, ...], ...]
    monotonicity: Monotonicity
    nodes: tuple[ComparedNode, ...]
    warnings: tuple[str, ...]
    workload: WorkloadSize | None = None

    @property
    def directly_more_useful(self) -> list[MoreUseful]:
        """The pairs that do not follow from two others."""
        pairs = {(pair.more, pair.less) for pair in self.more_useful}
        names = {name for pair in pairs for name in pair}
        return [
            pair
            for pair in self.more_useful
            if not any((pair.more, name) in pairs and (name, pair.less) in pairs for name in names)
        ]

    def to_frame(self) -> pd.DataFrame:
        """A row for each node: its levels, and the tightest value of each definition."""
        rows = [(*node.levels, *node.tightest.values()) for node in self.nodes]
        return frame((*self.quasi_identifiers, *(c for of in self.definitions for c in of.columns)), rows)


class RecodingSide(Value):
    """What one recoding would publish. levels: of the node, None of a map; suppressed: rows; seconds, statements: of
    its search and its figures, without those that opened the source."""

    levels: Levels | None
    blocks: int
    suppressed: int
    metrics: Metrics
    attributes: tuple[ShownColumn, ...]
    tightest: tuple[Guarantee, ...]
    seconds: Real
    statements: int

    @property
    def figures(self) -> dict[str, Number]:
        """The figures that are compared."""
        return {
            "blocks": self.blocks,
            "suppressed": self.suppressed,
            **self.metrics,
            **{f"suppressed: {column.attribute}": column.suppressed for column in self.attributes},
            "seconds": self.seconds,
            "statements": self.statements,
        }


class BothRecodings(Value):
    """Each None where it has no answer."""

    full_domain: RecodingSide | None
    multidimensional: RecodingSide | None


class BothReasons(Value):
    """How each answer came about, or why there is none."""

    full_domain: str
    multidimensional: str


class ComparedRecodings(Answer):
    """Both recodings of one spec. refused: why neither has an answer, if so."""

    columns_shown = ("figure", "full_domain", "multidimensional")

    release: str
    rows: int
    quasi_identifiers: tuple[str, ...]
    suppressed_rows_allowed: int
    choice: str
    choose_by: str
    weights: Weights
    workload: WorkloadSize
    queries: int
    seconds: Real
    recodings: BothRecodings
    why: BothReasons
    warnings: tuple[str, ...]
    refused: str | None = Field(default=None, exclude=True)

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        sides = (self.recodings.full_domain, self.recodings.multidimensional)
        figures = [{} if side is None else side.figures for side in sides]
        names = next((list(of_side) for of_side in figures if of_side), [])
        return [(name, *(of_side.get(name) for of_side in figures)) for name in names]

    def raise_refused(self) -> None:
        """Raise Refused (exit status 3) where neither recoding has an answer."""
        if self.refused is not None:
            raise Refused(self.refused)
