"""Arrow columns as the embedded database takes them: the same values have the same type, wherever they came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qblock.errors import InputError
from qblock.hierarchy.labels import texts as texts

MICROSECONDS = "us"
DIGITS = 38
SCALARS = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
    pa.types.is_duration,
    pa.types.is_null,
    pa.types.is_string,
    pa.types.is_binary,
)
EXTENSIONS = ("arrow.uuid", "arrow.json", "arrow.bool8")
"""Those of Arrow's own extension types that the database knows."""


MANY = 100_000
"""Rows that take longer one by one than pandas takes to be imported."""


def whole_numbers(values: NDArray[Any] | Sequence[int | None]) -> pa.Array:
    """An array of whole numbers as BIGINT. Not `pa.array`, which imports pandas."""
    there = None
    if not isinstance(values, np.ndarray) and None in values:
        there = pa.py_buffer(np.packbits([value is not None for value in values], bitorder="little"))
        values = [value or 0 for value in values]
    exact = np.ascontiguousarray(values, dtype=np.int64)
    return pa.Array.from_buffers(pa.int64(), len(exact), [there, pa.py_buffer(exact)])


def taken_type(type_: pa.DataType) -> pa.DataType | None:
    """The type that a column is copied in; None for one that the database does not know."""
    if pa.types.is_dictionary(type_):
        return taken_type(type_.value_type)
    if pa.types.is_decimal(type_):
        return pa.decimal128(type_.precision, type_.scale) if type_.precision <= DIGITS else None
    if type_ == pa.float16():
        return pa.float32()
    if type_ in (pa.string_view(), pa.large_string()):
        return pa.string()
    if type_ == pa.date64():
        return pa.date32()
    if type_ in (pa.binary_view(), pa.large_binary()) or pa.types.is_fixed_size_binary(type_):
        return pa.binary()
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        # The database would cut nanoseconds off without a word.
        return pa.timestamp(MICROSECONDS, type_.tz)
    if isinstance(type_, pa.BaseExtensionType):
        return type_ if type_.extension_name in EXTENSIONS else None
    if pa.types.is_nested(type_):
        return type_ if _is_whole(type_) else None
    return type_ if any(is_one(type_) for is_one in SCALARS) else None


def _is_whole(type_: pa.DataType) -> bool:
    """Whether lists, structs or maps hold nothing that would have to be converted."""
    inner = [type_.field(i).type for i in range(type_.num_fields)]
    return bool(inner) and all(taken_type(part) == part and not pa.types.is_null(part) for part in inner)


def taken_schema(fields: Iterable[pa.Field], what: str) -> pa.Schema:
    """The columns as they are copied. Raises InputError for one that cannot be."""
    columns = []
    for field in fields:
        type_ = taken_type(field.type)
        if type_ is None:
            raise InputError(
                f"{what}: column {field.name} has the type {field.type}, whose values cannot be compared; convert it "
                "to text, a number or a date"
            )
        columns.append(pa.field(field.name, type_))
    return pa.schema(columns)


def taken(batches: Iterable[pa.RecordBatch], schema: pa.Schema, what: str) -> Iterator[pa.RecordBatch]:
    """The columns of a schema, which each batch has once, in their types. Raises InputError for a value without one."""
    for batch in batches:
        names = batch.schema.names
        arrays = [_cast(batch.column(names.index(field.name)), field, what) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast(column: pa.Array, field: pa.Field, what: str) -> pa.Array:
    if column.type == field.type:
        return column
    try:
        if pa.types.is_dictionary(column.type):
            column = _decoded(column)
        return column.cast(field.type)
    except pa.ArrowInvalid:
        raise InputError(
            f"{what}: column {field.name} has the type {column.type}, and some of its values are none of "
            f"{field.type}, in which it is compared; round them"
        ) from None


def _decoded(column: pa.DictionaryArray) -> pa.Array:
    """The values of a column of categories, whose texts Arrow cannot look up as views, which polars has."""
    values = column.dictionary
    if values.type == pa.string_view():
        column = pa.DictionaryArray.from_arrays(column.indices, values.cast(pa.string()))
    return column.dictionary_decode()
