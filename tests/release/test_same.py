"""A release of a table in which values have several spellings: readers see one, and none that other rows decide where
they hold several versions."""

from __future__ import annotations

import re
from collections import Counter
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
from qblock.search.run import open_task
from release.jobs import Job, MakeJob

pytestmark = pytest.mark.either_engine

ILLS = ["Gout", "gout", "Gout ", "Gout", "flu"]
TOWNS = ["Oslo", "OSLO", "Oslo", "oslo", "Oslo"]
SAME = ["case", "space", "unicode"]
NONE: list[str] = []


def entry(name: str, same: list[str]) -> dict[str, Any]:
    plain = {"role": "sensitive"} if name == "ill" else {"role": "quasi_identifier", "hierarchy": "suppress"}
    return plain | ({"same": same} if same else {})


def spelled(make_job: MakeJob, same: list[str], **settings: Any) -> Job:
    columns = {"id": [f"p{i}" for i in range(10)], "town": TOWNS * 2, "ill": ILLS * 2}
    attributes = {"id": "identifying", **{name: entry(name, same) for name in ("town", "ill")}}
    known = {"attributes": attributes, "privacy": [{"k_anonymity": {"k": 2}}]}
    return make_job(columns, **{**known, **settings})


def test_the_example_of_the_page(make_job: MakeJob) -> None:
    page = (Path(__file__).parents[2] / "docs" / "spec.md").read_text("utf-8")
    found = re.findall(r"^\| (no|yes) \| (none|`\[case, space, unicode\]`) \| (.+) \| ([0-9]) \|$", page, re.MULTILINE)
    in_full = f"`[{', '.join(SAME)}]`"
    assert [(together, same) for together, same, *_ in found] == [("no", "none"), ("no", in_full), ("yes", in_full)]
    job = spelled(make_job, NONE, entity="id")
    job.change("DELETE FROM people WHERE id IN ('p5', 'p6', 'p7', 'p8', 'p9')")
    for together, same, read, many in found:
        job.settings["attributes"] |= {"ill": entry("ill", SAME if same == in_full else [])}
        job.set(versions={"joint": "episodes" if together == "yes" else "none"})
        with open_task(job.spec) as task:
            reference = task.source.sensitives["ill"].reference
        rows = dict(zip(reference.domain, reference.totals.tolist(), strict=True))
        assert (rows, len(rows)) == (Counter(re.findall("`(.+?)`", read)), int(many))


@pytest.mark.each_engine
def test_readers_see_one_spelling(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = spelled(make_job, SAME, versions={"joint": "none"})
    assert run(["plan", str(job.write())]) == 0
    said = re.sub(r"\s+", " ", capsys.readouterr().out)
    alike = "values that differ by case, spaces and composed letters alone being one"
    assert f"; read town, {alike}; read ill, {alike}; check its columns" in said
    assert job.run().rows == 10
    rows = job.query("SELECT town, ill FROM published.people")
    assert Counter(rows) == {("Oslo", "Gout"): 8, ("Oslo", "flu"): 2}
    assert not verify(job.spec).problems
    how = job.query("SELECT how_to_filter FROM published.people_columns WHERE column_name = 'ill'")
    assert how == [(f"published as it is in the source, {alike}",)]
    # Where nothing is promised of versions together, what is written by most is shown.
    job.change("UPDATE people SET ill = 'gout' WHERE ill <> 'flu'")
    assert job.run().status == "published"
    assert Counter(job.query("SELECT ill FROM published.people")) == {("gout",): 8, ("flu",): 2}


@pytest.mark.each_engine
def test_no_spelling_tells_of_other_rows_where_versions_are_checked_together(make_job: MakeJob) -> None:
    """Whoever knows all rows but one would see in the spelling of the others what that one is."""
    job = spelled(make_job, SAME, entity="id", versions={"on_refusal": "refuse"})
    job.run()
    shown = [("Oslo".lower(), "gout")] * 8 + [("oslo", "flu")] * 2
    assert sorted(job.query("SELECT town, ill FROM published.people")) == sorted(shown)
    for spelling in ("GOUT", "gout", "  Gout"):
        job.change(f"UPDATE people SET ill = '{spelling}', town = 'OSLO' WHERE ill <> 'flu'")
        assert job.run().status == "unchanged"
        assert sorted(job.query("SELECT town, ill FROM published.people")) == sorted(shown)


OTHER: dict[str, tuple[list[str], list[str], str]] = {
    "none before": (NONE, SAME, r"shows town as it is in the source, .* Remove `same: \[case, space, unicode\]`"),
    "none now": (SAME, NONE, r"shows town with `same: \[case, space, unicode\]`, and .* Write `same: .*` again"),
    "other parts": (["case"], SAME, r"shows town with `same: \[case\]`"),
}


@pytest.mark.parametrize("case", OTHER)
def test_other_spellings_than_those_of_an_earlier_version_are_refused(make_job: MakeJob, case: str) -> None:
    before, now, said = OTHER[case]
    job = spelled(make_job, before, entity="id", privacy=[{"k_anonymity": {"k": 2}}], search={"node": [1]})
    job.run()
    rows = job.published()
    job.settings["attributes"] |= {name: entry(name, now) for name in ("town", "ill")}
    with pytest.raises(InputError, match=said):
        job.run()
    assert job.published() == rows
    job.set(versions={"joint": "none"})
    assert job.run().status == "published"
    with pytest.raises(Refused, match="it shows town otherwise than the spec reads it now"):
        rollback(job.spec, 1)


@pytest.mark.parametrize("form", ["csv", "parquet", "only read"])
def test_the_content_of_files_and_of_a_server_that_is_only_read(
    make_job: MakeJob, form: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    job = spelled(make_job, SAME)
    digest = job.run().digest
    (tmp_path / "copied").mkdir()
    columns = {"id": [f"p{i}" for i in range(10)], "town": TOWNS * 2, "ill": ILLS * 2}
    source: dict[str, Any] = {"file": f"people.{form}"}
    if form == "only read":
        source = {"url": request.getfixturevalue("postgresql_url"), "table": "copied"}
        create_table(source["url"], "copied", columns)
    else:
        create_table(f"duckdb:///{tmp_path}/copied/w.duckdb", "people", columns)
        with duckdb.connect(str(tmp_path / "copied" / "w.duckdb")) as connection:
            connection.execute(f"COPY people TO '{tmp_path}/copied/people.{form}'")
    publish = {"schema": "published", "view": "people", "url": f"duckdb:///{tmp_path}/copied/release.duckdb"}
    copied = Job("duckdb", tmp_path / "copied", "", {**job.settings, "source": source, "publish": publish})
    assert copied.run().digest == digest


def test_a_check_proposes_it_and_then_says_nothing(make_job: MakeJob) -> None:
    job = spelled(make_job, NONE)
    remedies = {f.columns: f.remedy for f in Release(job.spec).check().checks if f.check == "spellings"}
    assert remedies == {
        (name,): f"attributes: {{{name}: {{same: [case, space, unicode]}}}}" for name in ("town", "ill")
    }
    for same, left in ((["case"], {("ill",)}), (SAME, set())):
        job.settings["attributes"] |= {name: entry(name, same) for name in ("town", "ill")}
        assert {f.columns for f in Release(job.spec).check().checks if f.check == "spellings"} == left
