"""The files of a DuckDB database: the one that is named, and what the library keeps beside it."""

from __future__ import annotations

from pathlib import Path

from qblock.errors import QblockError
from qblock.files import check_file

LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")
"""Suffixes of write-ahead logs: of what is not in the file yet, and of a checkpoint in progress."""


def logs_of(file: Path) -> list[Path]:
    """The write-ahead logs that there may be beside a file."""
    return [file.with_name(f"{file.name}{end}") for end in LOGS]


def check_database(file: Path, needed: str, error: type[QblockError] = QblockError, where: str = "") -> None:
    """Raise an error where a database cannot be opened because of what is at its path or beside it; a path with nothing
    there is fine. needed: what is to be done, as the end of a sentence; where: the place of the spec that names the
    file.
    """
    check_file(file, needed, error, where)
    for log in logs_of(file):
        check_file(log, "DuckDB keeps the log of the database there; move it away", error, where)
