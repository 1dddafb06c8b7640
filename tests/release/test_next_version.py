"""What `plan` says of the next version: levels, and by sizes whether one would be tried. It writes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from qblock.cli.app import run
from qblock.errors import Refused
from qblock.ledger.history import history
from qblock.ledger.stores import store_of
from qblock.release.preview import preview
from qblock.releases import Release
from qblock.versions.crosswalk import open_crosswalk
from release.jobs import Job, MakeJob
from release.test_bundles import show, visits, visits_job
from release.test_steady_job import SIXTEEN, change, delete
from release.test_waiting import HOLD_BACK, insert, people_job

pytestmark = pytest.mark.either_engine

FOUR = "p1:q:a p2:q:b r1:r:a r2:r:b"


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a fifth of so few people may come."""
    monkeypatch.setattr("qblock.versions.people.ONE_IN", 0)


def changes(job: Job) -> dict[str, Any]:
    found = preview(job.spec).to_dict()["changes"]
    assert found is not None
    return dict(found)


def state(job: Job) -> list[Any]:
    """Everything that the crosswalk keeps, but for when."""
    with open_crosswalk(store_of(job.spec)) as crosswalk:
        t = crosswalk.tables
        return [
            sorted(map(repr, crosswalk.own.fetch(table.select()).to_pylist()))
            for table in (t.version, t.row, t.apart, t.frozen, t.shown, t.waiting, t.steady, t.turnover)
        ]


def test_newcomers_are_counted_against_the_cohorts_of_their_blocks(make_job: MakeJob) -> None:
    job = people_job(make_job, FOUR, on_refusal="hold_back", cohort=3).set(search={"node": [0]})
    job.begin()
    found = changes(job)
    assert (found["newcomers"], found["tried"]) == (0, False)
    assert found["why"] == "no version would be tried: nobody came, left or changed"
    insert(job, "t:q:a u:r:a v:r:b")
    found = changes(job)
    assert (found["newcomers"], found["blocks"], found["closing"], found["cohorts"]) == (3, 2, 0, [3, 3])
    assert found["why"] == ("no batch is full: 3 newcomers in 2 blocks (a batch needs 3) wait")
    assert job.run().status == "unchanged"
    insert(job, "w:r:b")
    found = changes(job)
    assert (found["newcomers"], found["closing"], found["closing_blocks"], found["tried"]) == (4, 3, 1, True)
    assert "batches of 3 newcomers in 1 block close; whether they pass depends on values" in found["why"]
    assert job.run().status == "published"
    assert changes(job)["closing"] == 0


@pytest.mark.parametrize(("values", "status"), [("aa", "unchanged"), ("ab", "published")])
def test_no_value_of_who_waits_is_looked_at(make_job: MakeJob, values: str, status: str) -> None:
    """Newcomers who all have one value, and fail, look like those who pass."""
    job = people_job(make_job, FOUR, **HOLD_BACK)
    job.begin()
    insert(job, f"t:q:{values[0]} u:q:{values[1]}")
    found = changes(job)
    assert (found.pop("newcomers"), found.pop("blocks"), found.pop("tried")) == (2, 1, True)
    assert found.pop("why") == (
        "by sizes alone, a new version would be tried: batches of 2 newcomers in 1 block close; whether they pass "
        "depends on values, which plan does not read"
    )
    assert {name: n for name, n in found.items() if n} == {"closing": 2, "closing_blocks": 1, "looked_at": 1}
    assert job.run().status == status


def test_leavers_and_changed_values_are_counted(make_job: MakeJob) -> None:
    job = people_job(make_job, SIXTEEN, **HOLD_BACK)
    job.begin()
    delete(job, "p00")
    change(job, "c", "p02", "p03")
    found = changes(job)
    assert [found[name] for name in ("leavers", "changed", "whole_cells", "leaver_cells", "changed_cells")] == [
        1,
        2,
        0,
        0,
        0,
    ]
    assert found["why"] == "no batch is full: 1 leaver and 2 changed values wait"
    assert job.run().status == "unchanged"
    delete(job, "p01", "p04", "p05")
    found = changes(job)
    assert (found["leavers"], found["leaver_cells"], found["tried"]) == (4, 1, True)
    assert job.run().status == "published"


