"""The proof, before a version is published on PostgreSQL, that no reader reaches what is private by another way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from qblock.ledger.place import SCHEMA
from qblock.publish.targets import postgresql_definers, registry
from qblock.publish.targets.postgresql_view import KINDS, text
from qblock.spec import Spec
from qblock.spec.sources import DimensionTable
from qblock.warehouse.lock_waits import READ, Attempt
from qblock.warehouse.protocol import TableName, quote

DENIED = "42501"
PUBLIC = 0


def private_tables(spec: Spec) -> list[TableName]:
    """What a reader of the release must not read: its source, hierarchies in tables, and what people guard."""
    tables = [spec.source.table]
    for attribute in spec.attributes.values():
        tables += [s.table for s in (attribute.hierarchy, attribute.taxonomy) if isinstance(s, DimensionTable)]
    tables += [requirement.guards.table for requirement in spec.privacy if requirement.guards is not None]
    return [TableName.parse(name) for name in dict.fromkeys(tables)]


def ways(connection: sa.Connection, spec: Spec, readers: Sequence[str]) -> list[str]:
    """How a reader, PUBLIC, or a role that a reader can become, reaches something private; one sentence each.

    A privilege counts even where the schema is closed: one GRANT USAGE later it would be open. Functions that run with
    their owner's rights count where the owner may read something private, since what a function reads is not in the
    catalog. Reads the catalog only.
    """
    oids = _oids(connection, private_tables(spec))
    values = {"oids": oids, "private": SCHEMA, "own": registry.own(connection)}
    relations = connection.execute(text("reader_relations"), values).all()
    login = str(connection.scalar(sa.text("SELECT CAST(current_user AS text)")))
    roles = connection.execute(text("reader_roles"), {"readers": list(readers)}).all()
    sentences = [f"{_who(r.reader, r.role)} {r.attribute}; {_without(r)}" for r in roles if r.attribute]
    powerful = {r.oid for r in roles if r.attribute}
    subjects: dict[int, tuple[str, str]] = {PUBLIC: ("PUBLIC", "PUBLIC")}
    for role in roles:
        if role.oid not in powerful:
            subjects.setdefault(role.oid, (role.reader, role.role))
    named = {r.oid: f"{quote(r.schema)}.{quote(r.name)}" for r in relations}
    kinds = {r.oid: KINDS.get(r.kind, "relation") + (" over it" if r.over else "") for r in relations}
    for relation in relations:
        if relation.owner in subjects:
            other = "give it another owner"
            if relation.over or relation.schema == SCHEMA:
                other = f"ALTER TABLE {named[relation.oid]} OWNER TO {quote(login)}"
            sentences.append(f"{_who(*subjects[relation.owner])} owns {named[relation.oid]}; {other}")
    grants = connection.execute(text("reader_grants"), {"oids": list(named)})
    sentences += _grants(grants, subjects, named, kinds)
    callers = [oid for oid in subjects if oid != PUBLIC]
    if callers:
        for oid, sentence in postgresql_definers.definer_ways(connection, callers, list(named)):
            sentences.append(f"{_who(*subjects[oid])} {sentence}")
        sentences += _places(connection, spec, subjects, list(named), callers)
    return list(dict.fromkeys(sentences))


def lock_private(connection: sa.Connection, spec: Spec, attempt: Attempt) -> None:
    """Take the locks that `tried` asks for, as far as the login may read those tables: nobody is kept waiting yet."""
    oids = _oids(connection, [*private_tables(spec), TableName(SCHEMA, "event")])
    for oid in oids:
        attempt.wants_oids(READ, oid)
        _allowed(connection, f"SELECT 1 FROM {_full_name(connection, oid)} LIMIT 0")


def _without(row: Any) -> str:
    """The statements that take a power away from a reader."""
    if row.reader != row.role and row.cuts:
        return ", and ".join(f"REVOKE {quote(role)} FROM {quote(member)}" for role, member in row.cuts)
    if row.option:
        return f"ALTER ROLE {quote(row.role)} {row.option}"
    return f"give {row.reader} another login"


def _places(
    connection: sa.Connection,
    spec: Spec,
    subjects: Mapping[int, tuple[str, str]],
    private: list[int],
    callers: list[int],
) -> list[str]:
    """Readers who could replace what the job reads or runs, or return to this database as somebody else."""
    values = {"oids": private, "roles": list(subjects), "schema": spec.publish.schema, "view": spec.view}
    rows = connection.execute(text("reader_places"), values | {"private": SCHEMA})
    sentences = [f"{_who(*subjects[row.role])} {row.does}; {row.remedy}" for row in rows]
    for row in connection.execute(text("reader_servers"), {"roles": callers}):
        reader, role = subjects[row.role]
        sentences.append(
            f"{_who(reader, role)} may use server {row.server}, which leads back to this database, as whom its user "
            f"mapping for {row.mapped} names; DROP USER MAPPING FOR {row.mapped} SERVER {row.server}, "
            f"or REVOKE USAGE ON FOREIGN SERVER {row.server} FROM PUBLIC, {quote(role)}"
        )
    return sentences


def _oids(connection: sa.Connection, tables: Iterable[TableName]) -> list[int]:
    names = [".".join(quote(part) for part in (t.schema, t.name) if part) for t in tables]
    query = sa.text(
        "SELECT CAST(pg_catalog.to_regclass(name) AS oid) "
        "FROM pg_catalog.unnest(CAST(:names AS text[])) WITH ORDINALITY AS named (name, place) ORDER BY place"
    )
    oids = connection.scalars(query, {"names": names})
    return [int(oid) for oid in oids if oid is not None]


def _full_name(connection: sa.Connection, oid: int) -> str:
    query = (
        "SELECT CAST(namespace.nspname AS text) AS schema, CAST(class.relname AS text) AS name "
        "FROM pg_catalog.pg_class AS class "
        "JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace WHERE class.oid = :oid"
    )
    row = connection.execute(sa.text(query), {"oid": oid}).one()
    return f"{quote(row.schema)}.{quote(row.name)}"


def _grants(
    grants: Iterable[Any], subjects: Mapping[int, tuple[str, str]], named: Mapping[int, str], kinds: Mapping[int, str]
) -> list[str]:
    sentences = []
    for grant in grants:
        if grant.grantee not in subjects:
            continue
        reader, role = subjects[grant.grantee]
        privilege = grant.privilege + (f" ({quote(grant.column)})" if grant.column else "")
        who = "PUBLIC" if grant.grantee == PUBLIC else quote(role)
        sentences.append(
            f"{_who(reader, role)} has {privilege} on {kinds[grant.oid]} {named[grant.oid]}; "
            f"REVOKE {privilege} ON {named[grant.oid]} FROM {who}"
        )
    return sentences


def _who(reader: str, role: str) -> str:
    if reader == "PUBLIC":
        return "everybody (PUBLIC)"
    return f"reader {reader}" if reader == role else f"reader {reader}, who can become {role},"


def tried(connection: sa.Connection, spec: Spec, readers: Sequence[str], view: str) -> tuple[list[str], list[str]]:
    """Become each reader within a savepoint, read the view, and try to read the source: problems, and notes.

    Where the login may not SET ROLE to a reader, a note says so: then only the catalog was asked.
    """
    problems, untried = [], []
    # By schema and name: under another role the search path may lead elsewhere.
    private = [_full_name(connection, oid) for oid in _oids(connection, private_tables(spec))]
    private.append(f"{SCHEMA}.event")
    for reader in readers:
        inside = connection.begin_nested()
        try:
            if not _allowed(connection, f"SET LOCAL ROLE {quote(reader)}"):
                untried.append(reader)
                continue
            if not _allowed(connection, f"SELECT 1 FROM {view} LIMIT 0"):
                problems.append(f"reader {reader} cannot read the view {view}: something was taken from its schema")
            problems += [
                f"reader {reader} could read {table} when it was tried"
                for table in private
                if _allowed(connection, f"SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT 1) AS one")
            ]
        finally:
            inside.rollback()  # resets the role, too
    notes = []
    if untried:
        notes.append(
            f"not tried as the readers themselves, since the job's login may not SET ROLE to {', '.join(untried)}; "
            "what the catalog says about their privileges was checked"
        )
    return problems, notes


def _allowed(connection: sa.Connection, statement: str) -> bool:
    inside = connection.begin_nested()
    try:
        connection.execute(sa.text(statement.replace(":", r"\:")))
    except sa.exc.DBAPIError as error:
        inside.rollback()
        if getattr(error.orig, "sqlstate", None) == DENIED:
            return False
        raise
    inside.commit()
    return True
