"""The people who close a batch of newcomers, by block: from what the first version shows, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from typing import TypeVar

import numpy as np
import sqlalchemy as sa

from qblock.blocks import Reference
from qblock.models import Model
from qblock.spec import Spec
from qblock.versions.crosswalk import Crosswalk, decoded
from qblock.versions.episodes import PUBLISHED
from qblock.versions.lag.memory import Kept, block_of
from qblock.versions.steady import Rules
from qblock.versions.steady.cohort import chance_of, chance_of_bundles, cohort_size
from qblock.versions.steady.state import Block
from qblock.versions.units import Sets, kept_sets
from qblock.versions.versions import RecordedVersion

Key = TypeVar("Key", bound=Hashable)


class Sizes:
    """The people who close a batch of newcomers of a block (`versions.steady.cohort`).

    From what the first version shows, and kept from then on; computed when it is first asked. least: that no size is
    below, whatever a block shows.
    """

    def __init__(self, crosswalk: Crosswalk, spec: Spec, kept: Kept, first: RecordedVersion, rules: Rules) -> None:
        cohort = spec.versions.cohort
        self.declared = None if cohort == "auto" else cohort
        self.hidden = kept.hidden
        self.blocks: dict[Block, int | None] = dict(kept.sizes)
        self.whole = kept.whole
        self.least = max(2 * rules.k, 2) if self.declared is None else self.declared
        self._of_first = cache(lambda: first_counts(crosswalk, first, spec.bundles))
        references = cache(lambda: first.references)
        sized = _size_of_bundles if spec.bundles else _size
        self._sized = cache(lambda counts: sized(spec, references(), counts, rules.k))

    def __call__(self, block: Block) -> int | None:
        if block in self.hidden:
            return None
        if self.declared is not None:
            return self.declared
        if block not in self.blocks:
            counts = self._of_first()
            if block in counts:
                self.blocks[block] = self._sized(_frozen(counts[block]))
            else:
                if self.whole is None:
                    self.whole = self._sized(
                        _frozen(added(pair for by_value in counts.values() for pair in by_value.items()))
                    )
                self.blocks[block] = self.whole
        return self.blocks[block]


Values = tuple[str | None, ...] | Sets
"""One for each sensitive attribute; a set of values where people have several rows."""
MOST_BUNDLES = 400
"""Of the bundles of a block those that most people have stand for all: the others are as good as never alike."""
Counted = tuple[tuple[Values, int], ...]


def _size(spec: Spec, references: Mapping[str, Reference], counts: Counted, least: int) -> int | None:
    columns = []
    for index, name in enumerate(spec.sensitives):
        code = {text: i for i, text in enumerate(references[name].domain)}
        column = np.zeros(len(code), dtype=np.int64)
        for value, n in counts:
            text = value[index]
            assert not isinstance(text, frozenset)
            column[code[text]] += n
        columns.append(column.tolist())
    return size_for(spec, references, columns, least)


def _size_of_bundles(spec: Spec, references: Mapping[str, Reference], counts: Counted, least: int) -> int | None:
    sizes: list[int | None] = []
    for index, name in enumerate(spec.sensitives):
        code = {text: i for i, text in enumerate(references[name].domain)}
        people: Counter[frozenset[int]] = Counter()
        for value, n in counts:
            people[frozenset(code[text] for text in value[index] or ())] += n
        most = sorted(people.items(), key=lambda pair: (-pair[1], sorted(pair[0])))[:MOST_BUNDLES]
        chance = chance_of_bundles(_models_of(spec, name), references[name], [bundle for bundle, _ in most])
        sizes.append(cohort_size([n for _, n in most], least, chance))
    return _largest(sizes, least)


def _models_of(spec: Spec, name: str) -> list[Model]:
    sizes = [q.model for q in spec.privacy if not q.sensitive]
    return sizes + [q.models[q.sensitive.index(name)] for q in spec.privacy if name in q.sensitive]


def _largest(sizes: Sequence[int | None], least: int) -> int | None:
    if not sizes:
        return max(2 * least, 2)
    return None if None in sizes else max(size for size in sizes if size is not None)


def size_for(
    spec: Spec, references: Mapping[str, Reference], columns: Sequence[Sequence[int]], least: int
) -> int | None:
    """`cohort: auto` for a block: the largest of the sizes of its sensitive attributes.

    references: by sensitive attribute; columns: for each of them the counts [V] that the block shows, in the order of
    the domain; least: as of `cohort_size`.
    """
    sizes: list[int | None] = []
    for name, column in zip(spec.sensitives, columns, strict=True):
        sizes.append(cohort_size(column, least, chance_of(_models_of(spec, name), references[name])))
    return _largest(sizes, least)


def first_counts(crosswalk: Crosswalk, first: RecordedVersion, bundles: bool = False) -> dict[Block, dict[Values, int]]:
    """The people by sensitive values whom each block of the first version shows."""
    t = crosswalk.tables
    key = first.key
    same = sa.and_(
        t.block.c.release == t.row.c.release, t.block.c.version == t.row.c.version, t.block.c.block == t.row.c.block
    )
    query = (
        sa.select(t.block.c.label, t.row.c.value, sa.func.count().label("n"))
        .select_from(t.row.join(t.block, same))
        .where(t.row.c.release == key.release, t.row.c.version == key.version, t.row.c.shown == PUBLISHED)
        .group_by(t.block.c.label, t.row.c.value)
    )
    counts: dict[Block, dict[Values, int]] = {}
    for row in crosswalk.own.fetch(query).to_pylist():
        values = kept_sets(row["value"], len(first.sensitive)) if bundles else decoded(row["value"])
        block = counts.setdefault(block_of(row["label"]), {})
        block[values] = block.get(values, 0) + int(row["n"])
    return counts


def added(pairs: Iterable[tuple[Key, int]]) -> dict[Key, int]:
    """The sum of the counts of each key."""
    sums: dict[Key, int] = {}
    for key, n in pairs:
        sums[key] = sums.get(key, 0) + n
    return sums


def _frozen(counts: Mapping[Values, int]) -> Counted:
    return tuple(sorted(counts.items(), key=repr))
