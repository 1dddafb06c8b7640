"""Reads what only whoever runs the job may see: the lattice of the source, the ledger, rights, a verification."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from operator import le
from typing import Any

from qblock.errors import QblockError, Refused
from qblock.lattice import Lattice, Node
from qblock.ledger.events import PUBLISHING, margin
from qblock.ledger.history import history
from qblock.ledger.stores import store_of
from qblock.metrics import BY_NAME as METRICS
from qblock.models import BY_NAME
from qblock.release.grants import grants
from qblock.release.taken import reasons_of, taken_of
from qblock.release.verify import verify
from qblock.report.epsilon import weighed
from qblock.report.maps import KeptMap, asks_map, kept_map, map_in_words, read_maps
from qblock.report.risks import before_of
from qblock.report.utility import Released, read_utility
from qblock.report.what_if import MOST_SEARCHED, Candidates, measure_of, searched, what_if
from qblock.report.workload import read_workload
from qblock.results.base import Guarantee
from qblock.results.check import figures_in_words, in_words
from qblock.results.release import History, MarginTrend
from qblock.results.report import (
    BeliefShown,
    GuaranteeMargin,
    Internal,
    LatticeShown,
    MapsShown,
    NodeShown,
    RightShown,
    RunShown,
    TakenAtVersion,
    TakenShown,
)
from qblock.results.search import SearchedNode
from qblock.search.beliefs import BayesAdversary, beliefs_at
from qblock.search.boxes.recoded import Recoded
from qblock.search.nodes import too_large
from qblock.search.progress import Progress
from qblock.search.result import node_json
from qblock.search.run import open_task, run_search
from qblock.search.task import Task
from qblock.search.utility import Metrics
from qblock.source.in_words import levels_in_words
from qblock.spec import Spec
from qblock.spec.digest import canonical, spec_digest

MOST_NODES = 2500
"""Of a lattice that is shown whole."""
MOST_NEAR = 200
"""Of a larger one: the chosen and the minimal nodes, and so many with those one level coarser."""
FIGURES = ("breach", "positive", "negative", "rise", "fall", "moved")
"""Of beliefs, those that have a sentence."""
SUPPRESSED = (
    "the lattice has more than {:,} nodes, and each question takes a search of its own, since rows may be suppressed. "
    "Change the spec and search"
)
SETTLED = (
    "the spec names its node or chooses it by block sizes, and each question takes a search of its own, since rows "
    "may be suppressed. Change the spec and search"
)
OF_MAP = "the spec asks for a recoding map, and the page has maps instead of nodes"
TOO_MANY = "the lattice has more than {:,} nodes. Change the spec and search"


def read_internal(
    spec: Spec,
    *,
    prior: str | None = None,
    progress: Progress | None = None,
    version: int | None = None,
    candidate: bool = False,
    released: Released | None = None,
) -> Internal:
    """Searches the lattice of the source as it is now, reads the ledger, asks what rights are held, and verifies.

    version: that is reported, by default the one that readers see. prior: a population, as `audit --prior` takes it.
    candidate: of a map, about the one that the next run takes instead of the one that readers see. released:
    what is published now, with which the source is compared. Raises InputError for a population that is wrong.
    """
    adversary = None if prior is None else BayesAdversary.of("bayes", prior, {}, "--")
    past, kept = History.model_validate(history(spec)), kept_map(spec, candidate=candidate)
    with open_task(spec, name_values=False) as task:
        of_map = asks_map(spec) if kept.stated is None else kept.node is None
        whole = len(task.lattice) <= MOST_NODES and not of_map
        said = _said(task, whole, progress)
        words = levels_in_words(spec, task.source.hierarchies)
        nodes = None if said.get("nodes") is None else [SearchedNode.model_validate(node) for node in said["nodes"]]
        lattice = _lattice(task, said, nodes, words, whole, kept.node or _published(past, task))
        why_not = OF_MAP if of_map else _why_not(task)
        questions = None
        if why_not is None and nodes is not None:
            names, seen = list(words), list(words.values())
            candidates = Candidates(nodes, names, seen, lattice.metric, lattice.more_is_better, lattice.chosen)
            questions = tuple(searched(task, candidates) if task.budget else what_if(candidates))
        before = before_of(task)
        maps = read_maps(task, kept, progress) if of_map else None
        map_shown, node = None if maps is None else maps.recoded, lattice.published or lattice.chosen
        workload = read_workload(task, node, map_shown)
        beliefs = tuple(_beliefs(task, node, adversary, map_shown))
        utility = None if released is None else read_utility(task, released)
        in_epsilon = weighed(task, lattice, map_shown)  # nothing else can be asked of the source afterwards
    return Internal(
        candidate=" ".join(_candidates(said, None if maps is None else maps.shown, kept)),
        binding=_binding(past.margin_trend, past.current),
        lattice=lattice,
        what_if=questions,
        why_not=why_not,
        epsilon=in_epsilon.epsilon,
        curves=in_epsilon.curves,
        granted=in_epsilon.granted,
        beliefs=beliefs,
        workload=workload,
        maps=None if maps is None else maps.shown,
        utility=utility,
        runs=tuple(_runs(past)),
        margins=tuple(_margins(past.margin_trend)),
        rights=tuple(_rights(spec)),
        problems=_problems(spec) if past.current is not None else None,
        spec=json.dumps(json.loads(canonical(spec)), indent=2, ensure_ascii=False),
        spec_digest=spec_digest(spec),
        head=past.ledger_head,
        taken=_taken(spec, past, version or past.current),
        before=before,
    )


def _taken(spec: Spec, past: History, version: int | None) -> TakenAtVersion | None:
    """What the ledger recorded with a version; nothing is counted again."""
    event = next((e for e in reversed(past.events) if e.state in PUBLISHING and e.version == version), None)
    if event is None or event.version is None:
        return None
    recorded = taken_of(event.detail, reasons_of(store_of(spec), event.spec_digest))
    shown = tuple(
        TakenShown(
            check=taken.check,
            columns=taken.columns,
            in_words=in_words(taken.check, taken.columns),
            accepted=taken.accepted,
            because=taken.because,
            figure=figures_in_words(taken.check, taken.columns, taken.figure),
        )
        for taken in recorded
    )
    return TakenAtVersion(
        version=event.version, at=event.recorded_at[:19], spec_digest=event.spec_digest, findings=shown
    )


def _said(task: Task, whole: bool, progress: Progress | None) -> dict[str, Any]:
    """The answer of a search for a node, with all nodes where the lattice is shown whole; of a lattice that is too
    large for a search nothing but its size."""
    if too_large(task) is None:
        return run_search(task, progress=progress, all_nodes=whole, recoding="full_domain").to_json()
    return {"nodes_total": len(task.lattice), "chosen": None, "satisfying": None, "minimal": None}


def _why_not(task: Task) -> str | None:
    """Why other questions are not worked out; None where they are."""
    if len(task.lattice) > MOST_NODES:
        return TOO_MANY.format(MOST_NODES)
    if not task.budget:
        return None
    if task.spec.search.node is not None or task.spec.search.choose_from == "sizes":
        return SETTLED
    return SUPPRESSED.format(MOST_SEARCHED) if len(task.lattice) > MOST_SEARCHED else None


def _beliefs(
    task: Task, node: Node | None, adversary: BayesAdversary | None, of_map: Recoded | None
) -> Iterator[BeliefShown]:
    if adversary is None or (node is None and of_map is None):
        return
    for belief in beliefs_at(task, node or task.lattice.bottom, adversary, of_map):
        figures = [belief[name] for name in FIGURES if belief[name] is not None]
        yield BeliefShown(
            sensitive=belief["sensitive"],
            prior=str(belief["prior"]),
            levels=node if of_map is None else None,
            people=belief["people"],
            breach=belief["breach"]["people"],
            positive=belief["positive"]["people"],
            negative=belief["negative"]["people"],
            moved=belief["moved"]["people"],
            sentences=tuple(figure["sentence"] for figure in figures),
        )


def _candidates(said: Mapping[str, Any], maps: MapsShown | None, kept: KeptMap) -> Iterator[str]:
    """What a search finds now, and why the next run would not take it."""
    yield _candidate(said) if maps is None or not maps.frontier else map_in_words(maps)
    if kept.why_not is not None:
        yield f"{kept.why_not[:1].upper()}{kept.why_not[1:]}."


def _candidate(said: Mapping[str, Any]) -> str:
    if said["minimal"] is None:
        return f"The lattice of full-domain recoding has {said['nodes_total']:,} nodes, too many for a search."
    if said["chosen"] is None:
        return "No node of full-domain recoding satisfies the spec."
    number = "Some" if said["satisfying"] is None else f"{said['satisfying']:,}"
    return (
        f"{number} of {said['nodes_total']:,} nodes of full-domain recoding satisfy the spec on the source as it is "
        f"now; {len(said['minimal']):,} of them are minimal."
    )


def _published(past: History, task: Task) -> tuple[int, ...] | None:
    """The node of the version that readers see, if the spec still has it."""
    columns, heights = tuple(task.spec.quasi_identifiers), task.lattice.heights
    for event in reversed(past.events):
        if event.version == past.current and event.node:
            known = event.quasi_identifiers == columns and all(map(le, event.node, heights))
            return event.node if known else None
    return None


def _lattice(
    task: Task,
    said: Mapping[str, Any],
    nodes: Sequence[SearchedNode] | None,
    words: Mapping[str, tuple[str, ...]],
    whole: bool,
    published: tuple[int, ...] | None,
) -> LatticeShown:
    metric = task.spec.search.choose_by
    minimal = tuple(map(tuple, said["minimal"] or ()))
    chosen = None if said["chosen"] is None else tuple(said["chosen"]["levels"])
    if whole and nodes is not None:
        listed = nodes
    else:
        metrics = Metrics(task)
        first = list(dict.fromkeys([*([] if chosen is None else [chosen]), *minimal]))
        levels = near(task.lattice, first, max(MOST_NEAR, len(first)))
        looked = (SearchedNode.model_validate(node_json(task, metrics, node)) for node in levels)
        listed = [node for node in looked if node.satisfied]
    shown = tuple(_node(node, metric) for node in listed)
    more_is_better = METRICS[metric].better == "larger"
    return LatticeShown(
        words=tuple(words.items()),
        total=said["nodes_total"],
        whole=whole,
        nodes=shown,
        minimal=minimal,
        frontier=frontier(shown, more_is_better=more_is_better),
        chosen=chosen,
        published=published,
        metric=metric,
        more_is_better=more_is_better,
    )


def _node(node: SearchedNode, metric: str) -> NodeShown:
    tightest = tuple(_tightest(entry) for entry in node.tightest)
    shares = [share for entry in node.tightest for share in _shares(entry)]
    return NodeShown(
        levels=node.levels,
        satisfied=node.satisfied,
        suppressed=node.suppressed,
        tightest=tightest,
        measure=measure_of(node.metrics, metric),
        margin=min(shares, default=None),
    )


def _tightest(entry: Guarantee) -> str:
    about = f" ({', '.join(entry.sensitive)})" if entry.sensitive else ""
    values = ", ".join(f"{figure.parameter} {_figure(figure.value)}" for figure in entry.values)
    return f"{entry.model}{about} {values}{'' if entry.holds else ': fails'}"


def _figure(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _runs(past: History) -> Iterator[RunShown]:
    """The last event of each run, newest first, with what the run gave as reasons."""
    for run in reversed(past.runs):
        last = run.outcome
        boxes = last.detail.get("boxes")
        node = ",".join(map(str, last.node)) if last.node else f"map of {boxes:,} boxes" if boxes else ""
        how = "; ".join(part for part in (node, last.choice or "") if part)
        yield RunShown(
            at=last.recorded_at[:19],
            version=last.version,
            state=last.state,
            rows=last.rows_published,
            how=how,
            why=run.reasons,
        )


def _margins(trend: Sequence[MarginTrend]) -> Iterator[GuaranteeMargin]:
    for entry in trend:
        requested, satisfied = (f"{entry.parameter} = {getattr(entry, of)}" for of in ("asked", "satisfied"))
        about = {name: getattr(entry, name) for name in ("version", "model", "sensitive")}
        yield GuaranteeMargin(**about, asked=requested, satisfied=satisfied, margin=entry.margin)


def _binding(trend: Sequence[MarginTrend], current: int | None) -> str | None:
    known = [entry for entry in trend if entry.version == current and entry.margin is not None]
    if not known:
        return None
    least = min(known, key=lambda entry: entry.margin or 0)
    about = f" of {least.sensitive}" if least.sensitive else ""
    requested, satisfied = (f"{least.parameter} {getattr(least, of)}" for of in ("asked", "satisfied"))
    return f"{least.model}{about} (asked {requested}, satisfied {satisfied})"


def _rights(spec: Spec) -> Iterator[RightShown]:
    rights = grants(spec)
    for right in rights["grants"]:
        whose = f"{right['for']} {right['role']}"
        yield RightShown(whose=whose, what=right["statement"], why=right["why"], held=right["held"])
    for right in rights["files"]:
        what = f"{right['access']} {right['path']}"
        yield RightShown(whose=right["for"], what=what, why=right["why"], held=None)


def _problems(spec: Spec) -> tuple[str, ...]:
    """What a verification finds."""
    try:
        return tuple(verify(spec).problems)
    except Refused as error:
        return (str(error),)
    except QblockError as error:
        return (f"the verification ended without a result: {error}",)


def _shares(entry: Guarantee) -> Iterator[float]:
    """The distances between asked and satisfied, as shares of what is asked, as the ledger has them."""
    satisfied = {figure.parameter: figure.value for figure in entry.values}
    for bound in BY_NAME[entry.model].about.bounds:
        requested, value = entry.asked.get(bound.parameter), satisfied.get(bound.parameter)
        if isinstance(requested, int | float) and isinstance(value, int | float):
            share = margin(Fraction(requested), value, larger=bound.stricter == "larger")
            if share is not None:
                yield share


def frontier(nodes: Sequence[NodeShown], *, more_is_better: bool) -> tuple[Node, ...]:
    """The satisfying nodes that no other one beats: more margin and no worse a measure, or a better measure and no less
    margin. The best measure first; of equal ones the first."""
    sign = -1 if more_is_better else 1
    known = [
        (sign * node.measure, -node.margin, node.levels)
        for node in nodes
        if node.satisfied and node.measure is not None and node.margin is not None
    ]
    unbeaten: list[Node] = []
    most: float | None = None
    for _, less, levels in sorted(known):
        if most is None or less < most:
            unbeaten.append(levels)
            most = less
    return tuple(unbeaten)


def near(lattice: Lattice, first: Sequence[Node], most: int) -> list[Node]:
    """These nodes and those one level coarser, so many."""
    nodes = dict.fromkeys(first)
    for node in first:
        nodes |= dict.fromkeys(lattice.parents(node)) if len(nodes) < most else {}
    return list(nodes)[:most]
