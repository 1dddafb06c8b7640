"""Data frames of Spark, of a session that somebody has: their answers are those of the same rows in Arrow."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import qblock
from qblock.engines.spark.client import end
from qblock.errors import InputError, QblockError

pytestmark = pytest.mark.spark

ROWS = 60
QUASI = {
    "age": {"hierarchy": {"ranges": [10]}, "nulls": "top"},
    "the day": {"hierarchy": {"dates": ["month", "year"]}, "nulls": "top"},
    "a.b": {"hierarchy": "suppress", "nulls": "top"},
    "pay": {"hierarchy": {"ranges": [100]}, "nulls": "top"},
}
HOSTILE = ("", "x", "a'b", "`q`", "back\\slash", "new\nline", None)


def table() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "age": pa.array([20 + i % 7 if i % 11 else None for i in range(ROWS)], pa.int32()),
            "the day": pa.array([date(2024, 1 + i % 3, 1 + i % 28) for i in range(ROWS)]),
            "a.b": [HOSTILE[i % len(HOSTILE)] for i in range(ROWS)],
            "pay": pa.array([Decimal(f"{i}.50") for i in range(ROWS)], pa.decimal128(10, 2)),
            "seen": pa.array([datetime(2024, 1, 1, i % 24) for i in range(ROWS)], pa.timestamp("us", "UTC")),
            "score": pa.array([float("nan") if i % 9 == 0 else i / 4 for i in range(ROWS)]),
            "tags": pa.array([[str(i % 5), "x"] if i % 7 else None for i in range(ROWS)]),
            "ill": ["flu" if i % 3 else "cold" for i in range(ROWS)],
        }
    )


@pytest.fixture(scope="module")
def session(spark_url: str) -> Iterator[Any]:
    from pyspark.sql.connect.session import SparkSession

    made = SparkSession.builder.remote(spark_url).create()
    yield made
    end(made)


def test_it_is_anonymized_as_arrow_is_and_comes_back(session: Any) -> None:
    rows, given = table(), {"privacy": [{"k_anonymity": {"k": 4}}], "suppression_limit": 0.1}
    for sensitive in (["ill"], ["ill", "seen"]):
        here = qblock.anonymize(rows, QUASI, sensitive, **given)
        there = qblock.anonymize(session.createDataFrame(rows), QUASI, sensitive, **given)
        assert (there.digest, there.source_digest, there.rows, there.node) == (
            here.digest,
            here.source_digest,
            here.rows,
            here.node,
        )
        assert type(there.frame).__module__.startswith("pyspark.sql.")
        back = there.frame.toArrow()
        assert back.column_names == here.table.column_names
        assert back.select(["age", "a.b", "ill"]).to_pylist() == here.table.select(["age", "a.b", "ill"]).to_pylist()
        kept = pickle.loads(pickle.dumps(there))
        assert kept.table.equals(there.table)
        with pytest.raises(InputError, match=r"spark\.createDataFrame\(made\.table\)"):
            kept.to_frame()


def test_it_is_audited_and_profiled_as_arrow_is(session: Any) -> None:
    rows = table().drop_columns(["score"])  # of which NaN is missing in Arrow alone
    frame = session.createDataFrame(rows)
    for ask in (
        lambda data: qblock.audit(data, ["age", "a.b", "tags"], ["ill"]).to_dict(),
        lambda data: qblock.profile(data).to_dict(),
    ):
        assert _without_seconds(ask(frame)) == _without_seconds(ask(rows))


def _without_seconds(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "seconds"}


def test_what_fails_is_said_without_values(session: Any, capfd: Any) -> None:
    frame = session.createDataFrame(table())
    with pytest.raises(InputError, match="has no column 'aeg'; did you mean age"):
        qblock.audit(frame, ["aeg"], ["ill"])
    with pytest.raises(InputError, match="column unread has the type list"):
        qblock.audit(frame.selectExpr("array(null) AS unread", "ill"), ["unread"], ["ill"])
    wrong = session.createDataFrame(pa.table({"age": ["a secret", "2"], "ill": ["x", "y"]}))
    with pytest.raises(QblockError) as raised:
        qblock.audit(wrong.selectExpr("CAST(age AS INT) AS age", "ill"), ["age"], ["ill"])
    assert "secret" not in f"{raised.value}{capfd.readouterr()}"
