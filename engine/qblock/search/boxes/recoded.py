"""A recoding map: the search for it, its boxes, how they read, and what the models and metrics say of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import sqlalchemy as sa

from qblock.blocks import Ints
from qblock.errors import QblockError
from qblock.frequency import FrequencySets
from qblock.lattice import Node
from qblock.metrics.boxes import MEASURED, Boxes, BoxLeaves, map_answers
from qblock.metrics.formulas import Answers
from qblock.metrics.registry import BY_NAME, Needs
from qblock.recoding import Label, Ladder, Tree, replay
from qblock.search.assessment import Assessment, NodeCounts, same, tightest_of
from qblock.search.boxes.arrays import InMemory, InPortions
from qblock.search.boxes.counting import (
    Counting,
    Judge,
    PartCounting,
    Parted,
    Path,
    Sizes,
    every_kind,
    kinds_of,
    with_guards,
    with_population,
)
from qblock.search.boxes.groups import added
from qblock.search.boxes.propose import Gain
from qblock.search.boxes.rows import Loaded, bytes_of, packing_of
from qblock.search.boxes.specialize import Specialization, Specialized
from qblock.search.lattice import Tally
from qblock.search.task import Task
from qblock.search.utility import Metrics
from qblock.search.workload import workload_of
from qblock.source import ladders_of, stated_map
from qblock.source.in_words import SUPPRESSED

Start = Literal["top", "node"]
LARGE = 1_000_000
"""Rows of a table of which a second search would cost much and bring little (docs/recoding.md)."""
NOISE = 1e-12
"""Of a loss that is computed in two ways."""


@dataclass(frozen=True, eq=False)
class Recoded:
    """A map. start: whether the splits began at the top or at the chosen full-domain node; known: the map as it is
    kept, where it was not searched for; counted: by what its parts were."""

    task: Task
    specialized: Specialized
    judge: Judge
    start: Start
    path: Path
    counted: PartCounting
    known: Mapping[str, Any] | None = None

    @cached_property
    def kept(self) -> Ints:
        """The places of the boxes that are published."""
        return np.flatnonzero(~self.specialized.suppressed)

    @cached_property
    def published(self) -> Ints:
        """The parts that they are."""
        return self.specialized.boxes[self.kept]

    @cached_property
    def texts(self) -> dict[Label, str]:
        """How each label reads."""
        suppressed = self.specialized.boxes[self.specialized.suppressed]
        return self.specialized.tree.texts(self.published, hidden=suppressed)

    @cached_property
    def boxes(self) -> list[tuple[str, ...]]:
        """The labels of each published box, sorted: the public part of the map."""
        tree, columns = self.specialized.tree, []
        for ladder, numbers in zip(tree.ladders, tree.numbers[self.published].T, strict=True):
            read = {number: self.texts[ladder.labels[number]] for number in np.unique(numbers).tolist()}
            columns.append([read[number] for number in numbers.tolist()])
        return sorted(zip(*columns, strict=True))

    @cached_property
    def assessment(self) -> Assessment:
        """The verdict over the boxes. Its node is that where the splits began."""
        groups, suppressed = self.specialized.groups, self.specialized.suppressed
        boxes = self.specialized.boxes
        parts = tuple(self.judge.parts(groups, boxes, self.path, self.specialized.empty))
        common = self.judge.held_by_all(groups)
        keys, small = self.specialized.tree.fact("code", boxes), groups.size < self.task.spec.least_box
        counts = NodeCounts(self.specialized.tree.start, keys, groups.rows, parts, common, small)
        kept = ~suppressed
        tightest = tuple(tightest_of(parts, kept) for parts in counts.parts)
        satisfied = not (counts.failing & kept).any()
        return Assessment(counts, satisfied, kept, self.specialized.suppressed_rows, tightest)

    @cached_property
    def stated(self) -> dict[str, Any]:
        """The map as it is kept."""
        if self.known is not None:
            return dict(self.known)
        return stated_map(self.specialized.tree, self.texts, self.specialized.boxes.tolist())

    def metrics(self, names: Sequence[str]) -> dict[str, float]:
        """Metrics by name, those that a map has, in that order."""
        return {name: self._measured(BY_NAME[name].needs).of(name) for name in names if name in MEASURED}

    def answers(self) -> Answers:
        """Of each query of the workload, from what the map publishes."""
        return map_answers(self._measured("workload"))

    def to_json(self) -> dict[str, Any]:
        """The map as an answer has it: how many boxes, and how much of each attribute is shown at which level."""
        return {
            "boxes": len(self.kept),
            "suppressed_boxes": int(self.specialized.suppressed.sum()),
            "rounds": self.specialized.rounds,
            "start": self.start,
            "begun": list(self.specialized.tree.start),
            "attributes": self.shares(),
        }

    def loss(self) -> float:
        return self._plain.of("loss")

    def shares(self) -> list[dict[str, Any]]:
        """How much of each quasi-identifier is published with labels of each kind."""
        tree, rows, counted = self.specialized.tree, self.specialized.groups.rows[self.kept], []
        for ladder, numbers in zip(tree.ladders, tree.numbers[self.published].T, strict=True):
            distinct, place = np.unique(numbers, return_inverse=True)
            total = added(rows, place.reshape(-1), len(distinct))
            counted.append([(ladder.labels[i], n) for i, n in zip(distinct.tolist(), total.tolist(), strict=True)])
        return shares(tree.ladders, self.texts, counted)

    def hidden(self) -> list[int]:
        """The quasi-identifiers that a published box does not show as they are."""
        return np.flatnonzero((self._leaves_of_labels > 1).any(axis=0)).tolist()

    def suppresses(self, attribute: int) -> bool:
        """Whether every published box has all values of an attribute under one label."""
        size = self.specialized.tree.ladders[attribute].size
        return size > 1 and bool((self._leaves_of_labels[:, attribute] == size).all())

    @cached_property
    def _leaves_of_labels(self) -> Ints:
        """int64[boxes, Q]: how many leaves the labels of published boxes stand for."""
        return self.specialized.tree.fact("leaves", self.published)

    def _measured(self, needs: Needs) -> Boxes:
        """What a metric is computed from: the workload may restrict another sensitive attribute than the first."""
        if needs not in ("leaf", "workload"):
            return self._plain
        sensitive, workload = workload_of(self.task.source) if needs == "workload" else (0, ())
        return replace(self._plain, of_leaves=self.leaves(sensitive), queries=workload)

    def leaves(self, sensitive: int) -> BoxLeaves:
        """The leaves of the source in each box, with a sensitive attribute by its number."""
        if sensitive not in self._by_sensitive:
            self._by_sensitive[sensitive] = self._leaves(sensitive)
        return self._by_sensitive[sensitive]

    @cached_property
    def _by_sensitive(self) -> dict[int, BoxLeaves]:
        """The leaves with each sensitive attribute that was asked for, by its number."""
        return {}

    @cached_property
    def _plain(self) -> Boxes:
        source, rows = self.task.source, self.specialized.groups.rows[self.kept]
        heights = np.array([max(hierarchy.height, 1) for hierarchy in source.hierarchies])
        # A label of several counts as the one that they are part of.
        steps = self.specialized.tree.fact("level", self.published) / heights
        return Boxes(source.hierarchies, source.rows, rows, self._leaves_of_labels, steps, self.task.spec.weights)

    def _leaves(self, number_of_sensitive: int) -> BoxLeaves:
        source, tree = self.task.source, self.specialized.tree
        sensitive = (number_of_sensitive,) if source.sensitives else ()
        codes, values, n, part = self._parts_of_leaves(sensitive)
        value = values[:, 0] if sensitive else np.zeros_like(n)
        number = np.full(len(tree), -1, dtype=np.int64)
        number[self.published] = np.arange(len(self.published))
        label, lists = np.zeros((len(self.published), len(tree.ladders)), dtype=np.int64), []
        for i, ladder in enumerate(tree.ladders):
            used, place = np.unique(tree.numbers[self.published, i], return_inverse=True)
            label[:, i] = place.reshape(-1)
            lists.append(tuple(np.flatnonzero(ladder.leaf_sets(ladder.labels[of])) for of in used.tolist()))
        return BoxLeaves(codes, value, n, np.where(part < 0, -1, number[part]), label, tuple(lists))

    def _parts_of_leaves(self, sensitive: tuple[int, ...]) -> tuple[Ints, Ints, Ints, Ints]:
        """The leaves of the source with their values and rows, as `FrequencySets.leaf_counts`, and the part that each
        is in, -1 where it is suppressed."""
        sets = self.task.source.frequency_sets
        if isinstance(self.counted, InMemory):
            told = tuple(i for i, name in enumerate(self.task.source.sensitives) if name in self.judge.columns)
            if told == sensitive and not self.counted.entities:
                return self.counted.leaves()
            codes, values, n = sets.leaf_counts(sensitive)
            return codes, values, n, self.counted.boxes_of(codes)
        parted = Parted(sets, sensitive, entities=False)
        keys, leaves = parted.keys, parted.leaves
        replay(self.specialized.tree, leaves, keys)
        names = ["part", *(f"k{i}" for i in keys.used), "n"]
        columns = sets.session.counts(sa.select(*(leaves.table.c[name].label(name) for name in names)))
        leaves.drop()
        words = keys.words([columns[f"k{i}"] for i in keys.used])
        values = np.zeros((len(words[0]), len(sensitive)), dtype=np.int64)
        for i, of in enumerate(sensitive):
            values[:, i] = sets.coding.values(of, words)
        return sets.coding.keys(sets.lattice.bottom, words), values, columns["n"], columns["part"]


def check_same(again: Assessment, recoded: Recoded) -> None:
    """Hold what is counted of the recoded source to what the search counted. Raises QblockError."""
    searched = recoded.assessment
    rows, expected = np.sort(again.counts.rows), np.sort(searched.counts.rows)
    verdicts = zip(again.tightest, searched.tightest, strict=True)
    counted = np.array_equal(rows, expected) and again.suppressed == searched.suppressed
    if not counted or not all(same(first, second) for first, second in verdicts):
        raise QblockError(
            "the boxes of the recoding map are not those that the search counted; this is a fault of qblock or of the "
            "database, and nothing may be published from it"
        )


def shares(
    ladders: Sequence[Ladder], read: Mapping[Label, str], counted: Sequence[Sequence[tuple[Label, int]]]
) -> list[dict[str, Any]]:
    """For each quasi-identifier, the share of the rows with labels of each kind: of a level, or of several labels of a
    level; like: the label of the kind that most of them have. read: how labels read; counted: the labels of each
    quasi-identifier with their rows.
    """
    entries = []
    for ladder, labels in zip(ladders, counted, strict=True):
        kinds: dict[tuple[int, str], Counter[str]] = {}
        suppressed, total = 0, max(1, sum(rows for _, rows in labels))
        for label, rows in labels:
            if label.leaves == ladder.size > 1:
                suppressed += rows
            else:
                kinds.setdefault((label.level, label.form), Counter())[read[label]] += rows
        shown = [
            {
                "level": level,
                "name": ladder.hierarchy.level_names[level],
                "form": form,
                "like": min(texts, key=lambda text: (-texts[text], text)),
                "share": sum(texts.values()) / total,
            }
            for (level, form), texts in sorted(kinds.items())
        ]
        attribute = {"attribute": ladder.hierarchy.attribute, "suppressed": suppressed / total, "labels": shown}
        cells = ladder.hierarchy.cells is not None
        words = "has one value" if ladder.size == 1 else shares_in_words(shown, suppressed / total, cells=cells)
        entries.append({**attribute, "words": words})
    return entries


def shares_in_words(
    labels: Sequence[dict[str, Any]], suppressed: float, *, cells: bool = False, most: int | None = None
) -> str:
    """What readers see of an attribute: `groups like 15-19 for 71 %, suppressed for 7 %`. cells: whether level 0 is;
    most: how many of these are said, those that most rows have, and how many more there are."""
    parts = []
    for label in labels:
        what = {"plain": "groups like {}", "range": "ranges like {}", "rest": "several together like {}"}[label["form"]]
        as_it_is = label["form"] == "plain" and not label["level"] and not cells
        parts.append((label["share"], "as it is" if as_it_is else what.format(label["like"])))
    parts += [(suppressed, SUPPRESSED)] if suppressed else []
    shown = parts if most is None else sorted(parts, key=lambda part: -part[0])[:most]
    said = [f"{what} for {percent(share)}" for share, what in shown]
    return ", ".join(said if len(shown) == len(parts) else [*said, f"{len(parts) - len(shown)} more"])


def percent(share: float) -> str:
    """A share as people write it, never rounded to nothing or to all."""
    if 0 < share < 0.01:
        return "under 1 %"
    return "over 99 %" if 0.99 < share < 1 else f"{100 * share:.0f} %"


class _Beginnings:
    """Searches of one table, each of which begins anew."""

    def __init__(self, task: Task) -> None:
        self.task = task
        source, spec = task.source, task.spec
        index = {name: i for i, name in enumerate(source.sensitives)}
        looked_at = {index[name] for requirement in spec.privacy for name in requirement.sensitive}
        if task.forbids_held_by_all:
            looked_at.update(index.values())
        self._divergence = spec.search.choose_by == "kl_divergence"
        if self._divergence and source.sensitives:
            looked_at.add(0)
        self._needed = sorted(looked_at)
        self._populations = [task.population_sets(requirement) for requirement in with_population(spec.privacy)]
        self._guards = [task.guard_frequency_sets(requirement) for requirement in with_guards(spec.privacy)]

    def specialization(
        self, *, by_sizes: bool, ladders: Sequence[Ladder] | None = None
    ) -> tuple[Specialization, Judge, PartCounting]:
        """A search that has not begun, who judges its boxes, and what counts them. ladders: of a known map."""
        task, needed = self.task, self._needed
        ladders = self._ladders() if ladders is None else tuple(ladders)
        column = needed.index(0) if self._divergence and needed else None
        weights = task.spec.weights
        gain = Gain(task.spec.search.choose_by, ladders, task.source.rows, weights, column)
        judge = Judge(task, needed)
        judged = Sizes(task.least) if by_sizes else judge
        counting = self._counting(ladders)
        return Specialization(counting, ladders, judged, gain, task.budget), judge, counting

    def _ladders(self) -> tuple[Ladder, ...]:
        """New ones for each search: how a group of labels reads depends on what it was first divided from."""
        source = self.task.source
        return ladders_of(self.task.spec, source.hierarchies, source.columns)

    def _counting(self, ladders: Sequence[Ladder]) -> PartCounting:
        """Counts all rows as one part."""
        own, needed, populations, guards = self._own, self._needed, self._populations, self._guards
        names = list(self.task.source.sensitives)
        columns = {names[i]: column for column, i in enumerate(needed)}
        kinds = kinds_of(self.task.spec.privacy, columns) if own.entities else every_kind(len(needed))
        if self._loaded is not None:
            return InMemory(ladders, packing_of(ladders), self._loaded, len(populations), kinds=kinds)
        if self._stays:
            return Counting(own, ladders, needed, populations, guards, kinds)
        at_once = own.memory // bytes_of(packing_of(ladders), own, 1)
        return InPortions(own, ladders, needed, populations, guards, kinds, at_once)

    @property
    def _own(self) -> FrequencySets:
        return self.task.source.frequency_sets

    @property
    def _stays(self) -> bool:
        """Whether a spec says that rows stay where they are."""
        return self.task.spec.search.roll_up == "warehouse"

    @cached_property
    def _loaded(self) -> list[Loaded] | None:
        """The rows of all tables; None where they do not fit, or stay where they are."""
        packing, tables = packing_of(self._ladders()), [self._own, *self._populations, *self._guards]
        fits = sum(bytes_of(packing, sets, sets.rows) for sets in tables) <= self._own.memory
        if not fits or self._stays:
            return None
        told = [self._needed, *[()] * len(self._populations), *[(0,)] * len(self._guards)]
        return [Loaded.from_sets(packing, *of) for of in zip(tables, told, strict=True)]


def search_map(
    task: Task, node: Node | None, new_tally: Callable[[], Tally | None], over: Callable[[], bool] = lambda: False
) -> Recoded | None:
    """The map with less loss of those that begin at the top and at a node; None where neither can begin.

    Of LARGE tables the second is searched for where the first loses more than the node. node: that full-domain recoding
    would take, None where there is none. new_tally: gives what is told of each of them: the boxes that are done, and
    the parts that are open; over: whether the time is over, after which no round begins.
    """
    beginnings, top = _Beginnings(task), task.lattice.top
    best = _search_from(beginnings, "top", top, new_tally(), over)
    if node is None:
        return best
    metrics = Metrics(task, by_sizes=task.spec.search.choose_from == "sizes")

    def worse(recoded: Recoded | None) -> bool:
        """Whether it loses more than the node."""
        return recoded is None or recoded.loss() > float(metrics.rank(node, "loss")) + NOISE

    if node != top and (task.source.rows < LARGE or worse(best)):
        second = _search_from(beginnings, "node", node, new_tally(), over)
        best = second if best is None or (second is not None and second.loss() < best.loss()) else best
    if best is not None and task.budget and worse(best):
        # Rows were suppressed for what a split gains by another metric, or of some attributes alone.
        recoded = _search_from(beginnings, "node", node, new_tally(), over, spend=False)
        best = best if recoded is None else recoded
    return best


def count_map(task: Task, stated: Mapping[str, Any], tally: Tally | None) -> Recoded:
    """A map that is known, over what the source holds now. stated: the map as it is kept.

    Raises InputError where a hierarchy that it cuts does not keep the order of its values any more.
    """
    specialization, judge, counting = _Beginnings(task).specialization(by_sizes=False)
    tree = Tree.of_json(stated, specialization.ladders)
    boxes = specialization.follow(tree, tally)
    start: Start = "top" if tree.start == task.lattice.top else "node"
    return Recoded(task, boxes, judge, start, specialization.path, counting, stated)


def count_again(task: Task, recoded: Recoded) -> Recoded:
    """A map of the same source, counted by the models of another task."""
    tree = recoded.specialized.tree
    specialization, judge, counting = _Beginnings(task).specialization(by_sizes=False, ladders=tree.ladders)
    boxes = specialization.follow(tree)
    return Recoded(task, boxes, judge, recoded.start, specialization.path, counting)


def map_of_node(task: Task, node: Node) -> Recoded:
    """A node as a map: its blocks are the boxes, and nothing is split."""
    specialization, judge, counting = _Beginnings(task).specialization(by_sizes=False)
    boxes = specialization.follow(Tree(specialization.ladders, node))
    return Recoded(task, boxes, judge, "node", specialization.path, counting)


def _search_from(
    beginnings: _Beginnings,
    start: Start,
    node: Node,
    tally: Tally | None,
    over: Callable[[], bool],
    *,
    spend: bool = True,
) -> Recoded | None:
    task = beginnings.task
    specialization, judge, counting = beginnings.specialization(by_sizes=task.spec.search.choose_from == "sizes")
    boxes = specialization.run(node, tally, over, spend=spend)
    return None if boxes is None else Recoded(task, boxes, judge, start, specialization.path, counting)
