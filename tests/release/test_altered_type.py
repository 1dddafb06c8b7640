"""A quasi-identifier whose type cannot hold what is frozen of it: refused by name, and no frozen value is told."""

from __future__ import annotations

import pytest

from qblock.cli.app import run
from qblock.errors import Refused
from qblock.ledger.history import history
from release.jobs import PEOPLE, MakeJob

pytestmark = pytest.mark.handed_on

ZIPS = [f"A{zip_}" for zip_ in PEOPLE["zip"]]


def test_a_quasi_identifier_that_became_a_number_quotes_no_frozen_value(
    make_job: MakeJob, capfd: pytest.CaptureFixture[str]
) -> None:
    job = make_job(PEOPLE | {"zip": ZIPS}, entity="name", versions={"cohort": "auto"})
    job.set(attributes=job.settings["attributes"] | {"zip": {"role": "quasi_identifier", "hierarchy": "suppress"}})
    assert job.begin().status == "published"
    job.change("UPDATE people SET zip = '4711'")
    using = " USING zip::integer" if job.engine == "postgresql" else ""
    job.change(f"ALTER TABLE people ALTER COLUMN zip TYPE INTEGER{using}")
    for _ in range(2):
        assert run(["release", str(job.write()), "--quiet"]) == 3
        err = capfd.readouterr().err
        assert "column zip is of type integer now, and was of type" in err.lower()
        assert "qblock ledger retype" in err
        assert [value for value in ZIPS if value in err] == []
    event = history(job.spec)["events"][-1]
    assert event["state"] == "refused"
    assert [value for value in ZIPS if value in event["reason"]] == []


def test_after_the_type_is_changed_back_the_job_goes_on(make_job: MakeJob) -> None:
    job = make_job(PEOPLE | {"zip": ZIPS}, entity="name", versions={"cohort": "auto"})
    job.set(attributes=job.settings["attributes"] | {"zip": {"role": "quasi_identifier", "hierarchy": "suppress"}})
    job.begin()
    job.change("CREATE TABLE before_change AS SELECT * FROM people")
    job.change("UPDATE people SET zip = '4711'")
    using = " USING zip::integer" if job.engine == "postgresql" else ""
    job.change(f"ALTER TABLE people ALTER COLUMN zip TYPE INTEGER{using}")
    with pytest.raises(Refused, match="column zip is of type"):
        job.run()
    job.change("DROP TABLE people")
    job.change("CREATE TABLE people AS SELECT * FROM before_change")
    assert job.run().status == "unchanged"
