"""Writes a first spec of a table, with a hierarchy file for each column that needs one, to be edited by a person."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from qblock.engines.from_spec import files_warehouse
from qblock.engines.registry import engine_of, open_warehouse, parse_url
from qblock.engines.session import Warehouse
from qblock.engines.source_files import FileTable
from qblock.engines.tables import TableName
from qblock.errors import InputError, Refused
from qblock.files import check_file, private_output
from qblock.hierarchy import TOP, Hierarchy, write_csv
from qblock.profiling import history, people, unique_sets
from qblock.profiling.columns import (
    FILE,
    NOBODY,
    STARRED,
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
from qblock.profiling.people import Ask, Candidate, Entity, Who
from qblock.profiling.profiles import FEW, Table, profile
from qblock.profiling.ranges import with_ranges
from qblock.profiling.roles import Alternatives, Roles, look_for_alternatives
from qblock.profiling.spec_text import SpecText, column_text, k_of, source_of_files, source_of_table, spec_text
from qblock.profiling.text_types import TextTypes, recognize
from qblock.profiling.unique_sets import UniqueSet
from qblock.spec.source_file import ending

PAGE = "roles.html"


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
    def page(self) -> Path | None:
        """The page of roles, if it was written."""
        return next((file for file in self.files if file.name == PAGE), None)

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
    page_of: Callable[[Roles], str] | None = None,
) -> FirstSpec:
    """Profile a table and write release.yaml and hierarchies/*.csv into a folder.

    url: of a database with the table, or the path of Parquet or CSV files without one. entity: the column that says who
    a row is about, or `none`; ask: asked for it where there are several, None where nobody can be. sensitive,
    ask_sensitive: the sensitive columns in the same way; without either they are left open. page_of: the
    text of roles.html, a page to choose the roles on, which is written besides; None where nobody wants it. Raises
    InputError when a file is already there, unless `force`; nothing is written then.
    """
    source = _source_of(url, table, directory)
    try:
        with source.warehouse.snapshot() as session:
            look = _look(Table(session, source.table), entity, with_page=page_of is not None)
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
    # On the page a column that somebody named as sensitive can be a quasi-identifier again.
    known = quasi if page_of is None else [p.name for p in look.proposals if p.role == "quasi_identifier"]
    shares = unique_sets.unique_shares(look.sample, known, person)
    sets = unique_sets.minimal([group for group in shares if set(group.columns) <= set(quasi)])
    proposals = unique_sets.reasoned(proposals, sets)
    if not quasi and not any(p.role == "decide" for p in proposals):
        reasons = "; ".join(f"{p.name}: {p.role}, {p.reason}" for p in proposals)
        raise InputError(f"no column of {source.table} can be a quasi-identifier ({reasons}); write a spec by hand")
    engine, past = source.warehouse.engine, look.history
    lines_of_source = source.described(*(((), None) if past is None else (past.sentences, past.where)))
    pieces = spec_text(lines_of_source, source.title, proposals, look.rows, engine, whose, only_read=source.only_read)
    text = pieces.of([column_text(p, open_=p.name in left) for p in proposals])
    forms = [p.entry.get("hierarchy") for p in proposals if isinstance(p.entry, dict)]
    files = {file: leaves for file, leaves in look.hierarchies.items() if {"file": file} in forms}
    page = None
    if page_of is not None:
        page = page_of(_roles(look, source.title, whose, proposals, left, pieces, frozenset(files), shares))
    written = _write(directory, files, text, page, force=force)
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
        if table is None and ending(url) is not None:
            raise InputError("files of a network are not read; copy them to this machine, and name the path")
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


def _roles(
    look: _Look,
    title: str,
    whose: Entity,
    proposals: Sequence[Proposal],
    left: Sequence[str],
    pieces: SpecText,
    files: frozenset[str],
    shares: Sequence[UniqueSet],
) -> Roles:
    """What can be chosen on the page of roles."""
    assert look.alternatives is not None  # which are looked for where there is a page
    person = None if whose.chosen is None else whose.chosen.column
    return Roles(
        title=title,
        rows=look.rows,
        person=person,
        who=f"{'' if whose.how == 'open' else 'Person column: '}{'; '.join(whose.sentences)}",
        steady=person is not None,
        proposals=proposals,
        left=left,
        alternatives=look.alternatives,
        files=files,
        text=pieces,
        sets=shares,
        sampled=look.sample.rows,
    )


@dataclass(frozen=True)
class _Look:
    """What a table looks like, before a person has decided anything.

    hierarchies: by the files that the proposals name; given: the column that an option says its rows are about;
    alternatives: None where no page is wanted.
    """

    rows: int
    proposals: list[Proposal]
    hierarchies: dict[str, Hierarchy]
    who: Who
    given: Candidate | None
    sample: unique_sets.Sample
    history: History | None
    alternatives: Alternatives | None


def _look(table: Table, entity: str | None, past: History | None = None, *, with_page: bool) -> _Look:
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
            return _look(history.current(past, table), entity, past, with_page=with_page)
    else:
        who, proposals = history.about(past, who), history.without(proposals, past)
    whose = given or who.best
    proposals = without_derived(proposals, rows, rows if whose is None else whose.distinct, table)
    proposals, hierarchies = _settle(chosen(proposals, rows, table), table)
    columns = [candidate.column for candidate in who.candidates] + ([] if given is None else [given.column])
    quasi = [p.name for p in proposals if p.role == "quasi_identifier"]
    proposals = with_ranges(proposals, table, rows, columns, k_of(rows))
    sample = unique_sets.sample(table, rows, quasi, columns, None if whose is None else whose.column)
    alternatives = look_for_alternatives(proposals, rows, columns, table) if with_page else None
    return _Look(rows, proposals, hierarchies, who, given, sample, past, alternatives)


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


def _write(
    directory: Path, files: Mapping[str, Hierarchy], text: str, page: str | None, *, force: bool
) -> tuple[Path, ...]:
    """Write hierarchy files, the page of roles, if there is one, and the spec, which comes last in the answer."""
    pages = [] if page is None else [directory / PAGE]
    written = (*(directory / file for file in files), *pages, directory / "release.yaml")
    present = [file for file in written if file.exists()]
    if present and not force:
        raise InputError(f"{present[0]} already exists; give another folder with --directory, or --force to replace it")
    for path in written:
        check_file(path, "move it away, or give another folder with --directory")
    directory.mkdir(parents=True, exist_ok=True)
    for file, hierarchy in files.items():
        (directory / file).parent.mkdir(exist_ok=True)
        write_csv(hierarchy, directory / file)
    if page is not None:
        with private_output(directory / PAGE) as output:
            output.write(page.encode())
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
        return Proposal(p.profile, "left out", None, STARRED)
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
