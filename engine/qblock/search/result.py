"""What a search found: the chosen node, why nothing can be published, and which columns it leaves as `*`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from qblock.blocks import Mask
from qblock.engines.values import NUMERIC
from qblock.errors import ParameterError, Refused
from qblock.hierarchy import TOP, Hierarchy
from qblock.lattice import Node
from qblock.metrics import BY_NAME
from qblock.models import Tightest, parameters_of
from qblock.models.ratios import double
from qblock.search.assessment import HELD_BY_ALL, Assessment, metrics_json, requirements_json, weights_json
from qblock.search.lattice import SLACK, Outcome
from qblock.search.task import Task
from qblock.search.utility import MARGINAL, Metrics
from qblock.spec import Requirement, Spec
from qblock.spec.checks import RANGES_PUBLISHED
from qblock.spec.written import values_text

if TYPE_CHECKING:
    from qblock.search.boxes.recoded import Recoded


EASIER_IF_COARSER = ("t_closeness", "nt_closeness", "epsilon_privacy", "beta_likeness", "delta_disclosure")
"""Models of how far what is believed moves: to tell fewer values apart moves it less."""


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search found. outcome: None where no lattice was searched. chosen: None where nothing satisfies; of a
    recoding map the verdict over its boxes. recoded: the map, where one was searched for; full_domain: with it, what
    would have been chosen without, as JSON. begun: the node that splits of a map begin at; by sizes also one that fails
    other models. failing: the verdict of what was pinned or chosen by sizes, where it fails; remedy: what to write
    then. complete: whether the search ended before its time (`search.within`) was over."""

    task: Task
    choice: Literal["minimal", "sizes", "pinned"]
    outcome: Outcome | None = None
    chosen: Assessment | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    why: str = ""
    nodes: list[dict[str, Any]] | None = None
    recoded: Recoded | None = None
    full_domain: dict[str, Any] | None = None
    begun: Node | None = None
    failing: Assessment | None = None
    remedy: str = ""
    complete: bool = True
    queries: int = 0
    seconds: float = 0.0

    @property
    def minimal(self) -> list[Node]:
        return [] if self.outcome is None else self.outcome.minimal

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        return self.task.spec.quasi_identifiers

    @property
    def best_only(self) -> bool:
        """Whether other nodes were left undecided."""
        return self.outcome is not None and self.outcome.optimality == "best"

    def levels(self) -> dict[str, int]:
        """The chosen node by name."""
        assert self.chosen is not None
        return dict(zip(self.quasi_identifiers, self.chosen.node, strict=True))

    def to_json(self) -> dict[str, Any]:
        lattice = self.task.lattice
        chosen = self.chosen
        how = "pinned" if self.choice == "pinned" else "none"
        place: dict[str, Any] = {}
        if self.recoded is not None:
            place = {"levels": None, "node": {}, **self.recoded.to_json()}
        elif chosen is not None:
            place = {"levels": list(chosen.node), "node": self.levels()}
        answer: dict[str, Any] = {
            "release": self.task.spec.release,
            "rows": self.task.source.rows,
            "quasi_identifiers": list(self.quasi_identifiers),
            "heights": list(lattice.heights),
            "nodes_total": len(lattice),
            "nodes_evaluated": self.outcome.nodes_evaluated if self.outcome else int(how == "pinned"),
            "queries": self.queries,
            "strategy": self.outcome.strategy if self.outcome else how,
            "optimality": self.outcome.optimality if self.outcome else how,
            "why": self.why,
            "complete": self.complete,
            "choice": self.choice,
            "seconds": round(self.seconds, 3),
            "satisfying": self.outcome.all_satisfying if self.outcome else None,
            "minimal": [list(node) for node in self.minimal],
            "weights": weights_json(self.task.spec),
            "chosen": None
            if chosen is None
            else {
                **place,
                "suppressed": chosen.suppressed,
                "metrics": metrics_json(self.metrics),
                "tightest": requirements_json(self.task.spec.privacy, chosen.tightest),
            },
            "warnings": self.task.warnings,
        }
        if self.task.spec.search.recoding == "multidimensional":
            answer["recoding"] = "multidimensional"
            by_values = self.task.spec.search.choose_by == "kl_divergence" or not self.task.protected
            # Of a map that was named, the search for it did or did not.
            answer["looked_at_sensitive"] = None if self.choice == "pinned" else by_values and self.choice == "minimal"
            answer["full_domain"] = self.full_domain
        if self.nodes is not None:
            answer["nodes"] = self.nodes
        return answer


