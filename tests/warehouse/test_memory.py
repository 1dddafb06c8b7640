"""What the memory limit of a spec means for the database in this process and for what is fetched."""

from __future__ import annotations

import gc
from pathlib import Path

import duckdb
import pytest
import sqlalchemy as sa

from qblock.engines.duckdb.adapter import DuckdbWarehouse
from qblock.engines.local import local_warehouse
from qblock.engines.memory import UNLIMITED, of_client, of_embedded, uncollected
from qblock.engines.tables import TableName
from qblock.spec.fields import in_bytes


@pytest.mark.parametrize(
    ("limit", "size"),
    [("1kB", 1000), ("1.5 GiB", 3 << 29), ("512MB", 512_000_000), ("2TiB", 2 << 40), ("4GB", 4_000_000_000)],
)
def test_amounts_in_bytes(limit: str, size: int) -> None:
    assert in_bytes(limit) == size


@pytest.mark.parametrize("enabled", [True, False])
def test_cycles_are_looked_for_again_as_before(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with pytest.raises(AssertionError), uncollected():
            assert gc.isenabled()
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_database_and_client_share_the_limit() -> None:
    assert of_embedded("1GB") == "700000000B"
    assert of_client("1GB") == 200_000_000
    assert of_client(None) == UNLIMITED


def test_the_database_in_this_process_has_its_share_alone(tmp_path: Path) -> None:
    warehouse = local_warehouse("100MB")
    try:
        with warehouse.snapshot() as session:
            assert session.scalar("SELECT current_setting('memory_limit')") == "66.7 MiB"
            # Twice what it may hold: the rest goes to a temporary file.
            session.run("CREATE TEMPORARY TABLE t AS SELECT hash(i)::HUGEINT AS x FROM range(8000000) r(i)")
            assert session.scalar("SELECT count(DISTINCT x % 100000) FROM t") == 100_000
            held = session.scalar("SELECT sum(memory_usage_bytes) FROM duckdb_memory()")
            assert held <= 70_000_000
    finally:
        warehouse.close()


NUMBERS = sa.select(sa.literal_column("i").label("i")).select_from(sa.text("range(4000000) r(i)"))


def test_a_table_that_was_dropped_takes_no_memory_any_more(tmp_path: Path) -> None:
    file = tmp_path / "w.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    warehouse, held = DuckdbWarehouse(file), "SELECT sum(memory_usage_bytes) FROM duckdb_memory()"
    for _ in range(2):  # what was committed is not there in the next snapshot
        with warehouse.snapshot() as session:
            kept = session.store("kept", sa.select(session.relation(TableName.parse("t")).c.a))
            large = session.store("large", NUMBERS)
            assert session.scalar(held) > 20_000_000
            session.drop(large)
            assert session.scalar(held) < 10_000_000
            session.store("large", NUMBERS)
            session.clear(keep=[kept])
            assert session.scalar(held) < 10_000_000
            assert session.scalar(sa.select(sa.func.count()).select_from(kept)) == 1
    warehouse.close()


@pytest.mark.parametrize(
    "made",
    ["CREATE VIEW t AS SELECT now()::VARCHAR AS told", "CREATE TABLE t (a INTEGER, told VARCHAR AS (now()::VARCHAR))"],
    ids=["view", "column"],
)
def test_what_is_computed_by_the_time_stays_as_it_is_when_a_table_is_dropped(tmp_path: Path, made: str) -> None:
    file = tmp_path / "w.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(made)
        if "TABLE" in made:
            connection.execute("INSERT INTO t (a) VALUES (1)")
    warehouse = DuckdbWarehouse(file)
    with warehouse.snapshot() as session:
        query = sa.select(session.relation(TableName.parse("t")).c.told)
        before = session.scalar(query)
        session.drop(session.store("other", sa.select(sa.literal_column("1").label("a"))))
        assert session.scalar(query) == before
    warehouse.close()
