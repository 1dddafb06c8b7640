"""`plan` ends as a run would before its search: for columns, values, NULLs, parameters, and too few rows."""

from __future__ import annotations

from typing import Any

import pytest

from qblock.errors import InputError, QblockError, Refused
from qblock.release.preview import preview
from qblock.search.result import refusal
from qblock.search.run import open_task, run_search
from release.jobs import Job, MakeJob

pytestmark = pytest.mark.either_engine

QUASI = {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 20], "start": 0}}
ROWS: dict[str, list[Any]] = {
    "id": [f"p{i}" for i in range(12)],
    "age": [20 + i for i in range(12)],
    "town": ["oslo", "rome"] * 6,
    "value": list("abc") * 4,
    "note": [f"n{i}" for i in range(12)],
}
K = [{"k_anonymity": {"k": 3}}]


def job_of(make_job: MakeJob, columns: dict[str, list[Any]] = ROWS, **settings: Any) -> Job:
    known: dict[str, Any] = {"attributes": {"age": QUASI, "value": "sensitive"}, "privacy": K, "entity": "id"}
    return make_job(columns, {"age": "INTEGER"}, **{**known, **settings})


def with_values(name: str, *values: Any) -> dict[str, list[Any]]:
    return {**ROWS, name: [*values, *ROWS[name][len(values) :]]}


CASES: dict[str, tuple[dict[str, list[Any]], dict[str, Any], type[QblockError]]] = {
    "no such column": (ROWS, {"attributes": {"aeg": QUASI, "value": "sensitive"}}, InputError),
    "NULL in a quasi-identifier": (with_values("age", None), {}, InputError),
    "NULL in a sensitive attribute": (with_values("value", None), {}, InputError),
    "an entity with several rows": (with_values("id", "p1"), {}, InputError),
    "an entity that is missing": (with_values("id", None), {}, InputError),
    "a parameter beyond the table": (
        ROWS,
        {"privacy": [{"epsilon_privacy": {"epsilon": 2, "adversary": "II", "stubbornness": 2, "sensitive": "value"}}]},
        InputError,
    ),
    "more people asked than there are": (ROWS, {"privacy": [{"k_anonymity": {"k": 13}}]}, Refused),
    "an empty source": ({name: [] for name in ROWS}, {}, Refused),
}


@pytest.mark.each_engine
def test_a_schema_that_the_engine_keeps_for_itself_is_refused(job: Job) -> None:
    kept = {"duckdb": ("temp", "SYSTEM", "memory", "v1", "pg_catalog"), "postgresql": ("pg_mine", "information_schema")}
    for schema in kept[job.engine]:
        job.settings["publish"]["schema"] = schema
        with pytest.raises(InputError, match=rf"keeps the name {schema} for itself; publish in another schema: "):
            preview(job.spec)


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
def test_a_file_that_is_called_as_its_schema_is_refused(job: Job) -> None:
    job.settings["publish"]["url"] = f"duckdb:///{job.folder}/Published.duckdb"
    with pytest.raises(InputError, match=r"takes published\.people for ambiguous\. Give the file another name"):
        preview(job.spec)
    assert not (job.folder / "Published.duckdb").exists()


@pytest.mark.parametrize("case", CASES)
def test_plan_ends_as_a_run_does(make_job: MakeJob, case: str) -> None:
    columns, settings, error = CASES[case]
    job = job_of(make_job, columns, **settings)
    with pytest.raises(error) as planned:
        preview(job.spec)
    with pytest.raises(error) as run:
        job.run()
    if case != "more people asked than there are":
        assert str(planned.value) == str(run.value)


def test_what_a_run_stops_at_is_in_the_plan(make_job: MakeJob) -> None:
    job = job_of(make_job, attributes={"age": QUASI, "value": "sensitive", "note": "insensitive"})
    planned = preview(job.spec)
    with pytest.raises(Refused, match="1 finding would stop a release"):
        planned.raise_refused()
    with pytest.raises(Refused) as run:
        job.run()
    (finding,) = planned.checks
    assert f"{finding.sentence}; {finding.remedy}" in str(run.value)


@pytest.mark.parametrize("cohorts", [True, False])
def test_what_a_later_version_stops_at_is_in_the_plan(make_job: MakeJob, cohorts: bool) -> None:
    """Of what its labels hide nobody is asked again where the map is kept."""
    columns = {name: values * 20 for name, values in ROWS.items()}
    columns["id"] = [f"p{i:03}" for i in range(240)]
    columns |= {"note": columns["id"], "born": [2000 - age for age in columns["age"]]}
    accept = [{"check": "single_rows", "column": "note", "because": "x"}]
    accept.append({"check": "determines", "column": "born", "of": "age", "because": "x"})
    attributes = {"age": QUASI, "value": "sensitive", "note": "insensitive", "born": "insensitive"}
    settings = {} if cohorts else {"versions": {"cohort": "auto"}}
    job = job_of(make_job, columns, attributes=attributes, accept=accept, search={"node": {"age": 1}}, **settings)
    job.run()
    for number in range(30):
        row = f"'q{number}', {20 + number % 10}, 'oslo', '{'abc'[number % 3]}', 'q{number}', {1980 - number % 10}"
        job.change(f"INSERT INTO people VALUES ({row})")
    job.settings["accept"] = accept[1:]
    planned = preview(job.spec)
    assert planned.changes is not None
    assert planned.changes.tried
    told = {f.check: f.because for f in planned.checks or ()}
    assert told == {"single_rows": None} | ({} if cohorts else {"determines": "x"})
    with pytest.raises(Refused, match="1 finding would stop a release"):
        planned.raise_refused()
    with pytest.raises(Refused, match="note would be published as is"):
        job.run()


def test_what_search_refuses_for_sizes_plan_refuses(make_job: MakeJob) -> None:
    job = job_of(make_job)
    for k, fails in ((12, False), (13, True)):
        job.set(privacy=[{"k_anonymity": {"k": k}}])
        with open_task(job.spec) as task:
            found = run_search(task)
            assert (found.chosen is None) is fails
            assert not fails or "k_anonymity asks k 13" in str(refusal(found))
        if fails:
            with pytest.raises(Refused, match="at least 13 rows, and the source has 12"):
                preview(job.spec)
        else:
            assert preview(job.spec).current_version is None


def test_a_plan_that_can_run_is_as_before(make_job: MakeJob) -> None:
    job = job_of(make_job, versions={"cohort": "auto"})
    steps = preview(job.spec).steps
    assert job.run().status == "published"
    assert [step.step for step in preview(job.spec).steps] == [step.step for step in steps]
