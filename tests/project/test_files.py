"""The files around the code say the same: targets, commands, versions of Python, headers of statements."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import engines
import pytest
import sqlglot

from qblock import __version__

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs/testing.md")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
STATEMENTS = sorted((ROOT / "sql").rglob("*.sql"))


def targets() -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def make_commands(document: str) -> set[str]:
    """What a document shows as a command or in backticks: `make test PYTHON=python3.13`."""
    text = (ROOT / document).read_text("utf-8")
    return (
        set(re.findall(r"^ {4}(?:\$ )?(make\b[^#\n]*?) *(?:#.*)?$", text, re.MULTILINE))
        | set(re.findall(r"`(make\b[^`]*)`", text))
        | set(re.findall(r"^(make\b[^#\n]*?) *(?:#.*)?$", text, re.MULTILINE))
    )


def pythons() -> list[tuple[int, int]]:
    """The versions of Python that requires-python allows."""
    low, high = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", PROJECT["project"]["requires-python"]).groups()
    return [(3, minor) for minor in range(int(low), int(high))]


PYTEST = "python -m pytest -n 2 --dist worksteal"


def test_the_documents_name_targets_that_exist() -> None:
    named = {word for document in DOCUMENTS for command in make_commands(document) for word in command.split()[1:]}
    words = {word for word in named if "=" not in word}
    assert "test" in words
    assert words <= targets()


def test_the_build_machine_runs_the_commands_of_the_documents() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    first, *rest = [line for line in script.read_text("utf-8").splitlines() if line and not line.startswith("# ")]
    assert first == "#!/usr/bin/env bash"
    # First of all, so that a bare machine shows what is missing; whatever is installed afterwards is for the second.
    assert rest[:3] == ["set -eu", 'cd "$(dirname "$0")/.."', "make test"]
    last = "make test-more || status=$?"
    assert [line for line in rest if line.startswith("make")] == ["make test", "make test-duckdb15", last]
    # What runs beside it counts, too.
    assert rest[rest.index(last) + 1 :] == ['wait "$spark" || status=$?', 'cat "$said"', 'exit "$status"']
    for command in ("make test", "make test-more"):
        assert any(command in make_commands(document) for document in DOCUMENTS)


def test_make_test_more_runs_every_test_that_a_bare_machine_skips() -> None:
    text = (ROOT / "Makefile").read_text("utf-8")
    named = set(re.search(r"^REQUIRE \?= (.*)$", text, re.MULTILINE)[1].split(","))  # type: ignore[index]
    marked = {engines.OLDEST}
    for path in (ROOT / "tests").rglob("*.py"):
        marked |= set(re.findall(r"mark\.needs\(\"(\w+)\"\)", path.read_text("utf-8")))
    assert named == marked


def test_the_oldest_postgresql_is_named_everywhere() -> None:
    number = engines.OLDEST.removeprefix("postgresql")
    assert f"/usr/lib/postgresql/{number}/bin/initdb" in (ROOT / ".ci" / "run").read_text("utf-8")
    assert f"postgresql-{number}" in (ROOT / ".ci" / "run").read_text("utf-8")
    for document in DOCUMENTS:
        assert f"PostgreSQL {number}" in (ROOT / document).read_text("utf-8")


def test_make_without_a_target_lists_the_targets_with_what_they_do() -> None:
    done = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, check=True, capture_output=True, text=True)
    assert {line.split()[1] for line in done.stdout.splitlines()} == targets()


@pytest.mark.parametrize(
    ("target", "commands"),
    [
        ("test", ["ruff check .", "ruff format --check .", "mypy", "lint-imports", f"QBLOCK_TEST_PART=quick {PYTEST}"]),
        ("test-more", [f"QBLOCK_TEST_PART=more QBLOCK_TEST_REQUIRE=it {PYTEST}"]),
    ],
)
def test_the_fast_checks_are_first_and_both_parts_of_the_suite_are_run(
    target: str, commands: list[str], tmp_path: Path
) -> None:
    for stamp in (".venv/.made", ".venv/.installed-dev", ".venv-duckdb15/.installed"):
        (tmp_path / stamp).parent.mkdir(exist_ok=True)
        (tmp_path / stamp).touch()
    (tmp_path / "pyproject.toml").touch()
    os.utime(tmp_path / "pyproject.toml", (0, 0))
    command = ["make", "--no-print-directory", "--dry-run", "--file", str(ROOT / "Makefile"), target, "REQUIRE=it"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.replace(".venv/bin/", "").splitlines() == commands


def test_an_edited_pyproject_is_installed_again(tmp_path: Path) -> None:
    for age, name in enumerate((".venv/.made", ".venv/.installed", "pyproject.toml")):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (1_000 + age, 1_000 + age))
    command = ["make", "--no-print-directory", "--dry-run", "--file", str(ROOT / "Makefile"), "demo"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    before, command, after = done.stdout.partition("\n.venv/bin/qblock demo demo\n")
    assert "pip install" in before
    assert command
    assert "-m venv" not in done.stdout
    assert "pip" not in after


def test_the_classifiers_are_the_versions_of_python_that_are_allowed() -> None:
    prefix = "Programming Language :: Python :: "
    named = [c.removeprefix(prefix) for c in PROJECT["project"]["classifiers"] if re.fullmatch(rf"{prefix}3\.\d+", c)]
    assert named == [f"{major}.{minor}" for major, minor in pythons()]


def test_the_tools_check_for_the_oldest_python() -> None:
    major, minor = pythons()[0]
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{major}{minor}"
    words = f"Python {major}.{minor} to {major}.{pythons()[-1][1]}"
    for document in ("CONTRIBUTING.md", "Makefile"):
        assert words in (ROOT / document).read_text("utf-8")


def test_the_first_page_for_contributors_fits_a_screen() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text("utf-8").splitlines()) <= 45


def test_the_changelog_has_this_version() -> None:
    assert re.search(rf"^## \[{re.escape(__version__)}\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)


def test_what_the_changelog_says_of_a_version_can_be_read() -> None:
    """By subject, in so many words, and not a line for each commit."""
    _, *versions = re.split(r"(?m)^## ", (ROOT / "CHANGELOG.md").read_text("utf-8"))
    assert versions
    assert {text.splitlines()[0] for text in versions if len(text.split()) > 2500} == set()


def test_the_demos_package_is_not_ignored_and_its_folder_is() -> None:
    def ignored(path: str) -> bool:
        # Its exit status is 1 where nothing is ignored; an sdist has no repository to ask.
        done = subprocess.run(["git", "check-ignore", "--quiet", path], cwd=ROOT, check=False)
        if done.returncode not in (0, 1):
            pytest.skip("this is not a git checkout")
        return done.returncode == 0

    assert ignored("demo/census.duckdb")
    assert not ignored("engine/qblock/demo/new.py")


@pytest.mark.parametrize("path", STATEMENTS, ids=lambda path: path.relative_to(ROOT / "sql").as_posix())
def test_a_statement_says_what_it_is_for_and_is_one_statement(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    header = lines[: next(i for i, line in enumerate(lines) if not line.startswith("--"))]
    assert [line.split(":")[0] for line in header if re.match(r"-- [A-Z][a-z]+:", line)] == [
        "-- Purpose",
        "-- Inputs",
        "-- Output",
    ]
    assert all(line.split(":", 1)[1].strip() for line in header if ":" in line)
    engine = path.parent.name if path.parent.name != "sql" else "postgres"
    assert len(sqlglot.parse(path.read_text("utf-8"), dialect=engine.replace("postgresql", "postgres"))) == 1
