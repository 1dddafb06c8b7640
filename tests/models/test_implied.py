"""What a guarantee grants as epsilon-privacy: never less than any table that has it reaches, and the paper's cases."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import adversary as slow
from reference.tables import Block, Table

from qblock.blocks import Blocks, Reference
from qblock.models import (
    REGISTRY,
    AlphaKAnonymity,
    BetaLikeness,
    DeltaDisclosure,
    DeltaLDiversity,
    DistinctLDiversity,
    EntropyLDiversity,
    EpsilonMAnonymity,
    EpsilonPrivacy,
    FrequencyLDiversity,
    KAnonymity,
    KMap,
    Model,
    NpdRecursiveCLDiversity,
    NtCloseness,
    PdRecursiveCLDiversity,
    RecursiveCLDiversity,
    TCloseness,
)
from qblock.models.implied import Implied, epsilon_of_c2, epsilon_of_t, implied_epsilon

F = Fraction
MODELS: list[Model] = [
    FrequencyLDiversity(l=F(3, 2)),
    FrequencyLDiversity(l=2),
    EntropyLDiversity(l=F(5, 2)),
    EntropyLDiversity(l=F(3, 2)),
    RecursiveCLDiversity(c=2, l=2),
    RecursiveCLDiversity(c=3, l=3),
    PdRecursiveCLDiversity(c=2, l=2),
    NpdRecursiveCLDiversity(c1=4, c2=20, l=2, protected=("0", "1")),
    NpdRecursiveCLDiversity(c1=4, c2=20, l=2, allowed=("2",), protected=("0",)),
    EpsilonMAnonymity(epsilon=1, m=F(3, 2)),
    DeltaLDiversity(delta=F(1, 2), l=F(3, 2)),
    AlphaKAnonymity(alpha=F(1, 2), k=2),
    TCloseness(t=F(1, 10)),
    TCloseness(t=F(1, 10), distance="ordered"),
    TCloseness(t=F(1, 10), distance="hierarchical"),
    BetaLikeness(beta=1),
    BetaLikeness(beta=2, variant="enhanced"),
    DeltaDisclosure(delta=1),
    DeltaDisclosure(delta=F(1, 2), absent="skip"),
    EpsilonPrivacy(epsilon=2, adversary="III"),
    EpsilonPrivacy(epsilon=2, adversary="III", prior="table", predicates="negative"),
]
ADVERSARIES = [
    EpsilonPrivacy(epsilon=1, adversary="I", stubbornness=10),
    EpsilonPrivacy(epsilon=1, adversary="I", stubbornness=1000, prior="table"),
    EpsilonPrivacy(epsilon=1, adversary="I", stubbornness=7, prior="table", at_most=False),
    EpsilonPrivacy(epsilon=1, adversary="II", stubbornness=50),
    EpsilonPrivacy(epsilon=1, adversary="III"),
    EpsilonPrivacy(epsilon=1, adversary="III", prior="table"),
]
TAXONOMY = np.array([[0, 0, 0], [1, 0, 0], [2, 2, 0], [3, 2, 0]])


def known(blocks: Blocks, values: int = 4) -> Reference:
    numbers = tuple(map(F, (1, 2, 4, 9)))[:values]
    made = Reference.of(blocks, values=values, numbers=numbers, taxonomy=TAXONOMY[:values])
    return replace(made, ordered=True)


@settings(deadline=None, max_examples=150)
@given(rows=st.lists(st.lists(st.integers(0, 6), min_size=4, max_size=4).filter(any), min_size=1, max_size=12))
def test_no_table_that_has_it_exceeds_what_it_grants(rows: list[list[int]]) -> None:
    """P_s is of the whole table, and each block that passes is a table's: what reaches more would be published."""
    blocks = Blocks.of([dict(enumerate(row)) for row in rows])
    reference = known(blocks)
    for model in MODELS:
        passing = blocks.select(model.passes(blocks, reference))
        for other in ADVERSARIES:
            found = implied_epsilon(model, reference, other, reference)
            if not len(passing):
                continue
            reached = other.tightest(passing, reference).values[0].value
            assert found.epsilon is not None, (model, found)
            assert reached is not None
            assert reached <= found.epsilon, (model, other, found)


