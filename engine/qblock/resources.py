"""Where `sql/`, `migrations/` and `examples/` are: beside the package in the wheel, at the top of a checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from qblock.errors import QblockError

PACKAGE = Path(__file__).resolve().parent


def directory(name: str, package: Path = PACKAGE) -> Path:
    """The folder of that name: the checkout's where the package runs from one, else the wheel's.

    Raises QblockError when the installation holds neither.
    """
    checkout = package.parents[1]
    # pyproject.toml tells a checkout from an installed package whose neighbours happen to have the same names.
    live = package.parent.name == "engine" and (checkout / "pyproject.toml").is_file()
    candidates = [*([checkout / name] if live else []), package / name]
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    raise QblockError(f"the installation of qblock is incomplete: {candidates[-1]} is missing; install qblock again")


def migrations_directory() -> Path:
    """The folder of the ledger schema's Alembic migrations."""
    return directory("migrations")


@cache
def sql_text(name: str, engine: str | None = None) -> str:
    """The statement `sql/<engine>/<name>.sql` where there is one, else `sql/<name>.sql`.

    name: the file's name without its suffix; engine: the dialect's name, e.g. "duckdb" or "postgresql".
    Raises QblockError when there is no such statement.
    """
    folder = directory("sql")
    candidates = [folder / engine / f"{name}.sql"] if engine else []
    candidates.append(folder / f"{name}.sql")
    for candidate in candidates:
        if candidate.is_file():
            return candidate.read_text("utf-8")
    raise QblockError(f"there is no statement {name!r} in {folder}" + (f" for {engine}" if engine else ""))
