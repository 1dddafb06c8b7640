"""A view of a release on PostgreSQL: made once, known by its row in `qblock.view`, and granted to nobody else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa

from qblock.engines.postgresql import session as postgresql_session
from qblock.engines.postgresql.lock_waits import Attempt
from qblock.engines.quoting import quote, quote_text
from qblock.errors import InputError, QblockError
from qblock.ledger.store import SCHEMA
from qblock.spec import Spec

KINDS = {"r": "table", "p": "table", "m": "materialized view", "v": "view", "f": "foreign table", "S": "sequence"}
Columns = Sequence[tuple[str, str]]
"""Names and types of a view's columns."""
Comments = tuple[str, Mapping[str, str]]
"""The comment of a view, and those of its columns."""
LIKE = "qblock_like_new"
CANNOT_MAKE = ("42501", "25006")
"""No privilege to make a temporary view, or a server that is read-only."""
TABLE = sa.Table(
    "view",
    sa.MetaData(schema=SCHEMA),
    sa.Column("schema", sa.Text),
    sa.Column("name", sa.Text),
    sa.Column("release", sa.Text),
    sa.Column("role", sa.Text),
    sa.Column("object", sa.BigInteger),
    sa.Column("digest", sa.Text),
    sa.Column("comment", sa.Text),
)
KNOWN = "qblock_views_are_kept"
NAMED = 3
"""How many dependent objects a message names."""


def text(name: str) -> sa.TextClause:
    """A statement of sql/postgresql."""
    return postgresql_session.statement(name)


def run(connection: sa.Connection, statement: str) -> None:
    """Execute a statement that holds names: a colon or percent sign in them is no parameter."""
    connection.execute(sa.text(statement.replace(":", r"\:")))


def facts_of(connection: sa.Connection, schema: str, names: Sequence[str]) -> dict[str, Any]:
    """What names of a schema stand for now (relation_facts); nothing of those that are free."""
    rows = connection.execute(text("relation_facts"), {"schema": schema, "names": list(names)})
    return {row.name: row for row in rows}


@dataclass(frozen=True)
class KnownView:
    """A view: its place, its release and its role there, its oid, the digest of how it was made, and its comment."""

    schema: str
    name: str
    release: str
    role: str
    object: int
    digest: str
    comment: str


def readable(connection: sa.Connection) -> bool:
    """Whether the ledger has come to keep them, and this login may read it; asked until it is so."""
    if not connection.info.get(KNOWN):
        connection.info[KNOWN] = connection.scalar(text("views_readable")) is not None
    return bool(connection.info[KNOWN])


def known_views(connection: sa.Connection, schema: str, names: Sequence[str]) -> dict[str, KnownView]:
    """What is known of views by name; none of one that qblock did not make."""
    return {row.name: row for row in _rows(connection, TABLE.c.schema == schema, TABLE.c.name.in_(names))}


def known_views_of(connection: sa.Connection, release: str) -> list[KnownView]:
    """The views of a release."""
    return _rows(connection, TABLE.c.release == release)


def _rows(connection: sa.Connection, *where: sa.ColumnElement[bool]) -> list[KnownView]:
    if not readable(connection):
        return []
    return [KnownView(**row._mapping) for row in connection.execute(sa.select(TABLE).where(*where))]


def write_known(connection: sa.Connection, row: KnownView) -> None:
    """Write a view down, in the place of what is known of it."""
    forget_known(connection, row.schema, row.name)
    connection.execute(TABLE.insert(), [asdict(row)])


def forget_known(connection: sa.Connection, schema: str, name: str) -> None:
    """Forget a view that is gone, or has another name."""
    connection.execute(TABLE.delete().where(TABLE.c.schema == schema, TABLE.c.name == name))


def own_views(connection: sa.Connection) -> list[int]:
    """The oids of views that this login made as views of releases: what they show is what is published."""
    if not readable(connection):
        return []
    return [int(oid) for oid in connection.scalars(text("own_views"))]


def close(connection: sa.Connection, schema: str, name: str) -> None:
    """Take away what default privileges have given on something new."""
    given = connection.execute(text("relation_grantees"), {"oid": facts_of(connection, schema, [name])[name].oid})
    for grantee in {row.grantee for row in given.all()}:
        role = "PUBLIC" if grantee is None else quote(grantee)
        run(connection, f"REVOKE ALL ON {quote(schema)}.{quote(name)} FROM {role}")


