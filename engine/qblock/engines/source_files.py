"""Parquet and CSV files of this machine as a table: which files a path names, how each form is read, and what is
recorded of them."""

from __future__ import annotations

import codecs
import csv
import glob
import hashlib
import io
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as pc

from qblock.engines.arrow import taken, taken_schema
from qblock.engines.copied import check_names, no_column
from qblock.engines.quoting import quote_text
from qblock.engines.tables import FileFacts, SourceFacts, TableName
from qblock.errors import InputError, QblockError
from qblock.files import open_input
from qblock.spec.source_file import ColumnType, compressed

if TYPE_CHECKING:
    import pyarrow.parquet as pq


BLOCK = 1 << 24
"""Bytes that are read at once: no row may be longer."""
ROW = re.compile(r"Row #([0-9]+)")
WIDTH = re.compile(r"Expected ([0-9]+) columns?, got ([0-9]+)")
ROWS = 1 << 16
"""Of a batch."""
SHELL = re.compile(r'["$`]|\\(?=[\\"$`])')
"""What a shell would not leave as it is between double quotes."""


class Csv:
    """CSV with a header, in UTF-8, read as text: an empty field is NULL, and an empty text is written in quotes."""

    @staticmethod
    def names(file: BufferedReader, what: str) -> list[str]:
        """The names of the columns, in order. what: the file, for messages. Raises InputError."""
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        try:
            header = next(csv.reader(text), [])
        except UnicodeDecodeError:
            raise InputError(f"{what} {_not_utf8(file, what)}") from None
        except csv.Error:
            raise InputError(f"{what}: the first line cannot be read as the names of columns; correct it") from None
        finally:
            text.detach()
            file.seek(0)
        if not header:
            raise InputError(f"{what} is empty, or its first line is; it must name the columns")
        if len(header) == 1 and (other := next((sign for sign in ";\t|" if sign in header[0]), None)):
            reader = f"read_csv({quote_text(what)}, delim = {other!r}, all_varchar = true)"
            raise InputError(
                f"{what}: its columns are not separated by commas but by {other!r}; write it with commas: "
                f"{_written_anew(reader, '.csv')}"
            )
        return header

    @staticmethod
    def schema(file: BufferedReader, columns: Sequence[str], what: str) -> pa.Schema:
        """Every column is text."""
        return pa.schema([pa.field(name, pa.string()) for name in columns])

    @staticmethod
    def batches(file: BufferedReader, columns: Sequence[str], what: str) -> Iterator[pa.RecordBatch]:
        """The rows of these columns. Raises InputError with the number of a row that has not the file's columns."""
        single = len(Csv.names(file, what)) == 1  # where an empty line is a row
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
            raise _wrong(error, file, what) from None


def _check_header(what: str, names: Sequence[str], needed: Mapping[str, str]) -> None:
    """Raise InputError where no column is there that is needed: then the header may be lost, also of the CSV file that
    another program made Parquet of, and the names a row of the data, which must not be in a message."""
    known = {name.strip().casefold() for name in names}
    if not any(name.strip().casefold() in known for name in needed):
        place, columns = next(iter(needed.values())), ", ".join(needed)
        raise InputError(
            f"{place}: {what} has none of the columns that are needed: {columns}. Was its header lost? The first "
            "line of a CSV file names its columns"
        )


def _check_quotes(file: BufferedReader, what: str) -> None:
    """Raise InputError where a quote does not end: the reader would take all rows that follow for one value."""
    quotes = sum(chunk.count(b'"') for chunk in iter(lambda: file.read(BLOCK), b""))
    file.seek(0)
    if quotes % 2:
        raise InputError(
            f'{what}: a quote (") does not end, so rows would be lost. Write a text that has one in quotes, '
            'with the quote doubled: "5"" pipe"'
        )


def _reading() -> pc.ReadOptions:
    # Rows are numbered only where one thread reads them.
    return pc.ReadOptions(use_threads=False, block_size=BLOCK)


def _wrong(error: pa.ArrowInvalid, file: BufferedReader, what: str) -> InputError:
    """The library's own text quotes the row."""
    text = str(error)
    row, width = ROW.search(text), WIDTH.search(text)
    where = f"{what}: row {int(row[1]) - 1} below the header" if row else what
    if width:
        return InputError(f"{where} has {width[2]} columns, and the header has {width[1]}; correct the file")
    if "UTF" in text:
        return InputError(f"{where} {_not_utf8(file, what)}")
    return InputError(f"{where} cannot be read as CSV (is a row longer than {BLOCK >> 20} MB?)")


