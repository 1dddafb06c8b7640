"""Round cuts: between their neighbours, the roundest there, and the same wherever in their cells these are."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from fractions import Fraction

from hypothesis import assume, given
from hypothesis import strategies as st

from qblock import comparison
from qblock.hierarchy.cuts import moment_text, round_moment, round_number

STEPS = [step * Fraction(10) ** n for n in range(7, -6, -1) for step in (5, 1)]
numbers = st.integers(-(10**9), 10**9).map(lambda n: Fraction(n, 10**5)) | st.integers(-300, 300).map(Fraction)
shares = st.fractions(0, 1).filter(lambda share: share < 1)
moments = st.datetimes(datetime(1890, 1, 1), datetime(2110, 1, 1))


@given(numbers, numbers)
def test_no_rounder_number_lies_between(one: Fraction, other: Fraction) -> None:
    assume(one != other)
    below, above = sorted((one, other))
    cut = round_number(below, above)
    assert below < cut <= above
    step = next(step for step in STEPS if any(below < i * step <= above for i in around(below, above, step)))
    assert cut % step == 0
    assert cut - step <= below


def around(below: Fraction, above: Fraction, step: Fraction) -> range:
    first = math.floor(below / step)
    return range(first, min(first + 3, math.floor(above / step) + 1))


@given(numbers, numbers, shares, shares)
def test_a_number_may_be_anywhere_in_its_cell(one: Fraction, other: Fraction, a: Fraction, b: Fraction) -> None:
    assume(one != other)
    below, above = sorted((one, other))
    cut = round_number(below, above)
    # The coarsest step of which a multiple parts them.
    step = next(step for step in STEPS if below // step < above // step)
    moved = (below // step + a) * step, (above // step + b) * step
    assert round_number(*moved) == cut


UNITS: list[Callable[[datetime], datetime]] = [
    lambda at: datetime(at.year // 50 * 50, 1, 1),
    lambda at: datetime(at.year // 10 * 10, 1, 1),
    lambda at: datetime(at.year // 5 * 5, 1, 1),
    lambda at: datetime(at.year, 1, 1),
    lambda at: datetime(at.year, 3 * ((at.month - 1) // 3) + 1, 1),
    lambda at: datetime(at.year, at.month, 1),
    lambda at: datetime(at.year, at.month, at.day),
    lambda at: at.replace(minute=0, second=0, microsecond=0),
    lambda at: at.replace(second=0, microsecond=0),
    lambda at: at.replace(microsecond=0),
]


def seconds(at: datetime) -> Fraction:
    key = comparison.key(at.isoformat(" "), "timestamp")
    assert key[0] == 0
    return Fraction(key[1])


@given(moments, moments | st.timedeltas(timedelta(microseconds=1), timedelta(days=3)), st.floats(0, 1), st.floats(0, 1))
def test_moments_are_cut_where_the_coarsest_unit_begins(
    one: datetime, other: datetime | timedelta, a: float, b: float
) -> None:
    below, above = sorted((one, one + other if isinstance(other, timedelta) else other))
    assume(below != above)
    cut = round_moment(seconds(below), seconds(above))
    assert seconds(below) < cut <= seconds(above)
    text = moment_text(cut)
    assert text is not None
    at = datetime.fromisoformat(text)
    assert seconds(at) == cut
    begins = next((begins for begins in UNITS if begins(below) < begins(above)), None)
    if begins is None:
        return
    assert begins(at) == at
    # What is earlier in the cell of each cuts there, too.
    low = begins(below) + (below - begins(below)) * a
    high = begins(above) + (above - begins(above)) * b
    assert round_moment(seconds(low), seconds(high)) == cut
