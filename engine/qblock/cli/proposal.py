"""What `init` says of a table, and what it asks: in groups of columns, 80 characters wide."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import typer

from qblock.cli.streams import say
from qblock.errors import counted
from qblock.printable import printable

if TYPE_CHECKING:
    from qblock.api import Candidate, Proposed, ProposedColumn

WIDTH = 80
INDENT = 20
GROUPS = (
    ("quasi_identifier", "others may know"),
    ("sensitive", "nobody may learn"),
    ("decide", "yours to decide"),
    ("identifying", "never published"),
    ("left out", "left out"),
)
"""Roles, and what they are called."""
REGIMES = {
    "steady": "Repeated publication: new, departed and changed people appear in batches.",
    "once": "One publication: a later run with changed data is refused.",
}
"""What the spec is as it is written."""
MOST_NODES = 2_000
LISTED = 6
NOBODY = "rows are counted, not people; a later run with changed data is refused, or nothing protects versions together"
RANGE = re.compile(r"([0-9]+)(?: ?- ?([0-9]+))?")


def proposal_lines(proposed: Proposed) -> Iterator[str]:
    """What is printed of a first spec."""
    yield from _wrapped(_head(proposed))
    yield from _wrapped(f"{'' if proposed.entity.how == 'open' else 'Who a row is about: '}{proposed.entity.why}.")
    yield ""
    for role, title in GROUPS:
        columns = [column for column in proposed.columns if column.role == role]
        if columns:
            yield from _group(title, columns, proposed.open)
    yield ""
    yield from _wrapped(proposed.alone + ".")
    yield from _wrapped(f"{REGIMES[proposed.regime]} Other modes: end of {proposed.files[-1].name}.")
    for note in proposed.notes:
        yield from _wrapped(f"Note: {note}.")
    yield from _wrapped("Written: " + ", ".join(str(file) for file in proposed.files))
    yield from _wrapped(_search(proposed))
    yield from _wrapped(_next(proposed))


def _head(proposed: Proposed) -> str:
    size = f"{proposed.rows:,} rows, {len(proposed.columns)} columns"
    if not proposed.types:
        return f"{size}."
    kinds: dict[str, int] = {}
    for type_ in proposed.types.values():
        kinds[type_.split("(")[0]] = kinds.get(type_.split("(")[0], 0) + 1
    words = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    named = ", ".join(list(proposed.types)[:LISTED])
    more = " ..." if len(proposed.types) > LISTED else ""
    return f"{size}. Types recognized in {len(proposed.types)} ({words}): {named}{more}"


def _group(title: str, columns: Sequence[ProposedColumn], open_: Mapping[str, int]) -> Iterator[str]:
    """The columns of a role; of those that are left out with the reason."""
    words = []
    for column in columns:
        reason = f" ({column.reason.split(';')[0]})" if column.role == "left out" else ""
        words.append(f"{column.name}{reason}")
    text = ", ".join(words)
    if columns[0].role == "decide":
        text += ": left out until you give them a role"
    if columns[0].role == "sensitive" and columns[0].name in open_:
        text += " (candidates by name: decide)"
    yield from textwrap.wrap(
        printable(text),
        WIDTH,
        initial_indent=f"  {title:<{INDENT - 2}}",
        subsequent_indent=" " * INDENT,
        break_on_hyphens=False,
    )


def _search(proposed: Proposed) -> str:
    """How many combinations of levels there are, and what lowers that."""
    known = [column.name for column in proposed.columns if column.role == "quasi_identifier"]
    columns = counted(len(known), "column")
    combinations = f"{columns} can be coarsened in {proposed.nodes:,} combinations"
    if proposed.nodes <= MOST_NODES or proposed.regime == "once":
        return f"{combinations}."
    return f"{combinations}: a search takes long. Remove {known[-1]}, or add `max: 2` to the hierarchies of others."


def _next(proposed: Proposed) -> str:
    spec = proposed.files[-1]
    if not proposed.open:
        return f"Next: check the roles and hierarchies, then `qblock search {spec}`"
    where = ", ".join(f"{name} (line {line})" for name, line in proposed.open.items())
    return f"Next: decide in {spec} whether these are sensitive: {where}; then `qblock search {spec}`"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(printable(text), WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def ask_person(candidates: Sequence[Candidate]) -> str:
    """Who a row is about, by a number on the terminal; standard output is for the answer."""
    say("Who is a row about?")
    choices = [*((candidate.column, candidate.meaning) for candidate in candidates), ("none", NOBODY)]
    for number, (name, means) in enumerate(choices, 1):
        _tell(f"  {number}  {name}: {means}")
    while True:
        given = int(typer.prompt("Number", default=1, type=int, err=True))
        if 1 <= given <= len(choices):
            return choices[given - 1][0]
        say(f"a number from 1 to {len(choices)}")


def ask_sensitive(columns: Sequence[ProposedColumn]) -> list[str]:
    """Which columns are sensitive, by their numbers or names on the terminal."""
    names = [column.name for column in columns]
    marked = [column.name for column in columns if column.role == "sensitive"]
    if not marked:
        say("No column looks sensitive by name.")
    say("Which columns are sensitive: what nobody may learn about a person?")
    for line in _listed(names, set(marked)):
        say(line)
    enter = "those with *" if marked else "none"
    _tell(f"Enter = {enter}; or numbers (1, 3-5), names, `none`, or ? to see why.")
    while True:
        text = str(typer.prompt("Sensitive", default="", show_default=False, err=True)).strip()
        if text == "?":
            for number, column in enumerate(columns, 1):
                _tell(f"  {number}  {column.name}: {column.role}, distinct values: {column.values}; {column.reason}")
            continue
        picked = parse_columns(text, names) if text else (marked or ["none"])
        people = [column.name for column in columns if column.role == "identifying" and column.name in (picked or ())]
        if picked is not None and not people:
            return picked
        if people:
            _tell(f"{', '.join(people)}: leads to a person and is never published; choose among the others.")
            continue
        _tell(f"Numbers from 1 to {len(names)} or names, with commas between; `none`, or ? to see why.")


def parse_columns(text: str, names: Sequence[str]) -> list[str] | None:
    """The columns that somebody typed: numbers, ranges of them and names; None where one of them is none."""
    if text in ("none", "0"):
        return ["none"]
    picked: list[str] = []
    parts = [text] if text in names else [part.strip() for part in text.split(",") if part.strip()]
    for part in itertools.chain(*([whole] if _known(whole, names) else whole.split() for whole in parts)):
        match = RANGE.fullmatch(part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if 1 <= first <= last <= len(names):
            picked += names[first - 1 : last]
        elif part in names:
            picked.append(part)
        else:
            return None
    return list(dict.fromkeys(picked)) or None


def _known(part: str, names: Sequence[str]) -> bool:
    return part in names or RANGE.fullmatch(part) is not None


def _listed(names: Sequence[str], marked: set[str]) -> list[str]:
    """The columns by number, side by side."""
    cells = [f"{number:>4} {'*' if name in marked else ' '} {printable(name)}" for number, name in enumerate(names, 1)]
    width = max(map(len, cells)) + 1
    across = max(1, WIDTH // width)
    return [
        "".join(f"{cell:<{width}}" for cell in cells[i : i + across]).rstrip() for i in range(0, len(cells), across)
    ]


def _tell(text: str) -> None:
    for line in _wrapped(text):
        say(line)
