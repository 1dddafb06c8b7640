"""What a report says, as figures and texts: it knows no HTML. `to_json` is the report's `--format json`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Label:
    """A label that is published, and how many rows have it."""

    label: str
    rows: int


@dataclass(frozen=True)
class ColumnShown:
    """A column of the view. before: the kind of its values in the source, in words; after: what readers see instead;
    labels: those that most rows have; values: how many there are; share_hidden: of the rows, in which it is `*`; bits:
    the entropy of its labels, what a reader learns of a row from this column alone; None of a column that is not a
    quasi-identifier."""

    name: str
    role: str
    before: str | None
    after: str
    how_to_filter: str
    values: int | None = None
    share_hidden: float | None = None
    bits: float | None = None
    labels: tuple[Label, ...] = ()


@dataclass(frozen=True)
class GuaranteeShown:
    """One guarantee, as the helper view of the guarantees has it."""

    model: str
    sensitive: str | None
    asked: str
    holds: bool
    reached: str | None
    in_words: str


@dataclass(frozen=True)
class AttackShown:
    """What an attack on a sensitive attribute finds in the published rows. detail: how many values are ruled out, or at
    which level of the taxonomy values are alike; rows, blocks: exposed with certainty; None of an attack that has no
    such figure."""

    sensitive: str
    attack: str
    detail: int | None
    sentence: str
    rows: int | None
    blocks: int | None


@dataclass(frozen=True)
class RiskWithout:
    """Blocks of the published rows: all quasi-identifiers known (column None), or all but one. least: rows of the
    smallest; most_sure: 1 / least, how sure somebody may be which row is whose; mean: of that chance over the rows."""

    column: str | None
    blocks: int
    least: int
    most_sure: float
    mean: float


@dataclass(frozen=True)
class SizeShown:
    """Blocks of at least `low` and at most `high` rows, and the rows in them."""

    low: int
    high: int
    blocks: int
    rows: int


@dataclass(frozen=True)
class AreaShown:
    """Blocks of a recoding map that have the same labels in two columns. low, high: of the label across, where it is of
    numbers (low <= value < high; None where it is open); blocks, rows: in how many blocks these are."""

    across: str
    down: str
    low: float | None
    high: float | None
    blocks: int
    rows: int


@dataclass(frozen=True)
class MapShown:
    """The blocks of a recoding map over two quasi-identifiers. across, down: their names; areas: those with most rows;
    total: how many areas there are; rows: in all of them."""

    across: str
    down: str
    areas: tuple[AreaShown, ...]
    total: int
    rows: int


@dataclass(frozen=True)
class SampleShown:
    """Published rows, spread over the view; values as text, NULL as None."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True)
class Published:
    """What whoever may read the view can find out. at: when the version was made, in UTC; whose: whose a row is, in
    words; map: of a recoding map whose labels of some column are of numbers."""

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

    @property
    def quasi_identifiers(self) -> tuple[ColumnShown, ...]:
        return tuple(column for column in self.columns if column.bits is not None)

    @property
    def sensitive(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.role == "sensitive attribute")


@dataclass(frozen=True)
class NodeShown:
    """A node of the lattice. satisfied: whether it satisfies the spec; reached: the tightest value of each
    requirement, in words; measure: of the metric that nodes are chosen by, None where it has none; room: the least
    distance between asked and reached, as a share of asked, None where that is not defined."""

    levels: tuple[int, ...]
    satisfied: bool
    suppressed: int
    reached: tuple[str, ...]
    measure: float | None
    room: float | None = None


@dataclass(frozen=True)
class LatticeShown:
    """The lattice of full-domain recoding, as the source is now. words: of each quasi-identifier, what readers see at
    each of its levels; total: how many nodes there are, of which `nodes` has all (whole), or the chosen one, the
    minimal ones and those one level coarser, so many as are looked at; frontier: of these, the satisfying ones that no
    other one beats in both, room and metric; chosen: by the search; published: of the version that readers see, None of
    a map; metric: that nodes are chosen by, and whether more of it is better."""

    words: tuple[tuple[str, tuple[str, ...]], ...]
    total: int
    whole: bool
    nodes: tuple[NodeShown, ...]
    minimal: tuple[tuple[int, ...], ...]
    frontier: tuple[tuple[int, ...], ...]
    chosen: tuple[int, ...] | None
    published: tuple[int, ...] | None
    metric: str
    more_is_better: bool


