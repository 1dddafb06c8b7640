"""One search in progress: what was asked, the verdicts so far, and the outcome they amount to."""

from __future__ import annotations

from collections.abc import Callable

from qblock.lattice import Node
from qblock.search.strategies.evaluator import Evaluator, Optimality, Outcome, Progress
from qblock.search.strategies.tags import Tags, minimal_mask, nodes_of

MONOTONE = "The condition is monotone here, so that what was not asked follows from the verdict of another node."
SCANNED = (
    "The condition is not monotone here, so that every node was decided on its own{pruned}: "
    "the minimal nodes are complete, but a generalization of one need not satisfy."
)
PRUNED = ", except nodes with too small blocks"


class Survey:
    """Asks the evaluator and tags the answers; `sizes` and `full` are one array where only block sizes matter."""

    def __init__(self, evaluator: Evaluator, progress: Progress | None = None) -> None:
        self.evaluator = evaluator
        self.lattice = evaluator.lattice
        self.sizes = Tags(self.lattice)
        self.full = self.sizes if evaluator.sizes_only else Tags(self.lattice)
        self.progress = progress
        self.asked: set[Node] = set()
        self.sizes_evaluated = 0
        self.full_evaluated = 0

    @property
    def monotone(self) -> bool:
        """Whether the full condition may be pruned by its own monotonicity."""
        return self.evaluator.sizes_monotone if self.evaluator.sizes_only else self.evaluator.monotone

    def ask_sizes(self, node: Node) -> bool:
        """Decide an open node of `sizes`, and what follows; a node that fails here fails the full condition too."""
        verdict = self.evaluator.sizes_pass(node)
        self.sizes_evaluated += 1
        if self.evaluator.sizes_monotone:
            self.sizes.spread(node, verdict)
            if not verdict:
                self.full.spread(node, False)
        else:
            self.sizes.set(node, verdict)
            if not verdict:
                self.full.set(node, False)
        self._count(node)
        return verdict

    def ask_full(self, node: Node, *, spread: bool | None = None) -> bool:
        """Decide an open node of `full`, and what follows where the condition is monotone (or `spread` says so)."""
        verdict = self.evaluator.passes(node)
        self.full_evaluated += 1
        if self.monotone if spread is None else spread:
            self.full.spread(node, verdict)
        else:
            self.full.set(node, verdict)
        self._count(node)
        return verdict

    def two_phases(self, decide: Callable[[Tags, Callable[[Node], bool]], None], *, decide_all: bool = True) -> None:
        """Decide the sizes of the whole lattice, then the full condition where they pass.

        decide: closes all open nodes of a monotone condition. What is not monotone is scanned, finer nodes first, which
        leaves small frequency sets for the coarser ones to be rolled up from.
        """
        if self.evaluator.sizes_monotone:
            decide(self.sizes, self.ask_sizes)
        else:
            self._scan(self.sizes, self.ask_sizes, decide_all=True)
        if self.evaluator.sizes_only:
            return
        self.full.fail(~self.sizes.passed)
        if self.monotone:
            decide(self.full, self.ask_full)
        else:
            self._scan(self.full, self.ask_full, decide_all=decide_all)

    def outcome(self, strategy: str, *, pruned: bool = True) -> Outcome:
        """The outcome of the verdicts. pruned: whether block sizes may have spared nodes of a scan."""
        decided = ~self.full.open
        optimality: Optimality = "minimal" if self.monotone and pruned else "scanned"
        if optimality == "minimal":
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
            minimal=nodes_of(minimal_mask(self.full.passed)),
            sizes_evaluated=self.sizes_evaluated,
            full_evaluated=self.full_evaluated,
            nodes_evaluated=len(self.asked),
            optimality=optimality,
            why=why,
        )

    def _scan(self, tags: Tags, ask: Callable[[Node], bool], *, decide_all: bool) -> None:
        for node in self.lattice.nodes():
            if tags.is_open(node) and (decide_all or not tags.generalizes_passed(node)):
                ask(node)

    def _count(self, node: Node) -> None:
        self.asked.add(node)
        if self.progress is not None:
            known = self.full.known()
            self.progress(known, len(self.lattice) - known)
