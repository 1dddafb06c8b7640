"""A job whose login owns nothing, and a reader of it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import sqlalchemy as sa
from engines import create_table

from release.jobs import PEOPLE, Job, new_job


@dataclass(frozen=True)
class OwnLogin:
    """A job over clinic.people. owner: URL of the owner of the database and of the table."""

    job: Job
    login: str
    reader: str
    owner: str

    def as_role(self, name: str) -> str:
        """URL of the database for a role."""
        return sa.make_url(self.owner).set(username=name, password=None).render_as_string(False)

    def execute(self, *statements: str) -> None:
        """As the owner; LOGIN_ and READER_ stand for the two roles."""
        with psycopg.connect(self.owner, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.replace("LOGIN_", self.login).replace("READER_", self.reader))


@contextmanager
def own_login(url: str, folder: Path, table: str = "clinic.people") -> Iterator[OwnLogin]:
    """table: as the spec names it."""
    suffix = secrets.token_hex(4)
    login, reader = f"qblock_job_{suffix}", f"qblock_reader_{suffix}"
    create_table(url, "people", PEOPLE, schema="clinic")
    own = sa.make_url(url).set(username=login, password=None).render_as_string(False)
    made = OwnLogin(new_job("postgresql", folder, own, table), login, reader, url)
    made.job.settings["publish"]["readers"] = [reader]
    made.execute(
        "CREATE ROLE LOGIN_ LOGIN",
        "CREATE ROLE READER_ LOGIN",
        f"GRANT CREATE ON DATABASE {sa.make_url(url).database} TO LOGIN_",
        "GRANT USAGE ON SCHEMA clinic TO LOGIN_",
        "GRANT SELECT ON clinic.people TO LOGIN_",
    )
    yield made
    made.execute("DROP OWNED BY LOGIN_, READER_ CASCADE", "DROP ROLE LOGIN_, READER_")
