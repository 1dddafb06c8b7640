"""Frequency sets in memory: what a statement would group by masked keys is sorted here, or counted in a table.

To sort a million whole numbers takes a few milliseconds where numpy uses the vector instructions of the processor, a
tenth of what the embedded database takes to group them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import sqlalchemy as sa

from qblock.blocks import Ints
from qblock.blocks import Mask as Kept
from qblock.engines.queries import PRIMES, Sample, numbered_entities
from qblock.engines.session import Session
from qblock.frequency.coding import Mask, Spans, gathered, scattered, spans_of
from qblock.hierarchy.core import BITS
from qblock.lattice import Node

NARROW = 31
"""Bits of a number that takes half the memory, and little more than half the time to sort."""
QUICK_ROWS = 50_000
"""Rows that are sorted as quickly as a statement is sent, on any processor."""
TRIED = 1 << 16
QUICK = 25e-9
"""Seconds for each of TRIED numbers: vector instructions take 3 to 6e-9, a sort without them 37e-9."""
SHARE = 2
"""What is held, and what one question takes, are one of so many parts of the client's memory at most."""
EXACT = 53
"""Bits of a sum that a double holds."""
BYTES = 8
COPIES = 4
"""Arrays of all rows that a question makes beside the words it reads."""


@dataclass(frozen=True, eq=False)
class Sizes:
    """The histogram of block sizes of a node: blocks[i] blocks have size[i] rows (or entities), ascending."""

    size: Ints
    blocks: Ints

    @property
    def number(self) -> int:
        return int(self.blocks.sum())


@dataclass(frozen=True)
class Small:
    """Block sizes of a node by a threshold: how many blocks, and their sizes (squared; None: not known), all of them
    and those below."""

    blocks: int
    n: int
    squares: int | None
    small: int
    small_n: int
    small_squares: int | None


@dataclass(eq=False)
class FrequencySet:
    """The keys of a node, whose mask they have. table: where they are stored; None where they are in memory alone.
    rows: how many; keys: in memory, as far as they are."""

    node: Node
    mask: Mask
    table: sa.TableClause | None
    rows: int
    keys: Keys | None = None

    @property
    def stored(self) -> sa.TableClause:
        """The table, where statements count from it."""
        assert self.table is not None
        return self.table


@dataclass(frozen=True, eq=False)
class Counted:
    """keys: int64[R], distinct and ascending; n: the rows of each, or the entities where those are counted; rows: the
    rows of each."""

    keys: Ints
    n: Ints
    rows: Ints


class Keys:
    """Keys in memory. words: by number, those that are here; n: how many rows have each; None where each is a row's;
    entities: the number of each row's entity; None where rows are counted."""

    def __init__(self, words: dict[int, Ints], n: Ints | None, entities: Ints | None = None) -> None:
        self.words = words
        self.n = n
        self.entities = entities
        self._width = 0 if n is None else int(n.max(initial=0)).bit_length()

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in (*self.words.values(), self.n, self.entities) if array is not None)

    def counted(self, mask: Mask, spans: Spans) -> Counted:
        """The distinct keys under a mask as one ascending number each. spans: of the mask."""
        single = gathered(self.words, mask, spans)
        width = sum(end - start for runs in spans for start, end in runs)
        if self.entities is not None:
            return self._of_entities(single, width, self.entities)
        keys, rows = self._of_rows(single, width)
        return Counted(keys, rows, rows)

    def _of_rows(self, single: Ints, width: int) -> tuple[Ints, Ints]:
        if 1 << width <= len(single) and self._width + len(single).bit_length() <= EXACT:
            # No more keys than rows: a table of them all takes half of what a sort takes, or less.
            table = np.bincount(single, self.n)
            keys = np.flatnonzero(table)
            return keys, table[keys].astype(np.int64)
        if self.n is None:
            n = None
            single = single.astype(np.int32) if width <= NARROW else single
            single.sort()
        elif width + self._width <= BITS:
            # Both as one number: to sort it takes a third of what an order takes.
            single <<= self._width
            single |= self.n
            single = single.astype(np.int32) if width + self._width <= NARROW else single
            single.sort()
            n = (single & (1 << self._width) - 1).astype(np.int64)
            single >>= self._width
        else:
            order = np.argsort(single)
            single, n = single[order], self.n[order]
        first = np.flatnonzero(_starts(single))
        rows = np.diff(first, append=len(single)) if n is None else np.add.reduceat(n, first)
        return single[first].astype(np.int64), rows.astype(np.int64)

    def _of_entities(self, single: Ints, width: int, entities: Ints) -> Counted:
        """An entity of a key counts once, however many rows it has there."""
        bits = int(entities.max(initial=0)).bit_length()
        pairs = (single << bits | entities) if width + bits <= BITS else None
        if pairs is not None and self.n is None:
            pairs = pairs.astype(np.int32) if width + bits <= NARROW else pairs
            pairs.sort()
            single = pairs >> bits
            first, n = np.flatnonzero(_starts(pairs)), None
        else:
            order = np.lexsort((entities, single)) if pairs is None else np.argsort(pairs)
            single, entities = single[order], entities[order]
            first, n = np.flatnonzero(_starts(single) | _starts(entities)), None if self.n is None else self.n[order]
        keys = single[first].astype(np.int64)
        of_key = np.flatnonzero(_starts(keys))
        begin = first[of_key]
        rows = np.diff(begin, append=len(single)) if n is None else np.add.reduceat(n, begin)
        return Counted(keys[of_key], np.diff(of_key, append=len(keys)).astype(np.int64), rows.astype(np.int64))


