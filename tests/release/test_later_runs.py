"""A column of any type that a first version accepts passes all that follows: an unchanged run, a changed one, verify,
rollback and erasures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from qblock.release.erase import erase
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from release.jobs import Job, MakeJob

TYPES: dict[str, dict[str, tuple[str, str]]] = {
    "postgresql": {
        "bytea": (r"'\x00ff'", r"'\xdeadbeef'"),
        "raw_bytes": (r"'\x'", r"'\x5c78'"),
        "uuid": ("'00000000-0000-0000-0000-000000000001'", "'ffffffff-0000-0000-0000-000000000001'"),
        "boolean": ("true", "false"),
        "timestamptz": ("'2026-03-29 02:30:00+01'", "'0044-03-15 12:00:00+00 BC'"),
        "timestamp": ("'2026-03-29 02:30:00.5'", "'infinity'"),
        "date": ("'2024-02-29'", "'0044-03-15 BC'"),
        "interval": ("'1 mon -1 day'", "'30 days'"),
        "numeric(3,3)": ("0", "0.001"),
        "double precision": ("-0.0", "1e-7"),
        "real": ("0.1", "16777216"),
        "character(5)": ("'ab'", "'abcde'"),
        "inet": ("'10.0.0.1/8'", "'::1'"),
        "jsonb": ("""'{"a": 1}'""", "'null'"),
        "text[]": ("'{a,NULL}'", """'{"\\"",b}'"""),
        "bytea[]": (r"""'{"\\x00ff"}'""", r"""'{"\\x5c78"}'"""),
        "bit(3)": ("B'001'", "B'111'"),
        "int4range": ("'[1,3)'", "'empty'"),
        "mood": ("'sad'", "'glad, really'"),
    },
    "duckdb": {
        "BLOB": (r"'\x00\xFF'::BLOB", r"'\x5C\x78'::BLOB"),
        "UUID": ("'00000000-0000-0000-0000-000000000001'", "'ffffffff-0000-0000-0000-000000000001'"),
        "BOOLEAN": ("true", "false"),
        "TIMESTAMPTZ": ("'2026-03-29 02:30:00+01'", "'1999-12-31 23:59:59+00'"),
        "TIMESTAMP_NS": ("'2026-03-29 02:30:00.123456789'", "'1999-12-31 23:59:59'"),
        "DATE": ("'2024-02-29'", "'infinity'"),
        "TIME": ("'04:05:06.5'", "'00:00:00'"),
        "INTERVAL": ("INTERVAL '1 month'", "INTERVAL '30 days'"),
        "DECIMAL(3,3)": ("0", "0.001"),
        "DOUBLE": ("-0.0", "1e-7"),
        "TEXT[]": ("['a', NULL]", "['\"']"),
        "BLOB[]": (r"['\x00'::BLOB]", r"['\x5C'::BLOB]"),
        "STRUCT(a INTEGER)": ("{'a': 1}", "{'a': NULL}"),
        "MAP(TEXT, INTEGER)": ("MAP {'a': 1}", "MAP {'b': 2}"),
        "HUGEINT": ("0", "170141183460469231731687303715884105727"),
        "BIT": ("'001'::BIT", "'111'::BIT"),
        "JSON": ("""'{"a": 1}'""", "'null'"),
        "ENUM('sad', 'glad, really')": ("'sad'", "'glad, really'"),
    },
}
MADE = {
    "raw_bytes": "CREATE DOMAIN raw_bytes AS bytea",
    "mood": "CREATE TYPE mood AS ENUM ('sad', 'glad, really')",
}
ROLES: list[Any] = ["sensitive", "insensitive", {"role": "quasi_identifier", "hierarchy": "suppress"}]
TOGETHER: dict[str, dict[str, Any]] = {
    "refuse": {"entity": "n", "versions": {"on_refusal": "refuse"}},
    "hold_back": {"entity": "n", "versions": {"cohort": 2}},
    "bundles": {"entity": "n", "versions": {"cohort": 2}, "count": "entities"},
}
PEOPLE: dict[str, list[Any]] = {"n": list(range(24)), "block": ["q", "r"] * 12, "week": [1] * 16 + [2] * 8}
QUASI, OTHER = "n / 2 % 2 < 1", "n / 4 % 2 < 1"
"""Who has the first value of a quasi-identifier, and of another column: independent of each other and of the block."""
ENTITIES: dict[str, dict[str, str]] = {
    "postgresql": {
        "bytea": "decode(lpad(to_hex(n), 4, '0'), 'hex')",
        "timestamptz": "TIMESTAMPTZ '2026-03-29 00:00:00+00' + n * INTERVAL '1 hour'",
        "integer[]": "ARRAY[n, n]",
    },
    "duckdb": {
        "BLOB": "encode(chr(92) || chr(120) || n)",
        "TIMESTAMPTZ": "TIMESTAMPTZ '2026-03-29 00:00:00+00' + n * INTERVAL '1 hour'",
        "INTEGER[]": "[n, n]",
    },
}


def test_bytes_are_shown_again_as_they_were(make_job: MakeJob, engine_name: str) -> None:
    type_, (one, other) = next(iter(TYPES[engine_name].items()))
    extra = {
        f"column {i}": (type_, f"CASE WHEN {first} THEN CAST({one} AS {type_}) ELSE CAST({other} AS {type_}) END")
        for i, first in enumerate((OTHER, OTHER, QUASI))
    }
    job = job_over(make_job, extra)
    job.set(attributes=job.settings["attributes"] | dict(zip(extra, ROLES, strict=True)), **TOGETHER["hold_back"])
    job.set(search={"node": [0, 0]})
    job.run()
    first = published(job)
    job.change("INSERT INTO people SELECT * FROM everybody WHERE week = 2")
    assert job.run().version == 2
    assert set(published(job)) == set(first)


@pytest.mark.parametrize(
    ("turn", "together"), [(0, "hold_back"), (1, "hold_back"), (2, "hold_back"), (0, "refuse"), (1, "bundles")]
)
def test_columns_of_any_type(make_job: MakeJob, engine_name: str, turn: int, together: str) -> None:
    """Each type is in another role in each turn."""
    extra, roles = {}, {}
    for i, (type_, (one, other)) in enumerate(TYPES[engine_name].items()):
        role = ROLES[(i + turn) % len(ROLES)]
        first = QUASI if role == ROLES[-1] else OTHER
        value = f"CASE WHEN {first} THEN CAST({one} AS {type_}) ELSE CAST({other} AS {type_}) END"
        extra[f"a {type_}"], roles[f"a {type_}"] = (type_, value), role
    job = job_over(make_job, extra)
    attributes = job.settings["attributes"] | roles
    node = [0 for role in attributes.values() if role == ROLES[-1]]
    job.set(attributes=attributes, search={"node": node}, **TOGETHER[together])
    passes(job, ["0", "1"])


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
def test_values_that_are_equal_and_read_apart_are_published_as_they_read(make_job: MakeJob) -> None:
    """DuckDB takes a month and 30 days for one value, and a digest of what boxes show counts rows that are alike."""
    value = f"CASE WHEN {OTHER} THEN INTERVAL '1 month' ELSE INTERVAL '30 days' END"
    job = job_over(make_job, {"length": ("INTERVAL", value)})
    attributes = {**job.settings["attributes"], "length": "insensitive"}
    job.set(attributes=attributes, search={"recoding": "multidimensional"}, **TOGETHER["hold_back"])
    passes(job)
    assert {length for _, length in published(job)} == {"1 mon", "30 days"}


@pytest.mark.parametrize("together", ["hold_back", "bundles"])
@pytest.mark.parametrize(
    ("engine_name", "type_"), [(engine, t) for engine in ENTITIES for t in ENTITIES[engine]], indirect=["engine_name"]
)
def test_people_who_are_known_by_any_type(make_job: MakeJob, engine_name: str, type_: str, together: str) -> None:
    job = job_over(make_job, {"person": (type_, ENTITIES[engine_name][type_])})
    job.set(**TOGETHER[together] | {"entity": "person"})
    passes(job)


def passes(job: Job, erased: Sequence[str] = ()) -> None:
    first = run(job)
    job.change("INSERT INTO people SELECT * FROM everybody WHERE week = 2")
    second = run(job)
    assert (len(first), len(second), set(second)) == (16, 24, set(first))
    assert rollback(job.spec, 1).status == "rolled_back"
    assert (published(job), verify(job.spec).problems) == (first, ())
    if erased:
        assert erase(job.spec, erased[:1]).status == "queued"
        assert erase(job.spec, erased[1:], now=True).status == "erased"
        assert set(published(job)) <= set(first)
        assert verify(job.spec).problems == ()


def run(job: Job) -> list[tuple[str, ...]]:
    """What a run publishes, which a second one leaves as it is."""
    assert job.run().status == "published"
    assert (job.run().status, verify(job.spec).problems) == ("unchanged", ())
    return published(job)


def published(job: Job) -> list[tuple[str, ...]]:
    """The columns of the spec as texts: Python has not all values of all types."""
    texts = [f'CAST("{name}" AS TEXT)' for name in job.settings["attributes"]]
    return sorted(job.query(f"SELECT {', '.join(texts)} FROM published.people"))


def job_over(make_job: MakeJob, extra: dict[str, tuple[str, str]]) -> Job:
    """The job over the people of the first week, with further columns: their types, and their values in SQL."""
    job = make_job(PEOPLE, None, "everybody")
    for name, (type_, value) in extra.items():
        if type_ in MADE:
            job.change(MADE[type_])
        job.change(f'ALTER TABLE everybody ADD COLUMN "{name}" {type_}')
        job.change(f'UPDATE everybody SET "{name}" = {value}')
    job.change("CREATE TABLE people AS SELECT * FROM everybody WHERE week = 1")
    job.settings["source"]["table"] = "people"
    return job.set(attributes={"block": ROLES[-1]}, privacy=[{"k_anonymity": {"k": 2}}])
