"""Which rules a spec's models get."""

from __future__ import annotations

from fractions import Fraction

import pytest

from qblock.models import (
    AlphaKAnonymity,
    BetaLikeness,
    DistinctLDiversity,
    EntropyLDiversity,
    FrequencyLDiversity,
    KAnonymity,
    Model,
    RecursiveCLDiversity,
    TCloseness,
)
from qblock.versions.batching.rules import combine_rules, no_coin, private_coin, rules_for

K = KAnonymity(k=5)
T = TCloseness(t=Fraction(1, 5), distance="equal")


@pytest.mark.parametrize(
    ("model", "l"),
    [
        (DistinctLDiversity(l=3), 3),
        (FrequencyLDiversity(l=Fraction(5, 2)), 3),
        (EntropyLDiversity(l=Fraction(3, 2)), 2),
        (RecursiveCLDiversity(c=2, l=4), 4),
    ],
)
def test_models_that_fail_every_single_value_get_all_rules(model: Model, l: int) -> None:  # noqa: E741
    found = rules_for([K, model])
    assert (found.cells, found.coin, found.reason) == (True, False, "")
    assert (found.k, found.ls) == (5, (l,))
    assert found.sure
    assert rules_for([K, model, T]).cells
    assert not rules_for([K, model, T]).sure


@pytest.mark.parametrize(
    "model",
    [T, AlphaKAnonymity(alpha=Fraction(1, 2), k=2), BetaLikeness(beta=1, variant="basic"), DistinctLDiversity(l=1)],
)
def test_models_that_let_single_values_pass_get_the_core_and_the_coin(model: Model) -> None:
    found = rules_for([K, model])
    assert (found.cells, found.coin) == (False, True)
    assert model.name in found.reason
    assert not rules_for([K, model, DistinctLDiversity(l=2)]).coin


def test_what_was_not_simulated_gets_the_core_and_says_why() -> None:
    models = [K, DistinctLDiversity(l=2)]
    found = rules_for(models, suppression=True)
    assert (found.cells, found.coin) == (False, False)
    assert "suppression" in found.reason
    assert "not simulated" in rules_for([*models, AlphaKAnonymity(alpha=Fraction(1, 2), k=2)]).reason
    assert "sizes alone" in rules_for([K]).reason
    assert not rules_for([K]).coin


def test_each_sensitive_attribute_is_asked_for_by_itself() -> None:
    diverse, close = rules_for([K, DistinctLDiversity(l=3)]), rules_for([K, T])
    found = combine_rules([diverse, rules_for([FrequencyLDiversity(l=2)])])
    assert (found.cells, found.k, found.ls, found.sure, found.coin) == (True, 5, (3, 2), True, False)
    found = combine_rules([diverse, close])
    assert (found.cells, found.coin, found.attributes, found.reason) == (False, True, 2, close.reason)
    assert combine_rules([close, close]).reason == close.reason
    assert combine_rules([diverse], ["not simulated"]).reason == "not simulated"


def test_the_coin_falls_as_often_as_asked_and_alike_again() -> None:
    coin = private_coin(b"key", "people", Fraction(1, 10))
    fallen = [coin((block,), number) for block in range(50) for number in range(1, 51)]
    assert 180 < sum(fallen) < 320
    assert fallen == [private_coin(b"key", "people", Fraction(1, 10))((b,), n) for b in range(50) for n in range(1, 51)]
    assert fallen != [
        private_coin(b"other", "people", Fraction(1, 10))((b,), n) for b in range(50) for n in range(1, 51)
    ]
    assert not no_coin((0,), 1)
