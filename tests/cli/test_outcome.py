"""The last message of a command, its exit status, result and hook say what it has done, on every way out."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from release.jobs import ATTRIBUTES, Job, MakeJob

from cli.terminal import MAIN, qblock
from qblock.cli import publish
from qblock.cli.app import run
from qblock.cli.ending import Terminated
from qblock.errors import QblockError, Refused
from qblock.ledger.history import history
from qblock.publish.targets import target_of
from qblock.release import apply, erase, retire, rollback
from qblock.release.run import Run

pytestmark = pytest.mark.either_engine

NOTE = "--debug prints the traceback on a terminal"


def raising(error: BaseException | type[BaseException], first: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A function that fails, after it has done what another one does. A class is a signal, made when it arrives."""

    def fails(*arguments: Any, **options: Any) -> None:
        if first is not None:
            first(*arguments, **options)
        raise error

    return fails


def fails_once_published(job: Job, monkeypatch: pytest.MonkeyPatch, error: BaseException | type[BaseException]) -> None:
    """The error comes after the commit or the renaming, and before the run goes on."""
    target = type(target_of(job.spec))
    checking = target.checking

    @contextmanager
    def opened(*arguments: Any) -> Iterator[Any]:
        with checking(*arguments) as checked:
            monkeypatch.setattr(checked, "publish", raising(error, checked.publish))
            yield checked

    monkeypatch.setattr(target, "checking", opened)