def within(words: Sequence[Ints], sample: Sample) -> Kept:
    """bool[R]: the keys that are in a sample, as a statement takes them."""
    total: Ints = np.zeros(len(words[0]), dtype=np.int64)
    for i, (word, bits) in enumerate(zip(words, sample.mask, strict=True)):
        if bits:
            total += (word & int(bits)) % PRIMES[i % 2]
    kept: Kept = total % int(sample.parts) == int(sample.number)
    return kept


def facts_of(sizes: Ints, least: int, *, squared: bool) -> dict[str, Ints]:
    """What `queries.size_facts` asks of block sizes."""
    small = sizes[sizes < least]
    facts = {"blocks": len(sizes), "n": sizes.sum(), "small": len(small), "small_n": small.sum()}
    if squared:
        facts |= {"squares": (sizes * sizes).sum(), "small_squares": (small * small).sum()}
    return {name: np.array([value], dtype=np.int64) for name, value in facts.items()}


class InMemory:
    """Counts from the sets whose rows fit the client's memory.

    memory: its bytes. What is asked first brings the words that it needs from the set's table; the last answer is kept,
    since some of a node's blocks are mostly asked for before all of them.
    """

    def __init__(self, session: Session, memory: int) -> None:
        self._session = session
        self._memory = memory
        self._lock = threading.Lock()
        self._last: tuple[FrequencySet, Mask, Counted] | None = None

    def overfull(self, sets: Sequence[FrequencySet]) -> bool:
        """Whether these sets take more of the memory than they may."""
        return sum(held.keys.bytes for held in sets if held.keys is not None) > self._memory // SHARE

    def fits(self, source: FrequencySet, mask: Mask, threads: int) -> bool:
        """Whether counts under a mask come from memory: always of what is nowhere else. threads: that ask at once."""
        if source.table is None:
            return True
        of_entities = "e" in source.table.c
        words = (sum(map(bool, mask)) or 1) + of_entities
        if source.rows * BYTES * (words + COPIES * threads) > self._memory // SHARE or spans_of(mask) is None:
            return False
        # Statements group entities twice, which takes longer than any sort.
        return of_entities or source.rows <= QUICK_ROWS or sorts_quickly()

    def counted(self, source: FrequencySet, mask: Mask) -> Counted:
        """The distinct keys under a mask, and the rows, and entities, of each."""
        last = self._last
        if last is not None and last[0] is source and last[1] == mask:
            return last[2]
        spans = spans_of(mask)
        assert spans is not None
        with self._lock:
            held = self._brought(source, mask)
        distinct = held.counted(mask, spans)
        self._last = source, mask, distinct
        return distinct

    def counts(self, source: FrequencySet, mask: Mask, sample: Sample | None) -> tuple[list[Ints], Ints, Ints]:
        """The distinct keys under a mask, by word, in their order, and what is counted of each, and its rows; of a
        sample of the blocks."""
        distinct = self.counted(source, mask)
        words = scattered(distinct.keys, spans_of(mask) or [])
        if sample is None:
            return words, distinct.n, distinct.rows
        kept = within(words, sample)
        return [word[kept] for word in words], distinct.n[kept], distinct.rows[kept]

    def histogram(self, source: FrequencySet, mask: Mask, *, of_rows: bool) -> Sizes:
        """How many blocks there are of each size. of_rows: in rows, also where entities are counted."""
        distinct = self.counted(source, mask)
        size, blocks = np.unique(distinct.rows if of_rows else distinct.n, return_counts=True)
        return Sizes(size, blocks.astype(np.int64))

    def hub(self, source: FrequencySet, node: Node, mask: Mask) -> FrequencySet:
        """The frequency set of a node, in memory alone. Of rows: entities do not add up."""
        words, rows, _ = self.counts(source, mask, None)
        numbers = [i for i, bits in enumerate(mask) if bits] or [0]
        return FrequencySet(node, mask, None, len(rows), Keys({i: words[i] for i in numbers}, rows))

    def release(self) -> None:
        """Forget the last answer."""
        self._last = None

    def _brought(self, source: FrequencySet, mask: Mask) -> Keys:
        needed = [i for i, bits in enumerate(mask) if bits]
        if source.keys is None or not set(needed) <= set(source.keys.words):
            # All of them anew: two statements need not give the rows in one order.
            numbers = sorted({*needed, *(() if source.keys is None else source.keys.words)}) or [0]
            there = source.stored.c
            names = [f"k{i}" for i in numbers] + [name for name in ("n", "e") if name in there]
            query = sa.select(*numbered_entities(source.stored, names))
            columns = self._session.counts_of(self._session.literal_sql(query), names)
            words = {i: columns[f"k{i}"] for i in numbers}
            source.keys = Keys(words, columns.get("n"), columns.get("e"))
        return source.keys


def counted(keys: Ints, n: Ints | None, entities: Ints | None = None) -> Counted:
    """The distinct ones of whole numbers of at least 0. n: the rows of each that is given, None where that is one;
    entities: as of `Keys`."""
    mask = ((1 << int(keys.max(initial=0)).bit_length()) - 1,)
    return Keys({0: keys}, n, entities).counted(mask, spans_of(mask) or [])


@cache
def sorts_quickly() -> bool:
    """Whether numpy sorts faster on this processor than the embedded database groups."""
    numbers = (np.arange(TRIED, dtype=np.int64) * PRIMES[0]) % (TRIED * 31 + 1)
    taken = []
    for _ in range(3):
        copied, begun = numbers.copy(), time.thread_time()
        copied.sort()
        taken.append(time.thread_time() - begun)
    return min(taken) <= TRIED * QUICK


def _starts(ascending: Ints) -> Kept:
    """bool[R]: where a number is another than the one before."""
    new = np.ones(len(ascending), dtype=bool)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return new
