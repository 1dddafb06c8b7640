"""adopt: a version that was published without a crosswalk is recorded in one."""

from __future__ import annotations

from typing import Annotated

import typer

from qblock.cli.log import Log
from qblock.cli.opening import at_terminal
from qblock.cli.output import Json, SpecPath, answer, console
from qblock.cli.publish import LogFormat, PlanOnly, Wait, print_plan


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("adopt")(adopt)


def adopt(
    spec: SpecPath,
    same_people: Annotated[
        bool,
        typer.Option(
            "--same-people",
            help="State that nobody was exchanged for another one with the same values since the version was "
            "published. Equal content does not prove it; the ledger keeps the statement, and every later result shows "
            "it.",
        ),
    ] = False,
    plan_: PlanOnly = False,
    wait: Wait = 0,
    log_format: LogFormat = None,
    json_: Json = False,
) -> None:
    """Record who is in a version that was published without `entity`, so that later ones are checked with it.

    Only where that version is the only one that was ever published, and the source still gives its content. The spec
    says `entity: COLUMN` now, and is as it was otherwise. Nothing that readers see changes.
    """
    loaded = at_terminal(spec)
    if plan_:
        print_plan(loaded.plan_adopt(wait=wait), json_)
        return
    found = loaded.adopt(same_people=same_people, wait=wait, entries=Log.of(log_format, False))
    if json_:
        answer(found.to_dict())
        return
    out = console()
    if found.status == "unchanged":
        out.print(f"Nothing to do: the crosswalk of {found.release} has version {found.version}.")
    else:
        out.print(
            f"Version {found.version} of {found.release} is adopted, with {found.people:,} people: the next versions "
            "are checked together with it."
        )
    for note in found.notes:
        out.print(f"Note: {note}")
    out.print(f"Ledger head {found.ledger_head} (keep it elsewhere: it shows whether the ledger's end was cut)")
