"""Texts that are the same for the same content: digests are taken of them, and labels are made of them."""

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


def decimal_text(value: int | Fraction) -> str:
    """A number as plain decimal text, as a fraction p/q where it has no finite one."""
    digits, rest = 0, value.denominator
    while rest % 10 == 0 or rest % 5 == 0 or rest % 2 == 0:
        rest = rest // 10 if rest % 10 == 0 else rest // 5 if rest % 5 == 0 else rest // 2
        digits += 1
    if rest != 1:
        return f"{value.numerator}/{value.denominator}"
    scaled = abs(value.numerator) * 10**digits // value.denominator
    text = str(scaled).zfill(digits + 1)
    sign = "-" if value < 0 else ""
    return sign + (f"{text[:-digits]}.{text[-digits:]}".rstrip("0").rstrip(".") if digits else text)
