"""A first spec of a table, with a hierarchy file for each column that needs one, to be edited by a person."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from qblock.errors import InputError, Refused
from qblock.hierarchy import TOP, Hierarchy, write_csv
from qblock.profiling import apart, counts, decisions, ends, people
from qblock.profiling.apart import Apart
from qblock.profiling.columns import FEW, FILE, LONGEST_KEY, Proposal, file_name, leaves_of, profile, propose
from qblock.profiling.decisions import AskSensitive
from qblock.profiling.people import Ask, Entity
from qblock.spec.source_file import ending
from qblock.warehouse import Session, TableName, Warehouse
from qblock.warehouse.connect import files_warehouse, parse_url, profiled_warehouse
from qblock.warehouse.engines import ENGINES, database_file


@dataclass(frozen=True)
class FirstSpec:
    """What was written. files: the spec last; entity: who its rows are about; open: columns whose role is left to a
    person, with their lines in the spec; apart: the sets of columns that tell most people apart, among `sampled`
    of the table's rows."""

    proposals: tuple[Proposal, ...]
    files: tuple[Path, ...]
    entity: Entity
    open: dict[str, int] = field(default_factory=dict)
    apart: tuple[Apart, ...] = ()
    sampled: int = 0
    rows: int = 0

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
    path = url if "://" not in url and ending(url) is not None else None
    if (path is None) != (table is not None):
        raise InputError(
            "files are a table by themselves; leave TABLE out"
            if path
            else "which table of the database? name it after the URL"
        )
    warehouse: Warehouse
    if path is not None:
        warehouse, name = files_warehouse(path, Path.cwd(), "the source")
        source = source_of_files(path, directory)
        title = Path(path).stem
    else:
        name = TableName.parse(table or "")
        warehouse = profiled_warehouse(url, Path.cwd())
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
            proposals, hierarchies = _settle(proposals, session, name)
            quasi = [p.profile.column.name for p in proposals if p.role == "quasi_identifier"]
            people_ = [one.column for one in who.candidates] + ([] if given is None else [given.column])
            proposals = ends.with_ends(proposals, session, name, rows, people_, k_of(rows))
            proposals = counts.with_edges(proposals, session, name, people_, k_of(rows))
            likely = given or who.best
            person = None if likely is None else likely.column
            sampled = apart.sample(session, name, rows, quasi, people_, person)
    finally:
        warehouse.close()
    # Nothing is open while a person thinks.
    settled = Entity.settled(who, given, entity, ask)
    if settled.chosen is not None:
        proposals = people.about(proposals, settled.chosen.column)
    proposals, left = decisions.decided(proposals, sensitive, ask_sensitive, name)
    quasi = [p.profile.column.name for p in proposals if p.role == "quasi_identifier"]
    person = None if settled.chosen is None else settled.chosen.column
    sets = apart.minimal(apart.apart(sampled, quasi, person))
    proposals = apart.reasoned(proposals, sets)
    if not quasi:
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
    return FirstSpec(tuple(proposals), tuple(written), settled, lines, tuple(sets), sampled.rows, rows)


def k_of(people: int) -> int:
    """The k that is asked of so many people."""
    return 5 if people >= 100 else 2


def _lines_of_open(text: str) -> list[int]:
    """The lines on which a spec leaves something open, by their numbers."""
    marked = re.compile(r"^  \S.*: (\{role: )?['\"]?\?\?\?")
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


def source_of_table(url: str, table: TableName, engine: str) -> list[str]:
    """The lines of a spec that say where a table is."""
    if ENGINES[engine].is_file:
        shown = f"duckdb:///{database_file(parse_url(url), Path.cwd())}".replace("$", "$$")
        return [f"source: {_flow({'url': shown, 'table': _table_text(table)})}"]
    return [
        "# The URL stays in the environment, so that no password is written down.",
        f"source: {_flow({'url': '${WAREHOUSE_URL}', 'table': _table_text(table)})}",
    ]


def source_of_files(path: str, directory: Path) -> list[str]:
    """The lines of a spec in `directory` that name files. path: as somebody in the working directory names them."""
    shown = path if os.path.isabs(path) else os.path.relpath(path, directory)
    lines = [f"source: {_flow({'file': shown.replace('$', '$$')})}"]
    if ending(path) == ".csv":
        lines.insert(0, "# A CSV file is text throughout, unless the source says `types: {age: integer, born: date}`.")
    return lines


