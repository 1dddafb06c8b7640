"""Parts that are divided many at once, against the same parts divided one by one."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings

from qblock.blocks import Ints
from qblock.recoding import Tree
from qblock.recoding.splits import KINDS

from .drawn import attribute
from .test_division import ladder_of
from .test_laws import few, seeds

Way = tuple[int, int, str, list[int], int, bool]
"""A part, a level, a kind, the labels that stand alone, the one above a cut, and whether NULL goes with it."""


class Drawn:
    """Random splits of the boxes of a map by one attribute after another."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.ladders = [ladder_of(*attribute(draw, name)) for name in "abc"[: draw.randint(1, 3)]]
        self.start = tuple(draw.randint(0, ladder.hierarchy.height) for ladder in self.ladders)

    def tree(self) -> Tree:
        """The blocks of some leaves."""
        tree = Tree(self.ladders, self.start)
        codes = [ladder.hierarchy.codes[level] for ladder, level in zip(self.ladders, self.start, strict=True)]
        for leaf in range(max(ladder.size for ladder in self.ladders)):
            tree.begin([int(of[leaf % len(of)]) for of in codes])
        return tree

    def ways(self, tree: Tree, by: int) -> list[Way]:
        """How some boxes may be divided."""
        ladder, ways = self.ladders[by], []
        for part in tree.boxes():
            label = tree.labels[part][by]
            level = ladder.grain(label)
            if level is None or self.draw.random() < 0.3:
                continue
            members = ladder.members(label, level).tolist()
            null = self.draw.random() < 0.5 or ladder.null_at(level) not in members
            known = [code for code in members if null or code != ladder.null_at(level)]
            kind = self.draw.choice(KINDS) if ladder.ordered else self.draw.choice(["each", "rest"])
            if len(known) < 2:
                kind = "each"
            alone = (
                members if kind == "each" else [] if kind == "cut" else known[: self.draw.randint(0, len(known) - 1)]
            )
            ways.append((part, level, kind, alone, self.draw.choice(known[1:] or known), null))
        return ways


def divide(tree: Tree, by: int, ways: list[Way]) -> None:
    """Divide parts one by one."""
    for part, level, kind, alone, at, null in ways:
        if kind == "cut":
            tree.cut(part, by, level, at, null=null)
        elif kind == "rest":
            tree.rest(part, by, level, alone)
        else:
            tree.each(part, by, level, alone)


def numbers(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


@settings(few, max_examples=60)
@given(seed=seeds)
def test_parts_are_divided_at_once_as_one_by_one(seed: int) -> None:
    drawn = Drawn(random.Random(seed))
    together, singly = drawn.tree(), drawn.tree()
    for _ in range(4):
        by = drawn.draw.randrange(len(drawn.ladders))
        ways = drawn.ways(together, by)
        if not ways:
            continue
        divide(singly, by, ways)
        parts, levels, kinds, codes, cuts, nulls = zip(*ways, strict=True)
        divided = numbers([KINDS.index(kind) for kind in kinds])
        every = numbers([code for of in codes for code in of]), numbers([len(of) for of in codes])
        first = together.divide(
            by, numbers([*parts]), numbers([*levels]), divided, every, numbers([*cuts]), np.array(nulls)
        )
        assert first.tolist() == [
            min([*singly.splits[part].children.values(), *singly.splits[part].merged]) for part in parts
        ]
    assert [*together.labels] == [*singly.labels]
    texts = together.texts(together.boxes())
    assert together.to_json(texts) == singly.to_json(texts)
    assert [together.path(part) for part in together.boxes()] == [singly.path(part) for part in singly.boxes()]


@settings(few, max_examples=60)
@given(seed=seeds)
def test_leaves_fall_into_the_part_that_has_them(seed: int) -> None:
    """Of every combination of leaves, by the sets of leaves that labels stand for."""
    drawn = Drawn(random.Random(seed))
    tree = drawn.tree()
    for _ in range(3):
        by = drawn.draw.randrange(len(drawn.ladders))
        divide(tree, by, drawn.ways(tree, by))
    sizes = [ladder.size for ladder in drawn.ladders]
    leaves = numbers([*np.ndindex(*sizes)]) if len(sizes) > 1 else np.arange(sizes[0])[:, None]
    box = tree.assign(leaves)
    assert box.tolist() == tree.assign(leaves).tolist()
    for part in np.unique(box).tolist():
        held = [ladder.leaf_sets(label) for ladder, label in zip(drawn.ladders, tree.labels[part], strict=True)]
        for row in leaves[box == part].tolist():
            assert all(of[leaf] for of, leaf in zip(held, row, strict=True))
    assert not any(part in tree.splits for part in box.tolist())
