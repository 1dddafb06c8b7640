"""Packed keys: one row's codes of all attributes in a few whole numbers, of which a node is a mask.

Clearing the low bits of a path code generalizes it (`Hierarchy.paths`), so that `key & mask` is the block of a row at
any node, and a mask says which sensitive attributes are told apart, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sqlalchemy as sa

from qblock.blocks import Ints, number_keys
from qblock.engines.queries import Dimension, Expression, Query, whole
from qblock.hierarchy import Hierarchy
from qblock.hierarchy.core import BITS, PathPart
from qblock.lattice import Node

Mask = tuple[int, ...]
"""The bits of each word that are kept."""


@dataclass(frozen=True)
class Place:
    """Where a number is within a key: shift bits up in a word."""

    word: int
    shift: int


def finer(fine: Mask, coarse: Mask) -> bool:
    """Whether what has `fine` tells apart all that `coarse` does."""
    return all(o & ~w == 0 for w, o in zip(fine, coarse, strict=True))


class Coding:
    """The layout of keys over these hierarchies and sensitive attributes.

    values: the number of values of each sensitive attribute.
    words: how many whole numbers a key has; quasi: the places of the parts of each quasi-identifier's path codes;
    sensitive: of each sensitive attribute's code; sizes: how many values each has.
    """

    def __init__(self, hierarchies: Sequence[Hierarchy], values: Sequence[int]) -> None:
        self.hierarchies = tuple(hierarchies)
        self.parts: tuple[tuple[PathPart, ...], ...] = tuple(h.paths for h in hierarchies)
        self.sizes = tuple(values)
        self._widths = [max(0, n - 1).bit_length() for n in values]
        used: list[int] = [0]

        def place(width: int) -> Place:
            word = next((i for i, bits in enumerate(used) if bits + width <= BITS), len(used))
            if word == len(used):
                used.append(0)
            used[word] += width
            return Place(word, used[word] - width)

        def place_quasi() -> tuple[tuple[Place, ...], ...]:
            return tuple(tuple(place(part.width) for part in parts) for parts in self.parts)

        if sum(self._widths) + sum(part.width for parts in self.parts for part in parts) <= BITS:
            # Lowest, so that sorted keys are in the order of blocks.
            self.sensitive = tuple(place(width) for width in self._widths)
            self.quasi = place_quasi()
        else:
            # In words of their own, which block sizes do not need.
            self.quasi = place_quasi()
            used = [BITS for _ in used]
            self.sensitive = tuple(place(width) for width in self._widths)
        self.words = len(used)

    def mask(self, node: Node, sensitive: Sequence[int] = ()) -> Mask:
        """The mask of a node's blocks, and of the values of the sensitive attributes that are named."""
        kept = [0] * self.words
        for level, parts, places in zip(node, self.parts, self.quasi, strict=True):
            for part, place in zip(parts, places, strict=True):
                kept[place.word] |= part.mask(level) << place.shift
        for i in sensitive:
            place = self.sensitive[i]
            kept[place.word] |= ((1 << self._widths[i]) - 1) << place.shift
        return tuple(kept)

    def coarse(self, node: Node, blocks: int) -> Mask | None:
        """The mask of a node that generalizes this one and has at least so many combinations of labels, of as few
        attributes and as coarse as possible; None where there is none."""
        labels = [self.labels[i][level] for i, level in enumerate(node)]
        levels, product = [h.height for h in self.hierarchies], 1
        for i in sorted(range(len(node)), key=lambda i: -labels[i]):
            if product >= blocks:
                break
            needed = -(-blocks // product)
            enough = [level for level in range(node[i], levels[i]) if self.labels[i][level] >= needed]
            levels[i] = max(enough, default=node[i])
            product *= self.labels[i][levels[i]]
        return self.mask(tuple(levels)) if product >= blocks else None

    @cached_property
    def labels(self) -> list[list[int]]:
        """By quasi-identifier and level: how many labels there are."""
        return [[len(labels.distinct) for labels in hierarchy.columns] for hierarchy in self.hierarchies]

    def equivalent_range(self, node: Node) -> tuple[Node, Node]:
        """The finest and the coarsest node with the same blocks, where levels merge nothing."""
        finest, coarsest = [], []
        for level, widths in zip(node, self._merging, strict=True):
            low = high = level
            while low and not widths[low - 1]:
                low -= 1
            while high < len(widths) and not widths[high]:
                high += 1
            finest.append(low)
            coarsest.append(high)
        return tuple(finest), tuple(coarsest)

    @cached_property
    def _merging(self) -> list[list[int]]:
        """By quasi-identifier and level below the top: the bits that the next level clears."""
        return [
            [bits for part in parts for bits in part.bits][: hierarchy.height]
            for hierarchy, parts in zip(self.hierarchies, self.parts, strict=True)
        ]

    def keys(self, node: Node, words: Sequence[Ints]) -> Ints:
        """int64[R, Q]: the codes of a node's labels (the smallest leaf that carries each) in keys int64[R] by word."""
        keys = np.zeros((len(words[0]), len(node)), dtype=np.int64)
        for i, level in enumerate(node):
            if level < self.hierarchies[i].height:
                keys[:, i] = self._codes(i, level, words)
        return keys

    def codes(self, attribute: int, level: int, words: Sequence[Ints]) -> Ints:
        """int64[R]: the codes of an attribute's labels in keys by word."""
        if level == self.hierarchies[attribute].height:
            return np.zeros(len(words[0]), dtype=np.int64)
        return self._codes(attribute, level, words)

    def bits(self, attribute: int, level: Ints, codes: Ints) -> list[Ints]:
        """By word, int64[R]: what labels, by level and code, put into a key; the inverse of `codes`."""
        words: list[Ints] = [np.zeros(len(codes), dtype=np.int64) for _ in range(self.words)]
        for depth in np.unique(level).tolist():
            here = np.flatnonzero(level == depth)
            for part, place in zip(self.parts[attribute], self.quasi[attribute], strict=True):
                # A label's code is a leaf that it has.
                words[place.word][here] |= (part.codes[codes[here]] & part.mask(depth)) << place.shift
        return words

    def words_of(self, node: Node, keys: Ints) -> list[Ints]:
        """Keys by word, int64[R] each, from the codes of a node's labels, int64[R, Q]; the inverse of `keys`."""
        words: list[Ints] = [np.zeros(len(keys), dtype=np.int64) for _ in range(self.words)]
        for i, level in enumerate(node):
            for word, bits in zip(words, self.bits(i, np.full(len(keys), level), keys[:, i]), strict=True):
                word |= bits
        return words

    def values(self, sensitive: int, words: Sequence[Ints]) -> Ints:
        """int64[R]: the codes of a sensitive attribute."""
        place = self.sensitive[sensitive]
        codes: Ints = words[place.word] >> place.shift & (1 << self._widths[sensitive]) - 1
        return codes

    def _codes(self, attribute: int, level: int, words: Sequence[Ints]) -> Ints:
        parts, places = self.parts[attribute], self.quasi[attribute]
        codes = self.hierarchies[attribute].codes[level].astype(np.int64)
        if len(parts) == 1:
            order, leaves = self._ascending[attribute]
            prefix = words[places[0].word] >> places[0].shift & parts[0].mask(level)
            # A label's code is a prefix of its leaves' codes: the next leaf is one of them.
            return codes[order[np.searchsorted(leaves, prefix)]]
        known = np.stack([part.codes & part.mask(level) for part in parts], axis=1)
        prefixes = [words[place.word] >> place.shift & p.mask(level) for p, place in zip(parts, places, strict=True)]
        _, number = np.unique(np.concatenate((known, np.stack(prefixes, axis=1))), axis=0, return_inverse=True)
        number = number.reshape(-1)
        leaf = np.zeros(len(number), dtype=np.int64)
        leaf[number[: len(known)]] = np.arange(len(known))
        result: Ints = codes[leaf[number[len(known) :]]]
        return result

    @cached_property
    def _ascending(self) -> list[tuple[Ints, Ints]]:
        orders = [np.argsort(parts[0].codes, kind="stable") for parts in self.parts]
        return [(order, parts[0].codes[order]) for order, parts in zip(orders, self.parts, strict=True)]


def packed(
    relation: sa.FromClause,
    coding: Coding,
    quasi: Sequence[tuple[Expression, Dimension]],
    values: Sequence[tuple[Expression, Dimension | None]],
    kept: Mapping[str, Expression] | None = None,
) -> Query:
    """Keys k0, k1, ... of every row; a word is NULL where no dimension covers a value that is in it. Loses no row.

    quasi, values: the raw value of each quasi-identifier and sensitive attribute with what codes it (None: it is a
    code already). kept: further columns by name.
    """
    joined = relation
    words: list[list[Expression]] = [[] for _ in range(coding.words)]

    def join(raw: Expression, dimension: Dimension, number: int) -> sa.FromClause:
        nonlocal joined
        named = dimension.table.alias(f"d{number}")
        joined = joined.outerjoin(named, raw == named.c.leaf)
        return named

    def put(place: Place, code: Expression) -> None:
        shifted = whole(code)
        words[place.word].append(
            shifted.bitwise_lshift(sa.literal_column(str(place.shift))) if place.shift else shifted
        )

    for i, ((raw, dimension), places) in enumerate(zip(quasi, coding.quasi, strict=True)):
        named = join(raw, dimension, i)
        for part, place in enumerate(places):
            put(place, dimension.part(raw, part, named))
    for i, ((raw, coder), place) in enumerate(zip(values, coding.sensitive, strict=True), len(quasi)):
        put(place, raw if coder is None else coder.covered(raw, join(raw, coder, i)))
    columns = []
    for number, codes in enumerate(words):
        word = codes[0] if codes else whole(sa.literal_column("0"))
        for code in codes[1:]:
            word = word.bitwise_or(code)
        columns.append(word.label(f"k{number}"))
    return sa.select(*columns, *(value.label(name) for name, value in (kept or {}).items())).select_from(joined)


def order_of(words: Sequence[Ints], mask: Mask) -> Ints:
    """The ascending order of keys by word, the first one first. mask: the bits that they have."""
    if len(words) > 1:
        single = squeezed(words, mask)
        if single is None:
            return np.lexsort(tuple(reversed(words)))
        words = [single]
    return np.arange(len(words[0])) if _ascending(words) else np.argsort(words[0])


Spans = list[list[tuple[int, int]]]
"""Of each word, where runs of bits start and end, the highest ones first."""


def spans_of(mask: Mask) -> Spans | None:
    """The runs of bits that hold a mask and fit one number together, as few as possible; None where it has too many."""
    spans = [[(_lowest(bits), bits.bit_length())] if bits else [] for bits in mask]
    if sum(end - start for runs in spans for start, end in runs) > BITS:
        spans = [list(_runs(bits)) for bits in mask]
        if sum(end - start for runs in spans for start, end in runs) > BITS:
            return None
    return spans


def squeezed(words: Sequence[Ints], mask: Mask) -> Ints | None:
    """Keys of several words as one number each, in the same order; None where the mask has too many bits for that.

    To sort one number takes a fraction of what it takes to sort by two.
    """
    spans = spans_of(mask)
    return None if spans is None else gathered(dict(enumerate(words)), mask, spans)


def gathered(words: Mapping[int, Ints], mask: Mask, spans: Spans) -> Ints:
    """Keys under a mask as one number each, which nobody else holds. words: by number, those that the mask has bits of;
    spans: of the mask."""
    single: Ints | None = None
    for number, (bits, runs) in enumerate(zip(mask, spans, strict=True)):
        for start, end in runs:
            part = words[number] & (bits & (1 << end) - (1 << start))
            if start:
                part >>= start
            if single is None:
                single = part
            else:
                single <<= end - start
                single |= part
    return np.zeros(len(next(iter(words.values()))), dtype=np.int64) if single is None else single


def scattered(single: Ints, spans: Spans) -> list[Ints]:
    """The words of keys that are one number each."""
    words = []
    for runs in reversed(spans):
        word = np.zeros(len(single), dtype=np.int64)
        for start, end in reversed(runs):
            word |= (single & (1 << end - start) - 1) << start
            single = single >> end - start
        words.append(word)
    return words[::-1]


def _runs(bits: int) -> Iterator[tuple[int, int]]:
    """Where bits without a gap start and end, the highest ones first."""
    while bits:
        end = bits.bit_length()
        start = (~bits & (1 << end) - 1).bit_length()
        yield start, end
        bits &= (1 << start) - 1


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def by_block(words: Sequence[Ints], alone: Mask, value: Ints, n: Ints) -> tuple[Ints, Ints, Ints, list[Ints]]:
    """Pairs of a block and a value, sorted: the first pair of each block, values and counts, and the blocks' keys.

    words: ascending keys; alone: the mask of the blocks. Words are not in the order of blocks where the value is not in
    their lowest bits.
    """
    block = [word & bits for word, bits in zip(words, alone, strict=True)]
    telling = [word for word, bits in zip(block, alone, strict=True) if bits] or block[:1]
    if not _ascending(telling):
        order = np.lexsort((value, *reversed(telling)))
        block, value, n = [word[order] for word in block], value[order], n[order]
        telling = [word[order] for word in telling]
    new = np.ones(len(n), dtype=bool)
    if len(n):
        new[1:] = telling[0][1:] != telling[0][:-1]
        for word in telling[1:]:
            new[1:] |= word[1:] != word[:-1]
    first = np.flatnonzero(new)
    return first, value, n, [word[first] for word in block]


def _ascending(words: Sequence[Ints]) -> bool:
    if len(words) > 1:
        return False
    return bool((words[0][1:] >= words[0][:-1]).all())


def positions(keys: Ints, among: Ints) -> Ints:
    """int64[R]: where each of keys int64[R, Q] is in among int64[B, Q], which are distinct and have all of them."""
    numbers, first = number_keys(np.concatenate((among, keys)))
    place = np.zeros(len(first), dtype=np.int64)
    place[numbers[: len(among)]] = np.arange(len(among), dtype=np.int64)
    positions_of_keys: Ints = place[numbers[len(among) :]]
    return positions_of_keys


def located(words: Sequence[Ints], among: Sequence[Ints], mask: Mask) -> Ints:
    """int64[R]: where what keys by word have under a mask is among others, which are distinct and have no other bits;
    -1 where it is not."""
    place = np.full(len(words[0]), -1, dtype=np.int64)
    if not len(among[0]):
        return place
    known, single = squeezed(among, mask), squeezed(words, mask)
    if known is None or single is None:
        masked = [word & bits for word, bits in zip(words, mask, strict=True)]
        numbers, _ = number_keys(np.concatenate((np.stack(among, axis=1), np.stack(masked, axis=1))))
        known, single = numbers[: len(among[0])], numbers[len(among[0]) :]
    order = np.argsort(known)
    at = np.minimum(np.searchsorted(known[order], single), len(order) - 1)
    return np.where(known[order[at]] == single, order[at], -1)
