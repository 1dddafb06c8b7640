"""Values reach DuckDB in the text of a statement, whatever is in them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa

from qblock.engines.arrow import texts, whole_numbers
from qblock.engines.duckdb.adapter import DuckdbWarehouse, _literals
from qblock.engines.session import Session

HOSTILE = (
    "it's",
    'say "hi"',
    "a:b :c ::d",
    "100% %s %%",
    "{least} {m0} {}",
    "a\\b \\: \\'",
    "é 名",
    "\n\r\t",
    "",
    "a\0b",
)


@pytest.fixture
def session() -> Iterator[Session]:
    warehouse = DuckdbWarehouse(None)
    with warehouse.snapshot() as found:
        yield found
    warehouse.close()


@pytest.mark.parametrize(
    "value", [*HOSTILE, 0, -(2**63), 2**63 - 1, 1.5e-7, True, Decimal("0.10"), date(1, 2, 3), b"\0\xff"], ids=repr
)
def test_a_value_of_a_query(session: Session, value: Any) -> None:
    assert session.scalar(sa.select(sa.literal(value))) == value
    (row,) = session.fetch(
        sa.select(sa.literal(value).label("v")).where(sa.literal(value) == sa.literal(value))
    ).to_pylist()
    assert row["v"] == value


def test_a_table_that_is_loaded(session: Session) -> None:
    table = pa.table(
        {
            "a name {0} ' :x": texts([*HOSTILE, None]),
            "n": whole_numbers([-(2**63), 2**63 - 1, *range(len(HOSTILE) - 1)]),
        }
    )
    stored = session.load('t "quoted"', table)
    assert sorted(map(repr, session.fetch(sa.select(*stored.c)).to_pylist())) == sorted(map(repr, table.to_pylist()))
    some = table.filter(pa.compute.is_in(table.column("n"), value_set=pa.array([0, 1, 2]))).slice(0, 2)
    again = session.load("without zero bytes", some)
    assert sorted(map(repr, session.fetch(sa.select(*again.c)).to_pylist())) == sorted(map(repr, some.to_pylist()))


@pytest.mark.parametrize("value", [Decimal("10.25"), date(2026, 1, 2)], ids=repr)
def test_a_table_with_other_types(session: Session, value: Any) -> None:
    table = pa.table({"e": pa.array([value, None])})
    assert _literals(table) is None
    stored = session.load("others", table)
    assert session.fetch(sa.select(*stored.c)).to_pylist() == [{"e": value}, {"e": None}]


def test_an_empty_table(session: Session) -> None:
    stored = session.load("empty", pa.table({"a": texts([]), "n": whole_numbers([])}))
    found = session.fetch(sa.select(*stored.c))
    assert (found.num_rows, found.column_names) == (0, ["a", "n"])
