"""Binary search on long chains of undecided nodes, tagging everything that each verdict implies.

The idea of tagging both ways along paths is that of Flash (Kohlmayer et al., "Flash: efficient, stable and optimal
k-anonymity", 2012), here in two phases, block sizes first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qblock.blocks import Ints, Mask
from qblock.lattice import Lattice, Node
from qblock.search.survey import Survey
from qblock.search.tags import Tags


def chains(survey: Survey, *, decide_all: bool = True) -> None:
    """Decide the lattice in two phases, each by binary search on chains."""
    survey.two_phases(decide, decide_all=decide_all)


def decide(tags: Tags, ask: Callable[[Node], bool]) -> None:
    """Close all open nodes of a monotone condition. `ask` decides an open node and what follows from it."""
    while (mask := tags.open).any():
        chain = longest_chain(tags.lattice, mask)
        low, high = 0, len(chain)
        while low < high:
            middle = (low + high) // 2
            if ask(chain[middle]):
                high = middle
            else:
                low = middle + 1


def longest_chain(lattice: Lattice, mask: Mask) -> list[Node]:
    """A longest path of direct generalizations within a mask that contains all nodes between any two of its own.

    The nodes open under a monotone condition are such a mask: whatever lies between two open nodes is open.
    """
    heights: Ints = np.indices(lattice.shape).sum(axis=0)
    lowest = np.where(mask, heights, heights.max() + 1)
    for axis in range(lowest.ndim):
        np.minimum.accumulate(lowest, axis=axis, out=lowest)
    length = np.where(mask, heights - lowest, -1)
    node: Node = tuple(int(i) for i in np.unravel_index(int(length.argmax()), lattice.shape))
    path = [node]
    while lowest[node] < heights[node]:
        node = next(child for child in lattice.children(node) if mask[child] and lowest[child] == lowest[node])
        path.append(node)
    return path[::-1]
