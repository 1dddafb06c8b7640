"""What a release is, as its target says it, and what each published object says about itself."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import Any

from qblock.warehouse.protocol import TableName

ON_SPARK = " on Spark"
MARKED = "qblock release "
"""How the comment on whatever holds a version begins."""


@dataclass(frozen=True)
class Identity:
    """Source and view of a release. source: `schema.table`, or None for a table that does not exist; database: a digest
    of the source's file, None where the ledger is in the source's database; target: the view, with a file of the spec's
    folder relative to that; view: the same as messages name it; readers: roles that may read it, or will.
    """

    source: str | None
    database: str | None
    target: str
    view: str
    readers: tuple[str, ...] = ()

    def columns(self) -> dict[str, Any]:
        """The columns of an event that hold the identity."""
        return {
            "source": self.source,
            "source_database": self.database,
            "target": self.target,
            "readers": self.readers,
        }


def table_text(table: TableName) -> str:
    """`schema.table`; a part that holds a dot or a quote in double quotes."""
    parts = [part for part in (table.schema, table.name) if part]
    return ".".join('"' + part.replace('"', '""') + '"' if set(part) & {".", '"'} else part for part in parts)


def named_view(target: str) -> TableName:
    """The view of an identity's target, which names a file or a server after it."""
    return TableName.parse(target.partition(" in ")[0].removesuffix(ON_SPARK))


@dataclass(frozen=True)
class Mark:
    """A version of a release that exists. stamp: None where its comment has none; shown: whether readers see it by
    the object alone, without asking the pointer row."""

    version: int
    stamp: str | None
    shown: bool = False


def new_stamp() -> str:
    """128 random bits as hexadecimal text. Not derived from anything: with a digest of the ledger, readers could try
    out its private counts."""
    return secrets.token_hex(16)


def mark_text(release: str, version: int, stamp: str | None) -> str:
    """The comment on the object that holds a version."""
    return f"qblock release {release} version {version}" + (f" stamp {stamp}" if stamp is not None else "")


def read_mark(comment: str | None, release: str) -> tuple[int, str | None] | None:
    """Version and stamp, where there is one, of a comment on an object of the release; None for any other."""
    pattern = rf"qblock release {re.escape(release)} version (\d+)(?: stamp ([0-9a-f]{{32}}))?"
    match = re.fullmatch(pattern, comment or "")
    return (int(match[1]), match[2]) if match else None
