"""Texts that digests are taken of: the same for the same content."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def number_text(value: int | Fraction | Decimal | float) -> str:
    """The exact text of a parameter or of a tightest value: 4, 14/5, 60 digits, inf."""
    if isinstance(value, float) and not math.isinf(value):
        raise TypeError("a float is not what the spec's text says; parameters and values are exact")
    return format(value, "f") if isinstance(value, Decimal) else str(value)
