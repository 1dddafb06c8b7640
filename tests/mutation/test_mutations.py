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
    path, text = mutation.apply(ROOT / "engine" / "qblock")
    if path.suffix == ".py":
        ast.parse(text)
    for test in mutation.tests:
        file, _, name = test.partition("::")
        assert not name or f"\ndef {name}(" in (ROOT / file).read_text("utf-8"), test
        assert (ROOT / file).exists(), test


def test_descriptions_are_unique() -> None:
    assert len({mutation.what for mutation in MUTATIONS}) == len(MUTATIONS)


def test_every_family_of_models_has_faults() -> None:
    files = {Path(*Path(model.__module__.replace(".", "/")).parts[1:]).with_suffix(".py") for model in REGISTRY}
    assert all(any(file.match(mutation.file) for mutation in MUTATIONS) for file in files)


@pytest.mark.parametrize(
    "room",
    [
        "release",
        "versions",
        "ledger",
        "publish",
        "source",
        "spec",
        "hierarchy",
        "frequency",
        "recoding",
        "search",
        "models",
    ],
)
def test_every_room_that_guards_something_has_faults(room: str) -> None:
    assert any(Path(mutation.file).parts[0].removesuffix(".py") == room for mutation in MUTATIONS)
