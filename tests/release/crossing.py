"""A release whose two tables together tell everybody's value, and changes of its source's column types."""

from __future__ import annotations

from typing import Any

import pytest

from qblock.ledger.stores import store_of
from release.jobs import Job, MakeJob

COLUMNS: dict[str, list[Any]] = {
    "person": list(range(8)),
    "age": [21, 22, 21, 22, 31, 32, 31, 32],
    "zip": ["13053", "13053", "13063", "13063"] * 2,
    "s": [1, 1, 2, 2, 2, 2, 1, 1],
}
"""By age alone and by zip alone every block has both values; both tables together tell everybody's."""
TYPES = {"person": "INTEGER", "age": "INTEGER", "s": "INTEGER"}
ATTRIBUTES = {
    "person": "identifying",
    "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10]}},
    "zip": {"role": "quasi_identifier", "hierarchy": {"digits": 5}},
    "s": "sensitive",
}
FIRST, CROSSING, HARMLESS = {"age": 1, "zip": 5}, {"age": 2, "zip": 0}, {"age": 2, "zip": 5}
ALTER = {
    "duckdb": "ALTER TABLE people ALTER COLUMN {0} SET DATA TYPE {1}",
    "postgresql": "ALTER TABLE people ALTER COLUMN {0} TYPE {1} USING {2}",
}


def alter(job: Job, column: str, type_: str, using: str | None = None) -> None:
    how = f"{column}::text::{type_}" if using is None else using
    statement = ALTER["postgresql" if job.engine == "postgresql" else "duckdb"].format(column, type_, how)
    if job.engine != "postgresql" and using is not None:
        statement += f" USING {using}"
    job.change(statement)


def at(job: Job, node: dict[str, int]) -> Job:
    return job.set(search={"node": node})


def events(job: Job, state: str) -> list[Any]:
    with store_of(job.spec).read() as reader:
        return [event for event in reader.history("people") if event.state == state]


@pytest.fixture
def crossing(make_job: MakeJob) -> Any:
    """`crossing(columns={}, types={}, **settings)`: the release of COLUMNS with entities, at its first node."""

    def made(columns: dict[str, Any] | None = None, types: dict[str, str] | None = None, **settings: Any) -> Job:
        job = make_job(
            COLUMNS | (columns or {}),
            TYPES | (types or {}),
            attributes=ATTRIBUTES,
            entity="person",
            privacy=[{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}],
            **{"versions": {"on_refusal": "refuse"}, **settings},
        )
        return at(job, FIRST)

    return made


def two(one: Any, other: Any) -> dict[str, list[Any]]:
    """The sensitive attribute with other values."""
    return {"s": [one if value == 1 else other for value in COLUMNS["s"]]}
