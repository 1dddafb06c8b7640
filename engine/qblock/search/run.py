"""One search from a spec to an answer: opens the warehouse, decides the lattice, chooses a node."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, Literal

from qblock.blocks import Floats
from qblock.errors import ParameterError, Refused, values_shown
from qblock.lattice import Lattice, Node
from qblock.models import Tightest, parameters_of
from qblock.models.ratios import double
from qblock.search import MOST_DECIDED, search, search_within
from qblock.search.answer import metrics_json, requirements_json, weights_json
from qblock.search.assessment import HELD_BY_ALL, Assessment
from qblock.search.choose import candidates, choose, metric_named
from qblock.search.extent import MOST_BEFORE_A_MAP, check_listed, check_searchable
from qblock.search.nodes import pinned_node
from qblock.search.progress import Deadline, Pace, Progress, Stage
from qblock.search.recoding import Recoded, check_same, named, specialized
from qblock.search.strategies.evaluator import Outcome
from qblock.search.task import Task
from qblock.search.utility.measure import MARGINAL, Metrics
from qblock.source import Admitted, SourceTable, open_recoded, open_source
from qblock.source.columns import repeated_people
from qblock.source.open import local_frequency_sets, worth_moving
from qblock.spec import Requirement, Spec
from qblock.warehouse import Warehouse, warehouse_of
from qblock.warehouse.engines import ENGINES, local_warehouse
from qblock.warehouse.protocol import Session


@contextmanager
def open_task(
    spec: Spec,
    *,
    name_values: bool = True,
    published: bool = True,
    relation: Admitted | None = None,
    warehouse: Warehouse | None = None,
) -> Iterator[Task]:
    """Open the source of a spec within one snapshot and scan it (see open_source); all is closed at the end.

    warehouse: of the source, where it is not what the spec says.
    """
    with open_snapshot(spec, name_values=name_values, warehouse=warehouse) as session:
        source = open_source(spec, session, name_values=name_values, published=published, relation=relation)
        with task_over(source) as task:
            yield task


@contextmanager
def open_snapshot(spec: Spec, *, name_values: bool = True, warehouse: Warehouse | None = None) -> Iterator[Session]:
    """Open the warehouse of a spec in one read-only session, whose reads all see the same state. name_values: whether
    errors may show values; warehouse: of the source, where it is not what the spec says; closed at the end too."""
    with values_shown(name_values), ExitStack() as stack:
        warehouse = warehouse or warehouse_of(spec)
        stack.callback(warehouse.close)
        yield stack.enter_context(warehouse.snapshot())


@contextmanager
def task_over(source: SourceTable) -> Iterator[Task]:
    """The questions of a spec about an open source; frequency sets are rolled up where `search.roll_up` says."""
    search, embedded = source.spec.search, ENGINES[source.session.engine].facts.embedded
    with ExitStack() as stack:

        def localize(there: SourceTable) -> SourceTable:
            local = local_warehouse(search.memory_limit)
            stack.callback(local.close)
            return local_frequency_sets(there, stack.enter_context(local.snapshot()))

        if embedded or search.roll_up == "warehouse":
            yield Task(source)
        elif search.roll_up == "local":
            yield Task(localize(source))
        else:
            yield Task(source, localize if worth_moving(source) else None)


@contextmanager
def recoded(task: Task, recoding: Recoded, relation: Admitted | None = None) -> Iterator[Task]:
    """The same questions about the source as a map shows it, at the bottom of its lattice. task: of the source as it
    is, of which nothing can be asked any more; relation: as of `open_task`.

    Raises QblockError where its boxes are not those that the search counted.
    """
    spec, session = recoding.task.spec, task.source.session
    session.clear()
    with task_over(open_recoded(spec, session, recoding.stated, relation=relation)) as again:
        check_same(again.assess(again.lattice.bottom), recoding)
        yield again


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search found. outcome: None where no lattice was searched. chosen: None where nothing satisfies; of a
    recoding map the verdict over its boxes. recoded: the map, where one was searched for; full_domain: with it, what
    would have been chosen without, as JSON. begun: the node that splits of a map begin at; by sizes also one that fails
    other models. failing: the verdict of what was pinned or chosen by sizes, where it fails. complete: whether the
    search ended before its time (`search.within`) was over."""

    task: Task
    outcome: Outcome | None
    minimal: list[Node]
    chosen: Assessment | None
    metrics: dict[str, Any]
    choice: Literal["minimal", "sizes", "pinned"]
    queries: int
    seconds: float
    why: str
    nodes: list[dict[str, Any]] | None = field(default=None)
    recoded: Recoded | None = field(default=None)
    full_domain: dict[str, Any] | None = field(default=None)
    begun: Node | None = field(default=None)
    failing: Assessment | None = field(default=None)
    complete: bool = True

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
                **self._where(chosen),
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

    def _where(self, chosen: Assessment) -> dict[str, Any]:
        if self.recoded is None:
            return {"levels": list(chosen.node), "node": self.levels()}
        return {"levels": None, "node": {}, **self.recoded.to_json()}


