"""Rows of one person where a release does not say whom a row is about: every answer says so, nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from integration.sources import make_spec

from qblock.cli.app import run
from qblock.errors import InputError
from qblock.release.apply import release
from qblock.release.preview import preview
from qblock.search.audit import audit_spec
from release.jobs import PEOPLE, Job, MakeJob
from release.logins import own_login

pytestmark = pytest.mark.either_engine

ATTRIBUTES = {
    "patient_id": "identifying",
    "zip": {"role": "quasi_identifier", "hierarchy": {"digits": 5}},
    "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 20], "start": 0}},
    "disease": "sensitive",
}
QUASI = {"role": "quasi_identifier", "hierarchy": "suppress"}
REPEATED = [70_000 + i // 2 for i in range(12)]
SAID = "column patient_id repeats values that look like people's: rows are counted, not people"
REMEDY = "`entity: patient_id` and `count: entities`"


def visits_job(make_job: MakeJob, numbers: list[Any] | None = None, **settings: Any) -> Job:
    columns = {"patient_id": numbers or REPEATED, **{name: PEOPLE[name] for name in ("zip", "age", "disease")}}
    types = {"patient_id": "BIGINT"}
    return make_job(columns, types, attributes=ATTRIBUTES, privacy=[{"k_anonymity": {"k": 3}}], **settings)


def said(job: Job, capsys: pytest.CaptureFixture[str], *command: str) -> str:
    """What a command prints of it, on one line; it must end as it would without."""
    assert run([command[0], str(job.spec.path), *command[1:]]) == 0
    out, err = capsys.readouterr()
    assert not any(str(number) in out + err for number in set(REPEATED))
    return " ".join(out.split())


def test_rows_of_one_person_are_said_to_be_rows(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = visits_job(make_job)
    for command in (["plan"], ["search"], ["audit"], ["release", "--quiet"]):
        text = said(job, capsys, *command)
        assert (text.count(SAID), text.count(REMEDY)) == (1, 1), command
    for command, key in (("plan", "notes"), ("search", "warnings"), ("audit", "warnings")):
        assert run([command, str(job.spec.path), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)[key]
        assert sum(SAID in one for one in found) == 1
    assert [SAID in note for note in job.run(force=True).notes if "people's" in note] == [True]


def test_nothing_is_said_where_every_row_is_another_person_or_the_spec_says_whose_it_is(
    make_job: MakeJob, capsys: pytest.CaptureFixture[str]
) -> None:
    job = visits_job(make_job, list(range(70_000, 70_012)))
    for command in (["plan"], ["search"], ["audit"], ["release", "--quiet"]):
        assert "look like people's" not in said(job, capsys, *command)
    job.change("UPDATE people SET patient_id = patient_id - patient_id % 2")
    assert SAID in said(job, capsys, "search")
    job.set(entity="patient_id", count="entities", versions={"joint": "none"})
    for command in (["plan"], ["search"], ["audit"]):
        assert "look like people's" not in said(job, capsys, *command)


def test_any_name_of_a_column_is_looked_at(warehouse, tmp_path: Path) -> None:
    names = ["50%_id", "a:b_id", "%s_id", "it's_id", "{x}_id", "?_id", 'a"b_id', "$1_id", "ż_id"]
    url = warehouse("t", {**dict.fromkeys(names, REPEATED), "q": list("xy") * 6, "s": list("ab") * 6})
    attributes = {**dict.fromkeys(names, "identifying"), "q": QUASI, "s": "sensitive"}
    (warning,) = audit_spec(make_spec(url, "t", attributes, [{"k_anonymity": {"k": 1}}], tmp_path))["warnings"]
    assert warning.startswith(f"columns {', '.join(names)} repeat values")


def test_rows_without_a_number_repeat_nobody(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = visits_job(make_job, [*range(70_000, 70_006), *[None] * 6])
    assert "look like people's" not in said(job, capsys, "search")
    job.change("UPDATE people SET patient_id = NULL")
    assert "look like people's" not in said(job, capsys, "search")


def test_a_number_that_cannot_be_read_stops_no_run(make_job: MakeJob) -> None:
    """Nothing else reads an identifying column: a view that fails in it was publishable, and stays so."""
    job = visits_job(make_job)
    number = "CAST(CASE WHEN age > 20 THEN 'x' || disease END AS INTEGER) AS patient_id"
    job.change(f"CREATE VIEW seen AS SELECT {number}, zip, age, disease FROM people")
    job.set(source={**job.settings["source"], "table": "seen"})
    assert not any("people's" in note for note in preview(job.spec).notes)
    result = release(job.spec)
    assert (result.status, len(job.published())) == ("published", 12)
    assert not any("people's" in note for note in result.notes)


def test_a_login_that_may_not_read_the_column_publishes_as_before(postgresql_url: str, tmp_path: Path) -> None:
    with own_login(postgresql_url, tmp_path) as made:
        made.execute("UPDATE clinic.people SET name = 'somebody'", "REVOKE SELECT ON clinic.people FROM LOGIN_")
        made.execute("GRANT SELECT (zip, age, disease, ward) ON clinic.people TO LOGIN_")
        assert not [note for note in preview(made.job.spec).notes if "people" in note]
        result = made.job.run()
        assert (result.status, result.rows) == ("published", 12)


def test_a_plan_is_shown_where_the_source_cannot_be_reached(make_job: MakeJob) -> None:
    job = visits_job(make_job)
    job.change("DROP TABLE people")
    if job.engine == "duckdb":
        (note,) = preview(job.spec).notes
        assert note.startswith("whether rows repeat people could not be checked: table people does not exist")
    else:
        with pytest.raises(InputError, match="table people does not exist"):
            preview(job.spec)
