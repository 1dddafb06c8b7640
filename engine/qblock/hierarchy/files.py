"""Hierarchies in CSV files, one row per leaf, leaf first: with a header that names the levels, or as other tools have
them, with semicolons and none."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from qblock.errors import InputError
from qblock.files import read_input
from qblock.hierarchy.core import TOP, Hierarchy, HierarchyError, Problem, check_labels, check_levels, nests
from qblock.hierarchy.labels import Labels, as_texts

Layout = Literal["header", "semicolons"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
DELIMITERS: dict[Layout, str] = {"header": ",", "semicolons": ";"}


def from_csv(path: str | Path, attribute: str | None = None, layout: Layout = "header") -> Hierarchy:
    """Read and check a file; `attribute` defaults to the name of its first column. A level `*` is added if missing.

    layout: `semicolons` without a header, whose levels are numbered then. Raises InputError (HierarchyError with all
    problems, each with its line).
    """
    text = read_input(path, "the hierarchy file", newline="")
    _check_header(text, DELIMITERS[layout], path)
    plain = _plain(text, attribute) if layout == "header" else None
    if plain is not None:
        return plain
    rows: list[list[str]] = []
    lines: list[int] = []
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=DELIMITERS[layout])
    try:
        for row in reader:
            if row:
                rows.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise HierarchyError(str(path), [Problem(reader.line_num, f"not CSV: {error}")]) from None
    if not rows:
        first = "a header with the names of the levels" if layout == "header" else "a line for each value"
        raise InputError(f"{path}: the file is empty; write {first}, leaf first")
    if layout == "semicolons":
        named = attribute or Path(path).stem
        names = [named, *(f"{named}_{level}" for level in range(1, len(rows[0])))]
        return _checked(names, rows, named, str(path), lines, True)
    return _checked(rows[0], rows[1:], attribute or rows[0][0], str(path), lines[1:], True, header=lines[0])


def from_rows(
    names: Sequence[str],
    rows: Iterable[Sequence[str | None]],
    attribute: str | None = None,
    origin: str = "hierarchy",
) -> Hierarchy:
    """A hierarchy of rows (leaf, label of level 1, ...), checked; a level `*` is added if missing.

    origin: where the rows come from, for messages. Raises HierarchyError.
    """
    listed = list(rows)
    return _checked(names, listed, attribute or names[0], origin, range(1, len(listed) + 1), False)


def write_csv(hierarchy: Hierarchy, path: str | Path, layout: Layout = "header") -> None:
    """Write a hierarchy as a file that `from_csv` reads back; the leaf of NULL is left out."""
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n", delimiter=DELIMITERS[layout])
        if layout == "header":
            writer.writerow(hierarchy.level_names)
        writer.writerows(row for row in zip(*hierarchy.labels, strict=True) if row[0] is not None)


def with_top(attribute: str, names: Sequence[str], labels: Sequence[Sequence[str | None]]) -> Hierarchy:
    """Columns of labels with a level `*` above them, unless the last of several is one."""
    check_labels(attribute, len(labels) + 1, len(labels[0]))
    columns = [level if isinstance(level, Labels) else Labels.of(level) for level in labels]
    last = columns[-1].distinct
    if len(columns) < 2 or (len(last) and last.to_pylist() != [TOP]):
        columns.append(Labels.same(TOP, len(columns[0])))
        name = f"{attribute}_any"
        names = [*names, name if name not in names else f"{name}_"]
    return Hierarchy(attribute, tuple(names), tuple(columns))


def _plain(text: str, attribute: str | None) -> Hierarchy | None:
    """The hierarchy of a file without quotes; None where it has some, or where anything is wrong."""
    unlike = ('"', "\0", "\ufeff")
    if any(mark in text for mark in unlike) or text.count("\r") != text.count("\r\n"):
        return None
    names = text.lstrip("\r\n").partition("\n")[0].rstrip("\r").split(",")
    if not _named(names):
        return None
    columns = {str(level): pa.large_string() for level in range(len(names))}
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(text.encode("utf-8")),
            pa.csv.ReadOptions(use_threads=False, column_names=list(columns)),
            pa.csv.ParseOptions(quote_char=False),
            pa.csv.ConvertOptions(column_types=columns, strings_can_be_null=False),
        ).slice(1)
    except pa.ArrowInvalid:
        return None
    longest = max((pc.max(pc.binary_length(column)).as_py() or 0 for column in table.columns), default=0)
    if longest >= csv.field_size_limit():
        return None
    return from_columns(names, table.columns, attribute or names[0])


def from_columns(names: Sequence[str], columns: Sequence[pa.ChunkedArray], attribute: str) -> Hierarchy | None:
    """A hierarchy of columns of labels, leaf first; None where anything is wrong, which `from_rows` says."""
    if not _named(names) or not len(columns[0]) or any(column.null_count for column in columns):
        return None
    leaves, *above = map(as_texts, columns)
    hierarchy = with_top(attribute, names, [Labels.of(leaves), *map(Labels.of, above)])
    return hierarchy if nests(hierarchy.columns, observed=False) else None


def _check_header(text: str, delimiter: str, path: str | Path) -> None:
    """Raise InputError for too many levels. A name may hold the delimiter, which counts as one more."""
    header = text.lstrip("\r\n").partition("\n")[0]
    try:
        check_levels(header.count(delimiter) + 1, "Leave levels out")
    except ValueError as error:
        raise InputError(f"{path}:1: {error}") from None


def _named(names: Sequence[str]) -> bool:
    """Whether every level has a name of its own."""
    return len(set(names)) == len(names) and all(names)


def _checked(
    names: Sequence[str],
    rows: Sequence[Sequence[str | None]],
    attribute: str,
    origin: str,
    lines: Sequence[int],
    in_file: bool,
    header: int = 0,
) -> Hierarchy:
    first = "header" if header or not in_file else "first line"
    problems = [
        Problem(line, f"{len(row)} columns where the {first} has {len(names)}; write one label for each level")
        for line, row in zip(lines, rows, strict=True)
        if len(row) != len(names)
    ]
    if not _named(names):
        problems.append(Problem(header, "every level needs a name of its own: correct the header"))
    kept = [index for index, row in enumerate(rows) if len(row) == len(names)]
    columns = [[rows[index][level] or "" for index in kept] for level in range(len(names))]
    hierarchy = with_top(attribute, names, columns)
    places = [lines[index] for index in kept]
    if kept or not problems:
        problems += hierarchy.check(lines=places, word="line" if in_file else "row")
    if problems:
        raise HierarchyError(origin, problems, in_file)
    return hierarchy
