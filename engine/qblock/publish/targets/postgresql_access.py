"""The proof, before a version is published on PostgreSQL, that no reader reaches what is private by another way."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from qblock.engines.postgresql.lock_waits import READ, Attempt
from qblock.engines.postgresql.session import CATALOG, home, login_path
from qblock.engines.quoting import quote
from qblock.engines.tables import TableName
from qblock.ledger.store import SCHEMA
from qblock.publish.targets.postgresql_view import KINDS, own_views, text
from qblock.spec import Spec
from qblock.spec.sources import DimensionTable

DENIED = "42501"
PUBLIC = 0
EVENTS = ("INSERT", "UPDATE", "DELETE", "TRUNCATE")
Write = tuple[int, str]


def private_tables(connection: sa.Connection, spec: Spec) -> list[TableName]:
    """What a reader of the release must not read: its source, hierarchies in tables, and what people guard; with their
    schemas, as the job's login finds them: connection's own search path leads to none of them. Of a source that is only
    read they are looked for here as well: the other database may be this one by another name, or a replica of it."""
    tables = [spec.source.table]
    for attribute in spec.attributes.values():
        tables += [s.table for s in (attribute.hierarchy, attribute.taxonomy) if isinstance(s, DimensionTable)]
    tables += [requirement.guards.table for requirement in spec.privacy if requirement.guards is not None]
    return [home(connection, TableName.parse(name)) for name in dict.fromkeys(tables)]


def ways(connection: sa.Connection, spec: Spec, readers: Sequence[str]) -> list[str]:
    """How a reader, PUBLIC, or a role that a reader can become, reaches something private; one sentence each.

    A privilege counts even where the schema is closed: one GRANT USAGE later it would be open. Functions that run with
    their owner's rights count where the owner may read something private, since what a function reads is not in the
    catalog. Reads the catalog only.
    """
    oids = _oids(connection, private_tables(connection, spec))
    values = {"oids": oids, "private": SCHEMA, "own": own_views(connection)}
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
    kinds = {r.oid: _kind(r) for r in relations}
    for relation in relations:
        if relation.owner in subjects and relation.of is None:
            other = "give it another owner"
            if relation.over or relation.schema == SCHEMA:
                other = f"ALTER TABLE {named[relation.oid]} OWNER TO {quote(login)}"
            sentences.append(f"{_who(*subjects[relation.owner])} owns {named[relation.oid]}; {other}")
    grants = connection.execute(text("reader_grants"), {"oids": list(named)})
    sentences += _grants(grants, subjects, named, kinds)
    callers = [oid for oid in subjects if oid != PUBLIC]
    if callers:
        for oid, sentence in _definer_ways(connection, callers, list(named)):
            sentences.append(f"{_who(*subjects[oid])} {sentence}")
        sentences += _places(connection, spec, subjects, list(named), callers)
    return list(dict.fromkeys(sentences))


def _kind(relation: Any) -> str:
    if relation.of is not None:
        return f"the TOAST table of {relation.of},"
    return KINDS.get(relation.kind, "relation") + (" over it" if relation.over else "")


def lock_private(connection: sa.Connection, spec: Spec, attempt: Attempt) -> None:
    """Take the locks that `tried` asks for, as far as the login may read those tables: nobody is kept waiting yet."""
    oids = _oids(connection, [*private_tables(connection, spec), TableName(SCHEMA, "event")])
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
            f"{_who(reader, role)} may use server {row.server}, which leads back to this database as the user in its "
            f"mapping for {row.mapped}; DROP USER MAPPING FOR {row.mapped} SERVER {row.server}, or REVOKE USAGE ON "
            f"FOREIGN SERVER {row.server} FROM PUBLIC, {quote(role)}"
        )
    return sentences


def _oids(connection: sa.Connection, tables: Iterable[TableName]) -> list[int]:
    names = [table.quoted for table in tables]
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
    private = [_full_name(connection, oid) for oid in _oids(connection, private_tables(connection, spec))]
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
            f"not tried as the readers themselves: the job's login may not SET ROLE to {', '.join(untried)}. The "
            "catalog's word on their privileges was checked"
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


@dataclass(frozen=True)
class Way:
    """A role makes something run. runs_as: oid of the role whose rights it has, None where it reaches all by itself.

    does: what the role can do; by: what then runs; remedies: statements, each of which closes the way.
    """

    role: int
    runs_as: int | None
    does: str
    by: str
    remedies: tuple[str, ...]


def _definer_ways(connection: sa.Connection, roles: Collection[int], private: Collection[int]) -> list[tuple[int, str]]:
    """Ways from these roles to what is private: oid of the role (0: everybody), and the sentence without its subject.

    They are code that a reader can make run with somebody else's rights: functions, triggers, rules, and chains of
    them. What a function reads is not in the catalog; so one counts as a way in where the role that it runs as may read
    something private itself, or can in turn make such code run. roles and private are oids. Reads the catalog only.
    """
    rows = connection.execute(text("reader_trusted"), {"oids": list(private)}).all()
    names = {row.oid: row.name for row in rows}
    writes = _Writes(connection, names, frozenset(private), {row.oid for row in rows if row.reads})
    ways: list[Way] = []
    explored: set[int] = set()
    ahead = set(roles)
    while ahead:
        functions = connection.execute(text("reader_functions"), {"roles": list(ahead)}).all()
        more = [_function(row, names) for row in functions if row.role != PUBLIC or not explored]
        more += writes.ways(ahead, told=not explored)
        explored |= ahead
        ways += more
        ahead = {way.runs_as for way in more if way.runs_as is not None} - explored
    reaching = {row.oid for row in rows if row.reads}
    while further := {way.role for way in ways if way.runs_as is None or way.runs_as in reaching} - reaching:
        reaching |= further
    return [
        (way.role, _sentence(way, names))
        for way in ways
        if way.role in {PUBLIC, *roles} and way.runs_as != way.role and (way.runs_as is None or way.runs_as in reaching)
    ]


def _sentence(way: Way, names: Mapping[int, str]) -> str:
    rights = f" runs with the rights of {names[way.runs_as]}, who may read private tables" if way.runs_as else ""
    return f"{way.does}{way.by}{rights}; {', or '.join(way.remedies)}"


def _function(row: Any, names: Mapping[int, str]) -> Way:
    invoker = f"ALTER ROUTINE {row.function} SECURITY INVOKER"
    if row.by == "event trigger":
        drop = f"DROP EVENT TRIGGER {quote(row.name)}"
        return Way(PUBLIC, row.runs_as, f"can fire event trigger {row.name}, whose {row.function}", "", (invoker, drop))
    if row.by == "support":
        return Way(
            PUBLIC, row.runs_as, f"uses {row.function} through a type or its operators, where it", "", (invoker,)
        )
    called = row.name if row.by == "component" else row.function
    revoke = f"REVOKE EXECUTE ON ROUTINE {called} FROM PUBLIC, {quote(names[row.role])}"
    if row.by == "component":
        does = f"may call aggregate {row.name}, whose {row.function}"
        return Way(row.role, row.runs_as, does, "", (revoke, invoker))
    does = f"may call {row.function}, which"
    if row.runs_as is None:
        return Way(row.role, None, does, f" is in language {row.language} and held by no privilege", (revoke,))
    return Way(row.role, row.runs_as, does, "", (revoke,))


class _Writes:
    """What runs when a role writes to a relation: triggers and rules, there and wherever it leads."""

    def __init__(
        self, connection: sa.Connection, names: Mapping[int, str], private: frozenset[int], trusted: Collection[int]
    ) -> None:
        self._connection = connection
        self._names = names
        self._private = private
        self._trusted = trusted
        self._relations: dict[int, str] = {}
        self._triggers: dict[Write, list[Any]] = {}
        self._further: dict[Write, list[Any]] = {}
        for statement, into in (("reader_triggers", self._triggers), ("reader_writes", self._further)):
            for row in connection.execute(text(statement)):
                into.setdefault((row.oid, row.event), []).append(row)
                self._relations[row.oid] = row.relation

    def ways(self, roles: Iterable[int], told: bool) -> list[Way]:
        """Of each role. told: whether that a foreign key tells which values there are counts as well."""
        oids = list(self._relations)
        grouped: dict[tuple[Any, ...], set[str]] = {}
        for row in self._connection.execute(text("reader_writable"), {"oids": oids, "roles": list(roles)}):
            if told and row.oid in self._private:
                continue  # reported for the privilege itself
            for runs_as, by, remedies in self._runs((row.oid, row.event), told):
                grouped.setdefault((row.role, row.oid, row.owns, runs_as, by, remedies), set()).add(row.event)
        return [self._way(*key, events=events) for key, events in grouped.items()]

    def _way(
        self,
        role: int,
        oid: int,
        owns: bool,
        runs_as: int | None,
        by: str,
        remedies: tuple[str, ...],
        *,
        events: Collection[str],
    ) -> Way:
        privileges = ", ".join(event for event in EVENTS if event in events)
        if not owns:
            remedies = (
                *remedies,
                f"REVOKE {privileges} ON {self._relations[oid]} FROM PUBLIC, {quote(self._names[role])}",
            )
        return Way(role, runs_as, f"may write ({privileges}) to {self._relations[oid]}, where ", by, remedies)

    def _runs(self, start: Write, told: bool) -> Iterable[tuple[int | None, str, tuple[str, ...]]]:
        """What writing runs: as whom, what, and the statements that stop it."""
        # As whom the triggers run that are not SECURITY DEFINER: None for whoever writes.
        ahead: list[tuple[Write, int | None]] = [(start, None)]
        done = set(ahead)
        while ahead:
            write, acting = ahead.pop()
            for row in self._triggers.get(write, ()):
                runs_as = row.definer or acting
                if runs_as is not None:
                    stop: tuple[str, ...] = (f"DROP TRIGGER {row.trigger} ON {row.relation}",)
                    if row.definer and acting is None:
                        stop = (f"ALTER ROUTINE {row.function} SECURITY INVOKER", *stop)
                    yield runs_as, f"{row.function} of trigger {row.trigger} on {row.relation}", stop
            for row in self._further.get(write, ()):
                if row.by == "reference":
                    if told and row.to_oid in self._private:
                        drop = (f"ALTER TABLE {row.relation} DROP CONSTRAINT {row.name}",)
                        yield None, f"foreign key {row.name} tells which values a private table has", drop
                    continue
                if row.by == "rule" and row.to_oid in self._private and row.owner in self._trusted:
                    yield row.owner, f"rule {row.name} on {row.relation}", (f"DROP RULE {row.name} ON {row.relation}",)
                owner = self._owner_of(row.to_oid) if row.by == "cascade" else acting
                further = ((row.to_oid, row.to_event), owner)
                if further not in done:
                    done.add(further)
                    ahead.append(further)

    def _owner_of(self, oid: int) -> int | None:
        """Of the relation that a foreign key's action writes to: it acts with the rights of that relation's owner."""
        rows = [row for (of, _), triggers in self._triggers.items() if of == oid for row in triggers]
        rest = [row.owner for (of, _), further in self._further.items() if of == oid for row in further]
        return next((row.table_owner for row in rows), next(iter(rest), None))


def path_warnings(connection: sa.Connection, readers: Sequence[str]) -> list[str]:
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
            f"{who} may {what}, which is in the search path of the job's login. This job does not use that path, but "
            f"other programs with this login may call what is put there; REVOKE CREATE ON {on} FROM {role}"
        )
    return said
