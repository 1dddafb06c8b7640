"""What must not matter: the order of rows, blocks and predicates, how values are named, and how counts are written."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.cases import Case, cases, quick
from laws.draws import models, same
from qblock.blocks import Blocks
from qblock.errors import ParameterError
from qblock.models import REGISTRY, Model

NAMES = [model.name for model in REGISTRY]
fewer = settings(quick, max_examples=30)
NAMING = ("allowed", "protected", "values")


def agree(model: Model, case: Case, other: Model, changed: Case, place: list[int]) -> None:
    """The same verdict for every block, wherever it is now, and the same tightest values."""
    before, after = model.passes(*case.engine), other.passes(*changed.engine)
    assert [bool(after[place[i]]) for i in range(len(before))] == before.tolist()
    x, y = model.tightest(*case.engine), other.tightest(*changed.engine)
    assert x.holds == y.holds
    for one, two in zip(x.values, y.values, strict=True):
        assert two.value is not None
        assert same(one.value, two.value)


@pytest.mark.parametrize("name", NAMES)
@fewer
@given(data=st.data())
def test_order_of_blocks(name: str, data: st.DataObject) -> None:
    """Neither their order nor the other blocks of the node have a say: the reference is the table's."""
    case = data.draw(cases())
    model, _ = data.draw(models(name, case))
    order = data.draw(st.permutations(range(len(case.histograms))))
    agree(model, case, model, case.only(order), [order.index(i) for i in range(len(order))])
    if getattr(model, "variant", "") != "lattice":
        alone = [model.passes(*case.only([i]).engine).all() for i in range(len(order))]
        assert model.passes(*case.engine).tolist() == alone


def by_order(model: Model) -> bool:
    """Whether the model looks at the order of the values."""
    return "numbers" in model.needs or getattr(model, "distance", "") in ("ordered", "kernel_js")


def renamed(model: Model, old: Case, new: Case, place: list[int]) -> Model:
    """The model with the values in its parameters renamed as in the table."""

    def name(label: str) -> str:
        return new.names[place[old.names.index(label)]]

    changes: dict[str, Any] = {}
    for field in NAMING:
        chosen = getattr(model, field, None)
        if chosen is not None:
            changes[field] = tuple(name(label) for label in reversed(chosen))
    predicates = getattr(model, "predicates", "")
    if not isinstance(predicates, str):
        changes["predicates"] = tuple(tuple(map(name, group)) for group in reversed(predicates))
    return dataclasses.replace(model, **changes)


@pytest.mark.parametrize("name", NAMES)
@fewer
@given(data=st.data())
def test_names_of_values(name: str, data: st.DataObject) -> None:
    """Any renaming; for models that look at the order, the one that turns it around."""
    case = data.draw(cases())
    model, _ = data.draw(models(name, case))
    turned = list(reversed(range(case.values)))
    place = turned if by_order(model) else data.draw(st.permutations(range(case.values)))
    changed = case.renamed(place, reverse=by_order(model))
    agree(model, case, renamed(model, case, changed, place), changed, list(range(len(case.histograms))))


@fewer
@given(data=st.data())
def test_order_and_splitting_of_rows(data: st.DataObject) -> None:
    """Pairs in any order, some counts given in two parts: the same arrays, so the same answer of every model."""
    case = data.draw(cases())
    triples = [(b, v, n) for b, h in enumerate(case.histograms) for v, n in h.items()]
    split = [part for b, v, n in triples for part in ([(b, v, n)] if n == 1 else [(b, v, 1), (b, v, n - 1)])]
    shuffled = np.array(data.draw(st.permutations(split)), np.int64)
    found, expected = Blocks.from_pairs(*shuffled.T), Blocks.of(case.histograms)
    for field in ("start", "value", "count", "rows"):
        assert getattr(found, field).tolist() == getattr(expected, field).tolist()


@pytest.mark.parametrize("name", NAMES)
@settings(quick, max_examples=10)
@given(data=st.data())
def test_asking_twice_gives_the_same_answer(name: str, data: st.DataObject) -> None:
    """Nothing is kept between calls that belongs to another table: caches are keyed by all that they depend on."""
    one, two = data.draw(cases()), data.draw(cases())
    model, _ = data.draw(models(name, one))
    first = model.passes(*one.engine).tolist()
    with suppress(ParameterError):  # the second table may lack a value that the parameters name
        model.passes(*two.engine)
    assert model.passes(*dataclasses.replace(one).engine).tolist() == first
