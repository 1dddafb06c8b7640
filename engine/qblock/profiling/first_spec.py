"""Writes a first spec of a table, with a hierarchy file for each column that needs one, to be edited by a person."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from qblock.engines.engine import database_file
from qblock.engines.from_spec import files_warehouse
from qblock.engines.registry import ENGINES, engine_of, open_warehouse, parse_url
from qblock.engines.session import Warehouse
from qblock.engines.source_files import FileTable
from qblock.engines.tables import TableName
from qblock.errors import InputError, Refused
from qblock.hierarchy import TOP, Hierarchy, write_csv
from qblock.profiling import history, people, unique_sets
from qblock.profiling.columns import (
    FILE,
    LONGEST_KEY,
    NOBODY,
    OPEN,
    AskSensitive,
    Proposal,
    as_quasi_identifier,
    chosen,
    decided,
    file_name,
    leaves_of,
    nodes_of,
    propose,
)
from qblock.profiling.derived import without_derived
from qblock.profiling.history import History
from qblock.profiling.people import Ask, Candidate, Entity, Who, meaning
from qblock.profiling.profiles import FEW, Table, profile
from qblock.profiling.ranges import with_ranges
from qblock.profiling.text_types import TextTypes, recognize
from qblock.profiling.unique_sets import UniqueSet
from qblock.spec.sections import SINCE_NAME, WEIGHTS_NAME
from qblock.spec.source_file import ending
from qblock.spec.written import key_text, value_text

URL = "${WAREHOUSE_URL}"
OTHER_NAMES = {WEIGHTS_NAME: "share_present", SINCE_NAME: "shown_since"}
"""What is published beside the table's columns, by names that one of these may have, and what it is called then."""


@dataclass(frozen=True)
class FirstSpec:
    """What was written. files: the spec last; entity: who its rows are about; open: columns whose role is left to a
    person, with their lines in the spec; unique_sets: the sets of columns that tell most people apart, among `sampled`
    of the table's rows; recognized: types of the columns of CSV files; history: what the table is, where it keeps what
    was: `rows` are its current ones then."""

    proposals: tuple[Proposal, ...]
    files: tuple[Path, ...]
    entity: Entity
    open: dict[str, int] = field(default_factory=dict)
    unique_sets: tuple[UniqueSet, ...] = ()
    sampled: int = 0
    rows: int = 0
    recognized: TextTypes = field(default_factory=TextTypes)
    history: History | None = None

    @property
    def nodes(self) -> int:
        """How many nodes the lattice has, as it is proposed."""
        return nodes_of(self.proposals)

    @property
    def regime(self) -> str:
        """What the spec is as it is written: `steady` where later versions lag, `once` for one publication."""
        return "once" if self.entity.chosen is None else "steady"


def init(
    url: str,
    table: str | None,
    directory: Path,
    *,
    force: bool = False,
    entity: str | None = None,
    ask: Ask | None = None,
    sensitive: Sequence[str] | None = None,
    ask_sensitive: AskSensitive | None = None,
) -> FirstSpec:
    """Profile a table and write release.yaml and hierarchies/*.csv into a folder.

    url: of a database with the table, or the path of Parquet or CSV files without one. entity: the column that says who
    a row is about, or `none`; ask: asked for it where there are several, None where nobody can be. sensitive,
    ask_sensitive: the sensitive columns in the same way; without either they are left open. Raises InputError
    when a file is already there, unless `force`; nothing is written then.
    """
    source = _source_of(url, table, directory)
    try:
        with source.warehouse.snapshot() as session:
            look = _look(Table(session, source.table), entity)
    finally:
        source.warehouse.close()
    # Nothing is open while a person thinks.
    whose = Entity.settled(look.who, look.given, entity, ask)
    proposals, person = look.proposals, None
    if whose.chosen is not None:
        person = whose.chosen.column
        proposals = people.about(proposals, person)
    proposals, left = decided(proposals, sensitive, ask_sensitive, source.table, person)
    quasi = [p.name for p in proposals if p.role == "quasi_identifier"]
    sets = unique_sets.minimal(unique_sets.unique_shares(look.sample, quasi, person))
    proposals = unique_sets.reasoned(proposals, sets)
    if not quasi and not any(p.role == "decide" for p in proposals):
        reasons = "; ".join(f"{p.name}: {p.role}, {p.reason}" for p in proposals)
        raise InputError(f"no column of {source.table} can be a quasi-identifier ({reasons}); write a spec by hand")
    engine, past = source.warehouse.engine, look.history
    lines_of_source = source.described(*(((), None) if past is None else (past.sentences, past.where)))
    only_read = source.only_read
    text = render(lines_of_source, source.title, proposals, look.rows, engine, whose, left, only_read=only_read)
    forms = [p.entry.get("hierarchy") for p in proposals if isinstance(p.entry, dict)]
    files = {file: leaves for file, leaves in look.hierarchies.items() if {"file": file} in forms}
    written = _write(directory, files, text, force=force)
    lines = dict(zip(left, _lines_of_open(text), strict=True))
    return FirstSpec(
        tuple(proposals), written, whose, lines, tuple(sets), look.sample.rows, look.rows, source.recognized, past
    )


