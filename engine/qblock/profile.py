"""A first spec for a table: roles proposed from names and value counts, to be edited by a person."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import yaml

from qblock.errors import InputError, Refused
from qblock.hierarchy import Hierarchy, suppress, write_csv
from qblock.warehouse import Column, Session, TableName, open_warehouse
from qblock.warehouse.connect import duckdb_path, parse_url

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
FEW = 1000
"""Text with more distinct values than this needs a hierarchy that nobody writes by hand: it is left out."""


@dataclass(frozen=True)
class Profile:
    """One column: distinct values, NULLs, and the least and greatest value as text."""

    column: Column
    distinct: int
    nulls: int
    least: str | None
    greatest: str | None


@dataclass(frozen=True)
class Proposal:
    """A column with the role proposed, its entry in the spec (None: left out) and the reason."""

    profile: Profile
    role: str
    entry: Any
    reason: str


def init(url: str, table: str, directory: Path, *, force: bool = False) -> tuple[list[Proposal], list[Path]]:
    """Profile a table and write release.yaml and hierarchies/*.csv into a folder; returns proposals and files.

    Raises InputError when a file is already there, unless `force`; nothing is written then.
    """
    name = TableName.parse(table)
    warehouse = open_warehouse(url, Path.cwd())
    try:
        with warehouse.snapshot() as session:
            rows, profiles = profile(session, name)
            if rows == 0:
                raise Refused(f"the table {name} is empty: there is nothing to profile")
            proposals = propose(profiles, rows)
            files = {
                Path("hierarchies") / f"{_file_name(p.profile.column.name)}.csv": _leaves(session, name, p)
                for p in proposals
                if _needs_file(p)
            }
    finally:
        warehouse.close()
    spec_file = directory / "release.yaml"
    written = [*(directory / file for file in files), spec_file]
    present = [file for file in written if file.exists()]
    if present and not force:
        raise InputError(
            f"{present[0]} is already there; give another folder with --directory, or --force to replace it"
        )
    directory.mkdir(parents=True, exist_ok=True)
    for file, hierarchy in files.items():
        (directory / file).parent.mkdir(exist_ok=True)
        write_csv(hierarchy, directory / file)
    spec_file.write_text(render(url, name, proposals, rows, warehouse.engine), encoding="utf-8")
    return proposals, written


def _needs_file(proposal: Proposal) -> bool:
    hierarchy = proposal.entry.get("hierarchy") if isinstance(proposal.entry, dict) else None
    return isinstance(hierarchy, dict) and "file" in hierarchy


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
    found = session.fetch(sa.select(*figures).select_from(relation)).to_pylist()[0]
    profiles = [
        Profile(column, found[f"d{i}"], found["rows"] - found[f"c{i}"], found[f"l{i}"], found[f"g{i}"])
        for i, column in enumerate(columns.values())
    ]
    return int(found["rows"]), profiles


def propose(profiles: Sequence[Profile], rows: int) -> list[Proposal]:
    """A role for every column; when in doubt a column is a quasi-identifier, or left out."""
    made = [_propose(p, rows) for p in profiles]
    if not any(p.role == "sensitive" for p in made):
        for i in reversed(range(len(made))):
            candidate = made[i]
            if candidate.role == "quasi_identifier" and not QUASI.search(candidate.profile.column.name):
                reason = "no name speaks of a sensitive attribute; this is the last column that does not look public"
                made[i] = Proposal(candidate.profile, "sensitive", _sensitive(candidate.profile), reason)
                break
    return made


def _propose(p: Profile, rows: int) -> Proposal:
    name, kind = p.column.name, p.column.kind
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    if SENSITIVE.search(words):
        return Proposal(p, "sensitive", _sensitive(p), "the name speaks of something private")
    if not QUASI.search(words):
        if IDENTIFYING.search(words):
            return Proposal(p, "identifying", "identifying", "the name speaks of an identifier; never published")
        if p.distinct >= 0.95 * rows and rows > 20 and kind not in ("float", "decimal"):
            return Proposal(p, "identifying", "identifying", "nearly every row has its own value; never published")
    hierarchy = _hierarchy(p)
    if hierarchy is None:
        return Proposal(p, "left out", None, f"{p.distinct} distinct values and no evident hierarchy; not published")
    entry: dict[str, Any] = {"role": "quasi_identifier", "hierarchy": hierarchy}
    if p.nulls:
        entry["nulls"] = "top"
    known = "others may know it" if QUASI.search(words) else "others may know it, as far as one can tell: check"
    return Proposal(p, "quasi_identifier", entry, known)


def _sensitive(p: Profile) -> Any:
    return {"role": "sensitive", "nulls": "value"} if p.nulls else "sensitive"


def _hierarchy(p: Profile) -> Any:
    kind = p.column.kind
    if kind in ("integer", "decimal", "float") and p.least is not None and p.greatest is not None:
        return {"ranges": _widths(float(p.greatest) - float(p.least))} if p.distinct > 2 else "suppress"
    if kind in ("date", "timestamp"):
        return {"dates": ["month", "quarter", "year"]}
    if p.distinct <= 2:
        return "suppress"
    sample = [p.least or "", p.greatest or ""]
    if all(s.isdigit() for s in sample) and len({len(s) for s in sample}) == 1 and 3 <= len(sample[0]) <= 12:
        return {"digits": len(sample[0])}
    return {"file": f"hierarchies/{_file_name(p.column.name)}.csv"} if p.distinct <= FEW else None


def _widths(spread: float) -> list[int]:
    step = 1
    while spread / (5 * step) > 50:
        step *= 10
    return [5 * step, 10 * step, 20 * step]


def _file_name(column: str) -> str:
    return re.sub(r"\W+", "_", column).strip("_").lower() or "column"


def _leaves(session: Session, table: TableName, p: Proposal) -> Hierarchy:
    column = p.profile.column
    value = session.comparable(session.relation(table).c[column.name], column)
    text = session.text_of(value, column.kind)
    found = session.fetch(sa.select(text.label("value")).where(value.is_not(None)).distinct())
    return suppress(column.name, found["value"].to_pylist())


def render(url: str, table: TableName, proposals: Sequence[Proposal], rows: int, engine: str) -> str:
    """The text of a first spec, with the reason of each role as a comment."""
    parsed = parse_url(url)
    lines = [
        "# A first spec, proposed by `qblock init`: check every role, then try `qblock search release.yaml`.",
        "version: 1",
    ]
    lines.append(f"release: {_file_name(table.name)[:40]}")
    if engine == "duckdb":
        shown = f"duckdb:///{duckdb_path(parsed, Path.cwd())}"
        lines.append(f"source: {_flow({'url': shown, 'table': _table_text(table)})}")
    else:
        lines.append("# The URL stays in the environment, so that no password is written down.")
        lines.append(f"source: {_flow({'url': '${WAREHOUSE_URL}', 'table': _table_text(table)})}")
    lines.append("attributes:")
    for p in proposals:
        name = _flow({p.profile.column.name.replace("$", "$$"): 0})[1:].rsplit(":", 1)[0]
        entry = f"  {name}: {_flow(p.entry)}" if p.entry is not None else f"  # {name}: left out"
        lines.append(f"{entry}  # {p.reason}")
    lines.append("privacy:")
    k = 5 if rows >= 100 else 2
    lines.append(f"  - k_anonymity: {{k: {k}}}")
    for p in proposals:
        if p.role == "sensitive" and p.profile.distinct >= 2:
            asked = {"l": min(3, p.profile.distinct), "sensitive": p.profile.column.name.replace("$", "$$")}
            lines.append(f"  - distinct_l_diversity: {_flow(asked)}")
    lines.append("suppression_limit: 0")
    publish: dict[str, Any] = {"schema": "published", "view": _file_name(table.name)}
    if engine == "duckdb":
        publish = {"url": "duckdb:///published.duckdb", **publish}
    lines.append(f"publish: {_flow(publish)}")
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6).strip()
    return text.removesuffix("\n...").strip()


def _table_text(table: TableName) -> str:
    parts = [part for part in (table.schema, table.name) if part is not None]
    plain = [part if re.fullmatch(r"\w+", part) else '"' + part.replace('"', '""') + '"' for part in parts]
    return ".".join(plain).replace("$", "$$")
