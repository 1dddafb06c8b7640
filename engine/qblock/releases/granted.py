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
    def of(cls, right: Mapping[str, Any]) -> Grant:
        return cls(*(right[name.name] for name in fields(cls)))


@dataclass(frozen=True)
class Grants(Answer):
    """What a release needs of others. sql: a script for an administrator (empty on DuckDB); grants: its statements, and
    those that are not run by an administrator; files: on DuckDB for whom, access (read, write, none), path and why."""

    columns = ("role", "statement", "why", "held", "when")

    sql: str
    grants: tuple[Grant, ...]
    files: tuple[tuple[str, str, str, str], ...]

    @classmethod
    def values(cls, answer: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **super().values(answer),
            "sql": answer["sql"],
            "grants": tuple(map(Grant.of, answer["grants"])),
            "files": tuple((file["for"], file["access"], file["path"], file["why"]) for file in answer["files"]),
        }

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        return [(g.role, g.statement, g.why, g.held, g.when) for g in self.grants]
