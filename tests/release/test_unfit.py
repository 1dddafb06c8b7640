"""Values that a builder cannot place: refused, or what the hierarchy does not cover, as the spec says."""

from __future__ import annotations

from typing import Any

import pytest

from qblock.errors import InputError
from qblock.release.verify import verify
from qblock.releases import Release
from release.jobs import Job, MakeJob

CODES = ["10115", "10117", "D-1011", None, "1011", "10115", "10117", "80331", "80331", "10119", "80333", "80335"]
DAYS = ["2024-01-31", "2024-02-01", "31.1.2024", "soon", *["2024-01-05"] * 8]
DOSES = [0.5, 1.5, float("nan"), float("inf"), *[2.5] * 8]
FORMS: dict[str, tuple[list[Any], Any]] = {
    "digits": (CODES, {"digits": 5}),
    "dates": (DAYS, {"dates": ["month"]}),
    "ranges": (DOSES, {"ranges": [1]}),
    "suppress": (DOSES, "suppress"),
}


def attributes(form: Any, uncovered: str) -> dict[str, Any]:
    quasi = {"role": "quasi_identifier", "hierarchy": form, "nulls": "top", "uncovered": uncovered}
    return {"code": quasi, "disease": "sensitive"}


def made(make_job: MakeJob, name: str, uncovered: str) -> Job:
    values, form = FORMS[name]
    return make_job(
        {"code": values, "disease": ["flu", "cold"] * 6},
        attributes=attributes(form, uncovered),
        privacy=[{"k_anonymity": {"k": 1}}],
        search={"node": [0]},
        versions={"joint": "none"},
    )


@pytest.mark.parametrize("name", FORMS)
def test_they_are_refused_with_a_way_out(name: str, make_job: MakeJob) -> None:
    message = r"2 values of the column are not .*write `uncovered: top` \(they become \*\)"
    with pytest.raises(InputError, match=message):
        made(make_job, name, "refuse").run()


@pytest.mark.parametrize("name", FORMS)
def test_they_are_hidden_where_the_spec_says_so(name: str, make_job: MakeJob) -> None:
    values = FORMS[name][0]
    job = made(make_job, name, "top")
    assert job.run().status == "published"
    shown = [row[0] for row in job.published()]
    assert shown.count("*") == 2 + values.count(None)
    assert len(set(shown)) == len({str(v) for v in values if v is not None}) - 2 + 1
    assert not verify(job.spec).problems


@pytest.mark.parametrize("name", FORMS)
def test_it_is_said_of_how_many_rows_they_are(name: str, make_job: MakeJob) -> None:
    """Those without a value are not among them."""
    job = made(make_job, name, "top")
    (checked,) = Release(job.spec).check_hierarchies().hierarchies
    assert checked.uncovered == 2
    (finding,) = (f for f in Release(job.spec).check().checks if f.check == "uncovered")
    assert (finding.columns, finding.figure) == (("code",), {"rows": 2})
    assert finding.sentence == "the hierarchy of code lacks the values of 2 of 12 rows, which `uncovered: top` hides"
    assert "uncovered of code" in " ".join(job.run().notes)
    waiting = Release(job.set(attributes=attributes(FORMS[name][1], "quarantine")).spec).check_hierarchies()
    assert (waiting.rows, waiting.quarantined, waiting.hierarchies[0].uncovered) == (10, 2, 0)


def test_a_few_rows_are_no_finding(make_job: MakeJob) -> None:
    job = make_job(
        {"code": [*["10115"] * 19, "D-1", "10117"], "disease": ["flu", "cold", "none"] * 7},
        attributes=attributes({"digits": 5}, "top"),
        privacy=[{"k_anonymity": {"k": 1}}],
        search={"node": [0]},
        versions={"joint": "none"},
    )
    assert Release(job.spec).check_hierarchies().hierarchies[0].uncovered == 1
    assert not [f for f in Release(job.spec).check().checks if f.check == "uncovered"]
