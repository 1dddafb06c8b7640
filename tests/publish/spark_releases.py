"""Releases on a Spark server whose catalog is in a folder."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from qblock.api import Release
from qblock.engines.spark.client import end

ON_SPARK = """private: {{url: "{ledger}", path: {folder}/private}}
publish: {{path: {folder}/published, readers_checked: by operator}}"""
KEYS = {"qblock.versions.crosswalk": "ab", "qblock.versions.conversion": "cd"}
"""Where keys are made, and of what digits."""


@pytest.fixture
def client(hive: tuple[str, Path]) -> Iterator[Any]:
    """A session of the bare client: whoever makes the source, and readers."""
    from pyspark.sql.connect.session import SparkSession

    made = SparkSession.builder.remote(hive[0]).create()
    made.sql("CREATE SCHEMA IF NOT EXISTS clinic")
    yield made
    for schema in ("clinic", "published"):
        made.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    for (name,) in made.sql("SHOW SCHEMAS LIKE 'qblock*'").collect():
        made.sql(f"DROP SCHEMA {name} CASCADE")
    end(made)


def written(path: Path, text: str) -> Release:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    return Release(path)


def tables(client: Any) -> set[str]:
    if not client.catalog.databaseExists("published"):
        return set()
    return {row.tableName for row in client.sql("SHOW TABLES IN published").collect()}


def same_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the keys of all crosswalks are the same."""
    for module, digits in KEYS.items():
        same_key(monkeypatch, module, digits)


def same_key(monkeypatch: pytest.MonkeyPatch, module: str, digits: str) -> None:
    """A key that a module makes is of these digits."""

    def made(n: int) -> str:
        return digits * n if n == 32 else secrets.token_hex(n)

    monkeypatch.setattr(f"{module}.secrets", SimpleNamespace(token_hex=made))
