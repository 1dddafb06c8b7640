"""(c,2)-diversity and t-closeness as epsilon-privacy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from qblock.blocks import Blocks, Reference
from qblock.errors import ParameterError
from qblock.models import EpsilonPrivacy, RecursiveCLDiversity, TCloseness
from qblock.models.implied import epsilon_of_c2, epsilon_of_t


def share_allowed(epsilon: Fraction | int, values: int) -> Fraction:
    """The largest share of one value that class III with the uniform prior allows: min(eps/V, 1 - (V-1)/(V eps))."""
    return min(Fraction(epsilon) / values, 1 - Fraction(values - 1) / (values * Fraction(epsilon)))


@pytest.mark.parametrize("values", [2, 3, 4, 14])
@pytest.mark.parametrize("c", [Fraction(1), Fraction(2), Fraction(4), Fraction(10)])
def test_c2_is_class_three_with_the_uniform_prior_up_to_the_boundary(values: int, c: Fraction) -> None:
    epsilon = epsilon_of_c2(c, values)
    assert share_allowed(epsilon, values) == c / (c + 1)
    private, diverse = EpsilonPrivacy(epsilon=epsilon, adversary="III"), RecursiveCLDiversity(c=c, l=2)
    counts = np.random.default_rng(values).integers(0, 9, (400, values)) + np.eye(values, dtype=int)[0] * 20
    counts = np.concatenate([counts, [[int(c), 1] + [0] * (values - 2)]])
    blocks = Blocks.of([dict(enumerate(row)) for row in counts.tolist()])
    reference = Reference.of(blocks, values=values)
    at = blocks.largest * (c.numerator + c.denominator) == blocks.total * c.numerator
    expected = diverse.passes(blocks, reference) | at
    assert private.passes(blocks, reference).tolist() == expected.tolist()
    assert at[-1]


def test_t_close_tables_are_private() -> None:
    shares = [Fraction(3, 10), Fraction(7, 10)]
    assert epsilon_of_t(Fraction(1, 5), shares) == 3
    # The bound is met: a block with 1/10 of the first value.
    blocks = Blocks.of([{0: 1, 1: 9}])
    reference = Reference(10, ("a", "b"), np.array([3, 7]))
    assert TCloseness(t=Fraction(1, 5)).passes(blocks, reference).all()
    found = EpsilonPrivacy(epsilon=1, adversary="III", prior="table").tightest(blocks, reference)
    assert found.values[0].value == 3  # (1 - 7/10)/(1 - 9/10) of the other value
    assert epsilon_of_t(Fraction(1, 10), shares, nearest=Fraction(1, 2)) == 3


def test_every_t_close_block_has_the_epsilon() -> None:
    rng = np.random.default_rng(6)
    blocks = Blocks.of([dict(enumerate(row)) for row in rng.integers(1, 9, (500, 3)).tolist()])
    reference = Reference.of(blocks)
    t = Fraction(1, 5)
    total = int(reference.totals.sum())
    epsilon = epsilon_of_t(t, [Fraction(int(n), total) for n in reference.totals])
    close = TCloseness(t=t).passes(blocks, reference)
    private = EpsilonPrivacy(epsilon=epsilon, adversary="III", prior="table").passes(blocks, reference)
    assert 0 < close.sum() < 500
    assert private[close].all()


def test_where_the_guarantee_ends() -> None:
    for t in (Fraction(1, 10), Fraction(1, 5), Fraction(-1, 10)):
        with pytest.raises(ParameterError, match="valid"):
            epsilon_of_t(t, [Fraction(1, 10), Fraction(9, 10)])
    with pytest.raises(ParameterError, match="valid"):
        epsilon_of_c2(Fraction(1, 4), 4)
    with pytest.raises(ParameterError, match="valid"):
        epsilon_of_c2(2, 1)


def test_golden(golden: dict) -> None:  # type: ignore[type-arg]
    for entry in golden["vldb.c2_embedding"]["expected"]:
        c, values = Fraction(entry["c"]), entry["k"]
        if c * (values - 1) >= 1:
            assert epsilon_of_c2(c, values) == Fraction(entry["max"]["exact"])
            assert entry["cap(max)==c/(c+1)"]
            assert (share_allowed(Fraction(entry["min"]["exact"]), values) == c / (c + 1)) is entry["cap(min)==c/(c+1)"]
    expected = golden["vldb.lemma1"]["expected"]["eps_t at t=0.2,p=.334"]
    assert epsilon_of_t(Fraction(1, 5), [Fraction(334, 1000), Fraction(666, 1000)]) == Fraction(expected["exact"])
