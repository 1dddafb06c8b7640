"""Values that a builder cannot place: refused, or what the hierarchy does not cover, as the spec says."""

from __future__ import annotations

from typing import Any

import pytest

from qblock.errors import InputError
from qblock.release.verify import verify
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
