"""What is decided of all leaves at once is what is decided of each."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qblock.engines.tables import Column
from qblock.engines.values import BITS, all_fit, fits
from qblock.hierarchy.labels import texts
from qblock.source.levels import _as_written

TEXT = st.text("ab 'é\"\\&名\n", max_size=3) | st.text("ab &(é", max_size=3) | st.none()
PLAIN = st.text("ab &(é", max_size=3)


@given(
    st.sets(st.tuples(PLAIN, PLAIN), min_size=1, max_size=12) | st.sets(st.tuples(TEXT, TEXT), min_size=1, max_size=6)
)
def test_rows_of_a_dimension_table_are_in_the_order_in_which_python_writes_them(drawn: set[tuple[str, str]]) -> None:
    rows = list(drawn)
    order = _as_written([pa.chunked_array([texts(level)]) for level in zip(*rows, strict=True)])
    plain = all(text is not None and set(text) <= set('ab &(é"') for row in rows for text in row)
    assert (order is not None) == plain
    assert order is None or [rows[place] for place in order.to_pylist()] == sorted(rows, key=str)


@pytest.mark.parametrize("type_", [*BITS, "ubigint", "usmallint", "numeric(9,2)", "varchar"])
@given(
    st.lists(
        st.integers(-(2**15) - 1, 2**15)
        | st.sampled_from([n + d for b in (8, 16, 32, 64) for n in (-(2 ** (b - 1)), 2 ** (b - 1)) for d in (-1, 0)]),
        max_size=4,
    ).map(lambda numbers: list(map(str, numbers)))
    | st.lists(st.sampled_from(["1", "x", "", "+5", "1.5", "0x10", "٣", " 1"]), max_size=3)
)
def test_leaves_that_fit_at_once_fit_each(type_: str, values: list[str]) -> None:
    kind = {"varchar": "text", "numeric(9,2)": "decimal"}.get(type_, "integer")
    column = Column("a", type_, kind, type_)
    assert not all_fit(texts(values), column) or all(fits(value, column) for value in values)


def test_many_whole_numbers_are_looked_at_once() -> None:
    column = Column("a", "bigint", "integer", "bigint")
    assert all_fit(texts(["1", "-9", None]), column)
    assert not all_fit(texts(["1", "128"]), Column("a", "tinyint", "integer", "tinyint"))
