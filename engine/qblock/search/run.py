"""One search from a spec to an answer: opens the warehouse, decides the lattice, chooses a node."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from qblock.blocks import Floats
from qblock.engines.driver_errors import drivers_translated
from qblock.engines.from_spec import warehouse_of
from qblock.engines.local import local_warehouse
from qblock.engines.registry import ENGINES
from qblock.engines.session import Session, Warehouse
from qblock.errors import values_shown
from qblock.lattice import Lattice, Node
from qblock.search.assessment import metrics_json
from qblock.search.lattice import Outcome
from qblock.search.nodes import MOST_BEFORE_A_MAP, check_listed, check_searchable, pinned_node
from qblock.search.progress import Deadline, Pace, Progress, Stage
from qblock.search.result import SearchResult, failed, node_json, verdict_of
from qblock.search.strategies import MOST_DECIDED, search, search_within
from qblock.search.task import Task
from qblock.search.utility import MARGINAL, Metrics, candidates, choose, metric_named
from qblock.source import Admitted, SourceTable, open_recoded, open_source
from qblock.source.columns import repeated_people
from qblock.source.open import local_frequency_sets, worth_moving
from qblock.spec import Spec
from qblock.spec.sections import Box

if TYPE_CHECKING:
    from qblock.search.boxes.recoded import Recoded

LARGER = (2, 4, 8)
"""Least sizes of boxes that are tried where a map chosen by sizes fails, in what was asked."""
Tallies = Callable[[Stage], Pace | None]
"""Gives what is told after each question of a stage."""


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
    warehouse = warehouse or warehouse_of(spec, asks_rights=True)
    with open_snapshot(spec, name_values=name_values, warehouse=warehouse) as session:
        source = open_source(spec, session, name_values=name_values, published=published, relation=relation)
        with task_over(source) as task:
            yield task


@contextmanager
def open_snapshot(spec: Spec, *, name_values: bool = True, warehouse: Warehouse | None = None) -> Iterator[Session]:
    """Open the warehouse of a spec in one read-only session, whose reads all see the same state. name_values: whether
    errors may show values; warehouse: of the source, where it is not what the spec says; closed at the end too."""
    with drivers_translated(), values_shown(name_values), ExitStack() as stack:
        warehouse = warehouse or warehouse_of(spec)
        stack.callback(warehouse.close)
        yield stack.enter_context(warehouse.snapshot())


@contextmanager
def task_over(source: SourceTable) -> Iterator[Task]:
    """The questions of a spec about an open source; frequency sets are rolled up where `search.roll_up` says."""
    search, embedded = source.spec.search, ENGINES[source.session.engine].adapter.embedded
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
    from qblock.search.boxes.recoded import check_same  # a map's alone

    spec, session = recoding.task.spec, task.source.session
    session.clear()
    with task_over(open_recoded(spec, session, recoding.stated, relation=relation)) as again:
        check_same(again.assess(again.lattice.bottom), recoding)
        yield again


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
    spec, deadline = task.spec, Deadline(task.spec.search.within)
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
    task.warnings += repeated_people(spec, task.source.session)
    metrics = Metrics(task)

    def tally(stage: Stage) -> Pace | None:
        return None if progress is None else Pace(stage, progress, lambda: task.source.frequency_sets.rows_read)

    result = SearchResult(task, "pinned" if settled else spec.search.choose_from)
    if settled:
        result = _with_pinned(result, stated, tally)
    if searched:
        result = _with_node(result, strategy or spec.search.strategy, tally, deadline, best_only=best_only)
    if of_map:
        result = _with_map(result, metrics, tally, deadline)
    if of_map and result.choice == "sizes" and result.chosen is not None and not result.chosen.satisfied:
        how = strategy or spec.search.strategy
        result = replace(result, remedy=_larger_boxes(task, how, deadline, searched=searched))
    if all_nodes:
        nodes, pace = [], tally("nodes")
        for node in task.iter_nodes():
            nodes.append(node_json(task, metrics, node))
            if pace is not None:
                pace(len(nodes), len(task.lattice) - len(nodes), 0.0)
        result = replace(result, nodes=nodes)
    chosen = result.chosen
    if chosen is not None and not chosen.satisfied:
        result = replace(result, chosen=None, failing=chosen, recoded=None)
    elif chosen is not None and result.recoded is not None:
        result = replace(result, metrics=result.recoded.metrics(metrics.names(spec.search.choose_by)))
    elif chosen is not None:
        result = replace(result, metrics=metrics.of(chosen))
    cut = deadline.cut or (result.outcome is not None and result.outcome.optimality == "within")
    seconds = time.perf_counter() - started
    return replace(result, queries=task.statements, seconds=seconds, complete=not cut)


def _with_pinned(result: SearchResult, stated: Mapping[str, Any] | None, tally: Tallies) -> SearchResult:
    """With the verdict of the node or the map that the spec names, which is checked and not searched."""
    task, spec = result.task, result.task.spec
    if spec.pinned is not None:
        chosen = task.assess(pinned_node(task, spec.pinned))
        why = "the node was checked, not searched: the spec pins it"
        if not chosen.satisfied:
            why = f"the pinned node {list(chosen.node)} fails {failed(chosen)}"
        return replace(result, chosen=chosen, why=why)
    from qblock.search.boxes.recoded import count_map  # a map's alone

    assert stated is not None
    recoded = count_map(task, stated, tally("boxes"))
    why = f"the recoding map of version {spec.map_version} was checked, not searched: the spec names it"
    if not recoded.assessment.satisfied:
        why = f"the recoding map of version {spec.map_version}, over this data, fails {failed(recoded.assessment)}"
    return replace(result, chosen=recoded.assessment, why=why, recoded=recoded)


def _with_node(
    result: SearchResult, strategy: str, tally: Tallies, deadline: Deadline, *, best_only: bool
) -> SearchResult:
    """With the outcome of a search of the lattice, and the node that is chosen."""
    task = result.task
    outcome, best = _node_of_lattice(task, strategy, tally, deadline, best_only=best_only)
    if best is None:
        return replace(result, outcome=outcome, why=outcome.why)
    chosen, why = task.assess(best), outcome.why
    if not chosen.satisfied:
        why = f"the node {list(best)}, chosen by block sizes alone, fails {failed(chosen)}"
    # By sizes the splits begin at the node whether or not it satisfies all models: which map it is must not tell that.
    begun = best if chosen.satisfied or result.choice == "sizes" else None
    return replace(result, outcome=outcome, chosen=chosen, why=why, begun=begun)


def _with_map(result: SearchResult, metrics: Metrics, tally: Tallies, deadline: Deadline) -> SearchResult:
    """With the map whose splits begin at the top or at the chosen node, in place of that node."""
    from qblock.search.boxes.recoded import search_map  # a map's alone

    node, full = result.chosen, None
    if node is not None and node.satisfied:
        full = {"levels": list(node.node), "suppressed": node.suppressed, "metrics": metrics_json(metrics.of(node))}
    recoded = search_map(result.task, result.begun, lambda: tally("boxes"), deadline)
    chosen, why = verdict_of(recoded, searched=result.outcome is not None)
    return replace(result, chosen=chosen, why=why, recoded=recoded, full_domain=full)


def _larger_boxes(task: Task, strategy: str, deadline: Deadline, *, searched: bool) -> str:
    """What to write where a map chosen by sizes fails: a least size of boxes with which one was seen to pass."""
    counted = "people" if task.spec.bundles else "rows"
    least = task.least
    for times in LARGER if not deadline.limited else ():
        least = times * task.least
        box = replace(task.spec, search=replace(task.spec.search, box=Box(least=least)))
        result = SearchResult(task.asking(box), "sizes")
        if searched:
            result = _with_node(result, strategy, lambda _: None, deadline, best_only=True)
        result = _with_map(result, Metrics(result.task), lambda _: None, deadline)
        if result.chosen is not None and result.chosen.satisfied:
            return f"With boxes of at least {least} {counted} it passes: write `search: {{box: {{least: {least}}}}}`"
    return (
        f"Boxes of at least {least} {counted} fail, too: ask for less, or write `search: {{choose_from: minimal}}`, "
        "whose splits look at sensitive values"
    )


def _node_of_lattice(
    task: Task, strategy: str, tally: Tallies, deadline: Deadline, *, best_only: bool
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
