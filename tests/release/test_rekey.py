"""`qblock ledger rekey`: a new key of the crosswalk through the job, beside other releases, and stopped halfway."""

from __future__ import annotations

import json
from typing import Any

import pytest
import sqlalchemy as sa

from qblock.cli.app import run
from qblock.errors import Busy, InputError
from qblock.ledger.history import history
from qblock.ledger.stores import store_of
from qblock.release import rekey as module
from qblock.release.erase import erase
from qblock.release.rekey import rekey
from qblock.release.verify import verify
from qblock.versions import conversion
from qblock.versions.crosswalk import open_crosswalk
from release.jobs import Job, MakeJob
from release.test_waiting import HOLD_BACK, events, insert, people_job, shown

pytestmark = pytest.mark.either_engine

PEOPLE = " ".join(f"{block}{i}:{block}:{'ab'[i % 2]}" for block in "qr" for i in range(6))


def rows_of(job: Job) -> list[dict[str, Any]]:
    """The crosswalk's rows, by version and digest."""
    with open_crosswalk(store_of(job.spec)) as crosswalk:
        t = crosswalk.tables.row
        found = list(crosswalk.own.fetch(sa.select(t).order_by(t.c.version, t.c.entity)).to_pylist())
    return found


def test_a_release_goes_on_with_its_new_key_as_with_the_old_one(make_job: MakeJob) -> None:
    job = people_job(make_job, PEOPLE, **HOLD_BACK)
    job.begin()
    before = rows_of(job)
    job.change("DELETE FROM people WHERE id = 'q0'")
    found = rekey(store_of(job.spec))
    assert (found.keys, dict(found.releases)) == (2, {"people": 12})
    after = rows_of(job)
    assert len(after) == len(before)
    assert not {row["entity"] for row in after} & {row["entity"] for row in before}
    # Who is gone is known under the new key as well: nobody comes in their place, and they alone are missed.
    assert job.run().waiting == {"leavers": 1}
    insert(job, "q0:q:a")
    assert job.run().status == "unchanged"
    insert(job, "n1:q:a n2:q:b")
    assert (job.run().status, len(shown(job).split())) == ("published", 14)
    assert not verify(job.spec).problems
    (event,) = events(job, "rekeyed")
    assert (event["version"], event["detail"]) == (None, {"key": 2, "people": 12})
    assert "new key" in event["reason"]


def test_the_event_holds_no_secret(make_job: MakeJob) -> None:
    job = people_job(make_job, PEOPLE)
    job.begin()
    rekey(store_of(job.spec))
    with open_crosswalk(store_of(job.spec)) as crosswalk:
        secrets = crosswalk.own.fetch(sa.select(crosswalk.tables.key.c.secret))["secret"].to_pylist()
    assert len(set(secrets)) == 2
    told = json.dumps(history(job.spec))
    assert not [secret for secret in secrets if secret in told]
    with store_of(job.spec).read() as reader:
        assert not reader.verify_chain("people")


def test_people_are_found_by_name_after_a_new_key(make_job: MakeJob) -> None:
    job = people_job(make_job, PEOPLE)
    job.begin()
    rekey(store_of(job.spec))
    found = erase(job.spec, ["q0", "q1"])
    assert (found.asked, found.shown) == (2, 2)
    assert job.run().status == "published"
    assert len(shown(job).split()) == 10
    rekey(store_of(job.spec))
    # Whoever left stays out, under yet another key.
    assert job.run().status == "unchanged"


def test_all_releases_of_a_place_move_at_once(make_job: MakeJob) -> None:
    job = people_job(make_job, PEOPLE)
    job.begin()
    publish, versions = job.settings["publish"], job.settings["versions"]
    job.set(release="second", publish={**publish, "view": "second"}, versions={**versions, "audience": ["people"]})
    if job.engine == "duckdb":
        job.settings["publish"]["url"] = f"duckdb:///{job.folder}/second.duckdb"
    job.run()
    assert dict(rekey(store_of(job.spec)).releases) == {"people": 12, "second": 12}
    assert len(events(job, "rekeyed")) == 1
    assert job.run().status == "unchanged"
    job.set(release="people", publish=publish, versions=versions)
    assert len(events(job, "rekeyed")) == 1
    assert job.run().status == "unchanged"


