"""`qblock schedule`: what it prints runs the job from any path, at the time that is named."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from release.jobs import Job, job, make_job  # noqa: F401

from qblock.cli import schedule
from qblock.cli.app import run

pytestmark = pytest.mark.either_engine

HOSTILE = "a b%c'd$e\"f"
"""A folder's name with what cron, sh and systemd read as something else."""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The `qblock` that is printed: one that works whatever PATH is, in a hostile folder."""
    file = tmp_path / HOSTILE / "qblock"
    file.parent.mkdir()
    path = os.pathsep.join(sys.path)
    code = "from qblock.cli import main; main()"
    file.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(path)} exec {sys.executable} -c {shlex.quote(code)} "$@"\n')
    file.chmod(0o755)
    monkeypatch.setattr(schedule, "_program", lambda: str(file))
    return file


@pytest.fixture
def moved(job: Job, tmp_path: Path) -> Path:  # noqa: F811
    """The job's spec in a hostile folder, with absolute paths."""
    folder = tmp_path / f"spec {HOSTILE}"
    shutil.copytree(job.spec.path.parent, folder, ignore=shutil.ignore_patterns(HOSTILE, folder.name))
    return folder / job.spec.path.name


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["schedule", *arguments]) == 0
    return capsys.readouterr().out


def cron(line: str) -> tuple[list[str], str]:
    """The fields of time and what sh is given: cron ends the command at a percent sign that is not escaped."""
    *when, command = line.split(None, 5)
    return when, re.split(r"(?<!\\)%", command)[0].replace("\\%", "%")


def test_the_line_of_cron_runs_the_job(
    moved: Path, program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, str(moved), "--at", "Sun 04:05", "--mail", "data-team@example.org")
    *_, mail, line = text.splitlines()
    when, command = cron(line)
    assert (mail, when) == ("MAILTO=data-team@example.org", ["5", "4", "*", "*", "7"])
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(["/bin/sh", "-c", command], env=environment, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    result = json.loads((tmp_path / ".local" / "state" / "qblock" / "people" / "result.json").read_text("utf-8"))
    assert result["status"] == "published"


def words_of(text: str) -> list[str]:
    """A command line of systemd: words, some in double quotes, with %% for % and $$ for $ (systemd.service(5))."""
    words, word, quoted, escaped = [], "", False, False
    for character in text + " ":
        if escaped:
            word, escaped = word + character, False
        elif character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted
        elif character == " " and not quoted:
            words, word = [*words, word], ""
        else:
            word += character
    return [word.replace("%%", "%").replace("$$", "$") for word in words]


def test_the_service_runs_the_job(
    moved: Path, program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, str(moved), "--with", "systemd", "--daily")
    service, timer = text.split("# /etc/systemd/system/")[1:]
    units = configparser.ConfigParser(interpolation=None, strict=False)
    units.optionxform = str  # type: ignore[assignment]
    units.read_string(service.partition("\n")[2])
    command = words_of(units["Service"]["ExecStart"])
    assert command[:3] == [str(program), "release", str(moved)]
    assert words_of(units["Service"]["ReadWritePaths"]) == [str(moved.parent)]
    result = tmp_path / "result.json"
    assert (command[-1], units["Service"]["StateDirectory"]) == ("/var/lib/qblock/people.json", "qblock")
    assert run([*command[1:-1], str(result)]) == 0
    assert json.loads(result.read_text("utf-8"))["status"] == "published"
    # A spec to mend and a refusal are not tried again; another run is no failure.
    assert units["Service"]["RestartPreventExitStatus"] == "2 3"
    assert units["Service"]["SuccessExitStatus"] == "4"
    assert "OnCalendar=*-*-* 03:15\n" in timer
    assert timer.startswith("qblock-people.timer\n")
    assert service.startswith("qblock-people.service\n")


def test_systemd_accepts_the_units(moved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    text = printed(capsys, str(moved), "--with", "systemd")
    files = []
    for part in text.split("# /etc/systemd/system/")[1:]:
        name, _, unit = part.partition("\n")
        files.append(tmp_path / name)
        files[-1].write_text(unit, "utf-8")
    done = subprocess.run(["systemd-analyze", "verify", *files], check=False, capture_output=True, text=True)
    assert [line for line in done.stderr.splitlines() if "qblock-people" in line] == []


def test_the_dag_names_the_spec(moved: Path, program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, str(moved), "--with", "airflow", "--at", "22:00")
    given = dict(line.split(" = ", 1) for line in text.splitlines() if re.match(r"(QBLOCK|SPEC) = ", line))
    assert given == {"QBLOCK": repr(str(program)), "SPEC": repr(str(moved))}
    assert '    schedule="0 22 * * 1",\n' in text
    assert text.rstrip().endswith("qblock_people()")
    compile(text, "dag.py", "exec")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--with", "at"], "--with at: valid: cron, systemd, airflow"),
        (["--at", "25:00"], "--at 25:00: write a time as 03:15, or a day and a time as 'Mon 03:15'"),
        (["--at", "xyz 03:15"], "--at xyz 03:15: write a time as 03:15, or a day and a time as 'Mon 03:15'"),
        (["--at", "mon 03:15", "--daily"], "--at mon 03:15: --daily runs on every day; leave out mon"),
        (["--mail", "me"], "--mail me: is no address; write one as data-team@example.org"),
        (["--mail", "a@b\nRUN=1"], "is no address"),
        (["--mail", "a@b.org", "--with", "systemd"], "--mail: systemd sends no mail; write --with cron"),
        (["--mail", "a@b.org", "--with", "airflow"], "--mail: Airflow notifies by callbacks of its own"),
    ],
)
def test_what_cannot_be_is_refused(
    job: Job,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    assert run(["schedule", str(job.spec.path), *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
