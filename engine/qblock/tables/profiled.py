"""A first look at a table, and a first spec of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from qblock.engines.copied import CopiedWarehouse
from qblock.engines.driver_errors import explained
from qblock.engines.from_spec import files_warehouse
from qblock.engines.registry import open_warehouse
from qblock.engines.session import Warehouse
from qblock.engines.tables import TableName
from qblock.errors import Refused, hide_tracebacks
from qblock.profiling.columns import FILE, Proposal, propose
from qblock.profiling.first_spec import init
from qblock.profiling.people import Entity as ProfiledEntity
from qblock.profiling.people import Who, find
from qblock.profiling.profiles import Table
from qblock.profiling.profiles import profile as profiles_of
from qblock.profiling.roles import ROLES, Roles
from qblock.profiling.unique_sets import sentence
from qblock.results.tables import Candidate, Profiled, Proposed, ProposedColumn
from qblock.tables.request import TableRequest
from qblock.version import __version__

MEANINGS = {
    "quasi_identifier": "others may know it",
    "sensitive": "nobody may learn it",
    "identifying": "never published",
    "left out": "not in this release",
}


@partial(hide_tracebacks, explain=explained)
def profile(data: Any, *, table: str | None = None, types: Mapping[str, str] | None = None) -> Profiled:
    """A first look at a table: distinct values and NULLs of each column, and the role that is proposed for it.

    data, table, types: as for `audit`. The proposals are guesses from names and counts, to be checked by a person;
    `quasi_identifiers` and `sensitive` of the result are what `anonymize` takes. Raises Refused for an empty table.
    """

    return _profiled(TableRequest("qblock.profile()", data, table=table, types=types))


def _profiled(request: TableRequest) -> Profiled:
    """The profile of a table. Raises Refused where it is empty."""
    warehouse, name = _opened(request)
    try:
        with warehouse.snapshot() as session:
            table = Table(session, name)
            rows, profiles = profiles_of(table)
            if rows == 0:
                raise Refused(f"{request.caller}: the table is empty: there is nothing to profile")
            proposals = propose(profiles, rows)
            who = find(proposals, rows, table)
    finally:
        warehouse.close()
    entity = ProfiledEntity.settled(who, None, None, None).to_json()
    return Profiled.model_validate({"rows": rows, "columns": list(map(_profiled_column, proposals)), "entity": entity})


def _opened(request: TableRequest) -> tuple[Warehouse, TableName]:
    source, frame = request.source, request.frame
    if frame is not None:
        needed = dict.fromkeys(frame.names(), request.caller)
        return CopiedWarehouse(frame, needed), TableName(None, frame.name)
    if "file" in source:
        return files_warehouse(source["file"], Path(), request.caller, source.get("types"))
    return open_warehouse(source["url"], Path.cwd()), TableName.parse(source["table"])


def _profiled_column(proposal: Proposal) -> dict[str, Any]:
    of = proposal.profile
    return {
        "name": of.column.name,
        "type": of.column.type,
        "role": proposal.role,
        "distinct": of.distinct,
        "nulls": of.nulls,
        "reason": proposal.reason,
        "entry": _entry(proposal),
        "approximate": of.approximate,
    }


def _entry(proposal: Proposal) -> dict[str, Any]:
    """What a spec says of the column besides its role: `suppress` where a person has to write the hierarchy."""
    if not isinstance(proposal.entry, dict):
        return {}
    entry = {key: value for key, value in proposal.entry.items() if key != "role"}
    return entry | {"hierarchy": "suppress"} if entry.get("hierarchy") == FILE else entry


def propose_spec(
    url: str,
    table: str | None = None,
    directory: str | Path = ".",
    *,
    force: bool = False,
    entity: str | None = None,
    ask: Callable[[Sequence[Candidate]], str] | None = None,
    sensitive: Sequence[str] | None = None,
    ask_sensitive: Callable[[Sequence[ProposedColumn]], Sequence[str]] | None = None,
    page: bool = False,
) -> Proposed:
    """Profile a table, and write a spec and hierarchy files to edit.

    url: of a database with the table, or the path of Parquet or CSV files without one. force: replace files that exist.
    entity: the column that says who a row is about, or `none`. Without it the best guess is written, where there is a
    clear one. ask: given the candidates where there are several, says which one (its name, or `none`). sensitive: the
    names of the sensitive columns (`none`: there is none); ask_sensitive: given all columns, says which ones.
    Without either their roles are left open in the spec. page: also write roles.html, to choose the roles in a browser.
    It is internal, and readable by you alone.

    Raises InputError for a table that cannot be read, or of which no column can be a quasi-identifier.
    """

    def candidates(who: Who) -> list[Candidate]:
        return [Candidate.model_validate(candidate.to_json()) for candidate in who.usable]

    proposal = init(
        url,
        table,
        Path(directory),
        force=force,
        entity=entity,
        ask=None if ask is None else lambda who: ask(candidates(who)),
        sensitive=sensitive,
        ask_sensitive=None if ask_sensitive is None else lambda columns: ask_sensitive(list(map(_proposed, columns))),
        page_of=_page if page else None,
    )
    return Proposed.model_validate(
        {
            "rows": proposal.rows,
            "files": proposal.files,
            "page": proposal.page,
            "columns": list(map(_proposed, proposal.proposals)),
            "entity": proposal.entity.to_json(),
            "regime": proposal.regime,
            "open": proposal.open,
            "nodes": proposal.nodes,
            "apart": [{"columns": names.columns, "share": names.share} for names in proposal.unique_sets],
            "types": {name: str(type_) for name, type_ in proposal.recognized.types.items()},
            "notes": proposal.recognized.notes,
            "history": None if proposal.history is None else proposal.history.to_json(),
            "alone": sentence(proposal.unique_sets, proposal.sampled, proposal.rows),
        }
    )


def _page(roles: Roles) -> str:
    """The page on which somebody chooses the role of each column: one file, with the spec as it is for these roles."""
    # With the report and the search, which no other first look needs.
    from qblock.report.render import page, scripts
    from qblock.search.nodes import MOST_NODES

    data = {**roles.to_json(), "most": MOST_NODES}
    program = scripts("roles.js", "copy.js")
    return page("roles.html.j2", program, data=data, roles=ROLES, meanings=MEANINGS, program=__version__)


def _proposed(proposal: Proposal) -> ProposedColumn:
    of = proposal.profile
    return ProposedColumn.model_validate(
        {
            "name": of.column.name,
            "role": proposal.role,
            "distinct": of.distinct,
            "approximate": of.approximate,
            "reason": proposal.reason,
            "nulls": of.nulls,
            "values": of.distinct_in_words,
        }
    )
