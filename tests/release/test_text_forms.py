"""Evidence is read by the text form that it was written in, on both engines."""

from __future__ import annotations

from typing import Any

import pytest

from qblock.ledger.kept import Kept, kept_digest
from qblock.ledger.reader import ledger_reader
from qblock.ledger.stores import place_of
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from release.before import old_program, run_old
from release.jobs import Job, MakeJob

pytestmark = pytest.mark.handed_on

COLUMNS: dict[str, list[Any]] = {
    "person": list(range(8)),
    "age": [21, 22, 23, 24, 31, 32, 33, 34],
    "dose": ["1.50", "2.00", "1.50", "2.00", "10.25", "1.50", "2.00", "10.25"],
    "since": ["2026-02-03 04:05:06"] * 4 + ["2026-02-03 04:05:06.5"] * 4,
}
TYPES = {"age": "INTEGER", "dose": "NUMERIC(10,2)", "since": "TIMESTAMP"}
ATTRIBUTES = {
    "person": "identifying",
    "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10]}},
    "dose": "sensitive",
    "since": "insensitive",
}
# Written by the program before the canonical text of values.
CONTENT = "ce13cff31005aedd548c0854c71a9576fe39eddb5862205166284931b3c5cf40"
KEPT = {
    "duckdb": "add47422aa5d6c17c9d1b60cf52ca8f993294948c0e50e8cc530192c07461529",
    "postgresql": "aaebfcd187fa55898b7ad46392d57059ad5b26197b170df73318bbfd6f8411fe",
}
OLD_KEPT = (
    '{"columns":[{"kind":"text","name":"age","role":"quasi_identifier","type":"text"},'
    '{"kind":"decimal","name":"dose","role":"sensitive","type":"numeric(10,2)"},'
    '{"kind":"timestamp","name":"since","role":"insensitive","type":"timestamp without time zone"}],'
    '"distinct":[{"domain":[],"numbers":null,"ordered":false,"prior":null,"rows":8,"taxonomy":null,"totals":[]},'
    '{"domain":["1.50","2.00","10.25"],"numbers":["3/2","2","41/4"],"ordered":true,"prior":null,"rows":8,'
    '"taxonomy":null,"totals":[3,3,2]}],"references":[[0],[1]]}'
)


@pytest.fixture
def doses(make_job: MakeJob) -> Job:
    """A release whose sensitive attribute is a decimal, without entities."""
    privacy = [{"k_anonymity": {"k": 4}}, {"distinct_l_diversity": {"l": 2}}]
    return make_job(COLUMNS, TYPES, attributes=ATTRIBUTES, privacy=privacy)


def test_what_was_kept_before_reads_and_writes_as_it_was() -> None:
    kept = Kept.of_text(OLD_KEPT)
    assert {column.form for column in kept.columns} == {1}
    assert kept.text() == OLD_KEPT
    assert kept_digest(kept.text()) == KEPT["postgresql"]


def test_a_version_from_before_is_verified_by_its_own_text(doses: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    before = run_old(doses, monkeypatch)
    assert before.digest == CONTENT
    with ledger_reader(place_of(doses.spec)) as reader:
        assert reader.history("people")[-1].reference_digest == KEPT[doses.engine]
    found = verify(doses.spec)
    assert (found.problems, found.digest) == ([], CONTENT)
    assert rollback(doses.spec, 1).status == "unchanged"


def test_a_version_from_before_is_gone_back_to(doses: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    run_old(doses, monkeypatch)
    doses.set(versions={"joint": "none"}).change("UPDATE people SET dose = 2.00 WHERE person = 0")
    assert doses.run().version == 2
    with ledger_reader(place_of(doses.spec)) as reader:
        assert '"form":2' in str(reader.reference("people", 2))
    assert verify(doses.spec).problems == []
    again = rollback(doses.spec, 1)
    assert (again.status, again.digest) == ("rolled_back", CONTENT)
    assert verify(doses.spec).problems == []


def test_an_upgrade_alone_publishes_nothing(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    with old_program(monkeypatch):
        before = job.run()
    after = job.run()
    assert (after.status, after.version, after.digest) == ("unchanged", 1, before.digest)


def test_content_from_before_is_no_other_content(doses: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    run_old(doses, monkeypatch)
    assert doses.run().status == "unchanged", "decimals read otherwise, and the rows are those that readers see"


def test_timestamps_with_a_zone_are_published_in_utc(make_job: MakeJob) -> None:
    columns = {**COLUMNS, "since": ["2026-02-03 04:05:06+02"] * 8}
    privacy = [{"k_anonymity": {"k": 4}}]
    job = make_job(columns, {**TYPES, "since": "TIMESTAMP WITH TIME ZONE"}, attributes=ATTRIBUTES, privacy=privacy)
    job.run()
    assert set(job.query("SELECT since FROM published.people")) == {("2026-02-03 02:05:06+00",)}
    assert verify(job.spec).problems == []