class BySizes:
    """The evaluator of a search that asks nothing but the block sizes of a node. passes: whether they pass there."""

    sizes_monotone = True
    monotone = True
    sizes_only = True

    def __init__(self, task: Task, passes: Callable[[Node], bool], max_concurrency: int = 1) -> None:
        self.lattice: Lattice = task.lattice
        self.sizes_pass = self.passes = passes
        self.max_concurrency = max_concurrency
        self.evaluate_many = task.evaluate_many
        self.equivalent_range = task.equivalent_range
        self._task = task

    def plan_hubs(self, wanted: Floats, *, sizes: bool) -> Floats:
        return self._task.plan_hubs(wanted, sizes=True)


def run_search(
    task: Task,
    *,
    strategy: str | None = None,
    progress: Progress | None = None,
    all_nodes: bool = False,
    best_only: bool = False,
    recoding: Literal["full_domain"] | None = None,
    stated: Mapping[str, Any] | None = None,
) -> SearchResult:
    """Search the lattice of a task (or check its pinned node) and choose a node.

    best_only: leave nodes undecided that cannot be the one to choose; then no minimal nodes are known. recoding: look
    for a node, whatever the spec asks for. stated: the map that `search.node` names, as it is kept.

    Where no node satisfies, that is not an error here: `chosen` is None, as for a pinned node that fails (`why` says
    so).
    """
    started = time.perf_counter()
    spec = task.spec
    deadline = Deadline(spec.search.within)
    recoded: Recoded | None = None
    full: dict[str, Any] | None = None
    begun: Node | None = None
    settled = spec.pinned is not None or stated is not None
    of_map = (recoding or spec.search.recoding) == "multidimensional" and not settled
    # A map needs no lattice: where it is large, the splits begin at its top alone.
    searched = not settled and not (of_map and (deadline.limited or len(task.lattice) > MOST_BEFORE_A_MAP))
    if searched:
        check_searchable(task)
    if all_nodes:
        check_listed(task, "`--nodes all`")
    if not settled or all_nodes:
        task.materialize_locally()
    task.warnings += repeated_people(task.spec, task.source.session)
    metrics = Metrics(task)
    nodes = None

    def tally(stage: Stage) -> Pace | None:
        return None if progress is None else Pace(stage, progress, lambda: task.source.frequency_sets.rows_read)

    minimal: list[Node] = []
    outcome: Outcome | None = None
    chosen: Assessment | None = None
    why = ""
    if spec.pinned is not None:
        chosen = task.assess(pinned_node(task, spec.pinned))
        why = "the node is pinned in the spec: it was checked, not searched"
        if not chosen.satisfied:
            why = f"the pinned node {list(chosen.node)} fails {failed(chosen)}"
    elif stated is not None:
        recoded = named(task, stated, tally("boxes"))
        chosen = recoded.assessment
        why = f"the recoding map of version {spec.map_version} is named in the spec: it was checked, not searched"
        if not chosen.satisfied:
            why = f"the recoding map of version {spec.map_version}, over this data, fails {failed(chosen)}"
    elif searched:
        by_sizes = spec.search.choose_from == "sizes"
        outcome, best = _node_of_lattice(task, strategy or spec.search.strategy, tally, deadline, best_only=best_only)
        minimal, why = outcome.minimal, outcome.why
        if best is not None:
            chosen = task.assess(best)
            # By sizes the splits begin at the node whether or not it satisfies all models: which map it is must not
            # tell that.
            begun = best if chosen.satisfied or by_sizes else None
            if not chosen.satisfied:
                why = f"the node {list(best)}, chosen by block sizes alone, fails {failed(chosen)}"
    if of_map:
        if chosen is not None and chosen.satisfied:
            figures = metrics_json(metrics.of(chosen))
            full = {"levels": list(chosen.node), "suppressed": chosen.suppressed, "metrics": figures}
        recoded = specialized(task, begun, lambda: tally("boxes"), deadline)
        chosen, why = verdict_of(recoded, searched=searched)
    if all_nodes:
        nodes, pace = [], tally("nodes")
        for node in task.iter_nodes():
            nodes.append(node_json(task, metrics, node))
            if pace is not None:
                pace(len(nodes), len(task.lattice) - len(nodes), 0.0)
    failing = None
    if chosen is not None and not chosen.satisfied:
        chosen, failing = None, chosen
    chosen_metrics: dict[str, Any] = {}
    if chosen is not None:
        chosen_metrics = (
            metrics.of(chosen) if recoded is None else recoded.metrics(metrics.names(spec.search.choose_by))
        )
    choice = "pinned" if settled else spec.search.choose_from
    return SearchResult(
        task,
        outcome,
        minimal,
        chosen,
        chosen_metrics,
        choice,
        task.statements,
        time.perf_counter() - started,
        why,
        nodes,
        recoded if chosen is not None else None,
        full,
        begun,
        failing,
        not deadline.cut and (outcome is None or outcome.optimality != "within"),
    )


