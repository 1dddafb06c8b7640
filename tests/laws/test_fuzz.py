"""A short form of `python tests/laws/fuzz.py`, on each engine."""

from __future__ import annotations

import os

import pytest

from laws.fuzz import POOLS, fuzz


def test_the_engine_and_the_reference_agree_on_declared_values(
    engine_name: str, request: pytest.FixtureRequest
) -> None:
    """Shuffled domains, NULL beside the empty string, values that are spelled in any way."""
    server = request.getfixturevalue("postgresql_server") if engine_name == "postgresql" else None
    tables = (30 if os.environ.get("QBLOCK_TEST_ENGINES") == "all" else 16) if server is None else 10
    found = fuzz(tables, 7, server)
    assert found.differences == []
    assert found.comparisons > 30 * tables
    assert {kind.split(" ", 1)[1] for kind in found.kinds} == set(POOLS) or server is not None
