"""Verdicts over a lattice as an array, where one verdict decides a whole up-set or down-set by slicing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qblock.blocks import Ints, Mask
from qblock.lattice import Lattice, Node, down, up

OPEN, PASSED, FAILED = 0, 1, -1


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

    def generalizes_passed(self, node: Node) -> bool:
        """Whether a node, or one finer than it, passed."""
        return bool((self.state[down(node)] == PASSED).any())

    def known(self) -> int:
        """The number of nodes with a verdict."""
        return int(np.count_nonzero(self.state))

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
