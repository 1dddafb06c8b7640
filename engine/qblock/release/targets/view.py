"""The view of a release on PostgreSQL: made once, recognised by its comment, granted to the readers and nobody else."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from qblock.errors import InputError, QblockError
from qblock.release.copy import PublishedColumn
from qblock.release.private import SCHEMA
from qblock.resources import sql_text
from qblock.spec import Spec
from qblock.warehouse.postgresql import quote
from qblock.warehouse.postgresql_session import LEDGER_PATH, looking_along

MOST_BYTES = 63
KINDS = {"r": "table", "p": "table", "m": "materialized view", "v": "view", "f": "foreign table", "S": "sequence"}


def text(name: str) -> sa.TextClause:
    """A statement of sql/postgresql."""
    return sa.text(sql_text(name, "postgresql"))


def run(connection: sa.Connection, statement: str) -> None:
    """Execute a statement that holds names: a colon or percent sign in them is no parameter."""
    connection.execute(sa.text(statement.replace(":", r"\:")))


class View:
    """What is published: `<publish.schema>.<view>`."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.schema = spec.publish.schema
        self.name = spec.view

    @property
    def shown(self) -> str:
        return ".".join(n if n.isidentifier() and n.islower() else quote(n) for n in (self.schema, self.name))

    @property
    def sql(self) -> str:
        return f"{quote(self.schema)}.{quote(self.name)}"

    @property
    def mark(self) -> str:
        """What its comment begins with."""
        return f"qblock release {self.spec.release}"

    def check(self, connection: sa.Connection) -> None:
        """Raise InputError for readers that do not exist, and for a name that stands for something else."""
        known = set(connection.scalars(sa.text("SELECT CAST(rolname AS text) FROM pg_roles")))
        unknown = [name for name in self.spec.publish.readers if name not in known]
        if unknown:
            raise InputError(
                f"{self.spec.at('publish', 'readers')}: no role {unknown[0]!r} in this database; "
                f"create it first: CREATE ROLE {quote(unknown[0])} LOGIN"
            )
        self._check_own(self.facts(connection))

    def _check_own(self, facts: Any) -> None:
        if facts is not None and (facts.kind != "v" or (facts.comment or "").split(";")[0] != self.mark):
            kind = KINDS.get(facts.kind, "relation")
            raise InputError(
                f"{self.spec.at('publish', 'view')}: {self.shown} is there already, a {kind} "
                f"that is not of release {self.spec.release}; give the view another name, or move the other one away"
            )

    def facts(self, connection: sa.Connection) -> Any:
        """What the view's name stands for now, or None."""
        return connection.execute(text("relation_facts"), {"schema": self.schema, "name": self.name}).one_or_none()

    def statement(self, parent: str, columns: Sequence[PublishedColumn], version: str) -> str:
        """The statement that makes it."""
        names = ", ".join(quote(c.name) for c in columns)
        return (
            f"CREATE VIEW {self.sql} WITH (security_barrier=true) AS SELECT {names} FROM {SCHEMA}.{quote(parent)} "
            f"WHERE {quote(version)} = (SELECT version FROM {SCHEMA}.pointer WHERE release = '{self.spec.release}')"
        )

    def intact(self, connection: sa.Connection, parent: str, columns: Sequence[PublishedColumn], version: str) -> bool:
        """Whether the view is as `ensure` would make it, and has not been altered since."""
        facts = self.facts(connection)
        if facts is None:
            return False
        statement = self.statement(parent, columns, version)
        if facts.comment == self._comment(statement, facts):
            return True
        # The server leaves out the names of schemas that the path has: as a login named like the private schema saw it
        # when sessions still had the login's path.
        with looking_along(connection, LEDGER_PATH):
            return bool(facts.comment == self._comment(statement, self.facts(connection)))

    def _comment(self, statement: str, facts: Any) -> str:
        content = "\n".join([statement, facts.definition or "", ",".join(facts.options or ())])
        return f"{self.mark}; sha256 {hashlib.sha256(content.encode()).hexdigest()}"

    def ensure(self, connection: sa.Connection, parent: str, columns: Sequence[PublishedColumn], version: str) -> None:
        """Make the view unless it is there; a changed column list replaces it, and its readers keep their grants."""
        if self.intact(connection, parent, columns, version):
            return
        statement = self.statement(parent, columns, version)
        facts = self.facts(connection)
        self._check_own(facts)
        readers: list[str] = []
        if facts is not None:
            given = connection.execute(text("relation_grantees"), {"oid": facts.oid})
            readers = [g.grantee for g in given if g.grantee is not None and g.privilege == "SELECT"]
            run(connection, f"DROP VIEW {self.sql}")
        if not connection.scalar(
            sa.text("SELECT count(*) FROM pg_namespace WHERE nspname = :name"), {"name": self.schema}
        ):
            run(connection, f"CREATE SCHEMA {quote(self.schema)}")
        run(connection, statement)
        self.close(connection, self.schema, self.name)
        self.sign(connection, statement)
        for reader in readers:
            run(connection, f"GRANT SELECT ON {self.sql} TO {quote(reader)}")

    def sign(self, connection: sa.Connection, statement: str) -> None:
        """Write into its comment whose it is, and by which statement it was made."""
        comment = self._comment(statement, self.facts(connection)).replace("'", "''")
        run(connection, f"COMMENT ON VIEW {self.sql} IS '{comment}'")

    def close(self, connection: sa.Connection, schema: str, name: str) -> None:
        """Take away what default privileges have given on something new."""
        oid = connection.scalar(text("relation_facts"), {"schema": schema, "name": name})
        given = connection.execute(text("relation_grantees"), {"oid": oid}).all()
        for grantee in {row.grantee for row in given}:
            role = "PUBLIC" if grantee is None else quote(grantee)
            run(connection, f"REVOKE ALL ON {quote(schema)}.{quote(name)} FROM {role}")

    def grant(self, connection: sa.Connection) -> list[str]:
        """Give the named readers USAGE of the schema and SELECT on the view where they lack it; says what was given."""
        given = []
        for reader in self.spec.publish.readers:
            for privilege, on, holds in (
                ("USAGE", f"SCHEMA {quote(self.schema)}", "has_schema_privilege(:role, :schema, 'USAGE')"),
                ("SELECT", self.sql, "has_table_privilege(:role, :view, 'SELECT')"),
            ):
                query = sa.text(f"SELECT {holds}")
                values = {"role": reader, "schema": self.schema, "view": self.sql}
                values = {name: value for name, value in values.items() if f":{name}" in holds}
                if connection.scalar(query, values):
                    continue
                run(connection, f"GRANT {privilege} ON {on} TO {quote(reader)}")
                if not connection.scalar(query, values):
                    raise QblockError(
                        f"the job's login may not grant {privilege} on {on} to {reader}; grant it yourself"
                    )
                given.append(f"{privilege} on {on} to {reader}")
        return given