def test_nothing_is_rekeyed_while_any_release_runs(make_job: MakeJob) -> None:
    job = people_job(make_job, PEOPLE)
    job.begin()
    before = rows_of(job)
    place = store_of(job.spec)
    # A release that no ledger knows yet runs as well.
    for name in ("people", "new_one"):
        with (
            place.lock(name),
            pytest.raises(Busy, match=rf"another run of release {name} is in progress \(.*process"),
        ):
            rekey(place)
    assert rows_of(job) == before
    assert not events(job, "rekeyed")
    rekey(place)


def test_no_release_begins_while_the_key_is_changed(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    job = people_job(make_job, PEOPLE)
    job.begin()
    place = store_of(job.spec)
    said: list[str] = []

    def meanwhile(crosswalk: Any) -> Any:
        with pytest.raises(Busy, match="key of the crosswalk is being changed"), place.lock("another"):
            pass
        said.append("tried")
        return original(crosswalk)

    original = module.new_key
    monkeypatch.setattr(module, "new_key", meanwhile)
    rekey(place)
    assert said == ["tried"]
    with place.lock("another"):
        pass


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
@pytest.mark.parametrize("finish", ["run", "again"])
def test_a_change_that_was_killed_before_its_event_is_written_is_finished(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch, finish: str
) -> None:
    job = people_job(make_job, PEOPLE)
    job.begin()
    with monkeypatch.context() as patched:
        patched.setattr(conversion, "record", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            rekey(store_of(job.spec))
    assert not events(job, "rekeyed")
    if finish == "again":
        rekey(store_of(job.spec))
        assert [event["detail"]["key"] for event in events(job, "rekeyed")] == [2, 3]
    assert job.run().status == "unchanged"
    assert events(job, "rekeyed")[0]["detail"] == {"key": 2, "people": 12}
    # Killed after the event and before what is owed was dropped: twice is once.
    number = len(events(job, "rekeyed"))
    with open_crosswalk(store_of(job.spec)) as crosswalk:
        crosswalk.write(sa.insert(crosswalk.tables.rekeyed).values(release="people", key=2, people=12), "people")
    assert job.run().status == "unchanged"
    assert len(events(job, "rekeyed")) == number


def test_a_change_that_fails_halfway_changes_nothing(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    job = people_job(make_job, PEOPLE)
    job.begin()
    before = rows_of(job)

    def half(crosswalk: Any) -> Any:
        original(crosswalk)
        raise ZeroDivisionError

    original = module.new_key
    with monkeypatch.context() as patched:
        patched.setattr(module, "new_key", half)
        with pytest.raises(ZeroDivisionError):
            rekey(store_of(job.spec))
    assert rows_of(job) == before
    assert job.run().status == "unchanged"
    assert not events(job, "rekeyed")


def test_without_a_crosswalk_there_is_no_key_to_change(make_job: MakeJob) -> None:
    job = people_job(make_job, PEOPLE)
    with pytest.raises(InputError, match="there is no crosswalk here"):
        rekey(store_of(job.spec))
    assert not (job.folder / "qblock").exists()


def test_the_command_says_what_was_moved(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = people_job(make_job, PEOPLE)
    assert run(["ledger", "rekey", str(job.spec.path)]) == 2
    job.begin()
    capsys.readouterr()
    assert run(["ledger", "rekey", str(job.spec.path)]) == 0
    told = capsys.readouterr().out
    assert "Release people: 12 people moved to it." in told
    assert run(["ledger", "rekey", str(job.spec.path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["status"], answer["keys"], answer["releases"]) == ("rekeyed", 3, {"people": 12})
    with store_of(job.spec).lock("people"):
        assert run(["ledger", "rekey", str(job.spec.path)]) == 4
    assert "another run of release people" in capsys.readouterr().err