@dataclass(frozen=True)
class _Source:
    """The table that is looked at. described: the lines of a spec that say where it is, given why only some of its rows
    are meant, and which; recognized: types of the columns of CSV; only_read: whether nothing can be published beside
    it."""

    warehouse: Warehouse
    table: TableName
    described: Callable[[Sequence[str], str | None], list[str]]
    title: str
    recognized: TextTypes
    only_read: bool = False


def _source_of(url: str, table: str | None, directory: Path) -> _Source:
    path = url if "://" not in url and (ending(url) is not None or table is None) else None
    if path is not None and table is not None:
        raise InputError("files are a table by themselves; leave TABLE out")
    if path is None:
        if table is None:
            raise InputError("which table of the database? name it after the URL")
        name, warehouse, address = TableName.parse(table), open_warehouse(url, Path.cwd()), parse_url(url)
        described = partial(source_of_table, url, name, warehouse.engine)
        only_read = engine_of(address).right_missing(address, "CREATE") is not None
        return _Source(warehouse, name, described, name.name, TextTypes(), only_read)
    recognized = recognize(FileTable(path, Path.cwd(), "the source")) if ending(path) == ".csv" else TextTypes()
    types = {column: str(type_) for column, type_ in recognized.types.items()}
    files, name = files_warehouse(path, Path.cwd(), "the source", types)
    return _Source(files, name, partial(source_of_files, path, directory, types), Path(path).stem, recognized)


@dataclass(frozen=True)
class _Look:
    """What a table looks like, before a person has decided anything.

    hierarchies: by the files that the proposals name; given: the column that an option says its rows are about.
    """

    rows: int
    proposals: list[Proposal]
    hierarchies: dict[str, Hierarchy]
    who: Who
    given: Candidate | None
    sample: unique_sets.Sample
    history: History | None


def _look(table: Table, entity: str | None, past: History | None = None) -> _Look:
    """past: the history that the table is, of whose current rows it is about; None where that is not known yet."""
    rows, profiles = profile(table)
    if rows == 0:
        raise Refused(f"the table {table.name} is empty: there is nothing to profile")
    proposals = propose(profiles, rows)
    who, given = people.find(proposals, rows, table), None
    if entity not in (None, NOBODY):
        given = people.named(entity, proposals, rows, table)
        proposals = people.about(proposals, given.column)
    if past is None:
        past = history.find(proposals, who if given is None else Who((given,)), rows, table)
        if past is not None:
            return _look(history.current(past, table), entity, past)
    else:
        who, proposals = history.about(past, who), history.without(proposals, past)
    whose = given or who.best
    proposals = without_derived(proposals, rows, rows if whose is None else whose.distinct, table)
    proposals, hierarchies = _settle(chosen(proposals, rows, table), table)
    columns = [candidate.column for candidate in who.candidates] + ([] if given is None else [given.column])
    quasi = [p.name for p in proposals if p.role == "quasi_identifier"]
    proposals = with_ranges(proposals, table, rows, columns, k_of(rows))
    sample = unique_sets.sample(table, rows, quasi, columns, None if whose is None else whose.column)
    return _Look(rows, proposals, hierarchies, who, given, sample, past)


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


def _write(directory: Path, files: Mapping[str, Hierarchy], text: str, *, force: bool) -> tuple[Path, ...]:
    """Write hierarchy files and the spec, which comes last in the answer."""
    written = (*(directory / file for file in files), directory / "release.yaml")
    present = [file for file in written if file.exists()]
    if present and not force:
        raise InputError(f"{present[0]} already exists; give another folder with --directory, or --force to replace it")
    directory.mkdir(parents=True, exist_ok=True)
    for file, hierarchy in files.items():
        (directory / file).parent.mkdir(exist_ok=True)
        write_csv(hierarchy, directory / file)
    written[-1].write_text(text, encoding="utf-8")
    return written


def _lines_of_open(text: str) -> list[int]:
    """The lines on which a spec leaves something open, by their numbers."""
    marked = re.compile(r"^  [^\s#].*: (\{role: )?['\"]?\?\?\?")
    return [number for number, line in enumerate(text.split("\n"), 1) if marked.match(line)]


def _settle(proposals: Sequence[Proposal], table: Table) -> tuple[list[Proposal], dict[str, Hierarchy]]:
    """The proposals as their values allow, and the hierarchy files that they name."""
    settled = []
    files: dict[str, Hierarchy] = {}
    for p in proposals:
        few = p.profile.column.kind == "text" and p.profile.distinct <= FEW
        if isinstance(p.entry, dict) and "hierarchy" in p.entry and few:
            p = _with_file(p, leaves_of(table, p.profile.column), files)
        settled.append(p)
    return settled, files


