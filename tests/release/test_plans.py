"""What rollback and erase would do, as steps: the ones that they perform; showing them writes nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from qblock.errors import InputError, Refused
from qblock.ledger.history import history
from qblock.release import erase, rollback
from qblock.release.apply import plan
from qblock.release.job import Step
from qblock.release.log import Entry, Reporter
from qblock.release.run import Run
from qblock.releases import Release
from qblock.results.release import Planned

from .jobs import ATTRIBUTES, Job


def steps_of(entries: list[Entry]) -> list[str]:
    """The steps that a run said, in their order."""
    return list(dict.fromkeys(entry.step for entry in entries if entry.step is not None))


def names(made: Planned) -> list[str]:
    return [step.step for step in made.steps]


@pytest.mark.either_engine
def test_a_rollback_performs_its_plan(job: Job) -> None:
    job.begin()
    job.run(force=True)
    made = Release(job.spec).plan_rollback(1)
    entries: list[Entry] = []
    assert rollback.rollback(job.spec, 1, reporter=Reporter(entries=entries.append)).status == "rolled_back"
    assert steps_of(entries) == names(made)
    entries.clear()
    assert rollback.rollback(job.spec, 1, reporter=Reporter(entries=entries.append)).status == "unchanged"
    assert steps_of(entries) == names(made)[:-1]


@pytest.mark.either_engine
@pytest.mark.parametrize("now", [False, True])
def test_an_erasure_performs_its_plan(job: Job, now: bool) -> None:
    job.set(entity="name", attributes=ATTRIBUTES).begin()
    made = Release(job.spec).plan_erase(["person 1"], now=now)
    entries: list[Entry] = []
    erase.erase(job.spec, ["person 1"], now=now, reporter=Reporter(entries=entries.append))
    said = steps_of(entries)
    own = [name for name in said if name in names(made)]
    # Between the last two it is the release that speaks.
    assert own == names(made)
    assert ("copy_version" in said) == now


@pytest.mark.either_engine
def test_plans_write_nothing(job: Job, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from qblock.cli import main

    job.set(entity="name", attributes=ATTRIBUTES).begin()
    path, before = job.write(), history(job.spec)
    for command in (["rollback", str(path), "1"], ["erase", str(path), "person 1", "--now"]):
        for more in ([], ["--json"]):
            monkeypatch.setattr("sys.argv", ["qblock", *command, "--plan", *more])
            with pytest.raises(SystemExit) as ended:
                main()
            assert not ended.value.code
        shown, _, answer = capsys.readouterr().out.partition("{")
        steps = json.loads("{" + answer)["steps"]
        assert all(f"{number:2}." in shown for number in range(1, len(steps) + 1))
        assert [step["step"] for step in steps][:2] == ["lock", "upgrade_ledger"]
        assert "person 1" not in shown + answer
    assert history(job.spec) | {"age_seconds": None} == before | {"age_seconds": None}


def test_who_may_not_erase_is_told_by_the_plan_too(job: Job) -> None:
    with pytest.raises(InputError, match="people can withdraw only where"):
        Release(job.spec).plan_erase(["person 1"])
    with pytest.raises(InputError, match="nobody is named"):
        Release(job.spec).plan_erase([])


class Seen:
    """A context that remembers what it was left with."""

    error: BaseException | None = None

    def __enter__(self) -> Seen:
        return self

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> None:
        self.error = error


@pytest.mark.either_engine
@pytest.mark.parametrize("closing", [None, OSError("a full disk")])
def test_what_is_open_is_told_why_it_is_left(job: Job, closing: Exception | None) -> None:
    job.begin()
    seen, recorded = Seen(), []

    def close(error: BaseException | None) -> None:
        if closing is not None:
            raise closing

    class Broken(Step):
        def describe(self) -> str:
            return "Breaks."

        def perform(self, run: Run) -> None:
            run.transaction.push(lambda _, error, trace: close(error))  # type: ignore[arg-type,return-value]
            run.transaction.enter_context(seen)
            run.ledger_ready = True
            raise KeyboardInterrupt

    class Noting(Run):
        def record_failure(self, error: BaseException) -> None:
            recorded.append(error)

    with pytest.raises(KeyboardInterrupt if closing is None else OSError):
        Noting(replace(plan(job.spec), steps=(Broken(),))).perform()
    assert isinstance(seen.error, KeyboardInterrupt)
    assert [type(error) for error in recorded] == [KeyboardInterrupt]


@pytest.mark.either_engine
def test_a_withdrawal_is_recorded_whatever_is_wrong_with_the_target(job: Job) -> None:
    job.set(entity="name", attributes=ATTRIBUTES).begin()
    # Newcomers are to wait, and the spec says for fewer than its models need.
    job.set(versions={"on_refusal": "hold_back", "cohort": 1})
    with pytest.raises(InputError, match="cohort"):
        job.run()
    assert erase.erase(job.spec, ["person 1"]).status == "queued"


@pytest.mark.either_engine
def test_a_spec_of_another_source_leaves_the_chain_alone(job: Job) -> None:
    job.set(entity="name", attributes=ATTRIBUTES).begin()
    before = history(job.spec)["ledger_head"]
    job.set(publish={**job.settings["publish"], "view": "another"})
    with pytest.raises(Refused, match="One release has one source and one view"):
        erase.erase(job.spec, ["person 1"])
    assert history(job.spec)["ledger_head"] == before
