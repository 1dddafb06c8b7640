# ruff: noqa: E741 - l is the letter of the papers
"""The reference's brute force against the closed forms of the specification, written here once more.

An engine built on those forms and a reference built on the definitions can only agree when the forms are right; these
tests need neither the engine nor the worked examples.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reference import adversary, closeness, distance, diversity, proximity
from reference.tables import Block, table_of

quick = settings(
    max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
histograms = st.dictionaries(st.integers(0, 4), st.integers(1, 5), min_size=1, max_size=4)
tables = st.lists(histograms, min_size=1, max_size=3)
cs = st.sampled_from([Fraction(1, 3), Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3)])


def blocks_of(found: list[dict[int, int]], **more: Any) -> list[Block]:
    return table_of(found, domain=tuple(range(5)), **more)[1]


@quick
@given(tables, cs, st.integers(1, 6), st.sets(st.integers(0, 4)))
def test_recursive_and_its_pd_form(found: list[dict[int, int]], c: Fraction, l: int, allowed: set[int]) -> None:
    for block in blocks_of(found):
        ranked = sorted(block.counts().values(), reverse=True)
        closed = l == 1 or ranked[0] < c * sum(ranked[l - 1 :])
        assert diversity.recursive_holds(block, c, l) == closed
        assert diversity.pd_holds(block, c, l, ()) == closed
        assert diversity.recursive_holds(block, c, l) == (l == 1 or c > diversity.recursive_tightest_c(block, l))
        assert diversity.pd_holds(block, c, l, allowed) == diversity.pd_printed(block, c, l, allowed)
        assert (diversity.pd_tightest_l(block, c, allowed) >= l) == diversity.pd_holds(block, c, l, allowed)


@quick
@given(tables, st.sampled_from([Fraction(1), Fraction(4, 3), Fraction(2), Fraction(5, 2), Fraction(3)]))
def test_entropy_in_integers_and_in_digits(found: list[dict[int, int]], l: Fraction) -> None:
    for block in blocks_of(found):
        value = float(diversity.entropy_tightest(block))
        if abs(value - float(l)) > 1e-12:
            assert diversity.entropy_holds(block, l) == (value > l)
        equal = len(set(block.counts().values())) == 1
        assert diversity.entropy_holds(block, len(block.counts())) == equal
        assert diversity.frequency_tightest(block) <= value + 1e-12 <= len(block.counts()) + 2e-12


@quick
@given(tables, st.integers(2, 3).flatmap(lambda h: st.tuples(st.just(h), st.integers(0, 10**6))))
def test_earth_mover_has_the_closed_forms(found: list[dict[int, int]], shape: tuple[int, int]) -> None:
    height, seed = shape
    group = [seed % 2, seed // 2 % 2, seed // 4 % 2, seed // 8 % 2, seed // 16 % 2]
    taxonomy = {v: [v, f"g{group[v]}", "*"] if height == 2 else [v, f"h{v // 2}", f"g{v // 4}", "*"] for v in range(5)}
    for block in blocks_of(found, taxonomy=taxonomy):
        p, q = block.shares(), block.table.whole().shares()
        gaps = [x - y for x, y in zip(p, q, strict=True)]
        assert closeness.t_tightest(block, "equal") == sum(map(abs, gaps)) / 2
        steps = [abs(sum(gaps[: i + 1])) for i in range(4)]
        assert closeness.t_tightest(block, "ordered") == sum(steps) / Fraction(4)
        levels: list[Fraction] = []
        for level in range(height):
            labels = {path[level] for path in taxonomy.values()}
            levels += [abs(sum(g for v, g in enumerate(gaps) if taxonomy[v][level] == label)) for label in labels]
        assert closeness.t_tightest(block, "hierarchical") == sum(levels, Fraction(0)) / (2 * height)


@quick
@given(tables, st.integers(0, 3), st.sampled_from([1, 2, 3]))
def test_windows(found: list[dict[int, int]], delta: int, l: int) -> None:
    for block in blocks_of(found):
        rows = proximity.numbers(block)
        widest = max(sum(x <= y <= x + 2 * delta for y in rows) for x in rows)
        assert proximity.delta_l_tightest(block, delta, "window") == Fraction(len(rows), widest)
        literal = proximity.delta_l_tightest(block, delta, "literal")
        assert literal == proximity.epsilon_m_tightest(block, 2 * delta, False)
        assert literal <= proximity.delta_l_tightest(block, delta, "window")
        width = len(rows) // l
        gaps = [rows[i + width] - rows[i] for i in range(len(rows) - width)]
        assert proximity.delta_l_tightest_delta(block, l, "window") == (min(gaps) / 2 if gaps else math.inf)


@quick
@given(
    tables,
    st.integers(0, 2),
    st.lists(st.integers(0, 3), min_size=5, max_size=5).filter(any),
    st.sampled_from([Fraction(1), Fraction(5), Fraction(17, 2), Fraction(100)]),
    st.sampled_from(["singletons", "negatives"]),
)
def test_classes_one_to_three(
    found: list[dict[int, int]], b: int, weights: list[int], sigma: Fraction, kind: str
) -> None:
    shape = {v: Fraction(w, sum(weights)) for v, w in enumerate(weights)}
    least = 1 / min(p for p in shape.values() if p)
    for block in blocks_of(found):
        n = block.size()
        predicates = getattr(adversary, kind)(block.table)
        exactly: list[Any] = [1]
        lower: list[Any] = [1]
        three: list[Any] = [1]
        two: list[Any] = [1]
        for phi in predicates:
            x, p = sum(block.count(v) for v in phi), sum(shape[v] for v in phi)
            if x == 0 or n <= b:
                continue
            exactly.append(adversary.closed_form(n, x, b, sigma, sigma * p))
            lower.append(adversary.closed_form(n, x, b, least, least * p))
            two.append(adversary.closed_form(n, x, b, Fraction(10), Fraction(len(phi))))
            three.append(adversary.closed_form_stubborn(n, x, b, p))
        if n <= b:
            exactly, lower, three, two = ([math.inf] for _ in range(4))
        common: dict[str, Any] = {"predicates": predicates, "b": b}
        one = {**common, "shape": shape, "sigma": sigma}
        assert adversary.epsilon_tightest(block, "I", at_most=False, **one) == max(exactly)
        up_to = max(exactly + lower) if least < sigma else max(exactly)
        assert adversary.epsilon_tightest(block, "I", at_most=True, interior=3, **one) == up_to
        assert adversary.epsilon_tightest(block, "II", sigma=10, interior=2, **common) == max(two)
        assert adversary.epsilon_tightest(block, "III", shape=shape, **common) == max(three)


@quick
@given(tables)
def test_smoothing_with_a_small_bandwidth_changes_nothing(found: list[dict[int, int]]) -> None:
    for block in blocks_of(found):
        p, ground = block.shares(), distance.ground(block.table, "ordered")
        assert distance.smooth(p, ground, Fraction(1, 4)) == p
        assert sum(distance.smooth(p, ground, Fraction(1, 2))) == 1
        assert closeness.t_tightest(block, "kernel_js", Fraction(1, 4)) == distance.jensen_shannon(
            p, block.table.whole().shares()
        )
