"""What an earlier program has published is run, verified and rolled back by this one, on both engines."""

from __future__ import annotations

import pytest
from alembic import command
from alembic.config import Config

from qblock.ledger.place import SCHEMA
from qblock.ledger.stores import place_of
from qblock.ledger.writer import ledger_transaction
from qblock.release.plan import plan
from qblock.resources import migrations_directory
from release.jobs import Job

pytestmark = pytest.mark.either_engine


@pytest.mark.parametrize("revision", ["0001", "0004", "0006"])
def test_a_ledger_of_an_older_schema_is_planned_for_and_upgraded(job: Job, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(migrations_directory()).replace("%", "%%"))
    with ledger_transaction(place_of(job.spec)) as connection:
        if job.engine == "postgresql":
            connection.exec_driver_sql(f"CREATE SCHEMA {SCHEMA}")
            connection.exec_driver_sql(f"SET LOCAL search_path = {SCHEMA}")
        config.attributes["connection"] = connection
        config.attributes["schema"] = SCHEMA if job.engine == "postgresql" else None
        command.upgrade(config, revision)
    assert f"from revision {revision}" in plan(job.spec).steps[1].describe()
    assert (job.run().status, job.run().status) == ("published", "unchanged")
