# ruff: noqa: E741 - l is the letter of the papers
"""What one model implies for another (models.md sections 2 to 7): each on random tables, blocks compared one by one."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import lattices

from laws.cases import Case, cases, plain_case, quick
from laws.rules import CS, LS, TS, fractions
from qblock.lattice import Lattice, minimal
from qblock.models import BY_NAME

LOOSE = Decimal("1e-40")
DELTAS = fractions("0", "1/4", "1/2", "1", "3/2")


def passes(case: Case, name: str, **params: Any) -> list[bool]:
    model = BY_NAME[name](**params)
    model.validate(case.engine[1])
    return [bool(verdict) for verdict in model.passes(*case.engine)]


def implies(one: list[bool], two: list[bool]) -> bool:
    return all(y or not x for x, y in zip(one, two, strict=True))


def value(case: Case, name: str, index: int = 0, **params: Any) -> Any:
    """The tightest value of one of the model's parameters."""
    model = BY_NAME[name](**params)
    model.validate(case.engine[1])
    found = model.tightest(*case.engine).values[index].value
    return Decimal(found) if isinstance(found, int) else found


def decimal(x: Any) -> Decimal:
    if isinstance(x, Fraction):
        return Decimal(x.numerator) / Decimal(x.denominator)
    return Decimal(x)


@quick
@given(case=cases(), l=LS)
def test_the_diversity_family_is_ordered(case: Case, l: Fraction) -> None:
    frequency, entropy = passes(case, "frequency_l_diversity", l=l), passes(case, "entropy_l_diversity", l=l)
    distinct = passes(case, "distinct_l_diversity", l=math.ceil(l))
    assert implies(frequency, entropy)
    assert implies(entropy, distinct)
    assert implies(distinct, passes(case, "k_anonymity", k=math.ceil(l)))
    figures = [decimal(value(case, f"{name}_l_diversity", l=1)) for name in ("frequency", "entropy", "distinct")]
    assert figures[0] <= figures[1] + LOOSE <= figures[2] + 2 * LOOSE


@quick
@given(case=cases(), c=CS, l=st.integers(1, 5), data=st.data())
def test_recursive_and_its_relatives(case: Case, c: Fraction, l: int, data: st.DataObject) -> None:
    names = case.names[: case.values]
    chosen = tuple(data.draw(st.lists(st.sampled_from(names), unique=True)))
    base = passes(case, "recursive_cl_diversity", c=c, l=l)
    assert implies(base, passes(case, "recursive_cl_diversity", c=c + Fraction(1, 100), l=l))
    assert implies(base, passes(case, "recursive_cl_diversity", c=c, l=max(1, l - 1)))
    assert implies(base, passes(case, "distinct_l_diversity", l=l))
    assert base == passes(case, "pd_recursive_cl_diversity", c=c, l=l)
    some = passes(case, "pd_recursive_cl_diversity", c=c, l=l, allowed=chosen)
    assert implies(base, some)
    assert all(passes(case, "pd_recursive_cl_diversity", c=c, l=l, allowed=names))
    protecting = {"c1": c, "l": l, "allowed": chosen}
    assert some == passes(case, "npd_recursive_cl_diversity", c2=0, protected=names, **protecting)
    assert implies(passes(case, "npd_recursive_cl_diversity", c2=20, protected=names, **protecting), some)
    shares = [max(h.values()) < c / (c + 1) * sum(h.values()) for h in case.histograms]
    assert shares == passes(case, "recursive_cl_diversity", c=c, l=2)


@quick
@given(case=cases(), alpha=fractions("1/4", "1/3", "1/2", "1"), k=st.integers(1, 6))
def test_alpha_k_is_k_and_frequency(case: Case, alpha: Fraction, k: int) -> None:
    both = zip(passes(case, "frequency_l_diversity", l=1 / alpha), passes(case, "k_anonymity", k=k), strict=True)
    assert passes(case, "alpha_k_anonymity", alpha=alpha, k=k) == [x and y for x, y in both]


