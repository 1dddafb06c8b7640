"""What a search answers, as sets of leaves: nothing here decides what is right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sqlalchemy as sa
from reference.recoding import Attribute, Box, Leaves, Node, Published, Recoding

from qblock.engines import queries
from qblock.recoding import Keys, Ladder, PartedLeaves, Tree, replay
from qblock.search.boxes.recoded import Recoded
from qblock.search.result import SearchResult
from qblock.search.run import open_task, run_search
from qblock.search.task import Task
from qblock.search.workload import workload_of
from qblock.spec import Spec


def leaves_of(attribute: Attribute, texts: Any) -> Leaves:
    """The leaves of a quasi-identifier by their texts."""
    named = {None if leaf is None else str(leaf): leaf for leaf in attribute.paths}
    return frozenset(named[text] for text in texts)


def box_of(table: Recoding, ladders: tuple[Ladder, ...], labels: Any) -> Box:
    """The leaf sets of labels."""
    found = []
    for attribute, ladder, label in zip(table.attributes, ladders, labels, strict=True):
        assert leaves_of(attribute, ladder.hierarchy.leaves) == attribute.top
        texts = [ladder.hierarchy.leaves[i] for i in np.flatnonzero(ladder.leaf_sets(label)).tolist()]
        found.append(leaves_of(attribute, texts))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Answer:
    """A search that is over. table: as the reference sees it."""

    table: Recoding
    task: Task
    result: SearchResult

    @property
    def map(self) -> Recoded:
        assert self.result.recoded is not None
        return self.result.recoded

    @property
    def tree(self) -> Tree:
        return self.map.specialized.tree

    @property
    def begun(self) -> Node:
        return self.tree.start

    def part(self, number: int) -> Box:
        return box_of(self.table, self.tree.ladders, self.tree.labels[number])

    @cached_property
    def boxes(self) -> dict[Box, tuple[Box, ...]]:
        """The published boxes, each with the parts on the way to it."""
        return {self.part(box): self._path(box) for box, lost in self._all if not lost}

    @cached_property
    def suppressed(self) -> dict[Box, tuple[Box, ...]]:
        return {self.part(box): self._path(box) for box, lost in self._all if lost}

    @property
    def _all(self) -> list[tuple[int, bool]]:
        return list(zip(self.map.specialized.boxes, self.map.specialized.suppressed.tolist(), strict=True))

    def _path(self, box: int) -> tuple[Box, ...]:
        return tuple(self.part(number) for number in self.tree.path(box)[:-1])

    def texts(self) -> list[dict[str, set[Leaves]]]:
        """By quasi-identifier: what each text stands for in the published boxes."""
        found: list[dict[str, set[Leaves]]] = [{} for _ in self.table.attributes]
        for part in self.map.published.tolist():
            labels = self.tree.labels[part]
            for of, label, leaves in zip(found, labels, box_of(self.table, self.tree.ladders, labels), strict=True):
                of.setdefault(self.map.texts[label], set()).add(leaves)
        return found

    @property
    def published(self) -> Published:
        return Published(self.table, list(self.boxes), self.begun)

    def workload(self, values: dict[str, Any]) -> list[tuple[list[Leaves | None], frozenset[Any] | None]]:
        """The queries of the search. values: the sensitive values by what the source calls them."""
        source, found = self.task.source, []
        domain = source.sensitives["s"].reference.domain
        for query in workload_of(source)[1]:
            wanted = [
                None if codes is None else leaves_of(attribute, [hierarchy.leaves[code] for code in codes])
                for attribute, hierarchy, codes in zip(
                    self.table.attributes, source.hierarchies, query.leaves, strict=True
                )
            ]
            names = None if query.values is None else frozenset(values[domain[code]] for code in query.values)
            found.append((wanted, names))
        return found


@contextmanager
def answered(table: Recoding, spec: Spec) -> Iterator[Answer]:
    """The answer to a spec, while its source is open."""
    with open_task(spec) as task:
        yield Answer(table, task, run_search(task))


def replayed(task: Task, tree: Tree, table: Recoding) -> dict[tuple[Any, ...], int]:
    """The part that each combination of leaves of a source falls into. tree: over the hierarchies of that source."""
    sets = task.source.frequency_sets
    mask = sets.coding.mask(sets.lattice.bottom)
    keys = Keys(sets.coding, [i for i, bits in enumerate(mask) if bits] or [0])
    leaves = PartedLeaves(sets.session, sets.stored(queries.roll_up(sets.base, mask)), keys.used)
    boxes = replay(tree, leaves, keys)
    columns = [leaves.table.c[name].label(name) for name in ("part", *(f"k{i}" for i in keys.used))]
    found = sets.session.counts(sa.select(*columns))
    leaves.drop()
    codes = sets.coding.keys(sets.lattice.bottom, keys.words([found[f"k{i}"] for i in keys.used]))
    assert set(found["part"].tolist()) == set(boxes)
    answer = {}
    for row, part in zip(codes.tolist(), found["part"].tolist(), strict=True):
        texts = [h.leaves[code] for h, code in zip(task.source.hierarchies, row, strict=True)]
        leaf = tuple(next(iter(leaves_of(a, [text]))) for a, text in zip(table.attributes, texts, strict=True))
        assert answer.setdefault(leaf, part) == part
    return answer
