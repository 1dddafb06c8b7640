"""The mark of a table's rows, by which a run finds that nothing has changed, where it is made of hashes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from engines import SPARK

from qblock.engines.registry import open_warehouse
from qblock.engines.tables import TableName
from qblock.publish.digest import relation_mark

Rows = Sequence[tuple[Any, Any]]
Mark = Callable[..., list[str]]
ROWS: Rows = [("ann", "flu"), ("bob", "cold"), ("cid", ""), ("dan", None)]


DUCKDB = pytest.mark.parametrize("engine_name", ["duckdb"])
"""For what another engine has no type for, or another hash."""


@pytest.fixture(params=["duckdb", *SPARK])
def engine_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def mark(warehouse) -> Mark:
    tables: list[str] = []

    def of(rows: Rows, without: Sequence[str] = (), **types: str) -> list[str]:
        tables.append(f"rows_{len(tables)}")
        who, what = zip(*rows, strict=True)
        columns = {"more": [None] * len(rows), "who": who, "what": what}
        url = warehouse(tables[-1], columns, dict.fromkeys(columns, "TEXT") | types)
        with closing(open_warehouse(url, Path())) as opened, opened.snapshot() as session:
            return relation_mark(session, TableName(None, tables[-1]), without)

    return of


OTHERS: dict[str, Rows] = {
    "another value": [("ann", "flu"), ("bob", "Cold"), *ROWS[2:]],
    "a row more": [*ROWS, ("eve", "flu")],
    "a row less": ROWS[1:],
    "a row twice": [*ROWS, ROWS[0]],
    "a row thrice": [*ROWS, ROWS[0], ROWS[0]],
    "one row in the place of another": [ROWS[1], *ROWS[1:]],
    "NULL for the empty text": [*ROWS[:2], ("cid", None), ROWS[3]],
    "the empty text for NULL": [*ROWS[:3], ("dan", "")],
    "values of two rows swapped": [("ann", "cold"), ("bob", "flu"), *ROWS[2:]],
    "a text and a NULL swapped": [("ann", None), *ROWS[1:3], ("dan", "flu")],
    "values of two columns swapped": [("flu", "ann"), *ROWS[1:]],
    "two columns of one text": [("annflu", ""), *ROWS[1:]],
}


def test_other_rows_have_another_mark(mark: Mark) -> None:
    marks = {name: tuple(mark(rows)) for name, rows in {"as before": ROWS, **OTHERS}.items()}
    assert len({*marks.values()}) == len(marks)


def test_the_same_rows_have_the_same_mark(mark: Mark) -> None:
    assert mark(ROWS) == mark(ROWS[::-1])
    assert mark([*ROWS, ROWS[0]]) == mark([ROWS[0], *ROWS])


def test_columns_that_are_not_read_take_no_part(mark: Mark) -> None:
    rows = [(who, "flu") for who, _ in ROWS]
    assert mark(ROWS, without=["what"]) == mark(rows, without=["what"])
    assert mark(ROWS) != mark(rows)


@DUCKDB
def test_a_value_that_equals_another_one_is_told_from_it(mark: Mark) -> None:
    durations = [mark([("ann", text)], what="INTERVAL") for text in ("30 days", "1 month")]
    assert durations[0] != durations[1]


def test_rows_that_are_there_twice_are_counted(mark: Mark) -> None:
    ann, bob, *others = ROWS
    assert mark([ann, ann, *others]) != mark([bob, bob, *others])


@DUCKDB
def test_no_swap_of_two_values_is_lost_in_the_sum(mark: Mark) -> None:
    """The hashes of columns are combined by XOR: so there are two rows of which the sum would stay as it is."""
    first, second = (_alike(column) for column in (0, 1))
    who, what = next((w, v) for bits, w in first for others, v in second if not bits & others)
    rows = [(str(who[0]), str(what[0])), (str(who[1]), str(what[1]))]
    swapped = [(rows[0][0], rows[1][1]), (rows[1][0], rows[0][1])]
    assert mark(rows, without=["more"]) != mark(swapped, without=["more"])


def _alike(column: int) -> list[tuple[int, tuple[int, int]]]:
    """Pairs of numbers that differ in few bits of the hash of a row that has them in a column, with these bits."""
    pair = ("n::VARCHAR", "'0'")[:: 1 - 2 * column]
    query = f"SELECT hash({', '.join(pair)}) AS h FROM range(1000) t(n) ORDER BY n"
    with duckdb.connect() as connection:
        hashes = connection.execute(query).fetchnumpy()["h"].astype(np.uint64)
    differing = hashes[:, None] ^ hashes[None, :]
    bits = np.bitwise_count(differing) + 64 * np.eye(len(hashes), dtype=np.uint8)
    fewest = np.argsort(bits, axis=None)[:400:2]
    places = [divmod(int(at), len(hashes)) for at in fewest]
    return [(int(differing[a, b]), (a, b)) for a, b in places]
