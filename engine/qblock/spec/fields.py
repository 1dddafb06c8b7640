"""Types of the spec's fields: exact numbers, texts, names and secrets, each with its message and its JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import timedelta
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, SecretStr, WithJsonSchema
from pydantic_core import PydanticCustomError

from qblock.errors import choices as choices
from qblock.spec.document import Scalar
from qblock.spec.urls import url_problem

MOST_NAME = 40
MOST_SECONDS = 60
"""The longest that readers may be kept waiting."""
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
AGE = re.compile(r"([0-9]+) *(s|m|h|d|w|seconds?|minutes?|hours?|days?|weeks?)")
MEMORY = re.compile(r"[1-9][0-9]*(\.[0-9]+)? *([KMGT]i?B|kB)", re.ASCII)
STORAGE_VERSION = re.compile(r"v[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}")
DIGEST = re.compile(r"[0-9A-Fa-f]{64}", re.ASCII)
RELEASE = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
NUMBERS = {"type": "number"}
TEXTS = {"type": ["string", "number", "boolean"]}
TEXTS_OR_NULL = {"type": [*TEXTS["type"], "null"]}


class SecretUrl(SecretStr):
    """A database URL; its text is only in `url`, never in repr, str or an error."""

    @property
    def url(self) -> str:
        return self.get_secret_value()


def whole_number(raw: object) -> int:
    """An integer of the file (4 or 4.0)."""
    value = raw.value if isinstance(raw, Scalar) else raw
    if not isinstance(value, int | Fraction) or isinstance(value, bool) or value.denominator != 1:
        raise ValueError("{it} is not a whole number; write one, without quotes")
    return int(value)


def exact_number(raw: object) -> int | Fraction:
    """A number of the file, exactly: an int where it is whole, else a Fraction."""
    value = raw.value if isinstance(raw, Scalar) else raw
    if not isinstance(value, int | Fraction) or isinstance(value, bool):
        raise ValueError("{it} is not a number; write one, without quotes (0.25)")
    return int(value) if value.denominator == 1 else value


def text_of(raw: object) -> str:
    """A text; an unquoted number or boolean is taken as it is written."""
    if isinstance(raw, Scalar):
        return raw.text
    if not isinstance(raw, str):
        raise ValueError("{it} is not a text")
    return raw


def null_or_text(raw: object) -> str | None:
    """A text, or null."""
    return None if raw is None else text_of(raw)


def flag_of(raw: object) -> bool:
    """true or false."""
    value = raw.value if isinstance(raw, Scalar) else raw
    if isinstance(value, bool):
        return value
    raise ValueError("{it} is neither true nor false")


def listed(read: Callable[[object], Any], of: str, least: int = 0) -> Callable[[object], tuple[Any, ...]]:
    """A list without duplicates, as a tuple; a single value is refused rather than taken as a list of one."""

    def check(raw: object) -> tuple[Any, ...]:
        if not isinstance(raw, list | tuple):
            raise ValueError("{it} is not a list; write a list of " + of)
        if len(raw) < least:
            raise ValueError("the list is empty; write a list of " + of)
        return tuple(read_items(read, raw))

    return check


def read_items(read: Callable[[object], Any], raw: Iterable[object]) -> list[Any]:
    """Read each item of a list; an error carries the item's index. Duplicates are refused."""
    items: dict[Any, None] = {}
    for index, item in enumerate(raw):
        try:
            value = read(item)
            if value in items:
                raise ValueError("{it} appears twice in the list; remove one")
        except ValueError as error:
            raise PydanticCustomError("item", "{message}", {"message": str(error), "index": index}) from None
        items[value] = None
    return list(items)


def _named(raw: object) -> str:
    text = text_of(raw)
    if not text.strip():
        raise ValueError("{it} is not a name; write one")
    return text


def _release(raw: object) -> str:
    text = text_of(raw)
    if not RELEASE.fullmatch(text) or len(text) > MOST_NAME:
        raise ValueError(f"{{it}} is not a release name; write letters, digits and _, at most {MOST_NAME}")
    return text


def table_parts(text: str) -> tuple[str, ...]:
    """The parts of `schema.table`; a part in double quotes may hold dots. Raises ValueError."""
    parts = re.findall(r'"((?:[^"]|"")+)"(?:\.|$)|([^".]+)(?:\.|$)', text)
    whole = ".".join(f'"{quoted}"' if quoted else plain for quoted, plain in parts)
    if whole != text or not 1 <= len(parts) <= 3:
        raise ValueError("{it} is not a table; write table, or schema.table (on Spark catalog.schema.table, too)")
    return tuple(quoted.replace('""', '"') if quoted else plain for quoted, plain in parts)


def _table(raw: object) -> str:
    text = text_of(raw)
    table_parts(text)
    return text


def _url(raw: object) -> SecretUrl:
    if isinstance(raw, SecretUrl):
        return raw
    if not isinstance(raw, str) or not re.match(r"[A-Za-z][A-Za-z0-9+_]*:", raw):
        raise ValueError('this is not a SQLAlchemy URL; write one, with its secrets as variables: "${WAREHOUSE_URL}"')
    if problem := url_problem(raw):
        raise ValueError(problem)
    return SecretUrl(raw)


def _limit(raw: object) -> int | Fraction:
    if isinstance(raw, str) and raw.rstrip().endswith("%"):
        raise ValueError("{it} is not a number; write a fraction of the rows (2% is 0.02)")
    value = exact_number(raw)
    if (
        value < 0
        or (value > 1 and isinstance(value, Fraction))
        or (value == 1 and isinstance(raw, Scalar) and raw.text != "1")
    ):
        raise ValueError("{it} is out of range; valid: 0, a fraction below 1 of the rows, or a number of rows from 1")
    return value


