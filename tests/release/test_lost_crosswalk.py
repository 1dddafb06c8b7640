"""A crosswalk that was deleted is named as that, with what to restore, by every command that would need it."""

from __future__ import annotations

import psycopg
import pytest

from qblock.cli.app import run
from release.jobs import ATTRIBUTES, CopyJob, Job

pytestmark = pytest.mark.handed_on


def publish_twice(job: Job) -> None:
    job.set(attributes=ATTRIBUTES, entity="name")
    job.run()
    job.run(force=True)


@pytest.fixture
def twice(copy_job: CopyJob) -> Job:
    return copy_job("two versions of entities, for a lost crosswalk", publish_twice)


def tables(job: Job) -> list[str]:
    """The crosswalk's file, or its tables."""
    if job.engine == "duckdb":
        return [path.name for path in (job.folder / "qblock").glob("crosswalk*")]
    return [n for (n,) in job.query("SELECT relname FROM pg_class WHERE relname ~ '^crosswalk' AND relkind = 'r'")]


def delete(job: Job) -> str:
    """Delete it; what a message calls it."""
    if job.engine == "duckdb":
        file = job.folder / "qblock" / "crosswalk.duckdb"
        file.unlink()
        return f"the file {file} is gone"
    with psycopg.connect(job.url, autocommit=True) as connection:
        for name in tables(job):
            connection.execute(f"DROP TABLE qblock.{name} CASCADE")  # type: ignore[arg-type]
    return "its tables in schema qblock are gone"


def test_a_deleted_crosswalk_is_named_by_every_command(twice: Job, capfd: pytest.CaptureFixture[str]) -> None:
    """It was "published without entity", "no crosswalk yet", or a table that was not found."""
    gone = delete(twice)
    path, before = str(twice.write()), twice.published()
    moved = twice.folder / "moved.yaml"
    moved.write_text(twice.write().read_text("utf-8").replace("release: people", "release: patients"), "utf-8")
    commands = [
        ["release", path],
        ["release", path, "--force"],
        ["rollback", path, "1"],
        ["erase", path, "person 0"],
        ["erase", path, "person 0", "--now", "--yes"],
        ["verify", path],
        ["ledger", "retype", path],
        ["ledger", "rekey", path],
        ["ledger", "move", str(moved), "--from", "people"],
    ]
    for command in commands:
        assert run(command) == 3, command
        _, err = capfd.readouterr()
        assert gone in " ".join(err.split()), (command, err)
        assert "version 1, 2" in err
        assert "without" not in err
        assert (twice.published(), tables(twice)) == (before, []), command
    assert run(["plan", path]) == 0
    assert gone in " ".join("".join(capfd.readouterr()).split())
