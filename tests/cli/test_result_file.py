"""--result FILE: what it must not replace, what it replaces, and what is no file."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from release.jobs import ATTRIBUTES, Job

from qblock.cli.app import run
from qblock.cli.job import ResultFile
from qblock.errors import InputError
from qblock.ledger.history import history
from qblock.results.release import Failed

HIERARCHY = "age,top\n" + "".join(f"{age},*\n" for age in range(100))
FILES = {
    "the spec": "spec.yaml",
    "the hierarchy of age": "age.csv",
    "the source": "warehouse.duckdb",
    "the release file": "release.duckdb",
    "what DuckDB writes for the release file": "release.duckdb.wal",
    "in the private folder of qblock": "qblock/ledger.sqlite",
}
RESULT = json.dumps({"status": "refused", "release": "people", "exit_status": 3, "reason": ""})


@pytest.fixture
def own(job: Job) -> Job:
    """The job with a hierarchy file."""
    (job.folder / "age.csv").write_text(HIERARCHY, "utf-8")
    job.set(attributes=ATTRIBUTES | {"age": {"role": "quasi_identifier", "hierarchy": {"file": "age.csv"}}})
    return job


def release(job: Job, *options: object, force: bool = False) -> int:
    forced = ["--force"] if force else []
    return run(["release", str(job.spec.path), "--quiet", *forced, *map(str, options)])


def alike(path: Path, folder: Path, way: str) -> Path:
    """Another name of a file."""
    if way == "dots":
        return path.parent / ".." / path.parent.name / path.name
    link = folder / f"{way}.json"
    if way == "symlink":
        link.symlink_to(path)
    elif way == "hard link":
        link.hardlink_to(path)
    else:
        return path
    return link


def test_a_file_that_the_release_lives_on_is_never_its_result(
    own: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert release(own) == 0
    events = len(history(own.spec)["events"])
    for what, name in FILES.items():
        path = own.folder / name
        if own.engine == "postgresql" and path.suffix not in (".yaml", ".csv"):
            continue
        before = path.read_bytes() if path.exists() else None
        for way in ("itself", "dots", "symlink", "hard link") if before is not None else ("itself",):
            other = alike(path, tmp_path, way)
            said = f"qblock: --result {other}: is {what}, which would be lost; give another name\n"
            for force in (False, True):
                capsys.readouterr()
                assert release(own, "--result", other, force=force) == 2
                assert capsys.readouterr().err == said
            assert (path.read_bytes() if path.exists() else None) == before
            if other != path and way != "dots":
                other.unlink()
        assert run(["compare", str(own.spec.path), "--csv", str(path)]) == 2
        assert f"--csv {path}: is {what}" in capsys.readouterr().err
    assert len(history(own.spec)["events"]) == events


@pytest.mark.parametrize("engine_name", ["duckdb"])
@pytest.mark.parametrize("name", ["release.duckdb", "qblock/ledger.sqlite"])
def test_a_file_that_is_yet_to_be_made_is_kept_free(own: Job, name: str) -> None:
    (own.folder / "qblock").mkdir(mode=0o700)
    assert release(own, "--result", own.folder / name) == 2
    assert not (own.folder / name).exists()
    assert release(own) == 0


@pytest.mark.either_engine
def test_a_file_of_somebody_else_is_replaced_only_where_that_is_asked(
    job: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "notes.txt"
    for text in ("my notes", '{"status": 1}', "[]", "[" * 100_000):
        file.write_text(text, "utf-8")
        assert release(job, "--result", file) == 2
        found = capsys.readouterr().err
        ask = "holds something other than the result of a run; give another name, or --result-force to replace it"
        assert found == f"qblock: --result {file}: {ask}\n"
        assert file.read_text("utf-8") == text
    assert history(job.spec)["events"] == []
    # A spec that cannot be read does not say what must be kept.
    broken = tmp_path / "broken.yaml"
    broken.write_text("version: 2\n", "utf-8")
    assert run(["release", str(broken), "--result", str(file), "--force"]) == 2
    assert file.read_text("utf-8") == "[" * 100_000
    for n, option in enumerate(["--result-force", "--force"], 1):
        file.write_text("my notes", "utf-8")
        assert release(job, "--result", file, option) == 0
        assert json.loads(file.read_text("utf-8"))["version"] == n
    file.write_text("my notes", "utf-8")
    assert run(["rollback", str(job.spec.path), "2", "--result", str(file)]) == 2
    assert run(["rollback", str(job.spec.path), "2", "--result", str(file), "--force"]) == 0
    assert json.loads(file.read_text("utf-8"))["status"] == "unchanged"


@pytest.mark.either_engine
def test_a_result_is_replaced_whole_and_a_link_stays(job: Job, tmp_path: Path) -> None:
    file, link = tmp_path / "result.json", tmp_path / "link.json"
    link.symlink_to(file.name)
    for text in ("", RESULT):
        file.write_text(text, "utf-8")
        with file.open() as reader:
            assert release(job, "--result", link) == 0
            assert reader.read() == text
        assert json.loads(file.read_text("utf-8"))["version"] == 1
    assert link.is_symlink()
    assert sorted(tmp_path.glob(".*.json*")) == []


@pytest.mark.parametrize("umask", [0o000, 0o777])
@pytest.mark.parametrize("before", [None, 0o666])
def test_a_result_is_for_its_owner_alone(tmp_path: Path, umask: int, before: int | None) -> None:
    file = tmp_path / "result.json"
    if before is not None:
        file.write_text(RESULT, "utf-8")
        file.chmod(before)
    mask = os.umask(umask)
    try:
        ResultFile(file, "spec.yaml").write(Failed(status="failed", release=None, run=None, reason="", exit_status=1))
    finally:
        os.umask(mask)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.either_engine
@pytest.mark.parametrize("force", [False, True])
def test_what_is_no_regular_file_is_refused_before_anything_is_done(
    job: Job, tmp_path: Path, capfd: pytest.CaptureFixture[str], force: bool
) -> None:
    fifo, link, file = tmp_path / "fifo", tmp_path / "link", tmp_path / "file"
    os.mkfifo(fifo)
    link.symlink_to("/dev/stderr")
    file.write_text("before\n", "utf-8")
    reader = os.open(fifo, os.O_RDWR)
    with open(file, "ab") as writer:
        passed = f"/dev/fd/{writer.fileno()}"
        shell = "what the shell passes on, not a file"
        kinds = {fifo: "a pipe (FIFO)", "/dev/null": "a device", tmp_path: "a folder"}
        kinds |= dict.fromkeys(("/dev/stdout", link, passed, f"/dev/fd/{reader}", "/dev/fd/987"), shell)
        for result, kind in kinds.items():
            capfd.readouterr()
            assert release(job, "--result", result, force=force) == 2
            remedy = "name a file, or take the result from standard output (--json)"
            assert capfd.readouterr() == ("", f"qblock: --result {result}: is {kind}; {remedy}\n")
    os.close(reader)
    assert file.read_text("utf-8") == "before\n"
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    assert history(job.spec)["events"] == []


@pytest.mark.either_engine
def test_what_has_taken_the_place_of_the_file_meanwhile_is_left_alone(
    tmp_path: Path,
) -> None:
    file = tmp_path / "result.json"
    result = ResultFile(file, "spec.yaml")
    os.mkfifo(file)
    with pytest.raises(InputError, match=r"is a pipe \(FIFO\)"):
        result.write(Failed(status="failed", release=None, run=None, reason="", exit_status=1))
    assert stat.S_ISFIFO(file.stat().st_mode)
