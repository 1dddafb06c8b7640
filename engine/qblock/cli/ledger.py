"""ledger upgrade: what is done to the ledger itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qblock.cli.output import Json, answer, console
from qblock.release.migrate import upgrade_ledger
from qblock.release.private import place_of, place_of_url
from qblock.spec import load_spec

ledger = typer.Typer(help="The ledger of releases.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.add_typer(ledger, name="ledger")


@ledger.command("upgrade")
def upgrade(
    target: Annotated[str, typer.Argument(metavar="SPEC|URL", help="A release spec, or the ledger's database.")],
    json_: Json = False,
) -> None:
    """Bring the ledger's schema to the version of this program; does nothing when it is there already."""
    place = place_of_url(target, Path.cwd()) if "://" in target else place_of(load_spec(target))
    before, after = upgrade_ledger(place)
    if json_:
        answer({"before": before, "after": after})
    else:
        same = f"The ledger is at {after}: nothing to do."
        console().print(same if before == after else f"The ledger went from {before} to {after}.")
