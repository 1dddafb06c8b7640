"""For each model, by name: a small table worked by hand, as in the papers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from laws.cases import Case, plain_case


@dataclass(frozen=True)
class Worked:
    """A table, what is asked of it, its tightest values and the verdict."""

    case: Case
    asked: dict[str, Any]
    tightest: dict[str, Any]
    holds: bool = True


TWO = plain_case([{0: 2, 1: 1}, {0: 1, 1: 1, 2: 1}])
"""Three rows in each block: two values, of which one twice; and three values."""
APART = plain_case([{0: 2}, {1: 2}])
"""Each block has one value, which is half of the table."""
THIRD = Fraction(1, 3)

WORKED: dict[str, Worked] = {
    "k_anonymity": Worked(TWO, {"k": 4}, {"k": 3}, holds=False),
    "distinct_l_diversity": Worked(TWO, {"l": 2}, {"l": 2}),
    "frequency_l_diversity": Worked(TWO, {"l": Fraction(3, 2)}, {"l": Fraction(3, 2)}),
    "entropy_l_diversity": Worked(plain_case([{0: 2, 1: 2}, {0: 1, 1: 1, 2: 1}]), {"l": 2}, {"l": 2}),
    # l = 3: 2 < 3 * 1; at l = 2 the rarer values together have 2 rows, and c = 2/2 is not reached
    "recursive_cl_diversity": Worked(plain_case([{0: 2, 1: 1, 2: 1}]), {"c": 3, "l": 2}, {"l": 3, "c": 1}),
    # of 6 rows 4 may be known; the next value has 1 against 5 others, and without the 4 against 1
    "pd_recursive_cl_diversity": Worked(
        plain_case([{0: 4, 1: 1, 2: 1}]), {"c": 3, "l": 2, "allowed": ("0",)}, {"l": 3, "c": Fraction(1, 5)}
    ),
    "npd_recursive_cl_diversity": Worked(
        plain_case([{0: 4, 1: 1, 2: 1}]),
        {"c1": 3, "c2": 10, "l": 2, "allowed": ("0",), "protected": ("2",)},
        {"l": 3, "c1": Fraction(1, 5), "c2": 50 * THIRD},
    ),
    "alpha_k_anonymity": Worked(TWO, {"alpha": 2 * THIRD, "k": 3}, {"alpha": 2 * THIRD, "k": 3}),
    # of the numbers 0, 1, 2, 2 no three are within 1/2 of one, nor within 1/2 of each other
    "epsilon_m_anonymity": Worked(plain_case([{0: 1, 1: 1, 2: 2}]), {"epsilon": Fraction(1, 2), "m": 2}, {"m": 2}),
    "delta_l_diversity": Worked(
        plain_case([{0: 1, 1: 1, 2: 2}]), {"delta": Fraction(1, 4), "l": 2}, {"l": 2, "delta": Fraction(1, 2)}
    ),
    "t_closeness": Worked(APART, {"t": Fraction(1, 4)}, {"t": Fraction(1, 2)}, holds=False),
    "nt_closeness": Worked(APART, {"n": 4, "t": Fraction(1, 2)}, {"t": Fraction(1, 2), "n": 4}),
    # p_out = 1/2 of either value; p_in = 2/3 and 1/3, so that (1-p_out)/(1-p_in) = 3/2
    "epsilon_privacy": Worked(
        plain_case([{0: 2, 1: 1}]), {"epsilon": 2, "adversary": "III"}, {"epsilon": Fraction(3, 2)}
    ),
    "beta_likeness": Worked(APART, {"beta": 1}, {"beta": 1}),
    # shares of 2/3 and 1/3 where the table has 1/2
    "delta_disclosure": Worked(plain_case([{0: 2, 1: 1}, {0: 1, 1: 2}]), {"delta": 1}, {"delta": math.log(3 / 2)}),
    "k_map": Worked(plain_case([{0: 3}, {0: 3}], population=(5, 4)), {"k": 4}, {"k": 4}),
    "delta_presence": Worked(
        plain_case([{0: 3}, {0: 3}], population=(5, 4)),
        {"min": Fraction(1, 2), "max": Fraction(2, 3)},
        {"min": Fraction(3, 5), "max": Fraction(3, 4)},
        holds=False,
    ),
}
