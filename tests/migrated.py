"""New ledgers without Alembic: what the migrations have done to the first one is done to the next as one script.

A test that publishes begins with a new ledger, and Alembic takes three times as long as the statements it runs. The
tests of the ledger migrate each of theirs, as does every run in a process of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa

from qblock.ledger import migrate

_scripts: dict[str, str] = {}
"""By engine."""


@contextmanager
def replaying(patched: pytest.MonkeyPatch) -> Iterator[None]:
    """Let `migrate` do so. patched: undone by its owner."""
    run = migrate._run

    def replayed(connection: sa.Connection) -> None:
        engine = connection.dialect.name
        if migrate.revision(connection) is not None:
            run(connection)
        elif engine in _scripts:
            driver: Any = connection.connection.driver_connection
            driver.execute(_scripts[engine])
        else:
            _scripts[engine] = _script(connection, lambda: run(connection))

    patched.setattr(migrate, "_run", replayed)
    yield


def _script(connection: sa.Connection, migrations: Any) -> str:
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
    return ";\n".join(done)