def _node_of_lattice(
    task: Task, strategy: str, tally: Callable[[Stage], Pace | None], deadline: Deadline, *, best_only: bool
) -> tuple[Outcome, Node | None]:
    """What a search of the lattice finds, and the node that it chooses; None where none satisfies."""
    by, by_sizes = task.spec.search.choose_by, task.spec.search.choose_from == "sizes"
    evaluator = BySizes(task, task.sizes_pass, task.max_concurrency) if by_sizes else task
    ranked = Metrics(task, by_sizes=by_sizes)
    whole = not deadline.limited or len(task.lattice) <= MOST_DECIDED
    rule = ranked.best_only(by) if best_only and strategy == "chains" and whole else None
    if deadline.limited:
        outcome = search_within(
            evaluator,
            deadline,
            promise=lambda node: ranked.signed(node, by, known=True),
            measure=lambda node: ranked.signed(node, by),
            bounded=by in MARGINAL,
            minimal_best=metric_named(by).grows and not task.budget,
            strategy=strategy,
            tally=tally("search" if whole else "walk"),
            best_only=rule,
        )
    else:
        outcome = search(evaluator, strategy=strategy, tally=tally("search"), best_only=rule)
    if outcome.optimality == "within" or outcome.best is not None:
        return outcome, outcome.best
    assert outcome.satisfied is not None
    if not outcome.satisfied.any():
        return outcome, None
    suppression = task.budget > 0 or rule is not None
    among = candidates(outcome, by, suppression=suppression, best=ranked.bounds(by) if suppression else None)
    rank, bound = (lambda node: ranked.rank(node, by)), (lambda node: ranked.bound(node, by))
    return outcome, choose(among, rank, by, bound, tally("choice"), deadline)


def verdict_of(recoded: Recoded | None, *, searched: bool) -> tuple[Assessment | None, str]:
    """The verdict over the boxes of a map, and where it comes from in words. searched: whether there was a search for
    a node, too."""
    if recoded is None and not searched:
        return None, "the most general labels do not satisfy the spec: there is no map"
    if recoded is None:
        return None, "neither the most general labels nor a node of the lattice satisfies the spec: there is no map"
    assessment = recoded.assessment
    if not assessment.satisfied:
        return assessment, f"the map, whose cuts were chosen by block sizes alone, fails {failed(assessment)}"
    begun = "the most general labels" if recoded.start == "top" else "the chosen full-domain node"
    ended = "No group can be split further. Another map may still lose less"
    if not recoded.specialized.complete:
        ended = "The given time was over; further splits may leave parts that all pass"
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
    return ", ".join(names) or "the privacy models within the suppression limit"


