"""The code blocks of the documents, and what runs each of them: `python tests/project/code_blocks.py` counts them.

A block is run by the test that RUN names for its page and language; or it is a list of commands (indented by four), of
which names, options, targets and files are checked against the program; or the line above it says why it is not run:
`<!-- not run: REASON -->`.
"""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.main import get_command

from qblock.cli.app import application

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = (*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob("examples/**/*.md")))
CODE = ("sh", "console", "sql", "yaml", "python", "pycon", "csv", "json")
"""Languages; other blocks are pictures and what programs print."""
RUN = {
    ("README.md", "yaml"): "tests/project/test_readme.py",
    ("docs/your-table.md", "yaml"): "tests/project/test_readme.py",
    ("docs/cookbook.md", "sql"): "tests/examples/test_cookbook.py",
    ("docs/operations.md", "sql"): "tests/publish/test_grants.py",
    ("docs/papers.md", "sh"): "tests/examples/test_papers.py",
    ("docs/python.md", "pycon"): "tests/project/test_python_page.py",
    ("docs/docker-compose.md", "commands"): "tests/project/test_compose.py",
    ("docs/quickstart.md", "console"): "tests/project/test_first_hour.py",
    ("docs/how-to/first-hour.md", "console"): "tests/project/test_first_hour.py",
    ("docs/how-to/first-hour.md", "python"): "tests/project/test_first_hour.py",
    ("docs/how-to/first-hour-on-spark.md", "sh"): "tests/publish/test_spark_first_hour.py",
    ("docs/how-to/first-hour-on-spark.md", "python"): "tests/publish/test_spark_first_hour.py",
    ("docs/how-to/first-hour-on-spark.md", "yaml"): "tests/publish/test_spark_first_hour.py",
    ("docs/how-to/dbt.md", "sh"): "tests/examples/test_dbt.py",
    ("docs/how-to/dbt.md", "yaml"): "tests/examples/test_dbt.py",
    ("docs/how-to/add-a-command.md", "python"): "tests/project/test_how_to_command.py",
    ("docs/how-to/add-an-engine.md", "python"): "tests/project/test_how_to_engine.py",
    ("docs/how-to/add-a-report-page.md", "python"): "tests/project/test_how_to_page.py",
    ("docs/how-to/add-a-hierarchy-form.md", "python"): "tests/project/test_how_to.py",
    ("docs/how-to/add-a-metric.md", "python"): "tests/project/test_how_to.py",
    ("docs/how-to/add-a-model.md", "python"): "tests/project/test_how_to.py",
}
for path in (*DOCS.glob("tutorials/*.md"), *DOCS.glob("how-to/*.md")):
    if path.parent.name == "tutorials" or not path.name.startswith(
        ("add-", "choose-", "dbt", "first-", "report-", "schedulers")
    ):
        for language in CODE:
            RUN[path.relative_to(ROOT).as_posix(), language] = "tests/examples/test_pages.py"
FENCED = re.compile(r"(?m)^```(\w*)[^\n]*\n((?:.*\n)*?)^```$")
INDENTED = re.compile(r"(?m)(?:\A|\n\n)((?:    \S.*\n)+)")
PROGRAMS = ("qblock", "make", "python", "docker", "pip", "apt-get", ".venv/bin/python", ".venv/bin/pip", "$")
REASON = re.compile(r"<!-- not run: (.+?) -->\s*$", re.S)


@dataclass(frozen=True)
class Block:
    """page: its path in the project; line: of its first line; reason: why it is not run, if the page says so."""

    page: str
    line: int
    language: str
    text: str
    reason: str | None

    @property
    def how(self) -> str | None:
        """`run`, `checked` or `marked`; None where nothing vouches for it."""
        if (self.page, self.language) in RUN:
            return "run"
        if self.reason is not None:
            return "marked"
        return "checked" if self.language == "commands" and not list(wrong(self.text)) else None


def blocks() -> Iterator[Block]:
    for path in PAGES:
        text, page = path.read_text("utf-8"), path.relative_to(ROOT).as_posix()
        without = FENCED.sub(lambda found: "\n" * found[0].count("\n"), text)
        for pattern, body in ((FENCED, text), (INDENTED, without)):
            for found in pattern.finditer(body):
                language = found[1] if pattern is FENCED else "commands"
                code = found[2] if pattern is FENCED else found[1]
                if pattern is FENCED and language not in CODE:
                    continue
                if pattern is INDENTED and code.split()[0] not in PROGRAMS:
                    continue
                start = found.start(2 if pattern is FENCED else 1)
                above = REASON.search(text[: found.start()].rstrip() + "\n") if pattern is FENCED else None
                above = above or REASON.search(text[: found.start() + 2].rstrip() + "\n")
                yield Block(page, text[:start].count("\n") + 1, language, code, None if above is None else above[1])


def wrong(commands: str) -> Iterator[str]:
    """What a list of commands names that does not exist."""
    for line in commands.splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        # What stands far to the right of a command says what it does.
        words = shlex.split(re.split(r"\s{3,}", line.strip())[0], comments=True)
        match words:
            case ["qblock", *rest]:
                yield from _wrong_command(rest)
            case ["make", *targets]:
                there = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8")))
                yield from (target for target in targets if "=" not in target and target not in there)
            case ["python" | ".venv/bin/python", "-m", module, *_]:
                place = ROOT / module.replace(".", "/")
                if not (place.is_dir() or place.with_suffix(".py").is_file()):
                    yield module
            case ["python" | ".venv/bin/python", script, *_]:
                if not (ROOT / script).is_file():
                    yield script
            case ["pip" | ".venv/bin/pip", "install", *rest]:
                extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
                named = [
                    extra for word in rest for part in re.findall(r"\[([\w,]+)\]", word) for extra in part.split(",")
                ]
                yield from (extra for extra in named if extra not in extras)
            case _:
                yield words[0]


def _wrong_command(words: list[str]) -> Iterator[str]:
    group: Any = get_command(application())
    while hasattr(group, "commands"):
        if not words or words[0] not in group.commands:
            yield " ".join(words[:1]) or "qblock"
            return
        group, words = group.commands[words[0]], words[1:]
    known = {option for parameter in group.params for option in parameter.opts} | {"--help"}
    yield from (word for word in words if word.startswith("-") and word.split("=")[0] not in known)


def main() -> int:
    found = list(blocks())
    for page in dict.fromkeys(block.page for block in found):
        counts = Counter(block.how or "NOTHING RUNS IT" for block in found if block.page == page)
        print(f"{page}: " + ", ".join(f"{n} {how}" for how, n in sorted(counts.items())))
    total = Counter(block.how for block in found)
    print(f"{len(found)} code blocks: {total['run']} run, {total['checked']} checked, {total['marked']} marked")
    return 1 if total[None] else 0


if __name__ == "__main__":
    sys.exit(main())
