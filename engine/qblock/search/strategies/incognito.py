"""Incognito (LeFevre, DeWitt and Ramakrishnan, SIGMOD 2005; LD section 5), for any monotone condition.

Subsets of the quasi-identifiers are searched by size. A node of a subset is a candidate where its projection to every
smaller subset survived; candidates are asked breadth-first from the finest, and what generalizes a passing node passes
without being asked. A node of a subset stands for the full node whose other attributes are at their top, which has its
blocks where the top is a single value, and passes in any case where a node below it passes: one evaluator serves all
subsets, and a verdict given once is not asked again.
"""

from __future__ import annotations

import itertools

import numpy as np

from qblock.blocks import Mask
from qblock.lattice import Lattice, Node, up
from qblock.search.strategies.lattice_state import Ask, LatticeState
from qblock.search.strategies.tags import Tags

Subset = tuple[int, ...]


def run(state: LatticeState, *, decide_all: bool = True) -> None:
    """Decide the lattice; what is not monotone is scanned, after a phase of block sizes."""
    state.decide(decide, decide_all=decide_all)


def decide(tags: Tags, ask: Ask) -> None:
    """Close all open nodes of a monotone condition. `ask` decides open nodes and what follows from them.

    Only what the algorithm has established is read from the tags: a candidate that an earlier verdict closed is not
    asked again, and everything else is closed when the last subset, all attributes, is done.
    """
    lattice = tags.lattice
    survivors: dict[Subset, Mask] = {}
    for size in range(1, len(lattice.heights) + 1):
        survivors_of_size = {}
        for subset in itertools.combinations(range(len(lattice.heights)), size):
            survivors_of_size[subset] = _search(subset, _candidates(lattice, subset, survivors), tags, ask)
        survivors = survivors_of_size
    tags.fail(tags.open)


def _candidates(lattice: Lattice, subset: Subset, survivors: dict[Subset, Mask]) -> Mask:
    """bool over the subset's lattice: the nodes whose projections to all subsets one smaller survived."""
    mask = np.ones(tuple(lattice.heights[i] + 1 for i in subset), dtype=bool)
    if len(subset) > 1:
        for axis in range(len(subset)):
            mask &= np.expand_dims(survivors[subset[:axis] + subset[axis + 1 :]], axis)
    return mask


def _search(subset: Subset, candidates: Mask, tags: Tags, ask: Ask) -> Mask:
    """bool over the subset's lattice: the candidates that pass, found breadth-first with the marking of the paper."""
    survived = np.zeros_like(candidates)
    for levels in sorted(map(tuple, np.argwhere(candidates).tolist()), key=lambda node: (sum(node), node)):
        if survived[levels]:
            continue
        node = _whole(tags.lattice, subset, levels)
        if ask([node])[0] if tags.is_open(node) else tags.passed[node]:
            survived[up(levels)] = True
    return survived & candidates


def _whole(lattice: Lattice, subset: Subset, levels: Node) -> Node:
    """The node of the full lattice that stands for a subset's node: all other attributes at their top."""
    node = list(lattice.top)
    for attribute, level in zip(subset, levels, strict=True):
        node[attribute] = level
    return tuple(node)
