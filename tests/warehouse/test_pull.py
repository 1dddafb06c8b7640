"""A coded table leaves its warehouse in parts: every row once, whatever the table went through."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from qblock.engines import queries
from qblock.engines.local import gather, local_warehouse
from qblock.engines.memory import in_bytes
from qblock.engines.postgresql import adapter as postgresql
from qblock.engines.registry import open_warehouse
from qblock.engines.session import Session
from qblock.errors import QblockError

pytestmark = pytest.mark.every_postgresql

TOP = 2**63 - 1


def numbers(session: Session, rows: int, name: str = "numbers") -> sa.TableClause:
    """k0 counts from 1, k1 is up to the largest number there is, e numbers entities."""
    count = "generate_series(1, {})" if session.engine == "postgresql" else "range(1, {} + 1)"
    k1 = f"CAST(CASE WHEN i % 3 = 0 THEN {TOP} - i ELSE i * 7 END AS BIGINT)"
    query = sa.select(
        sa.literal_column("CAST(i AS BIGINT)").label("k0"),
        sa.literal_column(k1).label("k1"),
        sa.literal_column("CAST(i % 5 AS BIGINT)").label("e"),
    ).select_from(sa.text(f"{count.format(rows)} AS t(i)"))
    return session.store(name, query)


def rows_in(found: list[dict[str, Any]]) -> Counter[tuple[int, ...]]:
    return Counter(row for part in found for row in zip(*(part[name].tolist() for name in part), strict=True))


def by_hand(numbers: range | list[int]) -> Counter[tuple[int, ...]]:
    return Counter((i, TOP - i if i % 3 == 0 else i * 7, i % 5) for i in numbers)


@pytest.mark.parametrize(("rows", "values"), [(0, 100), (1, 100), (4_000, 100), (4_000, 4_500), (4_000, 10**9)])
def test_every_row_once(warehouse: Any, monkeypatch: pytest.MonkeyPatch, rows: int, values: int) -> None:
    monkeypatch.setattr(queries.queries_of_parts, "__defaults__", (values,))
    monkeypatch.setattr(queries.joined, "__defaults__", (values,))
    monkeypatch.setattr(postgresql.pieces, "__defaults__", (1,))
    opened = open_warehouse(warehouse("t", {"a": [1]}), Path())
    with opened.snapshot() as session:
        found = list(session.pull(numbers(session, rows)))
        assert rows_in(found) == by_hand(range(1, rows + 1))
        for part in found:
            assert {column.dtype for column in part.values()} == {np.dtype(np.int64)}
        if values == 4_500:
            assert 2 <= len(found) <= 4
            assert max(part["k0"].size for part in found) < 2_000
    opened.close()


def test_after_rows_were_deleted(warehouse: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without a row, first, last and between."""
    monkeypatch.setattr(postgresql.pieces, "__defaults__", (1,))
    opened = open_warehouse(warehouse("t", {"a": [1]}), Path())
    with opened.snapshot() as session:
        table = numbers(session, 5_000)
        session.run("DELETE FROM numbers WHERE k0 < 1000 OR k0 BETWEEN 2000 AND 3333 OR k0 > 4000")
        session.run("INSERT INTO numbers SELECT * FROM numbers WHERE k0 = 1500")
        assert rows_in(list(session.pull(table))) == by_hand([*range(1_000, 2_000), *range(3_334, 4_001), 1_500])
        session.run("DELETE FROM numbers")
        assert not rows_in(list(session.pull(table)))
    opened.close()


def test_names_are_quoted(warehouse: Any) -> None:
    opened = open_warehouse(warehouse("t", {"a": [1]}), Path())
    with opened.snapshot() as session:
        seven = sa.cast(sa.literal_column("7"), sa.BigInteger)
        table = session.store("a \"b\" 'c'; %s", sa.select(seven.label('k "0"')))
        (part,) = session.pull(table)
        assert {name: column.tolist() for name, column in part.items()} == {'k "0"': [7]}
    opened.close()


def test_an_error_is_ours(warehouse: Any) -> None:
    opened = open_warehouse(warehouse("t", {"a": [1]}), Path())
    with opened.snapshot() as session, pytest.raises(QblockError):
        list(session.pull(sa.table("nowhere", sa.column("k0"))))
    opened.close()


def test_a_null_is_not_left_out(warehouse: Any, engine_name: str) -> None:
    if engine_name == "duckdb":
        pytest.skip("`counts` is asked there")
    opened = open_warehouse(warehouse("t", {"a": [1]}), Path())
    with opened.snapshot() as session:
        table = numbers(session, 10)
        session.run("UPDATE numbers SET k1 = NULL WHERE k0 = 4")
        with pytest.raises(QblockError, match="has NULLs among its codes"):
            list(session.pull(table))
    opened.close()


def test_an_iterator_that_is_left_leaves_the_session_usable(warehouse: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries.joined, "__defaults__", (100,))
    monkeypatch.setattr(queries.queries_of_parts, "__defaults__", (100,))
    monkeypatch.setattr(postgresql.pieces, "__defaults__", (1,))
    opened = open_warehouse(warehouse("t", {"a": [1]}), Path())
    with opened.snapshot() as session:
        pulled = session.pull(numbers(session, 4_000))
        next(pulled)
        pulled.close()  # type: ignore[attr-defined]
    opened.close()


def test_parts_are_gathered_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    local = local_warehouse()
    with local.snapshot() as session:
        before = session.statements
        made = [{"b": np.arange(i, dtype=np.int64), "a": np.full(i, TOP, dtype=np.int64)} for i in (0, 3, 2)]
        table = gather(session, "some", ["a", "b"], made)
        assert session.statements - before == 4
        found = session.counts(sa.select(table.c.a, table.c.b))
        assert found["a"].tolist() == [TOP] * 5
        assert found["b"].tolist() == [0, 1, 2, 0, 1]
        empty = gather(session, "none", ["k0"], [])
        assert session.scalar(sa.select(sa.func.count()).select_from(empty)) == 0
        assert "pandas" not in sys.modules
    local.close()


@pytest.mark.parametrize(
    ("limit", "size"), [("512MB", 512 * 10**6), ("1.5 GiB", 3 * 2**29), ("64kB", 64_000), ("1TiB", 2**40)]
)
def test_amounts_of_memory(limit: str, size: int) -> None:
    assert in_bytes(limit) == size
