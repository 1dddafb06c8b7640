"""Worked examples of pd- and npd-recursive diversity, by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from by_hand import passes, table, values

from qblock.errors import ParameterError
from qblock.models import Monotone, NpdRecursiveCLDiversity, PdRecursiveCLDiversity, RecursiveCLDiversity

COUNTS = (7, 3, 2, 1)


def infimum(l: int, allowed: str, *counts: tuple[int, ...]) -> object:  # noqa: E741
    return values(PdRecursiveCLDiversity(c=1, l=l, allowed=tuple(allowed)), table(*counts, names="ABDE"))["c"]


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        ("", [0, Fraction(7, 6), Fraction(7, 3), 7, math.inf]),
        ("A", [0, Fraction(3, 10), 1, 3, math.inf]),  # r_y = 3; tails 10, 3, 1, 0
        ("AB", [0, Fraction(2, 11), Fraction(1, 2), 2, math.inf]),  # r_y = 2; tails 11, 3+1, 1, 0
        ("B", [0, Fraction(7, 6), Fraction(7, 3), 7, math.inf]),  # what is allowed is not the most frequent value
        ("ABDE", [0, 0, 0, 0, 0]),
    ],
)
def test_infimum_of_c(allowed: str, expected: list[object]) -> None:
    assert [infimum(l, allowed, COUNTS) for l in (1, 2, 3, 4, 5)] == expected  # noqa: E741


def test_largest_l() -> None:
    given = table(COUNTS, names="ABDE")
    found = [
        values(PdRecursiveCLDiversity(c=c, l=2, allowed=("A",)), given)["l"]
        for c in (Fraction(3, 10), Fraction(1, 2), 1, 2, 3, 4, 10**30)
    ]
    assert found == [1, 2, 2, 3, 3, 4, 4]


def test_a_block_of_allowed_values_alone_passes_by_decree() -> None:
    model = PdRecursiveCLDiversity(c=Fraction(1, 100), l=9, allowed=("A", "B"))
    given = table((5, 0, 0), (4, 1, 0), names="ABC")
    assert passes(model, given) == [True, True]
    assert values(model, given) == {"l": math.inf, "c": 0}
    assert passes(model, table((5, 0, 0), (4, 1, 1), names="ABC")) == [True, False]
    assert values(model, table((5, 0, 0), (4, 1, 1), names="ABC")) == {"l": 1, "c": math.inf}


def test_a_tie_with_an_allowed_value_still_fails_at_c_of_one() -> None:
    given = table((5, 5), names="AB")
    assert passes(PdRecursiveCLDiversity(c=1, l=2, allowed=("A",)), given) == [False]
    assert passes(PdRecursiveCLDiversity(c=Fraction(101, 100), l=2, allowed=("A",)), given) == [True]
    assert infimum(2, "A", (5, 5)) == infimum(2, "B", (5, 5)) == 1


def test_without_allowed_values_it_is_recursive_diversity() -> None:
    given = table((3, 3, 1), (2, 2, 2), (6, 1, 1), (1, 0, 0))
    for l in (1, 2, 3, 4):  # noqa: E741
        plain, pd = RecursiveCLDiversity(c=2, l=l), PdRecursiveCLDiversity(c=2, l=l)
        assert passes(plain, given) == passes(pd, given)
        assert values(plain, given) == values(pd, given)
        assert plain.least_block_size(given[1]) == pd.least_block_size(given[1])


def test_npd() -> None:
    def npd(c2: int | Fraction) -> NpdRecursiveCLDiversity:
        return NpdRecursiveCLDiversity(c1=2, c2=c2, l=2, allowed=("A",), protected=("E", "D"))

    given = table(COUNTS, names="ABDE")
    assert values(npd(7), given) == {"l": 3, "c1": Fraction(3, 10), "c2": Fraction(100, 13)}
    assert passes(npd(7), given) == [True]
    assert passes(npd(Fraction(100, 13)), given) == [True]
    assert passes(npd(8), given) == [False]
    # a protected value that a block lacks has the share 0 there
    lacking = table(COUNTS, (7, 3, 2, 0), names="ABDE")
    assert passes(npd(1), lacking) == [True, False]
    assert passes(npd(0), lacking) == [True, True]
    assert values(npd(1), lacking)["c2"] == 0


def test_npd_without_protected_values_has_no_bound_on_c2() -> None:
    model = NpdRecursiveCLDiversity(c1=2, c2=99, l=2, allowed=("A",))
    given = table(COUNTS, names="ABDE")
    assert passes(model, given) == [True]
    assert values(model, given)["c2"] == math.inf


def test_npd_warns_of_a_share_that_no_node_can_have() -> None:
    _, reference = table(COUNTS, names="ABDE")
    assert not NpdRecursiveCLDiversity(c1=1, c2=Fraction(100, 13), l=2, protected=("E",)).validate(reference)
    (warning,) = NpdRecursiveCLDiversity(c1=1, c2=8, l=2, protected=("E", "A")).validate(reference)
    assert "c2 = 8" in warning


def test_least_block_size() -> None:
    _, reference = table(COUNTS, names="ABDE")

    def npd(c2: int, allowed: str, protected: str) -> int:
        model = NpdRecursiveCLDiversity(c1=1, c2=c2, l=3, allowed=tuple(allowed), protected=tuple(protected))
        return model.least_block_size(reference)

    assert PdRecursiveCLDiversity(c=1, l=3, allowed=("A",)).least_block_size(reference) == 1
    assert npd(0, "", "ABDE") == 3
    assert npd(0, "A", "ABDE") == 1
    assert npd(5, "AB", "AB") == 2
    assert npd(5, "A", "B") == 3
    assert npd(5, "", "ABDE") == 4


def test_flags_and_parameters() -> None:
    assert PdRecursiveCLDiversity(c=1, l=2).monotone == Monotone(True, False)
    assert NpdRecursiveCLDiversity(c1=1, c2=0, l=2).monotone == Monotone(True, False)
    assert NpdRecursiveCLDiversity(c1=1, c2=0, l=2).monotone.for_entities == Monotone(False, False)
    with pytest.raises(ParameterError, match="c > 0"):
        PdRecursiveCLDiversity(c=0, l=2)
    with pytest.raises(ParameterError, match="0 <= c2 < 100"):
        NpdRecursiveCLDiversity(c1=1, c2=100, l=2)
    with pytest.raises(ParameterError, match="integer l"):
        NpdRecursiveCLDiversity(c1=1, c2=1, l=0)


def test_a_value_outside_the_domain_is_named() -> None:
    blocks, reference = table(COUNTS, names="ABDE")
    with pytest.raises(ParameterError, match="allowed names 'Flu'"):
        PdRecursiveCLDiversity(c=1, l=2, allowed=("A", "Flu")).validate(reference)
    with pytest.raises(ParameterError, match="protected names NULL"):
        NpdRecursiveCLDiversity(c1=1, c2=1, l=2, protected=(None,)).validate(reference)
    with pytest.raises(ParameterError, match="'Flu'"):
        PdRecursiveCLDiversity(c=1, l=2, allowed=("Flu",)).passes(blocks, reference)
