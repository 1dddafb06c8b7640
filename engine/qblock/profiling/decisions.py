"""What of a first spec a person decides: which columns are sensitive. It is asked, or left open; never guessed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from qblock.errors import InputError
from qblock.profiling.columns import Proposal, sensitive_entry
from qblock.profiling.people import NOBODY
from qblock.warehouse.copied import no_column

KEYS = ("digits", "ranges", "edges", "dates", "file")
"""Of the hierarchies that are proposed, each of which has one."""
OPEN = "???"
"""What stands where a decision is needed: no command reads a spec with it."""
AskSensitive = Callable[[Sequence[Proposal]], Sequence[str]]
"""Given all columns, the names of those that are sensitive."""


def decided(
    proposals: Sequence[Proposal],
    given: Sequence[str] | None,
    ask: AskSensitive | None,
    table: object,
    person: str | None,
) -> tuple[list[Proposal], tuple[str, ...]]:
    """The proposals as somebody decided them, and the names of the columns that are left open.

    given: the names of the sensitive columns (`none`: there is none), None where an option says nothing; ask: None
    where nobody can be asked; person: the column that says who a row is about. Candidates that are not named are left
    out of the spec. Raises InputError for no column. Where no column is a quasi-identifier, all that a person decides
    is left open.
    """
    if given is None and ask is not None:
        given = ask(proposals)
    left = [] if given is not None else ["sensitive"]
    if not any(p.role == "quasi_identifier" and p.profile.column.name not in (given or ()) for p in proposals):
        left.append("decide")
    open_ = tuple(
        p.profile.column.name for p in proposals if p.role in left and p.profile.column.name not in (given or ())
    )
    if given is None:
        return list(proposals), open_
    chosen = [] if list(given) == [NOBODY] else list(given)
    known = {p.profile.column.name for p in proposals}
    for name in chosen:
        if name not in known:
            sentence, near = no_column(f"--sensitive: table {table}", name, sorted(known))
            raise InputError(sentence, suggestions=near)
    if person in chosen:
        raise InputError(f"--sensitive: {person} says who a row is about and is never published; name other columns")
    return [_as_decided(p, chosen) for p in proposals], open_


def _as_decided(p: Proposal, chosen: Sequence[str]) -> Proposal:
    if p.profile.column.name in chosen:
        return replace(p, role="sensitive", entry=sensitive_entry(p.profile), reason="named as sensitive")
    if p.role == "sensitive":
        return replace(p, role="left out", entry=None, reason="looks private, and was not named as sensitive")
    return p


def left_open(entry: Any) -> Any:
    """The entry of a column whose role is a person's to decide."""
    return {**entry, "role": OPEN} if isinstance(entry, dict) else OPEN


def nodes(proposals: Sequence[Proposal]) -> int:
    """How many nodes the lattice of the quasi-identifiers has, as they are proposed."""
    return math.prod(_levels(p.entry) for p in proposals if p.role == "quasi_identifier")


def _levels(entry: Any) -> int:
    form = entry["hierarchy"]
    if not isinstance(form, dict):
        return 2
    ((key, value),) = [(key, value) for key, value in form.items() if key in KEYS]
    return value + 1 if key == "digits" else 2 if key == "file" else 3 if key == "edges" else len(value) + 2
