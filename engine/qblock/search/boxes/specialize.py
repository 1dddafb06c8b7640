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
from qblock.search.boxes.counting import Atoms, Groups, Judge, Moves, PartCounting, Sizes, blocks_of
from qblock.search.boxes.propose import Gain, Proposal, Proposer
from qblock.search.lattice import Tally

Choice = Callable[[Sequence[int]], list[tuple[Proposal, Atoms]]]
"""Gives the splits of open parts, with the counts of their children."""


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
        open_ = [part for part, any_ in zip(parts, there.tolist(), strict=True) if any_]
        specialized = self._divided(open_, self._known, tally)
        failing = self._judge.failing(specialized.groups, np.array(specialized.boxes, dtype=np.int64), self.path)
        affordable = int(specialized.groups.rows[failing].sum()) <= self._budget
        return replace(specialized, suppressed=failing if affordable else np.zeros_like(failing))

    def _divided(
        self, open_: list[int], choose: Choice, tally: Tally | None, over: Callable[[], bool] = lambda: False
    ) -> Specialized:
        """Divide parts round by round until no split is chosen for any. All that is open is a box at any time."""
        tree = self._tree
        rounds, done = 0, len(self._suppressed)
        while open_ and not over():
            if tally is not None:
                tally(done, len(open_), 0.0)
            rounds += 1
            chosen = choose(open_)
            split = {proposal.part for proposal, _ in chosen}
            # The parts on the way to a box are asked for by (n,t)-closeness alone.
            self._counts.settle([part for part in open_ if part not in split], () if self._judge.looks_up else split)
            done += len(open_) - len(split)
            open_ = self._split(chosen) if chosen else []
        self._counting.drop()
        boxes = [part for part in tree.boxes() if part in self._counts]
        suppressed = np.array([part in self._suppressed for part in boxes], dtype=bool)
        alone = Groups.concatenated(self._empty).population
        empty = tuple(np.sort(population[population > 0]) for population in alone)
        return Specialized(tree, boxes, self._counts.of(boxes), suppressed, rounds, empty, not open_)

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

    def _begin(self, start: Node) -> list[int] | None:
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
        return kept

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

    def _chosen(self, open_: Sequence[int]) -> list[tuple[Proposal, Atoms]]:
        """The split of each part that has one, with the counts of its children."""
        best: dict[int, Proposal] = {}
        spending: dict[int, Proposal] = {}
        counted = {}
        for attribute, ladder in enumerate(self.ladders):
            grains = [(part, ladder.grain(self._tree.labels[part][attribute])) for part in open_]
            divisible = [(part, level) for part, level in grains if level is not None]
            if not divisible:
                continue
            parts, levels = (np.array(column, dtype=np.int64) for column in zip(*divisible, strict=True))
            order = np.argsort(parts)
            atoms = self._counting.labels(attribute, parts[order], levels[order])
            counted[attribute] = atoms
            labels = [self._tree.labels[part] for part in atoms.parts.tolist()]
            for proposal in self._proposer.propose(attribute, labels, atoms, self._budget):
                among = spending if proposal.suppressed else best
                best_known = among.get(proposal.part)
                # Ties by the order of attributes: an earlier one stays.
                if best_known is None or proposal.gain > best_known.gain:
                    among[proposal.part] = proposal
        self._spend(spending, best)
        return [(best[part], counted[best[part].attribute]) for part in open_ if part in best]

    def _known(self, open_: Sequence[int]) -> list[tuple[Proposal, Atoms]]:
        """The split of each part that the tree has one of, with the counts of its children."""
        splits = {part: self._tree.splits[part] for part in open_ if part in self._tree.splits}
        splits_known = []
        for attribute in sorted({split.attribute for split in splits.values()}):
            here = sorted(part for part, split in splits.items() if split.attribute == attribute)
            levels = np.array([splits[part].level for part in here], dtype=np.int64)
            atoms = self._counting.labels(attribute, np.array(here, dtype=np.int64), levels)
            splits_known += [
                (Proposal(part, attribute, splits[part].level, splits[part].kind, 0), atoms) for part in here
            ]
        return splits_known

    def _spend(self, spending: dict[int, Proposal], best: dict[int, Proposal]) -> None:
        """Suppress where nothing else divides a part, where each row that is suppressed gains most first."""
        wanted = [proposal for part, proposal in spending.items() if part not in best]
        wanted.sort(key=lambda p: (-p.gain / p.suppressed, p.part))
        for proposal in wanted:
            if proposal.suppressed <= self._budget:
                self._budget -= proposal.suppressed
                best[proposal.part] = proposal

    def _split(self, chosen: Sequence[tuple[Proposal, Atoms]]) -> list[int]:
        """Divide the parts; the children that are open."""
        tree, counting = self._tree, self._counting
        new: list[int] = []
        columns: list[tuple[Ints, ...]] = []
        by_attribute: dict[int, tuple[Atoms, list[Proposal]]] = {}
        for proposal, atoms in chosen:
            by_attribute.setdefault(proposal.attribute, (atoms, []))[1].append(proposal)
        for attribute, (atoms, proposals) in sorted(by_attribute.items()):
            child = np.full(len(atoms.part), -1, dtype=np.int64)
            for proposal in proposals:
                if proposal.part not in tree.splits:
                    self._divide(proposal)
                p = int(np.searchsorted(atoms.parts, proposal.part))
                run = slice(int(atoms.start[p]), int(atoms.start[p + 1]))
                codes = atoms.code[run].tolist()
                child[run] = [tree.child(proposal.part, code) for code in codes]
                lost = set(proposal.failing)
                pairs = zip(child[run].tolist(), codes, strict=True)
                self._suppressed.update(part for part, code in pairs if code in lost)
            children, group = np.unique(child[child >= 0], return_inverse=True)
            number = np.full(len(child), -1, dtype=np.int64)
            number[child >= 0] = group.reshape(-1)
            groups = in_order(counting.by_group(attribute, atoms, number, len(children)))
            self._add(groups, children.tolist())
            open_ = [part for part in children[groups.rows > 0].tolist() if part not in self._suppressed]
            new += open_
            shown = np.flatnonzero(np.isin(child, open_))
            of = np.full(len(shown), attribute, dtype=np.int64)
            columns.append((atoms.part[shown], of, atoms.level[shown], atoms.code[shown], child[shown]))
        counting.move(Moves(*(np.concatenate(column) for column in zip(*columns, strict=True))))
        return sorted(new)

    def _add(self, groups: Groups, parts: Sequence[int]) -> None:
        """Keep the counts of parts that hold rows."""
        self._empty.append(groups.select(np.flatnonzero(groups.rows == 0)))
        there = np.flatnonzero(groups.rows > 0)
        self._counts.add(groups.select(there), [parts[i] for i in there.tolist()])

    def _divide(self, proposal: Proposal) -> None:
        tree = self._tree
        at = proposal.part, proposal.attribute, proposal.level
        if proposal.kind == "each":
            tree.each(*at)
        elif proposal.kind == "cut":
            tree.cut(*at, proposal.at, null=proposal.null)
        else:
            tree.rest(*at, proposal.alone)

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
