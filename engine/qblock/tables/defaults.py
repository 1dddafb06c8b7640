"""Quasi-identifiers that are listed without hierarchies, with those that a first spec would have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qblock.errors import InputError
from qblock.profiling.defaults import default_entries
from qblock.profiling.profiles import Table
from qblock.tables.request import Names, TableRequest, attributes_of, named
from qblock.warehouse.protocol import TableName

SUPPRESS = {"hierarchy": "suppress"}


def with_defaults(request: TableRequest, columns: Names, entity: str | None) -> dict[str, Any]:
    """The columns as a mapping to entries, from the values of these columns alone.

    entity: the column that says who a row is about. Raises InputError for a column that the table lacks, and for one
    whose values suggest no hierarchy.
    """
    names = [name for name, _ in named(request.caller, "quasi_identifiers", columns)]
    looked_at = [(name, {**SUPPRESS, "nulls": "top"}) for name in names]
    about: list[tuple[str, Any]] = [(entity, {})] if isinstance(entity, str) and entity not in names else []
    attributes = attributes_of(request.caller, {"quasi_identifier": looked_at, "identifying": about})
    spec = request.spec(attributes, [{"k_anonymity": {"k": 1}}])
    warehouse = request.warehouse(spec)
    try:
        with warehouse.snapshot() as session:
            table = Table(session, TableName.parse(spec.source.table))
            entries = default_entries(table, names, entity if about else None)
    finally:
        warehouse.close()
    _refuse_none(request.caller, entries)
    return entries


def _refuse_none(caller: str, entries: Mapping[str, Any]) -> None:
    """Raise InputError where a column has no default."""
    missing = [name for name, entry in entries.items() if entry is None]
    if missing:
        mapping = {name: SUPPRESS if entry is None else entry for name, entry in entries.items()}
        raise InputError(
            f"{caller}: quasi_identifiers: the values of {', '.join(missing)} suggest no hierarchy; write one in a "
            f"mapping: quasi_identifiers={mapping!r}"
        )
