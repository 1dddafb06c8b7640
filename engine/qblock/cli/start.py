"""demo, init, schema: the first minutes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from qblock.cli.output import Json, answer, console, table


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
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    json_: Json = False,
) -> None:
    """Profile a table, propose a role for each column, and write a spec and hierarchy files to edit."""
    from qblock.api import propose_spec

    found = propose_spec(os.path.expandvars(url), table_, directory, force=force)
    if json_:
        answer(found.to_dict())
        return
    out = console()
    rows = [[c.name, c.role, f"{c.distinct:,}", f"{c.nulls:,}", c.reason] for c in found.columns]
    out.print(table("", ["column", "role", "values", "NULLs", "why"], rows))
    out.print("\nWritten: " + ", ".join(str(file) for file in found.files))
    out.print(f"Next: check the roles and hierarchies, then `qblock search {found.files[-1]}`")


def schema() -> None:
    """Print the JSON Schema of the spec, for editors."""
    from qblock.api import json_schema

    answer(json_schema())
