"""The metrics of a task's nodes, for which no more counts are fetched than they need, and the choice by one of them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from qblock.blocks import Floats, Ints, Mask
from qblock.errors import InputError, Refused
from qblock.lattice import Node, height, up
from qblock.metrics import BY_NAME, METRICS, Leaves, Metric, Published, formulas
from qblock.metrics.formulas import Answers, Query
from qblock.search.assessment import Assessment
from qblock.search.lattice import SLACK, BestOnly, Outcome, Tally
from qblock.search.task import Task
from qblock.search.workload import workload_of

LEAF_ROWS = 2_000_000
"""Above this many rows of the leaf frequency set, the metrics that need all of it are computed only when asked for."""
ALL_LEAVES = ("leaf", "workload")
MARGINAL = ("height", "loss", "precision", "non_uniform_entropy")
"""Without suppression these need no more than how often each leaf of each attribute occurs; suppressing a row never
improves them, so that they bound what a node can reach with it."""


class Metrics:
    """Metrics of nodes of one task. by_sizes: the choice must not depend on anything but block sizes."""

    def __init__(self, task: Task, *, by_sizes: bool = False) -> None:
        self._task = task
        self._sets = task.source.frequency_sets
        self._by_sizes = by_sizes or task.sizes_only
        self._leaf_sets: dict[int, Leaves] = {}
        self._alone: dict[tuple[int, int, str], float] = {}
        self._ranked: dict[tuple[Node, str], Any] = {}

    @property
    def shown(self) -> tuple[str, ...]:
        """The metrics that answers give: all, but those of a workload only where the spec mentions it, or them."""
        search = self._task.spec.search
        return tuple(
            metric.name
            for metric in METRICS
            if metric.needs != "workload" or search.workload is not None or search.choose_by == metric.name
        )

    def names(self, wanted: str) -> list[str]:
        """Those of `shown` that are computed: of a large table those that need every leaf only where asked for."""
        large = self._sets.rows > LEAF_ROWS and self._sets.leaves > LEAF_ROWS
        return [name for name in self.shown if not (large and BY_NAME[name].needs in ALL_LEAVES and name != wanted)]

    def of(self, assessment: Assessment, names: tuple[str, ...] | None = None) -> dict[str, Any]:
        """The metrics of an assessed node, by name."""
        keys, rows = assessment.counts.keys[assessment.kept], assessment.counts.rows[assessment.kept]

        def measured(name: str) -> Any:
            if not assessment.suppressed and name in MARGINAL:
                return self.unsuppressed(assessment.node, name)
            if not assessment.suppressed and name == "kl_divergence" and not self._sets.entities:
                return self._divergence(assessment.node)
            return BY_NAME[name].of(self._published(assessment.node, name, keys, rows))

        return {name: measured(name) for name in names or self.names(self._task.spec.search.choose_by)}

    def answers(self, assessment: Assessment) -> Answers:
        """Of each query of the workload, from what an assessed node would publish."""
        keys, rows = assessment.counts.keys[assessment.kept], assessment.counts.rows[assessment.kept]
        return self._published(assessment.node, "query_error", keys, rows).query_answers

    def rank(self, node: Node, name: str) -> Any:
        """One metric of one satisfying node, from its block sizes alone where that is enough."""
        if (node, name) not in self._ranked:
            self._ranked[node, name] = self._rank(node, name)
        return self._ranked[node, name]

    def _rank(self, node: Node, name: str) -> Any:
        task, metric = self._task, BY_NAME[name]
        if name == "height" or (name in MARGINAL and not task.budget):
            return self.unsuppressed(node, name)
        if metric.needs == "sizes" and not self._sets.entities and (self._by_sizes or not task.budget):
            small = self._sets.small(node, task.least)
            if small.squares is not None:
                self._raise_floor(node, small.squares)
            if name == "discernibility" and small.squares is not None and small.small_squares is not None:
                if not task.budget:
                    return small.squares
                return small.squares - small.small_squares + small.small_n * task.source.rows
            sizes = task.sizes(node)
            kept = sizes.size >= (task.least if task.budget else 1)
            return metric.of(self._sized(node, sizes.size[kept], sizes.blocks[kept]))
        if name == "kl_divergence" and not task.budget and not self._sets.entities:
            return self._divergence(node)
        if metric.needs in ALL_LEAVES and not task.budget:
            leaves, queries = self._needed(name)
            return metric.of(replace(self._unsuppressed(node), leaves=leaves, queries=queries))
        return metric.of(self._published(node, name, *self._kept(node)))

    def bound(self, node: Node, name: str) -> Any:
        """What the metric of a node cannot be better than, with far less counting; None where nothing is known."""
        if not self._task.budget:
            return None
        if name in MARGINAL:
            return self.unsuppressed(node, name)
        return int(self._least_discernibility[node]) if name == "discernibility" else None

    def bounds(self, name: str) -> Floats | Ints | None:
        """Over the lattice, `bound` of every node, as it is now, where smaller values are better; None where nothing is
        known."""
        if name in MARGINAL:
            return BY_NAME[name].sign * self._bounds(name)
        return self._least_discernibility if name == "discernibility" and self._task.budget else None

    def signed(self, node: Node, name: str, *, known: bool = False) -> float:
        """A metric of a node whose smaller values are better. known: what is known of it without a count, by the loss
        where nothing is."""
        if known and name not in MARGINAL:
            name = "loss"
        value = self.unsuppressed(node, name) if known else self.rank(node, name)
        return BY_NAME[name].sign * float(value)

    def best_only(self, name: str) -> BestOnly | None:
        """The search for a best node by a metric of which something is known of all nodes beforehand; else None."""
        if name not in MARGINAL:
            return None
        return BestOnly(BY_NAME[name].sign * self._bounds(name), lambda node: self.signed(node, name))

    def _bounds(self, name: str) -> Floats:
        """float64 over the lattice: `unsuppressed` of every node."""
        lattice = self._task.lattice
        total: Floats = np.zeros(lattice.shape)
        shares = formulas.scaled(self._task.spec.weights)
        for i, highest in enumerate(lattice.heights):
            levels: Floats = np.arange(highest + 1, dtype=np.float64)
            if name == "precision":
                levels /= max(self._task.source.hierarchies[i].height, 1)
            elif name != "height":
                levels = np.array([self._of_attribute(i, level, name) for level in range(highest + 1)])
            levels = np.log1p(levels) if name == "loss" else levels
            share = 1.0 if shares is None or name == "height" else float(shares[i])
            total += share * levels.reshape([-1 if i == axis else 1 for axis in range(total.ndim)])
        count = max(total.ndim, 1) if shares is None else math.fsum(shares)
        if name == "loss":
            return np.expm1(total / count)
        if name == "precision":
            return 1 - total / count
        return total if shares is None or name == "height" else total * (len(shares) / count)

    def unsuppressed(self, node: Node, name: str) -> Any:
        """A metric of MARGINAL where nothing is suppressed."""
        if name in ("height", "precision"):
            return BY_NAME[name].of(self._unsuppressed(node))
        parts, weights = [self._of_attribute(i, level, name) for i, level in enumerate(node)], self._task.spec.weights
        if name == "non_uniform_entropy":
            return formulas.weighted_sum(parts, weights)
        return math.expm1(formulas.weighted_mean(list(map(math.log1p, parts)), weights)) if parts else 0.0

    def _unsuppressed(self, node: Node) -> Published:
        source, nothing = self._task.source, np.zeros(0, dtype=np.int64)
        return Published(node, source.hierarchies, source.rows, 0, nothing, nothing, weights=self._task.spec.weights)

    def _divergence(self, node: Node) -> float:
        """KL divergence where nothing is suppressed."""
        source = self._task.source
        (blocks,) = self._sets.blocks(node, (0,) if source.sensitives else ())
        assert blocks.keys is not None
        return formulas.kl_of_sums(*self._leaf_sizes, blocks.count, blocks.keys, blocks.rows, node, source.hierarchies)

    @cached_property
    def _leaf_sizes(self) -> tuple[Ints, Ints]:
        return self._sets.leaf_sizes((0,) if self._task.source.sensitives else ())

    def _of_attribute(self, attribute: int, level: int, name: str) -> float:
        """Loss or entropy of one attribute by itself; few values, asked for again and again."""
        key = (attribute, level, name)
        if key not in self._alone:
            hierarchy, (codes, rows) = self._task.source.hierarchies[attribute], self._marginals[attribute]
            column, of = codes[:, None], ((level,), [hierarchy])
            self._alone[key] = (
                formulas.loss(column, rows, *of, 0, self._task.source.rows)
                if name == "loss"
                else formulas.non_uniform_entropy(column, rows, *of)
            )
        return self._alone[key]

    @cached_property
    def _least_discernibility(self) -> Ints:
        """int64 over the lattice: it is at least this much, since it never falls upward and finer nodes are known."""
        least = np.zeros(self._task.lattice.shape, dtype=np.int64)
        if not self._sets.entities:
            for node, small in self._sets.known_small().items():
                np.maximum(least[up(node)], small.squares or 0, out=least[up(node)])
        return least

    def _raise_floor(self, node: Node, least: float) -> None:
        """The discernibility of a node without suppression is known: coarser nodes have no less."""
        if "_least_discernibility" in self.__dict__:
            floor = self._least_discernibility[up(node)]
            np.maximum(floor, least, out=floor)

    @cached_property
    def _marginals(self) -> list[tuple[Ints, Ints]]:
        return self._sets.marginals()

    def _sized(self, node: Node, size: Ints, blocks: Ints) -> Published:
        source = self._task.source
        suppressed = source.rows - int((size * blocks).sum())
        weights = self._task.spec.weights
        return Published(node, source.hierarchies, source.rows, suppressed, size, blocks, weights=weights)

    def _kept(self, node: Node) -> tuple[Ints, Ints]:
        """Keys and rows of the blocks that would be published."""
        kept: Mask
        # Where nothing is suppressed, no model has a part in it.
        if self._by_sizes or not self._task.budget:
            plain = self._sets.blocks(node, ())[0]
            assert plain.keys is not None
            keys, rows = plain.keys, self._sets.row_counts(node) if self._sets.entities else plain.rows
            kept = plain.rows >= self._task.least
        else:
            counts = self._task.counts(node)
            whole = self._sized(node, *np.unique(counts.rows, return_counts=True))
            self._raise_floor(node, BY_NAME["discernibility"].of(whole))
            keys, rows, kept = counts.keys, counts.rows, ~counts.failing
        return (keys[kept], rows[kept]) if self._task.budget else (keys, rows)

    def _published(self, node: Node, name: str, keys: Ints, rows: Ints) -> Published:
        source = self._task.source
        leaves, queries = self._needed(name)
        weights = self._task.spec.weights
        return Published.of_blocks(node, source.hierarchies, keys, rows, source.rows, leaves, queries, weights)

    def _needed(self, name: str) -> tuple[Leaves | None, tuple[Query, ...] | None]:
        if BY_NAME[name].needs == "workload":
            return self.workload
        return (self._leaves(0) if BY_NAME[name].needs == "leaf" else None), None

    @cached_property
    def _workload(self) -> tuple[int, tuple[Query, ...]]:
        return workload_of(self._task.source)

    @property
    def workload(self) -> tuple[Leaves, tuple[Query, ...]]:
        """The queries, and what they are answered from."""
        sensitive, queries = self._workload
        return self._leaves(sensitive), queries

    def _leaves(self, sensitive: int) -> Leaves:
        """The leaf frequency set with one sensitive attribute (where there is none: the leaves alone)."""
        if sensitive not in self._leaf_sets:
            wanted = (sensitive,) if self._task.source.sensitives else ()
            codes, value, count = self._sets.leaf_counts(wanted)
            self._leaf_sets[sensitive] = Leaves(codes, value[:, 0] if wanted else np.zeros_like(count), count)
        return self._leaf_sets[sensitive]


def metric_named(name: str) -> Metric:
    """The metric of that name. Raises InputError naming the known ones."""
    if name not in BY_NAME:
        raise InputError(f"choose_by {name!r} is unknown; use one of {', '.join(BY_NAME)}")
    return BY_NAME[name]


class Ranked:
    """The nodes of a mask in the order of what each is at best, smaller being better; held as numbers alone."""

    def __init__(self, mask: Mask, best: Floats | Ints | None) -> None:
        """best: over the lattice; None where nothing is known."""
        self._shape = mask.shape
        self._places = np.flatnonzero(mask)
        self._best: Floats | Ints | None = None
        if best is not None:
            known = best.reshape(-1)[self._places]
            order = np.argsort(known, kind="stable")
            self._places, self._best = self._places[order], known[order]

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[tuple[float, Node]]:
        for i, place in enumerate(self._places):
            node = tuple(int(level) for level in np.unravel_index(place, self._shape))
            yield -math.inf if self._best is None else float(self._best[i]), node


def candidates(
    outcome: Outcome, choose_by: str, *, suppression: bool, best: Floats | Ints | None = None
) -> Ranked | list[Node]:
    """Nodes that are sure to include a best one by the metric. best: over the lattice, what each node is at best,
    smaller being better.

    Without suppression a metric that never improves upward is best at a minimal node, whether or not the condition is
    monotone: every satisfying node generalizes a minimal one. Otherwise all satisfying nodes must be compared.
    """
    if outcome.satisfied is None or (metric_named(choose_by).grows and not suppression and outcome.minimal):
        return list(outcome.minimal)
    return Ranked(outcome.satisfied, best)


def choose(
    nodes: Ranked | Iterable[Node],
    metric_of: Callable[[Node], float],
    choose_by: str,
    bound: Callable[[Node], float | None] | None = None,
    tally: Tally | None = None,
    over: Callable[[], bool] = lambda: False,
) -> Node:
    """The best node by the metric; ties by the smaller height, then by the smaller levels from the first attribute on.

    metric_of is called at most once per node; doubles that agree in 12 digits are a tie. bound: a value that the
    metric of a node is never better than, or None; it may get tighter while other nodes are measured. Nodes whose bound
    is worse than the best value are not measured. tally: is told after each measurement. over: ends the choice after
    the first one. Raises Refused where there is no node.
    """
    sign = metric_named(choose_by).sign

    def limit(node: Node) -> float:
        best_possible = None if bound is None else bound(node)
        return -math.inf if best_possible is None else sign * best_possible

    ranked = nodes if isinstance(nodes, Ranked) else sorted((limit(node), node) for node in nodes)
    left, stream = len(ranked), iter(ranked)
    following, again = next(stream, None), list[tuple[float, Node]]()
    best: tuple[float, int, Node] | None = None
    measured = 0
    while again or following is not None:
        if following is None or (again and again[0] < following):
            expected, node = heapq.heappop(again)
        else:
            (expected, node), following = following, next(stream, None)
        if best is not None and (expected > best[0] + SLACK * abs(best[0]) or over()):
            break
        now = limit(node)
        if now > expected + SLACK * abs(expected):
            heapq.heappush(again, (now, node))
            continue
        value = (sign * rounded(metric_of(node)), height(node), node)
        best = value if best is None else min(best, value)
        measured += 1
        left -= 1
        if tally is not None:
            tally(measured, left, 0.0)
    if best is None:
        raise Refused("no node of the lattice satisfies what is asked; ask for less, or allow more suppression")
    return best[2]


def rounded(value: float) -> float:
    return float(f"{value:.12g}") if isinstance(value, float) else value
