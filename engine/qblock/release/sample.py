"""People of a table in memory, for a simulation of the job: boxes, verdicts, and what a view of them is good for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sqlalchemy as sa

from qblock.blocks import Floats, Ints, Mask
from qblock.hierarchy import Hierarchy
from qblock.lattice import Node
from qblock.metrics.boxes import Boxes
from qblock.metrics.formulas import Query
from qblock.recoding import Label, Ladder, Tree
from qblock.search.boxes.counting import Judge, Parted, Sizes
from qblock.search.boxes.division import People, divide, specialize
from qblock.search.boxes.groups import Groups
from qblock.search.boxes.propose import Gain
from qblock.search.task import Task
from qblock.search.workload import workload_of
from qblock.source import ladders_of
from qblock.spec.workload import WrittenWorkload
from qblock.versions.batching.year import SEED, Divide

MOST_PEOPLE = 100_000
"""Of a table with more, as many are drawn."""
QUERIES, TRIED, SHARE = 400, 4000, 0.01
FLOOR = 1000
"""Errors of counts below this part of the people are not relative to the truth."""


@dataclass(frozen=True, eq=False)
class Sample:
    """leaves: int64[N, Q], codes; values: int64[N, S], codes of the sensitive ones; people: of the table, N or more."""

    task: Task
    ladders: tuple[Ladder, ...]
    leaves: Ints
    values: Ints
    people: int

    @property
    def hierarchies(self) -> tuple[Hierarchy, ...]:
        return tuple(self.task.source.hierarchies)

    @cached_property
    def unguarded(self) -> Task | None:
        """Asks what the values of a group tell, and nothing of who guards predicates; None where nothing is left."""
        kept = [requirement for requirement in self.task.spec.privacy if requirement.guards is None]
        if len(kept) == len(self.task.spec.privacy):
            return self.task
        return self.task.with_privacy(kept) if kept else None

    def judge(self, least: int) -> Judge | Sizes:
        """Says which groups of people pass. least: people of a group."""
        if self.unguarded is None:
            return Sizes(max(least, self.task.implied))
        return Judge(self.unguarded, range(self.values.shape[1]), least)

    @cached_property
    def _judge(self) -> Judge | Sizes:
        return self.judge(1)

    @cached_property
    def _joint(self) -> tuple[Ints, Ints]:
        """The combinations of values, and the number of each person's."""
        distinct, number = np.unique(self.values, axis=0, return_inverse=True)
        return distinct, number.reshape(-1)

    def fails(self, group: Ints, rows: Ints, number: int) -> Mask:
        """Which groups fail, by the group of each of some people and the row that each is like."""
        distinct, joint = self._joint
        keys, n = np.unique(group * len(distinct) + joint[rows], return_counts=True)
        size = np.bincount(group, minlength=number).astype(np.int64)
        groups = Groups(keys // len(distinct), distinct[keys % len(distinct)], n.astype(np.int64), size, size)
        return self._judge.failing(groups, np.zeros(number, dtype=np.int64), lambda parts, column: ())


def sample_of(task: Task) -> Sample:
    """The people of an open source, each with one row; some of them where they are many."""
    source, sets = task.source, task.source.frequency_sets
    every = tuple(range(len(source.sensitives)))
    parted = Parted(sets, every, entities=False)
    keys, leaves = parted.keys, parted.leaves
    names = [*(f"k{i}" for i in keys.used), "n"]
    columns = sets.session.counts(sa.select(*(leaves.table.c[name].label(name) for name in names)))
    leaves.drop()
    people = int(columns["n"].sum())
    coded, n = [columns[name] for name in names[:-1]], columns["n"]
    if people > MOST_PEOPLE:
        coded, n = _drawn_people(coded, n)
    words = keys.words(coded)
    codes = sets.coding.keys(sets.lattice.bottom, words)
    values = [sets.coding.values(i, words) for i in every]
    held = np.stack(values, axis=1) if values else np.zeros((len(codes), 0), dtype=np.int64)
    # The order in which a database gives them is chance.
    order = np.lexsort((*held.T, *codes.T))
    row = np.repeat(order, n[order])
    ladders = ladders_of(task.spec, source.hierarchies, source.columns)
    return Sample(task, ladders, codes[row].astype(np.int64), held[row].astype(np.int64), people)


def _drawn_people(words: Sequence[Ints], n: Ints) -> tuple[list[Ints], Ints]:
    """Some of the people, by combination: before these are decoded, since there may be very many."""
    order = np.lexsort(list(words))
    people = np.random.default_rng(SEED).choice(int(n.sum()), MOST_PEOPLE, replace=False)
    rows, drawn = np.unique(order[np.searchsorted(np.cumsum(n[order]), people, side="right")], return_counts=True)
    return [word[rows] for word in words], drawn.astype(np.int64)


class Maps:
    """Boxes of several maps, by number. node: of the first version, below whose levels no box has a label; labels: of
    each box."""

    def __init__(self, sample: Sample, node: Node | None = None) -> None:
        self._sample, self._at_node = sample, node is not None
        source, spec = sample.task.source, sample.task.spec
        self._ladders = sample.ladders if node is None else ladders_of(spec, source.hierarchies, source.columns, node)
        self.labels: list[tuple[Label, ...]] = []

    def add(self, tree: Tree, parts: Ints) -> Ints:
        """The number of each person's box, by parts of a map."""
        distinct, place = np.unique(parts, return_inverse=True)
        first = len(self.labels)
        for part in distinct.tolist():
            labels = tree.labels[part]
            # Several of one parent read as it does, where readers filter by levels.
            self.labels.append(tuple(label.within or label for label in labels) if self._at_node else labels)
        return first + place.reshape(-1)

    def base(self, least: int) -> Ints | None:
        """The box of each person in a map whose boxes have so many people and pass; None where there is none.

        The splits are chosen as the search chooses them from the top.
        """
        sample, spec = self._sample, self._sample.task.spec
        by, by_sizes = spec.search.choose_by, spec.search.choose_from == "sizes"
        judge = Sizes(least) if by_sizes else sample.judge(least)
        column = 0 if by == "kl_divergence" and sample.values.shape[1] else None
        gain = Gain(by, sample.ladders, len(sample.leaves), spec.weights, column)
        tree = specialize(People(sample.ladders, sample.leaves, sample.values), judge, gain)
        if tree is None:
            return None
        box = self.add(tree, tree.assign(sample.leaves))
        group = box - int(box.min())
        failing = sample.fails(group, np.arange(len(group)), int(group.max()) + 1)
        return None if failing.any() else box

    def cohorts(self, least: int) -> Divide:
        """Divides newcomers, whose boxes have so many people at least."""
        sample = self._sample

        def boxes(rows: Ints) -> Ints:
            weights = sample.task.spec.weights
            tree, part = divide(self._ladders, sample.leaves[rows], least, weights, cuts=not self._at_node)
            return self.add(tree, part)

        return boxes


def loss_of(sample: Sample, labels: Sequence[tuple[Label, ...]], people: Ints) -> float:
    """The loss of people [B] in boxes with these labels."""
    there = np.flatnonzero(people)
    leaves = np.array([[label.leaves for label in labels[i]] for i in there.tolist()], dtype=np.int64)
    leaves = leaves.reshape(len(there), len(sample.ladders))
    steps, rows = np.zeros(leaves.shape), int(people.sum())
    return Boxes(sample.hierarchies, rows, people[there], leaves, steps, sample.task.spec.weights).of("loss")


class Workload:
    """Counts that readers may ask for: those of the spec, or drawn ones. people: the rows that all are like."""

    def __init__(self, sample: Sample, people: Ints) -> None:
        self._sample, self._sensitive = sample, 0
        if isinstance(sample.task.spec.search.workload, WrittenWorkload):
            self._sensitive, self.queries = workload_of(sample.task.source)
        else:
            self.queries = _drawn(sample)
        self._truth = np.array([self._true(query, people) for query in self.queries])
        self._least = len(people) / FLOOR

    def _values(self, rows: Ints) -> Ints:
        values = self._sample.values
        return values[rows, self._sensitive] if values.shape[1] else np.zeros(len(rows), dtype=np.int64)

    def _true(self, query: Query, people: Ints) -> int:
        there = np.ones(len(people), dtype=bool)
        for attribute, wanted in enumerate(query.leaves):
            if wanted is not None:
                there &= np.isin(self._sample.leaves[people, attribute], wanted)
        if query.values is not None:
            there &= np.isin(self._values(people), query.values)
        return int(there.sum())

    def errors(
        self, labels: Sequence[tuple[Label, ...]], box: Ints, rows: Ints, weights: Mapping[str, Floats]
    ) -> dict[str, float]:
        """The median error of the counts, relative to the truth, for each way to weigh the rows of a view.

        box: of each row of the view; rows: the row of the table that each is like. Rows are spread evenly over the
        leaves of their box.
        """
        values = self._values(rows)
        span = int(values.max(initial=0)) + 1
        pairs, place = np.unique(box * span + values, return_inverse=True)
        place = place.reshape(-1)
        boxes, value = pairs // span, pairs % span
        share = _Shares(self._sample, [labels[i] for i in boxes.tolist()])
        parts = [
            share.of(query) * (np.isin(value, query.values) if query.values is not None else 1.0)
            for query in self.queries
        ]
        errors = {}
        for name, weight in weights.items():
            counted = np.bincount(place, weights=weight, minlength=len(pairs))
            estimates = np.array([float(part @ counted) for part in parts])
            away = np.abs(estimates - self._truth) / np.maximum(self._truth, self._least)
            errors[name] = float(np.median(away)) if len(away) else 0.0
        return errors


def _drawn(sample: Sample) -> tuple[Query, ...]:
    """Counts of people who are in a group of each of two hierarchies, at least one in a hundred of all."""
    rng, queries, hierarchies = np.random.default_rng(SEED), [], sample.hierarchies
    width = len(hierarchies)
    for _ in range(TRIED):
        leaves: list[tuple[int, ...] | None] = [None] * width
        there = np.ones(len(sample.leaves), dtype=bool)
        for attribute in rng.choice(width, size=min(2, width), replace=False).tolist():
            hierarchy = hierarchies[attribute]
            codes = hierarchy.codes[int(rng.integers(max(1, hierarchy.height)))]
            group = np.flatnonzero(codes == rng.choice(codes))
            leaves[attribute] = tuple(group.tolist())
            there &= np.isin(sample.leaves[:, attribute], group)
        if there.mean() >= SHARE:
            queries.append(Query(tuple(leaves)))
        if len(queries) == QUERIES:
            break
    return tuple(queries)


class _Shares:
    """How much of some boxes a query asks for."""

    def __init__(self, sample: Sample, labels: Sequence[tuple[Label, ...]]) -> None:
        self._number = len(labels)
        self._of: list[tuple[Ints, Floats]] = []
        for attribute, ladder in enumerate(sample.ladders):
            distinct = {id(of[attribute]): of[attribute] for of in labels}
            place = {key: i for i, key in enumerate(distinct)}
            index = np.array([place[id(of[attribute])] for of in labels], dtype=np.int64)
            sets = np.array([ladder.leaf_sets(label) for label in distinct.values()], dtype=np.float64)
            self._of.append((index, sets / sets.sum(axis=1, keepdims=True)))

    def of(self, query: Query) -> Floats:
        shares: Floats = np.ones(self._number)
        for (index, sets), wanted in zip(self._of, query.leaves, strict=True):
            if wanted is not None:
                shares *= sets[:, list(wanted)].sum(axis=1)[index]
        return shares
