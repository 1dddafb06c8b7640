"""Newcomers that wait in cohorts and people who withdraw, through the job itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qblock.cli.app import run
from qblock.errors import InputError, Refused
from qblock.ledger.history import history
from qblock.release.erase import erase
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from release.jobs import Job, MakeJob

pytestmark = pytest.mark.either_engine

ATTRIBUTES = {"block": {"role": "quasi_identifier", "hierarchy": "suppress"}, "value": "sensitive"}
HOLD_BACK = {"on_refusal": "hold_back", "leave": 4, "cohort": 2}


def people_job(make_job: MakeJob, text: str, **versions: Any) -> Job:
    """A job over people given as `person:block:value ...`."""
    rows = [item.split(":") for item in text.split()]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("id", "block", "value"))}
    versions = {"on_refusal": "refuse", **versions}
    privacy = [{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}]
    return make_job(columns, attributes=ATTRIBUTES, privacy=privacy, entity="id", versions=versions)


def insert(job: Job, text: str) -> None:
    for item in text.split():
        person, block, value = item.split(":")
        job.change(f"INSERT INTO people VALUES ('{person}', '{block}', '{value}')")


def shown(job: Job) -> str:
    return " ".join(":".join(row) for row in sorted(job.published()))


def events(job: Job, state: str) -> list[dict[str, Any]]:
    return [event for event in history(job.spec)["events"] if event["state"] == state]


def test_a_cohort_that_fails_stays_out_and_the_run_goes_on(make_job: MakeJob) -> None:
    """The scenario of waiting until diverse: t and u have one value, w comes later with another one."""
    job = people_job(make_job, "p1:q:a p2:q:b", **HOLD_BACK)
    job.begin()
    insert(job, "t:q:a u:q:a")
    found = job.run()
    assert (found.status, shown(job), found.waiting) == ("unchanged", "q:a q:b", {"out": 2})
    assert any("stay out for good" in note for note in found.notes)
    insert(job, "w:q:c")
    found = job.run()
    assert (found.status, found.waiting) == ("unchanged", {"newcomers": 1, "out": 2})
    insert(job, "x:q:a")
    found = job.run()
    assert (found.status, found.version, shown(job)) == ("published", 2, "q:a q:a q:b q:c")
    assert not verify(job.spec).problems
    detail = events(job, "staged")[-1]["detail"]
    assert (detail["newcomers"], detail["batches_closed"]) == (2, {"newcomers": 1})
    assert history(job.spec)["events"][-1]["choice"] == events(job, "published")[0]["choice"]


def test_a_cohort_that_fails_does_not_keep_another_one_out(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b r1:r:a r2:r:b", **HOLD_BACK)
    job.begin()
    insert(job, "t:q:a u:q:a v:r:a w:r:b")
    found = job.run()
    assert (found.status, shown(job)) == ("published", "q:a q:b r:a r:a r:b r:b")


def test_a_cohort_that_fails_in_a_block_of_its_own_stays_out_too(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:1:a p2:1:b s1:3:a s2:3:b", **HOLD_BACK).set(search={"node": [0]})
    job.begin()
    insert(job, "t:2:a u:2:a x:1:a y:1:b")
    found = job.run()
    assert (found.status, shown(job)) == ("published", "1:a 1:a 1:b 1:b 3:a 3:b")
    insert(job, "w:2:c")
    assert job.run().status == "unchanged"
    insert(job, "z:2:a")
    assert shown(job).count("2:") == 0
    assert job.run().status == "published"
    assert sorted(shown(job).split())[4:6] == ["2:a", "2:c"]


def test_a_cohort_in_a_block_that_would_be_suppressed_stays_out(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:1:a p2:1:b s1:3:a s2:3:b", **HOLD_BACK)
    job.set(search={"node": [0]}, suppression_limit=2)
    job.begin()
    insert(job, "t:2:a u:2:a")
    assert job.run().status == "unchanged"
    insert(job, "n1:1:a n2:1:b w:2:c x:2:d")
    assert job.run().status == "published"
    assert shown(job) == "1:a 1:a 1:b 1:b 2:c 2:d 3:a 3:b"


def test_a_cohort_that_fails_beside_a_leaver_stays_out_as_well(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b p3:q:a", **HOLD_BACK)
    job.begin()
    job.change("DELETE FROM people WHERE id = 'p3'")
    insert(job, "t:q:a u:q:a")
    found = job.run()
    assert (found.status, found.waiting) == ("unchanged", {"leavers": 1, "out": 2})
    insert(job, "p3:q:a w:q:c")
    found = job.run()
    assert (found.status, found.waiting) == ("unchanged", {"newcomers": 1, "out": 2})


def test_newcomers_wait_until_they_are_enough_whatever_they_have(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b", on_refusal="hold_back", cohort=3)
    job.begin()
    insert(job, "t:q:a u:q:b")
    assert job.run().status == "unchanged"
    insert(job, "v:q:c")
    assert job.run().rows == 5


def test_who_waits_is_counted_by_why_for_whoever_runs_the_job(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b p3:r:a p4:r:b", **HOLD_BACK)
    assert job.run().waiting == {}
    insert(job, "t:q:a")
    job.change("UPDATE people SET block = 'r' WHERE id = 'p1'")
    said: list[str] = []
    found = job.run(log=said.append)
    assert (found.status, found.waiting) == ("unchanged", {"newcomers": 1, "moves": 1})
    assert found.to_dict()["waiting"] == found.waiting
    assert "version 1 stays: 1 newcomer in 1 block and 1 move wait (lag 40 % of the rows, oldest less th" in said[-1]
    (event,) = events(job, "waiting")
    assert (event["version"], event["detail"]["version"], event["detail"]["newcomers_waiting"]) == (None, 1, 1)
    assert event["reason"].startswith("1 newcomer in 1 block and 1 move wait")
    insert(job, "u:q:b")
    assert (job.run().waiting, shown(job)) == ({"moves": 1}, "q:a q:a q:b q:b r:a r:b")


def test_the_command_says_who_waits(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b p3:q:a p4:q:b p5:q:b", **HOLD_BACK)
    job.begin()
    assert run(["release", str(job.spec.path), "--quiet"]) == 0
    assert "Nothing to do" in capsys.readouterr().out
    insert(job, "t:q:a")
    assert run(["release", str(job.spec.path), "--quiet"]) == 0
    waits = "1 newcomer in 1 block waits (lag 17 % of the rows, oldest less than a minute)"
    assert f"Version 1 stays: {waits}; --force publishes again." in capsys.readouterr().out
    assert run(["release", str(job.spec.path), "--quiet", "--force"]) == 0
    assert "Not shown yet: 1 newcomer in 1 block waits" in capsys.readouterr().out


def test_who_leaves_is_shown_until_the_joint_cell_can_let_them_go(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b p3:q:a", **HOLD_BACK)
    job.begin()
    job.change("DELETE FROM people WHERE id = 'p3'")
    insert(job, "t:q:a u:q:b")
    found = job.run()
    assert (found.status, found.waiting, shown(job)) == ("published", {"leavers": 1}, "q:a q:a q:a q:b q:b")
    job.change("DELETE FROM people WHERE id IN ('p1', 'p2')")
    found = job.run()
    assert (found.status, found.waiting, shown(job)) == ("published", {}, "q:a q:b")


def test_a_cohort_is_no_smaller_than_a_block_must_be(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b", on_refusal="hold_back", cohort=1)
    with pytest.raises(InputError, match="Give a number of at least 2"):
        job.run()
    assert not history(job.spec)["events"]


def test_other_quasi_identifiers_have_no_blocks_to_wait_in(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b", **HOLD_BACK)
    job.begin()
    job.change("ALTER TABLE people ADD COLUMN other VARCHAR DEFAULT 'x'")
    job.set(attributes={"other": {"role": "quasi_identifier", "hierarchy": "suppress"}, "value": "sensitive"})
    with pytest.raises(Refused, match=r"other columns \(block, value\) than the spec has now \(other, value\)"):
        job.run()


BATCH = "p1:q:b p2:q:c p3:q:b t:q:a u:q:a r1:r:a r2:r:b r3:r:a r4:r:b"


def test_who_withdraws_leaves_in_a_batch_that_passes(make_job: MakeJob) -> None:
    job = people_job(make_job, BATCH)
    job.begin()
    found = erase(job.spec, ["r3"])
    assert (found.status, found.asked, found.shown) == ("queued", 1, 1)
    assert job.run().status == "unchanged"
    erase(job.spec, ["r4", "r3"])
    result = job.run()
    assert (result.status, shown(job)) == ("published", "q:a q:a q:b q:b q:c r:a r:b")
    assert events(job, "erased")[-1]["detail"] == {"people": 2}
    assert "cannot be recalled" in events(job, "erased")[-1]["reason"]
    # The source still holds them, and the version that shows them is gone.
    assert job.run().status == "unchanged"
    assert [event["version"] for event in events(job, "retired")] == [1]
    with pytest.raises(Refused, match="no longer kept"):
        rollback(job.spec, 1)


def test_a_batch_of_one_value_stays_in_and_is_not_topped_up(make_job: MakeJob) -> None:
    job = people_job(make_job, BATCH)
    job.begin()
    before = shown(job)
    erase(job.spec, ["t", "u"])
    found = job.run()
    assert (found.status, shown(job)) == ("unchanged", before)
    assert any("2 people who withdrew fails" in note for note in found.notes)
    found_again = erase(job.spec, ["t", "u", "p1"])
    assert any("2 of them were in a batch that failed" in note for note in found_again.notes)
    assert job.run().status == "unchanged"
    assert erase(job.spec, ["t"], now=True).status == "erased"


def test_what_fails_for_another_reason_does_not_condemn_a_batch(make_job: MakeJob) -> None:
    job = people_job(make_job, BATCH)
    job.begin()
    erase(job.spec, ["r3", "r4"])
    job.change("UPDATE people SET value = 'z' WHERE id = 'p1'")
    with pytest.raises(Refused, match="2 versions together"):
        job.run()
    job.change("UPDATE people SET value = 'b' WHERE id = 'p1'")
    assert (job.run().status, shown(job)) == ("published", "q:a q:a q:b q:b q:c r:a r:b")


def test_a_run_that_stops_lets_nobody_go(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    job = people_job(make_job, BATCH)
    job.begin()
    erase(job.spec, ["r3", "r4"])
    with monkeypatch.context() as patched:
        patched.setattr("qblock.release.apply.count_again", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            job.run()
    assert events(job, "erased") == []
    assert job.run().status == "published"
    assert events(job, "erased")[-1]["detail"] == {"people": 2}
    assert shown(job) == "q:a q:a q:b q:b q:c r:a r:b"


def test_who_is_queued_and_gone_from_the_source_has_left(make_job: MakeJob) -> None:
    job = people_job(make_job, BATCH)
    job.begin()
    erase(job.spec, ["r3", "r4"])
    job.change("DELETE FROM people WHERE id IN ('r3', 'r4')")
    assert job.run().status == "published"
    assert events(job, "erased")[-1]["detail"] == {"people": 2}
    with pytest.raises(Refused, match="no longer kept"):
        rollback(job.spec, 1)


def test_a_spec_that_forgets_who_has_withdrawn_is_refused(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:b p2:q:c r1:r:a r2:r:b")
    job.begin()
    erase(job.spec, ["r1"], now=True)
    assert shown(job) == "q:b q:c"
    job.set(versions={"joint": "none"})
    with pytest.raises(Refused, match="2 people have withdrawn from release people"):
        job.run()
    assert shown(job) == "q:b q:c"


def test_who_leaves_at_once_takes_whole_joint_cells(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:b p2:q:c r1:r:a r2:r:b")
    job.begin()
    insert(job, "t:q:a u:q:b")
    job.run()
    found = erase(job.spec, ["t"], now=True)
    assert (found.status, found.companions, found.retired) == ("erased", 1, (2,))
    assert found.published is not None
    assert (found.published.version, shown(job)) == (3, "q:b q:c r:a r:b")
    assert events(job, "erased")[-1]["detail"] == {"people": 1, "companions": 1}
    assert job.run().status == "unchanged"
    assert rollback(job.spec, 1).version == 1
    again = erase(job.spec, ["t"], now=True)
    assert (again.companions, again.retired) == (0, (2,))


def test_where_nothing_is_left_that_could_be_published_the_message_says_what_readers_see(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:b p2:q:c")
    job.begin()
    with pytest.raises(Refused, match=r"version 1, which shows them.*: nobody is left whom a version could show"):
        erase(job.spec, ["p1"], now=True)
    assert shown(job) == "q:b q:c"


def test_a_release_without_entities_has_nobody_who_could_withdraw(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:b p2:q:c")
    with pytest.raises(InputError, match="nobody is named"):
        erase(job.spec, [])
    job.set(entity=None)
    del job.settings["entity"]
    with pytest.raises(InputError, match="Write `entity: COLUMN`"):
        erase(job.spec, ["p1"])


def quarantine_job(make_job: MakeJob, folder: Path, people: str, **versions: Any) -> Job:
    job = people_job(make_job, people, **versions)
    (folder / "block.csv").write_text("block,all\nq,*\n")
    block = {"role": "quasi_identifier", "hierarchy": {"file": "block.csv"}, "uncovered": "quarantine"}
    return job.set(attributes=ATTRIBUTES | {"block": block})


def test_rows_that_no_hierarchy_covers_wait_and_come_as_a_cohort(make_job: MakeJob, tmp_path: Path) -> None:
    job = quarantine_job(make_job, tmp_path, "p1:q:a p2:q:b n1:x:a n2:x:b", **HOLD_BACK)
    job.set(search={"node": [0]}, versions=HOLD_BACK)
    found = job.begin()
    assert (found.rows, shown(job)) == (2, "q:a q:b")
    assert any("2 rows wait" in note for note in found.notes)
    assert events(job, "staged")[-1]["detail"] == {"quarantined": 2}
    insert(job, "n3:y:c")
    assert job.run().status == "unchanged"
    (tmp_path / "block.csv").write_text("block,all\nq,*\nx,*\n")
    found = job.run()
    assert (found.status, shown(job)) == ("published", "q:a q:b x:a x:b")
    detail = events(job, "staged")[-1]["detail"]
    assert (detail["quarantined"], detail["newcomers"]) == (1, 2)
    assert not verify(job.spec).problems


def test_an_edit_of_a_hierarchy_that_moves_a_leaf_is_reported_and_checked(make_job: MakeJob, tmp_path: Path) -> None:
    people = " ".join(f"p{i}:{block}:{value}" for i, (block, value) in enumerate((b, v) for b in "abcd" for v in "st"))
    job = people_job(make_job, people)
    block = {"role": "quasi_identifier", "hierarchy": {"file": "block.csv"}}
    job.set(attributes=ATTRIBUTES | {"block": block}, search={"node": [1]})
    (tmp_path / "block.csv").write_text("block,pair,all\na,1,*\nb,1,*\nc,2,*\nd,2,*\n")
    assert not [note for note in job.run().notes if "hierarchy" in note]
    (tmp_path / "block.csv").write_text("block,pair,all\na,1,*\nb,1,*\nc,1,*\nd,2,*\n")
    found = job.run()
    assert found.status == "published"  # joint cells: a and b, c, d, each of both values
    assert [note for note in found.notes if "hierarchy of block" in note and "2 people are shown" in note]
    job.change("UPDATE people SET value = 's' WHERE block = 'c'")
    (tmp_path / "block.csv").write_text("block,pair,all\na,1,*\nb,1,*\nc,2,*\nd,2,*\nz,2,*\n")
    with pytest.raises(Refused, match="3 versions together"):
        job.run()


def test_a_release_of_nothing_but_uncovered_rows_is_refused(make_job: MakeJob, tmp_path: Path) -> None:
    job = quarantine_job(make_job, tmp_path, "n1:x:a n2:x:b")
    with pytest.raises(Refused, match=r"no row of the source .* has only values that the hierarchies cover"):
        job.run()


def test_a_sensitive_value_outside_the_domain_is_always_refused(make_job: MakeJob, tmp_path: Path) -> None:
    job = quarantine_job(make_job, tmp_path, "p1:q:a p2:q:b p3:q:z")
    job.settings["attributes"]["value"] = {"role": "sensitive", "domain": ["a", "b"]}
    with pytest.raises(InputError, match=r"1 value of column value .* missing in its taxonomy or domain"):
        job.run()
