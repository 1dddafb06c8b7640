"""A role for each column of a table, proposed from names and value counts, and what of it a person decides."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import sqlalchemy as sa

from qblock.engines.copied import no_column
from qblock.engines.tables import Column
from qblock.engines.values import is_value
from qblock.errors import InputError
from qblock.hierarchy import TOP, Hierarchy, suppress
from qblock.profiling.profiles import (
    COLUMNS,
    CONTINUOUS,
    FEW,
    FEW_NUMBERS,
    LEAST_CODES,
    LENGTHS,
    OWN,
    Profile,
    Table,
    portions,
)
from qblock.profiling.words import CODES, Code, numbers_rows, private_topic, suggests
from qblock.spec.repeats import MOST_ROWS

FILE = {"file": ""}
"""A hierarchy file whose name is not chosen yet."""
FINEST = Fraction(1, 1000)
"""The least step of the ranges of decimals."""
WIDEST = 10**18
"""The greatest distance between the least and the greatest number of a column that is generalized to ranges."""
SMALL = 30
"""Whole numbers from 0 on that stay below it are how many of something somebody has."""
EDGES = (0, 1, 5, 10)
"""Where ranges of them begin."""
LONGEST_NAME = 40
"""The longest name of a release and of a hierarchy file."""
LONGEST_KEY = 119
"""A longer key needs a question mark before it in YAML."""
FLAG = 2
"""Values of a flag at most."""
SMALL_CODES = 10
"""Numbers of which there are no more are codes."""
NUMBERS = ("integer", "decimal", "float", "boolean")
NOBODY = "none"
"""The answer that no column is one."""
UNKNOWN = "assumed known to outsiders; please check"
CONSTANT = "has one value"
WEIGHT = "a survey weight"
MOST = Fraction(9, 10)
"""The share of rows by whose form a column of codes is known; the others are suppressed."""
KEYS = ("digits", "ranges", "edges", "dates", "file")
"""Of the hierarchies that are proposed, each of which has one."""
STARRED = f"holds NULL and `{TOP}`, which would read the same when published; rename one of them"
"""Why a column can be no quasi-identifier."""
OPEN = "???"
"""What stands where a decision is needed: no command reads a spec with it."""
MOST_COLUMNS = 8
MOST_NODES = 100_000
"""Of the lattice of one level per column: a hundredth of what a search accepts, so that it takes minutes at most."""
MOST_READ, MOST_SETS = 200_000_000, 4_000
"""Values, and sets of columns, that are grouped for the choice; where that is too little, each column is looked at by
itself."""


@dataclass(frozen=True)
class Proposal:
    """A column with the role proposed, its entry in the spec (None: left out) and the reason."""

    profile: Profile
    role: str
    entry: Any
    reason: str

    @property
    def name(self) -> str:
        return self.profile.column.name

    @property
    def form(self) -> dict[str, Any]:
        """The hierarchy of a quasi-identifier where it has parameters, else nothing."""
        form = self.entry["hierarchy"] if self.role == "quasi_identifier" else None
        return form if isinstance(form, dict) else {}

    @property
    def of_ranges(self) -> bool:
        """Whether it is a quasi-identifier whose hierarchy is one of ranges of numbers."""
        return not {"ranges", "edges"}.isdisjoint(self.form)

    def with_form(self, form: Any) -> Proposal:
        """The same with another hierarchy."""
        return replace(self, entry={**self.entry, "hierarchy": form})


AskSensitive = Callable[[Sequence[Proposal]], Sequence[str]]
"""Given all columns, the names of those that are sensitive."""


def propose(profiles: Sequence[Profile], rows: int) -> list[Proposal]:
    """A role for every column. What nobody can tell is left to a person (decide), and not published meanwhile.

    Where nothing else would be what others know, columns that are no flags are."""
    proposals = [_propose(p, rows) for p in profiles]
    if any(p.role == "quasi_identifier" for p in proposals):
        return proposals
    return [
        replace(p, role="quasi_identifier", reason=UNKNOWN) if p.role == "decide" and p.profile.distinct > FLAG else p
        for p in proposals
    ]


def as_quasi_identifier(p: Profile, rows: int) -> Proposal | None:
    """A column that somebody named as a quasi-identifier, whatever its name suggests; None where its values suggest no
    hierarchy."""
    hierarchy = _hierarchy(p, rows - p.nulls)
    if hierarchy is None:
        return None
    entry, rest = _known(p, "suppress" if hierarchy == FILE else hierarchy, rows)
    return Proposal(p, "quasi_identifier", entry, f"named as one{rest}")


def _propose(p: Profile, rows: int) -> Proposal:
    name, kind, few = p.column.name, p.kind, _is_code(p, rows)
    topic, quasi = private_topic(name), suggests(name, "quasi")
    private = topic is not None and not (topic.visible and quasi)
    code = _code(p, rows, quasi=quasi)
    if p.distinct + (p.nulls > 0) <= 1 and rows > 1:
        return Proposal(p, "left out", None, CONSTANT if p.distinct else "has no value")
    if code is not None and code.role == "identifying":
        return Proposal(p, "identifying", "identifying", code.says)
    mostly = _mostly(p, rows, often_digits=quasi or private)
    if mostly is not None and (private or mostly.role == "identifying" or 2 * p.long > rows - p.nulls):
        return mostly
    if private and topic is not None:
        return Proposal(p, "sensitive", sensitive_entry(p), f"the name suggests {topic.says}")
    if code is not None and code.role == "sensitive":
        return Proposal(p, "sensitive", sensitive_entry(p), code.says)
    if suggests(name, "weight") and kind in NUMBERS and not few:
        return Proposal(p, "left out", None, WEIGHT)
    numbered = numbers_rows(name) and p.distinct > FEW_NUMBERS and rows <= MOST_ROWS * p.distinct
    if numbered or not quasi:
        if suggests(name, "identifying") and not few:
            return Proposal(p, "identifying", "identifying", "the name suggests an identifier; never published")
        if p.distinct >= OWN * rows and rows > 20 and kind not in CONTINUOUS:
            return Proposal(p, "identifying", "identifying", "nearly every row has its own value; never published")
    if mostly is not None:
        return mostly
    hierarchy = _hierarchy(p, rows - p.nulls)
    if hierarchy is None:
        return Proposal(p, "left out", None, f"{no_hierarchy(p)}; not published")
    entry, rest = _known(p, hierarchy, rows)
    if code is not None or quasi:
        known = code.says if code is not None else "others may know it"
        also = f"; {topic.says}: sensitive if you name it so" if topic is not None else ""
        return Proposal(p, "quasi_identifier", entry, f"{known}{rest}{also}")
    if p.distinct <= FLAG:
        return Proposal(p, "decide", entry, "two values: a flag")
    if few or kind in NUMBERS:
        return Proposal(p, "decide", entry, "few codes" if few else "a number with an unclear name")
    return Proposal(p, "quasi_identifier", entry, f"{UNKNOWN}{rest}")


def no_hierarchy(p: Profile) -> str:
    """Why a column can be no quasi-identifier whose values suggest no hierarchy."""
    if p.kind != "text":
        return "some values are infinite, not a number, or not in the years 1 to 9999"
    return f"{p.distinct_in_words} distinct values and no evident hierarchy"


def _known(p: Profile, hierarchy: Any, rows: int) -> tuple[dict[str, Any], str]:
    """The entry of a quasi-identifier, and what is said of values that are suppressed in it."""
    entry: dict[str, Any] = {"role": "quasi_identifier", "hierarchy": hierarchy}
    if p.nulls:
        entry["nulls"] = "top"
    suppressed = rows - p.nulls - p.codes[LENGTHS.index(hierarchy["digits"])] if "digits" in hierarchy else 0
    if not suppressed:
        return entry, ""
    entry["uncovered"] = "top"
    subject = "1 row is" if suppressed == 1 else f"{suppressed} rows are"
    become = "becomes" if suppressed == 1 else "become"
    return entry, f"; {subject} not {hierarchy['digits']} digits and {become} *"


def _is_code(p: Profile, rows: int) -> bool:
    """Whether values are too few to tell people apart, whatever the column is called: a person of 0 and 1 is no
    identifier."""
    most = SMALL_CODES if p.kind in NUMBERS else FLAG
    return p.distinct <= most and rows > MOST_ROWS * p.distinct


def _code(p: Profile, rows: int, *, quasi: bool) -> Code | None:
    """The kind of code that nine values in ten are. quasi: whether the name suggests what others know, such as a
    postcode (B12) or a state (IN), which is no diagnosis then."""
    there = rows - p.nulls
    for code, count in zip(CODES, p.forms, strict=True):
        # What hardly repeats numbers rows, or people.
        other = quasi or 2 * p.distinct > there if code.role == "sensitive" else False
        few = code.role != "identifying" and p.distinct < LEAST_CODES
        if there and count >= MOST * there and not few and not other:
            return code
    return None


def _mostly(p: Profile, rows: int, *, often_digits: bool) -> Proposal | None:
    """For a column of texts that are not to be published, whatever it is called; None of any other. often_digits:
    whether the name suggests what is often written in digits."""
    there = rows - p.nulls

    def proposal(role: str, reason: str) -> Proposal:
        return Proposal(p, role, role if role == "identifying" else None, reason)

    if 2 * p.mails > there:
        return proposal("identifying", "the values look like e-mail addresses; never published")
    if p.column.kind != "text" or 2 * p.distinct <= there:
        return None
    if 2 * p.numbers > there and not often_digits:
        return proposal("identifying", "the values look like telephone or account numbers; never published")
    if 2 * p.long > there or 2 * p.at > there:
        return proposal("left out", "free text, in which anything may be written; not published")
    if 2 * p.digits > there and not often_digits and _hierarchy(p, there) in (None, FILE):
        own = "most rows have a text of their own, with digits inside; not published"
        return proposal("left out", f"{own} (if these are numbers or dates, give the column such a type)")
    return None


def sensitive_entry(p: Profile) -> Any:
    """What a spec says of a sensitive column."""
    return {"role": "sensitive", "nulls": "value"} if p.nulls else "sensitive"


def _hierarchy(p: Profile, there: int) -> Any:
    """The short form of a hierarchy; None where none fits the values. there: rows with a value."""
    kind = p.kind
    ends = (p.least or "", p.greatest or "")
    if kind in ("integer", "decimal", "float") and p.distinct:
        if not all(is_value(end, "decimal") for end in ends):
            return None
        spread = Fraction(ends[1]) - Fraction(ends[0])
        if p.distinct <= 2 or spread >= WIDEST:
            return "suppress"
        if kind == "integer" and ends[0] == "0" and spread < SMALL:
            return {"edges": [edge for edge in EDGES if edge <= spread]}
        return {"ranges": [as_written(width) for width in widths_of(spread, whole=kind == "integer")]}
    if kind in ("date", "timestamp", "timestamptz") and p.distinct:
        return (
            {"dates": ["month", "quarter", "year"]}
            if all(re.match(r"\d{4}-\d{2}-\d{2}( |$)(?!.*BC)", e) for e in ends)
            else None
        )
    if p.distinct <= 2:
        return "suppress"
    most = max(p.codes, default=0)
    if most and most >= MOST * there:
        return {"digits": LENGTHS[p.codes.index(most)]}
    return FILE if p.distinct <= FEW else None


def of_one_form(proposals: Sequence[Proposal]) -> list[Proposal]:
    """The proposals, where ranges of whole numbers are written as those of other numbers are."""
    return [
        p.with_form({**p.form, "labels": "half_open"}) if p.of_ranges and p.profile.column.kind == "integer" else p
        for p in proposals
    ]


def widths_of(spread: Fraction, *, whole: bool) -> list[Fraction]:
    """Widths of ranges, of which at most fifty of the least are between two numbers that are so far apart, and, unless
    numbers are whole, no fewer than five."""
    step = Fraction(1)
    while spread / (5 * step) > 50:
        step *= 10
    while not whole and step > FINEST and 0 < spread / (5 * step) < 5:
        step /= 10
    return [5 * step, 10 * step, 20 * step]


def as_written(number: Fraction) -> int | float:
    """As a spec has a number of few decimals."""
    return int(number) if number.denominator == 1 else float(number)


def file_name(name: str) -> str:
    """Letters, digits and _ of a name, for files, releases and views."""
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").lower()[:LONGEST_NAME] or "column"


def leaves_of(table: Table, column: Column) -> Hierarchy:
    """The values of a column as a hierarchy of one level and the top."""
    value = table.value(column)
    text = table.session.text_of(value, column.kind)
    rows = table.session.fetch(sa.select(text.label("value")).where(value.is_not(None)).distinct())
    return suppress(column.name, rows["value"].to_pylist())


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
    if not any(p.role == "quasi_identifier" and p.name not in (given or ()) for p in proposals):
        left.append("decide")
    open_ = tuple(p.name for p in proposals if p.role in left and p.name not in (given or ()))
    if given is None:
        return list(proposals), open_
    chosen = [] if list(given) == [NOBODY] else list(given)
    known = {p.name for p in proposals}
    for name in chosen:
        if name not in known:
            sentence, near = no_column(f"--sensitive: table {table}", name, sorted(known))
            raise InputError(sentence, suggestions=near)
    if person in chosen:
        raise InputError(f"--sensitive: {person} says who a row is about and is never published; name other columns")
    return [_as_decided(p, chosen) for p in proposals], open_


def _as_decided(p: Proposal, chosen: Sequence[str]) -> Proposal:
    if p.name in chosen:
        return replace(p, role="sensitive", entry=sensitive_entry(p.profile), reason="named as sensitive")
    if p.role == "sensitive":
        return replace(p, role="left out", entry=None, reason="looks private, and was not named as sensitive")
    return p


def nodes_of(proposals: Sequence[Proposal]) -> int:
    """How many nodes the lattice of the quasi-identifiers has, as they are proposed."""
    return math.prod(levels_of(p.entry) for p in proposals if p.role == "quasi_identifier")


def levels_of(entry: Any) -> int:
    """How many levels a quasi-identifier with this entry has."""
    form = entry["hierarchy"]
    if not isinstance(form, dict):
        return 2
    ((key, value),) = [(key, value) for key, value in form.items() if key in KEYS]
    return value + 1 if key == "digits" else 2 if key == "file" else 3 if key == "edges" else len(value) + 2


def chosen(proposals: Sequence[Proposal], rows: int, table: Table) -> list[Proposal]:
    """The proposals with at most MOST_COLUMNS quasi-identifiers; the others are left to a person (decide).

    Columns whose names others know come first. Of these, and then of the others, the next is the one with which most
    rows differ from all others: one GROUP BY for each column that may be next.
    """
    quasi = [p for p in proposals if p.role == "quasi_identifier"]
    if len(quasi) <= MOST_COLUMNS and nodes_of(quasi) <= MOST_NODES:
        return list(proposals)
    known = [p for p in quasi if suggests(p.name, "quasi")]
    taken: list[Proposal] = []
    for group in (known, [p for p in quasi if p not in known]):
        rest = list(group)
        sets = len(rest) * MOST_COLUMNS
        each = rows * sets > MOST_READ or sets > MOST_SETS
        alone = singled_out(table, [[p] for p in rest]) if each and rest else []
        rest = [p for _, p in sorted(zip(alone, rest, strict=True), key=lambda pair: -pair[0])] if each else rest
        while rest and len(taken) < MOST_COLUMNS:
            if not each:
                counts = singled_out(table, [[*taken, p] for p in rest])
                rest.insert(0, rest.pop(counts.index(max(counts))))
            following = rest.pop(0)
            if nodes_of([*taken, following]) <= MOST_NODES:
                taken.append(following)
    reason = f"{MOST_COLUMNS} columns at most are proposed; others single out more"
    left = [p for p in quasi if p not in taken]
    return [replace(p, role="decide", reason=reason) if p in left else p for p in proposals]


def singled_out(table: Table, sets: Sequence[Sequence[Proposal]]) -> list[int]:
    """For each set of columns, how many rows differ in them from all others."""
    queries = []
    for i, columns in enumerate(sets):
        values = [table.value(p.profile.column) for p in columns]
        counts = sa.select(sa.func.count().label("n")).select_from(table.relation).group_by(*values)
        group = counts.subquery(f"qblock_g{i}")
        alone: sa.ColumnElement[Any] = sa.func.count(sa.case((group.c.n == 1, 1)))
        queries.append(sa.select(sa.literal_column(str(i)).label("i"), alone.label("alone")).select_from(group))
    answer: list[dict[str, Any]] = []
    for part in portions(queries, COLUMNS):
        answer += table.session.fetch(sa.union_all(*part) if len(part) > 1 else part[0]).to_pylist()
    return [row["alone"] for row in sorted(answer, key=lambda row: row["i"])]