def refusal(result: SearchResult) -> Refused:
    """Why nothing can be published, in words for a person: how far the top node is from what is asked."""
    task = result.task
    if result.choice == "pinned" or (result.choice != "minimal" and result.minimal):
        return Refused(result.why + _instead_of_it(result))
    top = task.assess(task.lattice.top)
    if top.satisfied:
        return Refused(result.why + _instead_of_it(result))
    general = "the most general node"
    if task.lattice.top != task.source.frequency_sets.lattice.top:
        general += " within `max`"
    reasons = []
    for requirement, verdict in zip(task.spec.privacy, top.tightest, strict=True):
        if not verdict.holds:
            reached = ", ".join(f"{v.parameter} {_short(v.value)}" for v in verdict.values)
            limits = ", ".join(f"{k} {_short(v)}" for k, v in parameters_of(requirement.model).items() if v is not None)
            reasons.append(f"{verdict.model} asks {limits}; {general} reaches {reached}")
    if top.has_value_of_all:
        reasons.append(f"in {general} there is {HELD_BY_ALL}")
    proved = result.outcome is None or result.outcome.optimality != "within" or task.monotone
    detail = "; ".join(reasons) or f"even {general} has too many rows to suppress"
    kept = in_the_way(task)
    lines = _passing(task.spec, zip(task.spec.privacy, top.tightest, strict=True))
    instead = f"Ask for less{f' ({lines} would pass)' if lines else ''}, or coarsen the sensitive attribute"
    if top.has_value_of_all:
        instead = "Leave the rows with a value that everybody has out, in a view of the source"
    if kept:
        are, it = ("is", "it") if len(kept) == 1 else ("are", "them")
        instead = f"`max` of {' and of '.join(kept)} {are} in the way: raise {it}, or ask for less"
    nothing = "no node satisfies the spec" if proved else "no node that satisfies the spec was come to in time"
    return Refused(f"{nothing}: {detail}. {instead}")


def _instead_of_it(result: SearchResult) -> str:
    """What to do where people with several rows all hold a value in a block of what was pinned or chosen by sizes."""
    if result.failing is None or not result.failing.has_value_of_all:
        return ""
    known = f": in some blocks there is {HELD_BY_ALL}, so that being in such a block reveals it"
    if result.choice == "sizes":
        return f"{known}. Write `search: {{choose_from: minimal}}`, which takes no such blocks, or ask for a larger k"
    if result.task.spec.map_version is not None:
        return f"{known}. Leave `search.node` out, so that a map without such blocks is searched for"
    return f"{known}. Pin a coarser node, or leave `search.node` out"


def _passing(spec: Spec, verdicts: Iterable[tuple[Requirement, Tightest]]) -> str:
    """The requirements that fail, as lines of the spec that ask for what is reached; empty where one has none."""
    lines = []
    for requirement, verdict in verdicts:
        if verdict.holds:
            continue
        bound, reached = requirement.model.about.bounds[0], verdict.values[0]
        number = _rounded(reached.value, bound.stricter)
        more = [f.name for f in fields(requirement.model) if getattr(requirement.model, f.name) != f.default]
        if len(verdict.values) > 1 or not reached.attained or number is None or more != [bound.parameter]:
            return ""
        try:
            replace(requirement.model, **{bound.parameter: int(number) if number.denominator == 1 else number})
        except ParameterError:
            return ""
        names = ", ".join(requirement.sensitive)
        of = f", sensitive: {names if len(requirement.sensitive) == 1 else f'[{names}]'}" if spec.sensitives[1:] else ""
        lines.append(f"`- {verdict.model}: {{{bound.parameter}: {float(number):.12g}{of if names else ''}}}`")
    return " and ".join(lines)


def _rounded(value: Any, stricter: str) -> Fraction | None:
    """What is reached, in thousandths that are reached, too; None where it is no number that can be asked for."""
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
