"""The text of a first spec: its pieces, and a line for each column with the reason of its role."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from qblock.engines.engine import database_file
from qblock.engines.registry import ENGINES, parse_url
from qblock.engines.tables import TableName
from qblock.printable import printable
from qblock.profiling.columns import LONGEST_KEY, OPEN, Proposal, file_name
from qblock.profiling.people import Entity, meaning
from qblock.spec.sections import SINCE_NAME, WEIGHTS_NAME
from qblock.spec.written import flow, key_text, value_text

URL = "${WAREHOUSE_URL}"
OTHER_NAMES = {WEIGHTS_NAME: "share_present", SINCE_NAME: "shown_since"}
"""What is published beside the table's columns, by names that one of these may have, and what it is called then."""


def k_of(people: int) -> int:
    """The k that is asked of so many people."""
    return 5 if people >= 100 else 2


def source_of_table(
    url: str, table: TableName, engine: str, why: Sequence[str] = (), where: str | None = None
) -> list[str]:
    """The lines of a spec that say where a table is. where: the condition of its rows that are meant, if not all are;
    why: in sentences."""
    is_file = ENGINES[engine].is_file
    shown = f"duckdb:///{database_file(parse_url(url), Path.cwd())}".replace("$", "$$") if is_file else URL
    hint = [] if is_file else ["# The URL stays in the environment, so that no password is written down."]
    source = {"url": shown, "table": _table_text(table)}
    if where is None:
        return [*hint, f"source: {flow(source)}"]
    return [*hint, "source:", *(f"  {name}: {flow(value)}" for name, value in source.items()), *_where(why, where)]


def _where(why: Sequence[str], where: str) -> list[str]:
    """The lines of a condition, with what it is for."""
    return [*(f"  # {_plain(sentence)}." for sentence in why), f"  where: {flow(where.replace('$', '$$'))}"]


def source_of_files(
    path: str, directory: Path, types: Mapping[str, str], why: Sequence[str] = (), where: str | None = None
) -> list[str]:
    """The lines of a spec in `directory` that name files. path: as somebody in the working directory names them; types:
    of the columns of CSV files that are no texts; why, where: as of `source_of_table`."""
    shown = path if os.path.isabs(path) else os.path.relpath(path, directory)
    file = flow({"file": shown.replace("$", "$$")})
    restricted = [] if where is None else _where(why, where)
    if not types:
        return ["source:", f"  {file[1:-1]}", *restricted] if restricted else [f"source: {file}"]
    lines = ["# Every value of these columns has the type; another value is refused. The others are text."]
    lines += ["source:", f"  {file[1:-1]}", *restricted, "  types:"]
    return lines + [f"    {_key(name)}: {type_}" for name, type_ in types.items()]


@dataclass(frozen=True)
class ColumnText:
    """What a spec says of a column: its line, and the requirement of a sensitive one. open: whether its role is left
    open; half_open: whether ranges of whole numbers are labelled as those of other numbers."""

    line: str
    requirement: str = ""
    open: bool = False
    half_open: bool = False


@dataclass(frozen=True)
class SpecText:
    """A first spec without its columns, in pieces. undecided: what is said where a role is open; half_open: where
    ranges are labelled so."""

    head: str
    undecided: str
    half_open: str
    attributes: str
    privacy: str
    rest: str

    def of(self, columns: Sequence[ColumnText]) -> str:
        """The whole text with these columns; the page of roles puts it together in the same order."""
        pieces = [self.head]
        pieces += [self.undecided] if any(column.open for column in columns) else []
        pieces += [self.half_open] if any(column.half_open for column in columns) else []
        pieces += [self.attributes, *(f"{column.line}\n" for column in columns)]
        pieces += [self.privacy, *(column.requirement for column in columns), self.rest]
        return "".join(pieces)


