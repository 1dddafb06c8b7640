"""What a strategy asks about a node, and what it answers about the lattice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from qblock.blocks import Floats, Mask
from qblock.lattice import Lattice, Node

Tally = Callable[[int, int, float], None]
"""Called after each evaluation with the number of nodes that need no question any more, of those still open, and the
rows that a question about one of these would read on average."""

Optimality = Literal["minimal", "scanned", "best"]


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
    def at_once(self) -> int:
        """How many nodes `together` takes without asking them one after the other."""

    def together(self, nodes: Sequence[Node], ask: Callable[[Node], bool]) -> list[bool]:
        """The verdicts of several nodes. ask: `sizes_pass` or `passes`."""

    def expect(self, wanted: Floats, *, sizes: bool) -> Floats:
        """Prepare for what will be asked; the rows that an evaluation of each node would read then.

        wanted: float64 over the lattice, how often each node may be asked; sizes: of `sizes_pass` rather than
        `passes`.
        """

    def alike(self, node: Node) -> tuple[Node, Node]:
        """The finest and the coarsest node that are known to have the same blocks: one verdict is that of all."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a search found.

    satisfied, decided: bool over `lattice.shape`; an undecided node cannot be minimal (only with `decide_all=False`).
    minimal: the satisfying nodes that generalize no other satisfying node, sorted. sizes_evaluated and
    full_evaluated: calls of `sizes_pass` and `passes`; nodes_evaluated: distinct nodes asked anything.
    optimality: "minimal" where monotonicity proves the verdicts that were not asked for, else "scanned"; "best" where
    only a best node was asked for: then `minimal` is empty, and a satisfying node may be undecided. `why` says it in
    one sentence.
    """

    strategy: str
    lattice: Lattice
    satisfied: Mask
    decided: Mask
    minimal: list[Node]
    sizes_evaluated: int
    full_evaluated: int
    nodes_evaluated: int
    optimality: Optimality
    why: str

    def satisfying(self) -> list[Node]:
        """The satisfying nodes, sorted."""
        return [tuple(levels) for levels in np.argwhere(self.satisfied).tolist()]
