"""Where more than a fifth of the people went or came since the run before, somebody has to confirm the source."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from publish.test_publish_values import expected_digest

from qblock.cli.app import run
from qblock.errors import Refused
from qblock.ledger.stores import store_of
from qblock.release.erase import erase
from qblock.release.prechecks import TurnoverRefused, source_digest
from qblock.release.rekey import rekey
from qblock.search.run import open_task
from qblock.versions.crosswalk import open_crosswalk
from release.jobs import Job, MakeJob
from release.test_waiting import events, insert, people_job, shown

pytestmark = pytest.mark.either_engine

BY_BLOCK = {"cohort": "auto"}
TEN = " ".join(f"p{i}:q:{'ab'[i % 2]}" for i in range(10))


def delete(job: Job, *names: str) -> None:
    job.change(f"DELETE FROM people WHERE id IN ({', '.join(map(repr, names))})")


def outcome(job: Job) -> str:
    """What a run comes to that nobody has confirmed."""
    try:
        return job.run(confirm=False).status
    except TurnoverRefused:
        return "turnover"
    except Refused:
        return "refused"


def confirmed(job: Job) -> Job:
    """The job with a spec that confirms the source as it is."""
    with pytest.raises(TurnoverRefused) as raised:
        job.run(confirm=False)
    assert raised.value.confirm is not None
    versions = {**job.settings["versions"], "confirm": raised.value.confirm}
    return replace(job, settings={**job.settings, "versions": versions})


def kept(job: Job) -> dict[str, int]:
    """How many are kept in each state."""
    with open_crosswalk(store_of(job.spec)) as crosswalk:
        t = crosswalk.tables.turnover
        query = sa.select(t.c.state, sa.func.count().label("n")).where(t.c.release == job.spec.release)
        rows = crosswalk.own.fetch(query.group_by(t.c.state)).to_pylist()
    return {row["state"]: row["n"] for row in rows}


def test_an_entity_column_that_was_recoded_makes_nobody_new(make_job: MakeJob) -> None:
    job = people_job(make_job, TEN)
    job.begin()
    before = shown(job)
    job.change("UPDATE people SET id = id || '-new', value = value || 'x'")
    with pytest.raises(TurnoverRefused, match="10 of the 10 people in version 1 are gone and 10 are new") as raised:
        job.run(confirm=False)
    error = raised.value
    assert (error.exit_status, error.confirm, shown(job)) == (3, None, before)
    assert "no line confirms it" in str(error)
    assert "versions: {confirm" not in str(error)
    with open_task(job.spec) as task:
        digest = source_digest(task.source)
    with pytest.raises(TurnoverRefused, match="no line confirms it"):
        job.set(versions={"on_refusal": "refuse", "confirm": digest}).run(confirm=False)
    assert not events(job, "confirmed")


def test_most_of_the_people_may_be_confirmed_by_the_digest_of_the_source(make_job: MakeJob) -> None:
    job = people_job(make_job, TEN)
    job.begin()
    before = shown(job)
    job.change("UPDATE people SET id = id || '-new', value = value || 'x' WHERE id NOT IN ('p8', 'p9')")
    with pytest.raises(TurnoverRefused, match="8 of the 10 people in version 1 are gone") as raised:
        job.run(confirm=False)
    error = raised.value
    assert (error.exit_status, shown(job)) == (3, before)
    assert "and 8 are new (limit: 20 %)" in str(error)
    assert f"`versions: {{confirm: {error.confirm}}}`" in str(error)
    assert events(job, "refused")[-1]["reason"] == str(error)
    # It says the same again, until the digest of this source is named.
    for versions in ({}, {"confirm": "0" * 64}):
        with pytest.raises(TurnoverRefused) as again:
            job.set(versions=BY_BLOCK | versions).run(confirm=False)
        assert again.value.confirm == error.confirm
    job.change("UPDATE people SET value = 'bx' WHERE id = 'p0-new'")
    with pytest.raises(TurnoverRefused) as other:
        job.set(versions=BY_BLOCK | {"confirm": error.confirm}).run(confirm=False)
    assert other.value.confirm != error.confirm
    job.change("UPDATE people SET value = 'ax' WHERE id = 'p0-new'")
    found = job.run(confirm=False)
    assert (found.status, found.version) == ("published", 2)
    assert any("confirmed by versions.confirm" in note for note in found.notes)
    (event,) = events(job, "confirmed")
    assert (event["confirmed"], event["detail"]) == (error.confirm, {"shown": 10, "went": 8, "came": 8})
    assert events(job, "published")[-1]["confirmed"] == error.confirm
    assert events(job, "published")[0]["confirmed"] is None
    assert outcome(job) == "unchanged"


def test_exactly_a_fifth_may_go_or_come_and_one_more_may_not(make_job: MakeJob) -> None:
    job = people_job(make_job, TEN)
    job.begin()
    insert(job, "n1:q:a n2:q:b n3:q:a")
    assert outcome(job) == "turnover"  # 3 of 10
    delete(job, "n3")
    assert outcome(job) == "published"  # 2 of 10
    insert(job, "m1:q:a m2:q:b m3:q:b")
    assert outcome(job) == "turnover"  # 3 of 12
    delete(job, "m1", "m2", "m3", "p0", "p1", "p2")
    assert outcome(job) == "turnover"  # 3 of 12
    insert(job, "p2:q:a")
    assert outcome(job) == "published"  # 2 of 12
    assert len(shown(job).split()) == 10


def test_who_waits_counts_once_and_others_in_their_place_count_again(make_job: MakeJob) -> None:
    job = people_job(make_job, TEN, on_refusal="hold_back", cohort=9)
    job.begin()
    insert(job, "w1:q:a w2:q:a w3:q:a")
    assert [outcome(job), outcome(job)] == ["turnover", "turnover"]
    delete(job, "w3")
    assert (outcome(job), kept(job)) == ("unchanged", {"waiting": 2})
    insert(job, "w3:q:a w4:q:b")
    rekey(store_of(job.spec))
    assert (outcome(job), kept(job)) == ("unchanged", {"waiting": 4})
    delete(job, "w1", "w2", "w3", "w4")
    insert(job, "x1:q:a x2:q:a x3:q:a x4:q:b")
    # Four wait as before, and they are others: that they wait is confirmed once.
    assert confirmed(job).run(confirm=False).status == "unchanged"
    assert events(job, "confirmed")[-1]["detail"] == {"shown": 10, "went": 0, "came": 4}
    insert(job, "y1:q:a y2:q:b")
    assert (outcome(job), kept(job)) == ("unchanged", {"waiting": 6})


def test_a_release_that_is_refused_each_week_counts_each_week_once(make_job: MakeJob) -> None:
    job = people_job(make_job, TEN)
    job.begin()
    for week in range(3):
        insert(job, f"n{week}:q:c")
        delete(job, f"p{week}")
        assert outcome(job) == "refused"
    assert kept(job) == {"waiting": 3, "gone": 3}
    delete(job, "p3", "p4", "p5")
    assert outcome(job) == "turnover"


def test_who_withdrew_and_who_is_not_covered_does_not_count(make_job: MakeJob) -> None:
    job = people_job(make_job, TEN + " z1:z:a z2:z:a z3:z:b")
    (job.folder / "block.csv").write_text("block,all\nq,*\n")
    block = {"role": "quasi_identifier", "hierarchy": {"file": "block.csv"}, "uncovered": "quarantine"}
    job.set(attributes={**job.settings["attributes"], "block": block})
    assert job.begin().rows == 10
    assert kept(job) == {"waiting": 3}
    erase(job.spec, ["p0", "p1", "p2", "p3"])
    delete(job, "p0", "p1", "p2", "p3")
    assert outcome(job) == "published"
    assert (len(shown(job).split()), kept(job)) == (6, {"waiting": 3})


def test_who_moves_stays(make_job: MakeJob) -> None:
    job = people_job(make_job, TEN)
    job.begin()
    job.change("UPDATE people SET block = 'r'")
    assert outcome(job) == "unchanged"
    assert not kept(job)


def test_without_a_check_of_versions_together_nobody_is_counted(make_job: MakeJob) -> None:
    job = people_job(make_job, TEN, joint="none")
    job.begin()
    job.change("UPDATE people SET id = id || '-new', value = value || 'x'")
    assert outcome(job) == "published"


def test_a_run_that_stops_after_it_was_confirmed_goes_on_next_time(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = people_job(make_job, TEN)
    job.begin()
    insert(job, "n1:q:a n2:q:b n3:q:a")
    with monkeypatch.context() as patched:
        patched.setattr("qblock.release.apply.count_again", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            confirmed(job).run(confirm=False)
    assert len(events(job, "confirmed")) == 1
    assert (outcome(job), len(shown(job).split())) == ("published", 13)


def test_random_people_who_come_and_go_are_counted_as_by_hand(make_job: MakeJob) -> None:
    """Cohorts of three that may fail, and leavers who are carried, against sets of names."""
    job = people_job(make_job, TEN, on_refusal="hold_back", cohort=3)
    job.begin()
    rng = random.Random(20)
    here = {f"p{i}" for i in range(10)}
    ever, newest, waiting, gone = set(here), set(here), set(), set()
    found = []
    for step in range(7):
        going = set(rng.sample(sorted(here), rng.choice([0, 1, 2, 4])))
        coming = {f"n{step}_{i}" for i in range(rng.choice([0, 1, 2, 5]))}
        if going:
            delete(job, *going)
        insert(job, " ".join(f"{name}:q:{rng.choice('ab')}" for name in sorted(coming)))
        here = (here - going) | coming
        with open_crosswalk(store_of(job.spec)) as crosswalk:
            out = crosswalk.own.scalar(sa.select(sa.func.count()).select_from(crosswalk.tables.apart))
        if out:
            break  # a cohort failed or left, and its people do not count any more
        now_waiting, now_gone = here - ever, newest - here
        many = 5 * max(len(now_waiting - waiting), len(now_gone - gone)) > len(newest)
        result = outcome(job)
        assert (result == "turnover") == many, step
        found.append(result)
        if many:
            continue
        waiting, gone = now_waiting, now_gone
        if result == "published":
            entering = now_waiting if len(now_waiting) >= 3 else set()
            ever = ever | entering
            newest, waiting = newest | entering, now_waiting - entering
            assert len(shown(job).split()) == len(newest)
    assert "turnover" in found
    assert len(set(found)) > 1


def test_the_source_digest_is_of_what_is_let_in_in_no_order(make_job: MakeJob) -> None:
    job = people_job(make_job, TEN)
    rows = [tuple(item.split(":")) for item in TEN.split()]

    def digest() -> str:
        with open_task(job.spec) as task:
            return source_digest(task.source)

    expected = expected_digest(["id", "block", "value"], [list(row) for row in rows])
    assert digest() == expected
    job.change("CREATE TABLE other AS SELECT * FROM people ORDER BY value DESC, id DESC")
    job.change("DROP TABLE people")
    job.change("ALTER TABLE other RENAME TO people")
    assert digest() == expected
    job.change("UPDATE people SET id = 'p10' WHERE id = 'p9'")
    assert digest() != expected


def test_the_result_carries_what_to_confirm(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = people_job(make_job, TEN)
    job.begin()
    insert(job, "n1:q:a n2:q:b n3:q:a")
    file = job.folder / "result.json"
    assert run(["release", str(job.spec.path), "--json", "--quiet", "--result", str(file)]) == 3
    answers: list[dict[str, Any]] = [json.loads(capsys.readouterr().out), json.loads(file.read_text("utf-8"))]
    for answer in answers:
        assert (answer["status"], answer["exit_status"]) == ("refused", 3)
        assert answer["confirm"] in answer["reason"]
    job.set(versions=BY_BLOCK | {"confirm": answers[0]["confirm"]})
    assert run(["release", str(job.spec.path), "--json", "--quiet"]) == 0
