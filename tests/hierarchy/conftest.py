"""The builders and checks at a terminal, whose messages name labels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from qblock.errors import values_shown


@pytest.fixture(autouse=True)
def named() -> Iterator[None]:
    """Messages name values, as in the interactive commands."""
    with values_shown(True):
        yield
