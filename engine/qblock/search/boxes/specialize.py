"""Strict top-down specialization: every part that is open replaces one label by its children, until none may.

Breadth first: one statement for each quasi-identifier and round counts the labels of all open parts, whatever their
number, and one gives each row its new part. Every block is checked itself, so that no model needs to be monotone.
(Top-down by a privacy check: LeFevre et al., "Mondrian", ICDE 2006; by counts alone: LeFevre et al., TODS 2008.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from qblock.blocks import Blocks, Containing, Ints, Mask
from qblock.lattice import Node
from qblock.recoding import Label, Ladder, Tree
from qblock.recoding.tree import Kind
from qblock.search.boxes.counting import Groups, Judge, Moves, PartCounting, Sizes, added, blocks_of
from qblock.search.boxes.propose import KINDS, Gain, Gains, Open, Proposals, Proposer
from qblock.search.lattice import Tally

GROUPS: dict[Kind, int] = {"each": 0, "cut": 2, "rest": 1}
"""Of several labels, that a split of each kind makes."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """The splits of open parts. attribute: int64[P], -1 for a part that is not split; spent: bool[P], whether labels
    that fail are suppressed; proposals: by attribute, of which these are."""

    attribute: Ints
    spent: Mask
    proposals: dict[int, Proposals]


Choice = Callable[[Open], Chosen]
"""Gives the splits of open parts."""


class _Best:
    """The best split of each open part by any attribute so far; of those as good, that of the first attribute."""

    def __init__(self, parts: int) -> None:
        self.attribute = np.full(parts, -1, dtype=np.int64)
        self._worth: Gains | None = None

    def add(self, parts: Ints, attribute: int, worth: Gains) -> None:
        """Consider splits of parts, by their places."""
        if self._worth is None:
            self._worth = np.zeros(len(self.attribute), dtype=worth.dtype)
        better = (self.attribute[parts] < 0) | (worth > self._worth[parts])
        self.attribute[parts[better]] = attribute
        self._worth[parts[better]] = worth[better]


@dataclass(frozen=True, eq=False)
class Specialized:
    """What came of it. boxes: the parts that hold rows and are not split, as numbers of the tree; groups: their counts,
    in that order; suppressed: bool[boxes]; rounds: how many there were; empty: of each population, the sizes of boxes
    that nobody of the table is in; complete: whether every part was divided as far as it can be."""

    tree: Tree
    boxes: list[int]
    groups: Groups
    suppressed: np.typing.NDArray[np.bool_]
    rounds: int
    empty: tuple[Ints, ...] = ()
    complete: bool = True

    @property
    def suppressed_rows(self) -> int:
        return int(self.groups.rows[self.suppressed].sum())

    @cached_property
    def labels(self) -> list[tuple[Label, ...]]:
        return [self.tree.labels[part] for part in self.boxes]


class _Counts:
    """The counts of parts, each as it was made."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[Groups, int]] = {}

    def add(self, groups: Groups, parts: Sequence[int]) -> None:
        for i, part in enumerate(parts):
            self._of[part] = groups, i

    def settle(self, boxes: Sequence[int], split: Collection[int]) -> None:
        """Keep the counts of boxes apart from those that were counted with them, and forget parts that were split."""
        for part in split:
            del self._of[part]
        if boxes:
            self.add(self.of(boxes), boxes)

    def __contains__(self, part: int) -> bool:
        return part in self._of

    def of(self, parts: Sequence[int]) -> Groups:
        """The counts of these parts, in that order."""
        if not parts:
            nothing = np.zeros(0, dtype=np.int64)
            return Groups(nothing, np.zeros((0, 0), dtype=np.int64), nothing, nothing, nothing)
        counted_together: dict[int, tuple[Groups, list[int], list[int]]] = {}
        for place, part in enumerate(parts):
            groups, i = self._of[part]
            _, index, places = counted_together.setdefault(id(groups), (groups, [], []))
            index.append(i)
            places.append(place)
        runs = counted_together.values()
        joined = Groups.concatenated([groups.select(np.array(index, np.int64)) for groups, index, _ in runs])
        order = np.argsort(np.concatenate([places for _, _, places in runs]), kind="stable")
        return in_order(joined.select(order))


