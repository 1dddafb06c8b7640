"""dom(S) in its order, from what is declared of the sensitive attribute (models.md sections 0 and 4).

Values are what Python has for them: numbers, moments, texts, and None for NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def domain_in_order(values: Iterable[Any], order: Sequence[Any] | None) -> tuple[Any, ...]:
    """The values as the list has them, else ascending; NULL comes last unless the list places it."""
    distinct = set(values)
    if order is not None:
        listed = [value for value in order if value in distinct]
        return (*listed, *(value for value in distinct if value not in order))
    return (*sorted(value for value in distinct if value is not None), *([None] if None in distinct else []))


def has_order(values: Iterable[Any], order: Sequence[Any] | str | None) -> bool:
    """Whether an ordered distance is defined: a list; or numbers without NULL; or whatever is no text, if asked for."""
    distinct = set(values)
    if order == "ascending":
        return not any(isinstance(value, str) for value in distinct)
    return order is not None or all(isinstance(value, int) or hasattr(value, "numerator") for value in distinct)
