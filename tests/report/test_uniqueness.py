"""Estimates of population uniqueness: on populations that are known, and against slow ones that share no code."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qblock.estimate import uniqueness
from qblock.estimate.uniqueness import Estimate, Sample, chances, estimates, pitman, snb, zayatz

SEED = 20260101
BLOCKS = st.dictionaries(st.integers(1, 40), st.integers(1, 30), min_size=1, max_size=6)


def sample_from(blocks: dict[int, int], population: int) -> Sample:
    size, number = (np.array(values) for values in zip(*sorted(blocks.items()), strict=True))
    return Sample(size, number, population)


def drawn(people: np.ndarray, fraction: float, random: np.random.Generator) -> tuple[Sample, int, float]:
    """A sample of people by the block of each; how many are unique, and the share of the sample's uniques who are."""
    chosen = random.choice(people, int(len(people) * fraction), replace=False)
    blocks, rows = np.unique(chosen, return_counts=True)
    everybody = dict(zip(*(values.tolist() for values in np.unique(people, return_counts=True)), strict=True))
    size, number = np.unique(rows, return_counts=True)
    alone = [everybody[block] == 1 for block in blocks[rows == 1].tolist()]
    unique = sum(rows == 1 for rows in everybody.values())
    return Sample(size, number, len(people)), unique, sum(alone) / len(alone)


def restaurant(people: int, theta: float, alpha: float, random: np.random.Generator) -> np.ndarray:
    """Each next person opens a block, or joins one, as Pitman's formula says."""
    block, size, blocks = np.zeros(people, int), np.zeros(people), 1
    size[0] = 1
    for i in range(1, people):
        if random.random() * (i + theta) < theta + blocks * alpha:
            chosen, blocks = blocks, blocks + 1
        else:
            chosen = block[random.integers(0, i)]
            while random.random() * size[chosen] >= size[chosen] - alpha:
                chosen = block[random.integers(0, i)]
        block[i] = chosen
        size[chosen] += 1
    return block


@pytest.mark.parametrize("fraction", [0.1, 0.5])
@pytest.mark.parametrize(("theta", "alpha"), [(50.0, 0.6), (500.0, 0.3), (300.0, 0.02)])
def test_pitman_knows_a_population_of_its_own(theta: float, alpha: float, fraction: float) -> None:
    """On average: one sample of a tenth is off by a fifth now and then."""
    random = np.random.default_rng(SEED)
    people = restaurant(12_000, theta, alpha, random)
    samples = [drawn(people, fraction, random) for _ in range(6)]
    told = [uniqueness._estimate("pitman", pitman, sample) for sample, *_ in samples]
    assert np.mean([one.people for one in told]) == pytest.approx(samples[0][1], rel=0.15)
    assert np.mean([one.share for one in told]) == pytest.approx(np.mean([share for *_, share in samples]), rel=0.15)


@pytest.mark.parametrize("fraction", [0.2, 0.5])
@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 0.2), (2.0, 0.5), (1.0, 0.7)])
def test_snb_knows_a_population_of_its_own(alpha: float, beta: float, fraction: float) -> None:
    random = np.random.default_rng(SEED)
    people = np.repeat(np.arange(20_000), 1 + random.negative_binomial(alpha, beta, 20_000))
    sample, unique, share = drawn(people, fraction, random)
    (told,) = [one for one in estimates(sample) if one.name == "snb"]
    assert told.people == pytest.approx(unique, rel=0.15)
    assert told.share == pytest.approx(share, rel=0.15)


@pytest.mark.parametrize("fraction", [0.7, 0.9])
def test_zayatz_knows_a_population_of_which_much_is_drawn(fraction: float) -> None:
    """It takes the sample's block sizes for the population's, which is right where most people are in the sample."""
    random = np.random.default_rng(SEED)
    people = np.repeat(np.arange(20_000), 1 + random.negative_binomial(1.0, 0.5, 20_000))
    sample, unique, share = drawn(people, fraction, random)
    (told,) = [one for one in estimates(sample) if one.name == "zayatz"]
    assert told.people == pytest.approx(unique, rel=0.1)
    assert told.share == pytest.approx(share, rel=0.1)


