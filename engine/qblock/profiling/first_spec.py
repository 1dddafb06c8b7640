"""A first spec of a table, with a hierarchy file for each column that needs one, to be edited by a person."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from qblock.errors import InputError, Refused
from qblock.hierarchy import TOP, Hierarchy, write_csv
from qblock.profiling import choice, counts, decisions, ends, people, unique_sets
from qblock.profiling.columns import FILE, Proposal, file_name, leaves_of, of_one_form, propose
from qblock.profiling.decisions import AskSensitive
from qblock.profiling.derived import without_derived
from qblock.profiling.people import Ask, Entity
from qblock.profiling.profiles import FEW, profile
from qblock.profiling.spec_text import k_of, render, source_of_files, source_of_table
from qblock.profiling.text_types import TextTypes, recognize
from qblock.profiling.unique_sets import UniqueSet
from qblock.spec.source_file import ending
from qblock.warehouse import Session, TableName, Warehouse
from qblock.warehouse.connect import files_warehouse, open_warehouse
from qblock.warehouse.source_files import FileTable


@dataclass(frozen=True)
class FirstSpec:
    """What was written. files: the spec last; entity: who its rows are about; open: columns whose role is left to a
    person, with their lines in the spec; unique_sets: the sets of columns that tell most people apart, among `sampled`
    of the table's rows; recognized: types of the columns of CSV files."""

    proposals: tuple[Proposal, ...]
    files: tuple[Path, ...]
    entity: Entity
    open: dict[str, int] = field(default_factory=dict)
    unique_sets: tuple[UniqueSet, ...] = ()
    sampled: int = 0
    rows: int = 0
    recognized: TextTypes = field(default_factory=TextTypes)

    @property
    def nodes(self) -> int:
        """How many nodes the lattice has, as it is proposed."""
        return decisions.nodes(self.proposals)

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
    path = url if "://" not in url and (ending(url) is not None or table is None) else None
    if (path is None) != (table is not None):
        raise InputError(
            "files are a table by themselves; leave TABLE out"
            if path
            else "which table of the database? name it after the URL"
        )
    warehouse: Warehouse
    recognized = TextTypes()
    if path is not None:
        recognized = recognize(FileTable(path, Path.cwd(), "the source")) if ending(path) == ".csv" else recognized
        types = {column: str(type_) for column, type_ in recognized.types.items()}
        warehouse, name = files_warehouse(path, Path.cwd(), "the source", types)
        source = source_of_files(path, directory, types)
        title = Path(path).stem
    else:
        name = TableName.parse(table or "")
        warehouse = open_warehouse(url, Path.cwd())
        source, title = source_of_table(url, name, warehouse.engine), name.name
    given = None
    try:
        with warehouse.snapshot() as session:
            rows, profiles = profile(session, name)
            if rows == 0:
                raise Refused(f"the table {name} is empty: there is nothing to profile")
            proposals = propose(profiles, rows)
            who = people.find(proposals, rows, session, name)
            if entity not in (None, people.NOBODY):
                given = people.named(entity, proposals, rows, session, name)
                proposals = people.about(proposals, given.column)
            whose = given or who.best
            persons = rows if whose is None else whose.distinct
            proposals = without_derived(proposals, rows, persons, session, name)
            proposals = choice.chosen(proposals, rows, session, name)
            proposals, hierarchies = _settle(proposals, session, name)
            quasi = [p.profile.column.name for p in proposals if p.role == "quasi_identifier"]
            people_ = [candidate.column for candidate in who.candidates] + ([] if given is None else [given.column])
            proposals = ends.with_ends(proposals, session, name, rows, people_, k_of(rows))
            proposals = of_one_form(counts.with_edges(proposals, session, name, people_, k_of(rows)))
            proposals = ends.with_finest(proposals, rows)
            person = None if whose is None else whose.column
            sampled = unique_sets.sample(session, name, rows, quasi, people_, person)
    finally:
        warehouse.close()
    # Nothing is open while a person thinks.
    settled = Entity.settled(who, given, entity, ask)
    if settled.chosen is not None:
        proposals = people.about(proposals, settled.chosen.column)
    person = None if settled.chosen is None else settled.chosen.column
    proposals, left = decisions.decided(proposals, sensitive, ask_sensitive, name, person)
    quasi = [p.profile.column.name for p in proposals if p.role == "quasi_identifier"]
    sets = unique_sets.minimal(unique_sets.unique_shares(sampled, quasi, person))
    proposals = unique_sets.reasoned(proposals, sets)
    if not quasi and not any(p.role == "decide" for p in proposals):
        reasons = "; ".join(f"{p.profile.column.name}: {p.role}, {p.reason}" for p in proposals)
        raise InputError(f"no column of {name} can be a quasi-identifier ({reasons}); write a spec by hand")
    named = [p.entry["hierarchy"].get("file") for p in proposals if _has_file(p)]
    files = {Path("hierarchies") / file: h for file, h in hierarchies.items() if f"hierarchies/{file}" in named}
    spec_file = directory / "release.yaml"
    written = [*(directory / file for file in files), spec_file]
    present = [file for file in written if file.exists()]
    if present and not force:
        raise InputError(f"{present[0]} already exists; give another folder with --directory, or --force to replace it")
    directory.mkdir(parents=True, exist_ok=True)
    for file, hierarchy in files.items():
        (directory / file).parent.mkdir(exist_ok=True)
        write_csv(hierarchy, directory / file)
    text = render(source, title, proposals, rows, warehouse.engine, settled, left)
    spec_file.write_text(text, encoding="utf-8")
    lines = dict(zip(left, _lines_of_open(text), strict=True))
    return FirstSpec(tuple(proposals), tuple(written), settled, lines, tuple(sets), sampled.rows, rows, recognized)


