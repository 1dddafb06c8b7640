"""Tables that keep what was: snapshots of dbt, and others whose rows say from when until when they were true (SCD2).

The key of such a table repeats, and at most one row of each key is the current one: what merely has a range of dates
(a stay, a contract) is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import sqlalchemy as sa

from qblock.column_names import FAR, Part, folded, is_named, words
from qblock.engines.condition import Where
from qblock.engines.values import NUMERIC
from qblock.profiling.columns import Proposal
from qblock.profiling.people import Candidate, Who
from qblock.profiling.profiles import Profile, Table
from qblock.spec.condition import columns_of, condition_of, written

CHAINED = 0.9
"""The share of rows that begin where the one before ends, in a history whose names may mean a stay."""
TECHNICAL = "says which row of a history is current; not published"


@dataclass(frozen=True)
class History:
    """A table that keeps what was. key: the column that its rows repeat, if they do so yet (repeats); where: the
    condition of the current rows; kept, rows: how many these are, and all; mark: the columns that tell them, in words;
    dbt: whether it is a snapshot of dbt; columns: that are there for the history alone."""

    key: str
    repeats: bool
    where: str
    kept: int
    rows: int
    mark: str
    dbt: bool
    columns: tuple[str, ...]

    @property
    def sentences(self) -> list[str]:
        """What was found, in words."""
        what = "a snapshot of dbt" if self.dbt else "a history"
        repeats = f"{self.key} repeats, and " if self.repeats else ""
        return [
            f"The table is {what}: {repeats}{self.mark} marks the current row of each {self.key}",
            f"The spec takes these alone: {self.kept:,} of {self.rows:,} rows (`source.where`)",
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "where": self.where,
            "rows": self.rows,
            "kept": self.kept,
            "why": ". ".join(self.sentences),
        }


def find(proposals: Sequence[Proposal], who: Who, rows: int, table: Table) -> History | None:
    """What a table says of being a history; None where it is none. who: whose columns may be its key."""
    parts = {part: _of(proposals, part) for part in get_args(Part)}
    # In a new snapshot of dbt nothing has changed yet.
    new = any(p.column.name == "dbt_scd_id" for p in parts["snapshot"])
    for mark in _marks(parts):
        current = mark.rows(table)
        if not current or (current == rows and not new):
            continue
        for key in who.candidates:
            if (key.repeats or new) and mark.is_unique(key, table) and mark.is_sure(key, parts, table):
                return _history(key, mark, parts, rows, table)
    return None


def current(history: History, table: Table) -> Table:
    """The table, of which the current rows alone are looked at."""
    return replace(table, where=_where(history.where, table))


def without(proposals: Sequence[Proposal], history: History) -> list[Proposal]:
    """The proposals, where what is there for the history alone is left out."""
    return [
        replace(p, role="left out", entry=None, reason=TECHNICAL) if p.name in history.columns else p for p in proposals
    ]


def about(history: History, who: Who) -> Who:
    """Whom the current rows are about: the key of the history, if it is still a candidate."""
    keys = tuple(candidate for candidate in who.candidates if candidate.column == history.key and not candidate.nulls)
    return Who(keys, keys[0], clear=True, alone=True) if keys else who


@dataclass(frozen=True)
class _Mark:
    """What may tell current rows: a column whose end is open, or a flag. weak: whether its name may mean a stay."""

    profile: Profile
    text: str
    weak: bool = False
    flag: bool = False

    def clause(self, table: Table) -> sa.ColumnElement[bool]:
        """Whether a row is current."""
        return _where(self.text, table).clause(table.session, table.relation, table.columns)

    def rows(self, table: Table) -> int:
        """How many current rows there are."""
        return int(table.row([_rows(self.clause(table)).label("n")])["n"])

    def is_unique(self, key: Candidate, table: Table) -> bool:
        """Whether no value of a key has two current rows."""
        value = table.value(table.columns[key.column])
        current = sa.select(value.label("k")).select_from(table.relation).where(self.clause(table)).subquery("current")
        figures = [sa.func.count(current.c.k).label("n"), sa.func.count(sa.distinct(current.c.k)).label("keys")]
        row = table.row(figures, of=current)
        return row["n"] == row["keys"] > 0

    def is_sure(self, key: Candidate, parts: dict[Part, list[Profile]], table: Table) -> bool:
        """Whether a name that may mean a stay means a history: a flag says the same, or rows follow on each other."""
        if not self.weak:
            return True
        for flag in _flags(parts["current"], current=True):
            differ = self.clause(table) != flag.clause(table)
            if not table.row([_rows(differ).label("n")])["n"]:
                return True
        starts = [p for p in (*parts["valid_from"], *parts["start"]) if p.column.kind == self.profile.column.kind]
        return any(self._chained(key, start, table) for start in starts)

    def _chained(self, key: Candidate, start: Profile, table: Table) -> bool:
        who = table.value(table.columns[key.column])
        begins = table.value(start.column)
        ends = table.value(self.profile.column)
        first = sa.select(who.label("k"), ends.label("at")).select_from(table.relation).subquery("first")
        then = sa.select(who.label("k"), begins.label("at")).select_from(table.relation).distinct().subquery("then")
        both = first.join(then, sa.and_(first.c.k == then.c.k, first.c.at == then.c.at))
        follow = int(table.row([sa.func.count().label("n")], of=both)["n"])
        return follow >= CHAINED * (key.rows - key.nulls - key.distinct)


def _history(key: Candidate, mark: _Mark, parts: dict[Part, list[Profile]], rows: int, table: Table) -> History:
    texts = [mark.text, *(flag.text for flag in _flags(parts["deleted"], current=False))]
    where = " AND ".join(texts)
    whole = replace(mark, text=where)
    # Beside an end of validity a start is one of something else.
    weak = mark.weak or (mark.flag and not parts["valid_from"])
    theirs = [profiles for part, profiles in parts.items() if weak or part not in ("start", "end")]
    names = {p.column.name for profiles in theirs for p in profiles}
    told = ("a flag" if mark.flag else "an open end") + f" in {' and '.join(columns_of(condition_of(where)))}"
    dbt = any(folded(name).startswith("_dbt_") for name in names)
    return History(key.column, key.repeats, where, whole.rows(table), rows, told, dbt, tuple(sorted(names)))


def _where(text: str, table: Table) -> Where:
    return Where(condition_of(text), "init", str(table.name), ())


def _rows(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.func.count(sa.case((condition, 1)))


def _marks(parts: dict[Part, list[Profile]]) -> Iterator[_Mark]:
    """The likeliest first."""
    for part in ("valid_until", "end"):
        for profile in parts[part]:
            text = _open_end(profile)
            if text is not None and (parts["valid_from"] or parts["start"]):
                yield _Mark(profile, text, weak=part == "end")
    yield from _flags(parts["current"], current=True)


def _open_end(profile: Profile) -> str | None:
    """The condition that an end is open, NULL or one day that is far away; None where none of them is."""
    kind, name, last = profile.column.kind, written(profile.column.name), profile.greatest or ""
    if kind not in ("date", "timestamp", "timestamptz"):
        return None
    year = re.match(r"\d+", last)
    far = last == "infinity" or (year is not None and int(year[0]) >= FAR and "BC" not in last)
    texts = [f"{name} IS NULL"] if profile.nulls else []
    if far:
        texts.append(f"{name} = '{last}'")
    return None if not texts else texts[0] if len(texts) == 1 else f"({' OR '.join(texts)})"


def _flags(profiles: Sequence[Profile], *, current: bool) -> Iterator[_Mark]:
    """Flags that say yes of a current row; or, of a deleted one, no."""
    for profile in profiles:
        text = _flag(profile, yes=current)
        if text is not None:
            maybe = f"({written(profile.column.name)} IS NULL OR {text})" if profile.nulls and not current else text
            yield _Mark(profile, maybe, flag=True)


def _flag(profile: Profile, *, yes: bool) -> str | None:
    """The condition that a flag says yes, or no; None where the column is none."""
    kind, name = profile.column.kind, written(profile.column.name)
    if kind == "boolean":
        return name if yes else f"NOT {name}"
    seen = [text for text in dict.fromkeys((profile.least, profile.greatest)) if text is not None]
    texts = [folded(text).strip("_") for text in seen]
    known = words("yes"), words("no")
    if profile.distinct > 2 or not texts or not all(text in (*known[0], *known[1]) for text in texts):
        return None
    wanted = [text for text, plain in zip(seen, texts, strict=True) if plain in known[not yes]]
    if len(wanted) != 1:
        return None
    return f"{name} = {wanted[0]}" if kind in NUMERIC else f"{name} = '{wanted[0]}'"


def _of(proposals: Sequence[Proposal], part: Part) -> list[Profile]:
    """The columns whose name says so."""
    return [p.profile for p in proposals if is_named(p.name, part)]
