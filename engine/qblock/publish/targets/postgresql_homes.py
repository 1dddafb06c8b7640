"""The tables of a spec with their schemas, so that whoever checks them needs no search path."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import sqlalchemy as sa

from qblock.spec import Spec
from qblock.spec.model import Attribute
from qblock.spec.privacy import PriorTable, Requirement
from qblock.spec.sources import DimensionTable
from qblock.warehouse.postgresql_session import home, statement
from qblock.warehouse.protocol import TableName, quote

Frozen = TypeVar("Frozen")


def with_schemas(connection: sa.Connection, spec: Spec) -> Spec:
    """A spec in which every table that exists is named with its schema, as the job's login finds it.

    connection: of warehouse.postgresql_session, whose own search path leads to none of them.
    """

    def named(table: str) -> str:
        resolved = home(connection, TableName.parse(table))
        return ".".join(quote(part) for part in (resolved.schema, resolved.name) if part is not None)

    def of_source(source: Any) -> Any:
        return _replaced(source, table=named(source.table)) if isinstance(source, DimensionTable) else source

    def attribute(stated: Attribute) -> Attribute:
        return _replaced(stated, hierarchy=of_source(stated.hierarchy), taxonomy=of_source(stated.taxonomy))

    def requirement(stated: Requirement) -> Requirement:
        changed = stated
        if stated.guards is not None:
            changed = _replaced(changed, guards=_replaced(stated.guards, table=named(stated.guards.table)))
        if isinstance(stated.prior, PriorTable):
            changed = _replaced(changed, prior=_replaced(stated.prior, table=named(stated.prior.table)))
        population: str | None = getattr(stated.model, "population", None)
        if population is not None:
            model: Any = _replaced(stated.model, population=named(population))
            changed = _replaced(changed, model=model, models=(model,) * len(stated.models))
        return changed

    return _replaced(
        spec,
        source=_replaced(spec.source, table=named(spec.source.table)),
        attributes={name: attribute(stated) for name, stated in spec.attributes.items()},
        privacy=tuple(requirement(stated) for stated in spec.privacy),
    )


def _replaced(original: Frozen, **changes: Any) -> Frozen:
    """A copy that is not checked again: dataclasses.replace would read its values as if they were written in the
    file."""
    copied = copy.copy(original)
    for name, value in changes.items():
        object.__setattr__(copied, name, value)
    return copied


def home_of(connection: sa.Connection, table: TableName) -> TableName | None:
    """A table with its schema, as the job's login finds it; None where there is none."""
    table = home(connection, table)
    if table.schema is None:
        return None
    name = ".".join(quote(part) for part in (table.schema, table.name) if part)
    row = connection.execute(statement("relation_home"), {"name": name}).one_or_none()
    return None if row is None else TableName(row.schema, row.name)


def readers_of(connection: sa.Connection, spec: Spec) -> tuple[str, ...]:
    """The readers of the spec, and everybody else who was granted something on the view (PUBLIC is everybody)."""
    view = {"schema": spec.publish.schema, "names": [spec.view]}
    facts = connection.execute(statement("relation_facts"), view).one_or_none()
    given: tuple[str, ...] = ()
    if facts is not None:
        rows = connection.execute(statement("relation_grantees"), {"oid": facts.oid})
        given = tuple(sorted("PUBLIC" if row.grantee is None else row.grantee for row in rows))
    return tuple(dict.fromkeys([*spec.publish.readers, *given]))
