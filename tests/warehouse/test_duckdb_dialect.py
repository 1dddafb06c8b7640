"""The dialect for DuckDB: the words that it quotes, one result at a time, and the transactions that it ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
import sqlalchemy as sa

from qblock.engines.duckdb import dialect as duckdb_session
from qblock.engines.duckdb.dialect import ARROW, DuckdbDialect

TABLE = sa.table("t", sa.column("a", sa.Integer), sa.column("b", sa.Text))


@pytest.fixture
def connection() -> Iterator[sa.Connection]:
    engine = duckdb_session.memory_engine()
    with engine.connect() as made:
        made.exec_driver_sql("CREATE TABLE t (a INTEGER, b VARCHAR)")
        yield made
    engine.dispose()


def test_every_reserved_word_of_the_library_is_quoted() -> None:
    with duckdb.connect() as driver:
        words = driver.execute(
            "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function')"
        ).fetchall()
    preparer = DuckdbDialect().identifier_preparer
    assert len(words) > 100
    assert [word for (word,) in words if preparer.quote(word) == word] == []


def test_an_answer_outlives_the_next_statement_and_the_transaction(connection: sa.Connection) -> None:
    connection.execute(TABLE.insert(), [{"a": i, "b": str(i)} for i in range(2500)])
    first = connection.execute(sa.select(TABLE).order_by(TABLE.c.a))
    assert first.fetchone() == (0, "0")
    assert connection.scalar(sa.select(sa.func.count()).select_from(TABLE)) == 2500
    connection.commit()
    assert [tuple(row) for row in first.fetchmany(2)] == [(1, "1"), (2, "2")]
    assert [row.a for row in first] == list(range(3, 2500))


def test_the_number_of_changed_rows_is_no_answer(connection: sa.Connection) -> None:
    assert not connection.execute(TABLE.insert().values(a=1, b="x")).returns_rows
    changed = connection.execute(TABLE.update().values(b=TABLE.c.b + "y"))
    assert (changed.returns_rows, changed.rowcount) == (False, 1)
    (row,) = connection.execute(TABLE.delete().returning(TABLE.c.a.label("Count")))
    assert row.Count == 1
    # A column may be named as DuckDB names that number.
    assert connection.scalar(sa.select(sa.literal("z").label("Count"))) == "z"


@pytest.mark.filterwarnings("error")
def test_an_answer_as_a_table(connection: sa.Connection) -> None:
    connection.execute(TABLE.insert().values(a=None, b="x"))
    query = sa.select(TABLE).where(TABLE.c.b == "x")
    result = connection.execute(query, execution_options={ARROW: True})
    assert isinstance(result.cursor.table, pa.Table)  # type: ignore[union-attr]
    assert result.cursor.table.to_pylist() == [{"a": None, "b": "x"}]  # type: ignore[union-attr]


def test_what_was_not_begun_can_be_rolled_back_and_what_fails_is(connection: sa.Connection) -> None:
    connection.commit()
    connection.dialect.do_rollback(connection.connection)  # type: ignore[arg-type]
    connection.execute(TABLE.insert().values(a=1, b="x"))
    with pytest.raises(sa.exc.DBAPIError):
        connection.exec_driver_sql("SELECT nothing")
    connection.rollback()
    assert connection.scalar(sa.select(sa.func.count()).select_from(TABLE)) == 0
    connection.execute(TABLE.insert().values(a=1, b="x"))
    connection.commit()
    assert connection.scalar(sa.select(sa.func.count()).select_from(TABLE)) == 1


def test_patterns_are_searched_in_a_text_and_floats_have_eight_bytes(connection: sa.Connection) -> None:
    assert connection.scalar(sa.select(sa.literal("abc").regexp_match("b")))
    assert connection.scalar(sa.select(sa.cast(sa.literal("0.1"), sa.Float))) == 0.1
    assert connection.scalar(sa.select(sa.literal(7) / sa.literal(2))) == 3.5


def test_a_file_is_only_read(tmp_path: Path) -> None:
    file = tmp_path / "a.duckdb"
    with duckdb_session.connect(file) as driver:
        driver.execute("CREATE TABLE t AS SELECT 1 AS a")
    with duckdb_session.file_engine(file).connect() as connection:
        assert connection.exec_driver_sql("SELECT a FROM t").all() == [(1,)]
        with pytest.raises(sa.exc.DBAPIError):
            connection.exec_driver_sql("INSERT INTO t VALUES (2)")


def test_only_the_database_of_the_connection_has_a_table(connection: sa.Connection) -> None:
    inspector = sa.inspect(connection)
    assert inspector.has_table("t")
    assert not inspector.has_table("duckdb_tables")
    assert not inspector.has_table("t", schema="other")


def test_a_notebook_without_ipywidgets_has_no_bar_to_hide() -> None:
    """What DuckDB says there, and what it may say of other statements."""

    class Notebook:
        raised: type[duckdb.Error] = duckdb.InvalidInputException

        def execute(self, statement: str) -> None:
            raise self.raised(
                "Could not change the progress bar setting because: 'required package 'ipywidgets' is missing"
            )

    notebook = Notebook()
    duckdb_session.hide_progress(notebook)  # type: ignore[arg-type]
    notebook.raised = duckdb.InterruptException
    with pytest.raises(duckdb.InterruptException):
        duckdb_session.hide_progress(notebook)  # type: ignore[arg-type]
    with duckdb.connect() as driver:
        duckdb_session.hide_progress(driver)
        assert driver.execute("SELECT current_setting('enable_progress_bar')").fetchone() == (False,)
