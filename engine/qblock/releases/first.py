"""The first minutes: a spec to start from, and the schema of specs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qblock.profiling.first_spec import init


@dataclass(frozen=True)
class ProposedColumn:
    """A column, and the role that is proposed for it. nulls: rows without a value; reason: why."""

    name: str
    role: str
    distinct: int
    nulls: int
    reason: str


@dataclass(frozen=True)
class Proposed:
    """A first spec. files: that were written, the spec last."""

    columns: tuple[ProposedColumn, ...]
    files: tuple[Path, ...]

    def to_dict(self) -> dict[str, Any]:
        """What `qblock init --json` prints."""
        names = ("name", "role", "distinct", "reason")
        columns = [{name: getattr(column, name) for name in names} for column in self.columns]
        return {"files": [str(file) for file in self.files], "columns": columns}


def propose_spec(url: str, table: str | None = None, directory: str | Path = ".", *, force: bool = False) -> Proposed:
    """Profile a table, and write a spec and hierarchy files to edit.

    url: of a database with the table, or the path of Parquet or CSV files without one. force: replace files that exist.

    Raises InputError for a table that cannot be read, or of which no column can be a quasi-identifier.
    """
    proposals, files = init(url, table, Path(directory), force=force)
    columns = tuple(
        ProposedColumn(p.profile.column.name, p.role, p.profile.distinct, p.profile.nulls, p.reason) for p in proposals
    )
    return Proposed(columns, tuple(files))
