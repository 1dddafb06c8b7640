"""epsilon-privacy: the classes of adversaries on worked examples and at the edges."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from qblock import adversary
from qblock.blocks import Blocks, Reference
from qblock.errors import ParameterError
from qblock.models import EpsilonPrivacy, Monotone, measured

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
    if found == math.inf:
        assert not EpsilonPrivacy(epsilon=10**9, **asked).passes(blocks, reference).all()  # type: ignore[arg-type]
    else:
        at = EpsilonPrivacy(epsilon=found, **asked)  # type: ignore[arg-type]
        above = EpsilonPrivacy(epsilon=found + Fraction(1, 10**12), **asked)  # type: ignore[arg-type]
        assert at.passes(blocks, reference).all()
        assert at.tightest(blocks, reference).holds
        assert above.passes(blocks, reference).all()
        if found > 1:
            below = EpsilonPrivacy(epsilon=max(Fraction(1), found - Fraction(1, 10**15)), **asked)  # type: ignore[arg-type]
            assert not below.passes(blocks, reference).all()
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


def test_homogeneous_blocks_are_infinite_unless_certain_before() -> None:
    blocks, reference = one(3, values=2)
    for asked in ({"adversary": "I", "stubbornness": 10}, {"adversary": "II", "stubbornness": 10}, {}):
        assert smallest(blocks, reference, **asked) == math.inf
    # Only value 0 occurs in the table, so that its share of the table's prior is 1.
    certain = {"prior": "table"}
    assert smallest(blocks, reference, **certain) == 1
    assert smallest(blocks, reference, adversary="I", stubbornness=10, **certain) == 1
    assert smallest(blocks, reference, known=1, **certain) == math.inf
    assert smallest(blocks, reference, adversary="I", stubbornness=10, known=1, **certain) == math.inf


def test_a_domain_of_one_value_reveals_nothing() -> None:
    blocks, reference = one(3)
    for asked in ({"adversary": "I", "stubbornness": 1}, {"adversary": "IV"}, {"predicates": "negative"}, {}):
        assert smallest(blocks, reference, **asked) == 1


def test_known_individuals() -> None:
    # b = 1: five rows left; p_in(0) = 2/5 against 1/2, p_in(1) = 4/5 against 1/2: 8/5 and (1/2)/(1/5).
    assert smallest(*one(2, 4), known=1) == Fraction(5, 2)
    # Class I, sigma = 10: 4 * 15/(5 * 8) = 3/2 and 5 * (2+5)/(15 * 1).
    asked = {"adversary": "I", "stubbornness": 10, "at_most": False}
    assert smallest(*one(2, 4), known=1, **asked) == Fraction(7, 3)
    # Knowing everybody with the other value gives the rest away, and so does knowing the whole block.
    assert smallest(*one(2, 4), known=2) == math.inf
    assert smallest(*one(3, 3), known=2) == 2  # (1/2)/(1/4)
    assert smallest(*one(1, 1), known=2) == math.inf
    assert smallest(*one(1, 1), known=5, **asked) == math.inf


def test_groups() -> None:
    lists = {"predicates": (("0", "1"),)}
    # 6 of 10 rows; p_out of the group is (6 + 8 - 1)/(10 + 20 - 1): one row is removed, not one for each value.
    sigma = one(4, 2, 4, prior=(5, 3, 12))
    asked = {"adversary": "I", "stubbornness": 20, "prior": "values", "at_most": False}
    expected = max(Fraction(6, 10) / Fraction(13, 29), (1 - Fraction(13, 29)) / Fraction(4, 10))
    assert smallest(*sigma, **lists, **asked) == expected == Fraction(40, 29)
    # Class II gives the group the least mass, 2: 6 * 29/(10 * 7).
    assert smallest(*sigma, **lists, adversary="II", stubbornness=20) == Fraction(87, 35)
    # Class III: (6/10)/(2/3) < 1 and (1/3)/(4/10) < 1.
    assert smallest(*sigma, **lists) == 1
    # Lists that overlap are both looked at: {1, 2} has 6 of 10, {0} 4 of 10 against 1/3.
    assert smallest(*sigma, predicates=(("0", "1"), ("1", "2"), ("0",))) == Fraction(6, 5)


def test_taxonomy_predicates_are_all_labels_below_the_top() -> None:
    taxonomy = np.array([[0, 1, 0], [1, 0, 0], [2, 1, 0], [3, 0, 0]])
    blocks = Blocks.of([{0: 4, 2: 4, 1: 1, 3: 1}])
    reference = Reference.of(blocks, taxonomy=taxonomy)
    # Single values: max((4/10)/(1/4), (3/4)/(6/10)) = 8/5. The groups {0,2} and {1,3}: 8/10 of the rows, prior 1/2.
    assert smallest(blocks, reference) == Fraction(8, 5)
    assert smallest(blocks, reference, predicates="taxonomy") == Fraction(5, 2)
    assert smallest(blocks, reference, predicates=(("0", "2"), ("1", "3"))) == Fraction(5, 2)


def test_a_taxonomy_in_another_order_changes_nothing() -> None:
    blocks, reference = one(1, 3, values=2)
    swapped = Reference.of(blocks, taxonomy=np.array([[0, 1, 0], [1, 0, 0]]))
    asked = {"adversary": "I", "stubbornness": 5, "prior": "table", "at_most": False}
    assert smallest(blocks, swapped, predicates="taxonomy", **asked) == smallest(blocks, reference, **asked)


def test_negative_predicates() -> None:
    # An absent value: everybody has "not 2", which was not certain before.
    absent = one(2, 2, values=3)
    for asked in ({"adversary": "I", "stubbornness": 10}, {"adversary": "II", "stubbornness": 10}, {}):
        assert smallest(*absent, predicates="negative", **asked) == math.inf
    # With the table's prior nobody has it and that is known, unless some rows are.
    assert smallest(*absent, predicates="negative", prior="table") == 1
    # Class I at sigma 2 (and not 10): "not 0" is 2 of 4 against (2 + 1 - 1)/(4 + 2 - 1).
    found = smallest(*absent, predicates="negative", prior="table", adversary="I", stubbornness=10)
    assert found == Fraction(5, 4)
    assert smallest(*absent, predicates="negative", prior="table", known=1) == math.inf
    # (1, 3): not 0 is 3 of 4 against 1/2: (1/2)/(1/4); not 1 is 1 of 4.
    assert smallest(*one(1, 3), predicates="negative") == 2
    # (1, 3), V = 3, one known row outside: "not 2" has all three left.
    assert smallest(*one(1, 2, 1), predicates="negative", known=1) == math.inf
    # Class II, (2, 2, 2), sigma = 9: x = 4: 4 * 14/(6 * (4+2-1)); 6 * (6-4+9-2)/(14 * 2).
    assert smallest(*one(2, 2, 2), predicates="negative", adversary="II", stubbornness=9) == Fraction(27, 14)


def test_at_most_with_a_share_of_zero() -> None:
    # Shares 0, 1/4, 3/4: the least stubbornness that gives each possible value a row is 4.
    blocks, reference = one(0, 1, 1, values=3, prior=(0, 1, 3))
    asked = {"adversary": "I", "prior": "values"}
    at_four = {**asked, "stubbornness": 4, "at_most": False}
    at_hundred = {**asked, "stubbornness": 100, "at_most": False}
    # x = 1, n = 2: (1+4)/(2*1) and, for the other value, 2 * (1+1)/(5 * 1).
    assert smallest(blocks, reference, **at_four) == Fraction(5, 2)
    # 101/(2 * 25) and, for the other value, 2 * 26/101; value 1 again: 2 * (1 + 75)/101.
    assert smallest(blocks, reference, **at_hundred) == Fraction(101, 50)
    assert smallest(blocks, reference, **asked, stubbornness=100) == Fraction(5, 2)
    # A value that cannot be there, once: infinitely more likely; twice: 2 * (3+4-1)/(3 * 1).
    impossible = one(1, 1, values=2, prior=(0, 1))
    assert smallest(*impossible, **at_four) == math.inf
    twice = one(2, 1, values=2, prior=(0, 1))
    assert smallest(*twice, **at_four) == 4
    assert smallest(*twice, prior="values") == math.inf


def test_at_most_is_never_below_any_smaller_stubbornness() -> None:
    blocks, reference = one(3, 1, 4, prior=(2, 1, 5))
    asked = {"adversary": "I", "prior": "values"}
    bound = smallest(blocks, reference, **asked, stubbornness=60)
    for sigma in range(8, 61, 4):
        assert smallest(blocks, reference, **asked, stubbornness=sigma, at_most=False) <= bound  # type: ignore[operator]


def test_priors() -> None:
    blocks, reference = one(3, 1, values=3, prior=(6, 0, 2))
    assert adversary.prior_shape("uniform", reference) == (Fraction(1, 3),) * 3
    assert adversary.prior_shape("table", reference) == (Fraction(3, 4), Fraction(1, 4), 0)
    assert adversary.prior_shape("values", reference) == (Fraction(3, 4), 0, Fraction(1, 4))
    assert adversary.prior_shape("from_table", reference) == (Fraction(7, 11), Fraction(1, 11), Fraction(3, 11))
    assert adversary.external_stubbornness(reference) == 11
    assert adversary.least_stubbornness(adversary.prior_shape("values", reference)) == 4
    with_size = {"adversary": "I", "prior": "from_table", "at_most": False}
    assert smallest(blocks, reference, **with_size) == smallest(blocks, reference, **with_size, stubbornness=11)
    for weights in (None, (Fraction(1),), (Fraction(0),) * 3, (Fraction(2), Fraction(-1), Fraction(1))):
        broken = Reference(4, reference.domain, reference.totals, prior=weights)
        with pytest.raises(ParameterError, match="prior"):
            EpsilonPrivacy(epsilon=2, adversary="III", prior="values").validate(broken)


def test_validate_warns_about_rare_values() -> None:
    _, reference = one(99, 1)
    quiet = EpsilonPrivacy(epsilon=2, adversary="I", stubbornness=100, prior="table")
    assert quiet.validate(reference) == []
    rare = EpsilonPrivacy(epsilon=2, adversary="I", stubbornness=50, prior="table").validate(reference)
    assert len(rare) == 2
    assert "1 of the 2 values" in rare[0]
    assert "100" in rare[1]
    exactly = EpsilonPrivacy(epsilon=2, adversary="I", stubbornness=50, prior="table", at_most=False)
    assert len(exactly.validate(reference)) == 1


def test_class_two_needs_a_row_for_every_value() -> None:
    _, reference = one(1, 1, 1)
    with pytest.raises(ParameterError, match="V = 3"):
        EpsilonPrivacy(epsilon=2, adversary="II", stubbornness=Fraction(5, 2)).validate(reference)
    assert EpsilonPrivacy(epsilon=2, adversary="II", stubbornness=3).validate(reference) == []


@pytest.mark.parametrize(
    "asked",
    [
        {"epsilon": Fraction(9, 10)},
        {"epsilon": 2.5},
        {"adversary": "V"},
        {"adversary": "I", "stubbornness": None},
        {"adversary": "I", "stubbornness": None, "prior": "values"},
        {"adversary": "I", "stubbornness": Fraction(99, 100)},
        {"adversary": "II", "stubbornness": None},
        {"adversary": "II", "stubbornness": 9, "prior": "values"},
        {"adversary": "III", "stubbornness": 9},
        {"adversary": "IV", "stubbornness": 9},
        {"prior": "guess"},
        {"known": -1},
        {"known": Fraction(1, 2)},
        {"predicates": "all"},
        {"predicates": ()},
    ],
)
def test_parameters_out_of_range(asked: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match="valid"):
        EpsilonPrivacy(**{"epsilon": 2, "adversary": "III", **asked})  # type: ignore[arg-type]


@pytest.mark.parametrize("labels", [(), ("0", "1"), ("0", "unheard of")])
def test_lists_are_proper_sets_of_known_values(labels: tuple[str, ...]) -> None:
    _, reference = one(1, 1)
    with pytest.raises(ParameterError, match="list of predicates"):
        EpsilonPrivacy(epsilon=2, adversary="III", predicates=(labels,)).validate(reference)
    with pytest.raises(ParameterError, match="taxonomy"):
        EpsilonPrivacy(epsilon=2, adversary="III", predicates="taxonomy").validate(reference)


def test_monotone() -> None:
    for asked in ({"adversary": "I", "stubbornness": 3}, {"adversary": "II", "stubbornness": 3}, {"adversary": "IV"}):
        model = EpsilonPrivacy(epsilon=2, **asked)  # type: ignore[arg-type]
        assert model.monotone == Monotone(generalization=True, suppression=False)


def test_epsilon_one() -> None:
    # Reached by an adversary who cannot learn from rows, never by one who can.
    blocks, reference = one(2, 2)
    assert EpsilonPrivacy(epsilon=1, adversary="III").passes(blocks, reference).all()
    assert not EpsilonPrivacy(epsilon=1, adversary="I", stubbornness=10**6).passes(blocks, reference).all()
    assert EpsilonPrivacy(epsilon=1, adversary="II", stubbornness=4).least_block_size(reference) > 4
    assert smallest(blocks, reference, adversary="II", stubbornness=4) > 1  # type: ignore[operator]


def test_products_beyond_64_bits_stay_exact() -> None:
    n, sigma = 10**9, 10**9 + 7
    blocks, reference = one(n - 1, n)
    assert smallest(blocks, reference, adversary="II", stubbornness=sigma) == Fraction(2 * n - 2 + sigma, 2 * n - 1)
    model = EpsilonPrivacy(epsilon=Fraction(2 * n - 2 + sigma, 2 * n - 1), adversary="II", stubbornness=sigma)
    assert model.passes(blocks, reference).all()


def test_entities_use_shares_of_all_counts() -> None:
    # Two people, one with both values: n(q) = 2, counts 2 and 1.
    blocks, reference = one(2, 1)
    entities = Blocks(blocks.start, blocks.value, blocks.count, np.array([2]))
    assert smallest(entities, reference) == Fraction(3, 2)
    assert smallest(entities, reference, known=2) == math.inf


def test_many_blocks_at_the_threshold() -> None:
    # Class II asks (n + 99)/n <= 2 of single values, which blocks of 99 rows meet exactly, whatever else is in them.
    counts = np.random.default_rng(1).multinomial(99, [1 / 6] * 6, 500)
    blocks = Blocks.of([dict(enumerate(row)) for row in counts.tolist()] + [{0: 49, 1: 49}])
    model = EpsilonPrivacy(epsilon=2, adversary="II", stubbornness=100)
    reference = Reference.of(blocks)
    assert model.passes(blocks, reference).tolist() == [True] * 500 + [False]
    assert model.least_block_size(reference) == 99


def test_runs_of_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.random.default_rng(2).integers(1, 9, (60, 4))
    blocks = Blocks.of([dict(enumerate(row)) for row in counts.tolist()])
    reference = Reference.of(blocks, taxonomy=np.array([[v, v % 2, 0] for v in range(4)]))
    for predicates in ("taxonomy", "negative", (("0", "3"), ("0", "1"))):
        model = EpsilonPrivacy(epsilon=2, adversary="III", prior="table", predicates=predicates)
        at_once = measured(model, "epsilon", blocks, reference)
        with monkeypatch.context() as patch:
            patch.setattr("qblock.blocks.PAIRS", 9)
            np.testing.assert_array_equal(measured(model, "epsilon", blocks, reference), at_once)


SETTINGS = [
    {"adversary": "I", "stubbornness": 6},
    {"adversary": "I", "stubbornness": 40, "prior": "values"},
    {"adversary": "I", "stubbornness": 2, "prior": "values", "at_most": False},
    {"adversary": "II", "stubbornness": 8},
    {"adversary": "III"},
    {"adversary": "III", "prior": "values"},
    {"adversary": "III", "prior": "values", "predicates": "negative"},
    {"adversary": "II", "stubbornness": 8, "predicates": "negative"},
    {"adversary": "III", "predicates": (("0", "1"),)},
    {"adversary": "IV"},
]


@pytest.mark.parametrize("asked", SETTINGS)
@pytest.mark.parametrize("known", [0, 1])
@pytest.mark.parametrize("epsilon", [1, Fraction(5, 4), 2, 3, 9])
def test_no_smaller_block_than_the_least_can_pass(asked: dict[str, object], known: int, epsilon: Fraction) -> None:
    histograms = [h for h in itertools.product(range(13), repeat=3) if 0 < sum(h) <= 12]
    blocks = Blocks.of([dict(enumerate(h)) for h in histograms])
    reference = Reference(12, ("0", "1", "2"), np.array([4, 4, 4]), prior=(Fraction(1), Fraction(3), Fraction(5)))
    model = EpsilonPrivacy(epsilon=epsilon, known=known, **asked)  # type: ignore[arg-type]
    passing = blocks.rows[model.passes(blocks, reference)]
    least = model.least_block_size(reference)
    assert not (passing < least).any()
    if asked["adversary"] in ("II", "III") and "predicates" not in asked:
        assert min(least, 13) == passing.min(initial=13)  # these two are found exactly


@pytest.mark.parametrize("asked", SETTINGS[:8])
def test_merging_never_raises_epsilon(asked: dict[str, object]) -> None:
    counts = np.random.default_rng(3).integers(0, 4, (300, 3)) + 1
    blocks = Blocks.of([dict(enumerate(row)) for row in counts.tolist()])
    reference = Reference.of(blocks, prior=(Fraction(1), Fraction(3), Fraction(5)))
    merged = blocks.merged(np.arange(len(blocks)) // 2)
    for known in (0, 1):
        model = EpsilonPrivacy(epsilon=1, known=known, **asked)  # type: ignore[arg-type]
        fine, coarse = (measured(model, "epsilon", b, reference) for b in (blocks, merged))
        assert (coarse <= np.maximum(fine[::2], fine[1::2]) * (1 + 1e-12)).all()


def test_total_stubbornness_below_one_is_not_monotone() -> None:
    sigma = [Fraction(1, 20), Fraction(1, 20), Fraction(1, 10)]

    def worst(*block: int) -> object:
        total = sum(sigma)
        return max(adversary.smallest_epsilon(x, sum(block), 0, s, total) for x, s in zip(block, sigma, strict=True))

    assert [worst(0, 1, 1), worst(1, 0, 1), worst(1, 1, 2)] == [12, 12, 16]
    with pytest.raises(ParameterError):
        EpsilonPrivacy(epsilon=2, adversary="I", stubbornness=Fraction(1, 5))


def test_golden_example3(golden: dict) -> None:  # type: ignore[type-arg]
    expected = golden["vldb.example3"]["expected"]
    flu = Blocks.of([{0: 18000, 1: 2000}])
    reference = Reference(30000, ("Flu", "Cancer"), np.array([20000, 10000]), prior=(Fraction(12000), Fraction(18000)))
    exactly = {"adversary": "I", "stubbornness": 30000, "prior": "values", "at_most": False}
    assert smallest(flu, reference, **exactly) == Fraction(expected["class I exact eps"]["exact"])
    found = adversary.smallest_epsilon(18000, 20000, 0, 1, 30000)  # the flu alone: its least mass is 1
    assert found == Fraction(expected["class II sigma=30000 exact"]["exact"])
    assert smallest(flu, reference, prior="values") == Fraction(expected["class III"]["exact"])
    others = [17999, 2000]
    p_out = adversary.predictive(others, [Fraction(12000), Fraction(18000)])
    assert p_out[0] == Fraction(expected["p_out exact"]["exact"])


@pytest.mark.parametrize("node", list(MERGED))
def test_golden_table3(node: str, golden: dict) -> None:  # type: ignore[type-arg]
    blocks = Blocks.of(TABLE3)
    reference = Reference.of(blocks, prior=(Fraction(12000), Fraction(18000)))
    merged = blocks.merged(np.array(MERGED[node]))
    expected = golden["vldb.table3_classI"]["expected"][node]
    exactly = {"adversary": "I", "stubbornness": 30000, "prior": "values", "at_most": False}
    assert smallest(merged, reference, **exactly) == Fraction(expected["exact"]["exact"])
    assert smallest(merged, reference, prior="values") == Fraction(expected["classIII(.4,.6)"]["exact"])
    for sigma in (1000, 30000):
        expected = golden["vldb.table3_classII"]["expected"][f"sigma={sigma}"][node]
        assert smallest(merged, reference, adversary="II", stubbornness=sigma) == Fraction(expected["exact"]["exact"])


def test_golden_class_one(golden: dict) -> None:  # type: ignore[type-arg]
    expected = golden["vldb.classI_at_most"]["expected"]
    table = one(1, 1)
    class_one = {"adversary": "I", "stubbornness": 1000}
    assert smallest(*table, **class_one, at_most=False) == Fraction(expected["exact sigma=1000 uniform"]["exact"])
    smaller = Fraction(expected["exact sigma=2 uniform (same shape, smaller stubbornness)"]["exact"])
    assert smallest(*table, **class_one) == smaller
    assert smallest(*table) == Fraction(expected["class III uniform"]["exact"])
    expected = golden["vldb.sigma_below_one"]["expected"]
    rare = one(1, 99, prior=(1, 199))
    asked = {"adversary": "I", "prior": "values", "stubbornness": 100, "at_most": False}
    assert smallest(*rare, **asked) == Fraction(expected["exact"]["exact"])
    assert smallest(*one(1, 99, prior=(0, 1)), **asked) == math.inf
    entry = golden["vldb.total_sigma_below_one_not_monotone"]
    sigma = {value: Fraction(weight) for value, weight in entry["sigma"].items()}
    fine = [{value: block.get(value, 0) for value in sigma} for block in entry["blocks"]]
    for block, found in zip([*fine, {v: fine[0][v] + fine[1][v] for v in sigma}], entry["expected"], strict=True):
        n, total = sum(block.values()), sum(sigma.values())
        worst = max(adversary.smallest_epsilon(x, n, 0, sigma[value], total) for value, x in block.items())
        assert worst == Fraction(found["exact"])


def test_golden_class_three_and_predictive(golden: dict) -> None:  # type: ignore[type-arg]
    expected = golden["vldb.c2_boundary"]["expected"]
    assert smallest(*one(8, 2)) == Fraction(expected["III uniform eps"]["exact"])
    expected = golden["vldb.lemma1"]["expected"]
    assert smallest(*one(1, 9999, prior=(1, 9)), prior="values") == Fraction(expected["true III eps"]["exact"])
    expected = golden["vldb.lemma1_converse"]["expected"]
    assert smallest(*one(7, 3, prior=(334, 666)), prior="values") == Fraction(expected["III table eps"]["exact"])
    entry = golden["vldb.dirichlet"]
    found = adversary.predictive(entry["histogram"], entry["sigma"])
    assert list(found) == [
        Fraction(p["exact"]) for p in entry["expected"]["p_out by Bayes (table without t has histogram h)"]
    ]


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("ldiv.figure2", ["zip", "age", "nationality"]),
        ("ldiv.figure3", ["zip", "age", "nationality"]),
        ("closeness.table2", ["zip", "age"]),
        ("thesis.2_9", ["zip", "age"]),
        ("thesis.2_10", ["zip", "age"]),
        ("thesis.2_11", ["zip", "age"]),
        ("thesis.2_12", ["zip", "age"]),
    ],
)
def test_golden_tables(name: str, by: list[str], golden: dict, golden_table) -> None:  # type: ignore[no-untyped-def,type-arg]
    entry = golden[name]
    blocks, reference = golden_table(entry["file"], by, entry["sensitive"])
    for prior in ("uniform", "table"):
        expected = entry["expected"][f"III_{prior}_smallest_eps"]
        value = math.inf if expected == "inf" else Fraction(expected["exact"])
        assert smallest(blocks, reference, prior=prior) == value


@pytest.mark.parametrize("rows", ["n=3.00e6", "n=2.97e6"])
def test_golden_row_of_the_papers_experiment(rows: str, golden: dict) -> None:  # type: ignore[type-arg]
    expected = golden["vldb.table5_row_5211"]["expected"][rows]
    n = round(float(rows[2:]))
    high = round(n * 0.334)
    blocks = Blocks.of([{0: high, 1: n - high}])
    reference = Reference.of(blocks)
    columns = {
        "A_d_1e6": {"adversary": "I", "stubbornness": 10**6, "at_most": False},
        "A_c_1e6": {"adversary": "I", "stubbornness": 10**6, "at_most": False, "prior": "table"},
        "A_any_1e3": {"adversary": "II", "stubbornness": 1000},
        "A_any_1e6": {"adversary": "II", "stubbornness": 10**6},
        "A_d_inf": {},
        "A_c_inf": {"prior": "table"},
    }
    for column, asked in columns.items():
        found = smallest(blocks, reference, **asked)
        assert float(found) == pytest.approx(expected[column], abs=2e-6)  # type: ignore[arg-type]