@quick
@given(case=cases(), delta=DELTAS, l=LS)
def test_readings_of_proximity(case: Case, delta: Fraction, l: Fraction) -> None:
    literal = passes(case, "delta_l_diversity", delta=delta, l=l, reading="literal")
    window = passes(case, "delta_l_diversity", delta=delta, l=l, reading="window")
    assert implies(literal, window)
    assert literal == passes(case, "epsilon_m_anonymity", epsilon=2 * delta, m=l)
    plain = passes(case, "frequency_l_diversity", l=l)
    assert implies(window, plain)
    for name, params in (
        ("delta_l_diversity", {"delta": 0, "l": l, "reading": "literal"}),
        ("delta_l_diversity", {"delta": 0, "l": l, "reading": "window"}),
        ("epsilon_m_anonymity", {"epsilon": 0, "m": l}),
        ("epsilon_m_anonymity", {"epsilon": 0, "m": l, "relative": True}),
    ):
        assert passes(case, name, **params) == plain
    two = value(case, "delta_l_diversity", delta=delta, l=l, reading="window")
    assert value(case, "delta_l_diversity", delta=delta, l=l, reading="literal") <= two


@quick
@given(case=cases(), t=TS, n=st.integers(1, 8))
def test_distances_are_ordered(case: Case, t: Fraction, n: int) -> None:
    equal, ordered, hierarchical = (
        value(case, "t_closeness", t=0, distance=kind) for kind in ("equal", "ordered", "hierarchical")
    )
    height = len(case.taxonomy[0]) - 1
    assert ordered <= equal <= ordered * max(case.values - 1, 1)
    assert hierarchical <= equal <= hierarchical * height
    assert all(passes(case, "t_closeness", t=1, distance="ordered"))
    top = case.merged([0] * len(case.histograms))
    for ground in ({"distance": "equal"}, {"distance": "kernel_js", "bandwidth": Fraction(1, 2)}):
        assert passes(top, "t_closeness", t=0, **ground) == [True]
        close = passes(case, "t_closeness", t=t, **ground)
        rows = sum(case.totals)
        few = min(n, rows)
        own = passes(case, "nt_closeness", n=few, t=t, variant="own_or_top", **ground)
        anywhere = passes(case, "nt_closeness", n=few, t=t, variant="lattice", **ground)
        assert implies(close, own)
        assert implies(own, anywhere)
        assert passes(case, "nt_closeness", n=rows, t=t, variant="lattice", **ground) == close
        assert all(passes(case, "nt_closeness", n=1, t=0, variant="own_or_top", **ground))


@quick
@given(case=cases(), beta=fractions("0", "1/4", "1", "3"), delta=fractions("1/4", "1", "2"))
def test_variants_of_likeness_and_disclosure(case: Case, beta: Fraction, delta: Fraction) -> None:
    basic = passes(case, "beta_likeness", beta=beta, variant="basic")
    assert implies(passes(case, "beta_likeness", beta=beta, variant="enhanced"), basic)
    strict, skipping = (passes(case, "delta_disclosure", delta=delta, absent=kind) for kind in ("violation", "skip"))
    assert implies(strict, skipping)
    # A share that stays below e^delta of the table's gains less than e^delta - 1.
    gain = Fraction(math.exp(float(delta))) - 1 + Fraction(1, 10**9)
    assert implies(skipping, passes(case, "beta_likeness", beta=gain, variant="basic"))


