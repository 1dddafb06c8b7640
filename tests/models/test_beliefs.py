"""What is believed of a whole table, against the slow reference on random tables, and its laws."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import bayes as reference
from reference.beliefs import beliefs, largest_change

from qblock.bayes import InconsistentPrior, Joint, Thresholds, believed
from qblock.bayes.beliefs import whole_weights
from qblock.errors import ParameterError

VALUES = 3
ASKED = [
    Thresholds(Fraction(r1), Fraction(r2), Fraction(d), Fraction(e), Fraction(f))
    for r1, r2, d, e, f in [
        ("1/10", "1/2", "1/10", "1/10", "2"),
        ("1/3", "1/2", "1/2", "1/3", "3/2"),
        ("11/20", "3/5", "2/5", "2/5", "5/4"),
    ]
]


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[Fraction]], list[list[int]], list[int]]:
    """f(q,s), n(q,s) and the block of each of a few leaves; small, so that beliefs often meet a threshold exactly."""
    leaves = draw(st.integers(1, 4))
    weight = st.sampled_from([Fraction(n, 2) for n in (0, 0, 1, 2, 3, 4, 6)])
    population = [[draw(weight) for _ in range(VALUES)] for _ in range(leaves)]
    table = [[draw(st.integers(0, 3)) for _ in range(VALUES)] for _ in range(leaves)]
    return population, table, [draw(st.integers(0, 1)) for _ in range(leaves)]


def joint(rows: list[list[Fraction]] | list[list[int]]) -> Joint:
    pairs = [(q, s, Fraction(n)) for q, row in enumerate(rows) for s, n in enumerate(row)]
    leaf, value = (np.array([pair[i] for pair in pairs], dtype=np.int64) for i in (0, 1))
    return Joint.of(leaf, value, whole_weights([pair[2] for pair in pairs]))


def expected(
    population: list[list[Fraction]], table: list[list[int]], block: list[int], asked: Thresholds
) -> dict[str, object]:
    """By enumeration of people, with the reference's prior and posterior; ZeroDivisionError where one is undefined."""
    f = {(q, s): w for q, row in enumerate(population) for s, w in enumerate(row)}
    found: dict[str, object] = {}
    breach, positive, negative, moved, own, rises = set(), set(), set(), set(), 0, [Fraction(0)]
    people = [(q, s) for q, row in enumerate(table) for s, n in enumerate(row) for _ in range(n)]
    belief = {}
    for q in {q for q, _ in people}:
        members = {other for other in range(len(table)) if block[other] == block[q]}
        counts = {s: sum(table[m][s] for m in members) for s in range(VALUES)}
        for s in range(VALUES):
            belief[q, s] = reference.prior(f, q, s), reference.posterior(f, members, counts, q, s)
    befallen = {"breach": 0, "positive": 0, "negative": 0, "moved": 0}
    for q, mine in people:
        hit = set()
        for s in range(VALUES):
            a, b = belief[q, s]
            rises.append(b - a)
            if reference.breach(a, b, asked.rho1, asked.rho2):
                breach.add((q, s))
                hit.add("breach")
            if b > 1 - asked.delta and s == mine:
                positive.add((q, s))
                hit.add("positive")
            if b < asked.epsilon and s != mine:
                negative.add((q, s))
                hit.add("negative")
            if b > asked.factor * a or a > asked.factor * b:
                moved.add((q, s))
                hit.add("moved")
                own += s == mine
        for name in hit:
            befallen[name] += 1
    for name, pairs in (("breach", breach), ("positive", positive), ("negative", negative)):
        found[name] = (len(pairs), len({q for q, _ in pairs}), befallen[name])
    found["moved"] = (befallen["moved"], own)
    found["rise"] = max(rises)
    found["fall"] = max(-rise for rise in rises)
    found["impossible"] = sum(f[pair] == 0 for pair in people)
    return found


@settings(deadline=None, max_examples=400)
@given(drawn=tables(), asked=st.sampled_from(ASKED))
def test_it_agrees_with_the_reference(drawn: tuple, asked: Thresholds) -> None:  # type: ignore[type-arg]
    population, table, block = drawn
    blocks = np.array(block, dtype=np.int64)

    def fast():  # type: ignore[no-untyped-def]
        return believed(joint(population), joint(table), blocks, VALUES, asked)

    members = [{q for q, own in enumerate(block) if own == b} for b in (0, 1)]
    impossible = any(
        sum(table[q][s] for q in within) and not sum(population[q][s] for q in within)
        for within in members
        for s in range(VALUES)
    )
    try:
        slow = expected(population, table, block, asked)
    except ZeroDivisionError:
        impossible = True
    if impossible:
        with pytest.raises(InconsistentPrior, match="inconsistent prior"):
            fast()
        return
    found = fast()
    for name in ("breach", "positive", "negative"):
        one = getattr(found, name)
        assert (one.disclosures, one.combinations, one.people) == slow[name], name
    assert (found.moved.people, found.moved.own) == slow["moved"]
    assert found.impossible == slow["impossible"]
    assert (found.rise.posterior - found.rise.prior if found.rise else 0) == slow["rise"]
    assert (found.fall.prior - found.fall.posterior if found.fall else 0) == slow["fall"]
    exact = beliefs(dict(enumerate(population)), dict(enumerate(table)), dict(enumerate(block)))
    assert largest_change(exact) == max(slow["rise"], slow["fall"])  # type: ignore[type-var]
    assert all(sum(one.prior) == sum(one.posterior) == 1 for one in exact)