class View:
    """A view of a release in `publish.schema`. name: by default that of the rows; role: what it is among the others,
    as `qblock.view` has it."""

    def __init__(self, spec: Spec, name: str | None = None, role: str = "rows") -> None:
        self.spec = spec
        self.schema = spec.publish.schema
        self.name = spec.view if name is None else name
        self.role = role

    @property
    def shown(self) -> str:
        return ".".join(n if n.isidentifier() and n.islower() else quote(n) for n in (self.schema, self.name))

    @property
    def sql(self) -> str:
        return f"{quote(self.schema)}.{quote(self.name)}"

    @property
    def begin(self) -> str:
        """How the statement that makes it begins."""
        return f"CREATE VIEW {self.sql} WITH (security_barrier=true)"

    @property
    def place(self) -> str:
        """The place of the spec where it can be named otherwise."""
        return self.spec.at("publish", "view") if self.role == "rows" else self.spec.at("publish", "names")

    def check_readers(self, connection: sa.Connection) -> None:
        """Raise InputError for readers that do not exist."""
        known = set(connection.scalars(sa.text("SELECT CAST(rolname AS text) FROM pg_roles")))
        unknown = [name for name in self.spec.publish.readers if name not in known]
        if unknown:
            raise InputError(
                f"{self.spec.at('publish', 'readers')}: no role {unknown[0]!r} in this database; "
                f"create it first: CREATE ROLE {quote(unknown[0])} LOGIN"
            )

    def check_own(self, facts: Any, row: KnownView | None) -> None:
        """Raise InputError for something of that name that is not this release's. facts: what it is; row: what is known
        of it."""
        if facts is not None and (facts.kind != "v" or not self._own(facts, row)):
            kind = KINDS.get(facts.kind, "relation")
            raise InputError(
                f"{self.place}: {self.shown} already exists, a {kind} that does not belong to "
                f"release {self.spec.release}; give the view another name, or move the other one away"
            )

    def _own(self, facts: Any, row: KnownView | None) -> bool:
        """Whether it was made for this release: its row names it, also after a restore, which keeps comments and gives
        other oids."""
        if row is None or row.release != self.spec.release:
            return False
        return bool(row.object == facts.oid or row.comment == facts.comment)

    def facts(self, connection: sa.Connection) -> Any:
        """What kind of object has the view's name now, or None."""
        return facts_of(connection, self.schema, [self.name]).get(self.name)

    def intact(self, connection: sa.Connection, statement: str, facts: Any, row: KnownView | None) -> bool:
        """Whether the view is as `make` would make it by this statement, and has not been altered since. facts: what
        has its name; row: what is known of it."""
        if facts is None or facts.kind != "v":
            return False
        if row is not None and (row.release, row.role) != (self.spec.release, self.role):
            return False
        if row is None and readable(connection):
            return False
        if row is not None and row.digest == _digest(statement, facts):
            return True
        return self._like_new(connection, statement, facts)

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
            new = facts_of(connection, schema, [LIKE])[LIKE]
        except sa.exc.DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) not in CANNOT_MAKE:
                raise
            return False
        finally:
            inside.rollback()
        return bool((facts.definition, facts.options, facts.columns) == (new.definition, new.options, new.columns))

    def check_replaceable(self, connection: sa.Connection, facts: Any, columns: Columns) -> None:
        """Raise InputError where the view (facts) must be made again for these columns, and something else depends on
        it."""
        if facts is None or facts.kind != "v":
            return
        changed = _changed(facts.columns or [], columns)
        if changed is None:
            return
        dependents = connection.execute(text("view_dependents"), {"oid": facts.oid}).all()
        if not dependents:
            return
        names = [f"{row.kind} {row.identity}" + (f" of {row.owner}" if row.owner else "") for row in dependents[:NAMED]]
        more = f" and {len(dependents) - NAMED} more" if len(dependents) > NAMED else ""
        raise InputError(
            f"{self.spec.at('attributes')}: {changed}, so {self.shown} must be dropped and made again, and "
            f"{', '.join(names)}{more} {'depends' if len(dependents) == 1 else 'depend'} on it; nothing is published. "
            "Keep the published columns and their order, with new ones after the last of them. Or let the owner drop "
            "what depends on it, and make it again after the release"
        )

    def make(
        self, connection: sa.Connection, statement: str, columns: Columns, says: Comments, attempt: Attempt
    ) -> None:
        """Make the view, which `check_own` and `check_replaceable` let through. One whose columns come first is
        replaced, and what depends on it keeps working; another one is dropped, and its readers keep their grants.
        """
        facts = self.facts(connection)
        attempt.use_time_left()
        if facts is not None and _changed(facts.columns or [], columns) is None:
            run(connection, statement.replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1))
            attempt.use_time_left()
            self.sign(connection, statement, says)
            return
        readers: list[str] = []
        if facts is not None:
            given = connection.execute(text("relation_grantees"), {"oid": facts.oid})
            readers = [g.grantee for g in given if g.grantee is not None and g.privilege == "SELECT" and g.whole]
            run(connection, f"DROP VIEW {self.sql}")
            attempt.use_time_left()
        run(connection, statement)
        close(connection, self.schema, self.name)
        self.sign(connection, statement, says)
        for reader in readers:
            run(connection, f"GRANT SELECT ON {self.sql} TO {quote(reader)}")

    def move(self, connection: sa.Connection, schema: str, name: str) -> None:
        """Give what has this name of a schema the name that the view has now."""
        if schema != self.schema:
            run(connection, f"ALTER VIEW {quote(schema)}.{quote(name)} SET SCHEMA {quote(self.schema)}")
        if name != self.name:
            run(connection, f"ALTER VIEW {quote(self.schema)}.{quote(name)} RENAME TO {quote(self.name)}")

    def sign(self, connection: sa.Connection, statement: str, says: Comments) -> None:
        """Write down which release it belongs to and by which statement it was made, and for readers what it is."""
        facts = self.facts(connection)
        comment, columns = says
        run(connection, f"COMMENT ON VIEW {self.sql} IS {quote_text(comment)}")
        for name, text_ in columns.items():
            run(connection, f"COMMENT ON COLUMN {self.sql}.{quote(name)} IS {quote_text(text_)}")
        digest = _digest(statement, facts)
        write_known(
            connection, KnownView(self.schema, self.name, self.spec.release, self.role, facts.oid, digest, comment)
        )

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


def _digest(statement: str, facts: Any) -> str:
    content = "\n".join([statement, facts.definition or "", ",".join(facts.options or ())])
    return hashlib.sha256(content.encode()).hexdigest()


def _changed(shown: Sequence[Sequence[str]], columns: Columns) -> str | None:
    """How published columns differ from those of the view, other than by new ones after its last; None where they do
    not."""
    before, now = [tuple(column) for column in shown], list(columns)
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
