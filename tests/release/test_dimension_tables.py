"""Hierarchies are kept as dimension tables of the warehouse, and a spec may name those."""

from __future__ import annotations

import copy
from typing import Any

import duckdb
import pytest
import yaml

from qblock.api import Release
from qblock.errors import InputError
from release.jobs import PEOPLE, Job, MakeJob

pytestmark = pytest.mark.either_engine

ZIPS = [
    ("13053", "1305*", "130**", "13***", "1****", "*"),
    ("13068", "1306*", "130**", "13***", "1****", "*"),
    ("14850", "1485*", "148**", "14***", "1****", "*"),
    ("14853", "1485*", "148**", "14***", "1****", "*"),
]

LEVELS = ["zip", "zip_1", "zip_2", "zip_3", "zip_4", "zip_any"]


def rows_of(job: Job, name: str) -> list[tuple[Any, ...]]:
    query = f"SELECT * FROM {name}"
    if job.engine == "duckdb":
        with duckdb.connect(str(job.folder / "qblock" / "hierarchies.duckdb"), read_only=True) as connection:
            return sorted(connection.execute(query).fetchall())
    return sorted(job.query(query))


def test_a_hierarchy_is_kept_as_a_table_that_a_spec_may_name(job: Job) -> None:
    loaded = Release(job.write()).load_hierarchies()
    assert Release(job.write()).load_hierarchies() == loaded
    zips, ages = loaded.tables
    assert [zips.rpartition(".")[2], ages.rpartition(".")[2]] == ["hierarchy_people_zip", "hierarchy_people_age"]
    assert rows_of(job, zips) == ZIPS
    found = rows_of(job, ages)
    assert [row[0] for row in found] == sorted(str(age) for age in PEOPLE["age"])
    assert found[0][1:] == ("20-29", "20-39", "*")
    if job.engine == "duckdb":  # whose tables are in a file of their own
        assert (loaded.file, loaded.entries) == ("qblock/hierarchies.duckdb", ())
        return
    assert loaded.file is None
    before = job.run()
    named = copy.deepcopy(job.settings["attributes"])
    named["zip"] |= yaml.safe_load(loaded.entries[0])
    assert named["zip"]["hierarchy"] == {"table": zips, "levels": LEVELS}
    job.set(attributes=named, versions={"joint": "none"})
    after = job.run(force=True)
    assert (after.version, after.digest) == (2, before.digest)
    # The table that is replaced is the one that is read.
    assert Release(job.write()).load_hierarchies() == loaded
    assert rows_of(job, zips) == ZIPS


@pytest.mark.spark
@pytest.mark.parametrize("engine_name", ["spark"], indirect=True)
def test_nothing_else_of_that_name_is_replaced(make_job: MakeJob) -> None:
    job = make_job()
    zips, _ = Release(job.write()).load_hierarchies().tables
    job.change(f"ALTER VIEW {zips} SET TBLPROPERTIES ('comment' = 'mine')")
    with pytest.raises(InputError, match="hierarchy_people_zip already exists and is no dimension table of qblock"):
        Release(job.write()).load_hierarchies()
    assert rows_of(job, zips) == ZIPS
