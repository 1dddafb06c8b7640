"""What a release is, as its target says it: one source and one view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qblock.warehouse.protocol import TableName

ON_SPARK = " on Spark"


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
