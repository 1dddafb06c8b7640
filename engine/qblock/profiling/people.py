"""Who the rows of a table are about: the columns whose values may stand for people, and the best guess among them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import sqlalchemy as sa

from qblock.engines.copied import no_column
from qblock.errors import InputError, counted
from qblock.profiling.columns import NOBODY, Proposal
from qblock.profiling.profiles import Table
from qblock.profiling.words import WORDS
from qblock.spec.repeats import is_named_like_people, may_stand_for_people, repeats_people

UNCLEAR, ONLY_VALUES, PLAIN, BY_WORD = range(4)
"""How much a name suggests people: it suggests something else; nothing, its values alone do; an identifier; people."""
KINDS = ("integer", "text", "decimal")


@dataclass(frozen=True)
class Candidate:
    """A column whose values may stand for people.

    distinct: values; rows: of the table; nulls: rows without a value; most: rows of one value, at most; likely: how
    much the name suggests people (BY_WORD, PLAIN, ONLY_VALUES, UNCLEAR).
    """

    column: str
    distinct: int
    rows: int
    nulls: int
    most: int
    likely: int

    @property
    def repeats(self) -> bool:
        """Whether somebody has several rows."""
        return self.distinct < self.rows - self.nulls

    @property
    def count(self) -> Literal["rows", "entities"]:
        """`count` of a spec with this entity."""
        return "entities" if self.repeats else "rows"

    @property
    def mean(self) -> float:
        """Rows for each value."""
        return (self.rows - self.nulls) / max(1, self.distinct)

    def to_json(self) -> dict[str, Any]:
        return {
            "column": self.column,
            "count": self.count,
            "distinct": self.distinct,
            "nulls": self.nulls,
            "rows_mean": self.mean,
            "rows_most": self.most,
            "meaning": meaning(self),
        }


@dataclass(frozen=True)
class Who:
    """Who the rows are about. candidates: the likeliest first; best: of them, where one can be taken; clear: whether
    nothing speaks for another one; alone: whether there is no other one."""

    candidates: tuple[Candidate, ...] = ()
    best: Candidate | None = None
    clear: bool = False
    alone: bool = False

    @property
    def usable(self) -> tuple[Candidate, ...]:
        """Those that a spec may name: every row must say who it is about."""
        return tuple(candidate for candidate in self.candidates if not candidate.nulls)

    def of(self, column: str) -> Candidate:
        """The candidate of a name."""
        return next(candidate for candidate in self.candidates if candidate.column == column)


def find(proposals: Sequence[Proposal], rows: int, table: Table) -> Who:
    """The columns of a table that may say who a row is about."""
    candidates = []
    for proposal in proposals:
        likely = _likely(proposal, rows)
        if likely is not None:
            candidates.append(_counted(proposal, rows, likely, table))
    # Of those alike the one that repeats: where something has an identifier for each row, rows are what it happened to.
    candidates.sort(key=lambda candidate: (bool(candidate.nulls), -candidate.likely, not candidate.repeats))
    best = candidates[0] if candidates and not candidates[0].nulls else None
    if best is None:
        return Who(tuple(candidates))
    rivals = [candidate for candidate in candidates[1:] if not _same_people(best, candidate, proposals, table)]
    clear = best.likely >= PLAIN and all(candidate.likely < best.likely for candidate in rivals)
    return Who(tuple(candidates), best, clear, clear and not rivals)


def named(column: str, proposals: Sequence[Proposal], rows: int, table: Table) -> Candidate:
    """The candidate that somebody named. Raises InputError for no column, and one with NULLs."""
    known = {proposal.name: proposal for proposal in proposals}
    if column not in known:
        sentence, near = no_column(f"--entity: table {table.name}", column, known)
        raise InputError(sentence, suggestions=near)
    candidate = _counted(known[column], rows, BY_WORD, table)
    if candidate.nulls:
        raise InputError(
            f"--entity: column {column} is NULL in {counted(candidate.nulls, 'row')}, and every row must say who it is "
            "about; name another column, or `none`"
        )
    return candidate


def about(proposals: Sequence[Proposal], column: str) -> list[Proposal]:
    """The proposals where this column says who a row is about: it is never published."""
    reason = "says who a row is about; never published"
    return [
        replace(p, role="identifying", entry="identifying", reason=reason) if p.name == column else p for p in proposals
    ]


def _likely(proposal: Proposal, rows: int) -> int | None:
    """How much a column's name suggests people; None where it, or its values, rule that out."""
    p, column = proposal.profile, proposal.profile.column
    role: Any = proposal.role
    words = _words(column.name)
    like = is_named_like_people(column.name, column.type) or (
        _any("people", words) and bool(words & set(WORDS["rows"]["numbers"]))
    )
    if p.kind not in KINDS or not p.distinct or role == "sensitive":
        return None
    if not like and not may_stand_for_people(column.name, role, p.kind, column.type):
        return None
    valued = rows - p.nulls
    repeated = repeats_people(column.name, "identifying", column.type, valued, p.distinct, named=like)
    # Text that nobody repeats may be a note.
    unique = p.distinct == valued and (like or p.kind == "integer")
    if not repeated and not unique:
        return None
    if _any("others", words):
        return UNCLEAR
    return BY_WORD if _any("people", words) else PLAIN if like else ONLY_VALUES


