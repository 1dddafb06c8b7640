"""Names say what they hold: words that say nothing do not come back as names of variables, parameters or functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import qblock

ENGINE = Path(qblock.__file__).parent
NOT_NAMES = {"found", "made", "asked", "apart", "one", "several", "book", "Book"}
"""The thing it is instead: rows, problems, match, person, block, batch, plan, result, crosswalk."""
AS_STORED = {("ledger/events.py", "asked"), ("release/erase.py", "asked"), ("release/job.py", "found")} | {
    (f"results/{module}.py", name)
    for module, names in {
        "audit": ("asked",),
        "base": ("asked",),
        "release": ("asked",),
        "report": ("asked", "made"),
        "tables": ("apart",),
    }.items()
    for name in names
}
"""Fields with the names of columns of the ledger, or of keys of JSON."""


def bound(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name that a file binds, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name


@pytest.mark.parametrize("text", ["found = 1", "def f(one): ...", "[made for made in x]", "def apart(): ..."])
def test_they_are_seen(text: str) -> None:
    assert {name for _, name in bound(ast.parse(text))} & NOT_NAMES


def test_names_say_what_they_hold() -> None:
    problems = []
    for path in sorted(ENGINE.rglob("*.py")):
        place = path.relative_to(ENGINE)
        names = bound(ast.parse(path.read_text("utf-8")))
        bad = {(line, name) for line, name in names if name in NOT_NAMES and (place.as_posix(), name) not in AS_STORED}
        problems += [f"{place}:{line}: call `{name}` what it is" for line, name in sorted(bad)]
    assert problems == []


OUTPUT = {"reached": "satisfied", "headroom": "margin", "room": "margin", "hidden": "suppressed"}


def test_answers_and_private_tables_have_the_words_of_the_glossary() -> None:
    files = [*(ENGINE / "results").glob("*.py"), ENGINE / "ledger" / "schema.py", ENGINE / "publish" / "helpers.py"]
    for path in files:
        tree = ast.parse(path.read_text("utf-8"))
        annotated = [node.target for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)]
        fields = {target.id for target in annotated if isinstance(target, ast.Name)}
        texts = {
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert {word: OUTPUT[word] for word in (fields | texts) & OUTPUT.keys()} == {}, path
