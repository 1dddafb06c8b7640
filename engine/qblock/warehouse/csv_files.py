"""CSV with a header, in UTF-8, read as text: an empty field is NULL, and an empty text is written in quotes."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from io import BufferedReader

import pyarrow as pa
import pyarrow.csv as pc

from qblock.errors import InputError

BLOCK = 1 << 24
"""Bytes that are read at once: no row may be longer."""
ROW = re.compile(r"Row #([0-9]+)")
WIDTH = re.compile(r"Expected ([0-9]+) columns?, got ([0-9]+)")


def names(file: BufferedReader, what: str) -> list[str]:
    """The names of the columns, in order. what: the file, for messages. Raises InputError."""
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        header = next(csv.reader(text), [])
    except UnicodeDecodeError:
        raise InputError(f"{what} is not UTF-8; save the file as UTF-8") from None
    except csv.Error:
        raise InputError(f"{what}: the first line cannot be read as the names of columns; correct it") from None
    finally:
        text.detach()
        file.seek(0)
    if not header:
        raise InputError(f"{what} is empty, or its first line is; it must name the columns")
    if len(header) == 1 and (other := next((sign for sign in ";\t|" if sign in header[0]), None)):
        raise InputError(f"{what}: its columns are not separated by commas but by {other!r}; write it with commas")
    return header


def schema(file: BufferedReader, columns: Sequence[str], what: str) -> pa.Schema:
    """Every column is text."""
    return pa.schema([pa.field(name, pa.string()) for name in columns])


def batches(file: BufferedReader, columns: Sequence[str], what: str) -> Iterator[pa.RecordBatch]:
    """The rows of these columns. Raises InputError with the number of a row that is no row of the file's columns."""
    single = len(names(file, what)) == 1  # where an empty line is a row
    _check_quotes(file, what)
    try:
        yield from pc.open_csv(
            file,
            read_options=_reading(),
            parse_options=pc.ParseOptions(newlines_in_values=True, ignore_empty_lines=not single),
            convert_options=pc.ConvertOptions(
                column_types={name: pa.string() for name in columns},
                include_columns=list(columns),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
            ),
        )
    except pa.ArrowInvalid as error:
        raise _wrong(error, what) from None


def _check_quotes(file: BufferedReader, what: str) -> None:
    """Raise InputError where a quote does not end: the reader would take all rows that follow for one value."""
    quotes = sum(chunk.count(b'"') for chunk in iter(lambda: file.read(BLOCK), b""))
    file.seek(0)
    if quotes % 2:
        raise InputError(
            f'{what}: a quote (") does not end, so that rows would be lost; write a text that has one in quotes, '
            'with the quote doubled: "5"" pipe"'
        )


def _reading() -> pc.ReadOptions:
    # Rows are numbered only where one thread reads them.
    return pc.ReadOptions(use_threads=False, block_size=BLOCK)


def _wrong(error: pa.ArrowInvalid, what: str) -> InputError:
    """The library's own text quotes the row."""
    text = str(error)
    row, width = ROW.search(text), WIDTH.search(text)
    where = f"{what}: row {int(row[1]) - 1} below the header" if row else what
    if width:
        return InputError(f"{where} has {width[2]} columns, and the header has {width[1]}; correct the file")
    if "UTF" in text:
        return InputError(f"{where} is not UTF-8; save the file as UTF-8")
    return InputError(f"{where} cannot be read as CSV (is a row longer than {BLOCK >> 20} MB?)")
