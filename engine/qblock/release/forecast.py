"""What `plan` and `search` expect of the next runs.

How long newcomers would wait at a node is computed from how many people have which value there in the table as it is,
or, once a version was published, from what the release shows and how many came, left and changed in earlier runs.
Nobody who waits has a part in it.

Of a node with more than two dozen blocks the sizes of as many are computed, spread over how large blocks are. Each
combination of changed attributes is taken to be as frequent as another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from qblock.blocks import Ints
from qblock.errors import InputError, QblockError
from qblock.lattice import Node
from qblock.ledger.events import RecordedEvent
from qblock.ledger.store import Store
from qblock.ledger.stores import has_store, store_of
from qblock.search.lattice import minimal_mask, nodes_of
from qblock.search.result import SearchResult
from qblock.search.run import BySizes, recoded
from qblock.search.strategies import search
from qblock.search.task import Task
from qblock.search.utility import Metrics, choose
from qblock.search.utility import candidates as sure_candidates
from qblock.spec import Spec
from qblock.versions.batching.cohort import Churn, Estimate, Together, estimate, size_for
from qblock.versions.batching.rules import Rules
from qblock.versions.crosswalk import Crosswalk, has_crosswalk, open_crosswalk
from qblock.versions.pending.cohorts import least_box, together
from qblock.versions.pending.decision import rules_of, shared, sizes_of
from qblock.versions.pending.state import counts_by_block, read_state
from qblock.versions.recorded import published_node, recorded
from qblock.versions.texts import split_text

MOST_WAIT = 26
MOST_LAG = 0.05
MOST_NEVER = 0.001
"""A node moves where nobody waits for more runs, where no larger share of the rows lags, and where no larger share of
the newcomers has a block without a cohort."""
TIMES = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0)
"""How large the smallest block of a candidate is at least, in what closes a cohort in time."""
MINIMAL = 4
"""Minimal nodes that are compared, the one with most blocks first."""
SAMPLED = 24
"""Blocks of a node whose cohorts are computed; one between has that of the next one in size."""
MOST_COUNTS = 20_000_000
"""Counts of a node; one with more has so many blocks that it hardly moves, and is left out."""
NOT_LAGGING = (
    "--churn: versions of this release do not lag behind the source, so that nobody waits; write `entity: COLUMN` and "
    "leave `on_refusal` out"
)
RUNS = 52
"""Runs of an estimate."""
SETTLED = "the node that the release is pinned to, or has"


@dataclass(frozen=True)
class Expected:
    """A node, and what is expected of it. blocks: how many it has."""

    node: Node
    blocks: int
    estimate: Estimate

    @property
    def moves(self) -> bool:
        """Whether a job at this node goes on under this churn."""
        expected = self.estimate
        return expected.never <= MOST_NEVER and expected.worst_wait <= MOST_WAIT and expected.lag <= MOST_LAG

    def to_json(self) -> dict[str, Any]:
        return {"node": list(self.node), "blocks": self.blocks, **vars(self.estimate)}


@dataclass(frozen=True)
class Forecast:
    """nodes: those compared, with fewer and fewer blocks; recommended: the one to choose; why: in words."""

    churn: Churn
    nodes: tuple[Expected, ...]
    recommended: Node
    why: str

    def to_json(self) -> dict[str, Any]:
        """What docs/json.md describes."""
        return {
            "churn": vars(self.churn),
            "nodes": [node.to_json() for node in self.nodes],
            "recommended": list(self.recommended),
            "why": self.why,
        }


@dataclass(frozen=True)
class PublishedState:
    """A release that has versions. node: of all of them; forecast: where the state that they show is kept, and a churn
    is known."""

    node: Node
    forecast: Forecast | None = None


def churn_of(spec: Spec, share: float | None) -> Churn | None:
    """The churn that is asked about: as many come as leave, and a tenth as many values change.

    Raises InputError for a share that is none, and where versions do not lag.
    """
    if share is None:
        return None
    if not 0 < share < 1:
        raise InputError(f"--churn {share:g}: give the share of the people who come and leave in a run, such as 0.01")
    if not spec.lags:
        raise InputError(NOT_LAGGING)
    return Churn(share, share, share / 10)


def forecasts(spec: Spec) -> bool:
    """Whether there is a forecast of nodes or boxes: of a map with cohorts `frontier` says what a year comes to, where
    people have one row each."""
    return spec.search.recoding == "full_domain" or not _of_frontier(spec)


def _of_frontier(spec: Spec) -> bool:
    """Whether `frontier` simulates what later versions come to: there is no choice of nodes by then."""
    return spec.newcomers is not None and not spec.bundles


def forecast_of_search(result: SearchResult, churn: Churn | None, store: Store | None = None) -> Forecast | None:
    """The forecast for what a search found. churn: that is asked about; None: that of the runs so far; store: of the
    spec, if it is open.

    None where nothing is known: of no churn, or where no node satisfies the spec.
    """
    spec = result.task.spec
    before = published(spec, store, churn)
    if before is not None and before.forecast is not None:
        return before.forecast
    if churn is None or result.chosen is None or (before is not None and _of_frontier(spec)):
        return None
    if result.recoded is not None:
        if before is not None:
            return None
        with recoded(result.task, result.recoded) as task:
            again = replace(result, task=task)
            return of_task(again, churn, task.lattice.bottom)
    settled = before.node if before is not None else result.chosen.node if result.outcome is None else None
    return of_task(result, churn, settled)


def of_task(result: SearchResult, churn: Churn, settled: Node | None = None) -> Forecast | None:
    """The forecast for nodes of a table of which no version is kept. settled: the node that there is no choice of."""
    task = result.task
    spec, rules = task.spec, rules_of(task.spec, bool(task.spec.versions.audience))
    if settled is not None:
        nodes = [settled] if settled in task.lattice else []
    else:
        cohort = spec.cohort
        closing = max(2 * rules.k, 2) if cohort == "auto" else cohort
        nodes = candidates(result, closing / (churn.coming * MOST_WAIT))
    known: dict[Any, int | None] = {}
    compared = [
        expected for expected in (_of_node(task, node, rules, churn, known) for node in nodes) if expected is not None
    ]
    if not compared:
        return None
    compared.sort(key=lambda expected: (-expected.blocks, expected.node))
    if settled is not None:
        return Forecast(churn, tuple(compared), settled, SETTLED)
    return Forecast(churn, tuple(compared), *recommended(task, compared))


def candidates(result: SearchResult, enough: float) -> list[Node]:
    """At most a dozen nodes that satisfy the spec, without repetition. enough: rows of a block in which a cohort closes
    in time.

    Beside the chosen and minimal nodes the best by `choose_by` among those without blocks of fewer rows than some
    multiples of `enough`: a job goes on as its smallest blocks do.
    """
    task, outcome = result.task, result.outcome
    assert outcome is not None
    assert result.chosen is not None
    by = task.spec.search.choose_by
    metrics = Metrics(task, by_sizes=task.spec.search.choose_from == "sizes")
    nodes = [result.chosen.node, *sorted(outcome.minimal, key=lambda node: (-task.sizes(node).number, node))[:MINIMAL]]
    for times in TIMES if outcome.optimality != "within" else ():
        larger = search(BySizes(task, partial(_at_least, task, enough * times))).satisfied
        assert larger is not None
        assert outcome.satisfied is not None
        large = larger & outcome.satisfied
        if not large.any():
            break
        among = replace(outcome, satisfied=large, minimal=nodes_of(minimal_mask(large)))
        sure = sure_candidates(among, by, suppression=task.budget > 0, best=metrics.bounds(by))
        nodes.append(choose(sure, lambda n: metrics.rank(n, by), by, lambda n: metrics.bound(n, by)))
    return list(dict.fromkeys(nodes))


def _at_least(task: Task, least: float, node: Node) -> bool:
    """Whether the blocks of a node all have so many rows, but for those that may be suppressed."""
    sizes = task.sizes(node)
    small = sizes.size < least
    return int((sizes.size[small] * sizes.blocks[small]).sum()) <= task.budget


def attributes_of(spec: Spec) -> int:
    """How many values a version shows of a person beside the block."""
    return max(1, len(spec.sensitives) + len(spec.insensitives))


def recommended(task: Task, compared: Sequence[Expected]) -> tuple[Node, str]:
    """The node to choose among some, and why."""
    by = task.spec.search.choose_by
    moving = [expected.node for expected in compared if expected.moves]
    limits = f"waits of at most {MOST_WAIT} runs and a lag of at most {MOST_LAG:.0%} of the rows"
    if moving:
        metrics = Metrics(task, by_sizes=task.spec.search.choose_from == "sizes")
        best = choose(moving, lambda node: metrics.rank(node, by), by)
        return best, f"the best by {by} of the nodes with {limits}"
    least = min(compared, key=lambda expected: (expected.estimate.lag, expected.estimate.worst_wait, expected.node))
    return least.node, f"the least lag; no node has {limits}"


def _of_node(task: Task, node: Node, rules: Rules, churn: Churn, known: dict[Any, int | None]) -> Expected | None:
    """known: sizes of cohorts by counts."""
    spec, sets = task.spec, task.source.frequency_sets
    judged = task.counts(node)
    if judged.failing_rows > task.budget:
        return None
    names = tuple(task.source.sensitives)
    counted = sets.blocks(node, range(len(names)))
    blocks = len(counted[0])
    references = {name: task.source.sensitives[name].reference for name in names}
    if blocks * max([RUNS, *(len(r.domain) for r in references.values())]) > MOST_COUNTS:
        return None
    tables: list[Ints] = []
    for name, values in zip(names, counted, strict=False):
        table = np.zeros((blocks, len(references[name].domain)), dtype=np.int64)
        table[values.owner, values.value] = values.count
        tables.append(table)

    def size(block: int) -> int | None:
        columns = tuple(tuple(tables[names.index(name)][block].tolist()) for name in spec.sensitives)
        if columns not in known:
            known[columns] = size_for(spec, references, columns, rules.k)
        return known[columns]

    declared, closing = spec.cohort, _together(spec, rules)
    if closing is not None or declared != "auto":
        cohorts: list[int | None] = [None if declared == "auto" else declared] * blocks
    else:
        cohorts = _sampled(counted[0].rows, size)
    # Blocks that are suppressed get no newcomers.
    cohorts = [n if kept else None for n, kept in zip(cohorts, (~judged.failing).tolist(), strict=True)]
    counts, attributes = tables or [counted[0].rows[:, None]], attributes_of(spec)
    expected = estimate(
        counts, cohorts, churn, rules, attributes=attributes, leave=spec.versions.leave or 0, together=closing
    )
    return Expected(node, blocks, expected)


def _together(spec: Spec, rules: Rules) -> Together | None:
    """How newcomers close as one cohort, if they do; boxes that must seldom fail are taken to have twice the people."""
    cohorts = spec.newcomers
    return None if cohorts is None else together(cohorts, least_box(spec, cohorts, rules, lambda: 6 * rules.k))


def _sampled(rows: Ints, size: Callable[[int], int | None]) -> list[int | None]:
    """The sizes of cohorts of blocks of so many rows [B]."""
    order = np.argsort(rows, kind="stable")
    chosen = np.unique(np.linspace(0, len(order) - 1, min(SAMPLED, len(order))).round().astype(np.int64))
    of_chosen = [size(int(order[i])) for i in chosen]
    nearest = np.searchsorted((chosen[1:] + chosen[:-1]) / 2, np.arange(len(order)))
    sizes: list[int | None] = [None] * len(order)
    for store, block in enumerate(order.tolist()):
        sizes[block] = of_chosen[nearest[store]]
    return sizes


def published(spec: Spec, store: Store | None, churn: Churn | None) -> PublishedState | None:
    """What is kept of a release that lags; None before its first version, or where this login may not read it.

    store: of the spec, if it is open; churn: asked about; None: that of its runs so far.
    """
    if not spec.lags or not has_store(spec):
        return None
    store = store or store_of(spec)
    try:
        with store:
            if not store.exists or not has_crosswalk(store):
                return None
            with store.read() as reader:
                events = reader.history(spec.release)
            with open_crosswalk(store, read_only=True) as crosswalk:
                return _of_state(crosswalk, spec, events, churn)
    except QblockError:
        # A search does without, and a run of the job reports what is wrong.
        return None


def _of_state(
    crosswalk: Crosswalk, spec: Spec, events: Sequence[RecordedEvent], churn: Churn | None
) -> PublishedState | None:
    node, steady = published_node(crosswalk, spec), read_state(crosswalk, spec.release)
    if node is None or steady is None:
        return None if node is None else PublishedState(node)
    versions, state = recorded(crosswalk, spec.release), counts_by_block(crosswalk, spec.release)
    churn = churn or churn_so_far(events, sum(sum(counts.values()) for counts in state.values()))
    if churn is None or _of_frontier(spec):
        return PublishedState(steady.node)
    first = next(version for version in versions if version.key.version == steady.first)
    rules = rules_of(spec, shared(spec, versions))
    sizes, blocks = sizes_of(crosswalk, spec, steady, first, rules), sorted(state)
    values = {text: split_text(text) for counts in state.values() for text in counts}
    tables = []
    # Of a release without sensitive attributes the number of people alone.
    for column in range(max(1, len(steady.layout.sensitive))):
        named = {text: parts[column] if steady.layout.sensitive else None for text, parts in values.items()}
        code = {value: i for i, value in enumerate(sorted(set(named.values()), key=repr))}
        table = np.zeros((len(blocks), len(code)), dtype=np.int64)
        for row, block in enumerate(blocks):
            for text, n in state[block].items():
                table[row, code[named[text]]] += n
        tables.append(table)
    closing = None if shared(spec, versions) else _together(spec, rules)
    cohorts: list[int | None] = [None] * len(blocks)
    if closing is None:
        cohorts = _sampled(tables[0].sum(axis=1), lambda row: sizes(blocks[row]))
    cohorts = [None if block in steady.hidden else n for block, n in zip(blocks, cohorts, strict=True)]
    attributes = attributes_of(spec)
    expected = estimate(
        tables, cohorts, churn, rules, attributes=attributes, leave=spec.versions.leave or 0, together=closing
    )
    return PublishedState(
        steady.node, Forecast(churn, (Expected(steady.node, len(blocks), expected),), steady.node, SETTLED)
    )


def churn_so_far(events: Sequence[RecordedEvent], people: int) -> Churn | None:
    """The mean churn of the runs that a ledger has, as shares of some people; None before there is one, or where nobody
    came, left or changed."""
    runs = [e.detail or {} for e in events if e.state in ("published", "waiting")][1:]
    if not runs or not people:
        return None
    came, left, changed = (sum(int(run.get(key, 0)) for run in runs) for key in ("came", "left", "changed"))
    if not came + left + changed:
        return None
    return Churn(*(n / len(runs) / people for n in (came, left, changed)))
