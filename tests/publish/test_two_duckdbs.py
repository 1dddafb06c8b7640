"""DuckDB 1.5, the oldest that is supported, and the installed one take turns at one job and read each other's files."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from release.jobs import Job

from qblock.engines.duckdb import dialect as duckdb_session

ROOT = Path(__file__).parents[2]
OLDER = str(ROOT / ".venv-duckdb15" / "bin" / "python")
"""`make .venv-duckdb15/.installed` makes it."""
NEWER = sys.executable
PROGRAM = "from qblock.cli import main; main()"
ROWS = "SELECT * FROM published.people"


@pytest.fixture
def engine_name() -> str:
    return "duckdb"


@pytest.fixture
def job(job: Job) -> Job:
    """Its source is a file that both can read."""
    source = job.folder / "warehouse.duckdb"
    before = source.rename(job.folder / "before.duckdb")
    with duckdb_session.connect(source) as connection:
        connection.execute(f"ATTACH '{before}' AS before (READ_ONLY); COPY FROM DATABASE before TO warehouse")
    return job.set(entity="name", versions={"on_refusal": "refuse"}, privacy=[{"k_anonymity": {"k": 2}}])


def run(python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([python, "-c", PROGRAM, *arguments], capture_output=True, text=True, timeout=120)


def answer(python: str, command: str, job: Job) -> Any:
    ran = run(python, command, str(job.write()), "--json")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def published(python: str, job: Job) -> dict[int, str]:
    """The digests of the content of the versions, as an environment reads them in the ledger."""
    events = answer(python, "history", job)["events"]
    return {event["version"]: event["content_digest"] for event in events if event["state"] == "published"}


def rows(python: str, file: Path) -> str:
    query = f"import duckdb; print(duckdb.connect({str(file)!r}, read_only=True).execute({ROWS!r}).fetchall())"
    return subprocess.run([python, "-c", query], capture_output=True, text=True, check=True).stdout


@pytest.mark.needs("duckdb15")
def test_the_two_are_two() -> None:
    version = [OLDER, "-c", "import duckdb; print(duckdb.__version__)"]
    assert subprocess.run(version, capture_output=True, text=True, check=True).stdout.startswith("1.5.")
    assert not duckdb.__version__.startswith("1.5.")


@pytest.mark.needs("duckdb15")
@pytest.mark.parametrize(("first", "second"), [(NEWER, OLDER), (OLDER, NEWER)], ids=["newer first", "older first"])
def test_a_job_goes_from_one_to_the_other(job: Job, first: str, second: str) -> None:
    answer(first, "release", job)
    assert rows(first, job.target) == rows(second, job.target)
    with duckdb_session.connect(job.folder / "warehouse.duckdb") as connection:
        connection.execute(
            "INSERT INTO people SELECT name || ' too', zip, age, disease, ward FROM people "
            "WHERE name IN ('person 8', 'person 9')"
        )
    answer(second, "release", job)
    assert sorted(published(first, job)) == sorted(published(second, job)) == [1, 2]
    assert rows(first, job.target) == rows(second, job.target)
    for python in (first, second):
        assert answer(python, "verify", job)["problems"] == []


@pytest.mark.needs("duckdb15")
def test_the_digests_of_content_are_the_same(job: Job) -> None:
    found = []
    for python in (NEWER, OLDER):
        answer(python, "release", job)
        found.append(published(python, job))
        shutil.rmtree(job.folder / "qblock")
        job.target.unlink()
    assert found[0] == found[1]
    assert found[0][1]


@pytest.mark.needs("duckdb15")
def test_a_file_that_is_too_new_says_so(job: Job) -> None:
    job.settings["publish"]["storage_version"] = f"v{duckdb.__version__}"
    answer(NEWER, "release", job)
    ran = run(OLDER, "verify", str(job.write()))
    assert ran.returncode == 3
    assert "was written by a newer DuckDB" in ran.stderr
    assert "pip install --upgrade duckdb" in ran.stderr
    ran = run(OLDER, "release", str(job.write()))
    assert ran.returncode == 2
    assert "cannot write for" in ran.stderr
    del job.settings["publish"]["storage_version"]
    ran = run(OLDER, "release", str(job.write()))
    assert ran.returncode == 1
    assert "was written by a newer DuckDB" in ran.stderr
    assert answer(NEWER, "verify", job)["problems"] == []


@pytest.mark.needs("duckdb15")
def test_the_page_of_file_versions_says_what_the_older_one_says(job: Job) -> None:
    """A file without an option, the message, and the copy that helps."""
    page = (ROOT / "docs/how-to/duckdb-versions.md").read_text("utf-8")
    source, kept = job.folder / "warehouse.duckdb", job.folder / "kept.duckdb"
    source.rename(kept)
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{kept}' AS kept (READ_ONLY); ATTACH '{source}' AS source")
        connection.execute("COPY FROM DATABASE kept TO source")
    ran = run(OLDER, "search", str(job.write()))
    assert ran.returncode == 1
    [block] = re.findall(r"\n\n((?:    \S.*\n)+)", page)
    said = " ".join(block.split()).replace("clinic.duckdb", str(source))
    assert re.sub(r"\d+", "N", " ".join(ran.stderr.split())) == re.sub(r"\d+", "N", said)
    [copied] = re.findall(r"(?s)with duckdb.connect\(\) as connection:\n.*?TO after\"\)\n", page)
    source.rename(job.folder / "before.duckdb")
    for name, file in (("clinic.duckdb", job.folder / "before.duckdb"), ("clinic15.duckdb", source)):
        copied = copied.replace(f"'{name}'", f"'{file}'")
    exec(copied, {"duckdb": duckdb})
    answer(OLDER, "search", job)
