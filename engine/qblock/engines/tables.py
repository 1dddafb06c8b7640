"""Tables and columns of a source, as a spec names them and as a catalog describes them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from qblock.comparison import Kind
from qblock.engines.quoting import quote
from qblock.errors import InputError

PRIVATE_SCHEMA = "qblock"
"""The schema of private tables, where an engine keeps them in the database of the source."""


@dataclass(frozen=True)
class TableName:
    """A table or view as the spec names it: `table`, `schema.table`, or `catalog.schema.table` where the engine has
    catalogs; a part with a dot goes in double quotes."""

    schema: str | None
    name: str
    catalog: str | None = None

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Split at dots outside of double quotes; a doubled quote within quotes stands for one. Raises InputError."""
        parts, current, quoted, i = [], "", False, 0
        while i < len(text):
            char = text[i]
            if quoted and char == '"' and text[i + 1 : i + 2] == '"':
                current, i = current + '"', i + 1
            elif char == '"':
                quoted = not quoted
            elif char == "." and not quoted:
                parts.append(current)
                current = ""
            else:
                current += char
            i += 1
        parts.append(current)
        if quoted or not all(parts) or len(parts) > 3 or "://" in text:
            shown = "(a URL)" if "://" in text else repr(text)
            raise not_a_table(shown)
        return cls(parts[-2] if len(parts) > 1 else None, parts[-1], parts[0] if len(parts) == 3 else None)

    def __str__(self) -> str:
        return ".".join(p for p in (self.catalog, self.schema, self.name) if p)

    @property
    def quoted(self) -> str:
        """Schema and name as quoted identifiers."""
        return ".".join(quote(part) for part in (self.schema, self.name) if part)


def not_a_table(shown: str) -> InputError:
    """The error for a name that is none of a table. shown: as the message has it."""
    return InputError(
        f"table name {shown} does not have the form table or schema.table; "
        'quote a part that holds a dot: "my.schema".table'
    )


@dataclass(frozen=True)
class Column:
    """A column of a table or view; `type` is the engine's own name of its type, `compare_as` the type to compare in.

    base: the type that a domain is made of in the end, where that is another one.
    """

    name: str
    type: str
    kind: Kind
    compare_as: str
    base: str | None = None


@dataclass(frozen=True)
class FileFacts:
    """A file as it was when it was copied. size: in bytes; modified: in nanoseconds since 1970; digest: sha256."""

    name: str
    size: int
    modified: int
    digest: str


@dataclass(frozen=True)
class SourceFacts:
    """The files that a snapshot was copied from, in the order of their names."""

    files: tuple[FileFacts, ...]

    def text(self) -> str:
        """As JSON: how many files, their bytes in all, when the newest was modified, and one digest.

        digest: of a single file its own, else the sha256 over name and digest of each.
        """
        newest = datetime.fromtimestamp(max(file.modified for file in self.files) / 1e9, UTC)
        whole = hashlib.sha256("".join(f"{file.name}\0{file.digest}\n" for file in self.files).encode()).hexdigest()
        facts = {
            "files": len(self.files),
            "size": sum(file.size for file in self.files),
            "modified": newest.isoformat(timespec="microseconds"),
            "digest": self.files[0].digest if len(self.files) == 1 else whole,
        }
        return json.dumps(facts, sort_keys=True, separators=(",", ":"))


class RawType(sa.types.UserDefinedType[Any]):
    """A type by the engine's own name, as its catalog gives it."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        return self.name
