"""The labels of a level as columns: each distinct one once, and which of them each leaf has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeAlias, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Index = NDArray[np.int32]
Texts: TypeAlias = pa.LargeStringArray
"""Built by `texts`: PyArrow makes no other of Python's values without importing pandas."""


def texts(values: Iterable[str | None]) -> Texts:
    """An array of texts. Not `pa.array`, which imports pandas."""
    given = values if isinstance(values, tuple | list) else list(values)
    listed = [value or "" for value in given]
    there = None
    if None in given:
        there = pa.py_buffer(np.packbits([value is not None for value in given], bitorder="little"))
    data = "".join(listed).encode("utf-8")
    widths = np.fromiter(map(len, listed), dtype=np.int64, count=len(listed))
    if widths.sum() < len(data):  # of bytes, not of characters
        widths = np.fromiter((len(value.encode("utf-8")) for value in listed), dtype=np.int64, count=len(listed))
    ends = np.concatenate(([0], np.cumsum(widths))).astype(np.int64)
    return pa.Array.from_buffers(pa.large_string(), len(listed), [there, pa.py_buffer(ends), pa.py_buffer(data)])


def one_text(value: str) -> pa.Scalar:
    """A text as functions of PyArrow take it."""
    return texts([value])[0]


def as_texts(values: Any) -> Texts:
    """A column of texts as one array, from Arrow (whose NULL stays) or from Python."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
    if isinstance(values, pa.Array):
        return values.cast(pa.large_string())
    return texts(values)


def whole(values: pa.Array) -> NDArray[Any]:
    """An array of whole numbers or truth values without NULL, for numpy."""
    if pa.types.is_boolean(values.type):
        return np.asarray(whole(values.cast(pa.uint8())), dtype=bool)
    if not len(values):
        return np.zeros(0, dtype=values.type.to_pandas_dtype())
    numbers: NDArray[Any] = np.frombuffer(values.buffers()[1], dtype=values.type.to_pandas_dtype())
    return numbers[values.offset : values.offset + len(values)]


def bytes_of(values: Texts) -> memoryview:
    """The texts in UTF-8, one after the other."""
    _, ends, data = values.buffers()
    if not len(values) or data is None:
        return memoryview(b"")
    edges = np.frombuffer(ends, dtype=np.int64)[values.offset : values.offset + len(values) + 1]
    return memoryview(data)[int(edges[0]) : int(edges[-1])]


def places(values: NDArray[Any]) -> pa.Array:
    """Whole numbers as Arrow takes them, of 32 bits."""
    exact = np.ascontiguousarray(values, dtype=np.int32)
    return pa.Array.from_buffers(pa.int32(), len(exact), [None, pa.py_buffer(exact)])


def matching(values: Texts, pattern: str) -> pa.BooleanArray:
    """Which texts a regular expression describes from end to end."""
    return pc.match_substring_regex(values, rf"\A(?:{pattern})\z")


def all_match(values: Texts, pattern: str) -> bool:
    return pc.all(matching(values, pattern)).as_py() is not False


class Labels(Sequence[str | None]):
    """A level's labels by leaf, as a sequence of texts that is made when somebody asks for one.

    distinct: each label once; of_leaf: int32[leaves], which of them a leaf has. Each has a leaf.
    """

    def __init__(self, distinct: Texts, of_leaf: Index) -> None:
        self.distinct, self.of_leaf = distinct, of_leaf

    @classmethod
    def of(cls, values: Any) -> Labels:
        """The labels of a column, in the order of their first leaves."""
        encoded = as_texts(values).dictionary_encode(null_encoding="encode")
        return cls(encoded.dictionary, whole(encoded.indices))

    @classmethod
    def leaves_of(cls, distinct: Texts) -> Labels:
        """Labels of which no two are equal."""
        return cls(distinct, np.arange(len(distinct), dtype=np.int32))

    @classmethod
    def same(cls, label: str, leaves: int) -> Labels:
        return cls(texts([label] if leaves else []), np.zeros(leaves, dtype=np.int32))

    def below(self, parents: Labels) -> Labels:
        """The level above this one. parents: of each distinct label, in their order."""
        return Labels(parents.distinct, parents.of_leaf[self.of_leaf])

    def plus(self, label: str | None) -> Labels:
        """With one more leaf, which has this label."""
        known = None if label is None else self.place(label)
        if known is not None:
            return Labels(self.distinct, np.append(self.of_leaf, np.int32(known)))
        more = pa.concat_arrays([self.distinct, texts([label])])
        return Labels(more, np.append(self.of_leaf, np.int32(len(self.distinct))))

    def place(self, label: str) -> int | None:
        """Where a label is among the distinct ones."""
        place: int = pc.index(self.distinct, one_text(label)).as_py()
        return None if place < 0 else place

    @cached_property
    def shown(self) -> tuple[str | None, ...]:
        distinct = np.empty(len(self.distinct), dtype=object)
        distinct[:] = self.distinct.to_pylist()
        return tuple(distinct[self.of_leaf].tolist())

    @property
    def column(self) -> Texts:
        """The labels by leaf as Arrow."""
        return self.distinct.take(places(self.of_leaf))

    @cached_property
    def first(self) -> Index:
        """int32[distinct]: the first leaf that has each label."""
        first = np.empty(len(self.distinct), dtype=np.int32)
        # Of several leaves the one that is written last stays.
        first[self.of_leaf[::-1]] = np.arange(len(self.of_leaf) - 1, -1, -1, dtype=np.int32)
        return first

    def __len__(self) -> int:
        return len(self.of_leaf)

    @overload
    def __getitem__(self, place: int) -> str | None: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[str | None, ...]: ...
    def __getitem__(self, place: int | slice) -> str | tuple[str | None, ...] | None:
        return self.shown[place]

    def __iter__(self) -> Iterator[str | None]:
        return iter(self.shown)

    def __contains__(self, label: object) -> bool:
        if label is None:
            return bool(self.distinct.null_count)
        return isinstance(label, str) and self.place(label) is not None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Labels):
            return len(self) == len(other) and bool(self.column.equals(other.column))
        return isinstance(other, tuple) and self.shown == other

    def __hash__(self) -> int:
        return hash(self.shown)
