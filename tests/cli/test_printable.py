"""No name, value, path or option that somebody chose reaches a terminal, a log or a report as a control character."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import typer.main
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cli.test_examples import commands
from qblock.cli.app import application, run
from qblock.cli.output import console, table
from qblock.cli.streams import guarded
from qblock.errors import InputError
from qblock.printable import printable, printable_json

FORGED = "2026-01-01T00:00:00Z"
HOSTILE = f"\x1b]0;x\x07\n{FORGED}\r\u202e\x9b31m\u200b\U000e0041\u2028\x7f"
NAMES = {name: name + HOSTILE for name in ("id", "age", "sex", "ill", "people", "shown")}
QUASI = {"age": {"ranges": [10, 20, 40]}, "sex": "suppress"}
SPEC: dict[str, Any] = {
    "version": 1,
    "release": "r",
    "source": {"url": "duckdb:///w.duckdb", "table": NAMES["people"]},
    "entity": NAMES["id"],
    "attributes": {
        NAMES["id"]: "identifying",
        **{NAMES[name]: {"role": "quasi_identifier", "hierarchy": form} for name, form in QUASI.items()},
        NAMES["ill"]: "sensitive",
    },
    "privacy": [{"k_anonymity": {"k": 4}}, {"distinct_l_diversity": {"l": 2}}],
    "publish": {"url": "duckdb:///p.duckdb", "schema": "main", "view": NAMES["shown"]},
}
BAYES = ("--adversary", "bayes", "--prior", "table", "--rho1", "1/10", "--rho2", "1/2")
OF_TABLE = ("--url", "duckdb:///w.duckdb", "--table", f'"{NAMES["people"]}"', "-q", NAMES["age"], "-s", NAMES["ill"])
PERSON = f"p7{HOSTILE}"
QUERIES = ("--workload", f"w{HOSTILE}.yaml")
CALLS: dict[str, list[tuple[Any, ...]]] = {
    "demo": [("demo", "--rows", "1000")],
    "examples": [("examples", f"written{HOSTILE}")],
    "init": [
        ("init", "duckdb:///w.duckdb", NAMES["people"], "--directory", "first", "--sensitive", NAMES["ill"]),
        ("init", "duckdb:///w.duckdb", NAMES["people"], "--directory", "first", "--force", "--yes"),
        ("init", "duckdb:///w.duckdb", NAMES["people"], "--directory", "first", "--force", "--yes", "--open"),
    ],
    "schema": [("schema",)],
    "hierarchy build": [("hierarchy", "build", "s.yaml", "--directory", f"built{HOSTILE}")],
    "hierarchy check": [("hierarchy", "check", "s.yaml")],
    "hierarchy load": [("hierarchy", "load", "s.yaml")],
    "search": [
        ("search", "s.yaml", "--nodes", "all", "--churn", "0.01"),
        ("search", "s.yaml", "--explain-sql"),
        ("search", "new/map.yaml"),
    ],
    "check": [("check", "s.yaml")],
    "audit": [("audit", "s.yaml", "--all", *BAYES), ("audit", *OF_TABLE)],
    "compare": [("compare", "s.yaml"), ("compare", "s.yaml", "--recoding", "both"), ("compare", "s.yaml", *QUERIES)],
    "grants": [("grants", "s.yaml")],
    "plan": [("plan", "s.yaml", "--churn", "0.01"), ("plan", "new/map.yaml")],
    "release": [
        ("release", "s.yaml", "--force", "--log-format", "text", "--report", f"r{HOSTILE}.html"),
        ("release", "s.yaml", "--force", "--log-format", "json", "--result", f"r{HOSTILE}.json"),
        ("release", "s.yaml"),
    ],
    "schedule": [("schedule", "s.yaml"), ("schedule", "s.yaml", "--with", "systemd")],
    "verify": [("verify", "s.yaml")],
    "rollback": [("rollback", "s.yaml", "1", "--plan"), ("rollback", "s.yaml", "1", "--log-format", "text")],
    "report": [
        ("report", "s.yaml", "-o", f"r{HOSTILE}.html"),
        ("report", "s.yaml", "--format", "md"),
        ("report", "s.yaml", "--internal", "--format", "md"),
        ("report", "s.yaml", "--for", "hipaa", "--format", "md"),
    ],
    "history": [("history", "s.yaml")],
    "erase": [("erase", "s.yaml", PERSON), ("erase", "s.yaml", PERSON, "--now", "--plan")],
    "retire": [("retire", "s.yaml")],
    "ledger upgrade": [("ledger", "upgrade", "s.yaml")],
    "ledger rekey": [("ledger", "rekey", "s.yaml")],
    "ledger retype": [("ledger", "retype", "s.yaml")],
    "ledger move": [("ledger", "move", "moved.yaml", "--from", "r")],
}
"""What each command is asked, about a release that was published."""
WITHOUT_SPEC = ("demo", "examples", "schema", "init")
COMMANDS = [
    " ".join(name) for name, group in commands(typer.main.get_command(application())) if not hasattr(group, "commands")
]


def unseen(text: str) -> set[str]:
    """The characters of a text that nobody sees, but for the ends of lines."""
    return {c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}


def check(text: str) -> None:
    assert unseen(text) == set()
    assert [line for line in text.splitlines() if line.strip().startswith(FORGED)] == []


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    quoted = {name: f'"{hostile}"' for name, hostile in NAMES.items()}
    with duckdb.connect(str(folder / "w.duckdb")) as connection:
        connection.execute(
            f"CREATE TABLE {quoted['people']} AS SELECT 'p' || i || $1 AS {quoted['id']}, "
            f"20 + (i * 7) % 50 AS {quoted['age']}, (CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END) || $1 "
            f"AS {quoted['sex']}, ['flu', 'cold', 'asthma'][i % 3 + 1] || $1 AS {quoted['ill']} "
            "FROM range(1, 241) AS n(i)",
            [HOSTILE],
        )
    asked, columns = SPEC["privacy"], SPEC["attributes"]
    written = {
        "s": SPEC,
        "moved": {**SPEC, "release": "moved"},
        "new/map": {**SPEC, "search": {"recoding": "multidimensional"}},
        "new/refused": {**SPEC, "privacy": [{"k_anonymity": {"k": 241}}, *asked[1:]]},
        "new/wrong": {**SPEC, "privacy": [*asked, {f"no{HOSTILE}": {"k": 4}}]},
        "new/absent": {**SPEC, "attributes": {**columns, f"none{HOSTILE}": "insensitive"}},
        "new/uncovered": {
            **SPEC,
            "attributes": {**columns, NAMES["sex"]: {"role": "quasi_identifier", "hierarchy": {"file": "sex.csv"}}},
        },
    }
    queries = [{NAMES["age"]: {"from": 20}}, {NAMES["sex"]: [f"f{HOSTILE}"]}]
    (folder / QUERIES[1]).write_text(yaml.safe_dump(queries, allow_unicode=True), "utf-8")
    (folder / "new").mkdir()
    shutil.copy(folder / "w.duckdb", folder / "new")
    for name, spec in written.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(spec, allow_unicode=True, sort_keys=False), "utf-8")
    (folder / "new" / "sex.csv").write_text("value,all\nf,*\n", "utf-8")
    with contextlib.chdir(folder):
        assert run(["release", "s.yaml", "--quiet"]) == 0
    return folder


@pytest.fixture
def asked(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., tuple[int, str]]]:
    """`asked("plan", "s.yaml")`: exit status and all that was printed, which is checked."""
    folder = tmp_path / "work"
    shutil.copytree(template, folder)
    monkeypatch.chdir(folder)
    # Lines are not broken: what stands at the beginning of one was written there.
    monkeypatch.setenv("COLUMNS", "20000")

    def ran(*arguments: str) -> tuple[int, str]:
        capfd.readouterr()
        status = run(list(arguments))
        out, err = capfd.readouterr()
        check(out)
        check(err)
        return status, out + err

    yield ran
    for file in folder.rglob("*"):
        if file.suffix in (".html", ".json") or file.name == "first.yaml":
            check(file.read_text("utf-8"))


def test_every_command_is_asked() -> None:
    assert set(CALLS) == set(COMMANDS)


@pytest.mark.parametrize("name", CALLS)
def test_what_a_command_prints(name: str, asked: Callable[..., tuple[int, str]]) -> None:
    for arguments in CALLS[name]:
        status, printed = asked(*arguments)
        assert (status, printed if status else "") == (0, "")
        # Our own lines are lines; what is escaped is of the names, and no control character precedes our words.
        assert not re.search(r"(?m)^\\n", printed) or name == "schema"
        if name not in ("demo", "hierarchy build"):
            answered = asked(*arguments, "--json")[1] if not {"-o", "--format", "--explain-sql"} & {*arguments} else ""
            assert answered.isascii() or "{" not in answered


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {*WITHOUT_SPEC}))
def test_what_a_command_says_of_what_it_cannot_use(name: str, asked: Callable[..., tuple[int, str]]) -> None:
    more = {"rollback": ("1",), "erase": (PERSON,), "ledger move": ("--from", HOSTILE)}
    for spec in (f"missing{HOSTILE}.yaml", "new/wrong.yaml"):
        status, printed = asked(*name.split(), spec, *more.get(name, ()))
        assert status == 2
        assert "\\x1b]0;x\\x07\\n2026" in printed
    status, printed = asked(*name.split(), "s.yaml", f"--none{HOSTILE}")
    assert status == 2
    assert "\\x1b]0;x\\x07" in printed


@pytest.mark.parametrize("log", [(), ("--log-format", "text"), ("--log-format", "json")], ids=str)
@pytest.mark.parametrize(("spec", "status"), [("refused", 3), ("absent", 2), ("uncovered", 2)])
def test_what_a_run_says_of_the_data(
    spec: str, status: int, log: tuple[str, ...], asked: Callable[..., tuple[int, str]]
) -> None:
    given, printed = asked("release", f"new/{spec}.yaml", "--quiet", "--result", "result.json", *log)
    assert given == status
    assert "\\u202e" in printed or spec == "refused"
    assert json.loads(Path("result.json").read_text("utf-8"))["exit_status"] == status
    for command in (("search", "--quiet"), ("hierarchy", "check"), ("plan",)):
        *names, option = command if len(command) > 1 and command[1] == "--quiet" else (*command, "--json")
        asked(*names, f"new/{spec}.yaml", option)


@given(st.text(st.characters(), max_size=20))
def test_what_is_printable_is_seen(text: str) -> None:
    shown = printable(text)
    assert unseen(shown) | set(shown) & set("\n\t") == set()
    assert printable(shown) == shown
    # Characters that Unicode has set aside for more of them are escaped, too.
    assert shown == text or any(unicodedata.category(c)[0] in "CZ" for c in text)
    document = printable_json(json.dumps({text: [text]}, ensure_ascii=False, indent=2))
    assert unseen(document) == set()
    assert json.loads(document) == {text: [text]}


def test_every_character_that_nobody_sees_is_written_as_an_escape() -> None:
    for character in map(chr, range(sys.maxunicode + 1)):
        hidden = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        assert not hidden or printable(character) == character.encode("unicode_escape").decode()
    assert printable("müde, 人々, ‘ж’ 🙂") == "müde, 人々, ‘ж’ 🙂"


def test_a_message_has_the_lines_that_it_was_given() -> None:
    assert str(InputError("first", f"x{HOSTILE}")).splitlines()[0] == "first"
    assert str(InputError("a\nb")) == "a\\nb"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_our_styles_and_nothing_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = Terminal()
    monkeypatch.setattr(sys, "stdout", shown)
    with guarded():
        console().print(table(f"of {HOSTILE}", [f"head{HOSTILE}"], [[f"cell{HOSTILE}"]]))
        print(f"plain{HOSTILE}")
    text = shown.getvalue()
    assert "\x1b[1m" in text
    assert unseen(text.replace("\x1b[1m", "").replace("\x1b[0m", "")) == set()
    assert text.count("\\x1b]0;x\\x07") == 4