def verdict_of(recoded: Recoded | None, *, searched: bool) -> tuple[Assessment | None, str]:
    """The verdict over the boxes of a map, and where it comes from in words. searched: whether there was a search for
    a node, too."""
    if recoded is None and not searched:
        return None, "there is no map: the most general labels do not satisfy the spec"
    if recoded is None:
        return None, "there is no map: neither the most general labels nor any node of the lattice satisfies the spec"
    assessment = recoded.assessment
    if not assessment.satisfied:
        return assessment, f"the map, whose cuts were chosen by block sizes alone, fails {failed(assessment)}"
    begun = "the most general labels" if recoded.start == "top" else "the chosen full-domain node"
    ended = "No group can be split further. Another map may still lose less"
    if not recoded.specialized.complete:
        ended = "The given time was over; more splits may be possible"
    rounds = f"{recoded.specialized.rounds} rounds of splits from {begun}"
    return assessment, f"{len(assessment.counts.rows):,} boxes after {rounds}. {ended}"


def node_json(task: Task, metrics: Metrics, node: Node) -> dict[str, Any]:
    """One entry of `nodes`: levels, verdict, tightest values and metrics."""
    assessment = task.assess(node)
    return {
        "levels": list(node),
        "satisfied": assessment.satisfied,
        "suppressed": assessment.suppressed,
        "tightest": requirements_json(task.spec.privacy, assessment.tightest),
        "metrics": metrics_json(metrics.of(assessment)),
    }


def failed(assessment: Assessment) -> str:
    """What an assessment fails, for a message."""
    names = list(dict.fromkeys(t.model for t in assessment.tightest if not t.holds))
    if assessment.has_value_of_all:
        names.append(f"the check for {HELD_BY_ALL}")
    if assessment.has_small_box:
        names.append("`search.box`")
    return ", ".join(names) or "the privacy models within the suppression limit"


def refusal(result: SearchResult) -> Refused:
    """Why nothing can be published, in words for a person: how far the top node is from what is asked."""
    task = result.task
    if result.choice == "pinned" or (result.choice != "minimal" and result.minimal):
        return Refused(result.why + _instead_of_it(result))
    top = task.assess(task.lattice.top)
    if top.satisfied:
        return Refused(result.why + _instead_of_it(result))
    general, whole = "the most general node", "the source"
    if task.lattice.top != task.source.frequency_sets.lattice.top:
        general += " within `max`"
        whole = f"a block of {general}"
    reasons = []
    for requirement, verdict in zip(task.spec.privacy, top.tightest, strict=True):
        if not verdict.holds:
            satisfied = ", ".join(f"{v.parameter} {_short(v.value)}" for v in verdict.values)
            limits = ", ".join(f"{k} {_short(v)}" for k, v in parameters_of(requirement.model).items() if v is not None)
            reasons.append(f"{verdict.model} asks {limits}; {general} satisfies {satisfied}")
    if top.has_value_of_all:
        reasons.append(f"{general} has {HELD_BY_ALL}")
    if top.has_small_box:
        reasons.append(f"`search.box` asks {task.spec.least_box:,}, and {whole} has fewer")
    proved = result.outcome is None or result.outcome.optimality != "within" or task.monotone
    detail = "; ".join(reasons) or f"even {general} has too many rows to suppress"
    kept = in_the_way(task)
    lines = _passing(task.spec, zip(task.spec.privacy, top.tightest, strict=True))
    instead = f"Ask for less{f' ({lines} would pass)' if lines else ''}{_coarser(task, top)}"
    if top.has_value_of_all:
        instead = "Publish from a view of the source that leaves out the rows with that value"
    if top.has_small_box:
        instead = "Write a smaller number there, or leave `box` out"
    if kept:
        are, it = ("is", "it") if len(kept) == 1 else ("are", "them")
        instead = f"`max` of {' and of '.join(kept)} {are} in the way: raise {it}, or ask for less"
    nothing = "no node satisfies the spec" if proved else "no node that satisfies the spec was found in time"
    return Refused(f"{nothing}: {detail}. {instead}")


