"""The count queries by which a node can be chosen: written down, or how many to draw (search.workload)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from qblock.models import Range
from qblock.models.base import at_least, between
from qblock.spec.document import Scalar
from qblock.spec.fields import (
    TEXTS,
    TEXTS_OR_NULL,
    Checked,
    check_keys,
    closed_object,
    described,
    in_range,
    null_or_text,
    text_of,
    whole_number,
)

FORMS = "{queries: 500, seed: 1}, or a list of queries: [{age: {from: 20, to: 29}, gender: [Female]}]"


@dataclass(frozen=True)
class DrawnWorkload:
    """Queries drawn from a seed, each on `attributes` quasi-identifiers and the first sensitive attribute, so that
    about `selectivity` of evenly spread rows would answer."""

    queries: int = 200
    seed: int = 0
    attributes: int = 2
    selectivity: Fraction = Fraction(1, 20)


@dataclass(frozen=True)
class Between:
    """Leaf values from `least` to `most`, both included; numbers by value, everything else (ISO dates too) as text."""

    least: str | None = None
    most: str | None = None


Condition = tuple[str | None, ...] | Between
"""The leaf values that are asked for, NULL among them as None."""


@dataclass(frozen=True)
class WrittenWorkload:
    """Each query asks how many rows have, for each attribute named, one of the values asked for."""

    queries: tuple[tuple[tuple[str, Condition], ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that any query restricts, once each."""
        return tuple(dict.fromkeys(name for query in self.queries for name, _ in query))


Workload = DrawnWorkload | WrittenWorkload


def read_workload(raw: Any) -> Workload:
    """One of the two forms. Raises ValueError."""
    if isinstance(raw, Workload):
        return raw
    if isinstance(raw, dict):
        return _drawn(raw)
    if not isinstance(raw, list) or not raw:
        raise ValueError(f"{{it}} is not a workload; valid: {FORMS}")
    return WrittenWorkload(tuple(_query(number, query) for number, query in enumerate(raw, 1)))


def _drawn(raw: dict[str, Any]) -> DrawnWorkload:
    check_keys(raw, tuple(DRAWN), "a key of a drawn workload")
    given: dict[str, Any] = {}
    for key, value in raw.items():
        try:
            given[key] = DRAWN[key].read(value)
        except ValueError as error:
            kinds: dict[type, str] = {dict: "a mapping", list: "a list"}
            shown = value.text if isinstance(value, Scalar) else kinds.get(type(value), str(value))
            raise ValueError(str(error).replace("{it}", f"{key}: {shown}")) from None
    return DrawnWorkload(**given)


def _query(number: int, raw: Any) -> tuple[tuple[str, Condition], ...]:
    if not isinstance(raw, dict) or not raw:
        raise ValueError(f"query {number} is not a mapping; write the values of each attribute: {{gender: [Female]}}")
    return tuple((name, _condition(number, name, value)) for name, value in raw.items())


def _condition(number: int, name: str, raw: Any) -> Condition:
    place = f"query {number}, {name}"
    try:
        if isinstance(raw, list) and raw:
            return tuple(dict.fromkeys(null_or_text(value) for value in raw))
        if isinstance(raw, dict) and raw and set(raw) <= {"from", "to"}:
            ends = {key: text_of(value) for key, value in raw.items()}
            return Between(ends.get("from"), ends.get("to"))
    except ValueError:
        raise ValueError(f"{place}: a value is not a text or a number") from None
    raise ValueError(f"{place}: neither values nor a range; write [a, b] or {{from: a, to: b}}")


DRAWN = {
    "queries": in_range(between(1, 100_000), "1 to 100000", whole_number),
    "seed": in_range(at_least(0), "0 or more", whole_number),
    "attributes": in_range(at_least(0), "0 or more", whole_number),
    "selectivity": in_range(Range(0, 1, open_least=True), "above 0, at most 1"),
}
_DRAWN_SCHEMA = closed_object(
    queries=described(DRAWN["queries"].schema, "How many queries are drawn.", 200),
    seed=described(DRAWN["seed"].schema, "Another seed draws other queries.", 0),
    attributes=described(DRAWN["attributes"].schema, "How many quasi-identifiers a query is about.", 2),
    selectivity=described(DRAWN["selectivity"].schema, "The share of evenly spread rows that answer a query.", 0.05),
)
_RANGE_SCHEMA = {"minProperties": 1} | closed_object(
    **{
        "from": described(TEXTS, "The least value, included.", 20, "2000-01-01"),
        "to": described(TEXTS, "The greatest value, included.", 29, "2000-12-31"),
    }
)
_QUERY_SCHEMA = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {"anyOf": [{"type": "array", "minItems": 1, "items": TEXTS_OR_NULL}, _RANGE_SCHEMA]},
}
WorkloadField = Annotated[
    Workload,
    Checked(read_workload, {"anyOf": [_DRAWN_SCHEMA, {"type": "array", "minItems": 1, "items": _QUERY_SCHEMA}]}),
]
