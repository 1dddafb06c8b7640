"""A release of a table with codes for unknown: readers see `*`, or NULL, and no code is counted, published or kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest
from engines import create_table

from qblock.cli.app import run
from qblock.errors import InputError, Refused
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from qblock.releases import Release
from release.jobs import Job, MakeJob

pytestmark = pytest.mark.either_engine

AGES = [21, 22, 25, 999, -1, 999]
SHOWN = ["*", "*", "*", "20-29", "20-29", "20-29"]
"""At level 1, by hand."""
ILLS = ["flu", "?", "gout", "flu", "?", "gout"]
CODES = {"age": [999, -1], "ill": ["?"]}
NONE: dict[str, list[Any]] = {"age": [], "ill": []}


def entry(name: str, codes: list[Any]) -> dict[str, Any]:
    plain = {"role": "quasi_identifier", "hierarchy": {"ranges": [10]}, "nulls": "top"}
    if name == "ill":
        plain = {"role": "sensitive", "nulls": "value"}
    elif codes:
        del plain["nulls"]
    return plain | ({"unknown": codes} if codes else {})


def coded(make_job: MakeJob, codes: dict[str, list[Any]], rows: int = 1, **settings: Any) -> Job:
    columns = {"id": [f"p{i}" for i in range(6 * rows)], "age": AGES * rows, "ill": ILLS * rows}
    attributes = {"id": "identifying", **{name: entry(name, codes[name]) for name in codes}}
    known = {"attributes": attributes, "privacy": [{"k_anonymity": {"k": 3}}], "search": {"node": [1]}}
    return make_job(columns, **{**known, **settings})


def test_the_example_of_the_page(make_job: MakeJob) -> None:
    page = (Path(__file__).parents[2] / "docs" / "spec.md").read_text("utf-8")
    without, with_them = re.findall(r"^\| 21, 22, 25, 999, -1, 999 \| (.+) \| (.+) \| ([0-9]) \|$", page, re.MULTILINE)
    job = coded(make_job, NONE, privacy=[{"k_anonymity": {"k": 1}}], versions={"joint": "none"})
    for codes, (unknown, labels, k) in ((NONE, without), (CODES, with_them)):
        assert unknown == (f"`{CODES['age']}`" if codes["age"] else "none")
        job.settings["attributes"] |= {name: entry(name, codes[name]) for name in codes}
        shown = [age for (age,) in job.run() and job.query("SELECT age FROM published.people")]
        assert sorted(shown) == sorted(re.findall("`(.+?)`", labels))
        assert min(map(shown.count, shown)) == int(k)


@pytest.mark.each_engine
def test_readers_see_no_code(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = coded(make_job, CODES, entity="id")
    assert run(["plan", str(job.write())]) == 0
    said = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "; read -1, 999 of age as NULL; read ? of ill as NULL; check its columns" in said
    assert job.run().rows == 6
    rows = job.query("SELECT age, ill FROM published.people")
    # Where newcomers come as cohorts, a node is a map.
    assert sorted(age.replace("(missing)", "*") for age, _ in rows) == SHOWN
    assert sorted(str(ill) for _, ill in rows) == ["None", "None", "flu", "flu", "gout", "gout"]
    assert not verify(job.spec).problems
    how = job.query("SELECT how_to_filter, source_type FROM published.people_columns WHERE column_name = 'ill'")
    assert how[0][0] == "published as it is in the source, NULL where it is not known"
    assert how[0][1]
    for name, options in {"readers.html": [], "officer.html": ["--internal"]}.items():
        assert run(["report", str(job.write()), *options, "--output", str(job.folder / name)]) == 0
        assert ("999" in (job.folder / name).read_text()) == (name == "officer.html")
    # One code in place of another is no change.
    job.change("UPDATE people SET age = -1, ill = ill WHERE age = 999")
    assert job.run().status == "unchanged"


@pytest.mark.parametrize("recoding", ["full_domain", "multidimensional"])
def test_the_content_is_that_of_a_table_with_null(make_job: MakeJob, recoding: str) -> None:
    search: dict[str, Any] = {"recoding": recoding, **({"node": [1]} if recoding == "full_domain" else {})}
    job = coded(make_job, CODES, 4, search=search)
    digest = job.run().digest
    job.change("UPDATE people SET age = NULL WHERE age IN (-1, 999)")
    job.change("UPDATE people SET ill = NULL WHERE ill = '?'")
    job.settings["attributes"] = {"id": "identifying", **{name: entry(name, []) for name in CODES}}
    assert job.run(force=True).digest == digest
    job.settings["attributes"]["age"]["nulls"] = "refuse"
    with pytest.raises(InputError, match="column age is NULL in 12 rows"):
        job.run()


def test_it_goes_with_a_condition_on_the_code(make_job: MakeJob) -> None:
    job = coded(make_job, {"age": [999], "ill": []}, privacy=[{"k_anonymity": {"k": 1}}], search={"node": [0]})
    job.settings["source"]["where"] = "age >= 25"
    assert job.run().rows == 3
    assert sorted(row[0] for row in job.query("SELECT age FROM published.people")) == ["*", "*", "25"]


def test_it_goes_with_what_is_published_in_place_of_a_number(make_job: MakeJob) -> None:
    ranges = {"ranges": [100], "from": 0, "to": 1000}
    paid = {"role": "sensitive", "nulls": "value", "unknown": [999], "publish_as": ranges}
    other = {"role": "quasi_identifier", "hierarchy": "suppress"}
    job = coded(make_job, NONE, attributes={"age": paid, "ill": other}, search={})
    job.set(privacy=[{"k_anonymity": {"k": 1}}]).run()
    found = sorted(str(row[0]) for row in job.query("SELECT age FROM published.people"))
    assert found == ["<0", "None", "None", "[0, 100)", "[0, 100)", "[0, 100)"]


@pytest.mark.parametrize("form", ["csv", "parquet", "only read"])
def test_the_content_of_files_and_of_a_server_that_is_only_read(
    make_job: MakeJob, form: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    job = coded(make_job, CODES)
    digest = job.run().digest
    (tmp_path / "copied").mkdir()
    columns = {"id": [f"p{i}" for i in range(6)], "age": AGES, "ill": ILLS}
    source: dict[str, Any] = {"file": f"people.{form}"}
    if form == "only read":
        source = {"url": request.getfixturevalue("postgresql_url"), "table": "copied"}
        create_table(source["url"], "copied", columns)
    else:
        create_table(f"duckdb:///{tmp_path}/copied/w.duckdb", "people", columns)
        with duckdb.connect(str(tmp_path / "copied" / "w.duckdb")) as connection:
            connection.execute(f"COPY people TO '{tmp_path}/copied/people.{form}'")
        source |= {"types": {"age": "integer"}} if form == "csv" else {}
    publish = {"schema": "published", "view": "people", "url": f"duckdb:///{tmp_path}/copied/release.duckdb"}
    copied = Job("duckdb", tmp_path / "copied", "", {**job.settings, "source": source, "publish": publish})
    assert copied.run().digest == digest


OTHER: dict[str, tuple[dict[str, list[Any]], dict[str, list[Any]], str]] = {
    "none before": (NONE, CODES, "shows age as it is in the source, and versions that are read otherwise"),
    "none now": (CODES, NONE, r"shows age with `unknown: \[-1, 999\]`, and .* Write `unknown: \[-1, 999\]` again"),
    "another one": (CODES, {**CODES, "age": [999]}, r"shows age with `unknown: \[-1, 999\]`"),
    "of a sensitive attribute": ({**CODES, "ill": []}, CODES, "shows ill as it is in the source, .*Remove `unknown"),
}


@pytest.mark.parametrize("case", OTHER)
def test_other_codes_than_those_of_an_earlier_version_are_refused(make_job: MakeJob, case: str) -> None:
    before, now, said = OTHER[case]
    job = coded(make_job, before, 2, entity="id", privacy=[{"k_anonymity": {"k": 2}}])
    job.run()
    rows = job.published()
    job.settings["attributes"] |= {name: entry(name, now[name]) for name in now}
    with pytest.raises(InputError, match=said):
        job.run()
    assert run(["ledger", "retype", str(job.write())]) == 2
    assert job.published() == rows
    job.settings["attributes"] |= {name: entry(name, list(reversed(before[name]))) for name in now}
    assert job.run().status == "unchanged"
    job.set(versions={"joint": "none"})
    job.settings["attributes"] |= {name: entry(name, now[name]) for name in now}
    assert job.run().status == "published"
    # Of which readers would be told otherwise.
    with pytest.raises(Refused, match=r"it shows (age|ill) otherwise than the spec reads it now"):
        rollback(job.spec, 1)


def test_a_check_proposes_it_and_then_says_nothing(make_job: MakeJob) -> None:
    ages = [age for age in range(20, 70) for _ in range(3)]
    columns = {"age": [*ages, *[999] * 30], "pay": [*ages, *[-1] * 30]}
    attributes: dict[str, Any] = {
        "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10]}},
        "pay": {"role": "sensitive"},
    }
    job = make_job(columns, attributes=attributes, privacy=[{"k_anonymity": {"k": 2}}])
    checked = Release(job.spec).check()
    remedies = {f.columns: f.remedy for f in checked.checks if f.check == "unknown_codes"}
    assert remedies == {
        ("age",): "attributes: {age: {unknown: [999]}}",
        ("pay",): "attributes: {pay: {unknown: [-1], nulls: value}}",
    }
    attributes["age"]["unknown"] = [999]
    attributes["pay"] |= {"unknown": [-1], "nulls": "value"}
    checked = Release(job.write()).check()
    assert ([f for f in checked.checks if f.check == "unknown_codes"], checked.notes) == ([], ())
    attributes["age"]["unknown"] = [999, 1000]
    assert Release(job.write()).check().notes == ()
    job.settings["source"]["where"] = "age < 999"
    notes = [note.split(": ", 1)[1] for note in Release(job.write()).check().notes]
    assert notes == ["no row of age has 1000 or 999: remove `unknown`", "no row of pay has -1: remove `unknown`"]