def in_order(groups: Groups) -> Groups:
    """With its counts in the order of the groups."""
    by = np.argsort(groups.owner, kind="stable")
    return replace(groups, owner=groups.owner[by], values=groups.values[by], n=groups.n[by])


class Specialization:
    """One search from a node downward. budget: rows that may be suppressed; cuts: as of `Proposer`."""

    def __init__(
        self,
        counting: PartCounting,
        ladders: Sequence[Ladder],
        judge: Judge | Sizes,
        gain: Gain,
        budget: int,
        *,
        cuts: bool = True,
    ) -> None:
        self._counting, self.ladders, self._judge = counting, tuple(ladders), judge
        self._budget = budget
        self._counts = _Counts()
        self._proposer = Proposer(counting, ladders, judge, gain, self.path, cuts=cuts)
        self._suppressed: set[int] = set()
        self._empty: list[Groups] = []
        self._tree: Tree

    def run(
        self,
        start: Node,
        tally: Tally | None = None,
        over: Callable[[], bool] = lambda: False,
        *,
        spend: bool = True,
    ) -> Specialized | None:
        """None where the blocks of the node that fail are more than may be suppressed. tally: is told the boxes that
        are done and the parts that are still open in each round; over: whether the time is over, after which no round
        begins; spend: whether splits may suppress what is left."""
        self._tree = Tree(self.ladders, start)
        open_ = self._begin(start)
        if open_ is None:
            self._counting.drop()
            return None
        if not spend:
            self._budget = 0
        return self._divided(open_, self._chosen, tally, over)

    def follow(self, tree: Tree, tally: Tally | None = None) -> Specialized:
        """The boxes of splits that are known, whether or not they pass: those that fail are suppressed where all of
        them may be."""
        self._tree = tree
        groups, keys, parts = self._blocks(tree.start)
        there = groups.rows > 0
        self._start(keys, parts, there)
        open_ = self._opened([part for part, any_ in zip(parts, there.tolist(), strict=True) if any_])
        specialized = self._divided(open_, self._known, tally)
        failing = self._judge.failing(specialized.groups, np.array(specialized.boxes, dtype=np.int64), self.path)
        affordable = int(specialized.groups.rows[failing].sum()) <= self._budget
        return replace(specialized, suppressed=failing if affordable else np.zeros_like(failing))

    def _divided(
        self, open_: Open, choose: Choice, tally: Tally | None, over: Callable[[], bool] = lambda: False
    ) -> Specialized:
        """Divide parts round by round until no split is chosen for any. All that is open is a box at any time."""
        tree = self._tree
        rounds, done = 0, len(self._suppressed)
        while len(open_) and not over():
            if tally is not None:
                tally(done, len(open_), 0.0)
            rounds += 1
            chosen = choose(open_)
            split = chosen.attribute >= 0
            # The parts on the way to a box are asked for by (n,t)-closeness alone.
            forgotten = () if self._judge.looks_up else open_.parts[split].tolist()
            self._counts.settle(open_.parts[~split].tolist(), forgotten)
            done += int(np.count_nonzero(~split))
            open_ = self._split(open_, chosen)
        self._counting.drop()
        boxes = [part for part in tree.boxes() if part in self._counts]
        suppressed = np.array([part in self._suppressed for part in boxes], dtype=bool)
        alone = Groups.concatenated(self._empty).population
        empty = tuple(np.sort(population[population > 0]) for population in alone)
        return Specialized(tree, boxes, self._counts.of(boxes), suppressed, rounds, empty, not len(open_))

    def _blocks(self, start: Node) -> tuple[Groups, Ints, list[int]]:
        """The blocks of a node, the codes of their labels, and the parts that they are."""
        groups, keys = self._counting.begin(start)
        ranks = [
            ladder.rank(level)[keys[:, i]] for i, (ladder, level) in enumerate(zip(self.ladders, start, strict=True))
        ]
        order = np.lexsort(tuple(reversed(ranks))) if ranks else np.arange(len(groups))
        groups, keys = in_order(groups.select(order)), keys[order]
        tree = self._tree
        self._counts.add(self._whole(start, groups), [0])
        parts = [tree.begin(key) for key in keys.tolist()]
        self._add(groups, parts)
        return groups, keys, parts

    def _begin(self, start: Node) -> Open | None:
        groups, keys, parts = self._blocks(start)
        # Within the whole table.
        failing = self._judge.failing(groups, np.zeros(len(groups), dtype=np.int64), self.path)
        lost = int(groups.rows[failing].sum())
        if lost > self._budget:
            return None
        self._budget -= lost
        self._suppressed.update(part for part, bad in zip(parts, failing.tolist(), strict=True) if bad)
        there = (groups.rows > 0).tolist()
        kept = [part for part, any_ in zip(parts, there, strict=True) if any_ and part not in self._suppressed]
        if (failing & (groups.rows == 0)).any():
            return None
        self._start(keys, parts, ~failing & (groups.rows > 0))
        return self._opened(kept)

    def _opened(self, parts: Sequence[int]) -> Open:
        """Parts that may be divided."""
        columns = [self._facts(attribute, parts) for attribute in range(len(self.ladders))]
        shape = (len(parts), len(self.ladders))
        leaves, grain, first = (np.array(of, dtype=np.int64).T.reshape(shape) for of in zip(*columns, strict=True))
        return Open(np.array(parts, dtype=np.int64), leaves, grain, first)

    def _facts(self, attribute: int, parts: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
        """What splits of parts by an attribute are weighed by: the columns of `Open`."""
        ladder, labels = self.ladders[attribute], [self._tree.labels[part][attribute] for part in parts]
        facts = {
            label: (label.leaves, ladder.grain(label), ladder.first_leaf(label)) for label in dict.fromkeys(labels)
        }
        every = [facts[label] for label in labels]
        return [of[0] for of in every], [-1 if of[1] is None else of[1] for of in every], [of[2] for of in every]

    def _start(self, keys: Ints, parts: Sequence[int], open_: Mask) -> None:
        """Give the rows of the blocks that may be divided the parts that they are."""
        index = np.flatnonzero(open_)
        self._counting.start(self._tree.start, keys[index], np.array(parts, dtype=np.int64)[index])

    def _whole(self, start: Node, groups: Groups) -> Groups:
        """The whole table, of which these are the blocks of a node."""
        if self._counting.entities:
            # Entities in several blocks count once.
            top = tuple(ladder.hierarchy.height for ladder in self.ladders)
            return groups if start == top else self._counting.begin(top)[0]
        return groups.merged(np.zeros(len(groups), dtype=np.int64), 1)

    def _chosen(self, open_: Open) -> Chosen:
        """The split of each part that has one."""
        best, spending = _Best(len(open_)), _Best(len(open_))
        proposals = {}
        for attribute in range(len(self.ladders)):
            there = np.flatnonzero(open_.grain[:, attribute] >= 0)
            if not len(there):
                continue
            parts = open_.select(there)
            atoms = self._counting.labels(attribute, parts.parts, parts.grain[:, attribute])
            proposed = self._proposer.propose(attribute, parts, atoms, self._budget)
            proposals[attribute] = proposed
            plain, spends = proposed.kind >= 0, proposed.suppressed > 0
            best.add(there[plain], attribute, proposed.worth[plain])
            spending.add(there[spends], attribute, proposed.spending[spends])
        spent = self._spend(open_, best, spending, proposals)
        return Chosen(np.where(spent, spending.attribute, best.attribute), spent, proposals)

    def _known(self, open_: Open) -> Chosen:
        """The split of each part that the tree has one of."""
        splits = [self._tree.splits.get(part) for part in open_.parts.tolist()]
        attributes = np.array([-1 if split is None else split.attribute for split in splits], dtype=np.int64)
        levels = np.array([-1 if split is None else split.level for split in splits], dtype=np.int64)
        proposals = {}
        for attribute in np.unique(attributes[attributes >= 0]).tolist():
            here = attributes == attribute
            atoms = self._counting.labels(attribute, open_.parts[here], levels[here])
            nothing = np.zeros(len(atoms.parts), dtype=np.int64)
            proposals[attribute] = Proposals.of(
                attribute, atoms, nothing, nothing, np.zeros(len(atoms.part), dtype=bool)
            )
        return Chosen(attributes, np.zeros(len(open_), dtype=bool), proposals)

    def _spend(self, open_: Open, best: _Best, spending: _Best, proposals: dict[int, Proposals]) -> Mask:
        """Suppress where nothing else divides a part, where each row that is suppressed gains most first; bool[P]."""
        spent, wanted = np.zeros(len(open_), dtype=bool), []
        for attribute, proposed in proposals.items():
            places = np.flatnonzero((best.attribute < 0) & (spending.attribute == attribute))
            at = np.searchsorted(proposed.atoms.parts, open_.parts[places])
            lost, gains = proposed.suppressed[at].tolist(), proposed.spending[at].tolist()
            wanted += [
                (-gain / rows, place, rows) for gain, rows, place in zip(gains, lost, places.tolist(), strict=True)
            ]
        for _, place, rows in sorted(wanted):
            if rows <= self._budget:
                self._budget -= rows
                spent[place] = True
        return spent

    def _split(self, open_: Open, chosen: Chosen) -> Open:
        """Divide the parts; the children that are open."""
        opened: list[Open] = []
        columns: list[tuple[Ints, ...]] = []
        for attribute in np.unique(chosen.attribute[chosen.attribute >= 0]).tolist():
            here = np.flatnonzero(chosen.attribute == attribute)
            proposed = chosen.proposals[attribute]
            atoms, child = proposed.atoms, self._children(open_.parts[here], proposed, chosen.spent[here])
            there = np.flatnonzero(child >= 0)
            children, first, group = np.unique(child[there], return_index=True, return_inverse=True)
            number = np.full(len(child), -1, dtype=np.int64)
            number[there] = group.reshape(-1)
            groups = in_order(self._counting.by_group(attribute, atoms, number, len(children)))
            self._add(groups, children.tolist())
            shown = groups.rows > 0
            if self._suppressed:
                shown &= ~np.isin(children, list(self._suppressed))
            parents = open_.select(np.searchsorted(open_.parts, atoms.part[there[first[shown]]]))
            opened.append(self._of_children(attribute, parents, children[shown]))
            moved = there[shown[number[there]]]
            of = np.full(len(moved), attribute, dtype=np.int64)
            columns.append((atoms.part[moved], of, atoms.level[moved], atoms.code[moved], child[moved]))
        if not columns:
            return open_.select(chosen.attribute >= 0)
        self._counting.move(Moves(*(np.concatenate(column) for column in zip(*columns, strict=True))))
        return Open.concatenated(opened)

    def _of_children(self, attribute: int, parents: Open, children: Ints) -> Open:
        """The children of parts, each beside its parent, from which it differs in the label of one attribute."""
        opened = Open(children, parents.leaves, parents.grain, parents.first)
        facts = self._facts(attribute, children.tolist())
        for column, of in zip((opened.leaves, opened.grain, opened.first), facts, strict=True):
            column[:, attribute] = of
        return opened

    def _children(self, parts: Ints, proposed: Proposals, spent: Mask) -> Ints:
        """int64[atoms]: the child that each label of parts is in, -1 for those of other parts. spent: of the parts,
        whether labels that fail are suppressed."""
        tree, atoms, place = self._tree, proposed.atoms, proposed.atoms.place
        at = np.searchsorted(atoms.parts, parts)
        split, suppressing = np.zeros((2, len(atoms.parts)), dtype=bool)
        split[at], suppressing[at[spent]] = True, True
        there, child = split[place], np.full(len(place), -1, dtype=np.int64)
        if int(parts[0]) in tree.splits:
            pairs = zip(atoms.part[there].tolist(), atoms.code[there].tolist(), strict=True)
            child[there] = [tree.child(part, code) for part, code in pairs]
            return child
        kind = np.where(suppressing, KINDS.index("each"), proposed.kind)
        group = np.where(suppressing[place], -1, proposed.group)
        child[there] = len(tree) + _numbers(place, np.where(there, group, 0), kind, at)[there]
        self._divide(proposed, at, kind, there & (group < 0))
        self._suppressed.update(child[proposed.failing & suppressing[place]].tolist())
        return child

    def _divide(self, proposed: Proposals, at: Ints, kind: Ints, alone: Mask) -> None:
        """Give the tree the splits of parts at some places. alone: bool[atoms], the labels that stand alone."""
        atoms, attribute = proposed.atoms, proposed.attribute
        codes, begin = atoms.code[alone].tolist(), np.concatenate(([0], np.cumsum(alone)))[atoms.start]
        levels, cuts = atoms.level[atoms.start[:-1]], np.where(kind == KINDS.index("cut"), atoms.code[proposed.at], 0)
        columns = (atoms.parts, levels, kind, begin[:-1], begin[1:], cuts, proposed.null)
        for part, level, number, start, end, code, null in zip(*(of[at].tolist() for of in columns), strict=True):
            if KINDS[number] == "each":
                self._tree.each(part, attribute, level, codes[start:end])
            elif KINDS[number] == "cut":
                self._tree.cut(part, attribute, level, code, null=null)
            else:
                self._tree.rest(part, attribute, level, codes[start:end])

    def _add(self, groups: Groups, parts: Sequence[int]) -> None:
        """Keep the counts of parts that hold rows."""
        self._empty.append(groups.select(np.flatnonzero(groups.rows == 0)))
        there = np.flatnonzero(groups.rows > 0)
        self._counts.add(groups.select(there), [parts[i] for i in there.tolist()])

    def path(self, parts: Ints, column: int) -> Sequence[Containing]:
        """The parts on the way to each of these, as blocks: one node of them for each depth."""
        distinct_parts, place = np.unique(parts, return_inverse=True)
        paths = [self._tree.path(part) for part in distinct_parts.tolist()]
        levels = []
        for depth in range(max(map(len, paths), default=0)):
            # A shorter path ends in the part itself, which contains itself.
            at = [path[min(depth, len(path) - 1)] for path in paths]
            distinct = sorted(set(at))
            index = np.searchsorted(distinct, at).astype(np.int64)
            blocks: Blocks = blocks_of(self._counts.of(distinct), column)
            levels.append(Containing(blocks, index[place.reshape(-1)]))
        return levels


def _numbers(place: Ints, group: Ints, kind: Ints, at: Ints) -> Ints:
    """int64[atoms]: the children of parts, numbered from 0 in the order of parts: of each the labels that stand alone,
    then its groups. place: of each label's part; group: -1 for labels that stand alone; kind: int64[P]; at: the places
    of the parts that are divided."""
    alone = group < 0
    number = added(alone.astype(np.int64), place, len(kind))
    children = (number + np.array([GROUPS[of] for of in KINDS])[kind])[at]
    first = np.zeros(len(kind), dtype=np.int64)
    first[at] = np.cumsum(children) - children
    before = np.cumsum(number) - number
    return first[place] + np.where(alone, np.cumsum(alone) - 1 - before[place], number[place] + group)
