"""Path codes: clearing low bits generalizes, however many levels and labels there are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qblock.hierarchy import Hierarchy, suppress
from qblock.hierarchy.core import BITS


@st.composite
def nested(draw: st.DrawFn) -> Hierarchy:
    """A hierarchy whose labels are drawn from the top, leaves in any order."""
    height = draw(st.integers(0, 4))
    paths = [("*",)]
    for level in range(height):
        paths = [(f"{level} {i} {'/'.join(path)}", *path) for path in paths for i in range(draw(st.integers(1, 3)))]
    leaves = draw(st.permutations(paths))
    return Hierarchy("a", tuple(map(str, range(height + 1))), tuple(zip(*leaves, strict=True)))


def same_label(hierarchy: Hierarchy, level: int) -> np.ndarray:
    labels = hierarchy.labels[level]
    return np.array([[one == other for other in labels] for one in labels])


def same_code(hierarchy: Hierarchy, level: int) -> np.ndarray:
    masked = np.stack([part.codes & part.mask(level) for part in hierarchy.paths], axis=1)
    return (masked[:, None, :] == masked[None, :, :]).all(axis=2)


@given(hierarchy=nested())
def test_a_label_is_a_prefix(hierarchy: Hierarchy) -> None:
    for level in range(hierarchy.height + 1):
        assert (same_code(hierarchy, level) == same_label(hierarchy, level)).all()


def tall(levels: int) -> Hierarchy:
    """One leaf more joins at each level."""
    labels = [tuple(str(max(leaf, level)) for leaf in range(levels + 1)) for level in range(levels)]
    return Hierarchy("tall", tuple(map(str, range(levels + 1))), (*labels, ("*",) * (levels + 1)))


def test_a_tall_hierarchy_has_several_parts() -> None:
    hierarchy = tall(140)
    parts = hierarchy.paths
    assert len(parts) == 3
    assert all(0 < part.width <= BITS for part in parts)
    for level in range(hierarchy.height + 1):
        assert (same_code(hierarchy, level) == same_label(hierarchy, level)).all()


@pytest.mark.parametrize(("n", "width"), [(1, 0), (2, 1), (3, 2), (256, 8), (257, 9)])
def test_no_bit_is_wasted_on_the_top(n: int, width: int) -> None:
    (part,) = suppress("a", [str(i) for i in range(n)]).paths
    assert part.width == width
    assert part.mask(0) == 2**width - 1
    assert part.mask(1) == 0


def test_a_domain_without_a_top_has_codes() -> None:
    (part,) = Hierarchy("a", ("a",), (("x", "y", "z"),)).paths
    assert sorted(part.codes.tolist()) == [0, 1, 2]
