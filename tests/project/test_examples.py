"""The examples for schedulers, run as far as they can be without the schedulers."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from release.jobs import Job, job, make_job  # noqa: F401

from qblock.ledger.history import history

pytestmark = pytest.mark.either_engine

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WRAPPER = EXAMPLES / "cron" / "qblock-release"
LAGGING = 5
"""No exit status: one of 0 whose result says that the release lags."""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A `qblock` that works whatever PATH is."""
    file = tmp_path / "bin" / "qblock"
    file.parent.mkdir()
    path = os.pathsep.join(sys.path)
    code = "from qblock.cli import main; main()"
    file.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(path)} exec {sys.executable} -c {shlex.quote(code)} "$@"\n')
    file.chmod(0o755)
    return file


@pytest.fixture
def pretend(tmp_path: Path) -> Callable[[int], Path]:
    """`pretend(status)`: a `qblock` that only ends like that."""

    def make(status: int) -> Path:
        file = tmp_path / f"qblock-{status}"
        said = "lagging" if status == LAGGING else "failed"
        # A shell's echo reads backslashes too.
        reason = '"reason": "because \\\\"it\\\\" \\\\\\\\ did",'
        result = f'{{\n  "status": "{said}",\n  {reason}\n  "exit_status": 0\n}}'
        file.write_text(
            '#!/bin/sh\nwhile [ $# -gt 0 ]; do [ "$1" = --result ] && result=$2; shift; done\n'
            f"echo '{result}' > \"$result\"\nexit {0 if status == LAGGING else status}\n"
        )
        file.chmod(0o755)
        return file

    return make


def wrapped(program: Path, spec: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """The wrapper as cron runs it: hardly any environment."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "QBLOCK": str(program)}
    command = ["/bin/sh", str(WRAPPER), str(spec), str(folder / "state")]
    return subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=300)


def test_cron_is_told_nothing_of_a_run_that_published(job: Job, program: Path, tmp_path: Path) -> None:  # noqa: F811
    for status in ("published", "unchanged"):
        done = wrapped(program, job.spec.path, tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert json.loads((tmp_path / "state" / "result.json").read_text("utf-8"))["status"] == status
    assert len(job.published()) == 12
    log = (tmp_path / "state" / "release.log").read_text("utf-8").splitlines()
    assert len({json.loads(line)["run"] for line in log}) == 2
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0


def test_cron_mails_the_reason_of_a_refusal(job: Job, program: Path, tmp_path: Path) -> None:  # noqa: F811
    job.set(privacy=[{"k_anonymity": {"k": 13}}])
    done = wrapped(program, job.spec.path, tmp_path)
    assert done.returncode == 3
    assert "was refused: nothing safe to publish" in done.stdout
    assert "Reason: no node satisfies the spec: k_anonymity asks k 13" in done.stdout
    assert history(job.spec)["events"][-1]["state"] == "refused"


@pytest.mark.parametrize(
    ("status", "left", "said"),
    [
        (0, 0, ""),
        (LAGGING, 0, "lags"),
        (1, 1, "tries again"),
        (2, 2, "needs somebody"),
        (3, 3, "refused"),
        (4, 0, ""),
        (143, 143, "stopped"),
    ],
)
def test_cron_maps_every_exit_status(
    pretend: Callable[[int], Path], tmp_path: Path, status: int, left: int, said: str
) -> None:
    done = wrapped(pretend(status), tmp_path / "spec.yaml", tmp_path)
    assert done.returncode == left
    assert said in done.stdout
    assert bool(done.stdout) is bool(said)
    assert ('Reason: because "it" \\ did\n' in done.stdout) is bool(said)


class Dag:
    """What the stubs have seen of a DAG."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self.tasks: dict[str, Callable[..., Any]] = {}


@pytest.fixture
def dag(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Dag]:
    """`dag(program, spec)`: the example, loaded with as much of Airflow as it uses."""
    found = Dag()
    exceptions, sdk = types.ModuleType("airflow.exceptions"), types.ModuleType("airflow.sdk")
    base = type("AirflowException", (Exception,), {})
    exceptions.AirflowException = base  # type: ignore[attr-defined]
    for name in ("AirflowFailException", "AirflowSkipException"):
        setattr(exceptions, name, type(name, (base,), {}))

    def make_dag(**options: Any) -> Callable[[Callable[[], None]], Callable[[], None]]:
        found.options = options
        return lambda function: function

    def task(function: Callable[..., Any]) -> Callable[..., None]:
        def use(*_: None) -> None:
            found.tasks[function.__name__] = function

        return use

    sdk.dag, sdk.task = make_dag, task  # type: ignore[attr-defined]
    for name, module in (
        ("airflow", types.ModuleType("airflow")),
        (exceptions.__name__, exceptions),
        ("airflow.sdk", sdk),
    ):
        monkeypatch.setitem(sys.modules, name, module)

    def load(program: Path, spec: Path) -> Dag:
        monkeypatch.setenv("QBLOCK", str(program))
        monkeypatch.setenv("QBLOCK_SPEC", str(spec))
        file = EXAMPLES / "airflow" / "qblock_release.py"
        module = types.ModuleType("example")
        exec(compile(file.read_text("utf-8"), str(file), "exec"), vars(module))
        return found

    return load


def test_the_dag_runs_the_job(job: Job, program: Path, dag: Callable[..., Dag]) -> None:  # noqa: F811
    made = dag(program, job.spec.path)
    assert (made.options["catchup"], made.options["max_active_runs"]) == (False, 1)
    assert list(made.tasks) == ["release", "keeps_up"]
    result = made.tasks["release"]()
    made.tasks["keeps_up"](result)
    assert (result["status"], result["rows"]) == ("published", 12)
    assert json.loads(json.dumps(result)) == result


@pytest.mark.parametrize(
    ("status", "raised"),
    [(1, "AirflowException"), (2, "AirflowFailException"), (3, "AirflowFailException"), (4, "AirflowSkipException")],
)
def test_the_dag_tries_again_only_what_may_pass(
    pretend: Callable[[int], Path], dag: Callable[..., Dag], tmp_path: Path, status: int, raised: str
) -> None:
    made = dag(pretend(status), tmp_path / "spec.yaml")
    with pytest.raises(Exception, match="because") as error:
        made.tasks["release"]()
    assert type(error.value).__name__ == raised


def test_the_dag_tells_of_a_lag_beside_the_release(
    pretend: Callable[[int], Path], dag: Callable[..., Dag], tmp_path: Path
) -> None:
    made = dag(pretend(LAGGING), tmp_path / "spec.yaml")
    result = made.tasks["release"]()
    with pytest.raises(Exception, match="more people wait") as error:
        made.tasks["keeps_up"](result)
    assert type(error.value).__name__ == "AirflowFailException"


def test_the_table_of_exit_statuses_is_whole() -> None:
    pattern = r"(?m)^\| (\d) \|"
    commands = (EXAMPLES.parent / "docs" / "commands.md").read_text("utf-8")
    assert (
        re.findall(pattern, (EXAMPLES / "README.md").read_text("utf-8"))
        == re.findall(pattern, commands)
        == list("01234")
    )


def test_links_lead_to_what_is_written_with_the_examples() -> None:
    """`qblock examples` writes this folder alone, so that a link out of it leads nowhere."""
    for page in EXAMPLES.rglob("*.md"):
        links = re.findall(r"\]\(([^)#]+)", page.read_text("utf-8"))
        within = [(page.parent / link).resolve() for link in links if "://" not in link]
        assert [str(link) for link in within if not (link.exists() and link.is_relative_to(EXAMPLES))] == [], page
