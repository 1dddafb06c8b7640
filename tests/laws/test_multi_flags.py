"""The flags of the multi-attribute form against every pair of small blocks: rows and people are counted by hand here.

Nothing of the engine is used but the flags, so that a wrong flag and a wrong verdict cannot hide each other.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from qblock.models import BY_NAME
from qblock.models.multi import BASES, monotone

Person = tuple[int, ...]
"""The values of one person, of one attribute or of two."""
Block = tuple[Person, ...]
"""Sorted."""
Holds = Callable[[dict[int, int]], bool]


def entropy(counts: dict[int, int], l: int) -> bool:  # noqa: E741 - the letter of the papers
    """-sum p ln p >= ln l, where n^n >= l^n * product of n_s^n_s."""
    n, product = sum(counts.values()), 1
    for count in counts.values():
        product *= count**count
    return n**n >= l**n * product


def recursive(counts: dict[int, int], c: Fraction, l: int) -> bool:  # noqa: E741
    ranked = sorted(counts.values(), reverse=True)
    return l == 1 or ranked[0] < c * sum(ranked[l - 1 :])


def pd(counts: dict[int, int], c: Fraction, allowed: int) -> bool:
    """l = 2 and one value that may be disclosed."""
    most = max((count for value, count in counts.items() if value != allowed), default=0)
    return most == 0 or most < c * (sum(counts.values()) - most)


def window(counts: dict[int, int], l: int) -> bool:  # noqa: E741
    """delta = 1/2: values that differ by at most 1 are similar, which the last two of 0, 2 and 3 are."""
    numbers = {(0, 2, 3)[value]: count for value, count in counts.items()}
    return all(l * (numbers.get(x, 0) + numbers.get(x + 1, 0)) <= sum(numbers.values()) for x in numbers)


HALF = Fraction(3, 2)
FORMS: dict[str, list[tuple[dict[str, Any], Holds]]] = {
    "k_anonymity": [({"k": k}, lambda c, k=k: sum(c.values()) >= k) for k in (2, 3)],
    "distinct_l_diversity": [({"l": 2}, lambda c: len(c) >= 2)],
    "frequency_l_diversity": [({"l": 2}, lambda c: 2 * max(c.values()) <= sum(c.values()))],
    "entropy_l_diversity": [({"l": 2}, lambda c: entropy(c, 2))],
    "recursive_cl_diversity": [({"c": HALF, "l": 2}, lambda c: recursive(c, HALF, 2))],
    "pd_recursive_cl_diversity": [({"c": HALF, "l": 2, "allowed": ("0",)}, lambda c: pd(c, HALF, 0))],
    "npd_recursive_cl_diversity": [
        (
            {"c1": 9, "c2": 40, "l": 1, "protected": ("1",)},
            lambda c: 100 * c.get(1, 0) >= 40 * sum(c.values()),
        )
    ],
    "delta_l_diversity": [({"delta": Fraction(1, 2), "l": 2}, lambda c: window(c, 2))],
}
"""Each base with parameters and what it asks of the counts of one part."""
CASES = [(name, *form) for name, forms in FORMS.items() for form in forms]
label = pytest.mark.parametrize(("name", "params", "holds"), CASES, ids=[f"{n}-{p}" for n, p, _ in CASES])
VALUES = {1: [(a,) for a in range(3)], 2: list(itertools.product(range(3), range(2)))}
"""Of both attributes; the first has a value more."""
ROWS = {1: 5, 2: 4}
"""The most rows of a block."""


@dataclass(frozen=True)
class Seen:
    """What pairs of blocks show. kept: no union of passing blocks fails; dropped: no union drops more rows."""

    kept: bool
    dropped: bool


def parts(block: Iterable[Person], attribute: int) -> list[dict[int, int]]:
    """The counts of one attribute, in each part whose people have the same values of all the others."""
    found: dict[Person, Counter[int]] = {}
    for person in block:
        others = (*person[:attribute], *person[attribute + 1 :])
        found.setdefault(others, Counter())[person[attribute]] += 1
    return [dict(counts) for counts in found.values()]


def seen(holds: Holds, attributes: int) -> Seen:
    @cache
    def passes(block: Block) -> bool:
        return all(holds(part) for i in range(attributes) for part in parts(block, i))

    sizes = range(1, ROWS[attributes] + 1)
    blocks = [b for size in sizes for b in itertools.combinations_with_replacement(VALUES[attributes], size)]
    kept = dropped = True
    for one, two in itertools.combinations_with_replacement(blocks, 2):
        lost = sum(len(block) for block in (one, two) if not passes(block))
        if lost == len(one) + len(two) or passes(tuple(sorted(one + two))):
            continue
        kept &= lost > 0
        dropped = False
    return Seen(kept, dropped)


def test_every_base_is_tried() -> None:
    assert set(FORMS) == {base.name for base in BASES}


@label
@pytest.mark.parametrize("attributes", [1, 2])
def test_the_flags_are_what_all_pairs_of_small_blocks_show(
    name: str, params: dict[str, Any], holds: Holds, attributes: int
) -> None:
    flags = monotone([BY_NAME[name](**params)] * attributes, entities=False)
    assert seen(holds, attributes) == Seen(flags.generalization, flags.suppression)


def test_distinct_values_of_two_attributes_with_a_suppression_limit() -> None:
    """docs/models.md section 10: the smallest blocks whose union drops more than they do."""
    holds = FORMS["distinct_l_diversity"][0][1]
    good, bad = ((0, 0), (0, 1), (1, 0), (1, 1)), ((0, 2),)
    found = {
        block: all(holds(part) for i in (0, 1) for part in parts(block, i)) for block in (good, bad, (*good, *bad))
    }
    assert list(found.values()) == [True, False, False]
    flags = monotone([BY_NAME["distinct_l_diversity"](l=2)] * 2, entities=False)
    assert flags.generalization
    assert not flags.suppression


WITHOUT_SHARES: dict[str, tuple[dict[str, Any], Callable[[dict[int, frozenset[int]]], bool]]] = {
    "k_anonymity": ({"k": 2}, lambda who: len(frozenset().union(*who.values())) >= 2),
    "distinct_l_diversity": ({"l": 2}, lambda who: len(who) >= 2),
}


@pytest.mark.parametrize("name", WITHOUT_SHARES)
@pytest.mark.parametrize("attributes", [1, 2])
def test_people_with_several_rows(name: str, attributes: int) -> None:
    """Two people, each with any rows in either block: what needs no share survives a merge, without suppression."""
    params, holds = WITHOUT_SHARES[name]
    values = [(a,) for a in range(2)] if attributes == 1 else list(itertools.product(range(2), range(2)))
    rows = list(itertools.product(range(2), values))
    blocks = [frozenset(c) for n in range(1, len(rows) + 1) for c in itertools.combinations(rows, n)]

    @cache
    def passes(block: frozenset[tuple[int, Person]]) -> bool:
        for attribute in range(attributes):
            found: dict[Person, dict[int, frozenset[int]]] = {}
            for who, person in block:
                part = found.setdefault((*person[:attribute], *person[attribute + 1 :]), {})
                part[person[attribute]] = part.get(person[attribute], frozenset()) | {who}
            if not all(map(holds, found.values())):
                return False
        return True

    good = [block for block in blocks if passes(block)]
    assert good
    assert all(passes(one | two) for one, two in itertools.combinations(good, 2))
    flags = monotone([BY_NAME[name](**params)] * attributes, entities=True)
    assert flags.generalization
    assert flags.suppression == (attributes == 1)


@pytest.mark.parametrize("name", sorted(set(FORMS) - set(WITHOUT_SHARES)))
def test_shares_of_people_are_monotone_in_no_form(name: str) -> None:
    model = BY_NAME[name](**FORMS[name][0][0])
    for attributes in (1, 2):
        flags = monotone([model] * attributes, entities=True)
        assert not flags.generalization
        assert not flags.suppression