OPEN_LINES = (
    f"# `{decisions.OPEN}` is yours to decide; no command reads this file before. Is it what nobody may learn about a",
    "# person (sensitive), what others know of them (quasi_identifier, with a hierarchy), neither (insensitive), or",
    "# who they are (identifying)? Remove the requirement of a column that is not sensitive.",
)
REGIMES = (
    "# A table that changes is published in one of three ways (docs/steady-job.md):",
    "# (a) readers keep no copy of an older version, and none is public: each version shows the table as it is.",
    "#     Add:  versions: {joint: none}",
    "# (b) readers may keep copies: who comes, leaves or changes is shown in batches, and waits until then, so that no",
    "#     two versions tell together what neither tells alone. It needs `entity`, from the first version on.",
    "# (c) one publication: a later run with changed data is refused. It needs nothing.",
)
RECODING = {
    "once": (
        "# Each part of the table has labels of its own, so that one small group does not coarsen all rows. Without",
        "# this line every column has one level throughout (docs/recoding.md).",
        "search: {recoding: multidimensional, choose_by: loss}",
    ),
    "steady": (
        "# Each column has one level throughout. A recoding map shows more, in smaller groups, for which newcomers",
        "# wait longer (docs/recoding.md), and is for the lifetime of a release, from its first version on:",
        "# search: {recoding: multidimensional, choose_by: loss}",
    ),
}
AS_WRITTEN = {
    "steady": "# As it is written, this spec is (b). For (a) add that line; for (c) run `qblock release` once.",
    "once": "# As it is written, this spec is (c). For (a) add that line; for (b) write `entity: COLUMN`.",
}


def render(
    source: Sequence[str],
    title: str,
    proposals: Sequence[Proposal],
    rows: int,
    engine: str,
    entity: Entity,
    left: Sequence[str] = (),
) -> str:
    """The text of a first spec, with the reason of each role as a comment. source: its lines; title: of the table;
    left: columns whose role is left open."""
    lines = [
        "# A first spec, proposed by `qblock init`: check every role, then try `qblock search release.yaml`.",
        "version: 1",
        f"release: {_flow(file_name(title))}",
        *source,
    ]
    lines += _entity_lines(entity)
    if left:
        lines += OPEN_LINES
    lines.append("attributes:")
    for p in proposals:
        name = _key(p.profile.column.name)
        if p.profile.column.name in left:
            lines.append(f"  {name}: {_flow(decisions.left_open(p.entry))}  # sensitive? {p.reason}")
            continue
        entry = f"  {name}: {_flow(p.entry)}" if p.entry is not None else f"  # {' '.join(name.split())}: left out"
        lines.append(f"{entry}  # {p.reason}")
    lines.append("privacy:")
    chosen = entity.chosen
    regime = "once" if chosen is None else "steady"
    k = k_of(rows if chosen is None else chosen.distinct)
    lines.append(f"  - k_anonymity: {{k: {k}}}")
    for p in proposals:
        if p.role == "sensitive" and p.profile.distinct >= 2:
            asked = {"l": min(3, p.profile.distinct), "sensitive": p.profile.column.name.replace("$", "$$")}
            only = "  # if it is sensitive" if p.profile.column.name in left else ""
            lines.append(f"  - distinct_l_diversity: {_flow(asked)}{only}")
    lines += ["suppression_limit: 0", *RECODING[regime]]
    publish: dict[str, Any] = {"schema": "published", "view": file_name(title)}
    if ENGINES[engine].is_file:
        # DuckDB calls a database as its file is called, and takes a schema of the same name for it.
        publish = {"url": f"duckdb:///{file_name(title)}_published.duckdb", **publish}
    lines.append(f"publish: {_flow(publish)}")
    lines += [*REGIMES, AS_WRITTEN[regime]]
    return "\n".join(lines) + "\n"


def _entity_lines(entity: Entity) -> list[str]:
    """Who a row is about, and why; what was left open as comments."""
    first, *more = (_plain(sentence) for sentence in entity.sentences)
    lines = [f"# Who a row is about: {first}.", *(f"# {sentence}." for sentence in more)]
    if entity.chosen is not None:
        lines.append(f"entity: {_text(entity.chosen.column)}")
        lines += ["count: entities"] if entity.chosen.repeats else []
    else:
        lines += [f"# entity: {_text(c.column)}  # {_plain(people.meaning(c))}" for c in entity.who.candidates]
    return lines


def _plain(text: str) -> str:
    """A text on one line of a comment."""
    return " ".join(text.split())


def _text(name: str) -> str:
    """The name of a column as a value of the spec, on one line."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and yaml.safe_load(name) == name:
        return name
    shown = name.replace("$", "$$")
    text: str = yaml.safe_dump(shown, default_style='"', allow_unicode=True, width=10**6)
    return text.strip()


def _key(name: str) -> str:
    """A column name as a key of the spec, on one line; nothing in a key stands for a variable."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and yaml.safe_load(name) == name:
        return name
    text: str = yaml.safe_dump(name, default_style='"', allow_unicode=True, width=10**6)
    return f"? {text.strip()}\n  " if len(text) > LONGEST_KEY else text.strip()


def _flow(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6).strip()
    return text.removesuffix("\n...").strip()


def _table_text(table: TableName) -> str:
    parts = [part for part in (table.schema, table.name) if part is not None]
    plain = [part if re.fullmatch(r"\w+", part) else '"' + part.replace('"', '""') + '"' for part in parts]
    return ".".join(plain).replace("$", "$$")
