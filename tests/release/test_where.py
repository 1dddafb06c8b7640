"""A release of some rows of its table alone: no other row is read by anything, and who no longer meets the condition
has left."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from qblock.cli.app import run
from qblock.errors import InputError, QblockError, Refused
from qblock.release.erase import erase
from qblock.release.preview import preview
from qblock.release.verify import verify
from qblock.releases import Release
from release.jobs import Job, MakeJob
from release.test_repeated_people import own_login
from release.test_waiting import ATTRIBUTES, HOLD_BACK, events, shown

pytestmark = pytest.mark.either_engine

CURRENT = "valid_to IS NULL AND NOT is_deleted"
PRIVACY = [{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}]


def history_job(make_job: MakeJob, people: str, where: str = CURRENT, **settings: Any) -> Job:
    """A job over a history of people, `person:block:value ...` each with a row of before, one that is deleted, and one
    of nobody: every reader that looks at one of these fails, or says something else."""
    rows: list[tuple[Any, ...]] = [(*item.split(":"), None, False) for item in people.split()]
    ids = [row[0] for row in rows]
    rows += [(name, None, "before", "2026-01-31", False) for name in ids]
    rows += [(f"gone {name}", "elsewhere", "deleted", None, True) for name in ids]
    rows += [(None, None, None, "2026-01-31", None)]
    names = ("id", "block", "value", "valid_to", "is_deleted")
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    settings = {"versions": {**HOLD_BACK}, "attributes": ATTRIBUTES, "entity": "id", "privacy": PRIVACY, **settings}
    job = make_job(columns, {"valid_to": "DATE", "is_deleted": "BOOLEAN"}, **settings)
    return job.set(source={**job.settings["source"], "where": where})


def insert(job: Job, people: str) -> None:
    for item in people.split():
        person, block, value = item.split(":")
        job.change(f"INSERT INTO people VALUES ('{person}', '{block}', '{value}', NULL, FALSE)")


def close(job: Job, *people: str) -> None:
    job.change(f"UPDATE people SET valid_to = DATE '2026-02-28' WHERE id IN ({', '.join(map(repr, people))})")


SIX = "p0:q:a p1:q:b p2:q:a r0:r:c r1:r:d r2:r:c"
TWELVE = " ".join(f"p{i}:q:{'ab'[i % 2]}" for i in range(4)) + " " + " ".join(f"r{i}:r:{'cd'[i % 2]}" for i in range(8))


@pytest.mark.each_engine
def test_only_the_rows_of_the_condition_are_published(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = history_job(make_job, SIX)
    path = str(job.write())
    for words in (["search"], ["audit"], ["compare"], ["plan"], ["hierarchy", "check"]):
        assert run([*words, path]) == 0, (words, capsys.readouterr())
    result = job.run()
    assert (result.rows, shown(job)) == (6, "q:a q:a q:b r:c r:c r:d")
    assert not verify(job.spec).problems
    insert(job, "t:q:b u:q:a")
    close(job, "r0")
    job.run()
    assert shown(job) == "q:a q:a q:a q:b q:b r:c r:c r:d"
    assert job.run().status == "unchanged"
    assert run(["report", path, "--output", str(job.folder / "readers.html")]) == 0
    assert run(["report", path, "--internal", "--output", str(job.folder / "officer.html")]) == 0
    # The officer sees the condition with the spec. Readers are not told what the source is, nor which part of it.
    assert "is_deleted" in (job.folder / "officer.html").read_text()
    assert "is_deleted" not in (job.folder / "readers.html").read_text()
    published = job.folder / "release.duckdb"
    assert not published.exists() or b"is_deleted" not in published.read_bytes()


def test_every_statement_that_reads_the_table_has_the_condition(make_job: MakeJob) -> None:
    texts: list[str] = []

    def note(_: Any, __: Any, text: str, *more: object) -> None:
        texts.append(re.sub(r"\s+", " ", text))

    job = history_job(make_job, TWELVE, "valid_to IS NULL AND NOT is_deleted")
    job.set(privacy=[*PRIVACY, {"k_map": {"k": 2, "population": {"table": "people"}}}], versions={"joint": "none"})
    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        Release(job.spec).search()
        Release(job.spec).audit()
        Release(job.spec).compare()
        job.set(privacy=PRIVACY, versions=HOLD_BACK)
        preview(job.spec)
        job.run()
        insert(job, "t:q:b u:q:a")
        close(job, "r0", "r1")
        job.run()
        erase(job.spec, missing=True)
        erase(job.spec, ["p0"])
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    named = r'(FROM|JOIN) ("?\w+"?\.)*"people"'
    reading = [text for text in texts if re.search(named, text) and '"published"."people"' not in text]
    assert len(reading) > 20
    assert not [text for text in reading if "valid_to" not in text and "LIMIT 0" not in text]


WAYS: dict[str, Any] = {"held back": HOLD_BACK, "none": {"joint": "none"}}


@pytest.mark.parametrize("way", WAYS)
def test_people_who_no_longer_meet_a_changed_condition_have_left(make_job: MakeJob, way: str) -> None:
    job = history_job(make_job, TWELVE, versions=WAYS[way])
    if way == "none":
        job.settings.pop("entity")
    job.begin()
    job.set(source={**job.settings["source"], "where": CURRENT + " AND id NOT IN ('r0', 'r1')"})
    result = job.run()
    if way == "none":
        assert (result.version, result.rows) == (2, 10)
        return
    # Their batch is too small: they are shown until as many have left as `versions.leave` says.
    assert (result.waiting, len(job.published())) == ({"leavers": 2}, 12)
    job.set(source={**job.settings["source"], "where": CURRENT + " AND id NOT IN ('r0', 'r1', 'r2', 'r3')"})
    assert (job.run().status, len(job.published())) == ("published", 8)
    assert shown(job) == " ".join(["q:a"] * 2 + ["q:b"] * 2 + ["r:c"] * 2 + ["r:d"] * 2)


def test_more_than_a_fifth_is_refused_as_of_any_other_turnover(make_job: MakeJob) -> None:
    job = history_job(make_job, TWELVE)
    job.begin()
    job.set(source={**job.settings["source"], "where": CURRENT + " AND block = 'r'"})
    with pytest.raises(Refused, match="4 of the 12 people in version 1 are gone"):
        job.run(confirm=False)


@pytest.mark.each_engine
def test_who_is_missing_is_told_by_the_condition(make_job: MakeJob) -> None:
    job = history_job(make_job, TWELVE)
    job.begin()
    close(job, "p0", "p1")
    result = erase(job.spec, missing=True, now=True)
    assert (result.status, result.asked) == ("erased", 2)
    assert events(job, "erased")[-1]["detail"]["people"] == 2
    job.set(source={**job.settings["source"], "where": "block = 'nowhere'"})
    with pytest.raises(
        Refused,
        match=r"spec\.yaml:\d+: no row of the source people meets the condition, so it cannot tell who is missing",
    ):
        erase(job.spec, missing=True, now=True)
    with pytest.raises(Refused, match=r"no row of the source people meets the condition: there is nothing to release"):
        job.run()


@pytest.mark.each_engine
def test_a_population_that_is_the_same_table_is_restricted_too(make_job: MakeJob) -> None:
    """With rows of before in it everybody would look like one of more people."""
    job = history_job(make_job, SIX, versions={"joint": "none"})
    job.change("UPDATE people SET block = 'r' WHERE block IS NULL")
    job.set(privacy=[{"k_map": {"k": 4, "population": {"table": "people"}}}], search={"node": [0]})
    with pytest.raises(Refused):
        job.run()
    job.set(privacy=[{"k_map": {"k": 3, "population": {"table": "people"}}}])
    assert job.run().rows == 6


def test_a_population_by_another_name_is_restricted_too(postgresql_url: str, tmp_path: Path) -> None:
    with own_login(postgresql_url, tmp_path) as made:
        made.execute("ALTER ROLE LOGIN_ SET search_path = clinic")
        source = {**made.job.settings["source"], "where": "ward = 'A' OR zip = '13053'"}
        made.job.set(source=source, search={"node": [5, 3]})
        made.job.set(privacy=[{"k_map": {"k": 9, "population": {"table": "people"}}}])
        with pytest.raises(Refused):
            made.job.run()
        made.job.set(privacy=[{"k_map": {"k": 8, "population": {"table": "people"}}}])
        assert made.job.run().rows == 8


@pytest.mark.parametrize(("name", "where"), [("clinic.people", "valid_to = 'infinity'"), ("people", "ward = 'A'")])
def test_a_database_that_is_only_read_restricts_by_itself(
    postgresql_url: str, tmp_path: Path, name: str, where: str
) -> None:
    """Where its rows are copied: what decides may be nothing that a copy holds."""
    with own_login(postgresql_url, tmp_path) as made:
        made.execute("ALTER ROLE LOGIN_ SET search_path = clinic")
        made.execute("ALTER TABLE clinic.people ADD COLUMN valid_to DATE")
        if "infinity" in where:
            made.execute("UPDATE clinic.people SET valid_to = CASE ward WHEN 'A' THEN DATE 'infinity' END")
        source = {**made.job.settings["source"], "where": where}
        publish = {"url": f"duckdb:///{tmp_path}/release.duckdb", "schema": "published", "view": "people"}
        made.job.set(source=source, publish=publish, search={"node": [5, 3]})
        made.job.set(privacy=[{"k_map": {"k": 7, "population": {"table": name}}}])
        with pytest.raises(Refused):
            made.job.run()
        made.job.set(privacy=[{"k_map": {"k": 6, "population": {"table": name}}}])
        assert made.job.run().rows == 6
        made.job.set(source={**source, "where": "valid_too IS NULL"})
        with pytest.raises(InputError, match="has no column 'valid_too'; did you mean valid_to"):
            preview(made.job.spec)


WRONG: dict[str, Callable[[Job], object]] = {
    "plan": lambda job: preview(job.spec),
    "release": lambda job: job.run(),
    "search": lambda job: Release(job.spec).search(),
    "erase": lambda job: erase(job.spec, missing=True),
}


@pytest.mark.parametrize("command", WRONG)
def test_a_condition_that_does_not_fit_the_table_is_said_by_every_command(make_job: MakeJob, command: str) -> None:
    job = history_job(make_job, SIX)
    job.begin()
    job.set(source={**job.settings["source"], "where": "valid_to = 5"})
    with pytest.raises(
        InputError, match=r"spec\.yaml:\d+: column valid_to is of type (DATE|date), and the condition"
    ) as caught:
        WRONG[command](job)
    assert caught.value.exit_status == 2


def test_a_login_needs_the_columns_of_the_condition_and_no_others(postgresql_url: str, tmp_path: Path) -> None:
    with own_login(postgresql_url, tmp_path) as made:
        made.job.set(source={**made.job.settings["source"], "where": "ward = 'A'"})
        made.job.settings["attributes"] = {k: v for k, v in made.job.settings["attributes"].items() if k != "ward"}
        made.execute("REVOKE SELECT ON clinic.people FROM LOGIN_")
        made.execute("GRANT SELECT (zip, age, disease) ON clinic.people TO LOGIN_")
        made.job.set(privacy=[{"k_anonymity": {"k": 2}}])
        with pytest.raises(QblockError, match=r'GRANT SELECT \("zip", "age", "disease", "ward"\) ON TABLE "clinic"'):
            made.job.run()
        made.execute("GRANT SELECT (ward) ON clinic.people TO LOGIN_")
        assert made.job.run().rows == 6
