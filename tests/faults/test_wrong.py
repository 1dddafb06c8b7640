"""Every wrong input and fault of the table ends as it says, and leaves version 1 published."""

from __future__ import annotations

import copy
import re
from contextlib import nullcontext

import pytest
from release.jobs import CopyJob, Job, copy_job, job_templates, released  # noqa: F401

from faults.wrong import CASES, Wrong
from qblock.cli.app import run

pytestmark = pytest.mark.either_engine

SECRETS = ("s3cret", "person 0", "heart")


def arguments(job: Job, wrong: Wrong) -> list[str]:
    """The command line of the next run."""
    path = job.folder / "spec.yaml"
    if wrong.text is None:
        job.write()
    elif wrong.text == "(absent)":
        path.unlink()
    else:
        path.write_text(wrong.text, "utf-8")
    return ["release", str(path), "--json", "--quiet", *wrong.options]


def chosen(number: int, wrong: Wrong) -> list[str]:
    """The engines by turns; `python -m tests.faults.table` does each to both."""
    return [wrong.engines[number % len(wrong.engines)]]


@pytest.mark.parametrize(
    ("engine_name", "wrong"),
    [pytest.param(e, w, id=f"{e}-{w.what}".replace(" ", "_")) for i, w in enumerate(CASES) for e in chosen(i, w)],
)
def test_it_ends_as_it_should(engine_name: str, wrong: Wrong, released: Job, capfd: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    before, settings = released.published(), copy.deepcopy(released.settings)
    wrong.do(released)
    with wrong.during(released) if wrong.during else nullcontext():
        capfd.readouterr()
        status = run(arguments(released, wrong))
    said = capfd.readouterr().err
    released.settings = settings
    assert (status, re.search(wrong.says, said) is not None) == (wrong.status, True), said
    assert said.startswith("qblock: ")
    assert "Traceback" not in said
    assert [secret for secret in SECRETS if secret in said] == []
    assert released.published() == before


def test_there_are_enough() -> None:
    assert len({wrong.what for wrong in CASES}) == len(CASES) >= 60
