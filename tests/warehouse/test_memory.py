"""What the memory limit of a spec means for the database in this process and for what is fetched."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from qblock.spec.fields import in_bytes
from qblock.warehouse.engines import local_warehouse
from qblock.warehouse.memory import UNLIMITED, of_client, of_embedded, uncollected


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
