"""Fixtures that every test may use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from engines import engine_name, postgresql_server, postgresql_url, warehouse  # noqa: F401

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the worked examples and the Adult data, which is not part of the project."""
    if not (SHARED / "golden" / "expected.json").exists():
        pytest.skip("the worked examples beside the checkout (../shared) are absent")
    return SHARED


@pytest.fixture(scope="session")
def golden(shared: Path) -> dict[str, dict]:
    """The worked examples by id."""
    return {entry["id"]: entry for entry in json.loads((shared / "golden" / "expected.json").read_text("utf-8"))}
