"""A first look at a table: a role for each column, as `qblock init` proposes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from qblock.errors import Refused
from qblock.profiling.columns import FILE, Proposal, propose
from qblock.profiling.people import Entity as ProfiledEntity
from qblock.profiling.people import find
from qblock.profiling.profiles import profile
from qblock.tables.results import Entity, Profiled, ProfiledColumn
from qblock.tables.specs import TableRequest
from qblock.warehouse.connect import files_warehouse, open_warehouse
from qblock.warehouse.copied import CopiedWarehouse
from qblock.warehouse.protocol import TableName, Warehouse


def profiled(request: TableRequest) -> Profiled:
    """The profile of a table. Raises Refused where it is empty."""
    warehouse, name = _opened(request)
    try:
        with warehouse.snapshot() as session:
            rows, profiles = profile(session, name)
            if rows == 0:
                raise Refused(f"{request.caller}: the table is empty: there is nothing to profile")
            proposals = propose(profiles, rows)
            who = find(proposals, rows, session, name)
    finally:
        warehouse.close()
    entity = Entity.of(ProfiledEntity.settled(who, None, None, None))
    return Profiled(rows, tuple(_column(proposal) for proposal in proposals), entity)


def _opened(request: TableRequest) -> tuple[Warehouse, TableName]:
    source, frame = request.source, request.frame
    if frame is not None:
        needed = dict.fromkeys(frame.names(), request.caller)
        return CopiedWarehouse(frame, needed), TableName(None, frame.name)
    if "file" in source:
        return files_warehouse(source["file"], Path(), request.caller, source.get("types"))
    return open_warehouse(source["url"], Path.cwd()), TableName.parse(source["table"])


def _column(proposal: Proposal) -> ProfiledColumn:
    column_profile, entry = proposal.profile, json.dumps(_entry(proposal))
    role: Any = proposal.role
    return ProfiledColumn(
        column_profile.column.name,
        column_profile.column.type,
        role,
        column_profile.distinct,
        column_profile.nulls,
        proposal.reason,
        entry,
        column_profile.approximate,
    )


def _entry(proposal: Proposal) -> dict[str, Any]:
    """What a spec says of the column besides its role: `suppress` where a person has to write the hierarchy."""
    if not isinstance(proposal.entry, dict):
        return {}
    entry = {key: value for key, value in proposal.entry.items() if key != "role"}
    return entry | {"hierarchy": "suppress"} if entry.get("hierarchy") == FILE else entry
