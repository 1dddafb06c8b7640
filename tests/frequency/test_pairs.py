"""Keys of several words in the order of blocks."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from qblock.frequency.coding import by_block, order_of, squeezed

WORD = st.integers(0, 2**63 - 1)
FEW = st.lists(st.integers(0, 62), max_size=12).map(lambda places: sum(1 << place for place in set(places)))


@st.composite
def keys(draw: st.DrawFn, masks: st.SearchStrategy[int]) -> tuple[list[np.ndarray], tuple[int, ...]]:
    """Distinct keys of one to three words under a mask."""
    mask = tuple(draw(st.lists(masks, min_size=1, max_size=3)))
    rows = draw(st.lists(st.tuples(*(WORD for _ in mask)), max_size=30))
    kept = list(dict.fromkeys(tuple(word & bits for word, bits in zip(row, mask, strict=True)) for row in rows))
    return [np.array([row[i] for row in kept], dtype=np.int64) for i in range(len(mask))], mask


def in_order(words: list[np.ndarray]) -> list[int]:
    rows = list(zip(*(word.tolist() for word in words), strict=True))
    return sorted(range(len(rows)), key=lambda i: rows[i])


@given(keys(FEW))
@example(([np.array([1 << 62, 0, 1]), np.array([0, 1, 1 << 20])], (1 << 62 | 1, 1 << 20 | 1)))
def test_one_number_has_the_order_of_several_words(given_: tuple[list[np.ndarray], tuple[int, ...]]) -> None:
    words, mask = given_
    one = squeezed(words, mask)
    assert one is not None
    assert len(set(one.tolist())) == len(one)
    assert np.argsort(one).tolist() == in_order(words)


@given(keys(st.one_of(FEW, WORD)))
def test_keys_are_sorted_by_their_words(given_: tuple[list[np.ndarray], tuple[int, ...]]) -> None:
    words, mask = given_
    assert order_of(words, mask).tolist() == in_order(words)


def test_what_has_too_many_bits_stays_several_words() -> None:
    words = [np.array([1, 2]), np.array([3, 4])]
    assert squeezed(words, (2**63 - 1, 1)) is None
    assert squeezed(words, (2**62 - 1, 1)) is not None


@given(keys(FEW), FEW)
def test_pairs_are_those_of_their_blocks(given_: tuple[list[np.ndarray], tuple[int, ...]], dropped: int) -> None:
    """The value is any number of each key: here, where it comes from."""
    words, mask = given_
    words = [word[in_order(words)] for word in words]
    alone = tuple(bits & ~dropped for bits in mask)
    value = np.arange(len(words[0]), dtype=np.int64)[::-1].copy()
    n = value + 100
    first, values, counts, block = by_block(words, alone, value, n)
    whole: dict[tuple[int, ...], dict[int, int]] = {}
    for i in range(len(n)):
        key = tuple(int(word[i]) & bits for word, bits in zip(words, alone, strict=True))
        whole.setdefault(key, {})[int(value[i])] = int(n[i])
    ends = [*first[1:].tolist(), len(n)][: len(first)]
    found = {
        tuple(int(word[i]) for word in block): dict(
            zip(values[start:end].tolist(), counts[start:end].tolist(), strict=True)
        )
        for i, (start, end) in enumerate(zip(first.tolist(), ends, strict=True))
        if end > start
    }
    assert found == whole
