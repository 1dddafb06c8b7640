"""Those whom the source has no more withdraw: by digests, in numbers alone, and not where the source may be wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from qblock.cli.app import run
from qblock.errors import InputError, Refused
from qblock.ledger.history import history
from qblock.ledger.stores import store_of
from qblock.release.erase import erase
from qblock.release.log import Entry, Reporter
from qblock.release.rollback import rollback
from qblock.releases import Release
from qblock.results.release import Sharing
from qblock.versions.crosswalk import open_crosswalk
from qblock.versions.people import counts
from release.jobs import Job, MakeJob
from release.test_plans import steps_of
from release.test_waiting import HOLD_BACK, events, insert, people_job, shown

pytestmark = pytest.mark.either_engine

TWELVE = " ".join(f"p{i}:q:{'ab'[i % 2]}" for i in range(4)) + " " + " ".join(f"r{i}:r:{'cd'[i % 2]}" for i in range(8))
WAYS: dict[str, dict[str, Any]] = {"lags": HOLD_BACK, "does not lag": {"on_refusal": "refuse"}}


def twelve(make_job: MakeJob, way: str = "lags") -> Job:
    """Four people in block q and eight in block r."""
    job = people_job(make_job, TWELVE, **WAYS[way])
    job.begin()
    return job


def delete(job: Job, *people: str) -> None:
    job.change(f"DELETE FROM people WHERE id IN ({', '.join(map(repr, people))})")


def apart(job: Job) -> dict[str, int]:
    with open_crosswalk(store_of(job.spec)) as crosswalk:
        return counts(crosswalk, "people")


@pytest.mark.parametrize("way", WAYS)
def test_they_leave_at_once_with_their_cells(make_job: MakeJob, way: str) -> None:
    job = twelve(make_job, way)
    delete(job, "p0", "p1")
    made = Release(job.spec).plan_erase(missing=True, now=True)
    assert (made.missing, made.sharing) == (2, Sharing(leaving=2, companions=2, cells=1, staying=8))
    assert "2 of the 12 people of the release are not in the source" in made.notes
    found = erase(job.spec, missing=True, now=True)
    assert (found.status, found.asked, found.shown, found.companions) == ("erased", 2, 2, 2)
    assert (found.sharing, found.retired) == (made.sharing, (1,))
    assert found.published is not None
    assert shown(job) == " ".join(["r:c"] * 4 + ["r:d"] * 4)
    assert events(job, "erased")[-1]["detail"] == {"people": 2, "companions": 2}
    assert job.run().status == "unchanged"
    # They do not come back, and nobody is missing any more.
    insert(job, "p0:q:a p1:q:b")
    assert job.run().status == "unchanged"
    delete(job, "p0", "p1")
    again = erase(job.spec, missing=True, now=True)
    assert (again.status, again.asked, again.sharing, again.published) == ("unchanged", 0, None, None)
    assert any("nobody is missing" in note for note in again.notes)
    assert len(events(job, "erased")) == 1


def test_in_batches_they_leave_by_the_rules_of_leavers(make_job: MakeJob) -> None:
    job = twelve(make_job)
    delete(job, "r0", "r1")
    found = erase(job.spec, missing=True)
    assert (found.status, found.asked, found.shown) == ("queued", 2, 2)
    assert any("until a batch of their people can go" in note for note in found.notes)
    assert not any("must keep their rows" in note for note in found.notes)
    assert (job.run().status, apart(job)) == ("unchanged", {"withdrawn queued": 2})
    # The batch needs four people (2k).
    delete(job, "r2", "r3")
    assert erase(job.spec, missing=True, confirm=4).asked == 4
    assert job.run().status == "published"
    assert shown(job) == "q:a q:a q:b q:b r:c r:c r:d r:d"
    assert apart(job) == {"withdrawn out": 4}
    assert events(job, "erased")[-1]["detail"] == {"people": 4}
    assert erase(job.spec, missing=True).status == "unchanged"


def test_without_lag_the_next_version_is_without_them_or_refused(make_job: MakeJob) -> None:
    job = twelve(make_job, "does not lag")
    delete(job, "r0")
    found = erase(job.spec, missing=True)
    assert any("--now takes out their whole joint cells" in note for note in found.notes)
    with pytest.raises(Refused, match="1 person of the newest version left"):
        job.run()
    found = erase(job.spec, missing=True, now=True)
    assert (found.asked, found.companions, shown(job)) == (1, 7, "q:a q:a q:b q:b")


def test_a_refusal_for_leavers_says_what_to_do_and_doing_so_works(make_job: MakeJob) -> None:
    job = twelve(make_job, "does not lag")
    insert(job, "n1:q:a n2:q:b")
    assert job.run().version == 2
    job.change("UPDATE people SET value = 'd' WHERE id = 'r0'")
    with pytest.raises(Refused) as raised:
        job.run()
    assert "erase" not in str(raised.value)
    job.change("UPDATE people SET value = 'c' WHERE id = 'r0'")
    delete(job, "n1", "p0")
    with pytest.raises(Refused) as raised:
        job.run()
    assert "2 people of the newest version left. `qblock erase SPEC --missing --now` takes out" in str(raised.value)
    assert run(["erase", str(job.spec.path), "--missing", "--now", "--yes"]) == 0
    assert shown(job) == " ".join(["r:c"] * 4 + ["r:d"] * 4)
    assert job.run().status == "unchanged"


@pytest.mark.parametrize("now", [False, True])
def test_it_performs_its_plan_and_a_plan_writes_nothing(make_job: MakeJob, now: bool) -> None:
    job = twelve(make_job)
    delete(job, "p0")
    before = history(job.spec)["ledger_head"]
    made = Release(job.spec).plan_erase(missing=True, now=now)
    assert (made.missing, made.sharing is not None) == (1, now)
    assert (history(job.spec)["ledger_head"], apart(job)) == (before, {})
    entries: list[Entry] = []
    erase(job.spec, missing=True, now=now, reporter=Reporter(entries=entries.append))
    planned = [step.step for step in made.steps]
    assert [name for name in steps_of(entries) if name in planned] == planned


@pytest.mark.parametrize("now", [False, True])
def test_a_source_that_is_empty_is_no_reason_to_take_everybody_out(make_job: MakeJob, now: bool) -> None:
    job = twelve(make_job)
    job.change("DELETE FROM people")
    for confirm in (None, 12):
        with pytest.raises(Refused, match="is empty, so it cannot tell who is missing; nothing is done"):
            erase(job.spec, missing=True, confirm=confirm, now=now)
        with pytest.raises(Refused, match="is empty"):
            Release(job.spec).plan_erase(missing=True, confirm=confirm, now=now)
    assert (apart(job), len(job.published())) == ({}, 12)


@pytest.mark.parametrize("now", [False, True])
def test_more_than_a_fifth_has_to_be_confirmed_by_its_number(make_job: MakeJob, now: bool) -> None:
    job = twelve(make_job)
    delete(job, "p0", "p1", "r0")
    wrong = "3 of the 12 people of the release are not in the source"
    for ask in (lambda: erase(job.spec, missing=True, now=now), lambda: Release(job.spec).plan_erase(missing=True)):
        with pytest.raises(Refused, match=f"{wrong}: more than a fifth.*--confirm 3"):
            ask()
    with pytest.raises(Refused, match=f"{wrong}, and --confirm says 2; nothing is done"):
        erase(job.spec, missing=True, confirm=2, now=now)
    assert (apart(job), len(job.published())) == ({}, 12)
    insert(job, "r0:r:c")
    # A number that is wrong is wrong, few as they are.
    with pytest.raises(Refused, match="2 of the 12 people"):
        erase(job.spec, missing=True, confirm=3, now=now)
    assert erase(job.spec, missing=True, now=now).asked == 2


def test_numbers_that_were_written_otherwise_are_not_missing(make_job: MakeJob) -> None:
    job = make_job(
        {"id": [1, 2, 3, 4], "block": list("qqrr"), "value": list("abab")},
        {"id": "INTEGER"},
        attributes={"block": {"role": "quasi_identifier", "hierarchy": "suppress"}, "value": "sensitive"},
        privacy=[{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}],
        entity="id",
    )
    job.begin()
    assert erase(job.spec, missing=True).status == "unchanged"
    job.change("ALTER TABLE people ALTER COLUMN id TYPE VARCHAR")
    with pytest.raises(Refused, match=r"column id is of type .* People who are there would look missing"):
        erase(job.spec, missing=True, confirm=4)
    assert apart(job) == {}


def test_rows_that_name_nobody_make_nobody_missing(make_job: MakeJob) -> None:
    job = twelve(make_job)
    job.change("UPDATE people SET id = NULL WHERE id = 'r7'")
    with pytest.raises(InputError, match="NULL in 1 row"):
        erase(job.spec, missing=True, now=True)
    assert apart(job) == {}


def test_who_left_in_a_batch_has_left_and_at_once_leaves_older_versions_too(make_job: MakeJob) -> None:
    job = twelve(make_job)
    delete(job, "r0", "r1", "r2", "r3")
    assert job.run().version == 2
    assert erase(job.spec, missing=True).status == "unchanged"
    found = erase(job.spec, missing=True, confirm=4, now=True)
    assert (found.status, found.companions, found.retired) == ("erased", 0, (1,))
    assert shown(job) == "q:a q:a q:b q:b r:c r:c r:d r:d"
    with pytest.raises(Refused, match="no longer kept"):
        rollback(job.spec, 1)


def test_whom_readers_see_still_is_tried_again(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing could be published without them when they were taken out."""
    monkeypatch.setattr("qblock.versions.people.ONE_IN", 0)
    job = people_job(make_job, "p1:q:a p2:q:b", **HOLD_BACK)
    job.begin()
    delete(job, "p2")
    with pytest.raises(Refused, match="readers still see"):
        erase(job.spec, missing=True, confirm=1, now=True)
    insert(job, "n1:q:c n2:q:d")
    found = erase(job.spec, missing=True, confirm=1, now=True)
    assert (found.status, shown(job)) == ("erased", "q:c q:d")
    assert erase(job.spec, missing=True, now=True).status == "unchanged"


