"""The rows of a table in memory: the leaves of the quasi-identifiers in a word or two, the number of the combination of
sensitive values, how many rows of the source each stands for, and whose they are where people are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qblock.blocks import Ints, Mask
from qblock.frequency import FrequencySets
from qblock.frequency.coding import Coding
from qblock.hierarchy.core import BITS
from qblock.recoding import Ladder
from qblock.search.boxes.groups import numbered

TEMPORARY = 10
"""Numbers for each row that counting takes beside the rows."""


class Packing:
    """Where the leaf of each quasi-identifier is in the words of a row. sizes: how many leaves each has."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._at: list[tuple[int, int, int]] = []
        used = [0]
        for size in sizes:
            width = max(0, size - 1).bit_length()
            if used[-1] + width > BITS:
                used.append(0)
            self._at.append((len(used) - 1, used[-1], (1 << width) - 1))
            used[-1] += width
        self.words = len(used)

    def put(self, words: Sequence[Ints], attribute: int, leaves: Ints) -> None:
        """Put the leaves of a quasi-identifier into words that do not have them yet. leaves: int64[R]."""
        word, shift, _ = self._at[attribute]
        np.bitwise_or(words[word], leaves << shift, out=words[word])

    def leaves(self, words: Sequence[Ints], attribute: int) -> Ints:
        """int64[R]: the leaves of a quasi-identifier."""
        word, shift, mask = self._at[attribute]
        leaves: Ints = words[word] >> shift & mask
        return leaves


@dataclass(frozen=True, eq=False)
class Rows:
    """words: int64[R] each, of the leaves; value: [R], the number of the combination of values, None where no values
    are told apart; n: [R], the rows of the source that each stands for, None where that is one; entity: [R], the number
    of each one's, None where rows are counted; all int32 or int64."""

    words: tuple[Ints, ...]
    value: Ints | None = None
    n: Ints | None = None
    entity: Ints | None = None

    def __len__(self) -> int:
        return len(self.words[0])

    def select(self, index: Ints | Mask | slice) -> Rows:
        """These rows, in that order."""
        beside = (None if of is None else of[index] for of in (self.value, self.n, self.entity))
        return Rows(tuple(word[index] for word in self.words), *beside)


@dataclass(frozen=True, eq=False)
class Loaded:
    """All rows of a table. values: int64[V, S], the combinations of values by their numbers."""

    rows: Rows
    values: Ints

    @classmethod
    def from_sets(cls, packing: Packing, sets: FrequencySets, values: Sequence[int]) -> Loaded:
        """The rows of a coded table, those that are alike together. values: the sensitive attributes told apart."""
        keys, n, *entity = sets.leaf_entities(values) if sets.entities else sets.leaf_keys(values)
        sets.release()
        sets.add_up(int(n.sum()), sets.lattice.bottom)
        return cls.of(packing, sets.coding, keys, n, values, *entity)

    @classmethod
    def of(
        cls,
        packing: Packing,
        coding: Coding,
        keys: Sequence[Ints],
        n: Ints,
        values: Sequence[int],
        entity: Ints | None = None,
    ) -> Loaded:
        """Rows by all words of their keys."""
        words = [np.zeros(len(n), dtype=np.int64) for _ in range(packing.words)]
        for attribute in range(len(coding.hierarchies)):
            packing.put(words, attribute, coding.codes(attribute, 0, keys))
        number, distinct = None, np.zeros((1, len(values)), dtype=np.int64)
        if values and len(n):
            columns = [coding.values(i, keys) for i in values]
            number, first = numbered(columns)
            number, distinct = narrow(number), np.stack([column[first] for column in columns], axis=1)
        entity = None if entity is None else narrow(entity)
        return cls(Rows(tuple(words), number, narrow(n) if (n != 1).any() else None, entity), distinct)


def narrow(numbers: Ints) -> Ints:
    """In half the memory where they fit it."""
    fits = int(numbers.max(initial=0)) <= np.iinfo(np.int32).max
    return numbers.astype(np.int32) if fits else numbers


def packing_of(ladders: Sequence[Ladder]) -> Packing:
    """The packing of the leaves of hierarchies."""
    return Packing([ladder.size for ladder in ladders])


def bytes_of(packing: Packing, sets: FrequencySets, rows: int) -> int:
    """About how much memory some rows of a coded table take: as they are fetched, as they are kept, in the order of
    parts, and while they are counted."""
    fetched, kept = sets.coding.words + 1 + sets.entities, packing.words + 3 + sets.entities
    return 8 * rows * (fetched + 2 * kept + TEMPORARY)
