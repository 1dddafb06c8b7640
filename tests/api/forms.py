"""One table in the four forms that the functions on tables take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

ARROW = {
    "integer": pa.int64(),
    "float": pa.float64(),
    "boolean": pa.bool_(),
    "text": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "decimal(9,2)": pa.decimal128(9, 2),
}
PANDAS = {
    "integer": "Int64",
    "float": "float64",
    "boolean": "boolean",
    "text": "str",
    "date": object,
    "timestamp": "datetime64[ns]",
    "timestamptz": "datetime64[us, Europe/Berlin]",
    "decimal(9,2)": object,
}
"""Other types than Arrow's where pandas has its own."""


@dataclass(frozen=True)
class Form:
    """A way to give the table, with the types that only CSV lacks."""

    data: Any
    types: dict[str, str] | None = None


def csv_text(value: Any) -> str:
    """A field: NULL is empty, every text in quotes."""
    if value is None:
        return ""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, float):
        return repr(value)
    return str(value)


def write_csv(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    lines = [",".join(csv_text(name) for name in columns)]
    lines += [",".join(map(csv_text, row)) for row in zip(*columns.values(), strict=True)]
    path.write_bytes(("\n".join(lines) + "\n").encode())


def forms(columns: Mapping[str, Sequence[Any]], types: Mapping[str, str], folder: Path) -> dict[str, Form]:
    """The same columns as a data frame, an Arrow table, a Parquet and a CSV file."""
    frame = pd.DataFrame({name: pd.Series(list(columns[name]), dtype=PANDAS[types[name]]) for name in columns})
    frame.index = pd.Index([f"row {i}" for i in reversed(range(len(frame)))])
    table = pa.table({name: pa.array(columns[name], ARROW[types[name]]) for name in columns})
    pq.write_table(table, folder / "table.parquet")
    write_csv(folder / "table.csv", columns)
    return {
        "pandas": Form(frame),
        "arrow": Form(table),
        "parquet": Form(folder / "table.parquet"),
        "csv": Form(str(folder / "table.csv"), {name: type_ for name, type_ in types.items() if type_ != "text"}),
    }


EXAMPLES: dict[str, list[Any]] = {
    "integer": [-3, 0, 7, 2**40],
    "float": [-1.5, 0.0, 0.1, 1e20, 1e-7],
    "boolean": [True, False],
    "text": ["", "a", "NA", "nan", "ü ", 'say "a, b"', "two\nlines", "1.0", "None"],
    "date": [date(1999, 12, 31), date(2026, 2, 3), date(1, 1, 1)],
    "timestamp": [datetime(1999, 12, 31, 23, 59, 59, 999999), datetime(2026, 2, 3), datetime(2026, 2, 3, 4, 5)],
    "timestamptz": [
        pd.Timestamp(text, tz="UTC").to_pydatetime() for text in ("2026-03-29 00:30", "2026-10-25 01:30:00.5")
    ],
    "decimal(9,2)": [Decimal("1.50"), Decimal("-0.05"), Decimal("1234567.89"), Decimal("7.00")],
}