def _coarser(task: Task, top: Assessment) -> str:
    """What to write where a model that fails asks less of coarser values. Fewer values are no more diverse."""
    for requirement, verdict in zip(task.spec.privacy, top.tightest, strict=True):
        if verdict.holds or requirement.model.name not in EASIER_IF_COARSER:
            continue
        for name in requirement.sensitive:
            if task.spec.attributes[name].publish_as is not None:
                return f", or publish {name} coarser yet (`publish_as`)"
            values = task.source.sensitives[name]
            if not any(values.reference.domain):
                continue  # what a column without a value is of is not told alike by tables, files and frames
            if values.column.kind in NUMERIC:
                return f", or publish {name} coarser: `{RANGES_PUBLISHED}`"
            return f", or publish {name} coarser, as a level of its `taxonomy`: `publish_as: {{level: 1}}`"
    return ""


def _instead_of_it(result: SearchResult) -> str:
    """What to do where what was pinned or chosen by sizes fails: people with several rows may all hold a value in a
    block."""
    remedy = f". {result.remedy}" if result.remedy else ""
    if result.failing is None or not result.failing.has_value_of_all:
        return remedy
    known = f": some blocks have {HELD_BY_ALL}, so belonging to such a block reveals it"
    if result.choice == "sizes":
        without = "`search: {choose_from: minimal}`, which takes no such blocks, or ask for a larger k"
        return known + (remedy or f". Write {without}")
    if result.task.spec.map_version is not None:
        return f"{known}. Leave `search.node` out, so that a map without such blocks is searched for"
    return f"{known}. Pin a coarser node, or leave `search.node` out"


def _passing(spec: Spec, verdicts: Iterable[tuple[Requirement, Tightest]]) -> str:
    """The requirements that fail, as lines of the spec that ask for what is satisfied; empty where one has none."""
    lines = []
    for requirement, verdict in verdicts:
        if verdict.holds:
            continue
        bound, tightest = requirement.model.about.bounds[0], verdict.values[0]
        number = _rounded(tightest.value, bound.stricter)
        more = [f.name for f in fields(requirement.model) if getattr(requirement.model, f.name) != f.default]
        if len(verdict.values) > 1 or not tightest.attained or number is None or more != [bound.parameter]:
            return ""
        try:
            replace(requirement.model, **{bound.parameter: int(number) if number.denominator == 1 else number})
        except ParameterError:
            return ""
        named = requirement.sensitive if spec.sensitives[1:] else ()
        of = f", sensitive: {values_text(named)}" if named else ""
        lines.append(f"`- {verdict.model}: {{{bound.parameter}: {float(number):.12g}{of}}}`")
    return " and ".join(lines)


def _rounded(value: Any, stricter: str) -> Fraction | None:
    """What is satisfied, in thousandths that are satisfied, too; None where it is no number that can be asked for."""
    if value is None or (isinstance(value, float) and math.isinf(value)):
        return None
    thousandths = Fraction(value) * 1000
    return Fraction(math.floor(thousandths) if stricter == "larger" else math.ceil(thousandths), 1000)


def in_the_way(task: Task) -> list[str]:
    """The quasi-identifiers whose `max` is why the top of the lattice fails: one where raising it is enough, else all
    that have one; none where even `*` everywhere fails."""
    top, whole = task.lattice.top, task.source.frequency_sets.lattice.top
    below = [i for i in range(len(top)) if top[i] < whole[i]]
    for i in below:
        if task.assess((*top[:i], whole[i], *top[i + 1 :])).satisfied:
            return [task.spec.quasi_identifiers[i]]
    if len(below) > 1 and task.assess(whole).satisfied:
        return [task.spec.quasi_identifiers[i] for i in below]
    return []


