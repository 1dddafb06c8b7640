"""What the number of people of a block tells beside its rows, in every small block."""

from __future__ import annotations

import dataclasses

import pytest

from attack.people import Attacker, Block, blocks, certain, passes, passes_by_rows, possible

K = 2
EVERY: list[Block] = [
    block for rows in range(2, 7) for people in range(1, rows + 1) for block in blocks("abc", rows, people)
]
PLAIN = [block for block in EVERY if passes(block, K, 2)]
TOGETHER = [block for block in PLAIN if not set.intersection(*map(set, block))]
"""As where versions are checked together, of which no value may be everybody's: where `publish.people` may be."""
SPLIT = [block for block in EVERY if passes_by_rows(block, K, 2)]
ATTACKERS = [
    Attacker(people, most, own, each)
    for people in (False, True)
    for most in (None, 2, 3)
    for own in (False, True)
    for each in (False, True)
]


def fits(block: Block, attacker: Attacker) -> bool:
    return attacker.most is None or max(map(len, block)) <= attacker.most


def disclosed(among: list[Block], attacker: Attacker, least: int = K) -> list[Block]:
    return [block for block in among if fits(block, attacker) and certain(block, attacker, least)]


def test_rows_counted_in_place_of_people_disclose_by_the_number_of_people() -> None:
    one = (("a", "b"),)
    assert not certain(one, Attacker(), 1)
    assert certain(one, Attacker(people=True), 1) == {"a", "b"}


def test_a_bound_on_rows_and_the_number_of_people_tell_what_neither_tells_alone() -> None:
    # Four rows of two people who have at most two: each has two, and there is one b for both.
    block = (("a", "a"), ("a", "b"))
    assert passes(block, K, 2)
    assert not certain(block, Attacker(most=2), K)
    assert not certain(block, Attacker(people=True), K)
    assert certain(block, Attacker(people=True, most=2), K) == {"a"}
    assert not passes_by_rows(block, K, 2)


@pytest.mark.parametrize(("most", "blocks_that_fit", "told"), [(2, 511, 12), (3, 978, 36)])
def test_blocks_that_tell_a_value_where_rows_are_bounded(most: int, blocks_that_fit: int, told: int) -> None:
    assert sum(fits(block, Attacker(most=most)) for block in PLAIN) == blocks_that_fit
    assert disclosed(PLAIN, Attacker(most=most)) == []
    assert len(disclosed(PLAIN, Attacker(people=True, most=most))) == told


def test_the_number_of_people_alone_makes_nobody_certain() -> None:
    assert len(PLAIN) > 100
    assert disclosed(PLAIN, Attacker(people=True)) == []


@pytest.mark.parametrize("most", [None, 2, 3])
def test_it_adds_nothing_where_versions_are_checked_together(most: int | None) -> None:
    assert len(TOGETHER) > 800
    assert disclosed(TOGETHER, Attacker(people=True, most=most)) == []
    # Who knows how many rows somebody has (versions.row_counts) learns as much without it.
    alone, told = (disclosed(TOGETHER, Attacker(people, most, own=True)) for people in (False, True))
    assert told == alone
    assert told


def test_it_adds_nothing_for_whoever_knows_everybodys_rows() -> None:
    for block in PLAIN:
        alone = Attacker(each=True)
        assert possible(block, alone, K) == possible(block, dataclasses.replace(alone, people=True), K), block


@pytest.mark.parametrize("attacker", ATTACKERS, ids=str)
def test_no_attacker_is_certain_where_people_with_as_many_rows_pass(attacker: Attacker) -> None:
    assert len(SPLIT) > 20
    assert disclosed(SPLIT, attacker) == []


def test_people_with_as_many_rows_must_also_not_share_a_value() -> None:
    # Two bundles and two values, and yet everybody has an a.
    block = (("a", "a"), ("a", "b"))
    assert len(set(block)) == 2
    assert certain(block, Attacker(each=True), K) == {"a"}


def test_where_rows_are_as_many_as_people_the_number_says_that_everybody_has_one() -> None:
    block = (("a",), ("b",), ("c",))
    assert {len(bundle) for bundle in possible(block, Attacker(), K)} == {1, 2}
    assert {len(bundle) for bundle in possible(block, Attacker(people=True), K)} == {1}
