"""Views that are not the same when they are read again."""

from __future__ import annotations

from typing import Any

import pytest

from qblock.checks.volatile import Volatile, volatile
from qblock.engines.tables import TableName
from qblock.releases import Release
from qblock.search.run import open_snapshot
from release.jobs import Job, MakeJob

COLUMNS: dict[str, list[Any]] = {"age": [20 + i % 4 for i in range(40)], "disease": (["flu"] * 4 + ["cold"] * 4) * 5}
ATTRIBUTES = {"age": {"role": "quasi_identifier", "hierarchy": "suppress"}, "disease": "sensitive"}
STRICT = "SELECT * FROM people"
pytestmark = pytest.mark.each_engine


def job_of(make_job: MakeJob, *views: str) -> Job:
    """A release of the last of some views: v1, v2, ..."""
    job = make_job(COLUMNS, attributes=ATTRIBUTES, privacy=[{"k_anonymity": {"k": 2}}], search={"node": [0]})
    for number, query in enumerate(views, 1):
        job.change(f"CREATE VIEW v{number} AS {query}")
    job.settings["source"]["table"] = f"v{len(views)}"
    return job


def of_view(job: Job) -> Volatile | None:
    table = job.settings["source"]["table"]
    with open_snapshot(job.spec, name_values=False) as session:
        return volatile(session, TableName.parse(table))


@pytest.mark.parametrize(
    ("query", "function", "each_reading"),
    [
        ("SELECT *, random() AS noise FROM people", "random", True),
        ("SELECT * FROM people WHERE random() < 0.9", "random", True),
        ("SELECT *, now() AS loaded FROM people", "now", False),
        ("SELECT *, age(TIMESTAMP '1990-01-01') AS old FROM people", "current_date", False),
        ("SELECT * FROM people TABLESAMPLE SYSTEM (90)", "tablesample", True),
        ("SELECT * FROM people WHERE current_date > DATE '2020-01-01'", "current_date", False),
        ("WITH people2 AS (SELECT *, nextval('s') AS n FROM people) SELECT * FROM people2", "nextval", True),
        ("SELECT *, now() AS at, gen_random_uuid() AS id FROM people", "uuid", True),
    ],
)
def test_a_function_of_a_view_is_named(make_job: MakeJob, query: str, function: str, each_reading: bool) -> None:
    job = job_of(make_job)
    job.change("CREATE SEQUENCE s")
    job.change(f"CREATE VIEW v1 AS {query}")
    job.settings["source"]["table"] = "v1"
    view = of_view(job)
    assert view is not None
    # PostgreSQL's own name of the same.
    assert view.function in (function, "current_timestamp" if function == "now" else function)
    assert (view.view, view.each_reading) == ("v1", each_reading)


@pytest.mark.parametrize(
    "query",
    [
        STRICT,
        "SELECT *, 'random()' AS now FROM people",
        "SELECT age, disease, lower(disease) AS low, CAST(age AS TEXT) AS text FROM people WHERE age > 1",
    ],
)
def test_it_is_silent_of_views_that_stay_the_same(make_job: MakeJob, query: str) -> None:
    assert of_view(job_of(make_job, query)) is None


def test_tables_and_names_of_nothing_have_no_definition(make_job: MakeJob) -> None:
    job = job_of(make_job)
    job.settings["source"]["table"] = "people"
    assert of_view(job) is None


def test_views_of_views_are_followed(make_job: MakeJob) -> None:
    job = job_of(make_job, "SELECT *, random() AS noise FROM people", "SELECT * FROM v1", "SELECT * FROM v2")
    view = of_view(job)
    assert view is not None
    assert (view.view.rpartition(".")[2], view.function) == ("v1", "random")
    (finding,) = Release(job.spec).check().checks
    assert (finding.check, finding.columns, finding.severity) == ("volatile", ("v3",), "warning")
    assert finding.sentence.startswith("v3 is a view with random() in ")
    assert finding.remedy.endswith("CREATE TABLE v3_stored AS SELECT * FROM v3")
    job.change("CREATE TABLE v3_stored AS SELECT * FROM v3")
    job.settings["source"]["table"] = "v3_stored"
    assert Release(job.spec).check().checks == ()