def _short(value: Any) -> str:
    if isinstance(value, bool | str | int | tuple) or value is None:
        return str(value)
    return f"{double(value) if isinstance(value, Fraction) else float(value):.6g}"


@dataclass(frozen=True)
class SuppressedAttribute:
    """A quasi-identifier that is `*` in every row.

    level: the highest at which it would not be; shown_at: a node that satisfies the spec and shows it; None where there
    is none, or none is known. rows_to_suppress: at the chosen node with this attribute at `level`; None where these
    would be all rows.
    """

    attribute: str
    level: int
    shown_at: Node | None
    rows_to_suppress: int | None

    def to_json(self) -> dict[str, Any]:
        return {
            "attribute": self.attribute,
            "level": self.level,
            "shown_at": None if self.shown_at is None else list(self.shown_at),
            "rows_to_suppress": self.rows_to_suppress,
        }


def suppressed_attributes(result: SearchResult) -> list[SuppressedAttribute]:
    """The suppressed quasi-identifiers of the chosen node, in their order. Counts one node for each."""
    if result.chosen is None:
        return []
    if result.recoded is not None:
        return _of_map(result, result.recoded)
    node, task = result.chosen.node, result.task
    attributes = []
    for i, hierarchy in enumerate(task.source.hierarchies):
        level = _shown_below(hierarchy, node[i])
        if level is not None:
            failing = task.failing_rows((*node[:i], level, *node[i + 1 :]))
            rows = failing if failing < task.source.rows else None
            attributes.append(SuppressedAttribute(hierarchy.attribute, level, _shown_at(result, i, level), rows))
    return attributes


def _of_map(search: SearchResult, recoded: Recoded) -> list[SuppressedAttribute]:
    """Those of which no published box shows anything: no split by one of them passes, whatever it would suppress."""
    attributes = []
    for i, hierarchy in enumerate(search.task.source.hierarchies):
        level = _shown_below(hierarchy, hierarchy.height)
        if level is not None and recoded.suppresses(i):
            attributes.append(SuppressedAttribute(hierarchy.attribute, level, _shown_at(search, i, level), None))
    return attributes


def _shown_below(hierarchy: Hierarchy, level: int) -> int | None:
    """The highest level below this one at which rows differ from `*`; None where this one shows something, or none
    does."""
    if not _all_top(hierarchy, level):
        return None
    return next((lower for lower in range(level - 1, -1, -1) if not _all_top(hierarchy, lower)), None)


def _all_top(hierarchy: Hierarchy, level: int) -> bool:
    return set(hierarchy.columns[level].distinct.to_pylist()) <= {TOP, None}


def _shown_at(result: SearchResult, attribute: int, level: int) -> Node | None:
    """Of the nodes that are known to satisfy and show the attribute, the best by what is known without a count: the
    metric of the choice, or else the loss, as if no row were suppressed."""
    outcome, task = result.outcome, result.task
    if outcome is None or (result.choice == "sizes" and not task.sizes_only):
        return None  # none was searched for, or block sizes alone were looked at
    where = tuple(slice(None, level + 1) if i == attribute else slice(None) for i in range(len(task.lattice.heights)))
    by = task.spec.search.choose_by if task.spec.search.choose_by in MARGINAL else "loss"
    metrics, sign = Metrics(task), BY_NAME[by].sign
    nodes = outcome.each_satisfying() if outcome.satisfied is None else _least(outcome.satisfied, metrics, by, where)
    shown = (node for node in nodes if node[attribute] <= level)
    return min(shown, key=lambda n: (float(f"{sign * metrics.unsuppressed(n, by):.12g}"), sum(n), n), default=None)


def _least(satisfied: Mask, metrics: Metrics, by: str, where: tuple[slice, ...]) -> Iterator[Node]:
    """The satisfying nodes of a part of the lattice that are the best there, or so near that doubles may not tell."""
    known = metrics.bounds(by)
    assert known is not None
    mask, known = satisfied[where], known[where]
    least = float(known.min(where=mask, initial=np.inf))
    for place in np.flatnonzero(mask & (known <= least + SLACK * max(abs(least), 1.0))):
        yield tuple(int(n) for n in np.unravel_index(place, mask.shape))
