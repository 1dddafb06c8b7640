"""Hierarchies that nest, as text of CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

TOP = "*"


def nested(name: str, values: Sequence[str], widths: Sequence[int]) -> str:
    """Neighbours joined: at each level groups of so many values of level 0, each width a multiple of the one before."""
    rows = [[value, *(_group(values, index, width) for width in widths), TOP] for index, value in enumerate(values)]
    text = io.StringIO()
    header = [name, *(f"{name}_{level}" for level in range(1, len(widths) + 2))]
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def _group(values: Sequence[str], index: int, width: int) -> str:
    first = index - index % width
    return f"{values[first]} to {values[min(first + width, len(values)) - 1]}"
