"""Strict top-down specialization: every part that is open replaces one label by its children, until none may.

Breadth first: one statement for each quasi-identifier and round counts the labels of all open parts, whatever their
number, and one gives each row its new part. Every block is checked itself, so that no model needs to be monotone.
(Top-down by a privacy check: LeFevre et al., "Mondrian", ICDE 2006; by counts alone: LeFevre et al., TODS 2008.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from qblock.blocks import Blocks, Containing, Ints, Mask
from qblock.lattice import Node
from qblock.recoding import Ladder, Tree
from qblock.recoding.splits import KINDS, NONE
from qblock.search.boxes.counting import Judge, Moves, PartCounting, Sizes
from qblock.search.boxes.groups import Groups, blocks_of, distinct, in_order
from qblock.search.boxes.propose import Gain, Gains, Open, Proposals, Proposer
from qblock.search.lattice import Tally


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
    """What came of it. boxes: int64[B], the parts that hold rows and are not split, as numbers of the tree; groups:
    their counts, in that order; suppressed: bool[B]; rounds: how many there were; empty: of each population, the sizes
    of boxes that nobody of the table is in; complete: whether every part was divided as far as it can be."""

    tree: Tree
    boxes: Ints
    groups: Groups
    suppressed: Mask
    rounds: int
    empty: tuple[Ints, ...] = ()
    complete: bool = True

    @property
    def suppressed_rows(self) -> int:
        return int(self.groups.rows[self.suppressed].sum())


class _Counts:
    """The counts of parts, those that were counted together in one run."""

    def __init__(self) -> None:
        self._runs: list[Groups | None] = []
        self._of = np.zeros((0, 2), dtype=np.int64)

    def add(self, groups: Groups, parts: Ints) -> None:
        if not len(parts):
            return
        more = int(parts.max()) + 1 - len(self._of)
        if more > 0:
            room = np.full((more + len(self._of) // 2, 2), NONE, dtype=np.int64)
            self._of = np.concatenate((self._of, room))
        self._of[parts] = np.stack((np.full_like(parts, len(self._runs)), np.arange(len(parts))), axis=1)
        self._runs.append(groups)

    def settle(self, boxes: Ints, split: Ints) -> int:
        """Keep the counts of boxes apart from those that were counted with them, and forget parts that were split. The
        rows of the boxes."""
        self._of[split] = NONE
        groups = self.of(boxes)
        self.add(groups, boxes)
        used = np.zeros(len(self._runs) + 1, dtype=bool)
        # The last one is of parts that are not counted.
        used[self._of[:, 0]] = True
        self._runs = [run if there else None for run, there in zip(self._runs, used.tolist(), strict=False)]
        return int(groups.rows.sum())

    def there(self, parts: Ints) -> Mask:
        """bool: which parts are counted."""
        counted = np.zeros(len(parts), dtype=bool)
        known = parts < len(self._of)
        counted[known] = self._of[parts[known], 0] != NONE
        return counted

    def rows(self, parts: Ints) -> Ints:
        """int64: the rows of these parts."""
        run, place = self._of[parts].T
        rows = np.zeros(len(parts), dtype=np.int64)
        for i in distinct(run).tolist():
            here, groups = run == i, self._runs[i]
            assert groups is not None
            rows[here] = groups.rows[place[here]]
        return rows

    def of(self, parts: Ints) -> Groups:
        """The counts of these parts, in that order."""
        if not len(parts):
            nothing = np.zeros(0, dtype=np.int64)
            return Groups(nothing, np.zeros((0, 0), dtype=np.int64), nothing, nothing, nothing)
        run, place = self._of[parts].T
        given = []
        for i in distinct(run).tolist():
            here, groups = np.flatnonzero(run == i), self._runs[i]
            assert groups is not None
            given.append((groups, place[here], here))
        return in_order(Groups.gathered(given))


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
        self.ladders, self._judge = tuple(ladders), judge
        self._budget = budget
        self._counts = _Counts()
        self._gain, self._cuts = gain, cuts
        self._use(counting)
        self._suppressed: set[int] = set()
        self._empty: list[Groups] = []
        self._tree: Tree
        self._done = self._waiting = self._open_rows = 0

    def run(
        self,
        start: Node,
        tally: Tally | None = None,
        over: Callable[[], bool] = lambda: False,
        *,
        spend: bool = True,
    ) -> Specialized | None:
        """None where the blocks of the node that fail are more than may be suppressed. tally: is told the boxes that
        are done and the parts that are still open in each round, with their rows, 0 where these are not known; over:
        whether the time is over, after which no round begins; spend: whether splits may suppress what is left."""
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
        specialized = self._divided(self._opened(parts[there]), self._known, tally)
        failing = self._judge.failing(specialized.groups, specialized.boxes, self.path)
        affordable = int(specialized.groups.rows[failing].sum()) <= self._budget
        return replace(specialized, suppressed=failing if affordable else np.zeros_like(failing))

    def _divided(
        self, open_: Open, choose: Choice, tally: Tally | None, over: Callable[[], bool] = lambda: False
    ) -> Specialized:
        """Divide parts round by round until no split is chosen for any. All that is open is a box at any time."""
        self._done = len(self._suppressed)
        tree = self._tree
        # Entities of several parts are not added up.
        known = tally is not None and not self._counting.entities
        self._open_rows = int(self._counts.rows(open_.parts).sum()) if known else 0
        rounds, complete = self._rounds(open_, choose, tally, over)
        self._counting.drop()
        boxes = np.array(tree.boxes(), dtype=np.int64)
        boxes = boxes[self._counts.there(boxes)]
        suppressed = np.isin(boxes, list(self._suppressed))
        alone = Groups.concatenated(self._empty).population
        empty = tuple(np.sort(population[population > 0]) for population in alone)
        return Specialized(tree, boxes, self._counts.of(boxes), suppressed, rounds, empty, complete)

    def _rounds(self, open_: Open, choose: Choice, tally: Tally | None, over: Callable[[], bool]) -> tuple[int, bool]:
        """How many rounds there were, and whether they came to their end."""
        rounds = 0
        while len(open_) and not over():
            # What is suppressed is of all parts of a round.
            portions = None if self._budget else self._counting.handed_over(open_.parts, self._counts.rows(open_.parts))
            if portions is not None:
                more, complete = self._of_portions(open_, portions, choose, tally, over)
                return rounds + more, complete
            if tally is not None:
                tally(self._done, len(open_) + self._waiting, float(self._open_rows))
            rounds += 1
            chosen = choose(open_)
            split = chosen.attribute >= 0
            # The parts on the way to a box are asked for by (n,t)-closeness alone.
            settled = self._counts.settle(open_.parts[~split], open_.parts[split & (not self._judge.looks_up)])
            self._open_rows = max(0, self._open_rows - settled)
            self._done += int(np.count_nonzero(~split))
            open_ = self._split(open_, chosen)
        return rounds, not len(open_)

    def _of_portions(
        self,
        open_: Open,
        portions: Iterable[tuple[slice, PartCounting]],
        choose: Choice,
        tally: Tally | None,
        over: Callable[[], bool],
    ) -> tuple[int, bool]:
        """Divide one portion of parts after another, each as far as it can be."""
        whole, ends = self._counting, []
        self._waiting = len(open_)
        for portion, counting in portions:
            self._use(counting)
            del counting
            parts = open_.select(portion)
            self._waiting -= len(parts)
            ends.append(self._rounds(parts, choose, tally, over))
            # Before the next one is there.
            self._use(whole)
        return max(rounds for rounds, _ in ends), all(complete for _, complete in ends)

    def _use(self, counting: PartCounting) -> None:
        """Have parts counted by this."""
        self._counting = counting
        self._proposer = Proposer(counting, self.ladders, self._judge, self._gain, self.path, cuts=self._cuts)

    def _blocks(self, start: Node) -> tuple[Groups, Ints, Ints]:
        """The blocks of a node, the codes of their labels, and the parts that they are."""
        groups, keys = self._counting.begin(start)
        ranks = [
            ladder.rank(level)[keys[:, i]] for i, (ladder, level) in enumerate(zip(self.ladders, start, strict=True))
        ]
        order = np.lexsort(tuple(reversed(ranks))) if ranks else np.arange(len(groups))
        groups, keys = in_order(groups.select(order)), keys[order]
        tree = self._tree
        self._counts.add(self._whole(start, groups), np.zeros(1, dtype=np.int64))
        parts = np.array([tree.begin(key) for key in keys.tolist()], dtype=np.int64)
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
        self._suppressed.update(parts[failing].tolist())
        if (failing & (groups.rows == 0)).any():
            return None
        kept = ~failing & (groups.rows > 0)
        self._start(keys, parts, kept)
        return self._opened(parts[kept])

    def _opened(self, parts: Ints) -> Open:
        """Parts that may be divided."""
        return Open(parts, *(self._tree.fact(name, parts) for name in ("leaves", "grain", "first")))

    def _start(self, keys: Ints, parts: Ints, open_: Mask) -> None:
        """Give the rows of the blocks that may be divided the parts that they are."""
        self._counting.start(self._tree.start, keys[open_], parts[open_])

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
        chosen: dict[int, list[Proposals]] = {}
        for portion in self._counting.portions(open_.parts):
            places = np.arange(len(open_))[portion]
            proposals = self._proposed(open_, places, best, spending)
            attributes = np.where(best.attribute < 0, spending.attribute, best.attribute)
            # What is not chosen goes before the next portion.
            for attribute, (there, proposed) in proposals.items():
                chosen.setdefault(attribute, []).append(proposed.select(attributes[there] == attribute))
        joined = {attribute: Proposals.concatenated(of) for attribute, of in chosen.items()}
        spent = self._spend(open_, best, spending, joined)
        return Chosen(np.where(spent, spending.attribute, best.attribute), spent, joined)

    def _proposed(self, open_: Open, places: Ints, best: _Best, spending: _Best) -> dict[int, tuple[Ints, Proposals]]:
        """The splits of parts at some places by each attribute, and the places of the parts that it divides."""
        proposals, small = {}, None
        if not self._counting.entities and not self._budget:
            # Of two labels one would fail, and be suppressed.
            small = self._counts.rows(open_.parts[places]) < 2 * self._judge.least
        for attribute in range(len(self.ladders)):
            divided = open_.grain[places, attribute] >= 0
            there = places[divided]
            if not len(there):
                continue
            parts = open_.select(there)
            atoms = self._counting.labels(
                attribute, parts.parts, parts.grain[:, attribute], None if small is None else small[divided]
            )
            if len(atoms.parts) < len(there):
                stays = np.searchsorted(parts.parts, atoms.parts)
                there, parts = there[stays], parts.select(stays)
            proposed = self._proposer.propose(attribute, parts, atoms, self._budget)
            proposals[attribute] = there, proposed
            plain, spends = proposed.kind >= 0, proposed.suppressed > 0
            best.add(there[plain], attribute, proposed.worth[plain])
            spending.add(there[spends], attribute, proposed.spending[spends])
        return proposals

    def _known(self, open_: Open) -> Chosen:
        """The split of each part that the tree has one of."""
        attributes, levels = self._tree.splits.ways(open_.parts)
        proposals = {}
        for attribute in distinct(attributes[attributes >= 0]).tolist():
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
        for attribute in distinct(chosen.attribute[chosen.attribute >= 0]).tolist():
            here = np.flatnonzero(chosen.attribute == attribute)
            proposed = chosen.proposals[attribute]
            atoms, child = proposed.atoms, self._children(open_.parts[here], proposed, chosen.spent[here])
            there = np.flatnonzero(child >= 0)
            children = distinct(child[there])
            number, first = np.full(len(child), -1, dtype=np.int64), np.zeros(len(children), dtype=np.int64)
            number[there] = np.searchsorted(children, child[there])
            first[number[there]] = there
            groups = in_order(self._counting.by_group(attribute, atoms, number, len(children)))
            self._add(groups, children)
            shown = groups.rows > 0
            if self._suppressed:
                shown &= ~np.isin(children, list(self._suppressed))
            parents = open_.select(np.searchsorted(open_.parts, atoms.part[first[shown]]))
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
        labels = self._tree.numbers[children, attribute]
        for column, name in ((opened.leaves, "leaves"), (opened.grain, "grain"), (opened.first, "first")):
            column[:, attribute] = self.ladders[attribute].fact(name, labels)
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
            child[there] = tree.children(proposed.attribute, atoms.part[there], atoms.code[there])
            return child
        kind = np.where(suppressing, KINDS.index("each"), proposed.kind)
        group = np.where(suppressing[place], -1, proposed.group)
        child[there] = self._divide(proposed, at, kind, group)[there]
        self._suppressed.update(child[proposed.failing & suppressing[place]].tolist())
        return child

    def _divide(self, proposed: Proposals, at: Ints, kind: Ints, group: Ints) -> Ints:
        """Give the tree the splits of parts; int64[atoms], the child that each of their labels is in. at: the places of
        the parts, ascending; kind: int64[P]; group: int64[atoms], -1 for labels that stand alone."""
        atoms, number = proposed.atoms, np.zeros(len(proposed.atoms.parts), dtype=np.int64)
        split = np.zeros(len(number), dtype=bool)
        split[at] = True
        place = atoms.place
        alone = (group < 0) & split[place]
        number[at] = np.diff(np.concatenate(([0], np.cumsum(alone)))[atoms.start])[at]
        levels = atoms.level[atoms.start[:-1]]
        cuts = np.where(kind == KINDS.index("cut"), atoms.code[proposed.at], 0)
        codes, first = (atoms.code[alone], number[at]), np.zeros(len(number), dtype=np.int64)
        first[at] = self._tree.divide(
            proposed.attribute, atoms.parts[at], levels[at], kind[at], codes, cuts[at], proposed.null[at]
        )
        before = np.cumsum(number) - number
        child: Ints = first[place] + np.where(alone, np.cumsum(alone) - 1 - before[place], number[place] + group)
        return child

    def _add(self, groups: Groups, parts: Ints) -> None:
        """Keep the counts of parts that hold rows."""
        self._empty.append(groups.select(np.flatnonzero(groups.rows == 0)))
        there = np.flatnonzero(groups.rows > 0)
        self._counts.add(groups.select(there), parts[there])

    def path(self, parts: Ints, column: int) -> Sequence[Containing]:
        """The parts on the way to each of these, as blocks: one node of them for each depth."""
        distinct_parts, place = np.unique(parts, return_inverse=True)
        paths = [self._tree.path(part) for part in distinct_parts.tolist()]
        levels = []
        for depth in range(max(map(len, paths), default=0)):
            # A shorter path ends in the part itself, which contains itself.
            at = [path[min(depth, len(path) - 1)] for path in paths]
            there, index = np.unique(np.array(at, dtype=np.int64), return_inverse=True)
            blocks: Blocks = blocks_of(self._counts.of(there), column)
            levels.append(Containing(blocks, index.reshape(-1)[place.reshape(-1)]))
        return levels
