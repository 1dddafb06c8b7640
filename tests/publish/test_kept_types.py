"""A quasi-identifier that every row shows as it is keeps its type, where no other data will be published."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from release.jobs import Job, MakeJob

from qblock.ledger.stores import store_of
from qblock.publish.copy import columns_ahead
from qblock.release.maps import shown_now
from qblock.release.verify import verify

pytestmark = pytest.mark.either_engine

VISITS: dict[str, list[Any]] = {
    "id": [f"p{i}" for i in range(48)],
    "year": [1999 + i % 4 for i in range(48)],
    "age": [20 + i % 6 for i in range(48)],
    "born": [date(1990 + i % 3, 1, 5) for i in range(48)],
    "urban": [i % 2 == 0 for i in range(48)],
    "disease": ["abc"[i // 4 % 3] for i in range(48)],
}
TYPES = {"year": "INTEGER", "age": "INTEGER", "born": "DATE", "urban": "BOOLEAN"}
QUASI: dict[str, Any] = {
    "id": "identifying",
    "year": {"role": "quasi_identifier", "hierarchy": "suppress"},
    "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10]}},
    "born": {"role": "quasi_identifier", "hierarchy": {"dates": ["year"]}},
    "urban": {"role": "quasi_identifier", "hierarchy": "suppress"},
    "disease": "sensitive",
}
NODE = {"search": {"node": [0, 1, 0, 0]}}


def visits(make_job: MakeJob, **settings: Any) -> Job:
    given: dict[str, Any] = {"attributes": QUASI, "privacy": [{"k_anonymity": {"k": 1}}], **settings}
    return make_job(VISITS, TYPES, **given)


def types(job: Job) -> dict[str, str]:
    query = "SELECT column_name, lower(data_type) FROM information_schema.columns WHERE table_name = 'people' "
    return dict(job.query(f"{query} AND table_schema = 'published' ORDER BY ordinal_position"))


def test_columns_that_are_shown_as_they_are_have_their_type_and_no_bounds(make_job: MakeJob) -> None:
    job = visits(make_job, **NODE)
    job.run()
    shown = types(job)
    assert [*shown] == ["year", "age", "age_low", "age_high", "born", "urban", "disease"]
    assert (shown["year"], shown["born"], shown["urban"]) == ("integer", "date", "boolean")
    assert shown["age"] in ("text", "varchar")
    names = ("year", "born", "urban", "disease")
    truth = sorted(zip(*(VISITS[name] for name in names), strict=True))
    assert sorted(job.query(f"SELECT {', '.join(names)} FROM published.people")) == truth
    assert job.query("SELECT count(*) FROM published.people WHERE year > 2000 AND urban") == [(12,)]
    said = job.query("SELECT low, high, rows FROM published.people_levels WHERE column_name = 'year' ORDER BY sort")
    assert said == [(f"{year}.0", f"{year + 1}.0", 12) for year in range(1999, 2003)]
    assert job.query("SELECT sum(rows) FROM published.people_blocks WHERE born < DATE '1991-01-01'") == [(16,)]


def test_they_stay_so_where_the_job_runs_again(make_job: MakeJob) -> None:
    job = visits(make_job, **NODE)
    job.run()
    shown = types(job)
    assert job.run().status == "unchanged"
    assert job.run(force=True).version == 2
    assert types(job) == shown
    assert not verify(job.spec).problems


def test_a_map_that_shows_a_column_as_it_is_in_every_box_does_too(make_job: MakeJob) -> None:
    search = {"recoding": "multidimensional", "choose_by": "loss", "weights": {"urban": 1000}}
    job = visits(make_job, privacy=[{"k_anonymity": {"k": 6}}], search=search)
    job.run()
    shown = types(job)
    assert shown["urban"] == "boolean"
    assert shown["year"] in ("text", "varchar")
    assert job.query("SELECT count(*) FROM published.people WHERE urban") == [(24,)]
    assert not verify(job.spec).problems


@pytest.mark.parametrize("more", [{"versions": {"joint": "none"}}, {"entity": "id", "versions": {"cohort": 2}}])
def test_no_type_may_change_from_version_to_version(make_job: MakeJob, more: dict[str, Any]) -> None:
    """Where other data come, a later version may have to show the column coarser."""
    job = visits(make_job, **NODE, **more)
    job.run()
    assert types(job)["year"] in ("text", "varchar")
    assert {"year_low", "year_high"} <= {*types(job)}


def test_a_null_has_no_value_to_show(make_job: MakeJob) -> None:
    quasi = {**QUASI, "year": {**QUASI["year"], "nulls": "top"}}
    job = visits(make_job, attributes=quasi, **NODE)
    job.change("UPDATE people SET year = NULL WHERE year = 2002")
    job.run()
    assert types(job)["year"] in ("text", "varchar")
    assert job.query("SELECT count(*) FROM published.people WHERE year = '*'") == [(12,)]


def test_columns_ahead_are_those_that_readers_see(make_job: MakeJob) -> None:
    """What depends on the view is told before the search, and nothing where the columns stay as they are."""
    job = visits(make_job, **NODE)
    job.run()
    with store_of(job.spec) as store:
        ranges, kept = shown_now(job.spec, store)
    assert columns_ahead(job.spec, ranges, kept) == kept
    assert "year_low" in {column.name for column in columns_ahead(job.spec, ranges, ())}