def _not_utf8(file: BufferedReader, what: str) -> str:
    file.seek(0)
    wide = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    code, guess = ("UTF-16", "") if wide else ("WINDOWS-1252", ". If it comes from Windows")
    command = f"iconv -f {code} -t UTF-8 {shlex.quote(what)} > utf8.csv"
    return f"is not UTF-8; save the file as UTF-8{guess}: {command}"


def _written_anew(reader: str, ending: str) -> str:
    """The command that writes one file of what a table function of DuckDB reads."""
    sql = f"COPY (FROM {reader}) TO 'all{ending}'"
    return 'duckdb -c "' + SHELL.sub(r"\\\g<0>", sql) + '"'


class Parquet:
    """Parquet, read through Arrow."""

    @staticmethod
    def names(file: BufferedReader, what: str) -> list[str]:
        """The names of the columns, in order. what: the file, for messages."""
        return list(_opened(file).schema_arrow.names)

    @staticmethod
    def schema(file: BufferedReader, columns: Sequence[str], what: str) -> pa.Schema:
        """The columns of the file, these among them."""
        return _opened(file).schema_arrow

    @staticmethod
    def batches(file: BufferedReader, columns: Sequence[str], what: str) -> Iterator[pa.RecordBatch]:
        """The rows of these columns, and maybe of others."""
        return _opened(file).iter_batches(ROWS, columns=list(columns), use_threads=False)


def _opened(file: BufferedReader) -> pq.ParquetFile:
    import pyarrow.parquet as pq

    return pq.ParquetFile(file)


FORMATS: dict[str, type[Parquet] | type[Csv]] = {".parquet": Parquet, ".csv": Csv}
ENDINGS = " or ".join(FORMATS)
READERS = {
    ".tsv": (r"read_csv({}, delim = '\t', all_varchar = true)", ".csv"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), ("read_json({})", ".parquet")),
}
"""How DuckDB reads files that end so, and what they are best written as."""
PARTITION = re.compile(r"([^=]+)=.*")
"""A folder of a partition, as other programs name it."""


def found_files(text: str, directory: Path, place: str) -> list[Path]:
    """The files that a path or a pattern (`stays-*.parquet`) names, sorted. Raises InputError where there is none.

    directory: what a relative path starts at; place: where the spec says it.
    """
    if "://" in text:
        raise InputError(
            f"{place}: this is a URL; name files of this machine, or write `url` and `table` for a database"
        )
    if "\0" in text:
        raise InputError(f"{place}: the path has a NUL character; remove it")
    packed = compressed(text)
    if packed is not None:
        raise InputError(f"{place}: {packed}")
    plain = directory / text
    if os.path.isdir(plain):
        raise InputError(f"{place}: {text} is a folder; {_files_of(plain, text)}")
    ending = Path(text).suffix.lower()
    if ending not in FORMATS:
        reader, better = READERS.get(ending, ("", ""))
        command = f", as by {_written_anew(reader.format(quote_text(text)), better)}" if reader else ""
        raise InputError(
            f"{place}: {text} ends in {ending or 'no suffix'}; give files that end in {ENDINGS}{command}",
            suggestions=FORMATS,
        )
    if os.path.lexists(plain) or not glob.has_magic(text):
        if not os.path.lexists(plain):
            raise InputError(f"{place}: the file {plain} does not exist; relative paths start at {directory.resolve()}")
        return [plain]
    names = sorted(glob.glob(text, root_dir=directory, recursive=True))
    if not names:
        raise InputError(f"{place}: no file matches {text}; relative paths start at {directory.resolve()}")
    return [directory / name for name in names]


def _files_of(folder: Path, text: str) -> str:
    """The remedy where a folder is named."""
    for pattern in (f"{depth}*{ending}" for depth in ("", "*/") for ending in FORMATS):
        if next(folder.glob(pattern), None) is not None:
            return f"name its files: {Path(text) / pattern}"
    return f"name files that end in {ENDINGS}; it has none"


