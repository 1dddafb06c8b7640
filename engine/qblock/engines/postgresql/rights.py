"""Rights that somebody needs in a PostgreSQL database, each as a statement, and which of them are held."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from qblock.engines.postgresql.session import home as home_of
from qblock.engines.postgresql.session import login_path, statement
from qblock.engines.quoting import quote
from qblock.engines.rights import Right, When, Who
from qblock.engines.tables import TableName


@dataclass(frozen=True)
class _Probe:
    """A privilege that makes part of a right."""

    kind: str
    oid: int
    privilege: str
    column: str = ""


class Catalog:
    """What the catalog says of a database for one role, the job's login, and of what else has been asked for.

    role: of the job, which need not exist; the login of the connection by default; is_replica: whether nothing can be
    stored there. No privilege is needed to ask.
    """

    def __init__(self, connection: sa.Connection, role: str | None = None) -> None:
        self.connection = connection
        row = connection.execute(
            sa.text(
                "SELECT CAST(current_user AS text) AS login, CAST(datname AS text) AS name, oid, datdba, "
                "pg_is_in_recovery() AS replica FROM pg_database WHERE datname = current_database()"
            )
        ).one()
        self.role = role or str(row.login)
        self.database, self.is_replica = str(row.name), bool(row.replica)
        self._oid = int(row.oid)
        self._needed: list[tuple[Right, tuple[_Probe, ...], bool]] = []

    def schemas(self, names: Collection[str]) -> dict[str, Any]:
        """Those of these schemas that exist, by name: rows of rights_schemas."""
        rows = self.connection.execute(statement("rights_schemas"), {"role": self.role, "schemas": list(names)})
        return {row.name: row for row in rows}

    def relations(self, names: Sequence[TableName]) -> dict[TableName, Any]:
        """Those of these relations that exist, each named with its schema: rows of rights_relations."""
        values = {"schemas": [n.schema for n in names], "names": [n.name for n in names], "role": self.role}
        rows = self.connection.execute(statement("rights_relations"), values)
        return {TableName(row.schema, row.name): row for row in rows}

    def home(self, table: TableName) -> TableName | None:
        """A table with its schema, as the login of the connection finds it, or would if it might use the schema."""
        resolved = home_of(self.connection, table)
        if resolved.schema is not None:
            return resolved
        along = [TableName(schema, table.name) for schema in login_path(self.connection)]
        there = self.relations(along)
        return next((name for name in along if name in there), None)

    def make_role(self, who: Who, role: str) -> None:
        """A role that does not exist."""
        query = sa.text("SELECT count(*) FROM pg_roles WHERE rolname = :role")
        if not self.connection.scalar(query, {"role": role}):
            self.add(Right(who, role, f"CREATE ROLE {quote(role)} LOGIN", "with a password, or as pg_hba.conf asks"))

    def on_database(self, who: Who, role: str, privilege: str, why: str, *, stops: bool = True) -> None:
        """A privilege on the database."""
        grant = f"GRANT {privilege} ON DATABASE {quote(self.database)} TO {quote(role)}"
        self.add(Right(who, role, grant, why, stops=stops), [_Probe("database", self._oid, privilege)])

    def on_schema(
        self,
        who: Who,
        role: str,
        name: str,
        row: Any,
        privilege: str,
        why: str,
        *,
        when: When = "now",
        stops: bool = True,
    ) -> None:
        """A privilege on a schema. row: of `schemas`, or None where it does not exist."""
        grant = f"GRANT {privilege} ON SCHEMA {quote(name)} TO {quote(role)}"
        probes = [] if row is None else [_Probe("schema", row.oid, privilege)]
        owned = row is not None and row.owned and role == self.role
        self.add(Right(who, role, grant, why, when=when, stops=stops), probes, owned=owned)

    def on_columns(
        self, who: Who, role: str, table: TableName, row: Any, columns: Sequence[str], why: str, *, stops: bool = True
    ) -> None:
        """SELECT on columns of a table. row: of `relations`; columns that it lacks are left out."""
        names = [name for name in columns if name in row.columns]
        if names:
            listed = ", ".join(map(quote, names))
            grant = f"GRANT SELECT ({listed}) ON TABLE {table.quoted} TO {quote(role)}"
            probes = [_Probe("column", row.oid, "SELECT", name) for name in names]
            self.add(Right(who, role, grant, why, stops=stops), probes, owned=row.owned and role == self.role)

    def on_relations(
        self,
        who: Who,
        role: str,
        rows: Mapping[TableName, Any],
        privileges: Sequence[str],
        why: str,
        *,
        when: When = "now",
        stops: bool = True,
    ) -> None:
        """Privileges on several relations at once. rows: of `relations`, or None for what does not exist."""
        named = ", ".join(table.quoted for table in rows)
        grant = f"GRANT {', '.join(privileges)} ON TABLE {named} TO {quote(role)}"
        there = [row for row in rows.values() if row is not None]
        probes = [_Probe("relation", row.oid, privilege) for row in there for privilege in privileges]
        owned = role == self.role and bool(there) and all(row.owned for row in there)
        self.add(Right(who, role, grant, why, when=when, stops=stops), probes, owned=owned)

    def add(self, right: Right, probes: Iterable[_Probe] = (), *, owned: bool = False) -> None:
        """A right. probes: all that must be held; none where it is known to be missing; owned: what it is about belongs
        to the role, so that nothing need be said of it where it is held."""
        self._needed.append((right, tuple(probes), owned))

    def rights(self) -> tuple[Right, ...]:
        """Everything that was asked for, in that order, and whether it is held."""
        probed = [(right.role, probe) for right, probes, _ in self._needed for probe in probes]
        values = {
            "roles": [role for role, _ in probed],
            "kinds": [probe.kind for _, probe in probed],
            "oids": [probe.oid for _, probe in probed],
            "columns": [probe.column for _, probe in probed],
            "privileges": [probe.privilege for _, probe in probed],
        }
        answers = list(self.connection.scalars(statement("rights_held"), values))
        rights = []
        for right, probes, owned in self._needed:
            own, answers = answers[: len(probes)], answers[len(probes) :]
            held = bool(probes) and all(own)
            if not (held and owned):
                rights.append(replace(right, held=held))
        return tuple(rights)
