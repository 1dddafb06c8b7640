"""hierarchy build, check, load: generalization hierarchies as files and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from qblock.cli.output import Json, Lines, SpecPath, deliver, load_release, table
from qblock.errors import InputError, choices

if TYPE_CHECKING:
    from qblock.api import Checked, HierarchyTables

hierarchy = typer.Typer(
    help="Build, check and load generalization hierarchies.",
    no_args_is_help=True,
)


@hierarchy.command("build")
def build(
    spec: SpecPath,
    directory: Annotated[str, typer.Option(help="Where the CSV files are written.")] = "hierarchies",
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    layout: Annotated[
        str,
        typer.Option(
            metavar="LAYOUT",
            help="header: the first line names the levels. semicolons: no header, as other tools read it.",
        ),
    ] = "header",
    json_: Json = False,
) -> None:
    """Write every hierarchy of the spec as a CSV file.

    The files have the values that the source holds now.
    """
    from qblock.api import LAYOUTS

    if layout not in LAYOUTS:
        raise InputError(f"--layout {layout}: no such layout; {choices(LAYOUTS, layout)}")
    written = load_release(spec).build_hierarchies(directory, force=force, layout=layout)
    deliver(written, ["Written: " + ", ".join(map(str, written.files))], json_)


@hierarchy.command("check")
def check(spec: SpecPath, json_: Json = False) -> None:
    """Check every hierarchy against the source.

    A hierarchy must be well formed and cover every value. The check lists what is missing.
    """
    checked = load_release(spec).check_hierarchies()
    deliver(checked, _checked(checked), json_)


def _checked(checked: Checked) -> Lines:
    cells = [list(row) for row in checked.rows_shown()]
    yield table("", ["quasi-identifier", "height", "labels at each level, leaf first"], cells)
    lacking = [of for of in checked.hierarchies if of.uncovered]
    for of in lacking:
        rows = f"{of.uncovered:,} of {checked.rows:,} rows"
        yield f"{of.attribute} lacks the values of {rows}: `uncovered: top` hides them."
    if checked.quarantined:
        yield f"{checked.quarantined:,} further rows wait for a hierarchy with their values (`uncovered: quarantine`)."
    covered = "the other rows" if lacking else f"all {checked.rows:,} rows"
    yield f"Every hierarchy is nested and covers {covered} of the source."


@hierarchy.command("load")
def load(spec: SpecPath, json_: Json = False) -> None:
    """Write the hierarchies as dimension tables.

    They lie where the ledger is: in the schema qblock on PostgreSQL, or in a file of the private folder. Of a release
    on Spark they lie in the schema of private.path. A spec of the same database may name them.
    """
    loaded = load_release(spec).load_hierarchies()
    deliver(loaded, _loaded(loaded), json_)


def _loaded(loaded: HierarchyTables) -> Lines:
    if loaded.file is not None:
        yield f"Loaded, into {loaded.file}: {', '.join(loaded.tables)}"
        yield "A query joins them after ATTACH; a spec cannot name tables of this file."
        return
    yield "Loaded. A spec of this database may name them:"
    yield from loaded.entries
