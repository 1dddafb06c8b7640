"""ledger upgrade, retype, rekey, move: work on the ledger and the crosswalk themselves."""

from __future__ import annotations

from typing import Annotated

import typer

from qblock.cli.opening import load_release
from qblock.cli.output import Json, SpecPath, answer, console, shown
from qblock.cli.publish import Wait

ledger = typer.Typer(help="The ledger of releases.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.add_typer(ledger, name="ledger")


Target = Annotated[str, typer.Argument(metavar="SPEC|URL", help="A release spec, or the ledger's database.")]


@ledger.command("upgrade")
def upgrade(
    target: Target,
    json_: Json = False,
) -> None:
    """Upgrade the ledger's schema to the version of this program; does nothing where it is up to date."""
    from qblock.api import Ledger

    upgraded = Ledger(target, name_values=True).upgrade()
    if json_:
        answer(upgraded.to_dict())
    else:
        said = f"The ledger went from {upgraded.before} to {upgraded.after}."
        if upgraded.before is None:
            said = f"The ledger is made, at {upgraded.after}."
        elif upgraded.before == upgraded.after:
            said = f"The ledger is at {upgraded.after}: nothing to do."
        console().print(said)


@ledger.command("rekey")
def rekey(
    target: Target,
    wait: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long to wait for runs of any release there.")
    ] = 0,
    json_: Json = False,
) -> None:
    """Give the crosswalk a new key, in one transaction, where the old one may have been read.

    All releases that share the crosswalk move, with everybody in it, people who have left the source too; checks of
    versions together find what they found before. No run may be in progress there (exit status 4, naming the release).
    """
    from qblock.api import BACKUPS, Ledger

    rekeyed = Ledger(target, name_values=True).rekey(wait=wait)
    if json_:
        answer(rekeyed.to_dict())
        return
    out = console()
    out.print(f"The crosswalk has a new key; it is number {rekeyed.keys}, and the older ones are kept for the chain.")
    for release, n in rekeyed.releases.items():
        out.print(f"Release {release}: {shown(n)} people moved to it.")
    out.print(f"Note: {BACKUPS}")


@ledger.command("retype")
def retype(spec: SpecPath, wait: Wait = 0, json_: Json = False) -> None:
    """Convert what is kept of a release to the types that the source's columns have now.

    Needed after a column's type has changed, which the job refuses: every kept value must read the same in both types.
    """
    retyped = load_release(spec).retype(wait=wait)
    if json_:
        answer(retyped.to_dict())
        return
    out = console()
    if retyped.status == "unchanged":
        out.print("The crosswalk has the types of the source's columns: nothing to do.")
    for change in retyped.columns:
        types = f"from {change.before} to {change.now}"
        out.print(f"{change.column}: {types}, {change.values} values are written differently now.")


@ledger.command("move")
def move(
    spec: SpecPath,
    earlier: Annotated[
        str, typer.Option("--from", metavar="NAME", help="The name that the release has had until now.")
    ],
    wait: Wait = 0,
    json_: Json = False,
) -> None:
    """Make release NAME the one that SPEC describes: its name, its source, its view, with all versions and evidence.

    The chain of events continues under the new name. What readers see now is then shown by the view of SPEC.
    """
    moved = load_release(spec).move_from(earlier, wait=wait)
    if json_:
        answer(moved.to_dict())
        return
    out = console()
    if moved.status == "unchanged":
        out.print(f"Nothing to do: release {moved.release} is what the spec says.")
        return
    out.print(f"Release {earlier} is {moved.release} now, published as {moved.view} (version {moved.version}).")
    for note in moved.notes:
        out.print(f"Note: {note}")
    out.print(f"Ledger head {moved.ledger_head} (keep it elsewhere: it shows whether the ledger's end was cut)")
