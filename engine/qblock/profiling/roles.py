"""The roles that each column of a first spec may take: what the page shows on which somebody chooses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from qblock.hierarchy import TOP
from qblock.profiling.columns import (
    MOST_NODES,
    MOST_READ,
    STARRED,
    Proposal,
    as_quasi_identifier,
    levels_of,
    no_hierarchy,
    sensitive_entry,
    singled_out,
)
from qblock.profiling.profiles import Profile, Table
from qblock.profiling.ranges import with_ranges
from qblock.profiling.spec_text import ColumnText, SpecText, column_text, k_of
from qblock.profiling.unique_sets import UniqueSet, percent

ROLES = ("quasi_identifier", "sensitive", "identifying", "left out")
OPEN_ROLE = "open"
"""In place of a role that a person has to decide."""
READERS = {
    OPEN_ROLE: "",
    "sensitive": "Readers see its values, but not whose they are: each group has several.",
    "identifying": "Readers never see it.",
    "left out": "Readers do not see it.",
    "decide": "Readers do not see it.",
}
"""What readers see of a column in a role."""
OF_PERSON = "says who a row is about, so it is never published"


@dataclass(frozen=True)
class Alternatives:
    """What is looked at for the page alone. quasi: each column as a quasi-identifier, or why it can be none; alone: how
    many rows have a value that no other row has; empty where the table is too large to count them."""

    quasi: Mapping[str, Proposal | str]
    alone: Mapping[str, int]


def look_for_alternatives(
    proposals: Sequence[Proposal], rows: int, people: Sequence[str], table: Table
) -> Alternatives:
    """What columns may be that are not proposed so; five statements at most. people: columns that may say who a row is
    about."""
    quasi: dict[str, Proposal | str] = {p.name: replace(p, role="quasi_identifier") for p in proposals if _has_form(p)}
    rest = [p.profile for p in proposals if p.name not in quasi]
    starred = _starred(rest, table)
    candidates = []
    for profile in rest:
        candidate = as_quasi_identifier(profile, rows)
        if profile.column.name in starred or candidate is None:
            quasi[profile.column.name] = STARRED if candidate is not None else no_hierarchy(profile)
        else:
            candidates.append(candidate)
    quasi |= {p.name: p for p in with_ranges(candidates, table, rows, people, k_of(rows))}
    alone: dict[str, int] = {}
    if rows * len(proposals) <= MOST_READ:
        counts = singled_out(table, [[p] for p in proposals])
        alone = {p.name: count for p, count in zip(proposals, counts, strict=True)}
    return Alternatives(quasi, alone)


def _has_form(p: Proposal) -> bool:
    return isinstance(p.entry, dict) and "hierarchy" in p.entry


def _starred(profiles: Sequence[Profile], table: Table) -> set[str]:
    """The columns that hold NULL and a value that reads like what NULL is published as; one statement."""
    texts = [p.column for p in profiles if p.nulls and p.column.kind == "text"]
    if not texts:
        return set()
    counts = [sa.func.count(sa.case((table.value(c) == TOP, 1))).label(f"n{i}") for i, c in enumerate(texts)]
    row = table.row(counts)
    return {column.name for i, column in enumerate(texts) if row[f"n{i}"]}


@dataclass(frozen=True)
class Roles:
    """What can be chosen. left: columns whose role is open; person: the column that says who a row is about; who: this
    in words; steady: whether the spec asks for a node of the lattice, and not for a map; files: hierarchy files that
    are written; sets: of columns, with the share of the people whom they tell apart, among `sampled` rows."""

    title: str
    rows: int
    person: str | None
    who: str
    steady: bool
    proposals: Sequence[Proposal]
    left: Sequence[str]
    alternatives: Alternatives
    files: frozenset[str]
    text: SpecText
    sets: Sequence[UniqueSet]
    sampled: int

    def to_json(self) -> dict[str, Any]:
        """What the page is made of; no value of the table is in it."""
        places = {p.name: i for i, p in enumerate(self.proposals)}
        return {
            "table": self.title,
            "rows": self.rows,
            "sampled": self.sampled,
            "who": self.who,
            "columns": [self._column(p) for p in self.proposals],
            "sets": [[[places[name] for name in group.columns], percent(group.share)] for group in self.sets],
            "lattice": self.steady,
            "many": MOST_NODES,
            "text": vars(self.text),
        }

    def _column(self, p: Proposal) -> dict[str, Any]:
        open_, alone = p.name in self.left, self.alternatives.alone.get(p.name)
        roles = {role: self._as(p, role) for role in ROLES}
        entries = {role: _entry(column_text(own), own) for role, own in roles.items() if isinstance(own, Proposal)}
        if open_:
            entries[OPEN_ROLE] = _entry(column_text(p, open_=True), p)
        return {
            "name": p.name,
            "type": p.profile.column.type,
            "distinct": p.profile.distinct_in_words,
            "reason": f"{'sensitive? ' * (open_ and p.role == 'sensitive')}{p.reason}",
            "alone": None if alone is None else percent(alone / self.rows),
            "undecided": open_ or p.role == "decide",
            "start": OPEN_ROLE if open_ else "left out" if p.role == "decide" else p.role,
            "entries": entries,
            "barred": {role: why for role, why in roles.items() if isinstance(why, str)},
        }

    def _as(self, p: Proposal, role: str) -> Proposal | str:
        """The column in a role, or why it cannot have it."""
        if p.role == role or (p.role == "decide" and role == "left out"):
            return p
        if p.name == self.person:
            return OF_PERSON
        if role == "quasi_identifier":
            quasi = self.alternatives.quasi[p.name]
            if isinstance(quasi, str) or quasi.form.get("file", "") in ("", *self.files):
                return quasi
            return quasi.with_form("suppress")
        entry = {"sensitive": sensitive_entry(p.profile), "identifying": role, "left out": None}[role]
        return Proposal(p.profile, role, entry, f"named as {role}")


def _entry(text: ColumnText, p: Proposal) -> dict[str, Any]:
    """What the page's program needs of a column in a role. levels: None where it is no quasi-identifier; readers: what
    these see of it."""
    if text.open or p.role != "quasi_identifier":
        return {**vars(text), "levels": None, "readers": READERS[OPEN_ROLE if text.open else p.role]}
    return {**vars(text), "levels": levels_of(p.entry), "readers": _levels_in_words(p)}


def _levels_in_words(p: Proposal) -> str:
    """What readers may see of a quasi-identifier. Of its values this tells no more than its line of the spec."""
    form = p.form
    finest = [form["finest"]] if "finest" in form else []
    levels = "its value"
    if "ranges" in form:
        levels = f"ranges of {_listed([*finest, *form['ranges']])}"
    elif "edges" in form:
        levels = f"ranges from {_listed(form['edges'])} on"
    elif "dates" in form:
        levels = f"its {_listed([*finest, *form['dates']])}"
    elif "digits" in form:
        levels = "its first digits"
    own = "" if finest or levels == "its value" else "its value, "
    more = f" Add levels to {form['file']} for more." if "file" in form else ""
    return f"Readers see {own}{levels} or *, as a search decides.{more}"


def _listed(steps: Sequence[Any]) -> str:
    return ", ".join(map(str, steps))