class FileTable:
    """The Tabular protocol for files of one form. facts: of the files, once they have been copied."""

    def __init__(self, text: str, directory: Path, place: str, types: Mapping[str, ColumnType] | None = None) -> None:
        self.name, self.home = text, TableName(None, text)
        self.types: Mapping[str, ColumnType] = types or {}
        self.nan_is_missing = True
        self.facts: SourceFacts | None = None
        self._place = place
        self._paths = found_files(text, directory, place)
        self._names = [os.path.relpath(path, directory) if len(self._paths) > 1 else text for path in self._paths]
        self._format = FORMATS[Path(text).suffix.lower()]

    def names(self) -> list[str]:
        """The names of the columns of the first file, in order; without those that have none, such as numbers of rows
        that another program wrote, unless no column has one."""
        what, path = next(iter(self._each()))
        with _readable(path, what) as file:
            names = self._format.names(file, what)
        return [name for name in names if name] or names

    def check(self, needed: Mapping[str, str]) -> None:
        for what, path in self._each():
            with _readable(path, what) as file:
                names = self._format.names(file, what)
            _check_header(what, names, needed)
            check_names(what, names, needed)
            self._check_partition(path, names)
            for name in self.types:
                if name not in names:
                    sentence, near = no_column(f"{self._place}: types: {what}", name, names)
                    raise InputError(sentence, suggestions=near)

    def _check_partition(self, path: Path, names: Sequence[str]) -> None:
        """Raise InputError where folders that differ (year=2020) have a column that the files lack: it would be lost
        without a word."""
        shared = set.intersection(*(set(other.parts) for other in self._paths))
        folders = [PARTITION.fullmatch(part) for part in path.parts[:-1] if part not in shared]
        lost = [match[1] for match in folders if match and match[1] not in names]
        if lost:
            raise InputError(
                f"{self._place}: {self.name}: the column {lost[0]} is in the names of folders and not in the files, "
                f"which are read as they are. Write one file: {self._as_one('hive_partitioning')}"
            )

    def _as_one(self, option: str) -> str:
        form = Path(self.name).suffix.lower().removeprefix(".")
        return _written_anew(f"read_{form}({quote_text(self.name)}, {option} = true)", ".parquet")

    def schema(self, columns: Sequence[str]) -> pa.Schema:
        schemas = []
        for what, path in self._each():
            with _readable(path, what) as file:
                own = self._format.schema(file, columns, what)
            schemas.append((what, taken_schema([own.field(name) for name in columns], what)))
        return self._common(schemas)

    def _common(self, schemas: Sequence[tuple[str, pa.Schema]]) -> pa.Schema:
        """The schema of all files, each with its name. Raises InputError where a column has different types; in a file
        in which it is NULL throughout it may have none."""
        result = []
        for position, first in enumerate(schemas[0][1]):
            types: dict[pa.DataType, str] = {}
            for what, schema in schemas:
                types.setdefault(schema.field(position).type, what)
            typed = {type_: what for type_, what in types.items() if not pa.types.is_null(type_)}
            if len(typed) > 1:
                (left, here), (right, there) = list(typed.items())[:2]
                raise InputError(
                    f"column {first.name} has the type {left} in {here} and {right} in {there}; write one type: "
                    f"{self._as_one('union_by_name')}"
                )
            result.append(pa.field(first.name, next(iter(typed or types))))
        return pa.schema(result)

    def parts(self, columns: Sequence[str], schema: pa.Schema) -> Iterator[tuple[str, Iterable[pa.RecordBatch]]]:
        facts: list[FileFacts] = []
        for what, path in self._each():
            yield what, taken(self._batches(what, path, columns, facts), schema, what)
        self.facts = SourceFacts(tuple(facts))

    def _batches(
        self, what: str, path: Path, columns: Sequence[str], facts: list[FileFacts]
    ) -> Iterator[pa.RecordBatch]:
        with _readable(path, what) as file:
            before = os.fstat(file.fileno())
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            yield from self._format.batches(file, columns, what)
            if _state(before) != _state(os.fstat(file.fileno())) or _state(before) != _state(path.stat()):
                raise QblockError(f"{what} was changed while it was read; run again when nobody writes it")
        facts.append(FileFacts(what, before.st_size, before.st_mtime_ns, digest))

    def _each(self) -> Iterator[tuple[str, Path]]:
        return zip(self._names, self._paths, strict=True)


def _state(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@contextmanager
def _readable(path: Path, what: str) -> Iterator[BufferedReader]:
    """The file, open, with errors of its reading as ours: the library's own text may quote what is in it."""
    with open_input(path, "the source file") as file:
        try:
            yield file
        except (pa.ArrowException, ValueError) as error:
            raise InputError(f"{what} cannot be read: it is damaged, or not of the form that its name says") from error
        except OSError as error:
            fault = error.strerror or "it is damaged, or the disk is at fault"
            raise QblockError(f"{what} cannot be read: {fault}") from error
