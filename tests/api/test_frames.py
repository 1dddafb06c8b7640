"""What a data frame may hold: missing values of every kind, labels, types, and names that mean something elsewhere."""

from __future__ import annotations

from datetime import time
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import qblock
from qblock.errors import InputError, hide_tracebacks

K1: list[dict[str, Any]] = [{"k_anonymity": {"k": 1}}]
NULLS = {"hierarchy": "suppress", "nulls": "top"}


def anonymize(data: Any, *quasi: str, k: int = 1, sensitive: Any = ("s",), **more: Any) -> qblock.Anonymized:
    given = {"ranges": "text", **more}  # the labels alone
    return qblock.anonymize(data, dict.fromkeys(quasi, NULLS), sensitive, privacy=[{"k_anonymity": {"k": k}}], **given)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1.0, np.nan, 1.0]),
        pd.Series([1, pd.NA, 1], dtype="Int64"),
        pd.Series(["1", None, "1"], dtype=object),
        pd.Series(["1", np.nan, "1"], dtype=object),
        pd.Series(["1", pd.NA, "1"], dtype="string"),
        pd.Series(["1", None, "1"], dtype="category"),
        pd.Series([Decimal(1), Decimal("NaN"), Decimal("1.0")], dtype=object),
        pd.Series(pd.arrays.ArrowExtensionArray(pa.array([1.0, float("nan"), 1.0]))),
    ],
)
def test_every_kind_of_missing_value_is_null(column: pd.Series) -> None:
    found = anonymize(pd.DataFrame({"a": column, "s": ["x", "x", "y"]}), "a")
    assert found.frame["a"].tolist() == ["*", "1", "1"]
    with pytest.raises(qblock.InputError, match="column a is NULL in 1 row"):
        qblock.anonymize(pd.DataFrame({"a": column, "s": 1}), {"a": "suppress"}, ["s"], privacy=K1)


def test_a_missing_time_is_null() -> None:
    frame = pd.DataFrame({"a": pd.to_datetime(["2026-02-03", pd.NaT, "2026-02-03"]), "s": ["x", "x", "y"]})
    assert anonymize(frame, "a").frame["a"].tolist() == ["*", "2026-02-03 00:00:00", "2026-02-03 00:00:00"]


def test_index_and_order_tell_nothing_of_the_source() -> None:
    frame = pd.DataFrame({"a": [3, 1, 2, 1], "s": ["z", "y", "x", "x"]}, index=["Ann", "Bob", "Cyd", "Dan"])
    found = anonymize(frame, "a")
    assert found.frame.index.equals(pd.RangeIndex(4))
    assert list(map(tuple, found.frame.itertuples(index=False))) == [("1", "x"), ("1", "y"), ("2", "x"), ("3", "z")]
    for order in ([3, 2, 1, 0], [1, 3, 0, 2]):
        pd.testing.assert_frame_equal(anonymize(frame.iloc[order], "a").frame, found.frame)
    assert "Ann" not in repr(found) + found.model_dump_json() + found._repr_html_()
    indexed = frame.set_index("a", append=True)
    with pytest.raises(qblock.InputError, match="no column 'a'"):
        anonymize(indexed, "a")


def test_what_is_returned_is_nobody_elses() -> None:
    frame = pd.DataFrame({"a": [1, 2], "s": ["x", "y"]})
    found = anonymize(frame, "a")
    found.frame.loc[0, "s"] = "changed"
    assert found.to_frame()["s"].tolist() == ["x", "y"]
    assert frame["s"].tolist() == ["x", "y"]


