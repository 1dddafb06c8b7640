"""What a release on PostgreSQL needs: of its source, of the two schemas that it writes to, and for its readers."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from qblock.engines.from_spec import is_elsewhere, tables_read
from qblock.engines.postgresql import session as postgresql_session
from qblock.engines.postgresql.rights import Catalog
from qblock.engines.quoting import quote
from qblock.engines.registry import engine_of, parse_url
from qblock.engines.rights import Needs, Right, When
from qblock.engines.tables import TableName
from qblock.errors import InputError
from qblock.ledger.store import SCHEMA
from qblock.publish.helpers import names
from qblock.publish.targets.postgresql_tables import pattern_of
from qblock.publish.targets.postgresql_view import View, text
from qblock.source.columns import columns_granted, columns_looked_at
from qblock.spec import Spec

LEDGER = (
    (("alembic_version", "release_move"), ("SELECT",), "which ledger this is"),
    (("event", "guarantee", "begun"), ("SELECT", "INSERT"), "the ledger, which is appended to"),
    (("pointer",), ("SELECT", "INSERT", "UPDATE"), "which version readers see"),
    (("reference",), ("SELECT", "INSERT", "DELETE"), "what the checks of a kept version need"),
    (("spec",), ("SELECT", "INSERT"), "the texts of specs"),
    (("view",), ("SELECT", "INSERT", "DELETE"), "which views are those of releases"),
    (
        ("shown_columns", "shown_levels", "shown_version", "shown_guarantees", "shown_spread"),
        ("SELECT", "INSERT", "DELETE"),
        "what helper views show",
    ),
)
"""Tables, privileges and what for, where the ledger belongs to another role, so that the job can only append to it."""
CROSSWALK = (
    "crosswalk",
    "crosswalk_key",
    "crosswalk_version",
    "crosswalk_block",
    "crosswalk_episode",
    "crosswalk_signature",
    "crosswalk_rolled",
    "crosswalk_frozen",
    "crosswalk_apart",
    "crosswalk_turnover",
    "crosswalk_cohort",
    "crosswalk_shown",
    "crosswalk_waiting",
    "crosswalk_steady",
    "crosswalk_rekeyed",
)
CROSSWALK_NEEDS = ("SELECT", "INSERT", "UPDATE", "DELETE")
VIEWS = (
    "release_history",
    "version_guarantees",
    "margin_trend",
    "current_version",
    "runs",
    "refusals",
    "current_guarantees",
    "spec_texts",
)
HISTORY = ("alembic_version", "event", "guarantee", "pointer", "release_move")
"""What `qblock history` reads besides the views."""


def needs(connection: sa.Connection, spec: Spec, job: str | None = None, officer: str | None = None) -> Needs:
    """Every right that the job's login, the readers and an officer need, as the database is now.

    job: the login, which need not exist; by default that of the connection. Reads the catalog alone, which every login
    may. Raises InputError for a replica, and for an officer who is a reader, or whom a reader can become.
    """
    catalog = Catalog(connection, job)
    if catalog.is_replica:
        raise InputError(
            f"{spec.at('source')}: the server is a replica, where nothing can be published; publish a file: "
            "publish: {url: 'duckdb:///release.duckdb'}"
        )
    if officer is not None:
        _check_officer(connection, spec, officer)
    schemas = catalog.schemas([SCHEMA, spec.publish.schema])
    notes = _of_job(catalog, spec, schemas)
    for reader in spec.publish.readers:
        _of_reader(catalog, spec, schemas.get(spec.publish.schema), reader)
    if officer is not None:
        catalog.make_role("officer", officer)
        catalog.on_database("officer", officer, "CONNECT", "to log in", stops=False)
        _of_officer(catalog, schemas.get(SCHEMA), officer)
    return Needs("postgresql", catalog.database, catalog.role, catalog.rights(), notes=tuple(notes))


def _of_job(catalog: Catalog, spec: Spec, schemas: dict[str, sa.Row]) -> list[str]:  # type: ignore[type-arg]
    role = catalog.role
    catalog.make_role("job", role)
    catalog.on_database("job", role, "CONNECT", "to log in")
    catalog.on_database("job", role, "TEMPORARY", "counts are kept in temporary tables")
    missing = [name for name in (SCHEMA, spec.publish.schema) if name not in schemas]
    if missing:
        noun = "schemas" if len(missing) > 1 else "schema"
        why = f"makes the missing {noun} {' and '.join(map(quote, missing))}, once"
        catalog.on_database("job", role, "CREATE", why)
    notes = _of_tables(catalog, spec)
    notes += _of_ledger(catalog, schemas.get(SCHEMA), entity=spec.entity is not None)
    schema = schemas.get(spec.publish.schema)
    if schema is not None:
        catalog.on_schema("job", role, spec.publish.schema, schema, "USAGE", "the schema of the release")
        catalog.on_schema("job", role, spec.publish.schema, schema, "CREATE", "the view that readers see")
    _of_own(catalog, spec)
    if catalog.connection.scalar(sa.text("SELECT rolsuper FROM pg_roles WHERE rolname = :role"), {"role": role}):
        notes.append(
            f"{role} is a superuser, who needs nothing; let the job have a login of its own, and name it here (--job)"
        )
    return notes


def _of_ledger(catalog: Catalog, schema: Any, *, entity: bool) -> list[str]:
    """Ask for what the job needs of schema `qblock`; notes. schema: its row of `Catalog.schemas`, or None; entity:
    whether the spec names one, so that there is a crosswalk."""
    if schema is None:
        return []
    role = catalog.role
    catalog.on_schema("job", role, SCHEMA, schema, "USAGE", "the private schema: ledger, crosswalk, versions")
    catalog.on_schema("job", role, SCHEMA, schema, "CREATE", "a table for each version")
    groups = [*LEDGER, *([(CROSSWALK, CROSSWALK_NEEDS, "who was shown in which version")] if entity else [])]
    known = catalog.relations([TableName(SCHEMA, name) for tables, *_ in groups for name in tables])
    for tables, privileges, why in groups:
        rows = {table: known[table] for table in (TableName(SCHEMA, name) for name in tables) if table in known}
        if rows:
            catalog.on_relations("job", role, rows, privileges, why)
    version = known.get(TableName(SCHEMA, "alembic_version"))
    if version is None or version.owned:
        return []
    return [
        f"the ledger belongs to {version.owner}, as whom `qblock ledger upgrade SPEC` is run after each update of "
        f"qblock; {role} can only append to it"
    ]


def _of_officer(catalog: Catalog, schema: Any, officer: str) -> None:
    """Ask for what `qblock history`, and the views of the ledger, need; nothing of the crosswalk, nor of a version."""
    tables = [TableName(SCHEMA, name) for name in (*VIEWS, *HISTORY)]
    known = catalog.relations(tables)
    why = "the ledger is in the private schema"
    when: When = "now" if schema is not None else "later"
    catalog.on_schema("officer", officer, SCHEMA, schema, "USAGE", why, when=when, stops=False)
    for group, why in ((VIEWS, "the views for officers"), (HISTORY, "what `qblock history` reads besides")):
        rows = {table: known.get(table) for table in (TableName(SCHEMA, name) for name in group)}
        when = "now" if all(row is not None for row in rows.values()) else "later"
        catalog.on_relations("officer", officer, rows, ("SELECT",), why, when=when, stops=False)


def _of_tables(catalog: Catalog, spec: Spec) -> list[str]:
    """Of the source, whose columns are told one by one, and of the other tables that the spec names."""
    if is_elsewhere(spec):
        source_engine = engine_of(parse_url(spec.source.url.url))
        if source_engine.is_file:
            return []  # a file has no roles
        if not source_engine.adapter.has_roles:
            return [f"the login of the source's URL must be able to read {spec.source.table} there"]
        return [f"{catalog.role}, or the login of the source's URL, needs SELECT on {spec.source.table} there"]
    role, notes, source = catalog.role, [], TableName.parse(spec.source.table)
    homes = {table: catalog.home(table) for table in tables_read(spec)}
    rows = catalog.relations([home for home in homes.values() if home is not None])
    for name, schema in catalog.schemas({home.schema for home in rows if home.schema is not None}).items():
        catalog.on_schema("job", role, name, schema, "USAGE", "the schema of a table that is read")
    for table, home in homes.items():
        row = None if home is None else rows.get(home)
        if home is None or row is None:
            notes.append(f"table {table} was not found, so the rights on it are not listed")
        elif table == source:
            catalog.on_columns("job", role, home, row, columns_granted(spec), "the source, which is only read")
            why = "to note rows that repeat people; a run does without"
            catalog.on_columns("job", role, home, row, columns_looked_at(spec), why, stops=False)
        else:
            catalog.on_relations("job", role, {home: row}, ("SELECT",), "named in the spec")
        if row is not None and row.invoker:
            notes.append(
                f"view {table} reads with the rights of who asks, so {role} needs SELECT on what it reads, too"
            )
        if row is not None and row.policies and not row.owned:
            notes.append(f"table {table} has row level security: {role} must see all rows (ALTER ROLE ... BYPASSRLS)")
    return notes


def _of_own(catalog: Catalog, spec: Spec) -> None:
    """What an earlier login of the job has made of this release."""
    rows = catalog.connection.execute(text("release_tables"), {"pattern": pattern_of(spec.release)})
    tables = [TableName(SCHEMA, row.name) for row in rows]
    shown = [TableName(spec.publish.schema, spec.view)]
    shown += [TableName(spec.publish.schema, name) for name in names(spec.view, spec.publish.names).values()]
    for table, row in catalog.relations([*tables, *shown]).items():
        if not row.owned and (table not in shown or row.kind == "v"):
            kind = "VIEW" if table in shown else "TABLE"
            alter = f"ALTER {kind} {quote(table.schema or '')}.{quote(table.name)} OWNER TO {quote(catalog.role)}"
            catalog.add(Right("job", catalog.role, alter, f"made by {row.owner}, an earlier login of this release"))


def _of_reader(catalog: Catalog, spec: Spec, schema: sa.Row | None, reader: str) -> None:  # type: ignore[type-arg]
    view = View(spec)
    catalog.make_role("reader", reader)
    catalog.on_database("reader", reader, "CONNECT", "to log in", stops=False)
    # What the job makes, or may hand on, it grants itself.
    may = schema is None or schema.owned or schema.grants
    when: When = "by_job" if may else "now"
    catalog.on_schema(
        "reader", reader, view.schema, schema, "USAGE", "the schema of the view", when=when, stops=not may
    )
    shown = TableName(view.schema, view.name)
    rows = {shown: catalog.relations([shown]).get(shown)}
    catalog.on_relations("reader", reader, rows, ("SELECT",), "the view", when="by_job", stops=False)


def home_of(connection: sa.Connection, table: TableName) -> TableName | None:
    """A table with its schema, as the job's login finds it; None where there is none."""
    table = postgresql_session.home(connection, table)
    if table.schema is None:
        return None
    row = connection.execute(text("relation_home"), {"name": table.quoted}).one_or_none()
    return None if row is None else TableName(row.schema, row.name)


