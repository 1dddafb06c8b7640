"""epsilon-privacy: the classes of adversaries on worked examples and at the edges."""

from __future__ import annotations

import math
from fractions import Fraction

from qblock.blocks import Blocks, Reference
from qblock.models.epsilon import EpsilonPrivacy

TABLE3 = [{0: 200, 1: 300}, {0: 1800, 1: 2700}, {0: 18000, 1: 2000}]
MERGED = {
    "T": [0, 1, 2],
    "T_a (age suppressed)": [0, 0, 1],
    "T_g (gender suppressed)": [0, 1, 1],
    "T_top": [0, 0, 0],
}


def smallest(blocks: Blocks, reference: Reference | None = None, **asked: object) -> object:
    """The smallest epsilon of the table; held against a check at, just below and just above it."""
    reference = reference or Reference.of(blocks)
    asked = {"adversary": "III", **asked}
    found = EpsilonPrivacy(epsilon=1, **asked).tightest(blocks, reference).values[0].value  # type: ignore[arg-type]
    if found != math.inf:
        at = EpsilonPrivacy(epsilon=found, **asked)  # type: ignore[arg-type]
        above = EpsilonPrivacy(epsilon=found + Fraction(1, 10**12), **asked)  # type: ignore[arg-type]
        assert at.holds(blocks, reference)
        assert at.tightest(blocks, reference).holds
        assert above.holds(blocks, reference)
        if found > 1:
            below = EpsilonPrivacy(epsilon=max(Fraction(1), found - Fraction(1, 10**15)), **asked)  # type: ignore[arg-type]
            assert not below.holds(blocks, reference)
            assert not below.tightest(blocks, reference).holds
    return found


def one(*counts: int, values: int | None = None, prior: tuple[int, ...] | None = None) -> tuple[Blocks, Reference]:
    """One block with these counts, as blocks and reference."""
    blocks = Blocks.of([dict(enumerate(counts))])
    weights = None if prior is None else tuple(Fraction(w) for w in prior)
    return blocks, Reference.of(blocks, values=values or len(counts), prior=weights)


def test_classes_on_the_papers_table() -> None:
    blocks, prior = Blocks.of(TABLE3), (Fraction(12000), Fraction(18000))
    reference = Reference.of(blocks, prior=prior)
    assert smallest(blocks, reference, adversary="I", stubbornness=30000, prior="values") == Fraction(200000, 49999)
    assert smallest(blocks, reference, adversary="II", stubbornness=1000) == Fraction(2998, 1000)
    assert smallest(blocks, reference, adversary="II", stubbornness=30000) == Fraction(60998, 1000)
    assert smallest(blocks, reference, adversary="III", prior="values") == 6
    assert smallest(blocks, reference, adversary="IV") == math.inf
    # P = (4/5, 1/5): the first block's share of the second value is 3/5.
    assert smallest(blocks, reference, adversary="III", prior="table") == 3


def test_at_most_includes_the_smaller_stubbornness() -> None:
    blocks, reference = one(1, 1)
    assert smallest(blocks, reference, adversary="I", stubbornness=1000, at_most=False) == Fraction(1001, 1000)
    assert smallest(blocks, reference, adversary="I", stubbornness=1000) == Fraction(3, 2)
    assert smallest(blocks, reference, adversary="III") == 1
