"""A pipe, a socket, a device or a folder where a file belongs: said before it is opened, which could wait for ever.

Commands run as processes that are ended after a time, so that a test fails where one of them waits.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from engines import create_table
from faults.nursery import Nursery
from release.jobs import ATTRIBUTES, PEOPLE, Job, new_job

from qblock import files
from qblock.engines.duckdb.dialect import check_database, logs_of
from qblock.errors import InputError, QblockError
from qblock.files import check_file, problem_of, read_input

SECONDS = 60
"""Longer than any command takes."""


def pipe(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def a_socket(path: Path) -> None:
    # Its name may have 107 bytes, which the path of a test has not: bound from within its folder.
    before = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


def link_to(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def linked(path: Path) -> None:
        behind = path.with_name(f"{path.name}.behind")
        make(behind)
        path.symlink_to(behind)

    return linked


KINDS: dict[str, Callable[[Path], None]] = {
    "is a pipe (FIFO)": pipe,
    "is a folder": folder,
    "is a socket": a_socket,
    "is a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "is a link to a pipe (FIFO)": link_to(pipe),
    "is a link to a folder": link_to(folder),
    "is a link to a socket": link_to(a_socket),
    "is a link to a file that does not exist": lambda path: path.symlink_to(path.with_name("absent")),
    "cannot be examined (Too many levels of symbolic links)": lambda path: path.symlink_to(path),
}


@pytest.fixture
def unopened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where anything is opened."""

    def opened(path: object, *_: object, **__: object) -> int:
        raise AssertionError(f"{path} was opened")

    monkeypatch.setattr(files.os, "open", opened)


