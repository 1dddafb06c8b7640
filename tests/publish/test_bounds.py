"""Bounds of numbers and dates beside their labels: what is published, that it follows from the label, and when."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest
import sqlalchemy as sa
from release.jobs import Job, MakeJob

from qblock.errors import InputError, Refused
from qblock.publish import copy
from qblock.publish.bounds import Bound
from qblock.release.preview import preview
from qblock.release.rollback import rollback
from qblock.release.verify import verify

VISITS: dict[str, list[Any]] = {
    "age": [23, 27, 29, 31, 34, 38, 97, None] * 2,
    "born": [date(1990, 1, 1), date(1990, 12, 31), date(1991, 6, 1), None] * 4,
    "seen": [datetime(2024, 2, 29, 23, 59), datetime(2024, 3, 1, 0, 0)] * 8,
    "dose": [0.5, 0.75, 1.25, 1.5] * 4,
    "disease": ["flu", "heart", "cancer", "flu"] * 4,
}
QUASI = {
    "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 50]}, "nulls": "top"},
    "born": {"role": "quasi_identifier", "hierarchy": {"dates": ["year"]}, "nulls": "top"},
    "seen": {"role": "quasi_identifier", "hierarchy": {"dates": ["month"]}},
    "dose": {"role": "quasi_identifier", "hierarchy": {"ranges": [0.5]}},
    "disease": "sensitive",
}


def visits(make_job: MakeJob, publish: dict[str, Any] | None = None, **settings: Any) -> Job:
    """A table without entities, at the levels of ranges and units."""
    given = {"attributes": QUASI, "privacy": [{"k_anonymity": {"k": 1}}], "search": {"node": [1, 1, 1, 1]}}
    job = make_job(VISITS, {"age": "INTEGER"}, **{**given, "versions": {"joint": "none"}, **settings})
    job.settings["publish"] |= publish or {}
    return job


def shown(job: Job, columns: str, more: str = "") -> list[tuple[Any, ...]]:
    return sorted(job.query(f"SELECT {columns} FROM published.people {more}"), key=str)


def columns_of(job: Job) -> list[str]:
    query = "SELECT column_name FROM information_schema.columns WHERE table_name = 'people' AND table_schema = "
    return [name for (name,) in job.query(f"{query} 'published' ORDER BY ordinal_position")]


def test_labels_of_one_form_have_the_bounds_of_the_other(make_job: MakeJob) -> None:
    age = {**QUASI["age"], "hierarchy": {"ranges": [10, 50], "labels": "half_open"}}
    job = visits(make_job, attributes={**QUASI, "age": age})
    assert job.run().status == "published"
    assert set(shown(job, "age, age_low, age_high")) == {
        ("[20, 30)", 20.0, 30.0),
        ("[30, 40)", 30.0, 40.0),
        ("[90, 100)", 90.0, 100.0),
        ("*", float("-inf"), float("inf")),
    }
    assert set(shown(job, "dose")) == {("[0.5, 1)",), ("[1, 1.5)",), ("[1.5, 2)",)}


def test_bounds_stand_beside_their_labels_and_are_typed(make_job: MakeJob) -> None:
    job = visits(make_job)
    assert job.run().status == "published"
    assert columns_of(job) == [
        *("age", "age_low", "age_high", "born", "born_from", "born_until", "seen", "seen_from", "seen_until"),
        *("dose", "dose_low", "dose_high", "disease"),
    ]
    assert set(shown(job, "age, age_low, age_high")) == {
        ("20-29", 20.0, 30.0),
        ("30-39", 30.0, 40.0),
        ("90-99", 90.0, 100.0),
        ("*", float("-inf"), float("inf")),
    }
    born = "born, CAST(born_from AS VARCHAR), CAST(born_until AS VARCHAR)"
    assert set(shown(job, born)) == {
        ("1990", "1990-01-01", "1991-01-01"),
        ("1991", "1991-01-01", "1992-01-01"),
        ("*", "-infinity", "infinity"),
    }
    assert set(shown(job, "seen, seen_from, seen_until")) == {
        ("2024-02", date(2024, 2, 1), date(2024, 3, 1)),
        ("2024-03", date(2024, 3, 1), date(2024, 4, 1)),
    }
    assert set(shown(job, "dose, dose_low, dose_high")) == {
        ("[0.5, 1)", 0.5, 1.0),
        ("[1, 1.5)", 1.0, 1.5),
        ("[1.5, 2)", 1.5, 2.0),
    }
    assert not verify(job.spec).problems


def test_no_filter_drops_a_row_that_may_be_meant(make_job: MakeJob) -> None:
    """Text compares 1990 before 1990-01-01, and drops a whole year; an outlier that is hidden may be anywhere."""
    job = visits(make_job)
    job.run()
    assert shown(job, "count(*)", "WHERE born >= '1990-01-01' AND born < '1991'") == [(0,)]
    assert shown(job, "count(*)", "WHERE born_from >= '1990-01-01' AND born_until <= '1991-01-01'") == [(8,)]
    assert shown(job, "count(*)", "WHERE born_from < '1991-01-01' AND born_until > '1990-01-01'") == [(12,)]
    for least, most in ((0, 10), (95, 98), (1000, 2000)):
        possible = f"WHERE age_low < {most} AND age_high > {least}"
        assert ("*",) in shown(job, "age", possible)
    assert shown(job, "avg((age_low + age_high) / 2)", "WHERE age <> '*'")[0][0] > 0


def test_the_least_and_the_greatest_value_are_nobodys_bound(make_job: MakeJob) -> None:
    job = visits(make_job, search={"node": [3, 2, 2, 2]})
    job.run()
    assert set(shown(job, "age_low, age_high")) == {(float("-inf"), float("inf"))}
    assert set(shown(job, "CAST(seen_from AS VARCHAR), CAST(seen_until AS VARCHAR)")) == {("-infinity", "infinity")}


def test_a_value_as_it_is_lies_within_its_bounds(make_job: MakeJob) -> None:
    job = visits(make_job, search={"node": [0, 0, 0, 0]})
    job.run()
    assert shown(job, "count(*)", "WHERE age_low <= 23 AND age_high > 23 AND age <> '*'") == [(2,)]
    assert shown(job, "count(*)", "WHERE dose_low <= 0.75 AND dose_high > 0.75") == [(4,)]
    assert shown(job, "count(*)", "WHERE dose_low < 0.75 AND dose_high > 0.75") == [(0,)]
    assert set(shown(job, "seen_from, seen_until")) == {
        (date(2024, 2, 29), date(2024, 3, 1)),
        (date(2024, 3, 1), date(2024, 3, 2)),
    }
    assert not verify(job.spec).problems


def test_boxes_of_a_map_have_bounds(make_job: MakeJob) -> None:
    search = {"recoding": "multidimensional"}
    quasi = {**QUASI, "born": "identifying", "seen": "identifying", "dose": "identifying"}
    job = visits(make_job, search=search, privacy=[{"k_anonymity": {"k": 4}}], attributes=quasi)
    job.run()
    found = shown(job, "age, age_low, age_high")
    assert all(low < high for _, low, high in found)
    # The bounds of a label that NULL has a part in are those of its values.
    shared = [(age, low, high) for age, low, high in found if age.endswith(" or (missing)")]
    assert shared
    assert all(age == f">={low:.0f} or (missing)" and high == float("inf") for age, low, high in shared)
    assert not verify(job.spec).problems
    assert job.run().status == "unchanged"


def test_a_box_that_joins_wrong_labels_of_a_file_is_open(make_job: MakeJob) -> None:
    """The file calls 35 one of 20-29: a box from 10 to 29 would drop that row from whoever asks for 30 and above."""
    ages = [12, 15, 23, 35, 41, 44, 47, 48]
    attributes = {"age": {"role": "quasi_identifier", "hierarchy": {"file": "age.csv"}}, "disease": "sensitive"}
    given = {"attributes": attributes, "search": {"recoding": "multidimensional"}, "versions": {"joint": "none"}}
    table = {"age": ages, "disease": ["flu", "heart"] * 4}
    job = make_job(table, {"age": "INTEGER"}, privacy=[{"k_anonymity": {"k": 4}}], **given)
    tens = {age: "20-29" if age == 35 else f"{age // 10}0-{age // 10}9" for age in ages}
    (job.folder / "age.csv").write_text("age,ten,all\n" + "".join(f"{age},{ten},*\n" for age, ten in tens.items()))
    job.run()
    found = dict(zip(("label", "low", "high"), zip(*shown(job, "age, age_low, age_high"), strict=True), strict=True))
    assert "10-19 to 20-29" in found["label"]
    assert {found["low"], found["high"]} == {(float("-inf"),) * 8, (float("inf"),) * 8}
    assert not verify(job.spec).problems


def test_text_alone_where_it_is_asked_for(make_job: MakeJob) -> None:
    job = visits(make_job, publish={"ranges": "text"})
    job.run()
    assert columns_of(job) == list(VISITS)
    assert job.run().status == "unchanged"
    job.settings["publish"]["ranges"] = "columns"
    assert job.run().version == 2
    assert "age_low" in columns_of(job)
    assert rollback(job.spec, 1).status == "rolled_back"
    assert columns_of(job) == list(VISITS)
    assert not verify(job.spec).problems


def test_ranges_of_the_engine(make_job: MakeJob) -> None:
    job = visits(make_job, publish={"ranges": "native"})
    if job.engine == "duckdb":
        with pytest.raises(InputError, match=r"spec.yaml:\d+: .*DuckDB has no types of ranges; write `columns`"):
            job.run()
        with pytest.raises(InputError, match="DuckDB has no types of ranges"):
            preview(job.spec)
        return
    job.run()
    assert columns_of(job) == [
        *("age", "age_range", "born", "born_range", "seen", "seen_range", "dose", "dose_range", "disease"),
    ]
    types = "pg_typeof(age_range)::text, pg_typeof(born_range)::text, pg_typeof(dose_range)::text"
    assert set(shown(job, types)) == {("int4range", "daterange", "numrange")}
    assert shown(job, "count(*)", "WHERE age_range <@ int4range(20, 30)") == [(6,)]
    assert shown(job, "count(*)", "WHERE age_range && int4range(20, 30)") == [(8,)]
    assert shown(job, "count(*)", "WHERE born_range @> DATE '1990-12-31'") == [(12,)]
    assert not verify(job.spec).problems
    assert job.run().status == "unchanged"


@pytest.mark.either_engine
def test_a_name_that_is_taken_is_said_before_anything_is_written(make_job: MakeJob) -> None:
    taken = {**VISITS, "AGE_low": [1] * 16}
    job = make_job(taken, attributes=QUASI, privacy=[{"k_anonymity": {"k": 1}}], search={"node": [1, 1, 1, 1]})
    for look in (preview, lambda spec: job.run()):
        with pytest.raises(InputError, match="bounds of age would be published as age_low, and that is a column alr"):
            look(job.spec)
    job.settings["publish"]["names"] = {"age_low": "age_least"}
    job.run()
    assert columns_of(job)[:3] == ["age", "age_least", "age_high"]
    assert not verify(job.spec).problems


def test_a_spec_that_says_nothing_goes_on_as_the_version_before(make_job: MakeJob) -> None:
    job = visits(make_job)
    job.settings["publish"]["ranges"] = "text"
    job.run()
    assert columns_of(job) == list(VISITS)
    del job.settings["publish"]["ranges"]
    job.change("UPDATE people SET age = 25 WHERE age = 23")
    assert job.run(force=True).version == 2
    assert columns_of(job) == list(VISITS)
    job.settings["publish"]["ranges"] = "columns"
    assert job.run().version == 3
    assert "born_until" in columns_of(job)
    del job.settings["publish"]["ranges"]
    job.run(force=True)
    assert "born_until" in columns_of(job)


@pytest.mark.either_engine
def test_a_copy_with_other_bounds_than_its_labels_is_not_published(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = visits(make_job)

    def wrong(session: Any, name: str, bound: Bound, hierarchy: Any, level: int) -> sa.TableClause:
        made = given(session, name, bound, hierarchy, level)
        if bound.attribute == "age":
            session.run(f"UPDATE {name} SET t1 = '31.0' WHERE t1 = '30.0'")
        return made

    given = copy.loaded
    monkeypatch.setattr(copy, "loaded", wrong)
    with pytest.raises(Refused, match="the copy holds other bounds of age than its labels have"):
        job.run()
