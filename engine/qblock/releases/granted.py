"""What `Release.grants` returns, and what a plan says of rights that are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from qblock.releases.answer import Answer


@dataclass(frozen=True)
class Grant:
    """A right that somebody needs. role: whose; statement: that gives it; held: whether the role has it already; when:
    now, by_job (the job grants it itself), later (once there is a ledger)."""

    role: str
    statement: str
    why: str
    held: bool
    when: str

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Grant:
        return cls(*(found[name.name] for name in fields(cls)))


@dataclass(frozen=True)
class Grants(Answer):
    """What a release needs of others. sql: a script for an administrator (empty on DuckDB); grants: its statements, and
    those that are not run by an administrator; files: on DuckDB for whom, access (read, write, none), path and why."""

    columns = ("role", "statement", "why", "held", "when")

    sql: str
    grants: tuple[Grant, ...]
    files: tuple[tuple[str, str, str, str], ...]

    @classmethod
    def values(cls, found: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **super().values(found),
            "sql": found["sql"],
            "grants": tuple(map(Grant.of, found["grants"])),
            "files": tuple((one["for"], one["access"], one["path"], one["why"]) for one in found["files"]),
        }

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        return [(g.role, g.statement, g.why, g.held, g.when) for g in self.grants]
