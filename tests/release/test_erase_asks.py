"""Before people leave at once, whoever takes them out is told how many share their joint cells, and asked."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from typing import Any

import pytest

from qblock.cli.app import run
from qblock.errors import Refused
from qblock.ledger.history import history
from qblock.release.erase import erase
from qblock.release.log import Entry, Reporter
from qblock.releases import Release
from qblock.results.release import Sharing
from release.jobs import Job, MakeJob
from release.test_steady_stopped import stopped
from release.test_waiting import HOLD_BACK, events, insert, people_job, shown

pytestmark = pytest.mark.either_engine

WAYS: dict[str, dict[str, Any]] = {"lags": HOLD_BACK, "does not lag": {"on_refusal": "refuse"}}
FOUND = {"leaving": 1, "companions": 1, "cells": 1, "staying": 4}
SAID = "1 person withdraws; 1 other person shares their joint cell, and would leave with them; 4 people would stay"


def two_versions(make_job: MakeJob, way: str = "lags") -> Job:
    """t and u have a joint cell of their own, in the block of p1 and p2."""
    job = people_job(make_job, "p1:q:b p2:q:c r1:r:a r2:r:b", **WAYS[way])
    job.begin()
    insert(job, "t:q:a u:q:b")
    assert job.run().version == 2
    return job


class Typed(io.StringIO):
    """Standard input at a terminal."""

    def isatty(self) -> bool:
        return True


def at_terminal(monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    monkeypatch.setattr("sys.stdin", Typed(typed))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)


@pytest.mark.parametrize("way", WAYS)
def test_a_plan_counts_what_an_erasure_does(make_job: MakeJob, way: str) -> None:
    job = two_versions(make_job, way)
    before = history(job.spec)["ledger_head"]
    told: list[Sharing] = []
    made = Release(job.spec).plan_erase(["t"], now=True)
    assert made.to_dict()["sharing"] == FOUND
    assert SAID in made.notes
    assert history(job.spec)["ledger_head"] == before
    assert "sharing" not in Release(job.spec).plan_erase(["t"]).to_dict()
    entries: list[Entry] = []
    found = erase(
        job.spec, ["t"], now=True, agree=lambda one: not told.append(one), reporter=Reporter(entries=entries.append)
    )
    assert (found.status, found.companions, found.sharing) == ("erased", 1, Sharing(**FOUND))
    assert told == [found.sharing]
    assert SAID in [entry.message for entry in entries]
    assert len(job.published()) == FOUND["staying"]
    assert found.to_dict()["sharing"] == FOUND
    assert events(job, "erased")[-1]["detail"] == {"people": 1, "companions": 1}
    # Named again: they are out, and nobody else goes.
    again = erase(job.spec, ["t"], now=True)
    assert again.sharing == Sharing(leaving=0, companions=0, cells=0, staying=4)


@pytest.mark.parametrize("way", WAYS)
def test_whoever_is_not_agreed_to_stays(make_job: MakeJob, way: str) -> None:
    job = two_versions(make_job, way)
    before, rows = history(job.spec)["ledger_head"], shown(job)
    with pytest.raises(Refused, match="nobody was taken out, and nothing was changed"):
        erase(job.spec, ["t"], now=True, agree=lambda _: False)
    assert (history(job.spec)["ledger_head"], shown(job)) == (before, rows)
    assert job.run().status == "unchanged"
    assert (shown(job), job.run().waiting) == (rows, {})


def test_who_is_in_several_cells_and_who_was_never_shown(make_job: MakeJob) -> None:
    job = two_versions(make_job)
    insert(job, "n:r:a")
    found = Release(job.spec).plan_erase(["t", "p1", "p2", "n"], now=True)
    assert found.sharing == Sharing(leaving=4, companions=1, cells=2, staying=2)
    assert Release(job.spec).plan_erase(["n"], now=True).sharing == Sharing(leaving=1, companions=0, cells=0, staying=6)
    out = erase(job.spec, ["n"])
    assert (out.status, out.shown, out.notes) == ("erased", 0, ("no version shows them, and none will",))


def test_a_batch_that_no_version_has_shown_is_counted(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b", **HOLD_BACK)
    job.begin()
    insert(job, "t:q:a u:q:b")
    stopped(job, monkeypatch)
    found = erase(job.spec, ["t"], now=True)
    assert (found.sharing, found.companions) == (Sharing(leaving=1, companions=1, cells=1, staying=2), 1)
    assert (job.run().status, shown(job)) == ("unchanged", "q:a q:b")


def test_before_a_first_version_nobody_shares_anything(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b", **HOLD_BACK)
    assert Release(job.spec).plan_erase(["p1"], now=True).sharing is None
    found = erase(job.spec, ["p1"], now=True)
    assert (found.status, found.sharing) == ("erased", Sharing(leaving=1, companions=0, cells=0, staying=0))


@pytest.mark.parametrize("typed", ["\n", "n\n", "no\n", "yess\n", ""])
def test_whatever_is_no_yes_is_a_no(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str
) -> None:
    job = two_versions(make_job)
    rows = shown(job)
    at_terminal(monkeypatch, typed)
    assert run(["erase", str(job.spec.path), "t", "--now", "--json"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.replace("\n", " ").startswith(f"qblock: {SAID} Take them out at once? [y/N] ")
    assert "you did not agree" in err
    assert shown(job) == rows


def test_without_a_terminal_it_takes_a_yes(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = two_versions(make_job)
    rows, path = shown(job), str(job.spec.path)
    assert run(["erase", path, "t", "--now"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "add --yes" in err
    assert "--plan says how many" in err
    assert shown(job) == rows
    assert run(["erase", path, "t", "--now", "--plan"]) == 0
    assert SAID in " ".join(capsys.readouterr().out.split())
    assert shown(job) == rows
    assert run(["erase", path, "t", "--now", "--yes", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["sharing"] == FOUND
    assert err.startswith(f"qblock: {SAID}\n")
    assert shown(job) == "q:b q:c r:a r:b"
    # To queue somebody asks for nothing.
    assert run(["erase", path, "p1"]) == 0


def test_at_a_terminal_the_question_is_not_in_the_answer(make_job: MakeJob) -> None:
    job = two_versions(make_job)
    ours, theirs = pty.openpty()
    os.write(ours, b"yes\n")
    code = "from qblock.cli import main; main()"
    command = [sys.executable, "-c", code, "erase", str(job.spec.path), "t", "--now", "--json"]
    ran = subprocess.run(command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, timeout=300, check=True)
    os.close(theirs)
    said = os.read(ours, 65536).decode()
    os.close(ours)
    assert "Take them out at once? [y/N]" in said
    assert json.loads(ran.stdout)["sharing"] == FOUND
    assert shown(job) == "q:b q:c r:a r:b"
