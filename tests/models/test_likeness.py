"""Worked examples of (alpha,k)-anonymity, beta-likeness and delta-disclosure, by hand."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from by_hand import passes, table, values

from qblock.blocks import Blocks, Reference
from qblock.errors import ParameterError
from qblock.models import AlphaKAnonymity, BetaLikeness, DeltaDisclosure, Monotone

LN2 = Decimal("0.693147180559945309417232121458176568075500134360255254120680")


def test_alpha_k() -> None:
    given = table((2, 2), (3, 1), (1, 1), (3, 3, 1))
    assert passes(AlphaKAnonymity(alpha=Fraction(1, 2), k=4), given) == [True, False, False, True]
    assert passes(AlphaKAnonymity(alpha=Fraction(3, 4), k=1), given) == [True, True, True, True]
    assert values(AlphaKAnonymity(alpha=1, k=1), given) == {"alpha": Fraction(3, 4), "k": 2}


def test_alpha_limits_only_the_listed_values() -> None:
    given = table((9, 1, 0), (4, 0, 1), (5, 0, 0), names="ABC")
    model = AlphaKAnonymity(alpha=Fraction(1, 10), k=1, values=("B", "C"))
    assert values(model, given) == {"alpha": Fraction(1, 5), "k": 5}
    assert passes(model, given) == [True, False, True]
    assert passes(AlphaKAnonymity(alpha=0, k=1, values=("B", "C")), given) == [False, False, True]
    assert passes(AlphaKAnonymity(alpha=0, k=1, values=()), given) == [True, True, True]
    with pytest.raises(ParameterError, match="'Z'"):
        AlphaKAnonymity(alpha=0, k=1, values=("Z",)).validate(given[1])


def test_alpha_least_block_size() -> None:
    _, reference = table((1, 1))
    assert AlphaKAnonymity(alpha=Fraction(2, 7), k=2).least_block_size(reference) == 4
    assert AlphaKAnonymity(alpha=Fraction(2, 7), k=9).least_block_size(reference) == 9
    assert AlphaKAnonymity(alpha=Fraction(2, 7), k=2, values=("0",)).least_block_size(reference) == 2
    assert AlphaKAnonymity(alpha=0, k=2).least_block_size(reference) == 2


def test_basic_beta_likeness() -> None:
    given = table((3, 1), (1, 3))  # from 1/2 to 3/4
    assert values(BetaLikeness(beta=1), given) == {"beta": Fraction(1, 2)}
    assert passes(BetaLikeness(beta=Fraction(1, 2)), given) == [True, True]
    assert passes(BetaLikeness(beta=Fraction(1, 2) - Fraction(1, 10**20)), given) == [False, False]
    assert values(BetaLikeness(beta=1), table((5, 3))) == {"beta": 0}  # the top node
    # the rare value counts most: 1/10 to 1/2 is a gain of 4
    assert values(BetaLikeness(beta=1), table((1, 1), (17, 1))) == {"beta": 4}
    assert values(BetaLikeness(beta=1), table((7,), (2,))) == {"beta": 0}


def test_enhanced_beta_likeness_has_the_limit_of_each_value() -> None:
    enhanced = BetaLikeness(beta=4, variant="enhanced")
    assert values(enhanced, table((3, 1), (1, 3))) == {"beta": Fraction(1, 2)}  # below ln 2
    assert values(enhanced, table((7, 1), (1, 7))) == {"beta": math.inf}  # 3/4 is above it
    assert passes(enhanced, table((3, 1), (1, 3), (7, 1), (1, 7))) == [True, True, False, False]
    assert values(enhanced, table((7,), (2,))) == {"beta": 0}  # ln 1: a share of 1 cannot grow
    assert passes(BetaLikeness(beta=0, variant="enhanced"), table((2, 2), (1, 1))) == [True, True]


def test_enhanced_limit_is_decided_beyond_doubles() -> None:
    # P = 1/2; the gain is 2 n(q,s)/n(q) - 1, just below and just above ln 2
    denominator = 10**18
    for excess, expected in ((0, True), (1, False)):
        numerator = int((LN2 + 1) / 2 * denominator) + excess
        blocks = Blocks.of([{0: numerator, 1: denominator - numerator}])
        reference = Reference(2 * denominator, ("a", "b"), np.array([denominator, denominator]))
        assert passes(BetaLikeness(beta=1, variant="enhanced"), (blocks, reference)) == [expected]


def test_the_largest_gain_is_found_exactly() -> None:
    # gains (n+1)/n and n/(n-1) differ by 1e-18, far below what doubles can tell
    n = 10**9
    blocks = Blocks.of([{0: n + 1, 1: n}, {0: n, 1: n + 1}])
    reference = Reference(4 * n, ("a", "b", "c"), np.array([n, n - 1, 2 * n + 1]))
    found = BetaLikeness(beta=1)._ratio("beta", blocks, reference)
    gains = [Fraction(int(p), int(q)) for p, q in zip(*found, strict=True)]
    factor = Fraction(4 * n, 2 * n + 1)
    assert gains == [Fraction(n, n - 1) * factor - 1, Fraction(n + 1, n - 1) * factor - 1]


def test_delta_disclosure() -> None:
    given = table((3, 1), (1, 3))  # ln(3/2) and -ln(1/2)
    found = values(DeltaDisclosure(delta=1), given)["delta"]
    assert isinstance(found, Decimal)
    assert abs(found - LN2) < Decimal("1e-55")
    assert passes(DeltaDisclosure(delta=Fraction(7, 10)), given) == [True, True]
    assert passes(DeltaDisclosure(delta=Fraction(69, 100)), given) == [False, False]
    for offset, expected in ((Fraction(-1, 10**40), False), (Fraction(1, 10**40), True)):
        assert passes(DeltaDisclosure(delta=Fraction(LN2) + offset), given) == [expected, expected]
    assert passes(DeltaDisclosure(delta=Fraction(found)), given) == [False, False]  # strict


def test_delta_disclosure_of_the_whole_table_is_zero() -> None:
    assert values(DeltaDisclosure(delta=1), table((5, 2, 3))) == {"delta": 0}
    assert passes(DeltaDisclosure(delta=Fraction(1, 10**12)), table((5, 2, 3))) == [True]
    assert values(DeltaDisclosure(delta=1), table((7,), (2,))) == {"delta": 0}


def test_delta_disclosure_of_an_absent_value() -> None:
    given = table((2, 0), (1, 3))  # P = (1/2, 1/2)
    strict, lenient = DeltaDisclosure(delta=1), DeltaDisclosure(delta=1, absent="skip")
    assert passes(strict, given) == [False, True]
    assert values(strict, given) == {"delta": math.inf}
    assert passes(lenient, given) == [True, True]
    assert abs(values(lenient, given)["delta"] - LN2) < Decimal("1e-55")  # type: ignore[operator]
    assert not strict.validate(given[1])
    assert "skipped" in lenient.validate(given[1])[0]


def test_a_declared_value_that_the_table_lacks_is_no_violation() -> None:
    blocks = Blocks.of([{0: 2, 1: 2}, {0: 1, 1: 1}])
    assert passes(DeltaDisclosure(delta=1), (blocks, Reference.of(blocks, values=5))) == [True, True]


def test_least_block_sizes() -> None:
    _, reference = table((5, 3, 2))
    assert DeltaDisclosure(delta=1).least_block_size(reference) == 3
    assert DeltaDisclosure(delta=1, absent="skip").least_block_size(reference) == 1
    # one row of a block of n has at most (1 + beta) / 2 of it
    assert BetaLikeness(beta=0).least_block_size(reference) == 2
    assert BetaLikeness(beta=1).least_block_size(reference) == 1


def test_flags() -> None:
    for model in (
        AlphaKAnonymity(alpha=1, k=1),
        BetaLikeness(beta=1),
        BetaLikeness(beta=1, variant="enhanced"),
        DeltaDisclosure(delta=1),
    ):
        assert model.monotone == Monotone(True, False)
    assert DeltaDisclosure(delta=1, absent="skip").monotone == Monotone(False, False)


def convergents(x: Fraction, most: int) -> list[tuple[int, int]]:
    """Numerators and denominators that come nearer to a number than any smaller ones."""
    found, before, now = [], (1, 0), (math.floor(x), 1)
    while now[1] < most:
        found.append(now)
        x = 1 / (x - math.floor(x))
        before, now = now, (math.floor(x) * now[0] + before[0], math.floor(x) * now[1] + before[1])
    return found


def test_a_gain_that_differs_from_the_logarithm_in_the_thirtieth_digit() -> None:
    """Enhanced, P = 1/2: 2 x/n - 1 <= ln 2, for the x and n that come nearest to that from both sides."""
    digits = Context(prec=90)
    limit = (1 + Fraction(digits.ln(Decimal(2)))) / 2
    near = [(x, n) for x, n in convergents(limit, 2**55) if n > 10**15]
    assert {Fraction(x, n) > limit for x, n in near} == {False, True}
    for x, n in near:
        reference = Reference(2 * n, ("0", "1"), np.array([n, n]))
        block = Blocks.of([{0: x, 1: n - x}])
        passed = BetaLikeness(beta=1, variant="enhanced").passes(block, reference).tolist()
        assert passed == [Fraction(x, n) <= limit], (x, n)


def test_skipping_absent_values_is_not_monotone() -> None:
    # alone each block is ln 3 away; together one row of ten has a value that makes up a third of the table
    given = table((1, 0, 0), (0, 9, 0), (8, 0, 9))
    model = DeltaDisclosure(delta=Fraction(12, 10), absent="skip")
    blocks, reference = given
    assert passes(model, given)[:2] == [True, True]
    assert passes(model, (blocks.merged(np.array([0, 0, 1])), reference))[0] is False


@pytest.mark.parametrize(
    ("model", "asked", "text"),
    [
        (AlphaKAnonymity, {"alpha": Fraction(11, 10), "k": 2}, "0 <= alpha <= 1"),
        (AlphaKAnonymity, {"alpha": 1, "k": 0}, "k >= 1"),
        (BetaLikeness, {"beta": -1}, "beta >= 0"),
        (BetaLikeness, {"beta": 1, "variant": "x"}, "basic or enhanced"),
        (DeltaDisclosure, {"delta": 0}, "delta > 0"),
        (DeltaDisclosure, {"delta": 1, "absent": "x"}, "violation or skip"),
    ],
)
def test_parameters_out_of_range(model: type, asked: dict[str, object], text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        model(**asked)


def test_an_empty_table_satisfies_all() -> None:
    for model in (AlphaKAnonymity(alpha=0, k=9), BetaLikeness(beta=0, variant="enhanced"), DeltaDisclosure(delta=1)):
        assert passes(model, table()) == []
        assert set(values(model, table()).values()) == {None}