def test_before_a_first_version_nobody_is_missing(make_job: MakeJob) -> None:
    job = people_job(make_job, TWELVE, **HOLD_BACK)
    assert Release(job.spec).plan_erase(missing=True).missing is None
    assert erase(job.spec, missing=True).status == "unchanged"


def test_somebody_of_another_release_is_not_missing(make_job: MakeJob) -> None:
    job = twelve(make_job)
    job.change("CREATE TABLE others AS SELECT id || 'x' AS id, block, value FROM people")
    publish = {**job.settings["publish"], "view": "others"}
    if job.engine == "duckdb":
        publish["url"] = f"duckdb:///{job.folder}/others.duckdb"
    job.set(release="others", source={**job.settings["source"], "table": "others"}, publish=publish)
    job.run()
    assert erase(job.spec, missing=True).status == "unchanged"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["p0", "--missing"], "name nobody"),
        (["--missing", "--file", "nowhere.txt"], "give no file"),
        (["p0", "--confirm", "3"], "give it with --missing"),
        ([], "or --missing for those whom the source has no more"),
    ],
)
def test_what_does_not_go_together(
    make_job: MakeJob, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    job = people_job(make_job, TWELVE, **HOLD_BACK)
    assert run(["erase", str(job.write()), *options]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_the_command_says_how_many_and_never_who(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = twelve(make_job)
    delete(job, "p0")
    path = str(job.spec.path)
    assert run(["erase", path, "--missing", "--now"]) == 2
    assert run(["erase", path, "--missing", "--now", "--plan", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["missing"] == 1
    assert run(["erase", path, "--missing", "--now", "--yes", "--quiet"]) == 0
    out, err = capsys.readouterr()
    words = " ".join(out.split())
    assert "1 person whom the source has no more, 1 of them shown by some version, and 3 who share" in words
    assert err.startswith("qblock: 1 person withdraws; 3 other people share their joint cell")
    assert "p0" not in out + err + json.dumps(history(job.spec))
    assert run(["erase", path, "--missing", "--now", "--yes"]) == 0
    assert "Nothing to do." in capsys.readouterr().out
