"""Amounts of memory as a spec writes them."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

DATABASE, CLIENT = Fraction(7, 10), Fraction(1, 5)
"""Of a limit, where the database is in this process: the rest is what Python and both their overheads take."""
UNLIMITED = 1 << 30
"""Bytes for what is fetched, where there is no limit."""


def in_bytes(limit: str) -> int:
    """`512MB` or `1.5 GiB` in bytes; such an amount was checked when the spec was read."""
    number, unit = re.fullmatch(r"([0-9.]+) *([kKMGT]i?)B", limit).groups()  # type: ignore[union-attr]
    return int(Decimal(number) * (1024 if unit.endswith("i") else 1000) ** ("KMGT".index(unit[0].upper()) + 1))


def of_embedded(limit: str) -> str:
    """The share of a database in this process, as it takes it."""
    return f"{int(in_bytes(limit) * DATABASE)}B"


def of_client(limit: str | None) -> int:
    """Bytes for what is fetched at once, in all its copies."""
    return UNLIMITED if limit is None else int(in_bytes(limit) * CLIENT)
