"""The tables of the worked examples as blocks."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from qblock.blocks import Blocks, Reference
from qblock.errors import values_shown

Read = Callable[[str, list[str], str], tuple[Blocks, Reference]]


@pytest.fixture(autouse=True)
def named() -> Iterator[None]:
    """Messages name values, as in the interactive commands."""
    with values_shown(True):
        yield


@pytest.fixture(scope="session")
def golden_table(shared: Path) -> Read:
    """(file, quasi-identifiers, sensitive attribute) -> blocks with the domain in ascending order, and reference."""

    def read(name: str, by: list[str], sensitive: str) -> tuple[Blocks, Reference]:
        with (shared / "golden" / name).open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        domain = sorted({row[sensitive] for row in rows})
        keys = sorted({tuple(row[name] for name in by) for row in rows})
        blocks = Blocks.from_pairs(
            np.array([keys.index(tuple(row[name] for name in by)) for row in rows], dtype=np.int64),
            np.array([domain.index(row[sensitive]) for row in rows], dtype=np.int64),
            np.array([int(row.get("count", "1")) for row in rows], dtype=np.int64),
        )
        totals = np.bincount(blocks.value, weights=blocks.count).astype(np.int64)
        return blocks, Reference(int(totals.sum()), tuple(domain), totals)

    return read
