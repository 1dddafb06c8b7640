"""Rows come back in the library of data frames that they came in, which nobody else need have."""

from __future__ import annotations

import pickle
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import qblock

COLUMNS: dict[str, list[Any]] = {
    "age": [21, 22, 35, 38],
    "born": [date(1990, 1, 1), date(1990, 5, 1), date(1991, 1, 1), None],
    "pay": [1.5, 2.5, float("nan"), 4.0],
    "sex": ["f", "m", "f", "m"],
    "disease": ["flu", "heart", "flu", "cancer"],
}
QUASI = {
    "age": {"ranges": [10]},
    "born": {"hierarchy": {"dates": ["year"]}, "nulls": "top"},
    "pay": {"hierarchy": {"ranges": [2]}, "nulls": "top"},
    "sex": "suppress",
}


def anonymized(data: Any, **more: Any) -> qblock.Anonymized:
    return qblock.anonymize(data, QUASI, ["disease"], privacy=[{"k_anonymity": {"k": 1}}], **more)


@pytest.fixture(name="polars")
def with_polars() -> Any:
    return pytest.importorskip("polars", reason="polars is not installed: pip install polars")


def test_pandas_and_arrow_come_back_as_they_came(tmp_path: Path) -> None:
    frame, table = pd.DataFrame(COLUMNS), pa.table(COLUMNS)
    frame.to_parquet(tmp_path / "a.parquet")
    for data, kind in ((frame, pd.DataFrame), (table, pa.Table), (tmp_path / "a.parquet", pd.DataFrame)):
        made = anonymized(data)
        assert isinstance(made.frame, kind)
        assert isinstance(made.to_frame(), kind)
    assert anonymized(table).frame.equals(anonymized(frame).table)


def test_polars_comes_back_as_polars(polars: Any) -> None:
    frame = polars.DataFrame(COLUMNS)
    made = anonymized(frame)
    assert isinstance(made.frame, polars.DataFrame)
    assert made == anonymized(pd.DataFrame(COLUMNS)).model_copy(update={"table": made.table, "library": "polars"})
    assert made.frame.columns == made.table.column_names
    assert made.frame.schema["born_from"] == polars.Date
    assert made.frame.schema["age"] == polars.Int64
    assert made.frame.schema["pay_low"] == polars.Float64
    assert "9999-12-31" in str(made.frame["born_until"].max())
    assert pickle.loads(pickle.dumps(made)).to_frame().equals(made.frame)
    assert qblock.audit(frame, ["age"]).rows == qblock.profile(frame).rows == 4


def test_every_type_of_polars_is_taken(polars: Any) -> None:
    frame = polars.DataFrame(COLUMNS).with_columns(
        polars.col("sex").cast(polars.Categorical),
        polars.col("disease").cast(polars.Enum(["flu", "heart", "cancer", "secret"])),
        polars.col("age").cast(polars.UInt8),
        polars.col("pay").cast(polars.Decimal(9, 2), strict=False),
    )
    made = anonymized(frame)
    assert made.rows == 4
    assert "secret" not in str(made.table.schema)


def test_a_lazy_frame_is_told_to_be_computed(polars: Any) -> None:
    with pytest.raises(qblock.InputError, match=r"give frame\.collect\(\)"):
        anonymized(polars.DataFrame(COLUMNS).lazy())


def test_defaults_of_a_list_are_those_of_the_other_libraries(polars: Any) -> None:
    ask: dict[str, Any] = {"sensitive": ["disease"], "privacy": [{"k_anonymity": {"k": 1}}]}
    given = [pd.DataFrame(COLUMNS), pa.table(COLUMNS), polars.DataFrame(COLUMNS)]
    taken = [qblock.anonymize(data, list(QUASI), **ask).quasi_identifiers for data in given]
    assert taken[0] == taken[1] == taken[2]


@pytest.mark.parametrize("library", ["pandas", "arrow"])
def test_polars_is_not_imported_for_others(library: str) -> None:
    data = "pandas.DataFrame(columns)" if library == "pandas" else "pyarrow.table(columns)"
    code = f"""
import sys, pandas, pyarrow, qblock
columns = {{"a": [1, 1, 2], "s": ["x", "y", "x"]}}
made = qblock.anonymize({data}, ["a"], ["s"], privacy=[{{"k_anonymity": {{"k": 1}}}}])
made.frame, made._repr_html_()
print("polars" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert ran.stdout.strip() == "False"