def readers_of(connection: sa.Connection, spec: Spec) -> tuple[str, ...]:
    """The readers of the spec, and everybody else who was granted something on the view (PUBLIC is everybody)."""
    view = {"schema": spec.publish.schema, "names": [spec.view]}
    facts = connection.execute(text("relation_facts"), view).one_or_none()
    given: tuple[str, ...] = ()
    if facts is not None:
        rows = connection.execute(text("relation_grantees"), {"oid": facts.oid})
        given = tuple(sorted({"PUBLIC" if row.grantee is None else row.grantee for row in rows}))
    return tuple(dict.fromkeys([*spec.publish.readers, *given]))


def _check_officer(connection: sa.Connection, spec: Spec, officer: str) -> None:
    readers = [name for name in readers_of(connection, spec) if name != "PUBLIC"]
    query = sa.text(
        "SELECT CAST(reader.rolname AS text) FROM pg_roles AS reader "
        "JOIN pg_roles AS officer ON officer.rolname = :officer "
        "WHERE reader.rolname = ANY(:readers) AND pg_has_role(reader.oid, officer.oid, 'MEMBER') ORDER BY 1"
    )
    members = list(connection.scalars(query, {"officer": officer, "readers": readers}))
    if officer in readers:
        members.insert(0, officer)
    if members:
        who = f"{officer} is a reader" if members[0] == officer else f"reader {members[0]} can become {officer}"
        raise InputError(
            f"--officer {officer}: {who} of release {spec.release}, and no reader may see the ledger; name another role"
        )