def _with_file(p: Proposal, leaves: Hierarchy, files: dict[str, Hierarchy]) -> Proposal:
    """The proposal as the values of its column allow, whose hierarchy file, if it has one, is added to the files."""
    if p.entry.get("nulls") == "top" and TOP in leaves.leaves:
        reason = f"holds NULL and `{TOP}`, which would read the same when published; rename one of them"
        return Proposal(p.profile, "left out", None, reason)
    if p.entry["hierarchy"] != FILE:
        return p
    if not all(leaf and "\r" not in leaf for leaf in leaves.leaves):
        return p.with_form("suppress")
    file = _unused(f"hierarchies/{file_name(p.name)}", files)
    files[file] = leaves
    return p.with_form({"file": file})


def _unused(name: str, files: Iterable[str]) -> str:
    """A file name that no other column has, also where names differ by case alone."""
    taken = {file.lower() for file in files}
    candidates = (f"{name}{suffix}.csv" for suffix in ("", *(f"_{i}" for i in range(2, len(taken) + 3))))
    return next(candidate for candidate in candidates if candidate.lower() not in taken)


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
        return [*hint, f"source: {_flow(source)}"]
    return [*hint, "source:", *(f"  {name}: {_flow(value)}" for name, value in source.items()), *_where(why, where)]


def _where(why: Sequence[str], where: str) -> list[str]:
    """The lines of a condition, with what it is for."""
    return [*(f"  # {_plain(sentence)}." for sentence in why), f"  where: {_flow(where.replace('$', '$$'))}"]


def source_of_files(
    path: str, directory: Path, types: Mapping[str, str], why: Sequence[str] = (), where: str | None = None
) -> list[str]:
    """The lines of a spec in `directory` that name files. path: as somebody in the working directory names them; types:
    of the columns of CSV files that are no texts; why, where: as of `source_of_table`."""
    shown = path if os.path.isabs(path) else os.path.relpath(path, directory)
    file = _flow({"file": shown.replace("$", "$$")})
    restricted = [] if where is None else _where(why, where)
    if not types:
        return ["source:", f"  {file[1:-1]}", *restricted] if restricted else [f"source: {file}"]
    lines = ["# Every value of these columns has the type; another value is refused. The others are text."]
    lines += ["source:", f"  {file[1:-1]}", *restricted, "  types:"]
    return lines + [f"    {_key(name)}: {type_}" for name, type_ in types.items()]


def render(
    source: Sequence[str],
    title: str,
    proposals: Sequence[Proposal],
    rows: int,
    engine: str,
    entity: Entity,
    left: Sequence[str] = (),
    *,
    only_read: bool = False,
) -> str:
    """The text of a first spec (release.yaml.j2), with the reason of each role as a comment. source: its lines; title:
    of the table; left: columns whose role is left open; only_read: as of `_Source`."""
    people = rows if entity.chosen is None else entity.chosen.distinct
    return _template().render(
        OPEN=OPEN,
        flow=_flow,
        name=file_name(title),
        source=list(source),
        entity=_entity_lines(entity),
        left=left,
        half_open=any(p.of_ranges and p.form.get("labels") for p in proposals),
        columns=[_column_line(p, left) for p in proposals],
        k=k_of(people),
        sensitive=[p for p in proposals if p.role == "sensitive" and p.profile.distinct >= 2],
        steady=entity.chosen is not None,
        engine=ENGINES[engine],
        only_read=only_read,
        names={} if entity.chosen is None else _names(proposals),
    )


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


def _column_line(p: Proposal, left: Sequence[str]) -> str:
    name = _key(p.name)
    if p.name in left:
        entry = {**p.entry, "role": OPEN} if isinstance(p.entry, dict) else OPEN
        return f"  {name}: {_flow(entry)}  # {'sensitive? ' * (p.role != 'decide')}{p.reason}"
    if p.role == "decide":
        return f"  # {_plain(name)}: {_flow(p.entry)}  # decide: {p.reason}"
    if p.entry is None:
        return f"  # {_plain(name)}: left out  # {p.reason}"
    return f"  {name}: {_flow(p.entry)}  # {p.reason}"


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
    """A text on one line of a comment."""
    return " ".join(text.split())


def _key(name: str) -> str:
    """A column name as a key of the spec."""
    text = key_text(name)
    return f"? {text}\n  " if len(text) > LONGEST_KEY else text


def _flow(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6).strip()
    return text.removesuffix("\n...").strip()


def _table_text(table: TableName) -> str:
    parts = [part for part in (table.catalog, table.schema, table.name) if part is not None]
    plain = [part if re.fullmatch(r"\w+", part) else '"' + part.replace('"', '""') + '"' for part in parts]
    return ".".join(plain).replace("$", "$$")
