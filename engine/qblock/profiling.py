"""A first spec for a table: roles proposed from names and value counts, to be edited by a person."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import yaml

from qblock.errors import InputError, Refused
from qblock.hierarchy import TOP, Hierarchy, suppress, write_csv
from qblock.spec.model import ROLES
from qblock.spec.repeats import may_stand_for_people, repeats_people
from qblock.spec.source_file import ending
from qblock.warehouse import Column, Session, TableName, Warehouse, open_warehouse
from qblock.warehouse.connect import files_warehouse, parse_url
from qblock.warehouse.engines import ENGINES, database_file
from qblock.warehouse.values import is_value

IDENTIFYING = re.compile(
    r"(^|_)(id|uuid|name|surname|email|e_mail|phone|ssn|iban|account|address|person|patient)($|_)", re.I
)
QUASI = re.compile(
    r"(age|birth|dob|zip|post(al)?_?code|gender|sex|race|ethnic|national|country|region|city|state|county|educat|marital"
    r"|work_?class|admission|visit)",
    re.I,
)
SENSITIVE = re.compile(
    r"(disease|condition|diagnos|illness|salary|income|wage|occupation|treatment|drug|hiv|religion|party|offen[cs]e|debt)",
    re.I,
)
FILE = {"file": ""}
"""A hierarchy file whose name is not chosen yet."""
WIDEST = 10**18
"""The greatest distance between the least and the greatest number of a column that is generalized to ranges."""
LONGEST_NAME = 40
"""The longest name of a release and of a hierarchy file."""
LONGEST_KEY = 120
"""A longer key needs a question mark before it in YAML."""
REPEATS = "its values repeat: with this and `count: entities` people are counted, else rows (README)"
FEW = 1000
"""Text with more distinct values than this needs a hierarchy that nobody writes by hand: it is left out."""


@dataclass(frozen=True)
class Profile:
    """One column: distinct values, NULLs, the least and greatest value as text, and how many characters texts have."""

    column: Column
    distinct: int
    nulls: int
    least: str | None
    greatest: str | None
    shortest: int | None = None
    longest: int | None = None


@dataclass(frozen=True)
class Proposal:
    """A column with the role proposed, its entry in the spec (None: left out) and the reason."""

    profile: Profile
    role: str
    entry: Any
    reason: str


def init(url: str, table: str | None, directory: Path, *, force: bool = False) -> tuple[list[Proposal], list[Path]]:
    """Profile a table and write release.yaml and hierarchies/*.csv into a folder; returns proposals and files.

    url: of a database with the table, or the path of Parquet or CSV files without one. Raises InputError when a file is
    already there, unless `force`; nothing is written then.
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
        warehouse = open_warehouse(url, Path.cwd())
        source, title = source_of_table(url, name, warehouse.engine), name.name
    try:
        with warehouse.snapshot() as session:
            rows, profiles = profile(session, name)
            if rows == 0:
                raise Refused(f"the table {name} is empty: there is nothing to profile")
            proposals, hierarchies = _settle(propose(profiles, rows), session, name)
    finally:
        warehouse.close()
    if not any(p.role == "quasi_identifier" for p in proposals):
        reasons = "; ".join(f"{p.profile.column.name}: {p.role}, {p.reason}" for p in proposals)
        raise InputError(f"no column of {name} can be a quasi-identifier ({reasons}); write a spec by hand")
    files = {Path("hierarchies") / file: hierarchy for file, hierarchy in hierarchies.items()}
    spec_file = directory / "release.yaml"
    written = [*(directory / file for file in files), spec_file]
    present = [file for file in written if file.exists()]
    if present and not force:
        raise InputError(f"{present[0]} already exists; give another folder with --directory, or --force to replace it")
    directory.mkdir(parents=True, exist_ok=True)
    for file, hierarchy in files.items():
        (directory / file).parent.mkdir(exist_ok=True)
        write_csv(hierarchy, directory / file)
    spec_file.write_text(render(source, title, proposals, rows, warehouse.engine), encoding="utf-8")
    return proposals, written


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
        hierarchy = _leaves(session, table, column)
        if entry.get("nulls") == "top" and TOP in hierarchy.leaves:
            reason = f"holds NULL and `{TOP}`, which would read the same when published; rename one of them"
            settled.append(Proposal(proposal.profile, "left out", None, reason))
            continue
        if entry["hierarchy"] == FILE:
            if all(leaf and "\r" not in leaf for leaf in hierarchy.leaves):
                file = _unused(_file_name(column.name), files)
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


def profile(session: Session, table: TableName) -> tuple[int, list[Profile]]:
    """Rows of a table, and a profile of each column, in one statement."""
    columns = session.columns(table)
    relation = session.relation(table)
    figures: list[Any] = [sa.func.count().label("rows")]
    for i, column in enumerate(columns.values()):
        value = session.comparable(relation.c[column.name], column)
        figures += [sa.func.count(sa.distinct(value)).label(f"d{i}"), sa.func.count(value).label(f"c{i}")]
        ordered = column.kind != "boolean"
        least, greatest = (sa.func.min(value), sa.func.max(value)) if ordered else (sa.null(), sa.null())
        figures += [
            session.text_of(least, column.kind).label(f"l{i}"),
            session.text_of(greatest, column.kind).label(f"g{i}"),
        ]
        length = sa.func.length(value) if column.kind == "text" else sa.null()
        figures += [
            sa.cast(sa.func.min(length), sa.Integer).label(f"s{i}"),
            sa.cast(sa.func.max(length), sa.Integer).label(f"m{i}"),
        ]
    found = session.fetch(sa.select(*figures).select_from(relation)).to_pylist()[0]
    profiles = [
        Profile(column, found[f"d{i}"], found["rows"] - found[f"c{i}"], *(found[f"{key}{i}"] for key in "lgsm"))
        for i, column in enumerate(columns.values())
    ]
    return int(found["rows"]), profiles


def propose(profiles: Sequence[Profile], rows: int) -> list[Proposal]:
    """A role for every column; when in doubt a column is a quasi-identifier, or left out."""
    made = [_propose(p, rows) for p in profiles]
    if not any(p.role == "sensitive" for p in made) and sum(p.role == "quasi_identifier" for p in made) > 1:
        for i in reversed(range(len(made))):
            candidate = made[i]
            if candidate.role == "quasi_identifier" and not QUASI.search(candidate.profile.column.name):
                reason = "no name suggests a sensitive attribute; this is the last column that does not look public"
                made[i] = Proposal(candidate.profile, "sensitive", _sensitive(candidate.profile), reason)
                break
    return made


def _propose(p: Profile, rows: int) -> Proposal:
    name, kind = p.column.name, p.column.kind
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    if SENSITIVE.search(words):
        return Proposal(p, "sensitive", _sensitive(p), "the name suggests something private")
    if not QUASI.search(words):
        if IDENTIFYING.search(words):
            return Proposal(p, "identifying", "identifying", "the name suggests an identifier; never published")
        if p.distinct >= 0.95 * rows and rows > 20 and kind not in ("float", "decimal"):
            return Proposal(p, "identifying", "identifying", "nearly every row has its own value; never published")
    hierarchy = _hierarchy(p)
    if hierarchy is None:
        reason = f"{p.distinct} distinct values and no evident hierarchy; not published"
        if kind != "text":
            reason = "some values are infinite, not a number, or not in the years 1 to 9999; not published"
        return Proposal(p, "left out", None, reason)
    entry: dict[str, Any] = {"role": "quasi_identifier", "hierarchy": hierarchy}
    if p.nulls:
        entry["nulls"] = "top"
    known = "others may know it" if QUASI.search(words) else "others may know it, as far as one can tell: check"
    return Proposal(p, "quasi_identifier", entry, known)


def _sensitive(p: Profile) -> Any:
    return {"role": "sensitive", "nulls": "value"} if p.nulls else "sensitive"


def _hierarchy(p: Profile) -> Any:
    """The short form of a hierarchy; None where none fits the values."""
    kind = p.column.kind
    ends = (p.least or "", p.greatest or "")
    if kind in ("integer", "decimal", "float") and p.distinct:
        if not all(is_value(end, "decimal") for end in ends):
            return None
        spread = Fraction(ends[1]) - Fraction(ends[0])
        return {"ranges": _widths(spread)} if p.distinct > 2 and spread < WIDEST else "suppress"
    if kind in ("date", "timestamp", "timestamptz") and p.distinct:
        return (
            {"dates": ["month", "quarter", "year"]}
            if all(re.match(r"\d{4}-\d{2}-\d{2}( |$)(?!.*BC)", e) for e in ends)
            else None
        )
    if p.distinct <= 2:
        return "suppress"
    if all(re.fullmatch("[0-9]{3,12}", end) for end in ends) and p.shortest == p.longest == len(ends[0]):
        return {"digits": len(ends[0])}
    return FILE if p.distinct <= FEW else None


def _widths(spread: Fraction) -> list[int]:
    step = 1
    while spread / (5 * step) > 50:
        step *= 10
    return [5 * step, 10 * step, 20 * step]


def _file_name(name: str) -> str:
    """Letters, digits and _ of a name, for files, releases and views."""
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").lower()[:LONGEST_NAME] or "column"


def _leaves(session: Session, table: TableName, column: Column) -> Hierarchy:
    value = session.comparable(session.relation(table).c[column.name], column)
    text = session.text_of(value, column.kind)
    found = session.fetch(sa.select(text.label("value")).where(value.is_not(None)).distinct())
    return suppress(column.name, found["value"].to_pylist())


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


def render(source: Sequence[str], title: str, proposals: Sequence[Proposal], rows: int, engine: str) -> str:
    """The text of a first spec, with the reason of each role as a comment. source: its lines; title: of the table."""
    lines = [
        "# A first spec, proposed by `qblock init`: check every role, then try `qblock search release.yaml`.",
        "version: 1",
        f"release: {_flow(_file_name(title))}",
        *source,
    ]
    lines += [
        f"# entity: {_key(p.profile.column.name)}  # {REPEATS}"
        for p in proposals
        if p.entry is not None and _repeats_people(p, rows) and "\n" not in _key(p.profile.column.name)
    ]
    lines.append("attributes:")
    for p in proposals:
        name = _key(p.profile.column.name)
        entry = f"  {name}: {_flow(p.entry)}" if p.entry is not None else f"  # {' '.join(name.split())}: left out"
        lines.append(f"{entry}  # {p.reason}")
    lines.append("privacy:")
    k = 5 if rows >= 100 else 2
    lines.append(f"  - k_anonymity: {{k: {k}}}")
    for p in proposals:
        if p.role == "sensitive" and p.profile.distinct >= 2:
            asked = {"l": min(3, p.profile.distinct), "sensitive": p.profile.column.name.replace("$", "$$")}
            lines.append(f"  - distinct_l_diversity: {_flow(asked)}")
    lines.append("suppression_limit: 0")
    publish: dict[str, Any] = {"schema": "published", "view": _file_name(title)}
    if ENGINES[engine].is_file:
        publish = {"url": "duckdb:///published.duckdb", **publish}
    lines.append(f"publish: {_flow(publish)}")
    return "\n".join(lines) + "\n"


def _repeats_people(p: Proposal, rows: int) -> bool:
    """As search and release see it: they would print a note."""
    column, role = p.profile.column, p.role
    return (
        role in ROLES
        and may_stand_for_people(column.name, role, column.kind, column.type)
        and repeats_people(column.name, role, column.type, rows - p.profile.nulls, p.profile.distinct)
    )


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
