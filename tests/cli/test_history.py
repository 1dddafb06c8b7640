"""What `history` says of a release: how old it is, how the margin shrinks, and how each node was chosen."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from release.jobs import Job, MakeJob

from qblock.cli.app import run
from qblock.errors import Refused
from qblock.ledger import events
from qblock.ledger.history import history
from qblock.release.rollback import rollback
from qblock.release.run import NOT_PROTECTED

pytestmark = pytest.mark.either_engine

FLU = "INSERT INTO people VALUES ('new', '14853', 49, 'cancer', 'A')"


def told(job: Job, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(["history", str(job.spec.path)]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_the_room_of_each_version_and_its_change(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    job.set(versions={"joint": "none"}, search={"node": [1, 2]})
    job.run()
    job.change("DELETE FROM people WHERE name = 'person 0'")
    job.run()
    found = history(job.spec)
    trend = [
        (g["version"], g["asked"], g["satisfied"], g["margin"]) for g in found["margin_trend"] if g["parameter"] == "k"
    ]
    assert [(v, a, r) for v, a, r, _ in trend] == [(1, "3", "4"), (2, "3", "3")]
    assert [margin for *_, margin in trend] == pytest.approx([1 / 3, 0])
    assert "release" not in found["margin_trend"][0]
    assert "2 k_anonymity k=3 3 +0.0% -33.3%" in told(job, capsys)
    json.dumps(found)
    # Another k is another guarantee: its margin is not compared with that of the first one.
    job.set(privacy=[{"k_anonymity": {"k": 2}}])
    job.run()
    assert "3 k_anonymity k=2 3 +50.0% -" in told(job, capsys)


def test_a_release_that_is_older_than_the_spec_allows(
    job: Job, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job.set(versions={"stale_after": "2d"})
    job.run()
    found = history(job.spec)
    assert found["stale"] is False
    assert "STALE" not in told(job, capsys)

    class Past(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) - timedelta(days=3)

    with monkeypatch.context() as patched:
        patched.setattr(events, "datetime", Past)
        job.run(force=True)
    found = history(job.spec)
    assert (found["current"], found["stale"]) == (2, True)
    assert 3 * 86400 <= found["age_seconds"] < 3 * 86400 + 3600
    assert "Readers see version 2, published 3 days" in (text := told(job, capsys))
    assert text.endswith("longer ago than the spec allows: STALE.")


def test_a_release_without_an_age_is_neither(job: Job) -> None:
    assert history(job.spec)["current"] is None
    job.run()
    assert history(job.spec)["stale"] is None
    assert history(job.spec)["age_seconds"] is not None


@pytest.mark.parametrize(
    ("search", "choice", "protected"),
    [
        ({}, "minimal", False),
        ({"choose_from": "sizes"}, "sizes", True),
        ({"node": [1, 2]}, "pinned", True),
    ],
)
def test_the_choice_of_the_node_is_stated_everywhere(
    job: Job, capsys: pytest.CaptureFixture[str], search: dict[str, Any], choice: str, protected: bool
) -> None:
    job.set(search=search, versions={"joint": "none"})
    assert run(["release", str(job.spec.path), "--json", "--quiet"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["choice"], result["protected"], NOT_PROTECTED in result["notes"]) == (
        choice,
        protected,
        not protected,
    )
    event = history(job.spec)["events"][-1]
    assert (event["choice"], event["protected"]) == (choice, protected)
    text = told(job, capsys)
    assert (f" {choice} * " in text, f" {choice} " in text) == (not protected, True)
    wording = "All guarantees hold. The level of detail itself can hint at sensitive values"
    assert text.count(f"* {wording} to someone who knows how qblock searches") == (not protected)
    assert (NOT_PROTECTED in text) is not protected
    job.set(search=search, versions={"joint": "none"}, suppression_limit=1)
    assert run(["release", str(job.spec.path), "--force", "--quiet"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert (f"Note: {NOT_PROTECTED}" in shown) is not protected
    assert run(["release", str(job.spec.path), "--force", "--quiet"]) == 0
    assert "Note: " not in " ".join(capsys.readouterr().out.split())
    if choice == "minimal":
        back = rollback(job.spec, 1)
        assert (back.choice, back.protected) == (choice, protected)


def test_a_node_chosen_by_sizes_that_fails_a_model_is_refused_whole(make_job: MakeJob) -> None:
    """The sizes choose a node that k_anonymity allows; another one would satisfy, and is not taken."""
    asked = [{"k_anonymity": {"k": 3}}, {"alpha_k_anonymity": {"alpha": 0.45, "k": 1}}]
    job = make_job(privacy=asked, search={"choose_from": "sizes"})
    with pytest.raises(Refused, match=r"chosen by block sizes alone, fails alpha_k_anonymity") as raised:
        job.run()
    event = history(job.spec)["events"][-1]
    assert (event["state"], event["version"], event["reason"]) == ("refused", None, str(raised.value))
    job.set(search={})
    assert job.run().choice == "minimal"


def test_suppression_by_sensitive_values_is_not_protected(make_job: MakeJob) -> None:
    """Which rows were left out tells which blocks failed, however the node was chosen."""
    asked = [{"k_anonymity": {"k": 3}}, {"alpha_k_anonymity": {"alpha": 0.5, "k": 1}}]
    job = make_job(privacy=asked, search={"node": [1, 2]}, suppression_limit=4)
    job.change("UPDATE people SET disease = 'viral' WHERE name = 'person 8'")
    result = job.run()
    assert (result.choice, result.suppressed > 0, result.protected) == ("pinned", True, False)
    assert history(job.spec)["events"][-1]["protected"] is False


def test_the_clock_of_the_ledger_is_utc(released: Job) -> None:
    recorded = datetime.fromisoformat(history(released.spec)["events"][-1]["recorded_at"])
    assert abs(datetime.now(UTC) - recorded) < timedelta(hours=1)


def test_a_run_is_a_line_and_the_reason_goes_on_below(
    job: Job, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    job.set(versions={"joint": "none"}, search={"node": [1, 2]})
    job.run()
    job.set(privacy=[{"k_anonymity": {"k": 500}}])
    with pytest.raises(Refused) as raised:
        job.run()
    events = history(job.spec)["events"]
    assert len(events) > len({event["run"] for event in events}) == 2
    assert run(["history", str(job.spec.path)]) == 0
    out = capsys.readouterr().out
    first, second = [line for line in out.splitlines() if line.startswith("20")]
    assert " 1        published " in first
    assert " refused " in second
    assert " 1,2 " in first
    below = out.split(second)[1].split("\n\n")[0]
    assert str(raised.value) in " ".join(below.split())
    assert max(map(len, (line.rstrip() for line in out.splitlines()))) <= 80
