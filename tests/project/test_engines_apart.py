"""What differs between engines is in their own folders: three registries know them, and nobody else asks for a name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import qblock
from qblock.engines.registry import ENGINES
from qblock.ledger.schema import SQLITE
from qblock.ledger.stores import STORES
from qblock.publish.targets import TARGETS
from qblock.spec.urls import OF_FILES

PACKAGE = Path(qblock.__file__).parent
OWN = ("engines", "ledger/stores", "publish/targets", "demo")
"""Rooms that may name engines; demo makes a database of one."""
CLASSES = {
    "DuckdbTarget",
    "PostgresqlTarget",
    "DuckdbFile",
    "FileStore",
    "PostgresqlStore",
    "DuckdbWarehouse",
    "PostgresqlWarehouse",
    "SparkWarehouse",
}


def named(node: ast.AST) -> bool:
    """Whether a part of an expression is the name of an engine."""
    return any(isinstance(part, ast.Constant) and part.value in ENGINES for part in ast.walk(node))


def asked(tree: ast.AST) -> Iterator[int]:
    """Lines in which an engine is told by its name or its class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(named(part) for part in (node.left, *node.comparators)):
            yield node.lineno
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
            classes = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
            if classes & CLASSES:
                yield node.lineno


def test_nobody_else_asks_for_the_name_of_an_engine() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if not path.relative_to(PACKAGE).as_posix().startswith(OWN)
        for line in asked(ast.parse(path.read_text("utf-8")))
    ]
    assert found == []


def test_a_comparison_would_be_found() -> None:
    text = "if place.engine == 'duckdb':\n    pass\nif isinstance(target, PostgresqlTarget):\n    pass\n"
    assert list(asked(ast.parse(text))) == [1, 3]


def test_the_registries_have_the_same_engines() -> None:
    assert {name for name, engine in ENGINES.items() if engine.stores} == set(STORES)
    assert {name for name, engine in ENGINES.items() if engine.publishes} == set(TARGETS)
    files = {scheme for engine in ENGINES.values() if engine.is_file for scheme in engine.schemes}
    assert files | {SQLITE} == set(OF_FILES)
    for name, engine in ENGINES.items():
        assert engine.adapter.name == name
