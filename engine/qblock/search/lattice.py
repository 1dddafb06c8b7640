"""Verdicts over a lattice while it is searched, what a search asks of a node, and what it answers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from qblock.blocks import Floats, Ints, Mask
from qblock.lattice import Lattice, Node, down, up

Tally = Callable[[int, int, float], None]
"""Called after each evaluation with the number of nodes that need no question any more, of those still open, and the
rows that a question about one of these would read on average."""
Optimality = Literal["minimal", "scanned", "best", "within"]
SLACK = 1e-10
"""Relative: bounds and metrics are sums of doubles, and a node that may tie must be measured."""
OPEN, PASSED, FAILED = 0, 1, -1
Ask = Callable[[Sequence[Node]], list[bool]]
"""Decides open nodes, and what follows from them; their verdicts."""
MONOTONE = "The condition is monotone here: verdicts on nodes that were not evaluated follow from the others."
SCANNED = (
    "The condition is not monotone here, so every node was decided on its own{pruned}. "
    "The minimal nodes are complete, but a generalization of one may fail."
)
BEST = "Only a best node was searched for. Nodes that cannot be better than a measured one were left undecided."
PRUNED = ", except nodes with too small blocks"


class OutOfTime(Exception):
    """The time of a search is over."""


class Evaluator(Protocol):
    """Decides nodes, usually over a database. Strategies ask for each verdict of a node at most once."""

    @property
    def lattice(self) -> Lattice:
        """The lattice that is searched."""

    @property
    def sizes_monotone(self) -> bool:
        """Whether `sizes_pass` survives generalization (k-anonymity does, with and without suppression)."""

    @property
    def monotone(self) -> bool:
        """Whether `passes` survives generalization, under the models and the suppression budget in force."""

    @property
    def sizes_only(self) -> bool:
        """Whether `passes` is `sizes_pass`: only block sizes matter."""

    def sizes_pass(self, node: Node) -> bool:
        """A necessary condition on block sizes alone: the least size that the models imply, within the budget."""

    def passes(self, node: Node) -> bool:
        """The full condition. Implies `sizes_pass`."""

    @property
    def max_concurrency(self) -> int:
        """How many nodes `evaluate_many` takes without asking them one after the other."""

    def evaluate_many(self, nodes: Sequence[Node], ask: Callable[[Node], bool]) -> list[bool]:
        """The verdicts of several nodes. ask: `sizes_pass` or `passes`."""

    def plan_hubs(self, wanted: Floats, *, sizes: bool) -> Floats:
        """Prepare for what will be asked; the rows that an evaluation of each node would read then.

        wanted: float64 over the lattice, how often each node may be asked; sizes: of `sizes_pass` rather than
        `passes`.
        """

    def equivalent_range(self, node: Node) -> tuple[Node, Node]:
        """The finest and the coarsest node that are known to have the same blocks: one verdict is that of all."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a search found.

    satisfied, decided: bool over `lattice.shape`; all are decided with "minimal" and "scanned". minimal: the
    satisfying nodes that generalize no other satisfying node, sorted. nodes_evaluated: distinct nodes asked anything.
    optimality: "minimal" where monotonicity proves the verdicts that were not asked for, else "scanned"; "best" where
    only a best node was asked for, and "within" where the time was over before that was known: then `minimal` is
    empty, and a satisfying node may be undecided. `why` says it in one sentence. passed, instead of satisfied and
    decided, where nothing is held for each node: the nodes that are known to satisfy, sorted. best: with "within", the
    best of them.
    """

    strategy: str
    lattice: Lattice
    satisfied: Mask | None
    decided: Mask | None
    minimal: list[Node]
    nodes_evaluated: int
    optimality: Optimality
    why: str
    passed: tuple[Node, ...] = ()
    best: Node | None = None

    @property
    def all_satisfying(self) -> int | None:
        """How many nodes satisfy; None where some are undecided."""
        if self.satisfied is None or self.optimality not in ("minimal", "scanned"):
            return None
        return int(np.count_nonzero(self.satisfied))

    def satisfying(self) -> list[Node]:
        """The nodes that are known to satisfy, sorted."""
        return list(self.each_satisfying())

    def each_satisfying(self) -> Iterator[Node]:
        """The nodes that are known to satisfy, in their order, one by one: of a large lattice they are many."""
        if self.satisfied is None:
            yield from self.passed
            return
        for place in np.flatnonzero(self.satisfied):
            yield tuple(int(level) for level in np.unravel_index(place, self.satisfied.shape))


class BestOnly:
    """The search for a best node, smaller values being better.

    bounds: float64 over the lattice, what no node's value is below; measure: the value of a node that satisfies.
    """

    def __init__(self, bounds: Floats, measure: Callable[[Node], float]) -> None:
        self.bounds = bounds
        self.best = math.inf
        self._measure = measure

    def passed(self, node: Node) -> None:
        """A node satisfies: measure it, unless it is no better than another."""
        if self.bounds[node] <= self._limit:
            self.best = min(self.best, self._measure(node))

    def may_win(self) -> Mask:
        """bool over the lattice: the nodes that may be as good as the best one so far."""
        result: Mask = self.bounds <= self._limit
        return result

    @property
    def _limit(self) -> float:
        return self.best + SLACK * abs(self.best) if math.isfinite(self.best) else math.inf


def count_up(mask: Mask) -> Ints:
    """int64 over the lattice: how many nodes of the mask generalize each node, itself included."""
    result = mask.astype(np.int64)
    for axis in range(mask.ndim):
        along = np.moveaxis(result, axis, 0)
        for level in range(len(along) - 2, -1, -1):
            along[level] += along[level + 1]
    return result


def count_down(mask: Mask) -> Ints:
    """int64 over the lattice: how many nodes of the mask each node generalizes, itself included."""
    result = mask.astype(np.int64)
    for axis in range(mask.ndim):
        # By slices: a running sum along an axis of few levels takes several times as long.
        along = np.moveaxis(result, axis, 0)
        for level in range(1, len(along)):
            along[level] += along[level - 1]
    return result


def minimal_mask(mask: Mask) -> Mask:
    """The nodes of a mask that generalize no other node of it."""
    result: Mask = mask & (count_down(mask) == 1)
    return result


def nodes_of(mask: Mask) -> list[Node]:
    """The nodes of a mask, sorted."""
    return [tuple(levels) for levels in np.argwhere(mask).tolist()]


class Tags:
    """Each node is open, passed or failed: int8 over `lattice.shape`."""

    def __init__(self, lattice: Lattice) -> None:
        self.lattice = lattice
        self.state: NDArray[np.int8] = np.zeros(lattice.shape, dtype=np.int8)

    @property
    def open(self) -> Mask:
        """bool over the lattice: the nodes without a verdict."""
        result: Mask = self.state == OPEN
        return result

    @property
    def passed(self) -> Mask:
        """bool over the lattice: the nodes that passed."""
        result: Mask = self.state == PASSED
        return result

    def is_open(self, node: Node) -> bool:
        """Whether a node has no verdict."""
        return bool(self.state[node] == OPEN)

    def set(self, node: Node, verdict: bool) -> None:
        """Decide a single node."""
        self.state[node] = PASSED if verdict else FAILED

    def spread(self, node: Node, verdict: bool) -> None:
        """Decide an open node and what monotonicity says follows: everything coarser passes, everything finer fails.

        An open node has no failed node above it and no passed node below, so that no verdict is ever overwritten.
        """
        if verdict:
            self.state[up(node)] = PASSED
        else:
            self.state[down(node)] = FAILED

    def fail(self, mask: Mask) -> None:
        """Decide every node of a mask as failed."""
        self.state[mask] = FAILED


class LatticeState:
    """Asks the evaluator and tags the answers; `sizes` and `full` are one array where only block sizes matter."""

    def __init__(
        self,
        evaluator: Evaluator,
        tally: Tally | None = None,
        best_only: BestOnly | None = None,
        over: Callable[[], bool] | None = None,
    ) -> None:
        """over: whether the time of the search is over, after which a question raises OutOfTime."""
        self._over = over
        self.best_only = best_only
        self.evaluator = evaluator
        self.lattice = evaluator.lattice
        self.sizes = Tags(self.lattice)
        self.full = self.sizes if evaluator.sizes_only else Tags(self.lattice)
        self.tally = tally
        self.evaluated: set[Node] = set()
        self._price = 0.0

    @property
    def monotone(self) -> bool:
        """Whether the full condition may be pruned by its own monotonicity."""
        return self.evaluator.sizes_monotone if self.evaluator.sizes_only else self.evaluator.monotone

    def ask_sizes(self, nodes: Sequence[Node]) -> list[bool]:
        """Decide open nodes of `sizes`, and what follows; a node that fails here fails the full condition too."""
        verdicts = self._evaluate(nodes, self.evaluator.sizes_pass)
        for node, verdict in zip(nodes, verdicts, strict=True):
            self._tag(self.sizes, node, verdict, spread=self.evaluator.sizes_monotone)
            if not verdict:
                self._tag(self.full, node, False, spread=self.evaluator.sizes_monotone)
            self._count(node, passed=verdict and self.evaluator.sizes_only)
        return verdicts

    def ask_full(self, nodes: Sequence[Node], *, spread: bool | None = None) -> list[bool]:
        """Decide open nodes of `full`, and what follows where the condition is monotone (or `spread` says so)."""
        verdicts = self._evaluate(nodes, self.evaluator.passes)
        for node, verdict in zip(nodes, verdicts, strict=True):
            self._tag(self.full, node, verdict, spread=self.monotone if spread is None else spread)
            self._count(node, passed=verdict)
        return verdicts

    def _evaluate(self, nodes: Sequence[Node], ask: Callable[[Node], bool]) -> list[bool]:
        if self._over is not None and self.evaluated and self._over():
            raise OutOfTime
        return [ask(nodes[0])] if len(nodes) == 1 else self.evaluator.evaluate_many(nodes, ask)

    def plan_hubs(self, wanted: Floats, *, sizes: bool) -> Floats:
        """What the evaluator expects (Evaluator.plan_hubs), which is kept for the tally."""
        costs = self.evaluator.plan_hubs(wanted, sizes=sizes)
        if self.tally is not None:
            self._price = float((wanted * costs).sum() / max(wanted.sum(), 1e-9))
        return costs

    def _tag(self, tags: Tags, node: Node, verdict: bool, *, spread: bool) -> None:
        if spread:
            finest, coarsest = self.evaluator.equivalent_range(node)
            tags.spread(finest if verdict else coarsest, verdict)
        else:
            tags.set(node, verdict)

    def decide(self, decide: Callable[[Tags, Ask], None]) -> None:
        """Decide the full condition; where it is not monotone, first the sizes, which then spare nodes.

        decide: closes all open nodes of a monotone condition. What is not monotone is scanned, finer nodes first.
        """
        if self.monotone and not self.evaluator.sizes_only:
            # Block sizes are looked at first at each node: more nodes are asked than with a phase of their own, but
            # what fails is refuted by few blocks, and a pass of sizes alone would decide nothing.
            decide(self.full, self.ask_full)
            return
        if self.evaluator.sizes_monotone:
            decide(self.sizes, self.ask_sizes)
        else:
            self._scan(self.sizes, self.ask_sizes)
        if self.evaluator.sizes_only:
            return
        self.full.fail(~self.sizes.passed)
        self._scan(self.full, self.ask_full)

    def outcome(self, strategy: str, *, pruned: bool = True) -> Outcome:
        """The outcome of the verdicts. pruned: whether block sizes may have spared nodes of a scan."""
        decided = ~self.full.open
        optimality: Optimality = "minimal" if self.monotone and pruned else "scanned"
        if self.best_only is not None:
            optimality, why = "best", BEST
        elif optimality == "minimal":
            why = MONOTONE
        elif self.monotone:
            why = "Every node was decided on its own; monotonicity was not used."
        else:
            why = SCANNED.format(pruned=PRUNED if pruned and self.evaluator.sizes_monotone else "")
        return Outcome(
            strategy=strategy,
            lattice=self.lattice,
            satisfied=self.full.passed,
            decided=decided,
            minimal=[] if self.best_only is not None else nodes_of(minimal_mask(self.full.passed)),
            nodes_evaluated=len(self.evaluated),
            optimality=optimality,
            why=why,
        )

    def _scan(self, tags: Tags, ask: Ask) -> None:
        nodes: Iterable[Node] = self.lattice.nodes()
        if self.best_only is not None and tags is self.full:
            bounds, may_win = self.best_only.bounds, self.best_only.may_win
            nodes = itertools.takewhile(
                lambda node: bool(may_win()[node]), sorted(nodes, key=lambda n: float(bounds[n]))
            )
        open_nodes = (node for node in nodes if tags.is_open(node))
        # A few at once: what is not monotone tells nothing of other nodes.
        while batch := list(itertools.islice(open_nodes, self.evaluator.max_concurrency)):
            self.plan_hubs(tags.open.astype(np.float64), sizes=tags is self.sizes)
            ask(batch)

    def _count(self, node: Node, *, passed: bool) -> None:
        self.evaluated.add(node)
        if self.tally is not None:
            mask = self.full.open if self.best_only is None else self.full.open & self.best_only.may_win()
            left = int(np.count_nonzero(mask))
            self.tally(len(self.lattice) - left, left, self._price)
        if passed and self.best_only is not None:
            self.best_only.passed(node)
