"""A damaged private file is named by the check, and never told as a wrong publication."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from qblock.errors import QblockError
from qblock.release.verify import verify
from release.jobs import Job, MakeJob
from release.test_altered_crosswalk import weeks

pytestmark = pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)

COPY = "qblock/versions/people/v2.duckdb"


def damage(file: Path, seed: int) -> None:
    """Random bytes in a block, a byte turned, or the end cut off."""
    draw, content = random.Random(seed), bytearray(file.read_bytes())
    at = draw.randrange(len(content) - 4096)
    if seed % 3 == 0:
        content[at : at + 4096] = draw.randbytes(4096)
    elif seed % 3 == 1:
        content[at] ^= 0xFF
    file.write_bytes(content[:at] if seed % 3 == 2 else content)


@pytest.fixture
def job(make_job: MakeJob) -> Job:
    job = weeks(make_job)
    for week in range(2):
        number = "lpad(CAST(i AS VARCHAR), 4, '0')"
        values = "substr('qr', i % 2 + 1, 1), substr('ab', i // 2 % 2 + 1, 1)"
        job.change(f"INSERT INTO people SELECT 'n{week}' || {number}, {values} FROM range(2000) AS drawn(i)")
        job.run()
    return job


def told(job: Job) -> tuple[str, ...]:
    try:
        return verify(job.spec).problems
    except QblockError as error:
        return (str(error),)


def test_what_no_run_can_read_the_check_cannot_read_either(job: Job) -> None:
    folder, whole = job.folder / "qblock", job.folder / "whole"
    shutil.copytree(folder, whole)
    noticed = 0
    for seed in range(6):
        damage(folder / "crosswalk.duckdb", seed)
        problems = told(job)
        try:
            ended = job.run().status
        except QblockError as error:
            ended = str(error)
        assert bool(problems) == (ended != "unchanged"), (seed, problems, ended)
        if problems:
            noticed += 1
            assert str(folder / "crosswalk.duckdb") in problems[0]
            assert "is damaged" in problems[0]
        shutil.rmtree(folder)
        shutil.copytree(whole, folder)
    assert noticed


@pytest.mark.parametrize(
    ("seed", "says"),
    [
        (0, "or its private copy"),
        (2, "v4.duckdb is damaged; put it back"),
        (None, "v4.duckdb of version 4 is gone"),
    ],
)
def test_a_damaged_private_copy_is_no_wrong_publication(job: Job, seed: int | None, says: str) -> None:
    (copy,) = sorted((job.folder / "qblock" / "versions" / "people").glob("v4.duckdb"))
    if seed is None:
        copy.unlink()
    else:
        damage(copy, seed)
    (problem,) = verify(job.spec).problems
    assert says in problem
    assert "qblock release SPEC --force" in problem
    assert job.run().status == "published"
    assert not verify(job.spec).problems
