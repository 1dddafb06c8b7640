"""Amounts of memory as a spec writes them."""

from __future__ import annotations

import re
from decimal import Decimal


def in_bytes(limit: str) -> int:
    """`512MB` or `1.5 GiB` in bytes; such an amount was checked when the spec was read."""
    number, unit = re.fullmatch(r"([0-9.]+) *([kKMGT]i?)B", limit).groups()  # type: ignore[union-attr]
    return int(Decimal(number) * (1024 if unit.endswith("i") else 1000) ** ("KMGT".index(unit[0].upper()) + 1))
