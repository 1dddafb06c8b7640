"""What a search for a recoding map found: its boxes, how they read, and what the models and metrics say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import sqlalchemy as sa

from qblock.blocks import Floats, Ints
from qblock.errors import QblockError
from qblock.frequency.coding import Mask as Bits
from qblock.metrics.boxes import MEASURED, Boxes, BoxLeaves
from qblock.metrics.registry import BY_NAME, Needs
from qblock.recoding import Keys, Label, PartedLeaves, replay
from qblock.search.assessment import Assessment, NodeCounts, combine, same
from qblock.search.recoding.judge import Judge, Path
from qblock.search.recoding.shares import shares
from qblock.search.recoding.specialize import Specialized
from qblock.search.task import Task
from qblock.search.utility.workload_of_spec import workload_of
from qblock.source import stated_map
from qblock.warehouse import queries

Start = Literal["top", "node"]


@dataclass(frozen=True, eq=False)
class Recoded:
    """A map. start: whether the splits began at the top or at the chosen full-domain node; known: the map as it is
    kept, where it was not searched for."""

    task: Task
    specialized: Specialized
    judge: Judge
    start: Start
    path: Path
    known: Mapping[str, Any] | None = None

    @property
    def kept(self) -> list[int]:
        """The places of the boxes that are published."""
        return np.flatnonzero(~self.specialized.suppressed).tolist()

    @cached_property
    def texts(self) -> dict[Label, str]:
        """How each label reads."""
        boxes = self.specialized.boxes
        # What is published is numbered first: readers see no gap.
        published = dict.fromkeys(boxes[i] for i in self.kept)
        return self.specialized.tree.texts([*published, *(box for box in boxes if box not in published)])

    @cached_property
    def boxes(self) -> list[tuple[str, ...]]:
        """The labels of each published box, sorted: the public part of the map."""
        labels = self.specialized.labels
        return sorted(tuple(self.texts[label] for label in labels[i]) for i in self.kept)

    @cached_property
    def assessment(self) -> Assessment:
        """The verdict over the boxes. Its node is that where the splits began."""
        groups, suppressed = self.specialized.groups, self.specialized.suppressed
        boxes = np.array(self.specialized.boxes, dtype=np.int64)
        parts = tuple(self.judge.parts(groups, boxes, self.path, self.specialized.empty))
        common = self.judge.held_by_all(groups)
        keys = np.array([[label.codes[0] for label in labels] for labels in self.specialized.labels], dtype=np.int64)
        counts = NodeCounts(self.specialized.tree.start, keys.reshape(len(groups), -1), groups.rows, parts, common)
        kept = ~suppressed
        tightest = tuple(combine([part.tightest(kept) for part in parts], parts[0].model) for parts in counts.parts)
        satisfied = not (counts.failing & kept).any()
        return Assessment(counts, satisfied, kept, self.specialized.suppressed_rows, tightest)

    @cached_property
    def stated(self) -> dict[str, Any]:
        """The map as it is kept."""
        if self.known is not None:
            return dict(self.known)
        return stated_map(self.specialized.tree, self.texts, self.specialized.boxes)

    def metrics(self, names: Sequence[str]) -> dict[str, float]:
        """Metrics by name, those that a map has, in that order."""
        return {name: self._measured(BY_NAME[name].needs).of(name) for name in names if name in MEASURED}

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
        rows, labels = self.specialized.groups.rows, self.specialized.labels
        return shares(self.specialized.tree.ladders, self.texts, [(labels[i], int(rows[i])) for i in self.kept])

    def hides(self, attribute: int) -> bool:
        """Whether every published box has all values of an attribute under one label."""
        size = self.specialized.tree.ladders[attribute].size
        return size > 1 and all(self.specialized.labels[place][attribute].leaves == size for place in self.kept)

    def _measured(self, needs: Needs) -> Boxes:
        """What a metric is computed from: the workload may restrict another sensitive attribute than the first."""
        if needs not in ("leaf", "workload"):
            return self._plain
        sensitive, workload = workload_of(self.task.source) if needs == "workload" else (0, ())
        if sensitive not in self._by_sensitive:
            self._by_sensitive[sensitive] = self._leaves(sensitive)
        return replace(self._plain, of_leaves=self._by_sensitive[sensitive], queries=workload)

    @cached_property
    def _by_sensitive(self) -> dict[int, BoxLeaves]:
        """The leaves with each sensitive attribute that was asked for, by its number."""
        return {}

    @cached_property
    def _plain(self) -> Boxes:
        source = self.task.source
        labels = [self.specialized.labels[i] for i in self.kept]
        width = len(source.hierarchies)
        counts = np.array([[label.leaves for label in of] for of in labels], dtype=np.int64).reshape(-1, width)
        steps: Floats = np.array(
            [
                [_level(label) / max(h.height, 1) for label, h in zip(of, source.hierarchies, strict=True)]
                for of in labels
            ]
        ).reshape(-1, width)
        rows: Ints = self.specialized.groups.rows[~self.specialized.suppressed]
        return Boxes(source.hierarchies, source.rows, rows, counts, steps, self.task.spec.weights)

    def _leaves(self, number_of_sensitive: int) -> BoxLeaves:
        source, tree = self.task.source, self.specialized.tree
        sets = source.frequency_sets
        sensitive = (number_of_sensitive,) if source.sensitives else ()
        mask: Bits = sets.coding.mask(sets.lattice.bottom, sensitive)
        table = sets.stored(queries.roll_up(sets.base, mask))
        keys = Keys(sets.coding, [i for i, bits in enumerate(mask) if bits] or [0])
        leaves = PartedLeaves(sets.session, table, keys.used)
        replay(tree, leaves, keys)
        names = ["part", *(f"k{i}" for i in keys.used), "n"]
        columns = sets.session.counts(sa.select(*(leaves.table.c[name].label(name) for name in names)))
        leaves.drop()
        words = keys.words([columns[f"k{i}"] for i in keys.used])
        codes = sets.coding.keys(sets.lattice.bottom, words)
        value = sets.coding.values(sensitive[0], words) if sensitive else np.zeros_like(columns["n"])
        number = np.full(len(tree), -1, dtype=np.int64)
        kept = [self.specialized.boxes[i] for i in self.kept]
        number[kept] = np.arange(len(kept))
        label, lists = np.zeros((len(kept), len(tree.ladders)), dtype=np.int64), []
        for i, ladder in enumerate(tree.ladders):
            used = {
                used_label: place for place, used_label in enumerate(dict.fromkeys(tree.labels[box][i] for box in kept))
            }
            label[:, i] = [used[tree.labels[box][i]] for box in kept]
            lists.append(tuple(np.flatnonzero(ladder.leaf_sets(used_label)) for used_label in used))
        return BoxLeaves(codes, value, columns["n"], number[columns["part"]], label, tuple(lists))


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


def _level(label: Label) -> int:
    """A label of several counts as the one that they are part of."""
    return label.level if label.within is None else label.within.level
