"""Types of the spec's keys: how each value of the file is read, with its message, and its JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, SecretStr
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_before_validator_function

from qblock.errors import choices
from qblock.models import Range
from qblock.spec.document import Scalar
from qblock.spec.urls import url_problem

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
AGE = re.compile(r"([0-9]+) *(s|m|h|d|w|seconds?|minutes?|hours?|days?|weeks?)")
TIMES = {"type": "string", "pattern": "^[0-9]+ *[smhdw][a-z]*$"}
NUMBERS = {"type": "number"}
TEXTS = {"type": ["string", "number", "boolean"]}
TEXTS_OR_NULL = {"type": [*TEXTS["type"], "null"]}


@dataclass(frozen=True, eq=False)
class Checked:
    """Says of a type how a value of the file is read before it is one; `schema` is the JSON Schema of such values.

    read: raises ValueError, in whose text `{it}` is what stands in the file.
    """

    read: Callable[[object], Any]
    schema: dict[str, Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: Any) -> dict[str, Any]:
        return dict(self.schema)


def key(description: str, *examples: Any, **more: Any) -> Any:
    """A key of a section, with what an editor shows of it. more: as of pydantic's Field, such as its default."""
    return Field(description=description, examples=list(examples), **more)


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


def listed(
    read: Callable[[object], Any], wanted: str, least: int = 0, check: Callable[[Any], None] | None = None
) -> Callable[[object], tuple[Any, ...]]:
    """Reads a list without duplicates as a tuple; a single value is refused rather than taken as a list of one.

    wanted: what to write; check: raises ValueError for what is wrong with the items together.
    """

    def read_list(raw: object) -> tuple[Any, ...]:
        if not isinstance(raw, list | tuple):
            raise ValueError("{it} is not a list; write " + wanted)
        if len(raw) < least:
            raise ValueError("the list is empty; write " + wanted)
        items = tuple(read_items(read, raw))
        if check is not None:
            check(items)
        return items

    return read_list


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
    if not text.strip() or "\0" in text:
        raise ValueError("{it} is not a name; write one")
    return text


def table_parts(text: str) -> tuple[str, ...]:
    """The parts of `schema.table`; a part in double quotes may hold dots. Raises ValueError."""
    parts = re.findall(r'"((?:[^"]|"")+)"(?:\.|$)|([^".]+)(?:\.|$)', text)
    whole = ".".join(f'"{quoted}"' if quoted else plain for quoted, plain in parts)
    if whole != text or not 1 <= len(parts) <= 3 or "\0" in text:
        raise ValueError("{it} is not a table; write table, or schema.table (on Spark catalog.schema.table, too)")
    return tuple(quoted.replace('""', '"') if quoted else plain for quoted, plain in parts)


def table_name(raw: object) -> str:
    """The name of a table as it is written. Raises ValueError for what is none."""
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
    if "\0" in raw or "%00" in raw:
        raise ValueError("the database URL has a NUL character; remove it")
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


def check_keys(raw: Iterable[str], valid: Sequence[str], what: str) -> None:
    """Raise ValueError for a key that is not among the valid ones. what: what they are."""
    for key in raw:
        if key not in valid:
            raise ValueError(f"{key} is not {what}; {choices(valid, key)}")


def described(schema: dict[str, Any], description: str, *examples: Any) -> dict[str, Any]:
    """The JSON Schema of a key with what an editor shows of it."""
    return {**schema, "description": description, "examples": list(examples)}


def closed_object(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a mapping with these keys and no others."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": list(required)} if required else {})


def matching(pattern: str, wanted: str) -> Checked:
    """Texts of a pattern. wanted: what is said of any other."""

    def read(raw: object) -> str:
        text = raw.text if isinstance(raw, Scalar) else raw
        if not isinstance(text, str) or not re.fullmatch(pattern, text, re.ASCII):
            raise ValueError("{it} " + wanted)
        return text

    return Checked(read, {"type": "string", "pattern": f"^{pattern}$"})


def in_range(valid: Range, words: str, number: Callable[[object], int | Fraction] = exact_number) -> Checked:
    """Numbers of a range. words: what is valid, for messages; number: `whole_number`, or any."""

    def read(raw: object) -> int | Fraction:
        value = number(raw)
        if value not in valid:
            raise ValueError(f"{{it}} is out of range; valid: {words}")
        return value

    return Checked(read, {"type": "integer" if number is whole_number else "number", **limits(valid)})


