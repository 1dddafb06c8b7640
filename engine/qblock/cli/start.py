"""demo, init, schema: the first minutes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qblock.cli.output import Json, answer, console, table

if TYPE_CHECKING:
    from qblock.api import Candidate, ProposedColumn


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("demo")(demo)
    app.command("init")(init)
    app.command("schema")(schema)


def demo(
    directory: Annotated[str, typer.Argument(metavar="[DIR]", help="Where the demo is written.")] = "qblock-demo",
    rows: Annotated[int, typer.Option(min=1000, help="How many people to make up.")] = 50_000,
    seed: Annotated[int, typer.Option(help="Another seed makes up other people.")] = 1,
    url: Annotated[
        str | None, typer.Option(help="A PostgreSQL database to write the people to, instead of a DuckDB file.")
    ] = None,
) -> None:
    """Make up census-like people, write them to a warehouse, and run the release job on them, explaining each step."""
    from qblock.api import run_demo

    run_demo(Path(directory), rows=rows, seed=seed, url=url, console=console(markup=True))


def init(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL|FILE", help="duckdb:///FILE or postgresql://USER@HOST/DATABASE; or Parquet or CSV files."
        ),
    ],
    table_: Annotated[
        str | None,
        typer.Argument(metavar="[TABLE]", help="The table or view of the database: table or schema.table."),
    ] = None,
    directory: Annotated[str, typer.Option(help="Where release.yaml and hierarchies/ are written.")] = ".",
    entity: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|none", help="Who a row is about; else what the columns tell, asked where in doubt."
        ),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN|none",
            help="A column that nobody may learn about a person; again for each. Else asked, or left open as `???`.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing: what needs a decision is left open.")] = False,
    json_: Json = False,
) -> None:
    """Profile a table, propose a role for each column, and write a spec and hierarchy files to edit.

    The spec says who a row is about: a column that looks like an identifier and differs from row to row (one row per
    person), or repeats (several). Where several columns may say it, you are asked on a terminal (not with --json);
    elsewhere the best guess is written where it is clear, and the candidates are comments where none is.

    Which columns are sensitive is never guessed into a spec that runs: you are asked, or `???` stands where you decide.
    """
    from qblock.api import propose_spec

    there = not json_ and not yes and all(s is not None and s.isatty() for s in (sys.stdin, sys.stderr))
    found = propose_spec(
        os.path.expandvars(url),
        table_,
        directory,
        force=force,
        entity=entity,
        ask=_ask if there else None,
        sensitive=sensitive,
        ask_sensitive=_ask_sensitive if there else None,
    )
    if found.entity.how == "open":
        print(f"qblock: who a row is about: {found.entity.why} (--entity COLUMN says it)", file=sys.stderr)
    if json_:
        answer(found.to_dict())
        return
    out = console()
    if found.types:
        named = ", ".join(f"{name} ({type_})" for name, type_ in found.types)
        out.print(f"Types of {len(found.types)} of {len(found.columns)} columns, the others are text: {named}")
    for note in found.notes:
        out.print(f"Note: {note}.")
    undecided = dict(found.open)
    rows = [
        [c.name, "???" if c.name in undecided else c.role, c.values, f"{c.nulls:,}", c.reason] for c in found.columns
    ]
    out.print(table("", ["column", "role", "values", "NULLs", "why"], rows))
    whose = [
        [c.column, f"{c.distinct:,}", f"{c.rows_mean:.3g}", f"{c.rows_most:,}", c.meaning]
        for c in found.entity.candidates
    ]
    if whose:
        out.print(
            table("\nWho a row may be about", ["column", "values", "rows of each", "at most", "as entity"], whose)
        )
    out.print(f"\nWho a row is about: {found.entity.why}")
    out.print(found.alone)
    out.print(REGIMES[found.regime])
    out.print("\nWritten: " + ", ".join(str(file) for file in found.files))
    out.print(f"Lattice: {found.nodes:,} nodes{TOO_MANY if found.nodes > MOST_NODES else ''}")
    spec = found.files[-1]
    if undecided:
        where = ", ".join(f"{name} (line {line})" for name, line in undecided.items())
        out.print(f"Next: decide in {spec} whether these are sensitive: {where}; then `qblock search {spec}`")
    else:
        out.print(f"Next: check the roles and hierarchies, then `qblock search {spec}`")


REGIMES = {
    "steady": "Published again and again: who comes, leaves or changes is shown in batches. The spec names other ways.",
    "once": "Published once: a later run with changed data will be refused. The spec names other ways.",
}
"""What the spec is as it is written."""


MOST_NODES = 2_000
TOO_MANY = (
    ": a search of so many takes long. Give columns fewer levels, `max: LEVEL`, or a role that is not quasi_identifier"
)
NOBODY = "rows are counted, not people; a later run with changed data is refused, or nothing protects versions together"


def _ask(candidates: Sequence[Candidate]) -> str:
    """Who a row is about, by a number on the terminal; standard output is for the answer."""
    print("Who is a row about?", file=sys.stderr)
    choices = [*((one.column, one.meaning) for one in candidates), ("none", NOBODY)]
    for number, (name, means) in enumerate(choices, 1):
        print(f"  {number}  {name}: {means}", file=sys.stderr)
    while True:
        given = int(typer.prompt("Number", default=1, type=int, err=True))
        if 1 <= given <= len(choices):
            return choices[given - 1][0]
        print(f"a number from 1 to {len(choices)}", file=sys.stderr)


def _ask_sensitive(candidates: Sequence[ProposedColumn]) -> list[str]:
    """Which columns are sensitive, by their numbers on the terminal."""
    print("Which columns are sensitive: what nobody may learn about a person?", file=sys.stderr)
    for number, one in enumerate(candidates, 1):
        print(f"  {number}  {one.name}: {one.reason}", file=sys.stderr)
    print("  0  none of them: they are left out", file=sys.stderr)
    every = ",".join(str(number) for number in range(1, len(candidates) + 1))
    while True:
        given = str(typer.prompt("Numbers", default=every, err=True)).replace(",", " ").split()
        if given == ["0"]:
            return ["none"]
        if given and all(one.isdecimal() and 1 <= int(one) <= len(candidates) for one in given):
            return [candidates[int(one) - 1].name for one in dict.fromkeys(given)]
        print(f"numbers from 1 to {len(candidates)} with commas between, or 0", file=sys.stderr)


def schema(
    of: Annotated[
        str | None,
        typer.Option("--of", metavar="ANSWER", help="That of what a command prints with --json instead: search, ..."),
    ] = None,
) -> None:
    """Print the JSON Schema of the spec, for editors; or with --of that of an answer, for programs."""
    from qblock.api import answer_schema, json_schema

    answer(json_schema() if of is None else answer_schema(of))
