"""Private state that is lost or older than what readers were shown: nothing is published over it."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from qblock.errors import Refused
from qblock.ledger.history import history
from qblock.ledger.stamps import Written
from qblock.release import apply
from qblock.release.apply import plan
from qblock.release.erase import erase
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from release.jobs import ATTRIBUTES, CopyJob, Job, MakeJob, new_job
from release.state import EVERYTHING, ask, crosswalk, kept, lose, restore, save

pytestmark = pytest.mark.either_engine

ENTITIES: dict[str, Any] = {"attributes": ATTRIBUTES, "entity": "name"}
STATE = "private state of release people is missing or older than what was shown"


def publish_twice(job: Job) -> None:
    """Versions 1 and 2 of the same people, and a backup of the time of version 1."""
    job.set(**ENTITIES)
    job.run()
    save(job)
    job.run(force=True)


@pytest.fixture
def twice(copy_job: CopyJob) -> Job:
    return copy_job("twice_with_a_backup", publish_twice)


def check_refused(job: Job, says: str) -> None:
    """Every command refuses again and again, says why, writes it down, and leaves what there is."""
    before, known, copies = job.published(), crosswalk(job), kept(job)
    for _ in range(2):
        with pytest.raises(Refused, match=STATE) as raised:
            job.run()
        assert re.search(says, str(raised.value))
    assert job.published() == before
    assert crosswalk(job) == known
    event = history(job.spec)["events"][-1]
    assert (event["state"], event["version"], event["reason"]) == ("refused", None, str(raised.value))
    for command in (lambda: rollback(job.spec, 1), lambda: erase(job.spec, ["person 0"])):
        with pytest.raises(Refused, match=STATE):
            command()
        assert STATE in history(job.spec)["events"][-1]["reason"]
    with pytest.raises(Refused, match=says) as raised:
        verify(job.spec).raise_problems()
    assert raised.value.exit_status == 3
    assert any(STATE in note for note in plan(job.spec).answer().notes)
    assert (job.published(), crosswalk(job), kept(job)) == (before, known, copies)


@pytest.mark.parametrize("parts", [["ledger"], ["ledger", "crosswalk"], ["everything"]], ids="+".join)
def test_lost_private_state_is_not_taken_for_a_first_version(twice: Job, parts: list[str]) -> None:
    lose(twice, EVERYTHING[twice.engine] if parts == ["everything"] else parts)
    with pytest.raises(Refused):
        verify(twice.spec).raise_problems()
    with pytest.raises(Refused, match=STATE):
        twice.run()
    check_refused(twice, "version 2 of release people, and the ledger knows no version of it")


def test_a_ledger_whose_events_alone_are_lost_is_no_new_one(twice: Job) -> None:
    for table in ("event", "guarantee", "pointer"):
        if twice.engine == "postgresql":
            twice.change(f"DELETE FROM qblock.{table}")
        else:
            with closing(
                sqlite3.connect(twice.folder / "qblock" / "ledger.sqlite", isolation_level=None)
            ) as connection:
                connection.execute(f"DELETE FROM {table}")
    with pytest.raises(Refused, match=STATE):
        twice.run()
    check_refused(twice, "of release people, and the ledger knows no version of it")


@pytest.mark.parametrize("parts", [["ledger"], ["ledger", "crosswalk"], ["everything"]], ids="+".join)
def test_private_state_from_an_older_backup_is_not_built_on(twice: Job, parts: list[str]) -> None:
    restore(twice, EVERYTHING[twice.engine] if parts == ["everything"] else parts)
    check_refused(twice, "version 2 of release people, and the ledger ends at version 1")


def test_a_crosswalk_that_is_newer_than_the_ledger_is_not_discarded(twice: Job) -> None:
    restore(twice, ["ledger"])
    if twice.engine == "duckdb":
        restore(twice, ["versions"])
        shutil.copy(twice.folder / "backup" / "release.duckdb", twice.target)
    else:
        twice.change("DROP TABLE qblock.v2_people")
    assert [version for version, _ in crosswalk(twice)] == [1, 2]
    check_refused(twice, "the crosswalk holds version 2, and the ledger ends at version 1")


def test_a_crosswalk_that_is_older_than_the_ledger_is_named(twice: Job) -> None:
    restore(twice, ["crosswalk"])
    check_refused(twice, "the ledger has shown version 2 checked together with others, and the crosswalk lacks it")


def test_a_lost_crosswalk_is_named_and_can_be_waived(twice: Job) -> None:
    lose(twice, ["crosswalk"])
    with pytest.raises(Refused, match="version 1, 2 checked together with others, and the crosswalk lacks it"):
        verify(twice.spec).raise_problems()
    with pytest.raises(Refused, match=r"If only the crosswalk is lost, write `versions: \{joint: none\}`"):
        twice.run()
    twice.set(versions={"joint": "none"})
    assert twice.run(force=True).status == "published"


@pytest.mark.parametrize("way", [lose, restore])
def test_people_who_have_left_are_not_shown_again_by_a_lost_crosswalk(twice: Job, way: Any) -> None:
    erase(twice.spec, ["person 0"], now=True)
    before = twice.published()
    assert len(before) < 12
    way(twice, ["crosswalk"])
    twice.set(versions={"joint": "none"})
    with pytest.raises(Refused, match="people have left, and the crosswalk, which says who, knows 0"):
        twice.run(force=True)
    assert twice.published() == before


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
def test_two_private_folders_do_not_publish_in_turn_to_one_target(make_job: MakeJob, tmp_path: Path) -> None:
    first = make_job(versions={"joint": "none"})
    first.run()
    (tmp_path / "second").mkdir()
    second = new_job("duckdb", tmp_path / "second", first.url, versions={"joint": "none"})
    second.settings["publish"]["url"] = first.settings["publish"]["url"]
    before = first.published()
    for _ in range(2):
        with pytest.raises(Refused, match="or another job publishes there"):
            second.run()
    assert first.published() == before
    assert first.run().status == "unchanged"
    first.run(force=True)
    # Known by number is not enough: it is another version 1.
    second.settings["publish"]["url"] = f"duckdb:///{tmp_path}/second.duckdb"
    second.run()
    shutil.copy(tmp_path / "qblock" / "versions" / "people" / "v1.duckdb", tmp_path / "second.duckdb")
    with pytest.raises(Refused, match="and that is not the version 1 that the ledger knows"):
        second.run()


def test_a_target_that_is_older_than_the_ledger_is_published_again(twice: Job) -> None:
    if twice.engine == "duckdb":
        shutil.copy(twice.folder / "backup" / "release.duckdb", twice.target)
    else:
        twice.change("UPDATE qblock.pointer SET version = 1")
    result = twice.run()
    assert (result.status, result.version) == ("published", 3)
    assert any("readers see version 1 of release people again" in note for note in result.notes)
    assert verify(twice.spec).problems == ()
    assert twice.run().status == "unchanged"


@pytest.mark.parametrize("engine_name", ["postgresql"], indirect=True)
def test_a_pointer_row_that_is_newer_than_the_ledger_is_named(twice: Job) -> None:
    twice.change("UPDATE qblock.pointer SET version = 3")
    with pytest.raises(Refused, match="the pointer row names version 3, and the ledger ends at version 2"):
        twice.run()
    twice.change("DELETE FROM qblock.pointer")
    assert twice.run().version == 3
    assert verify(twice.spec).problems == ()


def test_a_stamp_is_random_and_known_to_ledger_and_crosswalk(twice: Job) -> None:
    events = history(twice.spec)["events"]
    stamps = {event["version"]: event["stamp"] for event in events}
    assert all(re.fullmatch("[0-9a-f]{32}", stamp) for stamp in stamps.values())
    assert len(set(stamps.values())) == 2
    assert {(event["version"], event["stamp"]) for event in events} == set(stamps.items())
    assert crosswalk(twice) == sorted(stamps.items())
    begun = ask(twice, "ledger", "SELECT version, stamp, joint FROM {}begun ORDER BY version")
    assert begun == [(version, stamp, "episodes") for version, stamp in stamps.items()]
    if twice.engine == "duckdb":
        found = twice.query("SELECT comment FROM duckdb_views() WHERE NOT internal")
    else:
        found = twice.query("SELECT obj_description('qblock.v2_people'::regclass)")
    assert found == [(f"qblock release people version 2 stamp {stamps[2]}",)]


def test_a_version_of_the_same_number_and_another_stamp_is_unknown() -> None:
    """Two jobs, or a lost folder, may have begun one number twice: what the other one recorded is no leftover."""
    known = Written((), {(3, "a" * 32): "episodes"}, None)
    assert known.wrote(3, "a" * 32)
    assert not known.wrote(3, "a" * 32, staged=True)
    assert not known.wrote(3, "b" * 32)
    assert not known.wrote(2, "a" * 32)
    assert not known.wrote(3, None)


def test_what_a_run_has_begun_and_not_shown_is_taken_out_of_the_crosswalk(
    twice: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise Refused("the copy failed its check")

    with monkeypatch.context() as patch:
        patch.setattr(apply, "count_again", broken)
        with pytest.raises(Refused, match="the copy failed"):
            twice.run(force=True)
    assert [version for version, _ in crosswalk(twice)] == [1, 2, 3]
    assert twice.run(force=True).version == 4
    assert [version for version, _ in crosswalk(twice)] == [1, 2, 4]
    assert verify(twice.spec).problems == ()
