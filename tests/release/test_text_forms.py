"""What readers see of a time does not depend on their session, on both engines."""

from __future__ import annotations

from typing import Any

import pytest

from qblock.release.verify import verify
from release.jobs import MakeJob

pytestmark = pytest.mark.handed_on

COLUMNS: dict[str, list[Any]] = {
    "person": list(range(8)),
    "age": [21, 22, 23, 24, 31, 32, 33, 34],
    "dose": ["1.50", "2.00", "1.50", "2.00", "10.25", "1.50", "2.00", "10.25"],
    "since": ["2026-02-03 04:05:06+02"] * 8,
}
TYPES = {"age": "INTEGER", "dose": "NUMERIC(10,2)", "since": "TIMESTAMP WITH TIME ZONE"}
ATTRIBUTES = {
    "person": "identifying",
    "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10]}},
    "dose": "sensitive",
    "since": "insensitive",
}


def test_timestamps_with_a_zone_are_published_in_utc(make_job: MakeJob) -> None:
    job = make_job(COLUMNS, TYPES, attributes=ATTRIBUTES, privacy=[{"k_anonymity": {"k": 4}}])
    job.run()
    assert set(job.query("SELECT since FROM published.people")) == {("2026-02-03 02:05:06+00",)}
    assert verify(job.spec).problems == ()
