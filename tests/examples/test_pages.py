"""Every code block of the tutorials and of the pages that answer a question, run one after the other in a new folder.

A block of `yaml` whose first line is `# file: NAME`, and one of `csv` below `<!-- file: NAME -->`, is written; a line
of `sh` is a command of qblock, and `#> ` below it is what it prints, among other things (`#> exit 3`: its status);
`python` is executed, all blocks of a page in one namespace, and `# > ` are the lines that it prints, all of them (one
that ends in `...` is how a line begins); `sql` runs in the DuckDB file of `<!-- duckdb: FILE -->` above it, and `--> `
below a query are the rows of its answer, all of them.
"""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pytest

from qblock.cli.app import run

DOCS = Path(__file__).resolve().parents[2] / "docs"
ANSWERED = ("second-run-refused", "several-rows-per-person", "dirty-postcodes", "epsilon-parameters")
ANSWERED += ("hierarchies-from-other-tools", "duckdb-versions", "survey-weights", "wide-tables")
ANSWERED += ("what-a-label-reveals", "notebooks")
PAGES = [*sorted((DOCS / "tutorials").glob("*.md")), *(DOCS / "how-to" / f"{name}.md" for name in ANSWERED)]
MARKED = re.compile(r"(?m)^(?:# ?|--)> ?(.*)$")
BLOCK = re.compile(r"(?m)(?:^<!-- (file|duckdb): (\S+) -->\n)?^```(\w+)\n((?:.*\n)*?)^```$")


def flat(text: str) -> str:
    return " ".join(text.split())


def steps(text: str, mark: str) -> list[tuple[str, list[str]]]:
    """Each line with what is said of it below."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith(mark):
            found[-1][1].append(line.removeprefix(mark))
        elif line.strip():
            found.append((line, []))
    return found


def same(said: list[str], printed: list[str]) -> bool:
    """Whether these are the printed lines, but for blanks; one that ends in `...` is how its line begins."""
    pairs = list(zip(map(flat, said), map(flat, printed), strict=False))
    return len(said) == len(printed) and all(
        line.startswith(one.removesuffix("...")) if one.endswith("...") else line == one for one, line in pairs
    )


def answers(text: str, connection: duckdb.DuckDBPyConnection) -> None:
    said: list[str] = []
    query = ""
    for line in [*text.splitlines(), ";"]:
        if query.rstrip().endswith(";") and not line.startswith("--> "):
            found = [" | ".join(map(str, row)) for row in connection.execute(query).fetchall()]
            assert same(said, found), (query, found)
            query, said = "", []
        if line.startswith("--> "):
            said.append(line.removeprefix("--> "))
        else:
            query += line + "\n"
    assert query == ";\n", query


@dataclass
class Demos:
    """What a `qblock demo people ...` has printed, by its line; below `folder` what it made, by its line, too."""

    folder: Path
    printed: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Demos:
    return Demos(tmp_path_factory.mktemp("demos"))


def made(line: str, demos: Demos, capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The status of a command, and what it prints. The same demo is made once."""
    program, *arguments = shlex.split(line)
    assert program == "qblock"
    if line in demos.printed:
        shutil.copytree(demos.folder / line, "people")
        return 0, demos.printed[line]
    capfd.readouterr()
    status = run(arguments)
    printed = "".join(capfd.readouterr())
    if arguments[:2] == ["demo", "people"] and status == 0:
        shutil.copytree("people", demos.folder / line)
        demos.printed[line] = printed
    return status, printed


def commands(text: str, demos: Demos, capfd: pytest.CaptureFixture[str]) -> None:
    for line, said in steps(text, "#> "):
        status, printed = made(line, demos, capfd)
        expected = next((int(one.removeprefix("exit ")) for one in said if one.startswith("exit ")), 0)
        assert status == expected, (line, printed)
        for one in said:
            assert one.startswith("exit ") or flat(one) in flat(printed), (line, one, printed)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page(
    page: Path,
    demos: Demos,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    known: dict[str, Any] = {"__name__": "page"}
    done = 0
    for what, name, language, text in BLOCK.findall(page.read_text("utf-8")):
        if language == "sh":
            commands(text, demos, capfd)
        elif language in ("yaml", "csv"):
            file = name if what == "file" else text.splitlines()[0].removeprefix("# file: ")
            Path(file).write_text(text, "utf-8")
        elif language == "python":
            exec(compile(text, page.name, "exec"), known)
            printed = capfd.readouterr().out.splitlines()
            assert same(MARKED.findall(text), printed), printed
        else:
            assert (language, what) == ("sql", "duckdb")
            with duckdb.connect(name, read_only=True) as connection:
                answers(text, connection)
        done += 1
    assert done >= 3
