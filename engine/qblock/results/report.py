"""The report of a release, as figures and texts: it knows no HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from qblock.results.base import Answer, Levels, Real, Shown
from qblock.results.frameworks import FrameworkShown
from qblock.results.report_utility import UtilityKept
from qblock.results.risk import (
    AnswerShown,
    AttackerShown,
    BeforeShown,
    ContextShown,
    DeclaredShown,
    ExposedShown,
    PopulationShown,
    ThresholdShown,
)


class Label(Shown):
    """A label that is published, and how many rows have it."""

    label: str
    rows: int


class ColumnShown(Shown):
    """A column of the view. before: the kind of its values in the source, in words; after: what readers see instead;
    labels: those that most rows have, in the order of their numbers or dates where labels have one; values: how many
    there are; share_as_is: of the rows, in which it is as in the source, None of a column that the source does not
    have; share_suppressed: in which it is `*`; bits: the entropy of its labels, what a reader learns of a row from this
    column alone; both None of a column that is not a quasi-identifier."""

    name: str
    role: str
    before: str | None
    after: str
    how_to_filter: str
    values: int | None = None
    share_suppressed: Real | None = None
    bits: Real | None = None
    labels: tuple[Label, ...] = ()
    share_as_is: Real | None = None


class GuaranteeShown(Shown):
    """One guarantee, as the helper view of the guarantees has it."""

    model: str
    sensitive: str | None
    asked: str
    holds: bool
    satisfied: str | None
    in_words: str


class AttackShown(Shown):
    """What an attack on a sensitive attribute finds in the published rows. detail: how many values are ruled out, or at
    which level of the taxonomy values are alike; rows, blocks: exposed with certainty; None of an attack that has no
    such figure."""

    sensitive: str
    attack: str
    detail: int | None
    sentence: str
    rows: int | None
    blocks: int | None


class RiskWithout(Shown):
    """Blocks of the published rows: all quasi-identifiers known (column None), or all but one. least: rows of the
    smallest; most_sure: 1 / least, how sure somebody may be which row is whose; mean: of that chance over the rows."""

    column: str | None
    blocks: int
    least: int
    most_sure: Real
    mean: Real


class SizeShown(Shown):
    """Blocks of at least `low` and at most `high` rows, and the rows in them."""

    low: int
    high: int
    blocks: int
    rows: int


class AreaShown(Shown):
    """Blocks of a recoding map that have the same labels in two columns. low, high: of the label across, where it is of
    numbers (low <= value < high; None where it is open); blocks, rows: in how many blocks these are."""

    across: str
    down: str
    low: Real | None
    high: Real | None
    blocks: int
    rows: int


class MapShown(Shown):
    """The blocks of a recoding map over two quasi-identifiers. across, down: their names; areas: those with most rows;
    total: how many areas there are; rows: in all of them."""

    across: str
    down: str
    areas: tuple[AreaShown, ...]
    total: int
    rows: int


class SampleShown(Shown):
    """Published rows, spread over the view; values as text, NULL as None."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


class Published(Shown):
    """What whoever may read the view can find out. at: when the version was made, in UTC; whose: whose a row is, in
    words; map: of a recoding map whose labels of some column are of numbers; now: how many of the rows are of people
    who are there now, by their weights, where rows have weights; new: how many of the rows no earlier version shows as
    they are, where rows say so; follows: how the rows follow the source, in words; digest: of the content, counted
    again from the view; threshold: None unless the spec declares one; population: the same; exposed: of each sensitive
    attribute; declared: the columns that the spec names; answers: to the three risks of WP29; attackers: those whose
    chances can be told; counted: of whom these chances are, in words; together: the
    highest chance of somebody who holds all versions, None where it is not known; context: as declared."""

    release: str
    view: str
    version: int
    at: str
    previous: int | None
    rows: int
    blocks: int
    whose: str
    columns: tuple[ColumnShown, ...]
    guarantees: tuple[GuaranteeShown, ...]
    attacks: tuple[AttackShown, ...]
    risk: tuple[RiskWithout, ...]
    sizes: tuple[SizeShown, ...]
    sample: SampleShown
    map: MapShown | None = None
    now: int | None = None
    new: int | None = None
    follows: str = ""
    digest: str | None = None
    threshold: ThresholdShown | None = None
    exposed: tuple[ExposedShown, ...] = ()
    declared: tuple[DeclaredShown, ...] = ()
    answers: tuple[AnswerShown, ...] = ()
    attackers: tuple[AttackerShown, ...] = ()
    counted: str = ""
    together: Real | None = None
    population: PopulationShown | None = None
    context: ContextShown = ContextShown()

    @property
    def quasi_identifiers(self) -> tuple[ColumnShown, ...]:
        return tuple(column for column in self.columns if column.bits is not None)

    @property
    def sensitive(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.role == "sensitive attribute")


