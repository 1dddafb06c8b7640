"""What commands print, from files: NAME.txt has the commands of a scenario and their answers, which are compared.

A line that begins with `$ ` is a command, the lines with `> ` below it are its standard input, and what follows is its
answer: standard output, standard error behind `! `, and the exit status. Commands are

    qblock ...                in this process, 80 columns wide; standard input is no terminal
    locked qblock ...         the same while another run holds the release of release.yaml
    sql                       statements on the source's database, from standard input
    load FILE TABLE           makes a table of a CSV file; COLUMN=TYPE for those that are not text
    cat > FILE, cat FILE      sed -i s/PATTERN/TEXT/ FILE
    shared FILE               copies a file of ../shared; where that is absent the scenario is skipped

$URL is the source's database; a scenario without it runs once. NAME.txt has the answers on DuckDB, NAME.postgresql.txt
those of PostgreSQL that are others; one whose first line ends in "(PostgreSQL)" runs there alone.
QBLOCK_TRANSCRIPTS=update writes both, in one process. Scenarios in more/ are run by `make test-more`.
"""

from __future__ import annotations

import csv
import difflib
import json
import os
import re
import secrets
import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa
from engines import Absent, create_table, sql_engine

from qblock import __version__
from qblock.cli import output
from qblock.cli.app import run
from qblock.ledger.stores import store_of
from qblock.spec import load_spec

pytestmark = pytest.mark.handed_on

FOLDER = Path(__file__).parent
SHARED = FOLDER.parents[2] / "shared"
AS_ON_DUCKDB = "(as on DuckDB)"
STABLE = ("Content ", 'content_digest": "', 'hierarchy_digest": "')
MASKS = (
    (r"\b20\d\d-\d\d-\d\d([T ])\d\d:\d\d:\d\d(\.\d{6})?", r"YYYY-MM-DD\1HH:MM:SS"),
    (r"\b20(2[5-9]|[3-9]\d)-\d\d-\d\d( \d\d:\d\d)?\b", "YYYY-MM-DD"),
    (r"\b\d+(\.\d+)? s\b", "N s"),
    (r'(?<=seconds": )[\d.e-]+', "N"),
    (r"^(seconds +)[\d.]+ +[\d.]+$", r"\1N"),
    (r"\b\d+:\d\d:\d\d ago", "H:MM:SS ago"),
    (r'(?<=queries": )\d+|(?<=statements": )\d+|\b\d+(?= statements)|(?<=^statements)[ \d]+$', "N"),
    ("".join(f"(?<!{text})" for text in STABLE) + r"\b([0-9a-f]{64}|[0-9a-f]{32}|[0-9a-f]{16})\b", "HEX"),
    (r"(?<=process )\d+", "N"),
    (r"qblock\\?_test\\?_[0-9a-f]{12}", "warehouse"),
    (rf"(?<=qblock ){re.escape(__version__)}|(?<=_version\": \"){re.escape(__version__)}", "VERSION"),
)
"""What differs from run to run: times, durations, ages, the numbers of statements (tests/transcripts/test_statements.py
has them), digests with a time or a key in them, processes, the version of the program. Beside these the paths of the
working folder and of the database, floats of JSON beyond nine digits, and blanks at the end of a line."""


class Command(NamedTuple):
    """A command, its standard input, and its answer."""

    line: str
    given: str
    answer: str


def parse(text: str) -> tuple[str, list[Command]]:
    """What stands above the first command, and the commands."""
    head, *parts = re.split(r"^\$ ", text, flags=re.M)
    commands = []
    for part in parts:
        line, *lines = part.splitlines()
        n = next((i for i, each in enumerate(lines) if not each.startswith(">")), len(lines))
        given = "".join(f"{each[2:]}\n" for each in lines[:n])
        commands.append(Command(line, given, "\n".join(lines[n:]).strip("\n")))
    return head, commands


def written(head: str, commands: Sequence[Command]) -> str:
    """The text of the file."""
    given = ["".join(f"> {line}".rstrip() + "\n" for line in command.given.splitlines()) for command in commands]
    parts = (f"$ {c.line}\n{lines}{c.answer}".rstrip("\n") for c, lines in zip(commands, given, strict=True))
    return head + "\n\n".join(parts) + "\n"


