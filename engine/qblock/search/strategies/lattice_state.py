"""One search in progress: what was asked, the verdicts so far, and the outcome they amount to."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from qblock.blocks import Floats
from qblock.lattice import Node
from qblock.search.strategies.best_only import BestOnly
from qblock.search.strategies.evaluator import Evaluator, Optimality, Outcome, OutOfTime, Tally
from qblock.search.strategies.tags import Tags, minimal_mask, nodes_of

Ask = Callable[[Sequence[Node]], list[bool]]
"""Decides open nodes, and what follows from them; their verdicts."""

MONOTONE = "The condition is monotone here, so that what was not asked follows from the verdict of another node."
SCANNED = (
    "The condition is not monotone here, so that every node was decided on its own{pruned}: "
    "the minimal nodes are complete, but a generalization of one need not satisfy."
)
BEST = "Only a best node was asked for: what cannot be better than one that was measured was left undecided."
PRUNED = ", except nodes with too small blocks"


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
        self.sizes_evaluated = 0
        self.full_evaluated = 0
        self._price = 0.0

    @property
    def monotone(self) -> bool:
        """Whether the full condition may be pruned by its own monotonicity."""
        return self.evaluator.sizes_monotone if self.evaluator.sizes_only else self.evaluator.monotone

    def ask_sizes(self, nodes: Sequence[Node]) -> list[bool]:
        """Decide open nodes of `sizes`, and what follows; a node that fails here fails the full condition too."""
        verdicts = self._evaluate(nodes, self.evaluator.sizes_pass)
        for node, verdict in zip(nodes, verdicts, strict=True):
            self.sizes_evaluated += 1
            if self.evaluator.sizes_monotone:
                self._spread(self.sizes, node, verdict)
                if not verdict:
                    self._spread(self.full, node, False)
            else:
                self.sizes.set(node, verdict)
                if not verdict:
                    self.full.set(node, False)
            self._count(node)
            if verdict and self.best_only is not None and self.evaluator.sizes_only:
                self.best_only.passed(node)
        return verdicts

    def ask_full(self, nodes: Sequence[Node], *, spread: bool | None = None) -> list[bool]:
        """Decide open nodes of `full`, and what follows where the condition is monotone (or `spread` says so)."""
        verdicts = self._evaluate(nodes, self.evaluator.passes)
        for node, verdict in zip(nodes, verdicts, strict=True):
            self.full_evaluated += 1
            if self.monotone if spread is None else spread:
                self._spread(self.full, node, verdict)
            else:
                self.full.set(node, verdict)
            self._count(node)
            if verdict and self.best_only is not None:
                self.best_only.passed(node)
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

    def _spread(self, tags: Tags, node: Node, verdict: bool) -> None:
        finest, coarsest = self.evaluator.equivalent_range(node)
        tags.spread(finest if verdict else coarsest, verdict)

    def decide(self, decide: Callable[[Tags, Ask], None], *, decide_all: bool = True) -> None:
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
            self._scan(self.sizes, self.ask_sizes, decide_all=True)
        if self.evaluator.sizes_only:
            return
        self.full.fail(~self.sizes.passed)
        self._scan(self.full, self.ask_full, decide_all=decide_all)

    def outcome(self, strategy: str, *, pruned: bool = True) -> Outcome:
        """The outcome of the verdicts. pruned: whether block sizes may have spared nodes of a scan."""
        decided = ~self.full.open
        optimality: Optimality = "minimal" if self.monotone and pruned else "scanned"
        if self.best_only is not None:
            optimality, why = "best", BEST
        elif optimality == "minimal":
            why = MONOTONE
        elif self.monotone:
            why = "Every node was decided on its own, without the use of monotonicity."
        else:
            why = SCANNED.format(pruned=PRUNED if pruned and self.evaluator.sizes_monotone else "")
        return Outcome(
            strategy=strategy,
            lattice=self.lattice,
            satisfied=self.full.passed,
            decided=decided,
            minimal=[] if self.best_only is not None else nodes_of(minimal_mask(self.full.passed)),
            sizes_evaluated=self.sizes_evaluated,
            full_evaluated=self.full_evaluated,
            nodes_evaluated=len(self.evaluated),
            optimality=optimality,
            why=why,
        )

    def _scan(self, tags: Tags, ask: Ask, *, decide_all: bool) -> None:
        nodes = self.lattice.nodes()
        if self.best_only is not None and tags is self.full:
            bounds = self.best_only.bounds
            nodes = iter(sorted(nodes, key=lambda node: float(bounds[node])))
        while True:
            # A few at once: what is not monotone tells nothing of other nodes.
            batch = list(itertools.islice(self._open_of(nodes, tags, decide_all), self.evaluator.max_concurrency))
            if not batch:
                return
            self.plan_hubs(tags.open.astype(np.float64), sizes=tags is self.sizes)
            ask(batch)

    def _open_of(self, nodes: Iterator[Node], tags: Tags, decide_all: bool) -> Iterator[Node]:
        """The next nodes that must be asked."""
        for node in nodes:
            if self.best_only is not None and tags is self.full and not self.best_only.may_win()[node]:
                return
            if tags.is_open(node) and (decide_all or not tags.generalizes_passed(node)):
                yield node

    def _count(self, node: Node) -> None:
        self.evaluated.add(node)
        if self.tally is not None:
            mask = self.full.open if self.best_only is None else self.full.open & self.best_only.may_win()
            left = int(np.count_nonzero(mask))
            self.tally(len(self.lattice) - left, left, self._price)