def spec_text(
    source: Sequence[str],
    title: str,
    proposals: Sequence[Proposal],
    rows: int,
    engine: str,
    entity: Entity,
    *,
    only_read: bool = False,
) -> SpecText:
    """The pieces of a first spec (release.yaml.j2). source: its lines; title: of the table; only_read: whether nothing
    can be published beside it."""
    people = rows if entity.chosen is None else entity.chosen.distinct
    template = _template()
    context = template.new_context(
        {
            "OPEN": OPEN,
            "flow": flow,
            "name": file_name(title),
            "source": list(source),
            "entity": _entity_lines(entity),
            "k": k_of(people),
            "steady": entity.chosen is not None,
            "engine": ENGINES[engine],
            "only_read": only_read,
            "names": {} if entity.chosen is None else _names(proposals),
        }
    )
    return SpecText(**{field.name: "".join(template.blocks[field.name](context)) for field in fields(SpecText)})


def _names(proposals: Sequence[Proposal]) -> dict[str, Any]:
    """What is published beside the table's columns by other names, where one of these has the name of it."""
    taken = {p.name.casefold() for p in proposals}
    renamed = {}
    for own, other in OTHER_NAMES.items():
        if own in taken:
            others = (f"{other}{suffix}" for suffix in ("", *(f"_{i}" for i in range(2, len(taken) + 2))))
            renamed[own] = next(name for name in others if name not in taken)
    return {"names": renamed} if renamed else {}


@cache
def _template() -> Template:
    folder = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=folder, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    return environment.get_template("release.yaml.j2")


def column_text(p: Proposal, *, open_: bool = False) -> ColumnText:
    """What a spec says of a column in the role that is proposed, with the reason. open_: whether the role is open."""
    name, reason = _key(p.name), _plain(p.reason)
    requirement = _requirement(p, open_=open_)
    if open_:
        entry = {**p.entry, "role": OPEN} if isinstance(p.entry, dict) else OPEN
        line = f"  {name}: {flow(entry)}  # {'sensitive? ' * (p.role != 'decide')}{reason}"
    elif p.role == "decide":
        line = f"  # {_plain(name)}: {flow(p.entry)}  # decide: {reason}"
    elif p.entry is None:
        line = f"  # {_plain(name)}: left out  # {reason}"
    else:
        line = f"  {name}: {flow(p.entry)}  # {reason}"
    return ColumnText(line, requirement, open_, p.of_ranges and "labels" in p.form)


def _requirement(p: Proposal, *, open_: bool) -> str:
    """What is asked of a sensitive column; nothing of one that has no two values."""
    if p.role != "sensitive" or p.profile.distinct < 2:
        return ""
    parameters = {"l": min(3, p.profile.distinct), "sensitive": p.name.replace("$", "$$")}
    return f"  - distinct_l_diversity: {flow(parameters)}{'  # if it is sensitive' * open_}\n"


def _entity_lines(entity: Entity) -> list[str]:
    """Who a row is about, and why; what was left open as comments."""
    first, *more = (_plain(sentence) for sentence in entity.sentences)
    head = "" if entity.how == "open" else "Person column: "
    lines = [f"# {head}{first}.", *(f"# {sentence}." for sentence in more)]
    if entity.chosen is not None:
        lines.append(f"entity: {value_text(entity.chosen.column)}")
        lines += ["count: entities"] if entity.chosen.repeats else []
    else:
        lines += [f"# entity: {value_text(c.column)}  # {_plain(meaning(c))}" for c in entity.who.candidates]
    return lines


def _plain(text: str) -> str:
    """A text on one line of a comment, as YAML may have it."""
    return printable(" ".join(text.split()))


def _key(name: str) -> str:
    """A column name as a key of the spec."""
    text = key_text(name)
    return f"? {text}\n  " if len(text) > LONGEST_KEY else text


def _table_text(table: TableName) -> str:
    parts = [part for part in (table.catalog, table.schema, table.name) if part is not None]
    plain = [part if re.fullmatch(r"\w+", part) else '"' + part.replace('"', '""') + '"' for part in parts]
    return ".".join(plain).replace("$", "$$")
