"""What a release needs of others: rights in a database as statements, or files; for job, readers and officers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Who = Literal["job", "reader", "officer"]
When = Literal["now", "by_job", "later"]
HEADINGS: dict[Who, str] = {
    "job": "The login that the job connects as",
    "reader": "Readers of the release, who see the view and nothing else",
    "officer": "The officer, who reads the ledger and nothing else that is private",
}
COMMENTED: dict[When, str] = {
    "by_job": "The job grants this itself when it publishes:",
    "later": "Once the ledger exists (`qblock ledger upgrade SPEC`, or the first release), print this again for:",
}


@dataclass(frozen=True)
class Right:
    """One statement that somebody needs. why: what for; held: whether the role has it already.

    when: whether an administrator can run it now, the job does so itself, or what it is about does not exist yet;
    stops: whether a run is refused without it.
    """

    who: Who
    role: str
    statement: str
    why: str
    held: bool = False
    when: When = "now"
    stops: bool = True

    @property
    def sql(self) -> str:
        """The statement with what it is for, as one line of a script."""
        return f"{self.statement};{_comment(f'{self.why}; held already' if self.held else self.why, ' ')}"

    def to_json(self) -> dict[str, Any]:
        return {
            "for": self.who,
            "role": self.role,
            "statement": f"{self.statement};",
            "why": self.why,
            "held": self.held,
            "when": self.when,
        }


@dataclass(frozen=True)
class FileNeed:
    """A file or folder. access: what somebody must be able to do with it; none: what must be kept from them."""

    who: Who
    access: Literal["read", "write", "none"]
    path: Path
    why: str

    def to_json(self) -> dict[str, Any]:
        return {"for": self.who, "access": self.access, "path": str(self.path), "why": self.why}


@dataclass(frozen=True)
class Needs:
    """All that a release needs. where: the database, or the folder; login: the job's, where the engine has roles."""

    engine: str
    where: str
    login: str | None
    rights: tuple[Right, ...] = ()
    files: tuple[FileNeed, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[Right, ...]:
        """What an administrator must run before the next release, or for its readers."""
        return tuple(right for right in self.rights if right.when == "now" and not right.held)

    def script(self, release: str) -> str:
        """The rights as SQL that an administrator can run as it is; empty where the engine has none."""
        if self.login is None:
            return ""
        lines = [
            _comment(f"What release {release} needs in database {self.where}."),
            _comment("A superuser runs this there, or the owner of the database and of everything named below."),
            *(_comment(note) for note in self.notes),
        ]
        for who, heading in HEADINGS.items():
            of = [right for right in self.rights if right.who == who]
            if of:
                lines += ["", _comment(heading)]
            lines += [right.sql for right in of if right.when == "now"]
            for when, said in COMMENTED.items():
                later = [right for right in of if right.when == when]
                lines += [_comment(said)] if later else []
                lines += [_comment(f"  {right.statement};") for right in later]
        return "\n".join(lines)


def missing_rights(rights: Iterable[Right]) -> str:
    """A sentence about rights that are missing, with the statements."""
    statements = "; ".join(right.statement for right in rights)
    return (
        f"an administrator must first run: {statements}; `qblock grants SPEC` says what each is for. A login that "
        "may only SELECT can publish a DuckDB file: publish: {url: 'duckdb:///release.duckdb'}"
    )


def _comment(text: str, before: str = "") -> str:
    # A name may hold the end of a line, after which the rest would be a statement.
    return f"{before}-- {' '.join(text.splitlines())}"