@quick
@given(case=cases(), sigma=fractions("5", "8", "30"), known=st.integers(0, 2))
def test_classes_of_adversaries(case: Case, sigma: Fraction, known: int) -> None:
    common: dict[str, Any] = {"epsilon": 2, "known": known}
    one = {**common, "adversary": "I", "prior": "values", "stubbornness": sigma}
    exactly = value(case, "epsilon_privacy", at_most=False, **one)
    up_to = value(case, "epsilon_privacy", at_most=True, **one)
    assert exactly <= up_to
    two = value(case, "epsilon_privacy", adversary="II", stubbornness=sigma, **common)
    total = sum(case.prior)
    if all(sigma * weight / total >= 1 for weight in case.prior):
        assert up_to <= two
    assert two <= value(case, "epsilon_privacy", adversary="II", stubbornness=sigma + 1, **common)
    for kind in (one, {**common, "adversary": "III", "prior": "uniform"}):
        fewer, more = ({**kind, "known": known + extra} for extra in (0, 1))
        assert value(case, "epsilon_privacy", **fewer) <= value(case, "epsilon_privacy", **more)
        groups = value(case, "epsilon_privacy", predicates="taxonomy", **kind)
        assert value(case, "epsilon_privacy", **kind) <= groups
    if case.values >= 2:
        assert two > 1
        assert up_to > 1 or max(case.prior) == total  # a value that is certain beforehand tells nobody anything
        assert value(case, "epsilon_privacy", epsilon=2, adversary="IV") == math.inf


@quick
@given(case=cases(), c=CS)
def test_recursive_diversity_as_class_three(case: Case, c: Fraction) -> None:
    """EP section 5 with max for the printed min; at the boundary EP passes and the strict LD does not."""
    v = case.values
    assume(v >= 2)
    epsilon = max(v * c / (c + 1), (c + 1) * Fraction(v - 1, v))
    assume(epsilon >= 1)
    private = passes(case, "epsilon_privacy", epsilon=epsilon, adversary="III", prior="uniform")
    diverse = passes(case, "recursive_cl_diversity", c=c, l=2)
    for histogram, x, y in zip(case.histograms, private, diverse, strict=True):
        on_boundary = max(histogram.values()) * (c + 1) == c * sum(histogram.values())
        assert x == (y or on_boundary)


@quick
@given(case=cases(least_blocks=2), data=st.data())
def test_t_closeness_bounds_class_three(case: Case, data: st.DataObject) -> None:
    """EP Lemma 1, for t below the smallest positive share."""
    total = sum(case.totals)
    shares = [Fraction(n, total) for n in case.totals if n]
    assume(len(shares) == case.values >= 2)
    t = min(shares) * data.draw(fractions("1/10", "1/2", "9/10"))
    bound = max(max((p + t) / p, p / (p - t)) for p in shares)
    close = passes(case, "t_closeness", t=t, distance="equal")
    assert implies(close, passes(case, "epsilon_privacy", epsilon=bound, adversary="III", prior="table"))


@quick
@given(
    heights=st.lists(st.integers(0, 2), min_size=1, max_size=3),
    data=st.data(),
)
def test_minimal_nodes(heights: list[int], data: st.DataObject) -> None:
    lattice = Lattice(tuple(heights))
    chosen = data.draw(st.lists(st.sampled_from(list(lattice.nodes())), unique=True))
    assert minimal(chosen) == lattices.minimal(chosen)


def test_the_ratio_that_class_one_needs_can_exceed_that_of_class_three() -> None:
    """papers.md E13: more stubbornness does not always ask for more."""
    case = plain_case([{0: 1, 1: 1}])
    one = value(case, "epsilon_privacy", epsilon=2, adversary="I", stubbornness=1000)
    assert (one, value(case, "epsilon_privacy", epsilon=2, adversary="III")) == (Fraction(3, 2), 1)


@pytest.mark.parametrize("c2", [0, 1])
def test_npd_asks_for_every_protected_value(c2: int) -> None:
    case = plain_case([{0: 3, 1: 2}], values=3)
    params = {"c1": 2, "c2": c2, "l": 2, "protected": ("2",)}
    assert passes(case, "npd_recursive_cl_diversity", **params) == [c2 == 0]


def test_a_node_in_between_counts_for_the_lattice_form_alone() -> None:
    """Two blocks alike within a table that is not: 10 and 20 rows of equal shares, and 240 rows of one value."""
    case = plain_case([{0: 5, 1: 5}, {0: 10, 1: 10}, {0: 240}], coarser=((0, 0, 1), (0, 0, 0)))
    params: dict[str, Any] = {"n": 30, "t": 0}
    assert passes(case, "nt_closeness", variant="lattice", **params) == [True, True, True]
    assert passes(case, "nt_closeness", variant="own_or_top", **params) == [False, False, True]
