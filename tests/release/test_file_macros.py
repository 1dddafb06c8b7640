"""What stands in a DuckDB file beside its tables does not answer for the engine (macros shadow its functions)."""

from __future__ import annotations

import duckdb
import pytest

from qblock.errors import InputError
from release.jobs import Job


@pytest.fixture
def engine_name() -> str:
    """PostgreSQL has no macros; its functions are in test_search_path.py."""
    return "duckdb"


def test_a_file_that_only_says_it_is_the_release_is_not_replaced(job: Job) -> None:
    with duckdb.connect(str(job.target)) as connection:
        connection.execute("CREATE TABLE precious AS SELECT 1 AS x")
        connection.execute(
            "CREATE MACRO duckdb_views() AS TABLE "
            "SELECT 'qblock release people version 1' AS comment, false AS internal"
        )
    before = job.target.read_bytes()
    with pytest.raises(InputError, match="is not a version of release people"):
        job.run()
    assert job.target.read_bytes() == before