def test_only_the_columns_that_are_named_are_looked_at_and_returned() -> None:
    frame = pd.DataFrame({"a": [1, 2], "odd": [1, "x"], "s": ["x", "y"], "lists": [[1], [2]], 7: [1, 2]})
    assert list(anonymize(frame, "a").frame.columns) == ["a", "s"]


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pd.DataFrame([[1, 2, 3]], columns=["a", "a", "s"]), "the data frame has 2 columns named 'a'"),
        (pd.DataFrame({"a": [1], "A": [2], "s": [3]}), "the columns 'a' and 'A' differ by case alone"),
        (pd.DataFrame({"a": [[None]], "A": [1], "s": ["x"]}), "column a has the type list"),
        (pd.DataFrame({"a": ["secret", 1], "A": 1, "s": "x"}), "column a (object) holds values that have no one type"),
        (pd.DataFrame({"a": [1j], "A": 1, "s": "x"}), "column a (complex128) holds values that have no one type"),
        (pd.DataFrame({"a": [pd.Period("2026-02")], "A": 1, "s": "x"}), "column a has the type extension"),
        (pd.DataFrame({"a": ["\ud800"], "A": 1, "s": "x"}, dtype=object), "column a"),
    ],
)
def test_columns_that_cannot_be_told_apart_or_compared(frame: pd.DataFrame, said: str) -> None:
    names = ("a", "A") if "case" in said else ("a",)
    with pytest.raises(qblock.InputError) as caught:
        anonymize(frame, *names)
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


