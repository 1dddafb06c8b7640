"""The exact beliefs that others are compared with: Theorem 3.1 against enumeration, and undefined posteriors."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from reference import beliefs as bayes

from qblock.bayes import InconsistentPrior
from qblock.errors import InputError, ParameterError

HALF = Fraction(1, 2)
POPULATION = {"q1": (HALF, HALF), "q2": (0, 1)}
TABLE = {"q1": (1, 1), "q2": (0, 4)}
FINE, MERGED = {"q1": "q1", "q2": "q2"}, {"q1": "*", "q2": "*"}


def test_merging_can_break_it() -> None:
    fine = bayes.beliefs(POPULATION, TABLE, FINE)
    assert [b.posterior for b in fine] == [b.prior for b in fine] == [(HALF, HALF), (0, 1)]
    merged = bayes.beliefs(POPULATION, TABLE, MERGED)
    assert [b.posterior for b in merged] == [(Fraction(3, 8), Fraction(5, 8)), (0, 1)]
    rho = Fraction(55, 100), Fraction(6, 10)
    assert bayes.breaches(fine, *rho) == ()
    # The belief in s1 falls from 1/2 > 1 - .55 to 3/8 < 1 - .6, and that in s2 rises.
    assert [(d.leaf, d.value) for d in bayes.breaches(merged, *rho)] == [("q1", 0), ("q1", 1)]
    assert bayes.largest_change(fine) == 0
    assert bayes.largest_change(merged) == Fraction(1, 8)


def test_breaches_are_strict() -> None:
    merged = bayes.beliefs(POPULATION, TABLE, MERGED)
    assert bayes.breaches(merged, HALF, Fraction(6, 10)) == ()  # 1/2 is not below 1/2
    assert bayes.breaches(merged, Fraction(55, 100), Fraction(5, 8)) == ()  # nor 5/8 above 5/8


def test_disclosures() -> None:
    merged = bayes.beliefs(POPULATION, TABLE, MERGED)
    # q1's second value has 5/8: disclosed for delta > 3/8. q2's second value is certain for every delta.
    assert [(d.leaf, d.value) for d in bayes.positive_disclosures(merged, Fraction(3, 8))] == [("q2", 1)]
    assert [(d.leaf, d.value) for d in bayes.positive_disclosures(merged, Fraction(4, 10))] == [("q1", 1), ("q2", 1)]
    assert [(d.leaf, d.value) for d in bayes.negative_disclosures(merged, Fraction(3, 8))] == [("q2", 0)]
    assert [(d.leaf, d.value) for d in bayes.negative_disclosures(merged, Fraction(4, 10))] == [("q1", 0), ("q2", 0)]


def test_a_disclosure_needs_a_row_that_it_is_about() -> None:
    # q1's only row has the unlikely value: what is believed of q1 (value 1, 3/4) is true of nobody with q1.
    population = {"q1": (1, 3), "q2": (1, 3)}
    found = bayes.beliefs(population, {"q1": (1, 0), "q2": (0, 3)}, MERGED)
    assert [b.posterior for b in found] == [(Fraction(1, 4), Fraction(3, 4))] * 2
    assert [(d.leaf, d.value) for d in bayes.positive_disclosures(found, HALF)] == [("q2", 1)]
    # "not value 0" is believed of both, and false of q1's only row.
    assert [(d.leaf, d.value) for d in bayes.negative_disclosures(found, HALF)] == [("q2", 0)]


def test_without_generalization_the_posterior_is_the_share_in_the_table() -> None:
    found = bayes.beliefs({"a": (1, 1, 8)}, {"a": (2, 1, 1)}, {"a": "a"})
    assert found[0].posterior == (HALF, Fraction(1, 4), Fraction(1, 4))


def test_a_sample_that_equals_the_population_teaches_nothing() -> None:
    population = {"a": (1, 2, 3), "b": (4, 0, 1), "c": (1, 1, 1)}
    for block in ({"a": 0, "b": 0, "c": 0}, {"a": 0, "b": 0, "c": 1}, {"a": 0, "b": 1, "c": 2}):
        found = bayes.beliefs(population, population, block)
        assert [b.posterior for b in found] == [b.prior for b in found]


def test_people_of_the_population_who_are_not_in_the_table_count() -> None:
    # f(s|q*) is taken over both leaves of the block although only q1 is in the table.
    found = bayes.beliefs({"q1": (1, 1), "q2": (0, 2)}, {"q1": (1, 1)}, MERGED)
    assert len(found) == 1
    assert found[0].posterior == (Fraction(3, 4), Fraction(1, 4))


def by_worlds(population: dict, leaves: list[str], counts: tuple[int, ...]) -> dict[str, list[Fraction]]:  # type: ignore[type-arg]
    """Theorem 3.1 holds in the limit of many rows; with the identities known it is enumeration over samples.

    Each of the block's rows is drawn from f(q,s | q in block); one of them is the person with leaf q. Given the block's
    histogram, how likely is each value for that person?
    """
    whole = sum(Fraction(w) for leaf in leaves for w in population[leaf])
    n = sum(counts)
    result = {}
    for leaf in leaves:
        weight = [Fraction(0)] * len(counts)
        for mine in range(len(counts)):
            rest = list(counts)
            rest[mine] -= 1
            if min(rest) < 0:
                continue
            ways = Fraction(math.factorial(n - 1))
            for value, k in enumerate(rest):
                share = sum(Fraction(population[other][value]) for other in leaves) / whole
                ways *= share**k / math.factorial(k)
            weight[mine] = ways * Fraction(population[leaf][mine]) / sum(map(Fraction, population[leaf]))
        result[leaf] = [w / sum(weight) for w in weight]
    return result


def test_theorem_against_enumeration() -> None:
    population = {"a": (1, 2, 3), "b": (4, 1, 1), "c": (1, 5, 1)}
    for counts in itertools.product(range(3), repeat=3):
        if sum(counts) == 0:
            continue
        # The rows' leaves do not matter for the posterior; put all of them on each leaf in turn.
        expected = by_worlds(population, ["a", "b", "c"], counts)
        for leaf in population:
            found = bayes.beliefs(population, {leaf: counts}, dict.fromkeys(population, 0))
            assert list(found[0].posterior) == expected[leaf]


@pytest.mark.parametrize(
    ("population", "table"),
    [
        ({"q1": (0, 0), "q2": (1, 1)}, {"q1": (1, 0)}),  # nobody has q1
        ({"q1": (1, 0), "q2": (1, 0)}, {"q1": (1, 1)}),  # nobody in the block can have the second value
        ({"q1": (1, 0), "q2": (0, 1)}, {"q1": (0, 1)}),  # q1's person must have a value that is not published
    ],
)
def test_an_inconsistent_prior_is_reported(population: dict, table: dict) -> None:  # type: ignore[type-arg]
    with pytest.raises(InconsistentPrior, match="inconsistent prior"):
        bayes.beliefs(population, table, MERGED)


def test_wrong_input() -> None:
    with pytest.raises(InputError, match="missing in the population"):
        bayes.beliefs({"q1": (1, 1)}, {"q2": (1, 1)}, MERGED)
    found = bayes.beliefs(POPULATION, TABLE, FINE)
    for rho in ((Fraction(0), HALF), (HALF, HALF), (HALF, Fraction(1)), (Fraction(3, 4), HALF)):
        with pytest.raises(ParameterError, match="valid"):
            bayes.breaches(found, *rho)
    for share in (Fraction(0), Fraction(1)):
        with pytest.raises(ParameterError, match="valid"):
            bayes.positive_disclosures(found, share)
        with pytest.raises(ParameterError, match="valid"):
            bayes.negative_disclosures(found, share)
    assert bayes.beliefs(POPULATION, {"q1": (0, 0)}, FINE) == ()
    assert bayes.largest_change(()) == 0


def test_golden(golden: dict) -> None:  # type: ignore[type-arg]
    entry = golden["ldiv.bayes_not_monotone"]
    weights = [Fraction(w) for w in entry["f"]["weights"].split(",")]
    population = {
        leaf: tuple(weight * Fraction(share) for share in entry["f"][leaf].split(","))
        for leaf, weight in zip(("q1", "q2"), weights, strict=True)
    }
    table = {f"q{i + 1}": (b["s1"], b["s2"]) for i, b in enumerate(entry["blocks"])}
    for moment, block in (("before", FINE), ("merged", MERGED)):
        for one in bayes.beliefs(population, table, block):
            expected = [Fraction(share["exact"]) for share in entry["expected"][f"beta {one.leaf} {moment}"]]
            assert list(one.posterior) == expected
