"""What a hook gets of the environment of the job, which holds the password of the database."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from release.jobs import Job

from qblock.cli.app import run
from qblock.ledger.history import history

pytestmark = pytest.mark.either_engine

SCRIPT = "import json, os, sys\nwith open(sys.argv[1], 'w') as file:\n    json.dump(dict(os.environ), file)\n"


@pytest.fixture
def hook(tmp_path: Path) -> str:
    (tmp_path / "hook.py").write_text(SCRIPT, "utf-8")
    # Not the interpreter of the tests as it is: its wrapper may set variables of its own.
    return f"{sys.executable} -I {tmp_path / 'hook.py'} {tmp_path / 'environment.json'}"


def environment(tmp_path: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((tmp_path / "environment.json").read_text("utf-8"))
    found.pop("LC_CTYPE", None)  # which Python sets itself where there is no other
    return found


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGPASSWORD", "WAREHOUSE_URL", "QBLOCK_SECRET", "QBLOCK_DEBUG", "QBLOCK_STATUS"):
        monkeypatch.setenv(name, "s3cret-word")
    monkeypatch.setenv("HOME", "/home/job")
    monkeypatch.setenv("LANG", "C.UTF-8")


@pytest.mark.usefixtures("secrets")
def test_a_hook_does_not_get_the_secrets_of_the_job(job: Job, tmp_path: Path, hook: str) -> None:
    assert run(["release", str(job.spec.path), "--quiet", "--hook", hook]) == 0
    found = environment(tmp_path)
    assert set(found) == {"PATH", "HOME", "LANG", *(f"QBLOCK_{n}" for n in ("RELEASE", "RUN", "STATUS", "EXIT_STATUS"))}
    assert (found["QBLOCK_RELEASE"], found["QBLOCK_STATUS"], found["QBLOCK_EXIT_STATUS"]) == (
        "people",
        "published",
        "0",
    )
    assert (found["HOME"], found["LANG"]) == ("/home/job", "C.UTF-8")
    assert "s3cret-word" not in found.values()


@pytest.mark.usefixtures("secrets")
def test_a_hook_gets_what_is_named(job: Job, tmp_path: Path, hook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "a token")
    given = ["--hook-env", "TOKEN", "--hook-env", "QBLOCK_SECRET"]
    assert run(["release", str(job.spec.path), "--quiet", "--hook", hook, *given]) == 0
    found = environment(tmp_path)
    assert (found["TOKEN"], found["QBLOCK_SECRET"]) == ("a token", "s3cret-word")
    assert "PGPASSWORD" not in found


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--hook", "true", "--hook-env", "NO_SUCH_NAME"], "--hook-env NO_SUCH_NAME: this environment variable is not"),
        (["--hook", "true", "--hook-env", "NO_SUCH_NAME=s3cret"], "--hook-env NO_SUCH_NAME: "),
        (["--hook-env", "PATH"], "there is no --hook"),
    ],
)
def test_a_name_that_is_not_set_ends_the_run_before_anything_is_done(
    job: Job, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert run(["release", str(job.spec.path), "--quiet", *options]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "s3cret" not in err
    assert history(job.spec)["events"] == []
