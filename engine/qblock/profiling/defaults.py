"""Default hierarchies: those that a first spec has of columns that somebody named as quasi-identifiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qblock.profiling import people
from qblock.profiling.columns import as_quasi_identifier, propose
from qblock.profiling.first_spec import k_of
from qblock.profiling.profiles import Table, profile
from qblock.profiling.ranges import with_ranges


def default_entries(table: Table, names: Sequence[str], person: str | None) -> dict[str, dict[str, Any] | None]:
    """The entry of each column in a spec, besides its role; None where its values suggest no hierarchy.

    A hierarchy in a file, which a person would write, is `suppress`. person: the column that says who a row is about,
    if one does. No other columns of the table are looked at, so that a choice tells nothing of sensitive values.
    """
    columns = [table.columns[name] for name in dict.fromkeys([*names, *([person] if person else [])])]
    rows, profiles = profile(table, columns)
    who = people.find(propose(profiles, rows), rows, table)
    counted = [candidate.column for candidate in who.candidates] + ([person] if person else [])
    named = {p.column.name: as_quasi_identifier(p, rows) for p in profiles if p.column.name in names}
    proposals = [proposal for proposal in named.values() if proposal is not None]
    settled = {p.name: p.entry for p in with_ranges(proposals, table, rows, counted, k_of(rows))}
    entries: dict[str, dict[str, Any] | None] = {}
    for name in names:
        entry = settled.get(name)
        entries[name] = None if entry is None else {key: value for key, value in entry.items() if key != "role"}
    return entries