def test_changed_values_may_be_enough(make_job: MakeJob) -> None:
    job = people_job(make_job, SIXTEEN, **HOLD_BACK)
    job.begin()
    change(job, "c", "p02", "p03")
    change(job, "d", "p04", "p05")
    found = changes(job)
    assert (found["changed"], found["changed_cells"], found["tried"]) == (4, 1, True)
    assert job.run().status == "published"


def test_a_joint_cell_that_everybody_left_goes_whole_and_the_last_one_stays(make_job: MakeJob) -> None:
    job = people_job(make_job, FOUR, **HOLD_BACK).set(search={"node": [0]})
    job.begin()
    delete(job, "r1", "r2")
    found = changes(job)
    assert (found["whole_cells"], found["tried"]) == (1, True)
    insert(job, "z:q:a")  # somebody is in the source
    delete(job, "p1", "p2")
    assert changes(job)["whole_cells"] == 1


def test_a_plan_writes_nothing(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = people_job(make_job, FOUR, **HOLD_BACK)
    job.begin()
    insert(job, "t:q:a u:q:a")
    path, before = str(job.write()), (state(job), history(job.spec)["events"])
    assert run(["plan", path, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["levels"] == {"version": 1, "current": {"block": 0}, "next": {"block": 0}}
    assert run(["plan", path]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Levels: block 0, as version 1" in out
    assert "Changes: by sizes alone, a new version would be tried: batches of 2 newcomers in 1 block" in out
    assert (state(job), history(job.spec)["events"]) == before
    assert "t:q" not in out


def test_people_with_several_rows_are_counted_by_their_units(make_job: MakeJob) -> None:
    first = "p1:q:ab p2:q:c p3:q:b p4:q:a r1:r:a r2:r:b r3:r:c r4:r:ab"
    job = visits_job(make_job, visits(first))
    job.begin()
    show(job, visits(f"{first.replace('p2:q:c', 'p2:q:d')} n1:q:ab n2:q:c n3:q:ab n4:q:b p1:r:a"))
    found = changes(job)
    assert (found["newcomers"], found["blocks"], found["closing"], found["changed"]) == (5, 2, 4, 1)


def test_levels_of_a_release_that_is_searched_pinned_or_refused(make_job: MakeJob) -> None:
    job = people_job(make_job, FOUR)
    job.begin()
    made = Release(job.spec).plan()
    assert made.levels is not None
    assert str(made.levels) == "a search chooses them; version 1 has block 0"
    assert made.changes is None
    job.set(search={"node": [1]})
    assert str(Release(job.spec).plan().levels) == "block 1 (version 1: 0)"


def test_what_a_run_refuses_before_its_search_the_plan_does(make_job: MakeJob) -> None:
    job = people_job(make_job, FOUR, **HOLD_BACK)
    assert "levels" not in preview(job.spec).to_dict()
    job.begin()
    job.set(search={"node": [1]})
    for statement, said in ((None, "all versions must have one node"), ("DELETE FROM people", "is empty")):
        if statement is not None:
            job.set(search={})
            job.change(statement)
        with pytest.raises(Refused, match=said) as planned:
            Release(job.spec).plan()
        with pytest.raises(Refused, match=said) as ran:
            job.run()
        assert str(planned.value) == str(ran.value)


def test_who_must_confirm_the_source_is_told(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    job = people_job(make_job, FOUR, **HOLD_BACK)
    job.begin()
    insert(job, "t:q:a u:q:b")
    monkeypatch.setattr("qblock.versions.people.ONE_IN", 5)
    found = changes(job)
    assert (found["closing"], found["tried"]) == (2, False)
    assert found["why"].startswith("a run would be refused: ")
    digest = found["why"].split("confirm: ")[1].split("}")[0]
    job.set(versions={**HOLD_BACK, "confirm": digest})
    assert changes(job)["tried"]


def test_another_spec_makes_a_version(make_job: MakeJob) -> None:
    job = people_job(make_job, FOUR, **HOLD_BACK)
    job.begin()
    job.set(privacy=[{"k_anonymity": {"k": 2}}])
    found = changes(job)
    assert found["tried"]
    assert found["why"].startswith("a new version would be tried, since the spec is not that of version 1")
