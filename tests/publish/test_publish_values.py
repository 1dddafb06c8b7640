"""Names, types and values that a warehouse may hold, and none of which may change what is published."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from engines import table_name
from integration.sources import quoted
from release.jobs import ATTRIBUTES, PEOPLE, Job, MakeJob

from qblock.errors import InputError
from qblock.release.verify import verify

pytestmark = [pytest.mark.every_postgresql, pytest.mark.handed_on]

HOSTILE = ['a"b', "per cent %s %(x)s", "semi; DROP TABLE people; --", ":bound", "größe 'x'", "SELECT"]
VALUES = ["'; DROP TABLE people; --", '"', "%s :x \\", "naïve ☃", "a|b", " "]


def sorted_bytewise(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    def key(row: tuple[Any, ...]) -> list[tuple[bool, bytes]]:
        return [(value is not None, str("" if value is None else value).encode()) for value in row]

    return sorted(rows, key=key)


def test_hostile_names_and_values(make_job: MakeJob, engine_name: str) -> None:
    quasi, sensitive, plain, entity, *_ = HOSTILE
    columns = {
        entity: [f"e{i}" for i in range(12)],
        quasi: ["x", "y"] * 6,
        sensitive: VALUES * 2,
        plain: [VALUES[0], VALUES[3], None] * 4,
        "qblock_version": ["1", "2"] * 6,
    }
    table, schema = table_name(engine_name, 'pe"op%le; :x'), table_name(engine_name, 'sche"ma %s')
    job = make_job(
        columns,
        table=table,
        schema=schema,
        release="r_1" if engine_name == "spark" else "R_1",
        source={"url": "", "table": ""},
        attributes={
            entity: "identifying",
            quasi: {"role": "quasi_identifier", "hierarchy": "suppress"},
            sensitive: "sensitive",
            plain: "insensitive",
            "qblock_version": "insensitive",
        },
        privacy=[{"k_anonymity": {"k": 12}}, {"distinct_l_diversity": {"l": 6}}],
    )
    job.settings["source"] = {"url": job.url, "table": quoted(schema, table)}
    job.settings["publish"] |= {
        "schema": table_name(engine_name, 'pub"li; %s :y'),
        "view": table_name(engine_name, "vi'e\"w %(x)s ☃"),
    }
    result = job.run()
    assert (result.status, result.rows, result.node) == ("published", 12, {quasi: 1})
    expected = [
        ("*", s, p, v) for s, p, v in zip(columns[sensitive], columns[plain], columns["qblock_version"], strict=True)
    ]
    assert (sorted_bytewise(published(job)) if engine_name == "spark" else published(job)) == sorted_bytewise(expected)
    assert not verify(job.spec).problems
    assert job.run().status == "unchanged"
    assert job.run(force=True).version == 2
    assert not verify(job.spec).problems


def published(job: Job) -> list[tuple[Any, ...]]:
    schema, view = (name.replace('"', '""') for name in (job.settings["publish"][k] for k in ("schema", "view")))
    return job.query(f'SELECT * FROM "{schema}"."{view}"')


def test_null_is_mapped_where_the_spec_says_so(make_job: MakeJob) -> None:
    job = make_job(
        PEOPLE | {"zip": [None, *PEOPLE["zip"][1:]], "disease": [None, *PEOPLE["disease"][1:]]},
        attributes=ATTRIBUTES
        | {
            "zip": {"role": "quasi_identifier", "hierarchy": {"digits": 5}, "nulls": "top"},
            "disease": {"role": "sensitive", "nulls": "value"},
        },
        search={"node": [1, 3]},
        privacy=[{"k_anonymity": {"k": 1}}, {"distinct_l_diversity": {"l": 1}}],
    )
    assert job.run().rows == 12
    rows = [
        ("*" if z is None else z[:4] + "*", "*", d, w)
        for z, d, w in zip([None, *PEOPLE["zip"][1:]], [None, *PEOPLE["disease"][1:]], PEOPLE["ward"], strict=True)
    ]
    assert job.published() == sorted_bytewise(rows)
    assert not verify(job.spec).problems


@pytest.mark.parametrize("level", [0, 5])
def test_null_reads_as_the_top_at_every_level(make_job: MakeJob, level: int) -> None:
    zips = [None, *PEOPLE["zip"][1:]]
    job = make_job(
        PEOPLE | {"zip": zips},
        attributes=ATTRIBUTES | {"zip": {"role": "quasi_identifier", "hierarchy": {"digits": 5}, "nulls": "top"}},
        search={"node": [level, 3]},
        privacy=[{"k_anonymity": {"k": 1}}],
    )
    job.run()
    expected = ["*" if zip_code is None or level else zip_code for zip_code in zips]
    assert sorted(row[0] for row in job.published()) == sorted(expected)


def test_null_blocks_are_suppressed_like_others(make_job: MakeJob) -> None:
    job = make_job(
        PEOPLE | {"zip": [None, *PEOPLE["zip"][1:]]},
        attributes=ATTRIBUTES | {"zip": {"role": "quasi_identifier", "hierarchy": {"digits": 5}, "nulls": "top"}},
        search={"node": [1, 2]},
        suppression_limit=3,
        privacy=[{"k_anonymity": {"k": 3}}],
    )
    result = job.run()
    assert (result.rows, result.suppressed) == (11, 1)
    assert "*" not in {row[0] for row in job.published()}


def test_columns_keep_their_types_and_order_by_their_text(make_job: MakeJob) -> None:
    numbers = [10, 9, 100, None] * 3
    job = make_job(
        PEOPLE
        | {
            "amount": [Decimal("1.50"), Decimal("-2.00"), Decimal("10.00")] * 4,
            "number": numbers,
            "share": [0.1, 1e-7, 2.5e15] * 4,
            "day": [date(2020, 1, 31), date(1999, 12, 1)] * 6,
            "moment": [datetime(2020, 1, 31, 12, 30), datetime(1999, 12, 1, 0, 0, 0, 5)] * 6,
            "flag": [True, False] * 6,
        },
        {"amount": "NUMERIC(10, 2)", "number": "SMALLINT"},
        attributes={
            "zip": {"role": "quasi_identifier", "hierarchy": "suppress"},
            **dict.fromkeys(("number", "amount", "share", "day", "moment", "flag"), "insensitive"),
        },
        privacy=[{"k_anonymity": {"k": 12}}],
    )
    job.run()
    rows = job.published()
    assert {type(value) for row in rows for value in row} == {
        str, int, type(None), Decimal, float, date, datetime, bool,
    }  # fmt: skip
    assert [row[1] for row in rows] == [None] * 3 + [10] * 3 + [100] * 3 + [9] * 3
    assert not verify(job.spec).problems


def test_the_digest_is_the_same_on_every_engine(make_job: MakeJob) -> None:
    job = make_job(
        PEOPLE
        | {
            "amount": [Decimal("1.50"), Decimal("-2.00"), Decimal("10.00")] * 4,
            "share": [0.1, -0.25, 3.0] * 4,
            "day": [date(2020, 1, 31), date(1999, 12, 1)] * 6,
            "moment": [datetime(2020, 1, 31, 12, 30), datetime(1999, 12, 1, 0, 0, 0, 5)] * 6,
            "flag": [True, False, None] * 4,
            "text": ["ä", "", None] * 4,
        },
        {"amount": "NUMERIC(10, 2)"},
        attributes=ATTRIBUTES | dict.fromkeys(("amount", "share", "day", "moment", "flag", "text"), "insensitive"),
        search={"node": [1, 2]},
    )
    job.settings["publish"]["ranges"] = "text"
    assert job.run().digest == digest_by_definition(job)


def digest_by_definition(job: Job) -> str:
    """The content digest from what Python's own values read like, in Python alone."""
    names = [name for name, role in job.settings["attributes"].items() if role != "identifying"]
    return expected_digest(names, job.published())


