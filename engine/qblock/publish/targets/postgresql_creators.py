"""Readers who may create something where the job's login would look for names, if its sessions used that path."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from qblock.publish.targets.postgresql_view import text
from qblock.warehouse.postgresql_session import CATALOG, login_path
from qblock.warehouse.protocol import quote


def warnings(connection: sa.Connection, readers: Sequence[str]) -> list[str]:
    """One sentence for each reader, or PUBLIC, and schema of the login's search path in which they may create.

    A schema of the path that does not exist counts where the reader may create schemas in the database. No session of
    qblock uses that path, so this is no way to the source; other programs of the same login may use it.
    """
    path = [schema for schema in login_path(connection) if schema != CATALOG]
    rows = connection.execute(text("path_creators"), {"schemas": path, "readers": list(readers)})
    said = []
    for row in rows:
        who = "everybody (PUBLIC)" if row.role is None else f"reader {row.role}"
        role = "PUBLIC" if row.role is None else quote(row.role)
        what = f"create in schema {row.schema}" if row.exists else f"create the schema {row.schema}"
        on = f"SCHEMA {quote(row.schema)}" if row.exists else f"DATABASE {quote(row.database)}"
        said.append(
            f"{who} may {what}, which is in the search path of the job's login: this job does not use that path, but "
            f"whatever else runs as this login may call what is put there; REVOKE CREATE ON {on} FROM {role}"
        )
    return said
