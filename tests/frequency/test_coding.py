"""Keys: a mask keeps what a node tells apart, in as many words as it takes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hierarchy.test_paths import nested, tall
from hypothesis import given, settings
from hypothesis import strategies as st

from qblock.frequency.coding import Coding, finer, located
from qblock.hierarchy import Hierarchy, suppress


def words_of(coding: Coding, leaves: np.ndarray, values: np.ndarray) -> list[np.ndarray]:
    """The keys of rows of leaf and value numbers, as the packed table has them."""
    words = [np.zeros(len(leaves), dtype=np.int64) for _ in range(coding.words)]
    for i, (parts, places) in enumerate(zip(coding.parts, coding.quasi, strict=True)):
        for part, place in zip(parts, places, strict=True):
            words[place.word] |= part.codes[leaves[:, i]] << place.shift
    for i, place in enumerate(coding.sensitive):
        words[place.word] |= values[:, i] << place.shift
    return words


def wide(n: int) -> Hierarchy:
    """An attribute of 2**n values."""
    return suppress(f"a{n}", [str(i) for i in range(2**n)])


def test_a_tall_hierarchy_is_read_from_several_words() -> None:
    hierarchy = tall(140)
    coding = Coding([suppress("a", ["x", "y"]), hierarchy], [3])
    assert coding.words == 4
    leaves = np.array([(i % 2, i) for i in range(141)])
    words = words_of(coding, leaves, leaves[:, 1:] % 3)
    for level in (0, 1, 62, 63, 64, 100, 126, 139, 140):
        kept = [word & bits for word, bits in zip(words, coding.mask((0, level)), strict=True)]
        expected = hierarchy.codes[level] if level < 140 else np.zeros(141)
        assert coding.keys((0, level), kept)[:, 1].tolist() == expected.tolist()


@settings(max_examples=60)
@given(st.lists(nested(), max_size=3), st.lists(st.integers(1, 5), max_size=2), st.data())
def test_a_mask_keeps_what_a_node_tells_apart(
    hierarchies: list[Hierarchy], sizes: list[int], data: st.DataObject
) -> None:
    coding = Coding(hierarchies, sizes)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    leaves = (
        np.stack([rng.integers(0, len(h.leaves), 40) for h in hierarchies], axis=1)
        if hierarchies
        else np.zeros((40, 0), int)
    )
    values = np.stack([rng.integers(0, n, 40) for n in sizes], axis=1) if sizes else np.zeros((40, 0), int)
    words = words_of(coding, leaves, values)
    nodes = list(itertools.product(*(range(h.height + 1) for h in hierarchies)))
    for node in nodes:
        for sensitive in ((), *((i,) for i in range(len(sizes)))):
            mask = coding.mask(node, sensitive)
            kept = [word & bits for word, bits in zip(words, mask, strict=True)]
            keys = coding.keys(node, kept)
            for i, (hierarchy, level) in enumerate(zip(hierarchies, node, strict=True)):
                expected = hierarchy.codes[level][leaves[:, i]]
                assert keys[:, i].tolist() == (expected if level < hierarchy.height else expected * 0).tolist()
            if not sensitive:
                assert [word.tolist() for word in coding.words_of(node, keys)] == [word.tolist() for word in kept]
            for i in sensitive:
                assert coding.values(i, kept).tolist() == values[:, i].tolist()
            told = np.column_stack((keys, *(values[:, i] for i in sensitive)))
            assert len(np.unique(np.column_stack(kept), axis=0)) == len(set(map(tuple, told.tolist())))
    for one, other in itertools.product(nodes, nodes):
        if all(a <= b for a, b in zip(one, other, strict=True)):
            assert finer(coding.mask(one), coding.mask(other))


@given(mask=st.lists(st.sampled_from([0, 3, 5, 0b101 << 60, (1 << 62) - 1]), min_size=1, max_size=3), data=st.data())
def test_keys_are_found_among_others_by_what_a_mask_keeps(mask: list[int], data: st.DataObject) -> None:
    words = st.sampled_from([0, 1, 2, 3, 7, 1 << 60, 6 << 60, (1 << 62) - 1])
    rows = data.draw(st.lists(st.tuples(*(words for _ in mask)), min_size=1, max_size=12))
    masked = [tuple(word & bits for word, bits in zip(row, mask, strict=True)) for row in rows]
    among = data.draw(st.lists(st.sampled_from(masked), unique=True))
    by_word = (np.array(rows, dtype=np.int64).T, np.array(among, dtype=np.int64).reshape(len(among), len(mask)).T)
    found = located(*map(list, by_word), tuple(mask)).tolist()
    assert found == [among.index(row) if row in among else -1 for row in masked]


@pytest.mark.parametrize(
    ("bits", "sizes", "words"), [([16, 16, 16, 11], [16], 1), ([16, 16, 16, 12], [16], 2), ([16] * 4, [4], 3)]
)
def test_words(bits: list[int], sizes: list[int], words: int) -> None:
    coding = Coding([wide(n) for n in bits], sizes)
    assert coding.words == words
    quasi = coding.mask((0,) * len(bits))
    alone = coding.mask((1,) * len(bits), (0,))
    assert all(one & other == 0 for one, other in zip(quasi, alone, strict=True))
    if words > 1:
        # Block sizes need no word that sensitive values are in.
        assert all(not (one and other) for one, other in zip(quasi, alone, strict=True))


def test_levels_that_merge_nothing_are_one() -> None:
    levels = (("a", "b", "c"), ("A", "B", "C"), ("x", "x", "y"), ("X", "X", "Y"), ("*", "*", "*"))
    coding = Coding([Hierarchy("a", tuple("01234"), levels), suppress("b", ["1"])], [])
    assert coding.equivalent_range((0, 0)) == coding.equivalent_range((1, 1)) == ((0, 0), (1, 1))
    assert coding.equivalent_range((3, 1)) == ((2, 0), (3, 1))
    assert coding.equivalent_range((4, 0)) == ((4, 0), (4, 1))
    assert coding.mask((0, 0)) == coding.mask((1, 1))
    assert coding.mask((2, 0)) != coding.mask((1, 0))


def test_a_coarse_node_has_enough_blocks() -> None:
    coding = Coding([suppress("a", [str(i) for i in range(5)]), wide(4), suppress("c", ["x", "y"])], [])
    assert coding.coarse((0, 0, 0), 10) == coding.mask((1, 0, 1))
    assert coding.coarse((0, 1, 0), 10) == coding.mask((0, 1, 0))
    assert coding.coarse((0, 1, 1), 10) is None
    assert coding.coarse((0, 0, 0), 80) == coding.mask((0, 0, 1))


def test_every_word_must_be_finer() -> None:
    assert finer((3, 1), (1, 1))
    assert not finer((3, 0), (1, 1))
    assert not finer((1, 3), (2, 1))