def limits(valid: Range) -> dict[str, Any]:
    """The limits of a range in a JSON Schema."""
    limits: dict[str, Any] = {"exclusiveMinimum" if valid.open_least else "minimum": plain_number(valid.least)}
    if valid.most is not None:
        limits["exclusiveMaximum" if valid.open_most else "maximum"] = plain_number(valid.most)
    return limits


def plain_number(number: int | Fraction) -> int | float:
    """A number of JSON."""
    return int(number) if number.denominator == 1 else float(number)


def _people(raw: object) -> Any:
    if getattr(raw, "text", raw) in (None, "auto"):
        return "auto"
    try:
        return POSITIVE.read(raw)
    except ValueError:
        raise ValueError("{it} is not a number of people; write a whole number from 1, or auto") from None


def _delay(raw: object) -> Any:
    for read in (POSITIVE.read, _age):
        with suppress(ValueError):
            return read(raw)
    raise ValueError("{it} is not a delay; write a number of runs, or a time with its unit: 4, 4w")


LEVEL = in_range(Range(0), "a whole number >= 0", whole_number)
POSITIVE = in_range(Range(1), "a whole number >= 1", whole_number)
Name = Annotated[str, Checked(_named, {"type": "string"})]
Names = Annotated[
    tuple[str, ...], Checked(listed(_named, "a list of names"), {"type": "array", "items": {"type": "string"}})
]
ReleaseName = Annotated[
    str, matching("[A-Za-z0-9_]{1,40}", "is not a release name; write letters, digits and _, at most 40")
]
TableName = Annotated[str, Checked(table_name, {"type": "string", "minLength": 1})]
Url = Annotated[SecretUrl, Checked(_url, {"type": "string"})]
Flag = Annotated[bool, Checked(flag_of, {"type": "boolean"})]
Level = Annotated[int, LEVEL]
Positive = Annotated[int, POSITIVE]
Share = Annotated[Fraction, in_range(Range(0, 1, open_least=True), "a fraction above 0, at most 1")]
Seconds = Annotated[int | Fraction, in_range(Range(0, 60, open_least=True), "a number of seconds above 0, at most 60")]
Limit = Annotated[
    int | Fraction,
    Checked(
        _limit, {"anyOf": [{"type": "number", "minimum": 0, "exclusiveMaximum": 1}, {"type": "integer", "minimum": 1}]}
    ),
]
People = Annotated[
    int | Literal["auto"], Checked(_people, {"anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 1}]})
]
Age = Annotated[timedelta, Checked(_age, TIMES)]
Delay = Annotated[int | timedelta, Checked(_delay, {"anyOf": [POSITIVE.schema, TIMES]})]
Duration = Annotated[timedelta, Checked(duration, TIMES)]
AMOUNT = matching(
    r"[1-9][0-9]*(\.[0-9]+)? *([KMGT]i?B|kB)", "is not an amount of memory; write one with its unit: 512MB, 4GB"
)
LEAST_MEMORY = "16MB"
"""Below, the embedded database does not open a file, or only with luck."""


def in_bytes(limit: str) -> int:
    """`512MB` or `1.5 GiB` in bytes; such an amount was checked when the spec was read."""
    number, unit = re.fullmatch(r"([0-9.]+) *([kKMGT]i?)B", limit).groups()  # type: ignore[union-attr]
    return int(Decimal(number) * (1024 if unit.endswith("i") else 1000) ** ("KMGT".index(unit[0].upper()) + 1))


def _memory(raw: object) -> str:
    text: str = AMOUNT.read(raw)
    if in_bytes(text) < in_bytes(LEAST_MEMORY):
        raise ValueError(f"{{it}} is too little memory; valid: {LEAST_MEMORY} or more")
    return text


Memory = Annotated[str, Checked(_memory, AMOUNT.schema)]
StorageVersion = Annotated[
    str,
    matching(
        r"v[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}",
        "is not a version of DuckDB; write the oldest that has to read the release: v1.5.0",
    ),
]
Digest = Annotated[
    str,
    matching("[0-9A-Fa-f]{64}", "is not a source digest; write the 64 hexadecimal digits that the refused run named"),
    AfterValidator(str.lower),
]
