"""The last translation of the drivers' errors, which every command passes: of those that come where no statement is
sent, as from a commit or from the end of a session, and of statements that are not translated where they are sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from qblock.errors import QblockError

DRIVERS = {
    "duckdb": "duckdb",
    "_duckdb": "duckdb",
    "psycopg": "postgresql",
    "pyspark": "spark",
    "grpc": "spark",
}
"""The engine of each package that raises errors of its own."""


def explained(error: BaseException) -> QblockError | None:
    """The error to raise for a driver's, which is its cause; None for any other."""
    from qblock.warehouse.engines import ENGINES
    from qblock.warehouse.faults import original_of

    original = original_of(error)
    package = type(original).__module__.partition(".")[0]
    if isinstance(error, QblockError) or package not in DRIVERS:
        return None
    ours = ENGINES[DRIVERS[package]].facts().explain(error)  # type: ignore[arg-type]
    ours.__cause__ = error
    return ours


@contextmanager
def drivers_translated() -> Iterator[None]:
    """Turn the drivers' errors into ours, without any of their text."""
    from qblock.warehouse.faults import interrupted

    try:
        yield
    except Exception as error:
        ours = explained(error)
        if ours is None:
            raise
        if interrupted(error):
            raise KeyboardInterrupt from error
        raise ours from error
