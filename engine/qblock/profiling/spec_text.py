"""The text of a first spec: the proposals, each with its reason, and what is left to a person."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from qblock.profiling import decisions, people
from qblock.profiling.columns import LONGEST_KEY, Proposal, file_name, of_ranges
from qblock.profiling.people import Entity
from qblock.warehouse import TableName
from qblock.warehouse.connect import parse_url
from qblock.warehouse.engines import ENGINES, database_file


def k_of(people: int) -> int:
    """The k that is asked of so many people."""
    return 5 if people >= 100 else 2


def source_of_table(url: str, table: TableName, engine: str) -> list[str]:
    """The lines of a spec that say where a table is."""
    if ENGINES[engine].is_file:
        shown = f"duckdb:///{database_file(parse_url(url), Path.cwd())}".replace("$", "$$")
        return [f"source: {_flow({'url': shown, 'table': _table_text(table)})}"]
    return [
        "# The URL stays in the environment, so that no password is written down.",
        f"source: {_flow({'url': '${WAREHOUSE_URL}', 'table': _table_text(table)})}",
    ]


def source_of_files(path: str, directory: Path, types: Mapping[str, str]) -> list[str]:
    """The lines of a spec in `directory` that name files. path: as somebody in the working directory names them; types:
    of the columns of CSV files that are no texts."""
    shown = path if os.path.isabs(path) else os.path.relpath(path, directory)
    file = _flow({"file": shown.replace("$", "$$")})
    if not types:
        return [f"source: {file}"]
    lines = ["# Every value of these columns has the type; another value is refused. The others are text."]
    lines += ["source:", f"  {file[1:-1]}", "  types:"]
    return lines + [f"    {_key(name)}: {type_}" for name, type_ in types.items()]


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
ONE_FORM = (
    "# `labels: half_open` writes ranges of whole numbers as [15, 20), the form of other numbers, and not as 15-19.",
)
ELSEWHERE = (
    "# Before a release say where its ledger is, and which folders of the cluster have private copies, which only the",
    "# job may read, and published tables (docs/spark.md):",
    '# private: {url: "sqlite:///qblock/ledger.sqlite", path: ...}',
    "# publish: {..., path: ..., readers_checked: by operator}",
)
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
    if any(of_ranges(p) and p.entry["hierarchy"].get("labels") for p in proposals):
        lines += ONE_FORM
    lines.append("attributes:")
    for p in proposals:
        name = _key(p.profile.column.name)
        if p.profile.column.name in left:
            lines.append(
                f"  {name}: {_flow(decisions.left_open(p.entry))}  # {'sensitive? ' * (p.role != 'decide')}{p.reason}"
            )
            continue
        if p.role == "decide":
            lines.append(f"  # {_plain(name)}: {_flow(p.entry)}  # decide: {p.reason}")
            continue
        entry = f"  {name}: {_flow(p.entry)}" if p.entry is not None else f"  # {_plain(name)}: left out"
        lines.append(f"{entry}  # {p.reason}")
    lines.append("privacy:")
    chosen = entity.chosen
    regime = "once" if chosen is None else "steady"
    k = k_of(rows if chosen is None else chosen.distinct)
    lines.append(f"  - k_anonymity: {{k: {k}}}")
    for p in proposals:
        if p.role == "sensitive" and p.profile.distinct >= 2:
            parameters = {"l": min(3, p.profile.distinct), "sensitive": p.profile.column.name.replace("$", "$$")}
            only = "  # if it is sensitive" if p.profile.column.name in left else ""
            lines.append(f"  - distinct_l_diversity: {_flow(parameters)}{only}")
    lines += ["suppression_limit: 0", *RECODING[regime]]
    publish: dict[str, Any] = {"schema": "published", "view": file_name(title)}
    if ENGINES[engine].is_file:
        # DuckDB calls a database as its file is called, and takes a schema of the same name for it.
        publish = {"url": f"duckdb:///{file_name(title)}_published.duckdb", **publish}
    if not ENGINES[engine].stores:
        lines += ELSEWHERE
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
    parts = [part for part in (table.catalog, table.schema, table.name) if part is not None]
    plain = [part if re.fullmatch(r"\w+", part) else '"' + part.replace('"', '""') + '"' for part in parts]
    return ".".join(plain).replace("$", "$$")
