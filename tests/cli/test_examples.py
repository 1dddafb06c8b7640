"""The worked example that every --help ends in, run in a folder that holds what it names."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import typer.main

from qblock.cli.app import application, run

SPEC = """\
version: 1
release: patients
source: {url: "duckdb:///patients.duckdb", table: main.patients}
entity: patient_id
attributes:
  patient_id: identifying
  age: {role: quasi_identifier, hierarchy: {ranges: [10, 20, 40]}}
  sex: {role: quasi_identifier, hierarchy: suppress}
  diagnosis: sensitive
privacy:
  - k_anonymity: {k: 4}
  - distinct_l_diversity: {l: 2}
publish: {url: "duckdb:///published.duckdb", schema: main, view: patients}
"""
PUBLISHED = ("verify", "report", "rollback", "history", "erase", "retire", "ledger")
"""What is about a release that was published."""


def commands(group: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield above, group
    for name, one in getattr(group, "commands", {}).items():
        yield from commands(one, (*above, name))


ALL = {" ".join(name): one for name, one in commands(typer.main.get_command(application()))}


def examples(help_: str) -> list[list[str]]:
    """The command lines after the last "Example", which nothing else may follow."""
    lines = help_[help_.rindex("\n  Example") :].strip().splitlines()
    assert lines[0] in ("Example:", "Examples:")
    return [shlex.split(line) for line in "\n".join(lines[1:]).replace("\\\n", " ").splitlines()]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("patients")
    with duckdb.connect(str(folder / "patients.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE patients AS SELECT 'p' || i AS patient_id, 20 + (i * 7) % 50 AS age, "
            "CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS sex, "
            "['flu', 'cold', 'asthma'][i % 3 + 1] AS diagnosis FROM range(1, 241) AS n(i)"
        )
        connection.execute(f"COPY patients TO '{folder / 'patients.csv'}' (HEADER)")
    (folder / "release.yaml").write_text(SPEC, "utf-8")
    return folder


def publish(folder: Path, text: str) -> None:
    (folder / "before.yaml").write_text(text, "utf-8")
    assert run(["release", str(folder / "before.yaml"), "--quiet"]) == 0


@pytest.fixture(scope="module")
def published(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same after a release."""
    folder = tmp_path_factory.mktemp("published") / "work"
    shutil.copytree(template, folder)
    publish(folder, SPEC)
    return folder


@pytest.fixture
def folder(
    name: str, template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Path:
    """Of a command, with what it is about."""
    moved = name == "ledger move"
    released = name.startswith(PUBLISHED) and not moved
    made = tmp_path / "work"
    shutil.copytree(request.getfixturevalue("published") if released else template, made)
    monkeypatch.chdir(made)
    if moved:
        publish(made, SPEC.replace("release: patients", "release: patients_2025"))
    return made


def test_every_command_is_walked() -> None:
    assert {"", "search", "ledger move", "hierarchy check"} <= ALL.keys()
    assert len(ALL) > 20


@pytest.mark.parametrize("name", ALL)
def test_the_help_ends_in_an_example_that_works(name: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run([*name.split(), "--help"]) == 0
    given = examples(capfd.readouterr().out)
    assert given
    for program, *arguments in given:
        assert program == "qblock"
        assert arguments[: len(name.split())] == name.split()
        capfd.readouterr()
        status = run(arguments)
        assert (status, capfd.readouterr().err if status else "") == (0, "")