def _share(raw: object) -> Fraction:
    value = exact_number(raw)
    if not 0 < value <= 1:
        raise ValueError("{it} is out of range; valid: a fraction above 0, at most 1")
    return Fraction(value)


def _cohort(raw: object) -> int | str:
    if getattr(raw, "text", raw) in (None, "auto"):
        return "auto"
    try:
        return least(1)(raw)
    except ValueError:
        raise ValueError("{it} is not a size of a cohort; write a whole number from 1, or auto") from None


def _age(raw: object) -> timedelta:
    if isinstance(raw, timedelta):
        return raw
    match = AGE.fullmatch(raw) if isinstance(raw, str) else None
    if not match or not int(match[1]):
        raise ValueError("{it} is not an age; write a number with a unit: 30m, 36h, 2d, 1w")
    try:
        return timedelta(**{UNITS[match[2][0]]: int(match[1])})
    except OverflowError:
        raise ValueError("{it} is too long") from None


def duration(raw: object) -> timedelta:
    """A time such as `60s`, `5m` or `1h`. Raises ValueError."""
    try:
        return _age(raw)
    except ValueError:
        raise ValueError("{it} is not a time; write a number with a unit: 60s, 5m, 1h") from None


def _memory(raw: object) -> str:
    if not isinstance(raw, str) or not MEMORY.fullmatch(raw):
        raise ValueError("{it} is not an amount of memory; write one with its unit: 512MB, 4GB")
    return raw


def _storage_version(raw: object) -> str:
    if not isinstance(raw, str) or not STORAGE_VERSION.fullmatch(raw):
        raise ValueError("{it} is not a version of DuckDB; write the oldest that has to read the release: v1.5.0")
    return raw


def _digest(raw: object) -> str:
    text = text_of(raw)
    if not DIGEST.fullmatch(text):
        raise ValueError("{it} is not a source digest; write the 64 hexadecimal digits that the refused run named")
    return text.lower()


def _seconds(raw: object) -> int | Fraction:
    value = exact_number(raw)
    if not 0 < value <= MOST_SECONDS:
        raise ValueError(f"{{it}} is out of range; valid: a number of seconds above 0, at most {MOST_SECONDS}")
    return value


def least(minimum: int) -> Callable[[object], int]:
    """A whole number from `minimum`."""

    def check(raw: object) -> int:
        value = whole_number(raw)
        if value < minimum:
            raise ValueError(f"{{it}} is out of range; valid: a whole number >= {minimum}")
        return value

    return check


def described(schema: dict[str, Any], description: str, *examples: Any) -> dict[str, Any]:
    """The JSON Schema of a key with what an editor shows of it."""
    return {**schema, "description": description, "examples": list(examples)}


def closed_object(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a mapping with these keys and no others."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": list(required)} if required else {})


Name = Annotated[str, BeforeValidator(_named)]
ReleaseName = Annotated[
    str, BeforeValidator(_release), WithJsonSchema({"type": "string", "pattern": "^[A-Za-z0-9_]{1,40}$"})
]
TableName = Annotated[str, BeforeValidator(_table), WithJsonSchema({"type": "string", "minLength": 1})]
Url = Annotated[SecretUrl, BeforeValidator(_url), WithJsonSchema({"type": "string"})]
Limit = Annotated[
    int | Fraction,
    BeforeValidator(_limit),
    WithJsonSchema(
        {"anyOf": [{"type": "number", "minimum": 0, "exclusiveMaximum": 1}, {"type": "integer", "minimum": 1}]}
    ),
]
Age = Annotated[
    timedelta, BeforeValidator(_age), WithJsonSchema({"type": "string", "pattern": "^[0-9]+ *[smhdw][a-z]*$"})
]
Duration = Annotated[
    timedelta, BeforeValidator(duration), WithJsonSchema({"type": "string", "pattern": "^[0-9]+ *[smhdw][a-z]*$"})
]
Memory = Annotated[
    str, BeforeValidator(_memory), WithJsonSchema({"type": "string", "pattern": "^[1-9][0-9.]* *([KMGT]i?B|kB)$"})
]
StorageVersion = Annotated[
    str,
    BeforeValidator(_storage_version),
    WithJsonSchema({"type": "string", "pattern": r"^v[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}$"}),
]
Digest = Annotated[str, BeforeValidator(_digest), WithJsonSchema({"type": "string", "pattern": "^[0-9A-Fa-f]{64}$"})]
Seconds = Annotated[
    int | Fraction,
    BeforeValidator(_seconds),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": MOST_SECONDS}),
]
Flag = Annotated[bool, BeforeValidator(flag_of), WithJsonSchema({"type": "boolean"})]
Names = Annotated[tuple[str, ...], BeforeValidator(listed(_named, "names"))]
Share = Annotated[
    Fraction, BeforeValidator(_share), WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": 1})
]
Cohort = Annotated[
    int | Literal["auto"],
    BeforeValidator(_cohort),
    WithJsonSchema({"anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 1}]}),
]
Level = Annotated[int, BeforeValidator(least(0)), WithJsonSchema({"type": "integer", "minimum": 0})]
Positive = Annotated[int, BeforeValidator(least(1)), WithJsonSchema({"type": "integer", "minimum": 1})]