class NodeShown(Shown):
    """A node of the lattice. satisfied: whether it satisfies the spec; tightest: the strongest value of each
    requirement, in words; measure: of the metric that nodes are chosen by, None where it has none; margin: the least
    distance between asked and satisfied, as a share of asked, None where that is not defined."""

    levels: Levels
    satisfied: bool
    suppressed: int
    tightest: tuple[str, ...]
    measure: Real | None
    margin: Real | None = None


class LatticeShown(Shown):
    """The lattice of full-domain recoding, as the source is now. words: of each quasi-identifier, what readers see at
    each of its levels; total: how many nodes there are, of which `nodes` has all (whole), or the chosen one, the
    minimal ones and those one level coarser, so many as are looked at; frontier: of these, the satisfying ones that no
    other one beats in both, margin and metric; chosen: by the search; published: of the version that readers see, None
    of a map; metric: that nodes are chosen by, and whether more of it is better."""

    words: tuple[tuple[str, tuple[str, ...]], ...]
    total: int
    whole: bool
    nodes: tuple[NodeShown, ...]
    minimal: tuple[Levels, ...]
    frontier: tuple[Levels, ...]
    chosen: Levels | None
    published: Levels | None
    metric: str
    more_is_better: bool


class WhatIf(Shown):
    """What another question would give. change: in words; satisfying: how many nodes satisfy then; levels: of the best
    of them, None where none does; measure: of the metric there."""

    change: str
    satisfying: int
    levels: Levels | None
    measure: Real | None


class MapAnswerShown(Shown):
    """A recoding map that another question would give. change: in words; requested: whether the spec asks just that;
    blocks, smallest, suppressed, measure: of the map, None where there is none; satisfied: whether its blocks satisfy
    the spec, None where a model was left out, whose values were not counted."""

    change: str
    requested: bool
    blocks: int | None
    smallest: int | None
    suppressed: int | None
    measure: Real | None
    satisfied: bool | None


class DepthShown(Shown):
    """How much of a column a map shows. labels: how many there are; share_suppressed: of the rows; in_words: what share
    of the rows has labels of which kind."""

    name: str
    labels: int
    share_suppressed: Real
    in_words: str


class MapBlocksShown(Shown):
    """The blocks of a recoding map over the source as it is now. which: `published`: the map of the version that
    readers see; `next`: the one that the next run takes; `searched`: what a search finds now. version: that the map is
    of, None of one that was searched for. rows, suppressed: of the source; failing, failing_rows: blocks that fail the
    spec now, and the rows in them; fails: the models that these fail."""

    which: Literal["published", "next", "searched"]
    version: int | None
    blocks: int
    rows: int
    suppressed: int
    smallest: int
    failing: int
    failing_rows: int
    fails: tuple[str, ...]
    sizes: tuple[SizeShown, ...]
    columns: tuple[DepthShown, ...]


class MapsShown(Shown):
    """Recoding maps of the source as it is now. metric: that splits are chosen by; unit: what `smallest` counts;
    frontier: the spec asked at other k and l; what_if: each model dropped, weaker and stronger; left_out: questions
    that were not answered, and why; blocks: of one map, None where there is none; why_not: in words, why the next run
    would take no map."""

    metric: str
    more_is_better: bool
    unit: Literal["rows", "people"]
    frontier: tuple[MapAnswerShown, ...]
    what_if: tuple[MapAnswerShown, ...]
    left_out: tuple[str, ...]
    why_left_out: str | None
    blocks: MapBlocksShown | None
    why_not: str | None


class RunShown(Shown):
    """A run of the job, as the ledger has it. how: its node was chosen; why: of a refusal or failure, and what else it
    recorded."""

    at: str
    version: int | None
    state: str
    rows: int | None
    how: str
    why: tuple[str, ...]


class GuaranteeMargin(Shown):
    """A guarantee of a version, as it was checked. margin: between asked and satisfied, as a share of asked."""

    version: int
    model: str
    sensitive: str | None
    asked: str
    satisfied: str
    margin: Real | None


class RightShown(Shown):
    """Something that somebody may or must not do: a statement, or a path with the access to it. held: whether it is so
    already; None where nobody can say."""

    whose: str
    what: str
    why: str
    held: bool | None


class EpsilonShown(Shown):
    """The smallest epsilon about a sensitive attribute, against each adversary of epsilon-privacy, that the whole of a
    node, or of a recoding map, satisfies: for each of `levels` (None of a map) a row of `values`, as text."""

    sensitive: str
    adversaries: tuple[str, ...]
    levels: tuple[Levels | None, ...]
    values: tuple[tuple[str, ...], ...]


class CurveShown(Shown):
    """The smallest epsilon about a sensitive attribute at one node, or in a recoding map (levels None), by the
    stubbornness of an adversary (EP, Figure 2a). adversary: in words; stubbornness: as text, the last one `inf` where
    the class has that; values: one each, None where no epsilon is large enough."""

    sensitive: str
    levels: Levels | None
    adversary: str
    stubbornness: tuple[str, ...]
    values: tuple[Real | None, ...]


class GrantShown(Shown):
    """What a requirement grants as epsilon-privacy against an adversary, whatever the table. epsilon: as text, None
    where it grants none; why: in words; satisfied: by the nodes that are looked at and satisfy it, None where none
    does."""

    requirement: str
    sensitive: str
    adversary: str
    epsilon: str | None
    why: str
    satisfied: str | None