def ended(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    capsys.readouterr()
    status = run(list(map(str, arguments)))
    return status, capsys.readouterr().err


def test_a_signal_between_publication_and_clearing_up(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    heard, file = tmp_path / "heard.json", tmp_path / "result.json"
    copy = f"{sys.executable} -c 'import shutil, sys; shutil.copy(sys.argv[2], sys.argv[1])' {heard}"
    monkeypatch.setattr(apply.Retire, "perform", raising(Terminated))
    options = ("--result", file, "--hook", copy)
    status, err = ended(capsys, "release", job.spec.path, "--quiet", *options)
    assert (status, err) == (143, "qblock: terminated: version 1 was published\n")
    for told in (file, heard):
        found = json.loads(told.read_text("utf-8"))
        assert (found["status"], found["version"], found["exit_status"]) == ("published", 1, 143)
    events = history(job.spec)["events"]
    assert events[-1]["state"] == "published"


def test_a_signal_right_after_the_commit_is_asked_for(
    job: Job, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the run itself has noted that it has published."""

    fails_once_published(job, monkeypatch, Terminated)
    status, err = ended(capsys, "release", job.spec.path, "--quiet")
    assert (status, err) == (143, "qblock: terminated: version 1 was published\n")


def test_a_signal_before_the_publication(
    job: Job, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(apply.Recheck, "perform", raising(Terminated))
    status, err = ended(capsys, "release", job.spec.path, "--quiet")
    assert (status, err) == (143, "qblock: terminated: nothing was published\n")


def test_a_signal_while_the_answer_is_printed(
    job: Job, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(publish, "_published", raising(KeyboardInterrupt()))
    file = tmp_path / "result.json"
    status, err = ended(capsys, "release", job.spec.path, "--quiet", "--result", file)
    assert (status, err) == (130, "qblock: interrupted: version 1 was published\n")
    found = json.loads(file.read_text("utf-8"))
    assert (found["status"], found["rows"], found["exit_status"]) == ("published", 12, 130)


def test_a_signal_while_the_hook_runs(job: Job, tmp_path: Path) -> None:
    hook, file = tmp_path / "hook.py", tmp_path / "result.json"
    hook.write_text("import os, signal\nos.kill(os.getppid(), signal.SIGTERM)\nsignal.pause()\n", "utf-8")
    options = ("--quiet", "--result", file, "--hook", f"{sys.executable} {hook}")
    ran = qblock("release", job.spec.path, *options)
    assert (ran.status, ran.err) == (143, "qblock: terminated: version 1 was published\n")
    found = json.loads(file.read_text("utf-8"))
    assert (found["status"], found["exit_status"]) == ("published", 143)


def test_a_real_signal_after_the_publication(job: Job) -> None:
    code = (
        "import os, signal\nfrom qblock.release import apply\n"
        "def stop(*_):\n    os.kill(os.getpid(), signal.SIGTERM)\n    signal.pause()\n"
        f"apply.Retire.perform = stop\n{MAIN}"
    )
    ran = qblock("release", job.spec.path, "--quiet", "--log-format", "json", code=code)
    assert ran.status == 128 + signal.SIGTERM
    last = json.loads(ran.err.splitlines()[-1])
    assert last["message"] == "published: terminated: version 1 was published"


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (ZeroDivisionError("13053"), 1, f"version 1 was published; internal error (ZeroDivisionError); {NOTE}"),
        (QblockError("the database is gone"), 1, "version 1 was published; the database is gone"),
        (Refused("a check failed"), 1, "version 1 was published; a check failed"),
        (PermissionError(13, "", "/old"), 1, "version 1 was published; /old: Permission denied"),
    ],
)
def test_a_fault_after_the_publication(
    job: Job,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    status: int,
    said: str,
) -> None:
    monkeypatch.setattr(Run, "result", raising(error))
    assert ended(capsys, "release", job.spec.path, "--quiet") == (status, f"qblock: {said}\n")


def test_an_internal_error_before_the_publication(
    job: Job, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(apply, "run_search", raising(ZeroDivisionError("13053")))
    said = f"nothing was published; internal error (ZeroDivisionError); {NOTE}"
    assert ended(capsys, "release", job.spec.path, "--quiet") == (1, f"qblock: {said}\n")
    monkeypatch.setattr("qblock.search.run.run_search", raising(ZeroDivisionError("13053")))
    said = f"internal error (ZeroDivisionError); {NOTE}"
    assert ended(capsys, "search", job.spec.path, "--quiet") == (1, f"qblock: {said}\n")


def test_a_signal_after_a_rollback(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    job = make_job(versions={"joint": "none"})
    job.run()
    job.change("INSERT INTO people VALUES ('new', '13053', 33, 'flu', 'A')")
    job.run()
    file = tmp_path / "result.json"
    with monkeypatch.context() as patched:
        patched.setattr(rollback._Rollback, "check_version", raising(Terminated))
        assert ended(capsys, "rollback", job.spec.path, 1) == (143, "qblock: terminated: nothing was published\n")
    monkeypatch.setattr(rollback._Rollback, "result", raising(Terminated))
    status, err = ended(capsys, "rollback", job.spec.path, 1, "--result", file)
    assert (status, err) == (143, "qblock: terminated: version 1 was published again\n")
    found = json.loads(file.read_text("utf-8"))
    assert (found["status"], found["version"], found["exit_status"]) == ("rolled_back", 1, 143)
    assert history(job.spec)["current"] == 1


def test_a_signal_after_a_withdrawal_and_after_the_release_was_retired(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = make_job(attributes=ATTRIBUTES, entity="name")
    job.run()
    path = job.spec.path
    with monkeypatch.context() as patched:
        patched.setattr(erase.PublishWithout, "perform", raising(Terminated))
        status, err = ended(capsys, "erase", path, "person 0", "--now", "--yes")
    assert status == 143
    assert err.endswith("qblock: terminated: the withdrawal was recorded; nothing was published\n")
    with monkeypatch.context() as patched:
        patched.setattr(erase, "_exclude", raising(Terminated, erase._exclude))
        status, err = ended(capsys, "erase", path, "person 1")
    assert (status, err) == (143, "qblock: terminated: the withdrawal was recorded; nothing was published\n")
    with monkeypatch.context() as patched:
        patched.setattr(erase, "_exclude", raising(Terminated))
        status, err = ended(capsys, "erase", path, "person 2")
    assert (status, err) == (143, "qblock: terminated: nothing was published\n")
    monkeypatch.setattr(retire, "Ended", raising(Terminated))
    status, err = ended(capsys, "retire", path)
    assert (status, err) == (143, "qblock: terminated: the release was retired\n")


def test_what_cannot_be_found_out_is_said_to_be_unknown(
    job: Job, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The connection is lost at the commit, and the database does not come back."""
    fails_once_published(job, monkeypatch, QblockError("the connection was lost"))
    monkeypatch.setattr(apply.Run, "said_published", raising(QblockError("database not reachable")))
    file = tmp_path / "result.json"
    said = "whether version 1 was published is not known, `qblock history` shows it; the connection was lost"
    assert ended(capsys, "release", job.spec.path, "--quiet", "--result", file) == (1, f"qblock: {said}\n")
    found = json.loads(file.read_text("utf-8"))
    assert (found["status"], found["version"], found["reason"]) == ("unknown", 1, said)


def test_a_second_signal_while_the_first_is_told(
    job: Job, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fails_once_published(job, monkeypatch, Terminated)
    monkeypatch.setattr(apply.Run, "said_published", raising(Terminated))
    status, err = ended(capsys, "release", job.spec.path, "--quiet")
    said = "terminated: whether version 1 was published is not known, `qblock history` shows it"
    assert (status, err) == (143, f"qblock: {said}\n")
