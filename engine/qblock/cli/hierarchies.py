"""hierarchy build, check, load."""

from __future__ import annotations

from typing import Annotated

import typer

from qblock.cli.opening import load_release
from qblock.cli.output import Json, SpecPath, answer, console, table
from qblock.errors import InputError, choices

group = typer.Typer(
    help="Generalization hierarchies: build CSV files, check them against the source, load them as dimension tables.",
    no_args_is_help=True,
)


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(group, name="hierarchy")


@group.command("build")
def build(
    spec: SpecPath,
    directory: Annotated[str, typer.Option(help="Where the CSV files are written.")] = "hierarchies",
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    layout: Annotated[
        str,
        typer.Option(
            metavar="LAYOUT", help="header (which names the levels), or semicolons without one, as other tools read it."
        ),
    ] = "header",
    json_: Json = False,
) -> None:
    """Write every hierarchy of the spec as a CSV file, with the values that the source holds now."""
    from qblock.api import LAYOUTS

    if layout not in LAYOUTS:
        raise InputError(f"--layout {layout}: there is no such layout; {choices(LAYOUTS, layout)}")
    written = load_release(spec).build_hierarchies(directory, force=force, layout=layout)
    if json_:
        answer(written.to_dict())
    else:
        console().print("Written: " + ", ".join(map(str, written.files)))


@group.command("check")
def check(spec: SpecPath, json_: Json = False) -> None:
    """Check that every hierarchy is well formed and covers every value of the source; lists what is missing."""
    checked = load_release(spec).check_hierarchies()
    if json_:
        answer(checked.to_dict())
        return
    out = console()
    cells = [list(row) for row in checked.rows_shown()]
    out.print(table("", ["quasi-identifier", "height", "labels at each level, leaf first"], cells))
    out.print(f"Every hierarchy is nested and covers all {checked.rows:,} rows of the source.")


@group.command("load")
def load(spec: SpecPath, json_: Json = False) -> None:
    """Write the hierarchies as dimension tables, which a spec may name: in the schema qblock on PostgreSQL, a file
    beside the ledger on DuckDB, the schema of private.path on Spark."""
    loaded = load_release(spec).load_hierarchies()
    if json_:
        answer(loaded.to_dict())
    else:
        console().print("Loaded: " + ", ".join(loaded.tables))
