"""What rollback and erase would do, as steps: the ones that they perform; showing them writes nothing."""

from __future__ import annotations

import json

import pytest

from qblock.errors import InputError
from qblock.ledger.history import history
from qblock.release import erase, rollback
from qblock.release.log import Entry
from qblock.release.plan import Plan, plan_erase, plan_rollback
from qblock.releases.release import Release

from .jobs import ATTRIBUTES, Job


def steps_of(entries: list[Entry]) -> list[str]:
    """The steps that a run said, in their order."""
    return list(dict.fromkeys(entry.step for entry in entries if entry.step is not None))


def names(made: Plan) -> list[str]:
    return [step.name for step in made.steps]


@pytest.mark.either_engine
def test_a_rollback_performs_its_plan(job: Job) -> None:
    job.run()
    job.run(force=True)
    made = plan_rollback(job.spec, 1)
    entries: list[Entry] = []
    assert rollback.rollback(job.spec, 1, entries=entries.append).status == "rolled_back"
    assert steps_of(entries) == names(made)
    entries.clear()
    assert rollback.rollback(job.spec, 1, entries=entries.append).status == "unchanged"
    assert steps_of(entries) == names(made)[:-1]


@pytest.mark.either_engine
@pytest.mark.parametrize("now", [False, True])
def test_an_erasure_performs_its_plan(job: Job, now: bool) -> None:
    job.set(entity="name", attributes=ATTRIBUTES).run()
    made = plan_erase(job.spec, 1, now=now)
    entries: list[Entry] = []
    erase.erase(job.spec, ["person 1"], now=now, entries=entries.append)
    said = steps_of(entries)
    own = [name for name in said if name in names(made)]
    # Between the last two it is the release that speaks.
    assert own == names(made)
    assert ("copy_version" in said) == now


def test_plans_write_nothing(job: Job, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from qblock.cli import main

    job.set(entity="name", attributes=ATTRIBUTES).run()
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
    with pytest.raises(InputError, match="people can withdraw where"):
        Release(job.spec).plan_erase(["person 1"])
    with pytest.raises(InputError, match="nobody is named"):
        Release(job.spec).plan_erase([])
