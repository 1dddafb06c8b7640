"""demo, init, schema: the first minutes."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from qblock.cli.output import Json, answer, console
from qblock.cli.proposal import ask_person, ask_sensitive, proposal_lines
from qblock.cli.streams import say


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
    proposed = propose_spec(
        os.path.expandvars(url),
        table_,
        directory,
        force=force,
        entity=entity,
        ask=ask_person if there else None,
        sensitive=sensitive,
        ask_sensitive=ask_sensitive if there else None,
    )
    if proposed.entity.how == "open":
        say(f"qblock: {proposed.entity.why} (--entity COLUMN sets it)")
    if json_:
        answer(proposed.to_dict())
        return
    out = console()
    for line in proposal_lines(proposed):
        out.print(line)
    if "://" in url and not url.startswith("duckdb:"):
        out.print("Before it, name the database, which the spec does not:")
        print(f"export WAREHOUSE_URL={_shown(url)}")


def _shown(url: str) -> str:
    """A URL for a shell to read; one that may hold a secret is not repeated."""
    if re.search(r"//[^/?#]*:[^/]*@|(password|token|secret)[a-z_]*=", url, re.IGNORECASE):
        return "'THE URL THAT YOU GAVE'"
    return shlex.quote(url)


def schema(
    of: Annotated[
        str | None,
        typer.Option("--of", metavar="ANSWER", help="That of what a command prints with --json instead: search, ..."),
    ] = None,
) -> None:
    """Print the JSON Schema of the spec, for editors; or with --of that of an answer, for programs."""
    from qblock.api import answer_schema, json_schema

    answer(json_schema() if of is None else answer_schema(of))