def expected_digest(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """The same of any rows."""

    def text(value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, float | Decimal):
            return f"{value:.12f}".rstrip("0").rstrip(".")
        return str(value)

    buckets: dict[str, list[str]] = {}
    for row in rows:
        encoded = "".join("N" if v is None else f"V{len(text(v).encode())}:{text(v)}" for v in row)
        digest = hashlib.sha256(encoded.encode()).hexdigest()
        buckets.setdefault(digest[:3], []).append(digest)
    content = {
        "columns": list(names),
        "rows": sum(map(len, buckets.values())),
        "buckets": [
            [prefix, len(found), hashlib.sha256("".join(sorted(found)).encode()).hexdigest()]
            for prefix, found in sorted(buckets.items())
        ],
    }
    text_ = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text_.encode()).hexdigest()


def test_other_types_are_published_as_text(job: Job, engine_name: str) -> None:
    job.change("CREATE TYPE mood AS ENUM ('flu', 'happy', 'heart', 'cancer', 'viral', 'never seen')")
    using = "" if engine_name == "duckdb" else " USING disease::mood"
    job.change(f"ALTER TABLE people ALTER disease TYPE mood{using}")
    job.run()
    query = (
        "SELECT data_type FROM information_schema.columns "
        "WHERE column_name = 'disease' AND table_name = 'people' AND table_schema = 'published'"
    )
    assert job.query(query) == [("VARCHAR" if engine_name == "duckdb" else "text",)]
    assert {row[2] for row in job.published()} == {"heart", "viral", "cancer", "flu"}
    if engine_name == "duckdb":
        assert b"never seen" not in job.target.read_bytes()


def test_identifying_and_unnamed_columns_are_nowhere(make_job: MakeJob) -> None:
    # A time with a zone is published in a form of its own, where it is published.
    born = [datetime(2020, 1, 1, i, tzinfo=UTC) for i in range(12)]
    job = make_job(
        PEOPLE | {"unnamed": [f"unnamed {i}" for i in range(12)], "born": born},
        {"born": "TIMESTAMP WITH TIME ZONE"},
        attributes=ATTRIBUTES | {"born": "identifying"},
    )
    job.run()
    assert len(job.published()[0]) == 4
    if job.engine == "duckdb":
        content = job.target.read_bytes()
        assert b"person" not in content
        assert b"unnamed" not in content
        assert b"1305*" in content


def test_labels_that_would_read_the_same_are_refused(make_job: MakeJob) -> None:
    job = make_job(
        PEOPLE | {"zip": ["*", None, *PEOPLE["zip"][2:]]},
        attributes=ATTRIBUTES | {"zip": {"role": "quasi_identifier", "hierarchy": "suppress", "nulls": "top"}},
        privacy=[{"k_anonymity": {"k": 1}}],
    )
    with pytest.raises(InputError, match=r"zip: a leaf `\*` reads like NULL"):
        job.run()


def test_numbers_that_differ_in_the_last_digit_read_apart(make_job: MakeJob) -> None:
    job = make_job(
        PEOPLE | {"age": [0.1, 0.10000000000000009] * 6},
        attributes=ATTRIBUTES | {"age": {"role": "quasi_identifier", "hierarchy": "suppress"}},
        search={"node": [5, 0]},
        privacy=[{"k_anonymity": {"k": 1}}],
        versions={"joint": "none"},
    )
    job.run()
    found = job.query("SELECT age, count(*) FROM published.people GROUP BY age ORDER BY age")
    assert found == [("0.1", 6), ("0.10000000000000009", 6)]