def _lines_of_open(text: str) -> list[int]:
    """The lines on which a spec leaves something open, by their numbers."""
    marked = re.compile(r"^  [^\s#].*: (\{role: )?['\"]?\?\?\?")
    return [number for number, line in enumerate(text.split("\n"), 1) if marked.match(line)]


def _has_file(proposal: Proposal) -> bool:
    return isinstance(proposal.entry, dict) and isinstance(proposal.entry.get("hierarchy"), dict)


def _settle(
    proposals: Sequence[Proposal], session: Session, table: TableName
) -> tuple[list[Proposal], dict[str, Hierarchy]]:
    """The proposals as their values allow, and the hierarchy files that they name."""
    settled = []
    files: dict[str, Hierarchy] = {}
    for proposal in proposals:
        entry, column = proposal.entry, proposal.profile.column
        few = column.kind == "text" and proposal.profile.distinct <= FEW
        if not (isinstance(entry, dict) and "hierarchy" in entry and few):
            settled.append(proposal)
            continue
        hierarchy = leaves_of(session, table, column)
        if entry.get("nulls") == "top" and TOP in hierarchy.leaves:
            reason = f"holds NULL and `{TOP}`, which would read the same when published; rename one of them"
            settled.append(Proposal(proposal.profile, "left out", None, reason))
            continue
        if entry["hierarchy"] == FILE:
            if all(leaf and "\r" not in leaf for leaf in hierarchy.leaves):
                file = _unused(file_name(column.name), files)
                files[file] = hierarchy
                entry = {**entry, "hierarchy": {"file": f"hierarchies/{file}"}}
            else:
                entry = {**entry, "hierarchy": "suppress"}
        settled.append(Proposal(proposal.profile, proposal.role, entry, proposal.reason))
    return settled, files


def _unused(name: str, files: Iterable[str]) -> str:
    """A file name that no other column has, also where names differ by case alone."""
    taken = {file.lower() for file in files}
    candidates = (f"{name}{suffix}.csv" for suffix in ("", *(f"_{i}" for i in range(2, len(taken) + 3))))
    return next(candidate for candidate in candidates if candidate.lower() not in taken)