def test_the_grants_are_met() -> None:
    """The bounds of class III are attained by a block at the limit, as the slow reference says."""
    rows = [[2, 1, 1, 0], [0, 1, 1, 2]]
    blocks = Blocks.of([dict(enumerate(row)) for row in rows])
    found = implied_epsilon(FrequencyLDiversity(l=2), known(blocks), ADVERSARIES[4], known(blocks))
    table = Table(
        [{"q": str(b), "s": str(s)} for b, row in enumerate(rows) for s, n in enumerate(row) for _ in range(n)],
        sensitive="s",
        hierarchies={"q": {"0": ["0", "*"], "1": ["1", "*"]}},
        domain=("0", "1", "2", "3"),
    )
    blocks_of: list[Block] = list(table.blocks((0,)).values())
    reached = max(slow.epsilon_tightest(b, "III", shape=slow.uniform(b.table), sigma=None) for b in blocks_of)
    assert found.epsilon == reached == 2


@pytest.mark.parametrize("values", [2, 3, 4])
@pytest.mark.parametrize("c", [F(1), F(2), F(10)])
def test_recursive_c2_is_the_corrected_embedding(values: int, c: Fraction) -> None:
    blocks = Blocks.of([dict.fromkeys(range(values), 5)])
    reference = known(blocks, values)
    found = implied_epsilon(RecursiveCLDiversity(c=c, l=2), reference, ADVERSARIES[4], reference)
    assert found.epsilon == epsilon_of_c2(c, values)


def test_t_closeness_is_lemma_1_where_that_holds_and_never_more() -> None:
    for counts, t in (([3, 7], F(1, 5)), ([2, 3, 5], F(1, 10)), ([1, 1, 8], F(1, 20))):
        blocks = Blocks.of([dict(enumerate(counts))])
        reference = known(blocks, len(counts))
        found = implied_epsilon(TCloseness(t=t), reference, ADVERSARIES[5], reference)
        lemma = epsilon_of_t(t, [F(n, sum(counts)) for n in counts])
        assert found.epsilon is not None
        assert found.epsilon <= lemma
        assert (found.epsilon == lemma) or len(counts) > 2
    # E17: at t >= the smallest share the printed lemma grants 3, and the block 1:9999 has 1000.
    blocks = Blocks.of([{0: 1, 1: 9}])
    found = implied_epsilon(TCloseness(t=F(1, 5)), known(blocks, 2), ADVERSARIES[5], known(blocks, 2))
    assert found.epsilon == math.inf


def test_delta_disclosure_is_e_to_the_delta_against_the_tables_prior() -> None:
    blocks = Blocks.of([{0: 2, 1: 3, 2: 5, 3: 1}])
    found = implied_epsilon(DeltaDisclosure(delta=1), known(blocks), ADVERSARIES[5], known(blocks))
    assert float(found.epsilon or 0) == pytest.approx(math.e)


