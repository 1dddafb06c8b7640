"""`source: {file: stays.parquet}`: files in the place of a database, as the rest of a spec sees them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from qblock.errors import choices
from qblock.spec.document import Document, Scalar
from qblock.spec.fields import text_of

ENDINGS = (".parquet", ".csv")
COMPRESSED = {"gz": "gunzip -k", "bz2": "bunzip2 -k", "xz": "unxz -k", "zst": "unzstd", "zip": "unzip"}
FORM = "{file: stays.parquet}, or {file: stays.csv, types: {age: integer}}"
WORDS: dict[str, str] = {
    "integer": "a whole number",
    "float": "a number",
    "boolean": "true or false",
    "date": "a date (2026-02-03)",
    "timestamp": "a date with a time (2026-02-03 04:05:06)",
    "timestamptz": "a date with a time and a zone (2026-02-03 04:05:06+01:00)",
    "text": "a text",
}
ALSO: dict[str, str] = {
    **dict.fromkeys(("int", "smallint", "bigint", "int64"), "integer"),
    **dict.fromkeys(("double", "double precision", "real", "float64"), "float"),
    **dict.fromkeys(("varchar", "string"), "text"),
    **dict.fromkeys(("timestamp with time zone",), "timestamptz"),
    "bool": "boolean",
    "datetime": "timestamp",
}
"""Other names of the same types."""
DECIMAL = re.compile(r"(?:decimal|numeric) *(?:\( *([0-9]{1,2}) *(?:, *([0-9]{1,2}) *)?\))?", re.ASCII)
MOST_DIGITS = 38


@dataclass(frozen=True)
class ColumnType:
    """A type. word: of WORDS, or decimal with `digits` in all and `decimals` of them after the point."""

    word: str
    digits: int = 0
    decimals: int = 0

    def __str__(self) -> str:
        return f"decimal({self.digits},{self.decimals})" if self.word == "decimal" else self.word

    @property
    def meaning(self) -> str:
        """What a text must be to be a value of it."""
        if self.word != "decimal":
            return WORDS[self.word]
        return f"a number of at most {self.digits} digits, {self.decimals} of them after the point"


def column_type(text: str) -> ColumnType:
    """The type of that name. Raises ValueError with the names that there are."""
    word = " ".join(text.lower().split())
    match = DECIMAL.fullmatch(word)
    if match:
        digits, decimals = int(match[1] or 0), int(match[2] or 0)
        if not 1 <= digits <= MOST_DIGITS or decimals > digits:
            raise ValueError(
                f"{{it}} needs its digits: decimal(10,2) has 10, 2 of them after the point; at most {MOST_DIGITS}"
            )
        return ColumnType("decimal", digits, decimals)
    word = ALSO.get(word, word)
    if word not in WORDS:
        raise ValueError(f"{{it}} is not a type of a column; {choices([*WORDS, 'decimal(10,2)'], word)}")
    return ColumnType(word)


def ending(text: str) -> str | None:
    """The one of ENDINGS that a path or pattern has."""
    return next((known for known in ENDINGS if text.lower().endswith(known)), None)


def compressed(text: str) -> str | None:
    """What is said of a path of compressed files; None of any other."""
    inner, dot, last = text.rpartition(".")
    if not dot or last.lower() not in COMPRESSED or ending(inner) is None:
        return None
    tool = COMPRESSED[last.lower()]
    return f"compressed files are not read; decompress them ({tool} {text!r}) and name {inner!r}"


def read_source_file(document: Document) -> None:
    """Check the keys of a source that is files, and give it the URL and table that stand for them.

    The URL names the path, so that what is kept of a DuckDB source (private folder, identity, the files that a result
    must not replace) is kept of files too; nothing opens it.
    """
    source = document.data.get("source")
    if not isinstance(source, dict) or "file" not in source:
        if isinstance(source, dict) and "types" in source:
            document.wrong(
                ("source", "types"), "types are those of the columns of a CSV file; add `file`, or remove it"
            )
        return
    raw = source["file"]
    text = raw.text if isinstance(raw, Scalar) else raw
    place = ("source", "file")
    both = [key for key in ("url", "table") if key in source]
    if both:
        document.wrong(("source", both[0]), f"a source is files, or a database with a table; write {FORM}")
    elif not isinstance(text, str) or not text.strip() or "\0" in text:
        document.wrong(place, "{it} is not a path; write " + FORM)
    elif "://" in text:
        document.wrong(
            place, "{it} is not a path; name files of this machine, or write `url` and `table` of a database"
        )
    elif compressed(text) is not None:
        document.wrong(place, compressed(text) or "")
    elif ending(text) is None:
        document.wrong(place, f"{{it}} does not end in {' or '.join(ENDINGS)}; write {FORM}")
    elif "types" in source and ending(text) != ".csv":
        document.wrong(("source", "types"), "a Parquet file has types of its own; remove them")
    else:
        source |= {"file": text, "url": f"duckdb:///{text.replace('?', '%3F')}", "table": quoted_name(text)}
        return
    # What is wrong is said; the rest of the spec is looked at all the same.
    source |= {"file": "-.csv", "url": "duckdb:///-.csv", "table": "file"}


def read_type(raw: object) -> str:
    """The canonical name of a column's type. Raises ValueError."""
    return str(column_type(text_of(raw)))


def quoted_name(text: str) -> str:
    """A text as the name of a table in a spec."""
    return '"' + text.replace('"', '""') + '"'
