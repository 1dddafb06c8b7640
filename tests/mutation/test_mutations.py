"""The faults still fit the engine; `python tests/mutation/run.py` tells whether the tests notice them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mutation.faults import MUTATIONS
from mutation.mutation import Mutation
from qblock.models import REGISTRY

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.what)
def test_the_fault_fits(mutation: Mutation) -> None:
    _, text = mutation.apply(ROOT / "engine" / "qblock")
    ast.parse(text)
    assert all((ROOT / path).exists() for path in mutation.tests)


def test_descriptions_are_unique() -> None:
    assert len({mutation.what for mutation in MUTATIONS}) == len(MUTATIONS)


def test_every_family_of_models_has_faults() -> None:
    files = {Path(*Path(model.__module__.replace(".", "/")).parts[1:]).with_suffix(".py") for model in REGISTRY}
    assert all(any(file.match(mutation.file) for mutation in MUTATIONS) for file in files)
