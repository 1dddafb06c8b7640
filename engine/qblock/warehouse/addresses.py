"""What is printed of a database's URL, and the error for a database that cannot be reached."""

from __future__ import annotations

import sqlalchemy as sa

from qblock.errors import QblockError


class Unreachable(QblockError):
    """A database that cannot be reached, or not any more: nothing is known about what is in it."""


def shown_url(url: sa.URL) -> str:
    """The only text of a URL that may be printed: scheme, user, host, port and database; no password, no parameter."""
    engine = url.get_backend_name()
    database = url.database if engine in ("duckdb", "postgresql", "postgres") else None
    shown = sa.URL.create(engine, url.username, host=url.host, port=url.port, database=database)
    return shown.render_as_string(hide_password=True)