@pytest.mark.parametrize("says", KINDS)
@pytest.mark.usefixtures("unopened")
def test_what_is_no_file_is_never_opened(says: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    KINDS[says](path)
    assert problem_of(path) == says
    with pytest.raises(InputError) as caught:
        read_input(path, "the hierarchy file")
    assert str(caught.value).startswith(f"{path}: the hierarchy file cannot be read: it {says}; ")
    for error in (InputError, QblockError):
        with pytest.raises(error) as refused:
            check_file(path, "name another", error, "spec.yaml:3")
        assert type(refused.value) is error
        assert str(refused.value) == f"spec.yaml:3: {path} {says}; name another"
    for log in logs_of(tmp_path / "database"):
        KINDS[says](log)
        with pytest.raises(QblockError, match="log of the database"):
            check_database(tmp_path / "database", "name another")
        _remove(log)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


def test_a_file_and_nothing_are_well(tmp_path: Path) -> None:
    path = tmp_path / "file"
    check_database(path, "name another")
    path.write_text("\ufeffa\r\n", "utf-8")
    (tmp_path / "link").symlink_to(path)
    assert problem_of(path) is problem_of(tmp_path / "link") is None
    assert read_input(tmp_path / "link") == "a\n"
    assert read_input(path, newline="") == "a\r\n"


def test_a_file_that_this_login_may_not_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("a", "utf-8")
    path.chmod(0o200)
    root = os.geteuid() == 0
    below = [*reversed(path.parents)] if root else []
    modes = {parent: parent.stat().st_mode for parent in below if parent.stat().st_uid == 0 and parent != Path("/")}
    for parent, mode in modes.items():
        parent.chmod(mode | 0o011)  # another login must get as far as to the file
    if root:
        os.seteuid(65534)
    try:
        assert problem_of(path) == "cannot be read by this user"
        with pytest.raises(InputError, match="it cannot be read by this user; name a file that this user may read"):
            read_input(path)
    finally:
        if root:
            os.seteuid(0)
        for parent, mode in modes.items():
            parent.chmod(mode)


def test_what_takes_the_place_of_a_file_meanwhile_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe(tmp_path / "file")
    monkeypatch.setattr(files, "problem_of", lambda path: None)
    with pytest.raises(InputError, match="not a regular file any more"):
        read_input(tmp_path / "file")


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as found:
        yield found


def limited(nursery: Nursery, folder: Path, *arguments: object) -> tuple[int, str]:
    """Exit status and output of a command, -9 where it did not end."""
    output = folder / "output.txt"
    pid = nursery.start([str(argument) for argument in arguments], output)
    limit = threading.Timer(SECONDS, os.kill, (pid, signal.SIGKILL))
    limit.start()
    try:
        status = nursery.wait(pid)
    finally:
        limit.cancel()
    return status, output.read_text("utf-8")


@pytest.fixture(scope="module")
def released(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A job on DuckDB with a crosswalk that has published version 1; each test puts back what it takes away."""
    folder = tmp_path_factory.mktemp("released")
    url = f"duckdb:///{folder}/warehouse.duckdb"
    create_table(url, "people", PEOPLE)
    job = new_job("duckdb", folder, url, entity="name", versions={"cohort": 6})
    status, said = limited(nursery, folder, "release", job.write())
    assert status == 0, said
    return job


def attributes(name: str, **more: object) -> dict[str, object]:
    given = ATTRIBUTES[name]
    return {**ATTRIBUTES, name: {**(given if isinstance(given, dict) else {"role": given}), **more}}


KEPT = "qblock keeps private state in a file there"
PLACES: dict[str, tuple[str, str, int, str]] = {
    # what stands there: path, command, exit status, message after what it is
    "spec": ("pipe.yaml", "search", 2, "cannot be read: it {}; (write it to a file|name a file)"),
    "hierarchy": (
        "pipe.csv",
        "search",
        2,
        "the hierarchy file cannot be read: it {}; (write it to a file|name a file)",
    ),
    "taxonomy": ("pipe.csv", "search", 2, "the hierarchy file cannot be read: it {}; (write it to a file|name a file)"),
    "people": ("pipe.txt", "erase", 2, "the file of people cannot be read: it {}; (write it to a file|name a file)"),
    "definitions": ("pipe.yaml", "compare", 2, "cannot be read: it {}; (write it to a file|name a file)"),
    "another spec beside": ("other.yaml", "plan", 0, "Publish"),
    "source": ("warehouse.duckdb", "search", 2, "warehouse.duckdb {}; name a DuckDB file"),
    "log of the source": ("warehouse.duckdb.wal", "search", 2, "{}; DuckDB keeps the log of the database there"),
    "target": ("release.duckdb", "release", 2, r"spec.yaml:\d+: .*release.duckdb {}; name another file"),
    "log of the target": ("release.duckdb.wal", "release", 2, "{}; DuckDB keeps the log of the database there"),
    "target that is verified": ("release.duckdb", "verify", 3, "release.duckdb {}; name a DuckDB file"),
    "ledger": ("qblock/ledger.sqlite", "history", 1, "{}; " + KEPT),
    "ledger of a run": ("qblock/ledger.sqlite", "release", 1, "{}; " + KEPT),
    "crosswalk": ("qblock/crosswalk.duckdb", "release", 1, "{}; " + KEPT),
    "log of the crosswalk": ("qblock/crosswalk.duckdb.wal", "release", 1, "{}; DuckDB keeps the log"),
    "private copy": ("qblock/versions/people/v1.duckdb", "release", 1, "{}; a DuckDB file belongs there"),
    "lock": ("qblock/people.lock", "release", 1, "{}; qblock keeps a lock there"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_pipe_or_a_folder_in_the_place_of_a_file(place: str, released: Job, nursery: Nursery, tmp_path: Path) -> None:
    name, command, expected, message = PLACES[place]
    path, changed = released.folder / name, {}
    if place == "hierarchy":
        changed = {"attributes": attributes("zip", hierarchy={"file": name})}
    elif place == "taxonomy":
        changed = {"attributes": attributes("disease", taxonomy={"file": name})}
    elif place == "another spec beside":
        changed = {"versions": {"audience": ["others"]}}
    spec = replace(released, settings={**released.settings, **changed}).write()
    more = {"people": ["--file", path], "definitions": ["--definitions", path]}.get(place, [])
    kept = tmp_path / "kept"
    if path.exists():
        path.rename(kept)
    try:
        for says in ("is a pipe (FIFO)", "is a folder"):
            KINDS[says](path)
            status, said = limited(nursery, tmp_path, command, path if place == "spec" else spec, *more)
            _remove(path)
            assert status == expected, (status, said)
            assert re.search(message.format(re.escape(says)), said), said
    finally:
        _remove(path)
        if kept.exists():
            kept.rename(path)


@pytest.mark.parametrize("name", ["/dev/stdin", "/dev/fd/0"])
def test_a_spec_from_the_shell_is_to_be_written_to_a_file(name: str, nursery: Nursery, tmp_path: Path) -> None:
    status, said = limited(nursery, tmp_path, "search", name)
    assert (status, said) == (
        2,
        f"qblock: {name}: cannot be read: it is what the shell passes on, not a file; write it to a file, and name "
        "that one\n",
    )
