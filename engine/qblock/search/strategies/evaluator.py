"""What a strategy asks about a node, and what it answers about the lattice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from qblock.blocks import Floats, Mask
from qblock.lattice import Lattice, Node

Tally = Callable[[int, int, float], None]
"""Called after each evaluation with the number of nodes that need no question any more, of those still open, and the
rows that a question about one of these would read on average."""

Optimality = Literal["minimal", "scanned", "best", "within"]


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

    satisfied, decided: bool over `lattice.shape`; an undecided node cannot be minimal (only with `decide_all=False`).
    minimal: the satisfying nodes that generalize no other satisfying node, sorted. sizes_evaluated and
    full_evaluated: calls of `sizes_pass` and `passes`; nodes_evaluated: distinct nodes asked anything.
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
    sizes_evaluated: int
    full_evaluated: int
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
