"""Values beside their labels (`publish.exact`), and NULL for an open end (`publish.open_ends`), both from the label."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from release.jobs import Job, MakeJob

from qblock.engines.tables import Column
from qblock.errors import InputError
from qblock.hierarchy import Hierarchy
from qblock.hierarchy.bounds import Reader
from qblock.ledger.kept import PublishedColumn
from qblock.publish.bounds import Bound
from qblock.release.verify import verify
from qblock.releases import Release

pytestmark = pytest.mark.either_engine

YEARS = [1999, 2000, 2001, 2002]
TABLE: dict[str, list[Any]] = {
    "year": [YEARS[i % 4] for i in range(48)],
    "dose": [[0.5, 0.75, 1.25, 30.0][i // 4 % 4] for i in range(48)],
    "born": [date(1990 + i % 3, 1 + i // 16, 5) for i in range(48)],
    "disease": ["abc"[i % 3] for i in range(48)],
}
QUASI: dict[str, Any] = {
    "year": {"role": "quasi_identifier", "hierarchy": {"edges": [2000]}},
    "dose": {"role": "quasi_identifier", "hierarchy": {"edges": [1]}},
    "born": {"role": "quasi_identifier", "hierarchy": {"dates": ["month", "year"]}},
    "disease": "sensitive",
}


def exact(make_job: MakeJob, node: list[int], **publish: Any) -> Job:
    settings = {"attributes": QUASI, "privacy": [{"k_anonymity": {"k": 1}}], "versions": {"joint": "none"}}
    types = {"year": "INTEGER", "dose": "DOUBLE PRECISION", "born": "DATE"}
    job = make_job(TABLE, types, search={"node": node}, **settings)
    job.settings["publish"] |= {"exact": True, **publish}
    job.run()
    return job


def test_a_value_that_is_shown_as_it_is_stands_beside_its_label(make_job: MakeJob) -> None:
    job = exact(make_job, [0, 0, 0])
    truth = sorted(zip(*(TABLE[name] for name in ("year", "dose", "born", "disease")), strict=True))
    assert sorted(job.query("SELECT year_exact, dose_exact, born_exact, disease FROM published.people")) == truth
    assert job.query("SELECT count(*) FROM published.people WHERE year_exact > 2000") == [(24,)]
    assert job.query("SELECT count(*) FROM published.people WHERE born_exact < DATE '1991-01-01'") == [(16,)]
    assert not verify(job.spec).problems


def test_a_label_of_several_has_none(make_job: MakeJob) -> None:
    job = exact(make_job, [1, 0, 2])
    said = job.query("SELECT DISTINCT year_exact, born_exact FROM published.people")
    assert said == [(None, None)]
    assert {value for (value,) in job.query("SELECT DISTINCT dose_exact FROM published.people")} == set(TABLE["dose"])
    roles = dict(job.query("SELECT column_name, role FROM published.people_columns"))
    assert roles["year_exact"] == "values of year"


def test_boxes_of_a_map_have_them_where_they_are_of_one_value(make_job: MakeJob) -> None:
    settings = {"attributes": QUASI, "privacy": [{"k_anonymity": {"k": 6}}], "versions": {"joint": "none"}}
    types = {"year": "INTEGER", "dose": "DOUBLE PRECISION", "born": "DATE"}
    job = make_job(TABLE, types, search={"recoding": "multidimensional", "choose_by": "loss"}, **settings)
    job.settings["publish"] |= {"exact": True, "ranges": "text"}
    job.run()
    shown = job.query("SELECT DISTINCT year, year_exact FROM published.people")
    assert {str(value) for _, value in shown if value is not None} == {label for label, _ in shown if label.isdigit()}
    assert job.query("SELECT sum(rows) FROM published.people_blocks") == [(48,)]


def test_a_group_that_a_file_calls_as_a_value_has_none() -> None:
    levels = ("5", "6", "7"), ("5", "5", "7"), ("*", "*", "*")
    hierarchy = Hierarchy("v", ("v", "group", "all"), levels)
    column = Column("v", "INTEGER", "integer", "INTEGER")
    for stated, values in ((hierarchy, [None, "6", "7"]), (None, ["5", "6", "7"])):
        reader = Reader("numbers", "integer", stated=stated)
        shown = PublishedColumn("v_exact", "exact", "INTEGER", "integer")
        bound = Bound("v", reader, (shown,), lambda _: (), "duckdb", column)
        assert [bound.texts_of(label)[0] for label in ("5", "6", "7")] == values
        assert [bound.value_of(label) for label in ("*", "5-7", "05", None)] == [None] * 4


def test_an_open_end_is_null_where_that_is_asked(make_job: MakeJob) -> None:
    job = exact(make_job, [0, 1, 3], exact=False, open_ends=None)
    ends = set(job.query("SELECT DISTINCT dose_low, dose_high FROM published.people"))
    assert ends == {(None, 1.0), (1.0, None)}
    assert job.query("SELECT DISTINCT born_from, born_until FROM published.people") == [(None, None)]
    assert set(job.query("SELECT low, high FROM published.people_levels WHERE column_name = 'dose'")) == {
        (None, "1.0"),
        ("1.0", None),
    }
    ((how,),) = job.query("SELECT how_to_filter FROM published.people_columns WHERE column_name = 'dose'")
    possibly = how.partition("possibly: ")[2]
    assert "IS NULL" in possibly
    # Each row may be meant, and a mean leaves out what is not known.
    assert job.query(f"SELECT count(*) FROM published.people WHERE {possibly}")[0][0] >= 24
    assert job.query("SELECT avg(dose_low), avg(dose_high) FROM published.people") == [(1.0, 1.0)]
    assert not verify(job.spec).problems


def test_a_report_takes_a_range_with_an_open_end_for_one(make_job: MakeJob) -> None:
    attributes = {"age": {"role": "quasi_identifier", "hierarchy": {"ranges": [5, 20]}}, "disease": "sensitive"}
    people = {"age": [18 + i % 45 for i in range(90)], "disease": ["abc"[i % 3] for i in range(90)]}
    search = {"recoding": "multidimensional", "choose_by": "loss"}
    words = []
    for ends in (None, "infinity"):
        named = {"table": f"people_{ends}", "release": f"people_{ends}", "versions": {"joint": "none"}}
        privacy = [{"k_anonymity": {"k": 9}}]
        job = make_job(people, {"age": "INTEGER"}, attributes=attributes, privacy=privacy, search=search, **named)
        job.settings["publish"] |= {"open_ends": ends, "view": f"people_{ends}"}
        if job.engine == "duckdb":
            job.target.unlink(missing_ok=True)
        job.run()
        published = Release(job.spec).report().published
        assert published is not None
        words.append(published.columns[0].after)
    assert "ranges like" in words[0]
    assert words[0] == words[1]


def test_a_report_says_what_the_values_are(make_job: MakeJob) -> None:
    published = Release(exact(make_job, [0, 0, 0]).spec).report().published
    assert published is not None
    said = {column.name: column.after for column in published.columns}
    assert said["year_exact"] == "the values of year, where they are shown as they are"


def test_a_name_that_is_taken_is_said(make_job: MakeJob) -> None:
    with pytest.raises(InputError, match=r"the values of year would be published as born.*exact: false"):
        exact(make_job, [0, 0, 0], names={"year_exact": "born"})


def test_the_type_is_that_of_the_source(make_job: MakeJob) -> None:
    job = exact(make_job, [0, 0, 0])
    types = {row[0]: row[1] for row in job.query(TYPES)}
    wanted = ("integer", "double precision", "date") if job.engine == "postgresql" else ("INTEGER", "DOUBLE", "DATE")
    assert tuple(types[f"{name}_exact"] for name in ("year", "dose", "born")) == wanted


TYPES = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'people'"


def test_another_word_for_an_open_end_is_no_word(make_job: MakeJob) -> None:
    with pytest.raises(InputError, match=r"publish\.open_ends: 'nul' is not valid; valid: infinity, null"):
        exact(make_job, [0, 0, 0], open_ends="nul")
