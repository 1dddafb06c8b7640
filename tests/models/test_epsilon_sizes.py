"""The least block size of epsilon-privacy near epsilon = 1, against the definition in fractions of a billion rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qblock.blocks import Blocks, Reference
from qblock.models import EpsilonPrivacy

ROWS = 10**9


@dataclass(frozen=True)
class Asked:
    """adversary: I with a uniform prior, II or III; shares: of the prior of III."""

    adversary: str
    epsilon: Fraction
    stubbornness: Fraction
    known: int
    shares: tuple[Fraction, ...]

    @property
    def masses(self) -> tuple[Fraction, ...]:
        values = len(self.shares)
        each = {"I": self.stubbornness / values, "II": Fraction(1)}
        return self.shares if self.adversary == "III" else (each[self.adversary],) * values

    @property
    def model(self) -> EpsilonPrivacy:
        finite = {} if self.adversary == "III" else {"stubbornness": self.stubbornness}
        prior = "values" if self.adversary == "III" else "uniform"
        return EpsilonPrivacy(
            epsilon=self.epsilon,
            adversary=self.adversary,
            known=self.known,
            prior=prior,
            at_most=False,
            **finite,
        )

    @property
    def reference(self) -> Reference:
        values = len(self.shares)
        counts = np.full(values, ROWS // values)
        counts[0] += ROWS - counts.sum()
        return Reference(ROWS, tuple(map(str, range(values))), counts, prior=self.shares)

    def holds(self, x: int, n: int, mass: Fraction) -> bool:
        """Of a value that x of n people have: what is believed in and out of the table, as models.md section 6 says."""
        left = n - self.known
        if x > left:
            return False
        inside = Fraction(x, left)
        outside = mass if self.adversary == "III" else (x + mass - 1) / (n + self.stubbornness - 1)
        return inside <= self.epsilon * outside and 1 - outside <= self.epsilon * (1 - inside)

    def most(self, n: int, mass: Fraction) -> int:
        """The most people who may have a value: where some may, fewer may, too."""
        low, high = 0, n
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.holds(middle, n, mass) else (low, middle - 1)
        return low

    def counts(self, n: int) -> list[int] | None:
        """A block of n people that passes, None where there is none."""
        left, found = n, []
        for mass in self.masses:
            found.append(min(left, self.most(n, mass)))
            left -= found[-1]
        return None if left else found

    def some(self) -> int | None:
        """A size near the least at which a block passes."""
        low, high = 1, ROWS
        if self.counts(high) is None:
            return None
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.counts(middle) else (middle + 1, high)
        return low


@st.composite
def asked(draw: st.DrawFn) -> Asked:
    adversary = draw(st.sampled_from(["I", "II", "III"]))
    values = draw(st.integers(2, 5))
    epsilon = 1 + Fraction(draw(st.integers(1, 99)), 10 ** draw(st.integers(6, 10)))
    stubbornness = values + Fraction(draw(st.integers(0, 60)), draw(st.sampled_from([1, 3, 7])))
    weights = draw(st.lists(st.integers(1, 40), min_size=values, max_size=values))
    shares = tuple(Fraction(weight, sum(weights)) for weight in weights)
    return Asked(adversary, epsilon, stubbornness, draw(st.sampled_from([0, 0, 1, 3])), shares)


HALF = (Fraction(1, 2), Fraction(1, 2))


@settings(deadline=None, max_examples=60, derandomize=True, database=None)
@given(case=asked())
@example(case=Asked("II", 1 + Fraction(99, 10**10), Fraction(50, 7), 0, HALF))
def test_a_block_of_a_billion_rows_that_passes_is_not_too_small(case: Asked) -> None:
    least = case.model.least_block_size(case.reference)
    size = case.some()
    if size is not None:
        assert least <= size
        counts = case.counts(size)
        assert counts is not None
        block = Blocks.of([dict(enumerate(counts))])
        assert case.model.passes(block, case.reference).all()
    for smaller in range(max(1, least - 3), min(least, ROWS)):
        assert case.counts(smaller) is None