@given(BLOCKS, st.integers(0, 200))
def test_zayatz_is_bayes_with_counted_samples(blocks: dict[int, int], more: int) -> None:
    """By fractions: how many samples have one of a block of each size."""
    blocks = blocks | {1: blocks.get(1, 2)}
    rows = sum(size * number for size, number in blocks.items())
    people = rows + more
    of_one = {j: Fraction(j * math.comb(people - j, rows - 1), math.comb(people, rows)) for j in blocks}
    weighed = {j: number * of_one[j] for j, number in blocks.items()}
    share = weighed[1] / sum(weighed.values())
    expected = blocks[1] * share / Fraction(rows, people)
    assert zayatz(sample_from(blocks, people)) == pytest.approx(float(expected), rel=1e-9)


def log_likelihood(blocks: dict[int, int], theta: float, alpha: float) -> float:
    """Of blocks that are formed one person after another, factor by factor."""
    rows = sum(size * number for size, number in blocks.items())
    log = sum(math.log(theta + i * alpha) for i in range(1, sum(blocks.values())))
    log -= sum(math.log(theta + i) for i in range(1, rows))
    return log + sum(number * math.log(i - alpha) for size, number in blocks.items() for i in range(1, size))


@pytest.mark.parametrize(
    ("blocks", "people"),
    [({1: 30, 2: 12, 3: 5, 7: 2, 20: 1}, 1000), ({1: 12, 2: 9, 4: 6, 9: 3}, 400), ({1: 80, 2: 30, 5: 4}, 900)],
)
def test_pitman_is_the_most_likely_of_a_grid(blocks: dict[int, int], people: int) -> None:
    """And its expectation is the product of the steps in which a block of one stays one."""
    best, at = -math.inf, (0.0, 0.0)
    for alpha in np.arange(0.0, 0.96, 0.02).tolist():
        for theta in np.exp(np.arange(-3, 8, 0.05)).tolist():
            log = log_likelihood(blocks, theta, alpha)
            best, at = max((best, at), (log, (theta, alpha)))
    theta, alpha = at
    expected = float(people)
    for i in range(people - 1):
        expected *= (theta + alpha + i) / (theta + 1 + i)
    assert pitman(sample_from(blocks, people)) == pytest.approx(expected, rel=0.04)


@pytest.mark.parametrize(
    ("blocks", "people"), [({1: 300, 2: 120, 3: 50, 7: 20}, 5000), ({1: 200, 2: 60, 3: 30, 4: 15}, 1500)]
)
def test_snb_expects_the_sample_that_it_was_fitted_to(
    monkeypatch: pytest.MonkeyPatch, blocks: dict[int, int], people: int
) -> None:
    """Blocks of every size of the population, one after another, each with the chance of each number drawn."""
    fitted: list[tuple[float, float]] = []
    blocks_of = uniqueness._snb_blocks
    monkeypatch.setattr(
        uniqueness, "_snb_blocks", lambda sample, a, b: fitted.append((a, b)) or blocks_of(sample, a, b)
    )
    sample = sample_from(blocks, people)
    unique = snb(sample)
    alpha, beta = fitted[-1]
    chance, mean, seen, alone, of_one = beta**alpha, 0.0, 0.0, 0.0, beta**alpha
    for size in range(1, 3000):
        mean += chance * size
        seen += chance * (1 - (1 - sample.fraction) ** size)
        alone += chance * size * sample.fraction * (1 - sample.fraction) ** (size - 1)
        chance *= (1 - beta) * (alpha + size - 1) / size
    number = people / mean
    assert number * seen == pytest.approx(sample.number, rel=1e-6)
    assert number * alone == pytest.approx(sample.unique, rel=1e-6)
    assert unique == pytest.approx(number * of_one, rel=1e-6)


