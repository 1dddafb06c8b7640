"""The page of the first hour on Spark: its commands, its spec and its table as written, on a server of the tests."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from examples.test_pages import BLOCK, DOCS, MARKED, flat, same, steps

from qblock.cli.app import run

pytestmark = pytest.mark.spark


def test_the_first_hour(
    client: Any,
    hive: tuple[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    client.sql("DROP SCHEMA clinic CASCADE")
    monkeypatch.chdir(tmp_path)
    folder = hive[1] / "first-hour"
    page = (DOCS / "how-to/first-hour-on-spark.md").read_text("utf-8")
    page = page.replace("sc://localhost:15002", hive[0]).replace("/srv/qblock", str(folder))
    known: dict[str, Any] = {"__name__": "page"}
    commands = 0
    for _, _, language, text in BLOCK.findall(page):
        if language == "python":
            exec(compile(text, "page", "exec"), known)
            assert same(MARKED.findall(text), capfd.readouterr().out.splitlines())
        elif language == "yaml":
            Path(text.splitlines()[0].removeprefix("# file: ")).write_text(text, "utf-8")
        for line, said in steps(text, "#> ") if language == "sh" else ():
            name, _, value = line.removeprefix("export ").partition("=")
            if line.startswith("export "):
                monkeypatch.setenv(name, value)
                continue
            assert run(line.split()[1:]) == 0, line
            printed = flat(capfd.readouterr().out)
            assert not [one for one in said if flat(one) not in printed], (line, printed)
            commands += 1
    assert commands == 9
    assert "published.stays" in Path("report.html").read_text("utf-8")
    shutil.rmtree(folder)