class Shell:
    """Runs commands in the working folder."""

    def __init__(self, url: str, capture: pytest.CaptureFixture[str]) -> None:
        self.url, self.capture = url, capture

    def answer(self, command: Command) -> str:
        self.capture.readouterr()
        name, *words = shlex.split(os.path.expandvars(command.line))
        status = getattr(self, f"do_{name}")(command.given, *words)
        out, err = self.capture.readouterr()
        if "--json" in words and out:
            out = pretty(json.loads(out, parse_float=lambda text: float(f"{float(text):.9g}")))
        lines = [*out.splitlines(), *(f"! {line}" for line in err.splitlines())]
        lines += [] if status is None else [f"exit status {status}"]
        return self.masked("\n".join(line.rstrip() for line in lines)).strip("\n")

    def masked(self, text: str) -> str:
        """Without what differs from run to run."""
        url = sa.make_url(self.url)
        places = {str(Path.cwd()): "/tmp/transcript", self.url: "$URL"}
        if url.get_backend_name() != "duckdb":
            places[str(url.query.get("host", url.host))] = "HOST"
        for place, name in places.items():
            text = text.replace(place, name)
        for pattern, name in MASKS:
            text = re.sub(pattern, name, text, flags=re.M)
        return text

    def do_qblock(self, given: str, *words: str) -> int:
        return run(list(words))

    def do_locked(self, given: str, *words: str) -> int:
        spec = load_spec(Path("release.yaml"))
        with store_of(spec).lock(spec.release):
            return run(list(words[1:]))

    def do_sql(self, given: str) -> None:
        engine = sql_engine(self.url)
        with closing(engine.raw_connection()) as connection:
            for statement in filter(str.strip, given.split(";\n")):
                connection.cursor().execute(statement)
            connection.commit()
        engine.dispose()

    def do_load(self, given: str, file: str, table: str, *types: str) -> None:
        head, *rows = csv.reader(Path(file).read_text("utf-8").splitlines())
        columns = dict(zip(head, zip(*rows, strict=True), strict=True))
        create_table(self.url, table, columns, dict(each.split("=") for each in types))

    def do_cat(self, given: str, *words: str) -> None:
        if words[0] != ">":
            print(Path(words[0]).read_text("utf-8"))
            return
        if not self.url.startswith("duckdb:"):  # which alone needs a file to publish to
            given = given.replace('url: "duckdb:///release.duckdb", ', "")
        Path(words[1]).write_text(given, "utf-8")

    def do_sed(self, given: str, *words: str) -> None:
        _, command, file = words
        _, pattern, text, _ = command.split(command[1])
        before = Path(file).read_text("utf-8")
        Path(file).write_text(re.sub(pattern, text, before, flags=re.M), "utf-8")

    def do_shared(self, given: str, file: str) -> None:
        if not (SHARED / file).exists():
            raise Absent(f"{file} is absent beside the checkout (../shared)")
        shutil.copy(SHARED / file, Path(file).name)


def pretty(value: Any, indent: str = "") -> str:
    """JSON in which what fits on a line is on one."""
    line, inner = json.dumps(value, ensure_ascii=False), indent + "  "
    if len(indent + line) <= 100 or not isinstance(value, dict | list):
        return line
    if isinstance(value, dict):
        items = [f"{inner}{json.dumps(key)}: {pretty(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    return "[\n" + ",\n".join(f"{inner}{pretty(item, inner)}" for item in value) + f"\n{indent}]"


@pytest.fixture
def shell(
    engine_name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Shell]:
    """In a folder whose path is as long on every machine, since what is printed is wrapped."""
    folder = Path("/tmp", f"qb{secrets.token_hex(4)}")  # no _, which a report in Markdown would escape
    folder.mkdir(mode=0o700)
    try:
        monkeypatch.chdir(folder)
        duckdb = engine_name == "duckdb"
        url = "duckdb:///warehouse.duckdb" if duckdb else request.getfixturevalue("postgresql_url")
        monkeypatch.setenv("URL", url)
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setattr(output, "EVERY_SECONDS", float("inf"))
        yield Shell(url, capfd)
    finally:
        shutil.rmtree(folder)


def check(name: str, engine: str, shell: Shell) -> None:
    """Compare the answers of a scenario's commands, or write them."""
    file, own = FOLDER / f"{name}.txt", FOLDER / f"{name}.{engine}.txt"
    first = engine == engines(file)[0]
    head, commands = parse(file.read_text("utf-8"))
    ran = [command._replace(answer=shell.answer(command)) for command in commands]
    others = [c.answer for c in parse(own.read_text("utf-8"))[1]] if own.exists() else []
    others += [AS_ON_DUCKDB] * (len(commands) - len(others))
    if os.environ.get("QBLOCK_TRANSCRIPTS") == "update":
        if first:
            file.write_text(written(head, ran), "utf-8")
            return
        now = [AS_ON_DUCKDB if c.answer == d.answer else c.answer for c, d in zip(ran, commands, strict=True)]
        own.unlink(missing_ok=True)
        if set(now) - {AS_ON_DUCKDB}:
            own.write_text(written("", [Command(c.line, "", a) for c, a in zip(ran, now, strict=True)]), "utf-8")
        return
    known = [c if a == AS_ON_DUCKDB else c._replace(answer=a) for c, a in zip(commands, others, strict=True)]
    texts = (written(head, answers).splitlines() for answers in (known, ran))
    difference = "\n".join(difflib.unified_diff(*texts, f"{name}.txt", "now", lineterm=""))
    if difference:
        update = f"QBLOCK_TRANSCRIPTS=update .venv/bin/python -m pytest tests/transcripts -k '{name}'"
        pytest.fail(f"{difference}\n\nIf this is as it should be:\n{update}", pytrace=False)


def engines(file: Path) -> list[str]:
    """The engines that a scenario runs on; the first has the answers of the file."""
    text = file.read_text("utf-8")
    if text.splitlines()[0].endswith("(PostgreSQL)"):
        return ["postgresql"]
    return ["duckdb", "postgresql"] if re.search(r"\$\{?URL\b", text) else ["duckdb"]


def cases(folder: Path) -> pytest.MarkDecorator:
    files = [file for file in sorted(folder.glob("*.txt")) if file.suffixes == [".txt"]]
    runs = [(str(file.relative_to(FOLDER))[:-4], engine) for file in files for engine in engines(file)]
    return pytest.mark.parametrize(("name", "engine_name"), runs, indirect=["engine_name"])


@cases(FOLDER)
def test_transcript(name: str, engine_name: str, shell: Shell) -> None:
    check(name, engine_name, shell)


@cases(FOLDER / "more")
def test_long_transcript(name: str, engine_name: str, shell: Shell) -> None:
    check(name, engine_name, shell)