@settings(max_examples=40)
@given(BLOCKS, st.integers(1, 3000))
def test_estimates_are_of_people_who_are_there(blocks: dict[int, int], more: int) -> None:
    sample = sample_from(blocks, sum(size * number for size, number in blocks.items()) + more)
    for told in estimates(sample):
        if told.people is None:
            assert told.why
            assert told.share is None
            continue
        assert told.why is None
        assert 0 <= told.people <= sample.unique + more
        assert (told.share is None) == (sample.unique == 0)
        assert told.share is None or 0 <= told.share <= 1


def test_no_more_are_unique_than_may_be() -> None:
    """Of 12 people one is known to be in the table alone, and one is not in it; the model would say three or four."""
    sample = sample_from({1: 1, 2: 5}, 12)
    expected = pitman(sample)
    assert expected is not None
    assert expected > 3
    (told,) = [one for one in estimates(sample) if one.name == "pitman"]
    assert (told.people, told.share) == (2, 1)


def test_without_uniques_there_are_none() -> None:
    assert estimates(sample_from({2: 5, 9: 1}, 1000)) == tuple(
        Estimate(name, 0.0, None) for name in ("pitman", "zayatz", "snb")
    )


@pytest.mark.parametrize("blocks", [{1: 7, 2: 3}, {1: 7}, {2: 4}])
def test_who_is_unique_in_a_table_of_everybody_is_unique(blocks: dict[int, int]) -> None:
    sample = sample_from(blocks, sum(size * number for size, number in blocks.items()))
    told = {(one.people, one.share) for one in estimates(sample)}
    assert told == {(float(sample.unique), 1.0 if sample.unique else None)}
    assert chances(sample) == [1 / size for size in sorted(blocks)]


def test_where_all_are_unique_two_models_have_no_answer() -> None:
    told = {one.name: one for one in estimates(sample_from({1: 50}, 200))}
    assert told["zayatz"].people == pytest.approx(200)
    for name in ("pitman", "snb"):
        assert (told[name].people, told[name].share) == (None, None)
        assert told[name].why == "every row is unique, and the model needs some that are not"


def test_a_model_that_fits_no_parameters_has_no_answer() -> None:
    """So few uniques beside so many small blocks are not of slide negative binomial sizes."""
    told = {one.name: one for one in estimates(sample_from({1: 2, 2: 90, 3: 60, 4: 30}, 1500))}
    assert (told["snb"].people, told["snb"].why) == (None, "no parameters of the model fit these blocks")


def test_fewer_people_than_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="9 people are fewer than the 10 rows"):
        estimates(sample_from({5: 2}, 9))


@pytest.mark.parametrize("people", [205, 300, 400, 405, 900, 4_000, 100_000])
def test_chances_are_the_mean_over_populations(people: int) -> None:
    """Term by term: F people with f of them drawn, one draw after another."""
    sample = sample_from({1: 20, 2: 10, 3: 5, 20: 5, 45: 1}, people)
    fraction = 205 / people if sample.rows == 205 else sample.rows / people
    for size, told in zip([1, 2, 3, 20, 45], chances(sample), strict=True):
        total, chance = 0.0, fraction**size
        for everybody in range(size, size + int(60 * size / fraction) + 60):
            total += chance / everybody
            chance *= everybody / (everybody + 1 - size) * (1 - fraction)
        assert told == pytest.approx(total, rel=1e-9)


def test_chances_of_large_blocks() -> None:
    """By the recursion up to one size, and by an expansion from there: these agree where they meet."""
    for people in (10**6, 40_000):
        below, above = chances(sample_from({10_000: 1, 10_001: 1}, people))
        assert above == pytest.approx(below * 10_000 / 10_001, rel=1e-7)
