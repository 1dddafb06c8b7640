"""`qblock examples`: the files of the package in a folder of their own, what they are, and that they run."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cli.test_lazy import COMMAND, HEAVY, loaded
from qblock.cli.app import run
from qblock.demo.examples import MEANINGS, example_names

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_file_is_written_as_it_is(folder: Path) -> None:
    (folder / "empty").mkdir()
    for name in ("new", "empty", "above/new"):
        assert run(["examples", name]) == 0
        assert files(folder / name) == {str(path): (EXAMPLES / path).read_bytes() for path in example_names(EXAMPLES)}
        assert os.access(folder / name / "cron" / "qblock-release", os.X_OK)
        assert not stat.S_IMODE((folder / name / "README.md").stat().st_mode) & 0o111


def test_what_running_an_example_leaves_is_no_example(tmp_path: Path) -> None:
    for name in ("a/x.py", "a/__pycache__/x.pyc", "a/.ipynb_checkpoints/n.ipynb", ".DS_Store"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert example_names(tmp_path) == [Path("a/x.py")]


def test_each_example_has_its_meaning_here_and_in_the_readme() -> None:
    assert list(MEANINGS) == sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
    listed = re.findall(r"^- `(\w+)/`: ", (EXAMPLES / "README.md").read_text("utf-8"), re.M)
    assert sorted(listed) == list(MEANINGS)


def test_the_answer_comes_first_and_the_next_commands_last(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["examples", "new one"]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{len(MEANINGS)} examples are in new one. ")
    assert [line.split()[0] for line in lines[1:-3]] == list(MEANINGS)
    assert lines[-2:] == [
        "  python 'new one/papers/make.py' 'new one/papers'",
        "  qblock search 'new one/papers/inpatients.yaml'",
    ]


def test_the_next_commands_run(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["examples", "new one", "--json"]) == 0
    make, search = (shlex.split(line) for line in json.loads(capfd.readouterr().out)["next"])
    assert (make[0], search[0]) == ("python", "qblock")
    subprocess.run([sys.executable, *make[1:]], check=True)
    assert run(search[1:]) == 0
    assert capfd.readouterr().out.startswith("You can publish this: 12 rows in groups of at least 4 rows.")


def test_every_spec_that_an_example_writes_is_searched(folder: Path) -> None:
    assert run(["examples", "new"]) == 0
    subprocess.run([sys.executable, "new/papers/make.py", "papers"], check=True)
    specs = sorted(Path("papers").glob("*.yaml"))
    assert len(specs) >= 10
    # Some are there to be refused.
    assert {run(["search", str(spec), "--quiet"]) for spec in specs} <= {0, 3}


@pytest.mark.parametrize("given", ["full", "file", "."])
def test_a_folder_that_holds_something_is_left_as_it_is(
    given: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "full").mkdir()
    (folder / "full" / ".kept").write_text("mine")
    (folder / "file").write_text("mine")
    before = files(folder)
    assert run(["examples", given]) == 2
    assert files(folder) == before
    out, err = capsys.readouterr()
    assert out == ""
    if given == "file":
        assert err == "qblock: file is a file; name a new folder\n"
    else:
        remedy = err.strip().rpartition(": ")[2]
        assert run(shlex.split(remedy)[1:]) == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_a_fault_outside(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "closed").mkdir(mode=0o500)
    assert run(["examples", "closed/new"]) == 1
    assert "the examples cannot be written to closed/new: Permission denied" in capsys.readouterr().err


def test_a_place_below_a_file_is_a_fault_outside(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "file").write_text("mine")
    assert run(["examples", "file/new"]) == 1
    assert "the examples cannot be written to file/new: Not a directory" in capsys.readouterr().err


def test_nothing_heavy_is_loaded(folder: Path) -> None:
    assert not loaded(COMMAND.format(["examples", "new"]), folder) & set(HEAVY) - {"pydantic"}
