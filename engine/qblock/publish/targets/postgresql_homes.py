"""The tables of a spec with their schemas, so that whoever checks them needs no search path."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import sqlalchemy as sa

from qblock.spec import Spec
from qblock.spec.model import Attribute, Requirement
from qblock.spec.prior import PriorTable
from qblock.spec.sources import DimensionTable
from qblock.warehouse.postgresql_session import home, statement
from qblock.warehouse.protocol import TableName, quote

One = TypeVar("One")


def with_schemas(connection: sa.Connection, spec: Spec) -> Spec:
    """A spec in which every table that exists is named with its schema, as the job's login finds it.

    connection: of warehouse.postgresql_session, whose own search path leads to none of them.
    """

    def named(table: str) -> str:
        found = home(connection, TableName.parse(table))
        return ".".join(quote(part) for part in (found.schema, found.name) if part is not None)

    def of_source(source: Any) -> Any:
        return _but(source, table=named(source.table)) if isinstance(source, DimensionTable) else source

    def attribute(one: Attribute) -> Attribute:
        return _but(one, hierarchy=of_source(one.hierarchy), taxonomy=of_source(one.taxonomy))

    def requirement(one: Requirement) -> Requirement:
        found = one
        if one.guards is not None:
            found = _but(found, guards=_but(one.guards, table=named(one.guards.table)))
        if isinstance(one.prior, PriorTable):
            found = _but(found, prior=_but(one.prior, table=named(one.prior.table)))
        population: str | None = getattr(one.model, "population", None)
        if population is not None:
            model: Any = _but(one.model, population=named(population))
            found = _but(found, model=model, models=(model,) * len(one.models))
        return found

    return _but(
        spec,
        source=_but(spec.source, table=named(spec.source.table)),
        attributes={name: attribute(one) for name, one in spec.attributes.items()},
        privacy=tuple(requirement(one) for one in spec.privacy),
    )


def _but(one: One, **changes: Any) -> One:
    """A copy that is not checked again: dataclasses.replace would read its values as if they were written in the
    file."""
    made = copy.copy(one)
    for name, value in changes.items():
        object.__setattr__(made, name, value)
    return made


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
