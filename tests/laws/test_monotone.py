"""What a model declares monotone survives merging; what it declares not to be, a counterexample breaks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.cases import Case, cases, partitions, quick
from laws.counterexamples import COUNTEREXAMPLES, Counterexample
from laws.draws import models, same, worst
from laws.kinds import variant, variants
from qblock.models import BY_NAME, REGISTRY, Model

NAMES = [model.name for model in REGISTRY]


def dropped(model: Model, case: Case) -> int:
    """Rows in failing blocks."""
    blocks, reference = case.engine
    return int(blocks.rows[~model.passes(blocks, reference)].sum())


def test_merging_adds_blocks_up_in_the_same_table() -> None:
    example = COUNTEREXAMPLES[0]
    merged = example.case.merged(example.union)
    assert merged.engine[0].rows.tolist() == [13]
    assert merged.totals == example.case.totals


@pytest.mark.parametrize("name", NAMES)
@quick
@given(data=st.data())
def test_declared_flags_survive_merging(name: str, data: st.DataObject) -> None:
    case = data.draw(cases(least_blocks=2))
    model, _ = data.draw(models(name, case))
    index = data.draw(partitions(len(case.histograms)))
    merged = case.merged(index)
    if model.monotone.generalization:
        before = model.passes(*case.engine).tolist()
        for union, passed in enumerate(model.passes(*merged.engine).tolist()):
            assert passed or not all(before[i] for i, number in enumerate(index) if number == union)
        fine, coarse = model.tightest(*case.engine).values, model.tightest(*merged.engine).values
        for bound, x, y in zip(model.about.bounds, fine, coarse, strict=True):
            assert x.value is not None
            assert y.value is not None
            assert same(x.value, worst([x.value, y.value], bound.stricter)), bound
    if model.monotone.suppression:
        assert dropped(model, merged) <= dropped(model, case)
    assert model.monotone.generalization or not model.monotone.suppression


def label(example: Counterexample) -> str:
    return "-".join([example.model, example.law, *variant(example.model, example.params)])


REGISTERED = [example for example in COUNTEREXAMPLES if example.model in BY_NAME]


@pytest.mark.parametrize("example", REGISTERED, ids=label)
def test_counterexamples_break_the_law(example: Counterexample) -> None:
    model = BY_NAME[example.model](**example.params)
    model.validate(example.case.engine[1])
    merged = example.case.merged(example.union)
    assert dropped(model, merged) > dropped(model, example.case)
    if example.law == "generalization":
        assert model.passes(*example.case.engine).all()
        assert not model.passes(*merged.engine).all()
        assert not model.monotone.generalization
    assert not model.monotone.suppression


NONE_EXISTS = {
    ("adversary=IV", "predicates=singletons"): {"generalization", "suppression"},
    ("adversary=IV", "predicates=guarded"): {"generalization"},
}
"""Class IV accepts no block for which there is a predicate, so that no union fails; declared like the other classes."""


@pytest.mark.parametrize("name", NAMES)
def test_every_flag_that_is_false_has_a_counterexample(name: str) -> None:
    kinds = variants(name)
    assert kinds
    for kind, model in kinds.items():
        broken = {e.law for e in REGISTERED if e.model == name and variant(name, e.params) == kind}
        # What breaks the law without suppression breaks the one with it.
        broken |= {"suppression"} if broken else set()
        broken |= NONE_EXISTS.get(kind, set())
        assert model.monotone.generalization or "generalization" in broken, kind
        assert model.monotone.suppression or "suppression" in broken, kind


@quick
@given(case=cases())
def test_adversary_four_accepts_nothing(case: Case) -> None:
    model = BY_NAME["epsilon_privacy"](epsilon=10**9, adversary="IV")
    assert model.passes(*case.engine).tolist() == [case.values == 1] * len(case.histograms)