class BeliefShown(Shown):
    """What somebody who knows a population comes to believe about a sensitive attribute at a node, or from the blocks
    of a recoding map (levels None). people: of the
    table; breach, positive, negative, moved: how many of them are concerned; sentences: all of it in words."""

    sensitive: str
    prior: str
    levels: Levels | None
    people: int
    breach: int
    positive: int
    negative: int
    moved: int
    sentences: tuple[str, ...]


class QueryShown(Shown):
    """A count query. number: in the workload; query: in words; true: the rows of the source that answer it; expected:
    as many as somebody counts in what is published; error: the difference as a share of the true count, or of a
    thousandth of the rows where there are fewer."""

    number: int
    query: str
    true: int
    expected: Real
    error: Real


class WorkloadShown(Shown):
    """The errors of count queries at a node, or in a recoding map (levels None), of the source as it is now. drawn:
    whether they were drawn, or written in the spec; worst_queries: those with the largest error, the worst first."""

    levels: Levels | None
    queries: int
    drawn: bool
    median: Real
    worst: Real
    worst_queries: tuple[QueryShown, ...]


class TakenShown(Shown):
    """What a version takes for granted and the data did not bear out when it was published. in_words: without a value
    and a figure; accepted: whether the spec answered for it, and why, where the ledger still has that spec; figure:
    its figures in words."""

    check: str
    columns: tuple[str, ...]
    in_words: str
    accepted: bool
    because: str | None
    figure: str


class TakenAtVersion(Shown):
    """All of these of a version. at: when it was published, in UTC; spec_digest: of the spec that answered."""

    version: int
    at: str
    spec_digest: str | None
    findings: tuple[TakenShown, ...]


class KeptShown(Shown):
    """That a report is of a version that was asked for. current: the one that readers see, None where there is none;
    same_spec: whether the spec is still the one that it was published by."""

    version: int
    current: int | None
    same_spec: bool


class Internal(Shown):
    """What only whoever runs the job may see. binding: which requirement is in the way of more detail, in words;
    what_if: None where `why_not` says why it was not worked out; maps: where the spec asks for one, or readers see one;
    beliefs: of whoever knows a population, where one was named; workload: None where the spec names none, or no node is
    known; problems: that a verification found, None before anything is published; spec: its canonical text without
    secrets, and the digest of it; head: of the ledger; taken: for granted by the version that is reported, None before
    the first; kept: of a report of a version that was asked for; before: the
    source's own risk; utility: None before anything is published."""

    candidate: str
    binding: str | None
    lattice: LatticeShown
    what_if: tuple[WhatIf, ...] | None
    why_not: str | None
    epsilon: tuple[EpsilonShown, ...]
    curves: tuple[CurveShown, ...]
    granted: tuple[GrantShown, ...]
    beliefs: tuple[BeliefShown, ...]
    maps: MapsShown | None = None
    workload: WorkloadShown | None = None
    utility: UtilityKept | None = None
    runs: tuple[RunShown, ...]
    margins: tuple[GuaranteeMargin, ...]
    rights: tuple[RightShown, ...]
    problems: tuple[str, ...] | None
    spec: str
    spec_digest: str
    head: str | None
    taken: TakenAtVersion | None = None
    kept: KeptShown | None = None
    before: BeforeShown | None = None


class Report(Answer):
    """A report. program: the version of qblock that made it; made: when, in UTC; release: its name; published: None
    before the first version; internal: None in a report for readers; framework: the same in the order of a document,
    where one was named."""

    program: str
    made: str
    release: str
    published: Published | None
    internal: Internal | None = None
    framework: FrameworkShown | None = None

    columns_shown = ("model", "sensitive", "asked", "satisfied", "holds")

    @property
    def version(self) -> int | None:
        """The version that it is of."""
        return None if self.published is None else self.published.version

    @property
    def stage(self) -> str:
        """What it is of, in words."""
        if self.published is not None:
            return f"version {self.published.version}"
        later = self.internal is not None and any(run.version is not None for run in self.internal.runs)
        return "before its next version" if later else "before its first version"

    @property
    def holds(self) -> bool | None:
        """Whether all guarantees hold in the rows that the version shows."""
        return None if self.published is None else all(guarantee.holds for guarantee in self.published.guarantees)

    @property
    def shown(self) -> Published:
        """What is published, for pages that are made where something is."""
        assert self.published is not None
        return self.published

    @property
    def inside(self) -> Internal:
        """What only whoever runs the job may see, for pages of such a report."""
        assert self.internal is not None
        return self.internal

    def to_dict(self) -> dict[str, Any]:
        return self.model_dump(
            mode="json", exclude={name for name in ("internal", "framework") if getattr(self, name) is None}
        )

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        guarantees = () if self.published is None else self.published.guarantees
        return [(g.model, g.sensitive, g.asked, g.satisfied, g.holds) for g in guarantees]
