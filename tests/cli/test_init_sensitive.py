"""`qblock init` and what is sensitive: it is asked, named, or left open; never guessed into a spec that runs."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from faults.nursery import MAIN

from qblock.spec import load_spec

pytestmark = pytest.mark.either_engine
PEOPLE: dict[str, list[Any]] = {
    "age": [20 + i % 17 for i in range(40)],
    "city": [f"city {i % 5}" for i in range(40)],
    "diagnosis": ["flu", "cold", "cough", "flu"] * 10,
    "salary": [1000 + i % 7 for i in range(39)] + [None],
}
COMMANDS = ("search", "plan", "release", "audit", "compare", "verify", "history")
ROLES = "identifying, quasi_identifier, sensitive or insensitive"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warehouse: Any) -> tuple[str, Path]:
    """The URL of the table, and where the spec goes."""
    url = warehouse("people", PEOPLE)
    monkeypatch.setenv("WAREHOUSE_URL", url)
    return url, tmp_path / "made" / "release.yaml"


def propose(qblock: Any, made: tuple[str, Path], *more: str) -> Any:
    return qblock("init", made[0], "people", "--directory", made[1].parent, *more)


def roles(ran: Any) -> dict[str, str]:
    return {column["name"]: column["role"] for column in ran.json["columns"]}


def test_what_may_be_sensitive_is_left_open_and_no_command_reads_the_spec(qblock: Any, made: tuple[str, Path]) -> None:
    ran = propose(qblock, made)
    lines = made[1].read_text("utf-8").split("\n")
    at = {
        name: next(i for i, x in enumerate(lines, 1) if x.startswith(f"  {name}:")) for name in ("diagnosis", "salary")
    }
    assert f"decide in {made[1]} whether these are sensitive" in " ".join(ran.out.split())
    assert all(f"{name} (line {line})" in " ".join(ran.out.split()) for name, line in at.items())
    for command in COMMANDS:
        refused = qblock(command, made[1])
        assert refused.status == 2
        assert refused.err.count("\n") == 2
        for name, line in at.items():
            place = f"attributes.{name}" if name == "diagnosis" else f"attributes.{name}.role"
            assert f"release.yaml:{line}: {place}: `???` stands for a decision that is yours; write its" in refused.err
        assert ROLES in refused.err
    assert not (made[1].parent / "qblock").exists()
    text = made[1].read_text("utf-8").replace("diagnosis: ???", "diagnosis: sensitive")
    made[1].write_text(text.replace("role: ???", "role: sensitive").replace("role: '???'", "role: sensitive"), "utf-8")
    assert qblock("search", made[1]).status == 0
    assert load_spec(made[1]).sensitives == ("diagnosis", "salary")


def test_for_machines_the_open_columns_and_the_lattice(qblock: Any, made: tuple[str, Path]) -> None:
    ran = propose(qblock, made, "--json", "--yes")
    assert list(ran.json["open"]) == ["diagnosis", "salary"]
    assert ran.json["nodes"] == 5 * 2
    lines = made[1].read_text("utf-8").split("\n")
    assert all("???" in lines[line - 1] for line in ran.json["open"].values())


def test_somebody_names_them(qblock: Any, made: tuple[str, Path]) -> None:
    ran = propose(qblock, made, "--sensitive", "diagnosis", "--json")
    assert roles(ran) == {
        "age": "quasi_identifier",
        "city": "quasi_identifier",
        "diagnosis": "sensitive",
        "salary": "left out",
    }
    assert ran.json["open"] == {}
    assert load_spec(made[1]).sensitives == ("diagnosis",)
    assert qblock("search", made[1]).status == 0


def test_a_column_that_looks_public_may_be_named(qblock: Any, made: tuple[str, Path]) -> None:
    ran = propose(qblock, made, "--sensitive", "city", "--sensitive", "salary", "--json")
    assert roles(ran) | {"city": "sensitive", "salary": "sensitive", "diagnosis": "left out"} == roles(ran)
    assert load_spec(made[1]).attributes["salary"].nulls == "value"
    assert not (made[1].parent / "hierarchies" / "city.csv").exists()


def test_there_may_be_none(qblock: Any, made: tuple[str, Path]) -> None:
    propose(qblock, made, "--sensitive", "none")
    assert load_spec(made[1]).sensitives == ()
    assert qblock("search", made[1]).status == 0


def test_a_name_that_no_column_has(qblock: Any, made: tuple[str, Path]) -> None:
    ran = propose(qblock, made, "--sensitive", "diagnoses")
    assert ran.status == 2
    assert "--sensitive: table people has no column 'diagnoses'; did you mean diagnosis" in ran.err
    assert not made[1].exists()


@pytest.mark.parametrize(
    ("typed", "sensitive"),
    [
        ("\n", ("diagnosis", "salary")),
        ("7\n4\n", ("salary",)),
        ("?\n3-4\n", ("diagnosis", "salary")),
        ("city, 4\n", ("city", "salary")),
        ("0\n", ()),
        (None, None),
    ],
)
def test_somebody_at_a_terminal_is_asked(
    made: tuple[str, Path], typed: str | None, sensitive: tuple[str, ...] | None
) -> None:
    terminal, theirs = pty.openpty()
    with open(terminal, "r+b", buffering=0) as keys:
        command = [sys.executable, "-c", MAIN, "init", made[0], "people", "--directory", str(made[1].parent)]
        command += ["--yes"] if typed is None else []
        with subprocess.Popen(command, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE) as running:
            os.close(theirs)
            keys.write((typed or "").encode())
            out = running.communicate(timeout=100)[0].decode()
        screen = ""
        with suppress(OSError):  # the other side is closed
            while more := keys.read(4096):
                screen += more.decode()
    assert running.returncode == 0, screen
    assert ("   3 * diagnosis" in screen) == (typed is not None)
    assert ("Write numbers from 1 to 4" in screen) == (typed is not None and typed.startswith("7"))
    assert "Which columns" not in out
    if sensitive is None:
        assert "???" in made[1].read_text("utf-8")
    else:
        assert load_spec(made[1]).sensitives == sensitive


def test_a_lattice_that_is_large_is_warned_of(qblock: Any, warehouse: Any, tmp_path: Path) -> None:
    many = {f"age{i}": [20 + (j * (i + 3)) % 50 for j in range(40)] for i in range(5)}
    url = warehouse("people", {**many, "patient_id": list(range(40))})
    ran = qblock("init", url, "people", "--directory", tmp_path / "made", "--sensitive", "none")
    assert "5 columns can be coarsened in 3,125 combinations: a search takes long. Remove age4" in " ".join(
        ran.out.split()
    )


@pytest.mark.parametrize("left", ["l: '???'", 'sensitive: "???"'])
def test_whatever_is_left_open_is_said(qblock: Any, made: tuple[str, Path], left: str) -> None:
    propose(qblock, made, "--sensitive", "diagnosis")
    text = made[1].read_text("utf-8")
    made[1].write_text(text.replace("l: 3, sensitive: diagnosis", left), "utf-8")
    refused = qblock("search", made[1])
    assert refused.status == 2
    key, what = ("l", "write what it should be") if left[0] == "l" else ("sensitive", "write the sensitive attribute")
    assert f"distinct_l_diversity.{key}: `???` stands for a decision that is yours; {what}" in refused.err


def test_the_columns_that_tell_people_apart_are_said(qblock: Any, warehouse: Any, tmp_path: Path) -> None:
    """Two rows of each person: those are counted, not rows."""
    people = [i // 2 for i in range(120)]
    columns = {
        "patient_id": people,
        "age": [20 + i % 12 for i in people],
        "zip": [f"130{i // 12:02}" for i in people],
        "ward": ["A" for _ in people],
    }
    ran = qblock("init", warehouse("people", columns), "people", "--directory", tmp_path / "made", "--json")
    assert ran.json["apart"] == [{"columns": ["age", "zip"], "share": 1.0}]
    reasons = {column["name"]: column["reason"] for column in ran.json["columns"]}
    assert reasons["age"].endswith("with zip unique for 100 % of the people")
    assert reasons["ward"] == "has one value"
    text = (tmp_path / "made" / "release.yaml").read_text("utf-8")
    assert "with age unique for 100 % of the people" in text
    shown = qblock("init", warehouse("people2", columns), "people2", "--directory", tmp_path / "other")
    assert "Unique people, by column: age + zip 100 %" in " ".join(shown.out.split())
