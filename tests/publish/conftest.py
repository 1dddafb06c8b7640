"""Jobs on each engine, and roles of a PostgreSQL server."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import psycopg
import pytest
from release.conftest import (  # noqa: F401
    copy_job,
    crossing,
    empty_ledger,
    first_runs,
    job,
    job_templates,
    ledger,
    make_job,
    place,
    released,
    start,
)
from release.jobs import Job

from publish.spark_releases import client  # noqa: F401

ROLES = ("reader", "staff", "owner")


@pytest.fixture
def roles(server: str, job: Job) -> Iterator[dict[str, str]]:  # noqa: F811
    """reader: named by the spec; staff, owner: two more."""
    suffix = secrets.token_hex(4)
    found = {name: f"qblock_{name}_{suffix}" for name in ROLES}
    with psycopg.connect(server, autocommit=True) as connection:
        for name in found.values():
            connection.execute(f"CREATE ROLE {name} LOGIN")
    job.settings["publish"]["readers"] = [found["reader"]]
    job.set(versions={"joint": "none"})
    yield found
    with psycopg.connect(job.url, autocommit=True) as connection:
        for name in found.values():
            connection.execute(f"DROP OWNED BY {name} CASCADE")
        for name in found.values():
            connection.execute(f"DROP ROLE {name}")
