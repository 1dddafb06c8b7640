"""The private temporary folders of DuckDB: what a killed process left in one is removed, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qblock.engines import memory
from qblock.engines.duckdb.adapter import DuckdbWarehouse
from qblock.engines.memory import PREFIX, SpillFolder

HOLDS = """
import sys, tempfile
from pathlib import Path
from qblock.engines.duckdb.adapter import DuckdbWarehouse
warehouse = DuckdbWarehouse(None)
with warehouse.snapshot():
    (found,) = Path(tempfile.gettempdir()).iterdir()
    (found / "rows").write_text("spilled")
    print(found, flush=True)
    sys.stdin.read()
warehouse.close()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(memory.tempfile, "tempdir", None)
    return folder


@pytest.fixture
def other(temporary: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process in the middle of a run, and its folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield process, Path(process.stdout.readline().strip())
    process.kill()
    process.communicate()


def run() -> None:
    warehouse = DuckdbWarehouse(None)
    with warehouse.snapshot():
        pass
    warehouse.close()


def test_what_a_killed_process_left_is_removed_by_the_next_run(other) -> None:
    process, folder = other
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (folder / "rows").exists()
    run()
    assert not folder.exists()


def test_what_a_living_process_holds_is_kept(other) -> None:
    process, folder = other
    run()
    assert (folder / "rows").exists()
    process.communicate("")
    assert not folder.exists()


def test_one_process_keeps_its_own_folders(temporary: Path) -> None:
    first, second = SpillFolder(), SpillFolder()
    assert first.path.is_dir()
    assert first.path.stat().st_mode & 0o777 == 0o700
    first.remove()
    first.remove()
    assert list(temporary.iterdir()) == [second.path]
    second.remove()
    assert not list(temporary.iterdir())


def test_links_files_and_other_names_are_not_touched(temporary: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("")
    (temporary / f"{PREFIX}link").symlink_to(elsewhere)
    (temporary / f"{PREFIX}file").write_text("")
    (temporary / "qblock-other").mkdir()
    os.mkfifo(temporary / f"{PREFIX}pipe")
    before = sorted(temporary.iterdir())
    run()
    assert sorted(temporary.iterdir()) == before
    assert (elsewhere / "kept").exists()


def test_a_folder_of_another_owner_is_not_touched(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = temporary / f"{PREFIX}theirs"
    theirs.mkdir()
    us = os.geteuid()
    monkeypatch.setattr(memory.os, "geteuid", lambda: us + 1)
    memory.sweep(temporary)
    assert theirs.exists()
    monkeypatch.undo()
    memory.sweep(temporary)
    assert not theirs.exists()


def test_a_link_that_takes_the_place_of_a_folder_is_not_followed(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("")
    link = temporary / f"{PREFIX}link"
    link.symlink_to(elsewhere)
    monkeypatch.setattr(memory, "_may_be_ours", lambda _: True)  # it was a folder when it was looked at
    memory.sweep(temporary)
    assert link.is_symlink()
    assert (elsewhere / "kept").exists()


def test_a_folder_that_is_swept_before_it_is_locked_is_made_again(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, lock, made = memory.tempfile.mkdtemp, memory.fcntl.flock, []

    def swept(**options: str) -> str:
        made.append(Path(make(**options)))
        return str(made[-1])

    def removed(descriptor: int, operation: int) -> None:
        if len(made) == 1:
            made[0].rmdir()
        lock(descriptor, operation)

    monkeypatch.setattr(memory.tempfile, "mkdtemp", swept)
    monkeypatch.setattr(memory.fcntl, "flock", removed)
    folder = SpillFolder()
    assert [folder.path] == made[1:]
    assert folder.path.is_dir()
    folder.remove()


def test_a_file_system_without_locks_is_no_fault_and_is_not_swept(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    left = temporary / f"{PREFIX}left"
    left.mkdir()
    monkeypatch.setattr(memory.fcntl, "flock", none)
    folder = SpillFolder()
    assert sorted(temporary.iterdir()) == sorted([left, folder.path])
    folder.remove()
