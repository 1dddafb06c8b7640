"""New ledgers without Alembic: what the migrations have done to the first one is done to the next as one script.

A test that publishes begins with a new ledger, and Alembic takes three times as long as the statements it runs. The
tests of the ledger migrate each of theirs, as does every run in a process of its own.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from qblock.ledger import schema
from qblock.resources import migrations_directory

_scripts: dict[str, list[str]] = {}
"""By engine."""


@contextmanager
def replaying(patched: pytest.MonkeyPatch) -> Iterator[None]:
    """Let `schema` do so. patched: undone by its owner."""
    run = schema._run

    def replayed(connection: sa.Connection) -> None:
        engine = connection.dialect.name
        if schema.revision(connection) is not None:
            run(connection)
        elif engine in _scripts:
            driver: Any = connection.connection.driver_connection
            for script in _scripts[engine]:
                driver.execute(script)
        else:
            _scripts[engine] = _script(connection, lambda: run(connection))

    patched.setattr(schema, "_run", replayed)
    yield


def one_more(patched: pytest.MonkeyPatch, folder: Path) -> str:
    """Let the program have one migration more, which adds a column to the events; returns its revision. patched: undone
    by its owner."""
    known = schema.revisions()
    newest = f"{int(known[-1]) + 1:04}"
    shutil.copytree(migrations_directory(), folder / "migrations")
    (folder / "migrations" / "versions" / f"{newest}_added.py").write_text(ADDED.format(newest, known[-1]))
    patched.setattr(schema, "migrations_directory", lambda: folder / "migrations")
    patched.setattr(schema, "revisions", lambda: (*known, newest))
    return newest


ADDED = """
import sqlalchemy as sa
from alembic import context, op

revision, down_revision, branch_labels, depends_on = "{}", "{}", None, None


def upgrade() -> None:
    if op.get_bind().dialect.name != "duckdb":  # whose files hold the crosswalk
        op.add_column("event", sa.Column("added", sa.Text), schema=context.config.attributes["schema"])
"""


def _script(connection: sa.Connection, migrations: Any) -> list[str]:
    done: list[str] = []

    def note(_: Any, __: Any, statement: str, parameters: Any, *more: object) -> None:
        if statement.split(maxsplit=1)[0] != "SELECT":
            assert not parameters, statement
            done.append(statement.rstrip().rstrip(";"))

    sa.event.listen(connection, "before_cursor_execute", note)
    try:
        migrations()
    finally:
        sa.event.remove(connection, "before_cursor_execute", note)
    # SQLite executes one statement at a time, which costs nothing there.
    return done if connection.dialect.name == "sqlite" else [";\n".join(done)]
