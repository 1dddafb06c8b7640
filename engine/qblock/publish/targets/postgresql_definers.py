"""Code that a reader can make run with somebody else's rights: functions, triggers, rules, and chains of them.

What a function reads is not in the catalog; so one counts as a way in where the role that it runs as may read something
private itself, or can in turn make such code run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from qblock.publish.targets.postgresql_view import text
from qblock.warehouse.protocol import quote

PUBLIC = 0
EVENTS = ("INSERT", "UPDATE", "DELETE", "TRUNCATE")
Write = tuple[int, str]


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


def definer_ways(connection: sa.Connection, roles: Collection[int], private: Collection[int]) -> list[tuple[int, str]]:
    """Ways from these roles to what is private: oid of the role (0: everybody), and the sentence without its subject.

    Shape: roles and private are oids. Reads the catalog only.
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
