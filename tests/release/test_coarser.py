"""A release whose sensitive numbers are published as ranges: what is counted, published, recounted and kept are the
ranges, and no number of the source."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from qblock.cli.app import run
from qblock.errors import InputError, Refused
from qblock.release.preview import preview
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from qblock.releases import Release
from release.jobs import Job, MakeJob
from release.test_waiting import HOLD_BACK

pytestmark = pytest.mark.either_engine

LAGGING = {**HOLD_BACK, "cohort": 4}
QUASI = {"role": "quasi_identifier", "hierarchy": "suppress"}
RANGES = {"ranges": [10000], "from": 10000, "to": 30000}
"""Labels <10000, [10000, 20000), [20000, 30000), >=30000."""
PAID = {
    "p0": ("q", 9123),
    "p1": ("q", 10000),
    "p2": ("q", 19999),
    "p3": ("q", 31234),
    "r0": ("r", 12345),
    "r1": ("r", 20001),
    "r2": ("r", 29871),
    "r3": ("r", 987654),
}
SHOWN = (
    "q:<10000 q:>=30000 q:[10000, 20000) q:[10000, 20000) r:>=30000 r:[10000, 20000) r:[20000, 30000) r:[20000, 30000)"
)
"""By hand."""
PRIVACY = [
    {"k_anonymity": {"k": 4}},
    {"distinct_l_diversity": {"l": 3}},
    {"t_closeness": {"t": 0.5, "distance": "ordered"}},
]


def paid_job(make_job: MakeJob, published: Any = RANGES, **settings: Any) -> Job:
    columns = {
        "id": list(PAID),
        "block": [block for block, _ in PAID.values()],
        "paid": [paid for _, paid in PAID.values()],
    }
    entry = {"role": "sensitive", **({} if published is None else {"publish_as": published})}
    attributes = {"id": "identifying", "block": QUASI, "paid": entry}
    return make_job(columns, attributes=attributes, entity="id", **{"privacy": PRIVACY, **settings})


def shown(job: Job) -> str:
    return " ".join(sorted(f"{block}:{paid}" for block, paid, *_ in job.published()))


def test_the_example_of_the_page(make_job: MakeJob) -> None:
    page = (Path(__file__).parents[2] / "docs" / "spec.md").read_text("utf-8")
    rows = re.findall(r"^\| ([qr]) \| ([0-9, ]+) \| (.+) \|$", page, re.MULTILINE)
    assert [(block, int(paid)) for block, before, _ in rows for paid in before.split(", ")] == list(PAID.values())
    assert (
        " ".join(sorted(f"{block}:{label}" for block, _, after in rows for label in re.findall("`(.+?)`", after)))
        == SHOWN
    )
    reached, job = {}, paid_job(make_job)
    for published in (RANGES, None):
        entry = {"role": "sensitive", **({} if published is None else {"publish_as": published})}
        job.settings["attributes"]["paid"] = entry
        found = Release(job.spec).search().chosen
        assert found is not None
        values = {g.model: g.values[0].exact or g.values[0].value for g in found.tightest}
        reached[published is None] = (Fraction(values["t_closeness"]), values["distinct_l_diversity"])
    # By hand: of eight steps q has 1, 2, 4 and 7, so that 1/8, 2/8, 1/8, 2/8, 1/8, 0 and 1/8 are to be moved on, of 7.
    assert reached == {True: (Fraction(1, 7), 4), False: (Fraction(1, 8), 3)}
    assert "is 1/7 with the numbers and 1/8 with the ranges" in page


@pytest.mark.each_engine
def test_ranges_are_counted_and_published(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = paid_job(make_job)
    path = str(job.write())
    found = Release(job.spec).search()
    assert found.chosen is not None
    # Three different labels in both blocks. By the order of the four ranges, whose shares are 1/8, 3/8, 2/8 and 2/8: of
    # q 2/8, 4/8, 0 and 2/8, so that 1/8, 2/8 and 0 are to be moved on, 3/8 of 3 steps; r is as far on the other side.
    reached = {g.model: g.values[0].exact or g.values[0].value for g in found.chosen.tightest}
    assert (found.chosen.levels, reached["distinct_l_diversity"], float(reached["t_closeness"])) == ((0,), 3, 0.125)
    for words in (["audit"], ["compare"], ["plan"], ["hierarchy", "check"], ["preview"]):
        if words != ["preview"]:
            assert run([*words, path]) == 0, (words, capsys.readouterr())
    said = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "read paid in ranges of 10000 from 10000 to 30000, as it is published" in said
    result = job.run()
    assert (result.rows, shown(job)) == (8, SHOWN)
    assert not verify(job.spec).problems
    assert job.run().status == "unchanged"
    how = job.query("SELECT how_to_filter FROM published.people_columns WHERE column_name = 'paid'")
    assert how == [("published in ranges of 10000 from 10000 to 30000",)]
    for name, options in {"readers.html": [], "officer.html": ["--internal"]}.items():
        assert run(["report", path, *options, "--output", str(job.folder / name)]) == 0
        page = (job.folder / name).read_text()
        assert "in ranges of 10000 from 10000 to 30000" in page
        assert not [number for _, number in PAID.values() if number != 10000 and str(number) in page]
    assert "publish_as" in (job.folder / "officer.html").read_text()


def test_no_statement_reads_the_column_otherwise(make_job: MakeJob) -> None:
    texts: list[str] = []

    def note(_: Any, __: Any, text: str, *more: object) -> None:
        texts.append(re.sub(r"\s+", " ", text))

    job = paid_job(make_job, versions=LAGGING)
    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        Release(job.spec).search()
        Release(job.spec).audit()
        Release(job.spec).compare()
        preview(job.spec)
        job.run()
        job.change("UPDATE people SET paid = 21000 WHERE id = 'r2'")  # of the same range
        assert job.run().status == "unchanged"
        job.change("INSERT INTO people VALUES ('t', 'q', 10500), ('u', 'q', 20500), ('v', 'q', 30500), ('w', 'q', 0)")
        job.run()
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    assert Counter(paid for _, paid, *_ in job.published()).keys() == {
        "<10000",
        "[10000, 20000)",
        "[20000, 30000)",
        ">=30000",
    }
    named = r'(FROM|JOIN) ("?\w+"?\.)*"people"'
    reading = [text for text in texts if re.search(named, text) and '"published"."people"' not in text]
    with_it = [text for text in reading if re.search(r"\bpaid\b", text)]
    assert len(with_it) > 10
    assert not [text for text in with_it if "CASE WHEN" not in text]


@pytest.mark.each_engine
def test_a_value_of_the_same_range_is_no_change_and_another_is(make_job: MakeJob) -> None:
    job = paid_job(make_job, versions={"joint": "none"})
    job.begin()
    job.change("UPDATE people SET paid = 20002 WHERE id = 'r1'")
    assert job.run().status == "unchanged"
    job.change("UPDATE people SET paid = 12000 WHERE id = 'r1'")
    assert job.run().status == "published"
    assert shown(job).count("r:[10000, 20000)") == 2


def test_ranges_fail_what_a_finer_column_satisfies(make_job: MakeJob) -> None:
    """Fewer labels are less diverse, and the refusal does not advise to have fewer yet."""
    four = [{"k_anonymity": {"k": 4}}, {"distinct_l_diversity": {"l": 5}}]
    job = paid_job(make_job, None, privacy=four)
    assert Release(job.spec).search().satisfying == 1
    job.settings["attributes"]["paid"]["publish_as"] = RANGES
    with pytest.raises(Refused, match=r"distinct_l_diversity asks l 5; the most general node satisfies l 4") as caught:
        job.run()
    assert "coarser" not in str(caught.value)


@pytest.mark.parametrize(
    ("published", "advice"),
    [
        (None, "or publish paid coarser: `publish_as: {ranges: [10000], from: 0, to: 200000}`"),
        (RANGES, "or publish paid coarser yet (`publish_as`)"),
    ],
)
def test_a_refusal_names_the_key_where_it_helps(make_job: MakeJob, published: Any, advice: str) -> None:
    model = {"epsilon_privacy": {"epsilon": 1.001, "adversary": "II", "stubbornness": 1000, "prior": "uniform"}}
    job = paid_job(make_job, published, privacy=[model])
    with pytest.raises(Refused) as caught:
        job.run()
    assert advice in str(caught.value)


SHOWN_AS = "version 1 of release people shows of paid `publish_as: {ranges: [10000], from: 10000, to: 30000}`, and "
OTHER: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "finer before": (None, RANGES, {}, "shows of paid its values as they are, and versions with other labels"),
    "other ranges": (RANGES, {**RANGES, "ranges": [5000]}, {}, SHOWN_AS),
    "other ranges, cohorts": (RANGES, {**RANGES, "ranges": [5000]}, LAGGING, SHOWN_AS),
    "other ends": (RANGES, {**RANGES, "to": 40000}, {"on_refusal": "refuse"}, SHOWN_AS),
    "finer now": (RANGES, None, {}, SHOWN_AS),
}


@pytest.mark.each_engine
@pytest.mark.parametrize("case", OTHER)
def test_other_labels_than_those_of_an_earlier_version_are_refused(
    make_job: MakeJob, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    before, now, versions, said = OTHER[case]
    job = paid_job(make_job, before, versions=versions, privacy=[{"k_anonymity": {"k": 4}}])
    job.begin()
    rows, entry = job.published(), job.settings["attributes"]["paid"]
    entry.pop("publish_as", None)
    entry |= {} if now is None else {"publish_as": now}
    path = str(job.write())
    for command in (["plan"], ["release"], ["ledger", "retype"]):
        # Where a plan does not judge, with `refuse`, it says what a release would do.
        assert run([*command, path]) == (0 if command == ["plan"] and versions == {"on_refusal": "refuse"} else 2)
        error = re.sub(r"\s+", " ", "".join(capsys.readouterr()))
        assert said.removeprefix("version 1 of release people") in error
        assert ("Remove publish_as, or," if before is None else "to: 30000}` again, or,") in error
    job.change("UPDATE people SET paid = 12000 WHERE id = 'r1'")
    assert run(["release", path]) == 2
    assert job.published() == rows
    # What was shown goes on.
    job.change("UPDATE people SET paid = 20001 WHERE id = 'r1'")
    entry.pop("publish_as", None)
    entry |= {} if before is None else {"publish_as": before}
    assert job.run().status == "unchanged"


@pytest.mark.parametrize(("before", "now"), [(None, 1), (1, None), (1, 2)])
def test_another_level_than_that_of_an_earlier_version_is_refused(
    make_job: MakeJob, before: int | None, now: int | None
) -> None:
    job = paid_job(make_job, None, privacy=[{"k_anonymity": {"k": 4}}])
    leaves = "".join(
        f"{paid},{paid // 10000}0000s,{'low' if paid < 20000 else 'high'},*\n" for _, paid in PAID.values()
    )
    (job.folder / "paid.csv").write_text(f"paid,tens,half,all\n{leaves}")
    entry = job.settings["attributes"]["paid"]
    entry["taxonomy"] = {"file": "paid.csv"}
    entry |= {} if before is None else {"publish_as": {"level": before}}
    job.run()
    # A report is about what readers see, which are no leaves.
    for options in ([], ["--internal"]):
        assert run(["report", str(job.write()), *options, "--output", str(job.folder / "report.html")]) == 0
    entry.pop("publish_as", None)
    entry |= {} if now is None else {"publish_as": {"level": now}}
    with pytest.raises(InputError, match="with other labels cannot be checked together; nothing is published"):
        job.run()


@pytest.mark.each_engine
def test_labels_do_not_follow_the_type_of_the_column(make_job: MakeJob) -> None:
    """As where one NULL, or one decimal, makes another type of a column of a file."""
    job = paid_job(make_job, privacy=[{"k_anonymity": {"k": 4}}])
    digest = job.run().digest
    job.change("ALTER TABLE people ALTER COLUMN paid TYPE DECIMAL(12, 2)")
    job.change("UPDATE people SET paid = 12345.67 WHERE id = 'r0'")
    result = job.run()
    assert (result.status, result.digest) == ("unchanged", digest)


def test_releases_of_one_audience_have_the_same_ranges(make_job: MakeJob) -> None:
    job = paid_job(make_job, privacy=[{"k_anonymity": {"k": 4}}], versions={"on_refusal": "refuse"})
    job.run()
    audience = {"on_refusal": "refuse", "audience": [job.settings["release"]]}
    other = {**job.settings["publish"], "view": "second"}
    other |= {"url": f"duckdb:///{job.folder}/second.duckdb"} if job.engine == "duckdb" else {}
    job.set(release="second", publish=other, versions=audience)
    job.settings["attributes"]["paid"]["publish_as"] = {**RANGES, "ranges": [5000]}
    with pytest.raises(InputError) as caught:
        job.run()
    assert "people, which the same readers may hold, shows of paid `publish_as: {ranges: [10000]" in str(caught.value)
    job.settings["attributes"]["paid"]["publish_as"] = RANGES
    assert job.run().status == "published"


@pytest.mark.each_engine
def test_where_nobody_keeps_versions_the_next_one_has_other_labels(make_job: MakeJob) -> None:
    job = paid_job(make_job, None, versions={"joint": "none"}, privacy=[{"k_anonymity": {"k": 4}}])
    job.begin()
    job.settings["attributes"]["paid"]["publish_as"] = RANGES
    assert (job.run().version, shown(job)) == (2, SHOWN)
    # Of which readers would be told that its values are ranges.
    with pytest.raises(Refused, match="it shows other labels of paid than the spec says now"):
        rollback(job.spec, 1)
    assert shown(job) == SHOWN


@pytest.mark.parametrize(("before", "now"), [(None, 1), (1, None)])
def test_a_report_is_refused_where_the_taxonomy_is_of_other_values(
    make_job: MakeJob, before: int | None, now: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    job = paid_job(make_job, None, versions={"joint": "none"}, privacy=[{"k_anonymity": {"k": 4}}])
    leaves = "".join(f"{paid},{paid // 10000}0000s,*\n" for _, paid in PAID.values())
    (job.folder / "paid.csv").write_text(f"paid,tens,all\n{leaves}")
    entry = job.settings["attributes"]["paid"]
    entry["taxonomy"] = {"file": "paid.csv"}
    entry |= {} if before is None else {"publish_as": {"level": before}}
    job.run()
    entry.pop("publish_as", None)
    entry |= {} if now is None else {"publish_as": {"level": now}}
    report = ["report", str(job.write()), "--output", str(job.folder / "report.html")]
    assert run(report) == 2
    said = re.sub(r"\s+", " ", capsys.readouterr().err)
    assert "paid is published " in said
    assert "run `qblock release` first" in said
    job.run()
    assert run(report) == 0
