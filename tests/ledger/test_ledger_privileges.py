"""Who may do what with the ledger in PostgreSQL: tried by logging in as a role with exactly the grants named."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from qblock.errors import QblockError
from qblock.ledger import schema
from qblock.ledger.chain import record, set_pointer
from qblock.ledger.events import Event
from qblock.ledger.store import Store
from qblock.ledger.stores import store_of_url

pytestmark = pytest.mark.every_postgresql

GRANTS = """
GRANT USAGE ON SCHEMA qblock TO {role};
GRANT SELECT ON ALL TABLES IN SCHEMA qblock TO {role};
GRANT INSERT ON qblock.event, qblock.guarantee TO {role};
GRANT INSERT, UPDATE ON qblock.pointer TO {role};
"""
As = Callable[[str], Store]


@pytest.fixture
def role(postgresql_url: str) -> Iterator[str]:
    """A login without any privilege of its own; CREATE on the database is not among what PUBLIC has."""
    name = f"qblock_job_{secrets.token_hex(4)}"
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
    yield name
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute(f"REASSIGN OWNED BY {name} TO CURRENT_USER; DROP OWNED BY {name}; DROP ROLE {name}")


@pytest.fixture
def job(postgresql_url: str, role: str, tmp_path: Path) -> Store:
    return store_of_url(sa.make_url(postgresql_url).set(username=role).render_as_string(False), tmp_path)


@pytest.fixture
def owner(postgresql_url: str, tmp_path: Path) -> Store:
    return store_of_url(postgresql_url, tmp_path)


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


def test_a_job_that_does_not_own_the_ledger_can_only_append(
    owner: Store, job: Store, role: str, postgresql_url: str
) -> None:
    owner.upgrade()
    execute(postgresql_url, GRANTS.format(role=role))
    assert job.upgrade()[0] == schema.revisions()[-1]
    with job.lock("r"), job.write() as connection:
        record(connection, Event(release="r", state="published", run="u", version=1))
        set_pointer(connection, "r", 1)
    with job.lock("r"), job.write() as connection:
        record(connection, Event(release="r", state="published", run="u", version=2))
        set_pointer(connection, "r", 2)
    with job.read() as reader:
        assert reader.pointer("r") == 2
        assert reader.verify_chain("r") == []
    for statement in (
        "UPDATE qblock.event SET version = 3",
        "DELETE FROM qblock.event",
        "DELETE FROM qblock.guarantee",
        "DELETE FROM qblock.pointer",
        "TRUNCATE qblock.event",
        "DROP TABLE qblock.event",
        "UPDATE qblock.alembic_version SET version_num = 'x'",
    ):
        with (
            pytest.raises(QblockError, match=r"denied a privilege .*qblock grants"),
            job.write() as connection,
        ):
            connection.execute(sa.text(statement))


def test_a_schema_that_exists_is_not_created_again(job: Store, role: str, postgresql_url: str) -> None:
    execute(postgresql_url, f"CREATE SCHEMA qblock; GRANT USAGE, CREATE ON SCHEMA qblock TO {role}")
    assert job.upgrade() == (None, schema.revisions()[-1])
    with job.write() as connection:
        record(connection, Event(release="r", state="staged", run="u"))


def test_a_login_that_may_not_make_the_ledger_is_told_what_to_grant(
    owner: Store, job: Store, role: str, postgresql_url: str
) -> None:
    with pytest.raises(QblockError, match=r"denied a privilege .*qblock grants"):
        job.upgrade()
    with job.read() as reader:
        assert reader.history("r") == []
    owner.upgrade()
    with pytest.raises(QblockError, match=r"denied a privilege .*qblock grants"), job.read():
        pass
    with pytest.raises(QblockError, match=r"denied a privilege .*qblock grants"):
        job.upgrade()
    execute(postgresql_url, f"GRANT USAGE ON SCHEMA qblock TO {role}")
    with pytest.raises(QblockError, match="denied a privilege"), job.read():
        pass


def test_nobody_else_sees_the_ledger_whatever_the_defaults_are(
    owner: Store, job: Store, role: str, postgresql_url: str
) -> None:
    execute(postgresql_url, "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC")
    execute(postgresql_url, "ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO PUBLIC")
    owner.upgrade()
    with psycopg.connect(postgresql_url) as connection:
        relations = connection.execute(
            "SELECT relname, has_table_privilege(%s, oid, 'SELECT, INSERT, UPDATE, DELETE') "
            "FROM pg_class WHERE relnamespace = 'qblock'::regnamespace AND relkind IN ('r', 'v')",
            (role,),
        ).fetchall()
        assert {name for name, _ in relations} >= {
            "event",
            "guarantee",
            "pointer",
            "alembic_version",
            "current_version",
        }
        assert [name for name, visible in relations if visible] == []
        assert connection.execute("SELECT has_schema_privilege(%s, 'qblock', 'USAGE')", (role,)).fetchone() == (False,)
    with pytest.raises(QblockError, match="denied a privilege"), job.read():
        pass


def test_the_reader_cannot_write(owner: Store) -> None:
    owner.upgrade()
    with pytest.raises(QblockError, match="is read-only"), owner.read() as reader:
        record(reader._connection, Event(release="r", state="staged", run="u"))