@dataclass(frozen=True)
class WhatIf:
    """What another question would give. change: in words; satisfying: how many nodes satisfy then; levels: of the best
    of them, None where none does; measure: of the metric there."""

    change: str
    satisfying: int
    levels: tuple[int, ...] | None
    measure: float | None


@dataclass(frozen=True)
class RunShown:
    """A run of the job, as the ledger has it. how: its node was chosen; why: of a refusal or failure, and what else it
    recorded."""

    at: str
    version: int | None
    state: str
    rows: int | None
    how: str
    why: tuple[str, ...]


@dataclass(frozen=True)
class RoomShown:
    """A guarantee of a version, as it was checked. room: between asked and reached, as a share of asked."""

    version: int
    model: str
    sensitive: str | None
    asked: str
    reached: str
    room: float | None


@dataclass(frozen=True)
class RightShown:
    """Something that somebody may or must not do: a statement, or a path with the access to it. held: whether it is so
    already; None where nobody can say."""

    whose: str
    what: str
    why: str
    held: bool | None


@dataclass(frozen=True)
class EpsilonShown:
    """The smallest epsilon about a sensitive attribute, against each adversary of epsilon-privacy, that the whole of a
    node reaches: for each of `levels` a row of `values`, as text."""

    sensitive: str
    adversaries: tuple[str, ...]
    levels: tuple[tuple[int, ...], ...]
    values: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class CurveShown:
    """The smallest epsilon about a sensitive attribute at one node, by the stubbornness of an adversary (EP, Figure
    2a). adversary: in words; stubbornness: as text, the last one `inf` where the class has that; values: one each,
    None where no epsilon is large enough."""

    sensitive: str
    levels: tuple[int, ...]
    adversary: str
    stubbornness: tuple[str, ...]
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class GrantShown:
    """What a requirement grants as epsilon-privacy against an adversary, whatever the table. epsilon: as text, None
    where it grants none; why: in words; reached: by the nodes that are looked at and satisfy it, None where none
    does."""

    requirement: str
    sensitive: str
    adversary: str
    epsilon: str | None
    why: str
    reached: str | None


@dataclass(frozen=True)
class BeliefShown:
    """What somebody who knows a population comes to believe about a sensitive attribute at a node. people: of the
    table; breach, positive, negative, moved: how many of them are concerned; sentences: all of it in words."""

    sensitive: str
    prior: str
    levels: tuple[int, ...]
    people: int
    breach: int
    positive: int
    negative: int
    moved: int
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class KeptShown:
    """That a report is of a version that was asked for. current: the one that readers see, None where there is none;
    same_spec: whether the spec is still the one that it was published by."""

    version: int
    current: int | None
    same_spec: bool


@dataclass(frozen=True)
class Internal:
    """What only whoever runs the job may see. binding: which requirement is in the way of more detail, in words;
    what_if: None where `why_not` says why it was not worked out; beliefs: of whoever knows a population, where one
    was named; problems: that a verification found, None before anything is published; spec: its canonical text without
    secrets, and the digest of it; head: of the ledger; kept: of a report of a version that was asked for."""

    candidate: str
    binding: str | None
    lattice: LatticeShown
    what_if: tuple[WhatIf, ...] | None
    why_not: str | None
    epsilon: tuple[EpsilonShown, ...]
    curves: tuple[CurveShown, ...]
    granted: tuple[GrantShown, ...]
    beliefs: tuple[BeliefShown, ...]
    runs: tuple[RunShown, ...]
    room: tuple[RoomShown, ...]
    rights: tuple[RightShown, ...]
    problems: tuple[str, ...] | None
    notes: tuple[str, ...]
    spec: str
    spec_digest: str
    head: str | None
    kept: KeptShown | None = None


@dataclass(frozen=True)
class Report:
    """A report. program: the version of qblock that made it; made: when, in UTC; release: its name; published: None
    before the first version; internal: None in a report for readers."""

    program: str
    made: str
    release: str
    published: Published | None
    internal: Internal | None = None

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

    def to_json(self) -> dict[str, Any]:
        """As JSON: the fields by name; one for readers has no internal ones."""
        fields = asdict(self)
        return fields if self.internal is not None else {name: fields[name] for name in fields if name != "internal"}
