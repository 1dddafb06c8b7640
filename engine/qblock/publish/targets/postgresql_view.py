"""The view of a release on PostgreSQL: made once, recognised by its comment, granted to the readers and nobody else."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from qblock.errors import InputError, QblockError
from qblock.ledger.kept import PublishedColumn
from qblock.ledger.place import SCHEMA
from qblock.publish.targets.layout import Layout
from qblock.spec import Spec
from qblock.warehouse import postgresql_session
from qblock.warehouse.lock_waits import REPLACE, Turn
from qblock.warehouse.postgresql_session import LEDGER_PATH, looking_along
from qblock.warehouse.protocol import quote

KINDS = {"r": "table", "p": "table", "m": "materialized view", "v": "view", "f": "foreign table", "S": "sequence"}
LIKE = "qblock_like_new"
CANNOT_MAKE = ("42501", "25006")
"""No privilege to make a temporary view, or a server that is read-only."""
NAMED = 3
"""How many dependent objects a message names."""


def text(name: str) -> sa.TextClause:
    """A statement of sql/postgresql."""
    return postgresql_session.statement(name)


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

    def check(self, connection: sa.Connection) -> Any:
        """What has the view's name, or None. Raises InputError for readers that do not exist, and for a name that
        stands for something else."""
        known = set(connection.scalars(sa.text("SELECT CAST(rolname AS text) FROM pg_roles")))
        unknown = [name for name in self.spec.publish.readers if name not in known]
        if unknown:
            raise InputError(
                f"{self.spec.at('publish', 'readers')}: no role {unknown[0]!r} in this database; "
                f"create it first: CREATE ROLE {quote(unknown[0])} LOGIN"
            )
        facts = self.facts(connection)
        self._check_own(facts)
        return facts

    def _check_own(self, facts: Any) -> None:
        if facts is not None and (facts.kind != "v" or (facts.comment or "").split(";")[0] != self.mark):
            kind = KINDS.get(facts.kind, "relation")
            raise InputError(
                f"{self.spec.at('publish', 'view')}: {self.shown} already exists, a {kind} that does not belong to "
                f"release {self.spec.release}; give the view another name, or move the other one away"
            )

    def facts(self, connection: sa.Connection) -> Any:
        """What kind of object has the view's name now, or None."""
        return connection.execute(text("relation_facts"), {"schema": self.schema, "name": self.name}).one_or_none()

    def statement(self, layout: Layout) -> str:
        """The statement that makes it."""
        stored = layout.stored.items()
        names = ", ".join(quote(n) if n == place else f"{quote(place)} AS {quote(n)}" for n, place in stored)
        return (
            f"CREATE VIEW {self.sql} WITH (security_barrier=true) AS SELECT {names} "
            f"FROM {SCHEMA}.{quote(layout.table)} "
            f"WHERE {quote(layout.key)} = (SELECT version FROM {SCHEMA}.pointer WHERE release = '{self.spec.release}')"
        )

    def intact(self, connection: sa.Connection, layout: Layout) -> bool:
        """Whether the view is as `ensure` would make it, and has not been altered since."""
        facts = self.facts(connection)
        if facts is None:
            return False
        statement = self.statement(layout)
        if facts.comment == self._comment(statement, facts):
            return True
        # The server leaves out the names of schemas that the path has: as a login named like the private schema saw it
        # when sessions still had the login's path.
        with looking_along(connection, LEDGER_PATH):
            if facts.comment == self._comment(statement, self.facts(connection)):
                return True
        return (facts.comment or "").startswith(f"{self.mark}; ") and self._like_new(connection, statement, facts)

    def _like_new(self, connection: sa.Connection, statement: str, facts: Any) -> bool:
        """Whether the server shows the view as one that it makes now of the same statement.

        It writes a view's text by its version and by settings; both views are shown by the same ones here.
        """
        inside = connection.begin_nested()
        try:
            run(connection, statement.replace(f"CREATE VIEW {self.sql}", f"CREATE TEMPORARY VIEW {LIKE}", 1))
            schema = connection.scalar(
                sa.text("SELECT CAST(nspname AS text) FROM pg_namespace WHERE oid = pg_my_temp_schema()")
            )
            new = connection.execute(text("relation_facts"), {"schema": schema, "name": LIKE}).one()
        except sa.exc.DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) not in CANNOT_MAKE:
                raise
            return False
        finally:
            inside.rollback()
        return bool((facts.definition, facts.options, facts.columns) == (new.definition, new.options, new.columns))

    def _comment(self, statement: str, facts: Any) -> str:
        content = "\n".join([statement, facts.definition or "", ",".join(facts.options or ())])
        return f"{self.mark}; sha256 {hashlib.sha256(content.encode()).hexdigest()}"

    def check_replaceable(self, connection: sa.Connection, columns: Sequence[PublishedColumn]) -> None:
        """Raise InputError where the view must be made again for these columns, and something else depends on it."""
        facts = self.facts(connection)
        if facts is None or facts.kind != "v":
            return
        changed = _changed(facts.columns or [], columns)
        if changed is None:
            return
        found = connection.execute(text("view_dependents"), {"oid": facts.oid}).all()
        if not found:
            return
        names = [f"{row.kind} {row.identity}" + (f" of {row.owner}" if row.owner else "") for row in found[:NAMED]]
        more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
        raise InputError(
            f"{self.spec.at('attributes')}: {changed}, so {self.shown} must be dropped and made again, and "
            f"{', '.join(names)}{more} {'depends' if len(found) == 1 else 'depend'} on it; nothing is published. Keep "
            "the published columns as they are and in their order, with new ones after the last of them, or have the "
            "owner drop what depends on it (and make it again after the release)"
        )

    def make(self, connection: sa.Connection, layout: Layout, columns: Sequence[PublishedColumn], turn: Turn) -> None:
        """Make the view. One whose columns come first is replaced, and what depends on it keeps working; another one is
        dropped, and its readers keep their grants. Raises InputError where something depends on that.
        """
        statement = self.statement(layout)
        facts = self.facts(connection)
        self._check_own(facts)
        self.check_replaceable(connection, columns)
        if not connection.scalar(
            sa.text("SELECT count(*) FROM pg_namespace WHERE nspname = :name"), {"name": self.schema}
        ):
            run(connection, f"CREATE SCHEMA {quote(self.schema)}")
        turn.wants(REPLACE, self.schema, self.name, catalog=True)
        # From here on readers wait for the end of the transaction.
        turn.begin()
        turn.rest()
        if facts is not None and _changed(facts.columns or [], columns) is None:
            run(connection, statement.replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1))
            turn.rest()
            self.sign(connection, statement)
            return
        readers: list[str] = []
        if facts is not None:
            given = connection.execute(text("relation_grantees"), {"oid": facts.oid})
            readers = [g.grantee for g in given if g.grantee is not None and g.privilege == "SELECT"]
            run(connection, f"DROP VIEW {self.sql}")
            turn.rest()
        run(connection, statement)
        self.close(connection, self.schema, self.name)
        self.sign(connection, statement)
        for reader in readers:
            run(connection, f"GRANT SELECT ON {self.sql} TO {quote(reader)}")

    def sign(self, connection: sa.Connection, statement: str) -> None:
        """Write into its comment which release it belongs to, and by which statement it was made."""
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
        """Give the named readers USAGE of the schema and SELECT on the view where they lack it; returns what was
        granted, in words."""
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
                        f"the job's login may not grant {privilege} on {on} to {reader}; grant it yourself: "
                        f"GRANT {privilege} ON {on} TO {quote(reader)}"
                    )
                given.append(f"{privilege} on {on} to {reader}")
        return given


def _changed(shown: Sequence[Sequence[str]], columns: Sequence[PublishedColumn]) -> str | None:
    """How published columns differ from those of the view, other than by new ones after its last; None where they do
    not."""
    before, now = [tuple(one) for one in shown], [(c.name, c.type) for c in columns]
    if now[: len(before)] == before:
        return None
    types, names = dict(now), [name for name, _ in before]
    gone = [name for name in names if name not in types]
    if gone:
        return f"column {', '.join(gone)} is no longer published"
    retyped = [f"{name} from {type_} to {types[name]}" for name, type_ in before if types[name] != type_]
    if retyped:
        return f"the type of published columns changes ({', '.join(retyped)})"
    return f"the published columns are no longer in the order {', '.join(names)}, followed by new ones"
