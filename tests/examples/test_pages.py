"""Every code block of the tutorials and of the pages that answer a question, run one after the other in a new folder.

A block of `yaml` whose first line is `# file: NAME`, and one of `csv` below `<!-- file: NAME -->`, is written; a line
of `sh` is a command of qblock, and `#> ` below it is what it prints, among other things (`#> exit 3`: its status);
`python` is executed, all blocks of a page in one namespace; `sql` runs in the DuckDB file of `<!-- duckdb: FILE -->`
above it, and `--> ` is in its answer.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import duckdb
import pytest

from qblock.cli.app import run

DOCS = Path(__file__).resolve().parents[2] / "docs"
ANSWERED = ("second-run-refused", "several-rows-per-person", "dirty-postcodes", "epsilon-parameters")
ANSWERED += ("hierarchies-from-other-tools",)
PAGES = [*sorted((DOCS / "tutorials").glob("*.md")), *(DOCS / "how-to" / f"{name}.md" for name in ANSWERED)]
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


def commands(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    for line, said in steps(text, "#> "):
        program, *arguments = shlex.split(line)
        assert program == "qblock"
        capfd.readouterr()
        status = run(arguments)
        out, err = capfd.readouterr()
        expected = next((int(one.removeprefix("exit ")) for one in said if one.startswith("exit ")), 0)
        assert status == expected, (line, out, err)
        for one in said:
            assert one.startswith("exit ") or flat(one) in flat(out + err), (line, one, out, err)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    known: dict[str, Any] = {"__name__": "page"}
    done = 0
    for what, name, language, text in BLOCK.findall(page.read_text("utf-8")):
        if language == "sh":
            commands(text, capfd)
        elif language in ("yaml", "csv"):
            file = name if what == "file" else text.splitlines()[0].removeprefix("# file: ")
            Path(file).write_text(text, "utf-8")
        elif language == "python":
            exec(compile(text, page.name, "exec"), known)
            printed = flat(capfd.readouterr().out)
            assert all(flat(one) in printed for one in re.findall(r"(?m)^#> (.*)$", text)), printed
        else:
            assert (language, what) == ("sql", "duckdb")
            with duckdb.connect(name, read_only=True) as connection:
                for query in filter(str.strip, re.split(r";\n", re.sub(r"(?m)^--> .*$", "", text) + "\n")):
                    print(connection.execute(query).fetchall())
            printed = flat(capfd.readouterr().out)
            assert all(flat(one) in printed for one in re.findall(r"(?m)^--> (.*)$", text)), printed
        done += 1
    assert done >= 3
