"""What a run of the job tells schedulers: log lines, the result file, the hook; and that none of it changes the run."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from release.jobs import PEOPLE, Job, MakeJob

from cli.terminal import qblock
from qblock.cli import ending
from qblock.cli import job as module
from qblock.cli.app import run
from qblock.errors import InputError
from qblock.ledger.history import history
from qblock.ledger.stores import store_of
from qblock.release import apply
from qblock.release.apply import plan

pytestmark = pytest.mark.either_engine

KEYS = ["time", "level", "run", "release", "step", "message"]


def release(job: Job, *options: str) -> int:
    return run(["release", str(job.spec.path), "--quiet", *options])


def lines(text: str) -> list[dict[str, Any]]:
    """Standard error as JSON lines, each of them."""
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def hook(tmp_path: Path) -> str:
    """A command that keeps its arguments and what the file held, with a status of its choice."""
    script = tmp_path / "a hook.py"
    script.write_text(
        "import json, pathlib, sys\n"
        "text = pathlib.Path(sys.argv[-1]).read_text()\n"
        f"with open({str(tmp_path / 'heard')!r}, 'a') as heard:\n"
        "    heard.write(json.dumps([sys.argv[1:], json.loads(text)]) + '\\n')\n"
        "print('said by the hook')\n"
        "sys.exit(int(sys.argv[1]))\n",
        "utf-8",
    )
    return f"{sys.executable} '{script}'"


def heard(tmp_path: Path) -> list[list[Any]]:
    file = tmp_path / "heard"
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def test_without_a_log_nothing_is_on_standard_error(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert release(job) == 0
    assert capsys.readouterr().err == ""


def test_json_lines_name_run_release_and_step(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    steps = plan(job.spec).answer().to_dict()["steps"]
    assert release(job, "--log-format", "json", "--json") == 0
    out, err = capsys.readouterr()
    result, entries = json.loads(out), lines(err)
    assert all(list(entry) == KEYS for entry in entries)
    assert {(entry["run"], entry["release"]) for entry in entries} == {(result["run"], "people")}
    assert result["run"] == history(job.spec)["events"][-1]["run"]
    assert [e["step"] for e in entries if e["step"] != "outcome"] == [step["step"] for step in steps]
    assert [e["message"] for e in entries if e["step"] == "search"] == [
        step["description"] for step in steps if step["step"] == "search"
    ]
    assert [e["message"] for e in entries if e["level"] == "warning"] == result["notes"]
    assert entries[-1]["message"].startswith("published: version 1, 12 rows, 0 suppressed, ledger head ")
    assert [e["time"] for e in entries] == sorted(e["time"] for e in entries)


@pytest.mark.parametrize("options", [["--verbose"], ["--log-format", "text"]])
def test_text_lines(job: Job, capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    assert release(job, *options) == 0
    found = capsys.readouterr().err.splitlines()
    assert " info    people " in found[0]
    assert found[0].endswith("lock: Take the lock of release people: one run at a time.")
    assert "outcome: published: version 1, 12 rows" in found[-1]


def test_an_unknown_format(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert release(job, "--log-format", "xml") == 2
    assert "valid: text, json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "status", "exit_status", "reason"),
    [
        ({"privacy": [{"k_anonymity": {"k": 13}}]}, "refused", 3, "k_anonymity asks k 13"),
        ({"source": {"url": "duckdb:///gone.duckdb", "table": "people"}}, "failed", 1, "not reachable"),
        ({"attributes": {"none": "sensitive"}}, "failed", 2, "none"),
    ],
)
def test_what_fails_is_told_once_in_the_format_asked_for(
    job: Job,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    hook: str,
    settings: dict[str, Any],
    status: str,
    exit_status: int,
    reason: str,
) -> None:
    path = job.spec.path
    job.settings |= settings
    if "source" in settings and job.engine == "postgresql":
        job.settings["source"] = {"url": "postgresql://nobody@127.0.0.1:1/none", "table": "people"}
    if "attributes" in settings:
        path.write_text(path.read_text("utf-8").replace("role: quasi_identifier", "role: none", 1), "utf-8")
    else:
        path = job.spec.path
    file = tmp_path / "result.json"
    options = ["--log-format", "json", "--json", "--result", str(file), "--hook", f"{hook} 0"]
    assert run(["release", str(path), *options]) == exit_status
    out, err = capsys.readouterr()
    found = json.loads(file.read_text("utf-8"))
    assert (found["status"], found["exit_status"]) == (status, exit_status)
    assert reason in found["reason"]
    assert json.loads(out) == found
    assert heard(tmp_path) == [[["0", str(file)], found]]
    last = lines(err)[-1]
    assert (last["step"], last["level"], last["run"]) == ("outcome", "error", found["run"])
    assert [e["level"] for e in lines(err)].count("error") == 1
    if status == "refused":
        assert found["run"] == history(job.spec)["events"][-1]["run"]


def test_a_run_that_waits_in_vain_is_told(job: Job, tmp_path: Path, hook: str) -> None:
    file = tmp_path / "result.json"
    with store_of(job.spec).lock("people"):
        assert release(job, "--result", str(file), "--hook", f"{hook} 0") == 4
    assert json.loads(file.read_text("utf-8"))["exit_status"] == 4
    assert len(heard(tmp_path)) == 1


def test_the_result_file_is_replaced_whole(job: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "result.json"
    older = json.dumps({"status": "unchanged", "release": "people", "exit_status": 0})
    file.write_text(older, "utf-8")
    with open(file, encoding="utf-8") as reader:
        assert release(job, "--result", str(file), "--json") == 0
        assert reader.read() == older
    found = json.loads(file.read_text("utf-8"))
    assert found == json.loads(capsys.readouterr().out)
    assert (found["status"], found["exit_status"], found["version"]) == ("published", 0, 1)
    assert release(job, "--result", str(file)) == 0
    assert json.loads(file.read_text("utf-8"))["status"] == "unchanged"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".result")] == []


def test_a_result_that_cannot_be_written(
    job: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong in (tmp_path, tmp_path / "none" / "result.json"):
        assert release(job, "--result", str(wrong)) == 2
        assert "--result" in capsys.readouterr().err
    assert history(job.spec)["events"] == []

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(module, "written_whole", full)
        assert release(job, "--result", str(tmp_path / "result.json")) == 0
    assert "the result file was not written: No space left on device" in capsys.readouterr().err
    assert len(job.published()) == 12


def test_a_hook_without_a_result_file_is_given_one_of_its_own(job: Job, tmp_path: Path, hook: str) -> None:
    assert release(job, "--hook", f"{hook} 0") == 0
    [[arguments, found]] = heard(tmp_path)
    assert found["status"] == "published"
    assert not Path(arguments[-1]).exists()


@pytest.mark.parametrize("format_", [None, "json"])
def test_a_hook_that_fails_changes_nothing(
    job: Job, tmp_path: Path, hook: str, format_: str | None, capfd: pytest.CaptureFixture[str]
) -> None:
    options = ["--log-format", format_] if format_ else []
    assert release(job, "--hook", f"{hook} 7", *options) == 0
    out, err = capfd.readouterr()
    message = "the hook ended with status 7; the published version is not affected"
    if format_:
        assert (lines(err)[-1]["message"], lines(err)[-1]["step"]) == (message, "hook")
    else:
        assert err == f"said by the hook\nqblock: {message}\n"
    assert "said by the hook" not in out
    assert len(job.published()) == 12


def test_a_hook_is_no_shell_command(job: Job, tmp_path: Path, hook: str) -> None:
    assert release(job, "--hook", f"{hook} 0 '$(touch {tmp_path}/made)' ; touch {tmp_path}/made") == 0
    [[arguments, _]] = heard(tmp_path)
    assert arguments[:-1] == ["0", f"$(touch {tmp_path}/made)", ";", "touch", f"{tmp_path}/made"]
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("command", "found"), [("'", "no closing quotation"), (" ", "no program"), ("nope-1", "no pr")]
)
def test_a_hook_that_cannot_be_run_is_known_before_anything_is_published(
    job: Job, capsys: pytest.CaptureFixture[str], command: str, found: str
) -> None:
    assert release(job, "--hook", command) == 2
    assert found in capsys.readouterr().err
    assert history(job.spec)["events"] == []


def test_a_hook_that_does_not_end_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, fifo = tmp_path / "hook.py", tmp_path / "fifo"
    script.write_text(
        "import signal, subprocess, sys\n"
        "with open(sys.argv[1], 'w') as fifo:\n"
        "    waits = 'import signal; print(\"ready\", flush=True); signal.pause()'\n"
        "    subprocess.Popen([sys.executable, '-c', waits], stdout=fifo)\n"
        "    signal.pause()\n",
        "utf-8",
    )
    os.mkfifo(fifo)
    wait = subprocess.Popen.wait
    read = []

    def wait_until_both_run(self: Any, timeout: float | None = None) -> int:
        if timeout is None:
            return wait(self)
        read.append(open(fifo, encoding="utf-8"))  # noqa: SIM115
        assert read[0].readline() == "ready\n"
        raise subprocess.TimeoutExpired(self.args, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", wait_until_both_run)
    problem = module.Hook.of(f"{sys.executable} {script}", 2).run(fifo, silent=True)
    assert problem == "was stopped after 2 seconds"
    # It ends when nobody holds the other end any more.
    with read[0]:
        assert read[0].read() == ""


def test_a_hook_that_is_killed() -> None:
    program = f"{sys.executable} -c 'import os; os.kill(os.getpid(), 9)'"
    assert module.Hook.of(program, 60).run(Path("result.json"), silent=True) == "was stopped by signal 9"


def test_a_program_that_is_no_program(tmp_path: Path) -> None:
    file = tmp_path / "program"
    file.write_text("no interpreter\n", "utf-8")
    file.chmod(stat.S_IRWXU)
    assert "could not be started" in str(module.Hook.of(str(file), 1).run(tmp_path, silent=True))
    with pytest.raises(InputError):
        module.Hook.of(str(tmp_path), 1)


@pytest.mark.parametrize(
    ("error", "exit_status", "reason"),
    [
        (KeyboardInterrupt, 130, "interrupted"),
        (ending.Terminated, 143, "terminated"),
        (ZeroDivisionError, 1, "internal"),
    ],
)
def test_every_other_end_is_told_as_well(
    job: Job,
    tmp_path: Path,
    hook: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: type[BaseException],
    exit_status: int,
    reason: str,
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise error("13053 is in the message")

    monkeypatch.setattr(apply, "run_search", broken)
    assert release(job, "--hook", f"{hook} 0", "--log-format", "json") == exit_status
    [[_, found]] = heard(tmp_path)
    assert (found["status"], found["exit_status"]) == ("failed", exit_status)
    assert found["reason"].startswith(reason)
    err = capsys.readouterr().err
    assert lines(err)[-1]["message"] == f"failed: {found['reason']}"
    assert "13053" not in err


def test_a_signal_is_told(job: Job, tmp_path: Path) -> None:
    """The job in a process of its own, stopped by SIGTERM before it searches."""
    code = (
        "import os, signal, sys\nfrom qblock.cli import app\nfrom qblock.release import apply\n"
        "def stop(*_, **__):\n    os.kill(os.getpid(), signal.SIGTERM)\n    signal.pause()\n"
        "apply.run_search = stop\napp.main()\n"
    )
    file = tmp_path / "result.json"
    ended = qblock("release", job.spec.path, "--result", file, "-v", code=code)
    assert ended.status == 128 + signal.SIGTERM
    assert json.loads(file.read_text("utf-8"))["reason"] == "terminated"
    assert ended.err.splitlines()[-1].endswith("outcome: failed: terminated")


def test_no_log_line_holds_a_value_of_the_source_or_a_secret(
    make_job: MakeJob, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    zips = [f"zip-of-{i // 3}" for i in range(12)]
    made = make_job(PEOPLE | {"zip": zips})
    for _ in range(2):
        release(made, "--log-format", "json", "--force")
    (tmp_path / "zip.csv").write_text("zip,top\nzip-of-0,*\n", "utf-8")
    made.set(
        attributes=made.settings["attributes"] | {"zip": {"role": "quasi_identifier", "hierarchy": {"file": "zip.csv"}}}
    )
    assert release(made, "--log-format", "json") == 2
    text = capsys.readouterr().err
    assert text
    assert "zip-of" not in text
    assert "person" not in text
    assert not any(value in text for value in set(PEOPLE["disease"]))
    monkeypatch.setenv("SECRET_URL", "postgresql://u:hidden-word@127.0.0.1:1/none")
    made.set(source={"url": "${SECRET_URL}", "table": "people"})
    made.settings["publish"] = {"schema": "published", "view": "people"}
    assert release(made, "--log-format", "json") == 1
    assert "hidden-word" not in capsys.readouterr().err
