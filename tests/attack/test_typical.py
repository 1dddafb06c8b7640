"""What a mean beside the label of a block tells exact attackers, who know the search, of values, presence and ages."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import pytest
from recoding.searched import Attribute, People, Search, distinct, entropy, flat, frequency, paired

from attack.typical import Divided, Nodes, Typical, beliefs, divided, every, mean, of_map, rounded, rounded_anywhere

VALUES = "abc"
HOLDS = {"distinct": distinct(2), "frequency": frequency(2), "entropy": entropy(2)}
NUMBERS = Attribute("p", {1: ["1", "1-2", "*"], 2: ["2", "1-2", "*"], 3: ["3", "3-4", "*"], 4: ["4", "3-4", "*"]})
PLAIN = [(NUMBERS,), (NUMBERS, flat("q", "xyz")), (NUMBERS, paired("q", ["x0", "x1", "y0"]))]
MAPS = [
    (flat("p", "1234", ascending=True),),
    (flat("p", "123", ascending=True), flat("q", "xyz")),
    (flat("p", "12", ascending=True), paired("q", ["x0", "x1", "x2", "y0", "y1"])),
]
PATHS = {"w": ["w", "n", "c", "*"], "x": ["x", "s", "c", "*"], "y": ["y", "c", "o", "*"], "z": ["z", "c", "o", "*"]}
SHARED = Attribute("q", PATHS)
"""c stands for y and z at one level, for w and x at the next."""
AGES = range(30, 34)


def drawn(shapes: list[tuple[Attribute, ...]], tables: int, most: int = 6) -> Iterator[People]:
    rng = random.Random(1)
    for _ in range(tables):
        attributes = rng.choice(shapes)
        leaves = list(itertools.product(*(one.paths for one in attributes)))
        at = Counter(rng.choices(leaves, k=rng.randint(4, most)))
        yield People(attributes, {leaf: at[leaf] for leaf in leaves if at[leaf]})


@pytest.mark.parametrize("sizes", [True, False], ids=["sizes", "minimal"])
@pytest.mark.parametrize("name", HOLDS)
def test_beside_the_labels_of_a_map_exact_means_change_no_belief(name: str, sizes: bool) -> None:
    seen = 0
    for people in drawn(MAPS, 15):
        result = divided(people, of_map(people, Search(people, HOLDS[name], sizes=sizes).parts), VALUES)
        seen += len(result.plain)
        assert result.changed == [], people.at
    assert seen > 50


@pytest.mark.parametrize("limit", [0, 2])
@pytest.mark.parametrize("name", HOLDS)
def test_beside_the_labels_of_a_node_exact_means_change_no_belief(name: str, limit: int) -> None:
    seen = 0
    for people in drawn(PLAIN, 25):
        result = divided(people, Nodes(people, HOLDS[name], limit).told, VALUES)
        seen += len(result.plain)
        assert result.changed == [], people.at
    assert seen > 100


def shared(limit: int) -> Divided:
    """w and x are younger than y and z; all four are in one range of ages."""
    ages = Attribute("p", {age: [str(age), "1-3", "*"] for age in (1, 2, 3)})
    people = People((ages, SHARED), {(1, "w"): 1, (2, "x"): 1, (2, "y"): 1, (3, "z"): 1})
    return divided(people, Nodes(people, HOLDS["distinct"], limit).told, VALUES)


def test_where_rows_are_suppressed_and_a_label_has_two_meanings_a_mean_tells_which() -> None:
    assert shared(0).changed == []
    result = shared(2)
    assert len(result.changed) == 3
    plain = next(seen for seen in result.changed if beliefs(result.plain[seen])[0, "c"] == Fraction(1, 4))
    told = [beliefs(result.beside[seen]) for seen in result.within[plain]]
    # Of w, who may be suppressed: that it is shown is certain by one mean, and then c is impossible.
    assert sorted(one.get((0, "c"), Fraction(0)) for one in told) == [0, Fraction(1, 3)]


def test_who_is_in_the_table_is_told_by_a_mean() -> None:
    """Of a population of three ages two are in the table: of its label each may be, by the mean they are certain."""
    population, label = (30, 31, 39), (30, 39)
    by_mean = Counter(mean(pair, label) for pair in itertools.combinations(population, 2))
    assert set(by_mean.values()) == {1}
    by_rounded: dict[object, list[tuple[int, ...]]] = {}
    for pair in itertools.combinations(population, 2):
        by_rounded.setdefault(rounded(pair, label), []).append(pair)
    assert [(30, 31)] in by_rounded.values()


def test_who_knows_all_ages_but_one_may_learn_the_last() -> None:
    """One person moves a rounded mean by one step at most, and yet the step may lie beside a single age."""
    label, left = (AGES[0], AGES[-1]), Counter[int]()
    for others in every(AGES, 3):
        shown = [rounded((*others, age), label) for age in AGES]
        assert len(set(shown)) <= 2
        left.update(shown.count(one) for one in shown)
    assert left[1] > 0
    assert left[len(AGES)] > 0


def certain(rounding: Typical, label: tuple[int, int], ages: range, people: int) -> int:
    """How many tables of different ages leave somebody, of whom nothing else is known, one age."""
    seen: dict[object, set[int]] = {}
    held: dict[object, list[tuple[int, ...]]] = {}
    for table in every(ages, people):
        shown = rounding(table, label)
        seen.setdefault(shown, set()).add(table[0])
        held.setdefault(shown, []).append(table)
    return sum(len(held[shown]) for shown, left in seen.items() if len(left) == 1)


def test_a_multiple_outside_of_the_label_tells_ages_that_one_inside_does_not() -> None:
    lows = range(20, 60)
    assert any(certain(rounded_anywhere, (low, low + 7), range(low, low + 8), 2) for low in lows)
    assert not any(certain(rounded, (low, low + 7), range(low, low + 8), 2) for low in lows)
    assert rounded((32, 32), (32, 39)) == 35
