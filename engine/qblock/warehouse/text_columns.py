"""Columns of text that are read as another type by DuckDB: which texts are values of it is decided strictly."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from qblock.errors import InputError
from qblock.spec.source_file import ColumnType
from qblock.warehouse.duckdb import quote_text

TYPES = {
    "integer": "BIGINT",
    "float": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMPTZ",
    "text": "VARCHAR",
}
DAY, TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
PATTERNS = {
    "integer": r"[+-]?[0-9]+",
    "float": r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?|[+-]?(?i:nan|inf|infinity)",
    "boolean": r"(?i:true|false)",
    "date": DAY,
    "timestamp": f"{DAY}({TIME})?",
    "timestamptz": f"{DAY}({TIME}(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)?)?",
}
"""DuckDB's own casts round numbers, and take more than one way to write a day."""
INFINITE = r"[+-]?(?i:inf|infinity)"


def sql_type(type_: ColumnType) -> str:
    """The engine's name of a type."""
    return f"DECIMAL({type_.digits},{type_.decimals})" if type_.word == "decimal" else TYPES[type_.word]


def converted(column: str, type_: ColumnType) -> str:
    """The values of a column of text, which has been checked."""
    return column if type_.word == "text" else f"CAST({column} AS {sql_type(type_)})"


def check_texts(
    connection: duckdb.DuckDBPyConnection, table: str, what: str, columns: Mapping[int, tuple[str, ColumnType | None]]
) -> None:
    """Raise InputError where a text of the columns c0, c1, ... is not a value of its type; none of them is named.

    The rows of the table are in the order of the file.
    """
    checks = [
        (name, type_, _wrong(f"c{i}", type_))
        for i, (name, type_) in columns.items()
        if type_ is not None and type_.word != "text"
    ]
    if not checks:
        return
    figures = ", ".join(f"count(*) FILTER (WHERE {wrong}), min(rowid) FILTER (WHERE {wrong})" for _, _, wrong in checks)
    counts = connection.execute(f"SELECT {figures} FROM {table}").fetchone()
    assert counts is not None
    problems = []
    for (name, type_, _), count, first in zip(checks, counts[::2], counts[1::2], strict=True):
        if count:
            many = "1 value is" if count == 1 else f"{count} values are"
            problems.append(
                f"{what}: column {name}: {many} not {type_.meaning}, the first in row {first + 1} below the header; "
                f"correct the file, or the type {type_} of the column in `types`"
            )
    if problems:
        raise InputError(*problems)


def _wrong(column: str, type_: ColumnType) -> str:
    pattern = PATTERNS.get(type_.word) or _decimal(type_)
    cast = f"TRY_CAST({column} AS {sql_type(type_)})"
    wrong = f"NOT regexp_full_match({column}, {quote_text(pattern)}) OR {cast} IS NULL"
    if type_.word == "float":  # a number beyond the range would become an infinite one
        wrong += f" OR (isinf({cast}) AND NOT regexp_full_match({column}, {quote_text(INFINITE)}))"
    return f"{column} IS NOT NULL AND ({wrong})"


def _decimal(type_: ColumnType) -> str:
    after = f"[0-9]{{0,{type_.decimals}}}0*"
    return rf"[+-]?([0-9]+(\.{after})?|\.{after})"