@pytest.mark.parametrize(
    ("model", "other", "epsilon", "why"),
    [
        (KAnonymity(k=5), ADVERSARIES[4], math.inf, "looks at no sensitive value"),
        (KMap(k=5, population="p"), ADVERSARIES[4], math.inf, "looks at no sensitive value"),
        (DistinctLDiversity(l=3), ADVERSARIES[4], math.inf, "any share"),
        (PdRecursiveCLDiversity(c=2, l=2, allowed=("0",)), ADVERSARIES[4], math.inf, "limits no value's share"),
        (NtCloseness(n=5, t=F(1, 10)), ADVERSARIES[5], math.inf, "larger blocks"),
        (TCloseness(t=F(1, 10), distance="kernel_js", bandwidth=F(1, 2)), ADVERSARIES[5], math.inf, "this distance"),
        (ADVERSARIES[3], ADVERSARIES[4], math.inf, "blocks that are large enough"),
        (FrequencyLDiversity(l=9), ADVERSARIES[4], None, "no table has it"),
        (EpsilonPrivacy(epsilon=3, adversary="III"), ADVERSARIES[4], 3, "asks for that"),
        (FrequencyLDiversity(l=2), EpsilonPrivacy(epsilon=1, adversary="IV"), math.inf, "may know anything"),
        (FrequencyLDiversity(l=2), replace(ADVERSARIES[4], known=1), math.inf, "what this adversary knows"),
    ],
)
def test_where_there_is_none(model: Model, other: EpsilonPrivacy, epsilon: Any, why: str) -> None:
    blocks = Blocks.of([{0: 3, 1: 3, 2: 3, 3: 3}])
    found = implied_epsilon(model, known(blocks), other, known(blocks))
    assert (found.epsilon, why in found.why) == (epsilon, True), found


@pytest.mark.parametrize("rows", [10**6, 10**9, 10**12, 10**15])
def test_a_value_that_nearly_everybody_has(rows: int) -> None:
    """Enhanced beta-likeness lets a share p grow by -ln p, which for a share near 1 is nearly all that is left of it:
    p (1 - ln p) with a hundred digits, of which doubles hold none that matters."""
    blocks = Blocks.of([{0: rows - 1, 1: 1}])
    found = implied_epsilon(
        BetaLikeness(beta=5, variant="enhanced"), known(blocks, 2), ADVERSARIES[5], known(blocks, 2)
    )
    digits = Context(prec=100)
    share = digits.divide(Decimal(rows - 1), Decimal(rows))
    grown = digits.multiply(share, digits.subtract(Decimal(1), digits.ln(share)))
    exact = (1 - F(share)) / (1 - F(grown))
    assert found.epsilon is not None
    assert exact <= found.epsilon <= exact * (1 + F(1, 10**9))


def test_no_share_is_limited_by_a_factor_beyond_all_tables() -> None:
    blocks = Blocks.of([{0: 3, 1: 3}])
    for delta in (701, 10**9):
        found = implied_epsilon(DeltaDisclosure(delta=delta), known(blocks, 2), ADVERSARIES[5], known(blocks, 2))
        assert found.epsilon == math.inf


def test_a_prior_of_its_own_limits_shares_too() -> None:
    """EP Table 3: class III with (2/5, 3/5) at 6 allows flu 9/10 and cancer 14/15: (1/2)/(1/15)."""
    blocks = Blocks.of([{0: 9, 1: 1}, {0: 4, 1: 6}])
    plain = known(blocks, 2)
    own = replace(plain, prior=(F(2), F(3)))
    model = EpsilonPrivacy(epsilon=6, adversary="III", prior="values")
    found = implied_epsilon(model, own, ADVERSARIES[4], plain, same_prior=False)
    assert found.epsilon == F(15, 2)
    other = replace(plain, prior=(F(3), F(2)))
    crossed = implied_epsilon(model, own, replace(model, epsilon=1), other, same_prior=False)
    # With the priors 3/5 and 2/5: (1 - 2/5)/(1 - 14/15).
    assert crossed.epsilon == 9


def test_every_model_of_the_registry_is_known() -> None:
    asked = {type(model) for model in MODELS} | {KAnonymity, KMap, DistinctLDiversity, NtCloseness}
    assert {model.name for model in REGISTRY if model not in asked} == {"delta_presence"}
    one = Blocks.of([{0: 3}])
    assert implied_epsilon(KAnonymity(k=2), known(one, 1), ADVERSARIES[4], known(one, 1)) == Implied(
        F(1), "there is only one value"
    )
