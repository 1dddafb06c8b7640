"""A run from Spark that ends itself by SIGKILL at a traced boundary: `python -m publish.spark_killed SPEC [NUMBER]`.

A boundary is before or after a private copy, a change of the catalog, or one of the ledger. Without NUMBER the run ends
by itself, and prints the boundaries that it passed.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
from typing import Any

from qblock.api import Release
from qblock.engines.spark.catalog import SparkCatalog
from qblock.engines.spark.client import Frame
from qblock.engines.spark.session import SparkSession
from qblock.ledger.stores.files import FileStore

CHANGES = ("make_schema", "write", "make_empty", "mark", "show", "say", "drop")


def main(spec: str, number: str | None = None) -> int:
    """Returns the exit status."""
    passed: list[str] = []

    def at(name: str) -> None:
        passed.append(name)
        if len(passed) == int(number or 0):
            os.kill(os.getpid(), signal.SIGKILL)

    def traced(function: Any, name: str) -> Any:
        @functools.wraps(function)
        def around(*given: Any, **named: Any) -> Any:
            at(f"before {name}")
            found = function(*given, **named)
            at(f"after {name}")
            return found

        return around

    for name in CHANGES:
        setattr(SparkCatalog, name, traced(getattr(SparkCatalog, name), name))
    SparkSession._save = traced(SparkSession._save, "a private copy")  # type: ignore[method-assign]
    _between_table_and_rows(at)
    FileStore.write = traced_ledger(FileStore.write, at)  # type: ignore[method-assign]
    found = Release(spec).publish()
    print(json.dumps({"status": found.status, "version": found.version, "passed": passed}))
    return 0


def _between_table_and_rows(at: Any) -> None:
    """A table is made, then filled: in between it is there without rows."""
    from pyspark.sql.connect.dataframe import DataFrame

    frame: Any = DataFrame
    original: Frame = frame.repartition

    @functools.wraps(frame.repartition)
    def repartition(self: Any, *given: Any) -> Any:
        at("between a table and its rows")
        return original(self, *given)  # type: ignore[operator]

    frame.repartition = repartition


def traced_ledger(function: Any, at: Any) -> Any:
    """Boundaries within a transaction of the ledger, and after it."""
    from contextlib import contextmanager

    @contextmanager
    def around(*given: Any, **named: Any) -> Any:
        with function(*given, **named) as connection:
            yield connection
            at("before the ledger commits")
        at("after the ledger has committed")

    return around


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
