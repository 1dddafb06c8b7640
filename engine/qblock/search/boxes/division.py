"""Maps of people in memory: the search of `specialize.py` from the top, for a cohort by sizes alone."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from qblock.blocks import Ints, Mask
from qblock.lattice import Node
from qblock.recoding import Label, Ladder, Tree
from qblock.search.boxes.counting import Atoms, Judge, Moves, Sizes, sorted_atoms
from qblock.search.boxes.groups import Groups, added, numbered
from qblock.search.boxes.propose import Gain
from qblock.search.boxes.specialize import Specialization


def divide(
    ladders: Sequence[Ladder], leaves: Ints, least: int, weights: Sequence[Fraction], *, cuts: bool = True
) -> tuple[Tree, Ints]:
    """Divide people into boxes by their quasi-identifiers.

    Neither their order nor anything else about them is looked at, so that the map tells nothing of their values.

    Args:
        ladders: of the quasi-identifiers.
        leaves: int64[N, Q], the codes of each person's leaves.
        least: how many people each box has at least; fewer than twice as many are not divided.
        weights: of each quasi-identifier in the loss.
        cuts: whether neighbours are grouped, where a quasi-identifier is ordered.

    Returns:
        The splits, which begin at the top, and int64[N], the part that each person is in.
    """
    if len(leaves) < 2 * least:
        tree = Tree(ladders, _top(ladders))
        return tree, tree.assign(leaves)
    gain = Gain("loss", ladders, len(leaves), weights, None)
    whole = specialize(People(ladders, leaves), Sizes(least), gain, cuts=cuts)
    assert whole is not None
    return whole, whole.assign(leaves)


def specialize(people: People, judge: Judge | Sizes, gain: Gain, *, cuts: bool = True) -> Tree | None:
    """The splits of people from the top; None where all of them together fail."""
    specialized = Specialization(people, people.ladders, judge, gain, 0, cuts=cuts).run(_top(people.ladders))
    return None if specialized is None else specialized.tree


def _top(ladders: Sequence[Ladder]) -> Node:
    return tuple(ladder.hierarchy.height for ladder in ladders)


def of_levels(tree: Tree, parts: Sequence[int]) -> dict[Label, str]:
    """How the labels of parts read where readers filter by levels: several of one parent read as it does."""
    return {
        label: ladder.text(label.within or label)
        for i, ladder in enumerate(tree.ladders)
        for label in {tree.labels[part][i] for part in parts}
    }


class People:
    """Counts people in memory, from the whole of them down.

    leaves: int64[N, Q], the codes of each one's leaves; values: int64[N, S], where a judge looks at them.
    """

    entities = False

    def __init__(self, ladders: Sequence[Ladder], leaves: Ints, values: Ints | None = None) -> None:
        self.ladders = tuple(ladders)
        if values is None:
            values = np.zeros((len(leaves), 0), dtype=np.int64)
        rows, self._n = np.unique(np.concatenate((leaves, values), axis=1), axis=0, return_counts=True)
        self._leaves, self._values = rows[:, : leaves.shape[1]], rows[:, leaves.shape[1] :]
        distinct, number = np.unique(self._values, axis=0, return_inverse=True)
        self._distinct, self._value = distinct, number.reshape(-1)
        self._part = np.zeros(len(self._n), dtype=np.int64)

    def begin(self, node: Node) -> tuple[Groups, Ints]:
        """The one block of the top, and the codes of its labels."""
        return self._groups(self._part, 1), np.zeros((1, len(node)), dtype=np.int64)

    def start(self, node: Node, keys: Ints, child: Ints) -> None:
        """Give everybody the part that the block of the top is."""
        self._part[:] = child

    def portions(self, parts: Ints) -> Sequence[slice]:
        """All of them at once."""
        return [slice(len(parts))]

    def handed_over(self, parts: Ints, rows: Ints) -> None:
        """They are counted here."""

    def labels(self, attribute: int, parts: Ints, levels: Ints, small: Mask | None = None) -> Atoms:
        """The labels of an attribute that occur in each part, at a level of its own. small: as of `InMemory`."""
        there = np.flatnonzero(np.isin(self._part, parts))
        level = levels[np.searchsorted(parts, self._part[there])]
        code = self._codes(attribute, level, there)
        number, first = numbered([self._part[there], code])
        group = np.full(len(self._part), -1, dtype=np.int64)
        group[there] = number
        part, code, level = self._part[there][first], code[first], level[first]
        return sorted_atoms(self.ladders[attribute], self._groups(group, len(first)), part, code, level, parts)

    def by_group(self, attribute: int, atoms: Atoms, group: Ints, number: int) -> Groups:
        """The counts of groups of atoms. group: int64[atoms], the number of each, -1 for none."""
        return atoms.groups.merged(group, number)

    def move(self, moves: Moves) -> None:
        """Give people their new parts; those of parts that are not named are done."""
        moved = np.full(len(self._part), -1, dtype=np.int64)
        for attribute in np.unique(moves.attribute).tolist():
            here = np.flatnonzero(moves.attribute == attribute)
            parts, first = np.unique(moves.part[here], return_index=True)
            there = np.flatnonzero(np.isin(self._part, parts))
            part = self._part[there]
            code = self._codes(attribute, moves.level[here][first][np.searchsorted(parts, part)], there)
            pairs = zip(moves.part[here].tolist(), moves.code[here].tolist(), strict=True)
            child = dict(zip(pairs, moves.child[here].tolist(), strict=True))
            moved[there] = [child.get(pair, -1) for pair in zip(part.tolist(), code.tolist(), strict=True)]
        self._part = moved

    def drop(self) -> None:
        """Nothing of it is kept elsewhere."""

    def _codes(self, attribute: int, level: Ints, people: Ints) -> Ints:
        """The codes of people's labels, each at a level of its own."""
        codes: Ints = self.ladders[attribute].hierarchy.codes[level, self._leaves[people, attribute]].astype(np.int64)
        return codes

    def _groups(self, group: Ints, number: int) -> Groups:
        """Groups of people. group: the number of each combination's, -1 for none."""
        size = added(self._n, group, number)
        there, span = np.flatnonzero(group >= 0), max(1, len(self._distinct))
        keys, place = np.unique(group[there] * span + self._value[there], return_inverse=True)
        n = added(self._n[there], place.reshape(-1), len(keys))
        return Groups(keys // span, self._distinct[keys % span], n, size, size)