def test_uuids_say_who_a_row_is_about_and_lists_have_a_profile() -> None:
    frame = pd.DataFrame(
        {"who": [UUID(int=i // 2) for i in range(8)], "a": [1, 2] * 4, "s": ["x", "y"] * 4, "tags": [["p"], ["q"]] * 4}
    )
    for table in (frame, pa.Table.from_pandas(frame)):
        found = qblock.profile(table)
        assert (found.entity.column, found.entity.count) == ("who", "entities")
        assert [column.distinct for column in found.columns] == [4, 2, 2, 2]
    people = qblock.anonymize(
        frame, {"a": "suppress"}, ["s"], entity="who", count="entities", privacy=[{"k_anonymity": {"k": 4}}]
    )
    assert people.guarantees[0].values[0].value == 4


def test_names_that_are_no_text() -> None:
    frame = pd.DataFrame([[1, 2], [2, 3]])
    for names in ([0], ["0"]):
        with pytest.raises(qblock.InputError, match=r"frame\.columns = frame\.columns\.map\(str\)"):
            qblock.audit(frame, names)
    assert qblock.audit(frame.rename(columns=str), ["0"], ["1"]).rows == 2
    tuples = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")]))
    with pytest.raises(qblock.InputError, match="no column 'a'"):
        qblock.audit(tuples, ["a"])


@pytest.mark.parametrize(
    "name",
    ["n", "e", "q0", "s0", "c0", "t0", "leaf", "qblock_suppressed", "qblock_raw", "rowid", "select", "h", "*"],
)  # fmt: skip
@pytest.mark.parametrize("role", ["quasi", "sensitive", "insensitive"])
def test_a_column_called_like_something_of_ours(name: str, role: str) -> None:
    frame = pd.DataFrame({name: [1, 1, 2, 2], "other": ["x", "y", "x", "y"]})
    if role == "quasi":
        found = anonymize(frame, name, sensitive=["other"], k=2)
    elif role == "sensitive":
        found = anonymize(frame, "other", sensitive=[name], k=2)
    else:
        found = anonymize(frame, "other", sensitive=[], insensitive=[name], k=2)
    assert set(found.frame.columns) == {name, "other"}
    assert found.rows == 4


@pytest.mark.parametrize(
    "name", ["Straße", "年齢", "a b", 'a"b', "a'b", "a.b", "a;--", "${HOME}", "%s", ":x", "\t", "<b>"]
)
def test_any_text_is_a_name(name: str) -> None:
    frame = pd.DataFrame({name: [1, 1], f"{name}2": ["x", "y"]})
    found = qblock.anonymize(
        frame, {name: "suppress"}, [f"{name}2"], privacy=[{"distinct_l_diversity": {"l": 2, "sensitive": f"{name}2"}}]
    )
    assert list(found.frame.columns) == [name, f"{name}2"]
    assert qblock.profile(frame).columns[0].name == name
    assert name in {g for c in qblock.audit(frame, [name], [f"{name}2"]).to_dict()["node"] for g in [c]}


def test_categories_and_decimals_and_zones() -> None:
    frame = pd.DataFrame(
        {
            "category": pd.Categorical(["b", "a"], categories=["secret", "b", "a"], ordered=True),
            "number": pd.Categorical([2, 1]),
            "decimal": [Decimal("1.50"), Decimal("2.5")],
            "zoned": pd.to_datetime(["2026-07-01 12:00", "2026-01-01 12:00"]).tz_localize("Europe/Berlin"),
            "time": [time(1, 2), time(3, 4)],
            "s": ["x", "y"],
        }
    )
    found = anonymize(frame, "category", "number", "decimal", "zoned", "time")
    assert list(map(tuple, found.frame.itertuples(index=False))) == [
        ("a", "1", "2.5", "2026-01-01 11:00:00+00", "03:04:00", "y"),
        ("b", "2", "1.5", "2026-07-01 10:00:00+00", "01:02:00", "x"),
    ]
    assert "secret" not in str(found.table.schema)
    ranged = qblock.anonymize(
        frame, {"decimal": {"ranges": [2, 4]}, "number": "suppress"}, ["s"], privacy=[{"k_anonymity": {"k": 2}}]
    )
    assert ranged.node == {"decimal": 2, "number": 1}


def test_an_empty_frame_and_one_row() -> None:
    frame = pd.DataFrame({"a": [1], "s": ["x"]})
    for empty in (frame[:0], pa.Table.from_pandas(frame[:0]), pd.DataFrame({"a": [], "s": []})):
        for ask in (lambda data: anonymize(data, "a"), lambda data: qblock.audit(data, ["a"]), qblock.profile):
            with pytest.raises(qblock.Refused, match="empty"):
                ask(empty)
    assert anonymize(frame, "a").frame.to_dict("list") == {"a": ["1"], "s": ["x"]}
    with pytest.raises(qblock.Refused, match="no node satisfies the spec: k_anonymity asks k 2"):
        anonymize(frame, "a", k=2)
    with pytest.raises(qblock.InputError, match="no column 'a'"):
        anonymize(pd.DataFrame(), "a")


class Stream:
    """What another library of data frames offers."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def test_whatever_is_arrow_is_a_table() -> None:
    table = pa.table({"a": [1, 2], "s": ["x", "y"]})
    (batch,) = table.to_batches()
    expected = qblock.audit(table, ["a"], ["s"]).to_dict()
    for data in (batch, table.to_reader(), Stream(table), pa.chunked_array([batch.to_struct_array()])):
        assert qblock.audit(data, ["a"], ["s"]).to_dict() == expected


@pytest.mark.parametrize("data", [None, 5, [1], {"a": [1]}, np.zeros((2, 2)), pd.Series([1]), pd.DataFrame, object()])
def test_what_is_no_table(data: Any) -> None:
    with pytest.raises(qblock.InputError, match=r"is not a table\. Give a DataFrame of pandas"):
        qblock.audit(data, ["a"])


WILD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=3), st.decimals(),
    st.dates(), st.datetimes(), st.timedeltas(), st.complex_numbers(), st.lists(st.integers(), max_size=2),
    st.just(pd.NaT),
)  # fmt: skip


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    values=st.lists(WILD, min_size=1, max_size=5),
    name=st.text(max_size=4),
    other=st.text(max_size=4),
    k=st.integers(1, 2),
)
def test_no_frame_ends_in_anything_but_a_result_or_our_own_error(
    values: list[Any], name: str, other: str, k: int
) -> None:
    frame = pd.DataFrame({0: range(len(values))})
    frame.insert(0, name, pd.Series(values, dtype=object), allow_duplicates=True)
    frame.insert(1, other, pd.Series(values[::-1], dtype=object), allow_duplicates=True)
    try:
        found = anonymize(frame, name, sensitive={other: {"nulls": "value"}})
    except (qblock.InputError, qblock.Refused):
        return
    assert found.rows == len(values)
    assert found.node.keys() == {name}


class Lazy:
    """A data frame that has whatever is asked of it, as Spark's of 4.2: a column, which is neither true nor false."""

    def __getattr__(self, name: str) -> Any:
        return LazyColumn()


class LazyColumn:
    def __bool__(self) -> bool:
        raise ValueError("a column is neither true nor false")


def test_an_error_about_a_frame_that_has_any_attribute_is_ours() -> None:
    def refused(frame: Any) -> None:
        raise InputError("the data frame has no column 'aeg'")

    with pytest.raises(InputError, match="has no column"):
        hide_tracebacks(refused)(Lazy())