def _words(name: str) -> set[str]:
    return set(re.split(r"[\W_\d]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()))


def _any(about: Literal["people", "others"], words: set[str]) -> bool:
    """Whether a word is one about people, or about others, or its plural."""
    known = set(WORDS["rows"][about])
    return bool(known & (words | {word.removesuffix("s") for word in words}))


def _counted(proposal: Proposal, rows: int, likely: int, table: Table) -> Candidate:
    p = proposal.profile
    distinct, most = p.distinct, 1 if p.distinct else 0
    if p.approximate or p.distinct < rows - p.nulls:
        value = table.value(p.column)
        rows_of_values = sa.select(sa.func.count().label("n")).where(value.is_not(None)).group_by(value)
        values = rows_of_values.subquery("qblock_values")
        most_rows = sa.func.coalesce(sa.func.max(values.c.n), 0)
        row = table.row([sa.func.count().label("distinct"), most_rows.label("most")], of=values)
        distinct, most = int(row["distinct"]), int(row["most"])
    return Candidate(p.column.name, distinct, rows, p.nulls, most, likely)


def _same_people(left: Candidate, right: Candidate, proposals: Sequence[Proposal], table: Table) -> bool:
    """Whether both columns tell the same rows apart."""
    if (left.distinct, left.nulls) != (right.distinct, right.nulls):
        return False
    if not left.repeats:
        return True
    known = {proposal.name: proposal for proposal in proposals}
    values = [table.value(known[name].profile.column) for name in (left.column, right.column)]
    pairs = sa.select(*(value.label(f"v{i}") for i, value in enumerate(values))).distinct().subquery("qblock_pairs")
    return int(table.session.scalar(sa.select(sa.func.count()).select_from(pairs))) == left.distinct


How = Literal["found", "asked", "given", "open", "nobody"]
"""How it was settled: by the one clear candidate, by an answer, by an option; not at all; there is no candidate."""
Ask = Callable[[Who], str]
"""Asks a person for one of the candidates, by its name, or NOBODY."""


@dataclass(frozen=True)
class Entity:
    """Who the rows of a spec are about. chosen: None where nobody is named."""

    who: Who
    chosen: Candidate | None
    how: How

    @classmethod
    def settled(cls, who: Who, given: Candidate | None, option: str | None, ask: Ask | None) -> Entity:
        """option: what an option says (`given` is its candidate), None where there is none; ask: None where nobody can
        be asked."""
        if option is not None:
            return cls(who, given, "given")
        if not who.candidates:
            return cls(who, None, "nobody")
        if who.best is not None and not who.alone and ask is not None:
            answer = ask(who)
            return cls(who, None if answer == NOBODY else who.of(answer), "asked")
        return cls(who, who.best, "found") if who.clear else cls(who, None, "open")

    @property
    def sentences(self) -> list[str]:
        """What was found, in words."""
        if self.chosen is not None:
            return [meaning(self.chosen), *self._rows_apart(self.chosen)]
        if self.how == "open":
            names = ", ".join(candidate.column for candidate in self.who.candidates)
            word = "candidate" if len(self.who.candidates) == 1 else "candidates"
            return [f"Person column not set ({word}: {names}): counting rows, not people"]
        if self.how == "nobody":
            return ["no column looks like one; rows are counted, not people"]
        return ["none; rows are counted, not people"]

    def _rows_apart(self, chosen: Candidate) -> list[str]:
        rows = [candidate.column for candidate in self.who.candidates if not candidate.repeats and not candidate.nulls]
        if not rows or not chosen.repeats:
            return []
        verb, identify = ("is", "identifies") if len(rows) == 1 else ("are", "identify")
        named = ", ".join(rows)
        return [f"{named} {verb} different in every row, and {identify} rows; {chosen.column} identifies people"]

    def to_json(self) -> dict[str, Any]:
        chosen = self.chosen
        return {
            "column": chosen and chosen.column,
            "count": chosen and chosen.count,
            "how": self.how,
            "why": "; ".join(self.sentences),
            "candidates": [candidate.to_json() for candidate in self.who.candidates],
        }


def meaning(candidate: Candidate) -> str:
    """What it means that a column says who a row is about."""
    if candidate.nulls:
        return f"{candidate.column} is NULL in some rows, and every row must say who it is about"
    if candidate.repeats:
        return f"{candidate.column} repeats, so a person has several rows; people are counted (`count: entities`)"
    return f"{candidate.column} is different in every row, so each person has one row"
