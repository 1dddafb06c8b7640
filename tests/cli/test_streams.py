"""Standard output and standard error that fail: a run goes on to its end, and to its own exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from release.jobs import Job

from cli.terminal import CLOSED, FULL, GONE, MAIN, qblock
from qblock.ledger.history import history

pytestmark = pytest.mark.either_engine

LOST = "the answer could not be written to standard output"
REFUSED = {"privacy": [{"k_anonymity": {"k": 13}}]}
NAMES = ["osoby_żółć", "人々"]


@pytest.mark.parametrize("err", [FULL, CLOSED, GONE])
def test_a_log_that_cannot_be_written_decides_nothing(job: Job, err: str) -> None:
    ended = qblock("release", job.spec.path, "--log-format", "json", "--json", err=err)
    assert (ended.status, ended.err) == (0, "")
    # Alone: nothing of the log is on standard output.
    assert json.loads(ended.out)["status"] == "published"
    assert len(job.published()) == 12


@pytest.mark.parametrize(("out", "err"), [("", FULL), (GONE, ""), (FULL, "")])
def test_a_refusal_stays_one_whoever_reads(job: Job, out: str, err: str) -> None:
    ended = qblock("release", job.set(**REFUSED).spec.path, "--json", "--quiet", out=out, err=err)
    assert ended.status == 3
    if not out:
        assert json.loads(ended.out)["status"] == "refused"
    if not err:
        first, *rest = ended.err.splitlines()
        assert "k_anonymity asks k 13" in first
        assert rest == ([f"qblock: {LOST}: No space left on device"] if out == FULL else [])


def test_a_search_without_an_answer_is_refused_though_nobody_reads_it(job: Job) -> None:
    assert qblock("search", job.set(**REFUSED).spec.path, "--json", out=GONE).status == 3


@pytest.mark.parametrize(("out", "why"), [(FULL, "No space left on device"), (CLOSED, "it is closed")])
def test_an_answer_that_is_lost_after_the_publication(job: Job, tmp_path: Path, out: str, why: str) -> None:
    file = tmp_path / "result.json"
    ended = qblock("release", job.spec.path, "--quiet", "--result", file, out=out)
    said = f"version 1 was published; {LOST}: {why}"
    assert (ended.status, ended.err) == (1, f"qblock: {said}\n")
    found = json.loads(file.read_text("utf-8"))
    assert (found["status"], found["version"], found["exit_status"]) == ("published", 1, 1)
    assert found["reason"] == said
    assert [event["state"] for event in history(job.spec)["events"]][-1] == "published"


def test_a_reader_of_the_answer_who_has_had_enough_is_no_fault(released: Job) -> None:
    for command in (["release", "--force", "--quiet"], ["release", "--force", "--json", "--quiet"], ["history"]):
        ended = qblock(command[0], released.spec.path, *command[1:], out=GONE)
        assert (ended.status, ended.err) == (0, "")
    assert history(released.spec)["current"] == 3


def test_a_command_that_publishes_nothing_says_nothing_of_it(released: Job) -> None:
    for command in (["history", str(released.spec.path)], ["--help"]):
        ended = qblock(*command, out=FULL)
        assert (ended.status, ended.err) == (1, f"qblock: {LOST}: No space left on device\n")


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_name_that_the_terminal_cannot_write_is_written_escaped(job: Job, encoding: str) -> None:
    name = NAMES[encoding == "ascii"]
    job.settings["publish"]["view"] = name
    path = job.spec.path
    ended = qblock("release", path, "--quiet", "-v", PYTHONIOENCODING=f"{encoding}:strict")
    assert ended.status == 0, ended.err
    assert "Published version 1 as" in ended.out
    escaped = name.encode(encoding, "backslashreplace").decode(encoding)
    assert escaped in "".join(ended.out.split())
    assert escaped in ended.err
    ended = qblock("release", path, "--json", "--quiet", PYTHONIOENCODING=encoding)
    assert (ended.status, name in json.loads(ended.out)["view"]) == (0, True)
    assert ended.out.isascii()


@pytest.mark.parametrize("err", [FULL, GONE])
def test_progress_that_cannot_be_written_decides_nothing(job: Job, err: str) -> None:
    code = f"from qblock.cli import output\noutput.EVERY_SECONDS = -1.0\n{MAIN}"
    assert "nodes decided" in qblock("search", job.spec.path, "--json", code=code).err
    ended = qblock("search", job.spec.path, "--json", code=code, err=err)
    assert (ended.status, ended.err) == (0, "")
    assert json.loads(ended.out)["chosen"]


def test_no_file_of_ours_becomes_a_standard_stream_that_was_closed(tmp_path: Path) -> None:
    code = (
        f"import os\nfrom qblock.cli import streams\nstreams.reserve()\nfile = os.open({str(tmp_path)!r}, os.O_RDONLY)"
    )
    ended = qblock(code=f"{code}\nos._exit(file)", out=CLOSED, err=CLOSED)
    assert ended.status > 2
