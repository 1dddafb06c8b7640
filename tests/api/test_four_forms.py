"""The same data from pandas, Arrow, Parquet and CSV is the same table: one digest, one answer."""

from __future__ import annotations

import os
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import qblock

from .forms import EXAMPLES, forms

TYPES = sorted(EXAMPLES)
EVERY = os.environ.get("QBLOCK_TEST_ENGINES") == "all"
TABLES = 25 if EVERY else 7


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Columns a (known), s (sensitive) and i (as it is), of any types, with NULLs."""
    rows = draw(st.integers(1, 12))
    types = {name: draw(st.sampled_from(TYPES)) for name in ("a", "b", "s")}
    columns = {
        name: draw(st.lists(st.none() | st.sampled_from(EXAMPLES[type_]), min_size=rows, max_size=rows))
        for name, type_ in types.items()
    }
    return columns, types


def outcome(data: Any, types: dict[str, str] | None, k: int) -> Any:
    """What is returned, or the refusal."""
    quasi = {name: {"hierarchy": "suppress", "nulls": "top"} for name in ("a", "b")}
    try:
        found = qblock.anonymize(
            data,
            quasi,
            {"s": {"nulls": "value"}},
            privacy=[{"k_anonymity": {"k": k}}, {"distinct_l_diversity": {"l": 2}}],
            suppression_limit=1,
            types=types,
        )
    except qblock.Refused as refused:
        return str(refused).replace("table.parquet", "data frame").replace("table.csv", "data frame")
    shown = sorted(zip(*found.table.select(["a", "b"]).to_pydict().values(), strict=True))
    return found.to_dict(), shown


@settings(max_examples=TABLES, deadline=None, derandomize=True)
@given(table=tables(), k=st.integers(1, 3))
def test_four_forms_agree_in_digest_and_result(table: tuple[dict[str, list[Any]], dict[str, str]], k: int) -> None:
    columns, types = table
    with tempfile.TemporaryDirectory() as folder:
        found = {name: outcome(form.data, form.types, k) for name, form in forms(columns, types, Path(folder)).items()}
    assert found["pandas"] == found["arrow"] == found["parquet"] == found["csv"]


@pytest.mark.parametrize("type_", TYPES)
def test_each_type_alone(type_: str, tmp_path: Path) -> None:
    values = [*EXAMPLES[type_], None] * 2
    columns = {"a": values, "s": ["x", "y"] * len(EXAMPLES[type_]) + ["x", "x"]}
    given = forms(columns, {"a": type_, "s": "text"}, tmp_path)
    quasi = {"a": {"hierarchy": "suppress", "nulls": "top"}}
    ask: dict[str, Any] = {"privacy": [{"k_anonymity": {"k": 2}}]}
    found = [qblock.anonymize(form.data, quasi, ["s"], types=form.types, **ask) for form in given.values()]
    assert len({one.source_digest for one in found}) == 1
    assert found[0].node == {"a": 0}
    for other in found[1:]:
        pd.testing.assert_frame_equal(found[0].frame, other.table.to_pandas())
    read = list(given.values()) if EVERY else [given["pandas"], given["csv"]]
    audits = [qblock.audit(form.data, ["a"], ["s"], types=form.types).to_dict() for form in read]
    assert audits.count(audits[0]) == len(read)


def test_other_data_has_another_digest() -> None:
    digests = set()
    for values in ([1, 2], [2, 2], [1, None], [None, 1], ["1", "2"], [12, None]):
        frame = pd.DataFrame({"a": pd.array(values), "s": ["x", "y"]})
        quasi = {"a": {"hierarchy": "suppress", "nulls": "top"}}
        digests.add(qblock.anonymize(frame, quasi, ["s"], privacy=[{"k_anonymity": {"k": 1}}]).source_digest)
    # Numbers and texts that read the same are the same text.
    assert len(digests) == 5


def test_the_digest_is_that_of_the_rows_in_no_order() -> None:
    table = pa.table({"s": ["x", "y", "z"], "a": [1, 2, 3], "unused": [1, 2, 3]})
    again = table.take([2, 0, 1]).select(["unused", "a", "s"]).drop_columns("unused")
    ask: dict[str, Any] = {
        "quasi_identifiers": {"a": "suppress"},
        "sensitive": ["s"],
        "privacy": [{"k_anonymity": {"k": 1}}],
    }
    one, other = qblock.anonymize(table, **ask), qblock.anonymize(again, **ask)
    assert one.source_digest == other.source_digest
    assert one.table.equals(other.table)


def test_decimals_of_another_scale_are_the_same_numbers(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [Decimal("1.5"), Decimal("7")], "s": [Decimal("0.5"), Decimal("2")]})
    table = pa.table({name: pa.array(frame[name].tolist(), pa.decimal128(20, 6)) for name in frame})
    (tmp_path / "a.csv").write_text("a,s\n1.50,0.500\n7.00,2\n")
    types = {"a": "decimal(9,2)", "s": "decimal(9,3)"}
    ask: dict[str, Any] = {"quasi_identifiers": {"a": "suppress"}, "sensitive": ["s"]}
    privacy = [{"k_anonymity": {"k": 1}}]
    found = [
        qblock.anonymize(data, **ask, privacy=privacy, types=given)
        for data, given in ((frame, None), (table, None), (tmp_path / "a.csv", types))
    ]
    assert len({(one.source_digest, one.digest) for one in found}) == 1