@given(drawn=tables())
def test_the_leaf_table_is_believed_as_it_is_and_the_population_teaches_nothing(drawn: tuple) -> None:  # type: ignore[type-arg]
    _, table, block = drawn
    apart = list(range(len(table)))
    uniform = [[Fraction(1)] * VALUES for _ in table]
    for one in beliefs(dict(enumerate(uniform)), dict(enumerate(table)), dict(enumerate(apart))):
        assert list(one.posterior) == [Fraction(n, sum(one.counts)) for n in one.counts]
    same = believed(joint(table), joint(table), np.array(block, dtype=np.int64), VALUES, ASKED[0])
    assert same.rise is same.fall is None
    assert same.breach.people == same.moved.people == same.impossible == 0


def test_weights_beyond_a_word_are_exact() -> None:
    """1/3 of everything, up to a part in 10^30: what a double cannot tell from 1/3."""
    large = 10**30
    for more, breached in ((0, 0), (-1, 1), (1, 0)):
        population = [[Fraction(large + more), Fraction(large), Fraction(large)]]
        asked = Thresholds(Fraction(1, 3), Fraction(1, 2))
        found = believed(joint(population), joint([[3, 1, 1]]), np.array([0]), VALUES, asked)
        assert found.breach.disclosures == breached, more
        assert found.people == 5


def test_the_example_of_the_paper_by_counts() -> None:
    """models.md section 5: merging q1 and q2 raises the belief in q1's second value from 1/2 to 5/8."""
    population = [[Fraction(1, 2), Fraction(1, 2)], [Fraction(0), Fraction(1)]]
    table, rho = [[1, 1], [0, 4]], Thresholds(Fraction(55, 100), Fraction(6, 10))
    fine, merged = (believed(joint(population), joint(table), np.array(block), 2, rho) for block in ([0, 1], [0, 0]))
    assert fine.breach.disclosures == 0
    assert (merged.breach.disclosures, merged.breach.combinations, merged.breach.people) == (2, 1, 2)
    assert merged.rise is not None
    assert (merged.rise.value, merged.rise.prior, merged.rise.posterior) == (1, Fraction(1, 2), Fraction(5, 8))
    # The four people of q2 are certain in either: nobody else can have the other value.
    assert fine.positive.people == merged.positive.people == 4


@pytest.mark.parametrize(
    ("population", "table", "said"),
    [
        ([[0, 0], [1, 1]], [[2, 1], [0, 0]], "nobody with 1 combinations of quasi-identifiers that 3 rows"),
        ([[1, 0], [1, 0]], [[1, 5], [0, 0]], "1 times a block holds .* in 5 rows"),
        ([[1, 0], [0, 1]], [[0, 4], [0, 0]], "for 1 combinations of quasi-identifiers, of 4 rows"),
    ],
)
def test_an_inconsistent_prior_is_told_by_counts(population: list, table: list, said: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(InconsistentPrior, match=said):
        believed(joint(population), joint(table), np.array([0, 0]), 2, ASKED[0])


def test_thresholds_out_of_range() -> None:
    half = Fraction(1, 2)
    for rho in itertools.pairwise([Fraction(0), half, half, Fraction(1)]):
        with pytest.raises(ParameterError, match="rho1 < rho2"):
            Thresholds(*rho)
    for name in ("delta", "epsilon"):
        with pytest.raises(ParameterError, match=name):
            Thresholds(**{name: Fraction(1)})
    with pytest.raises(ParameterError, match="factor"):
        Thresholds(factor=Fraction(1))


@given(drawn=tables(), times=st.integers(2, 9))
def test_beliefs_are_of_shares_not_of_sizes(drawn: tuple, times: int) -> None:  # type: ignore[type-arg]
    population, table, block = drawn
    blocks = np.array(block, dtype=np.int64)
    many = joint([[n * times for n in row] for row in table]), joint([[w / times for w in row] for row in population])
    try:
        one = believed(joint(population), joint(table), blocks, VALUES, ASKED[1])
    except InconsistentPrior:
        with pytest.raises(InconsistentPrior):
            believed(many[1], many[0], blocks, VALUES, ASKED[1])
        return
    for other in (
        believed(many[1], joint(table), blocks, VALUES, ASKED[1]),
        believed(joint(population), many[0], blocks, VALUES, ASKED[1]),
    ):
        assert (one.rise, one.fall, one.combinations) == (other.rise, other.fall, other.combinations)
        grown = times if other.people != one.people else 1
        for name in ("breach", "positive", "negative"):
            before, after = getattr(one, name), getattr(other, name)
            assert (after.disclosures, after.people) == (before.disclosures, before.people * grown)
        assert other.moved.people == one.moved.people * grown
