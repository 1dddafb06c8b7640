"""ledger upgrade, retype, rekey, move: work on the ledger and the crosswalk themselves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qblock.cli.output import Json, SpecPath, answer, console, shown
from qblock.cli.publish import Wait

if TYPE_CHECKING:
    from qblock.ledger.place import Place

ledger = typer.Typer(help="The ledger of releases.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.add_typer(ledger, name="ledger")


Target = Annotated[str, typer.Argument(metavar="SPEC|URL", help="A release spec, or the ledger's database.")]


def _place(target: str) -> Place:
    from qblock.ledger.stores import place_of, place_of_url
    from qblock.spec import load_spec

    return place_of_url(target, Path.cwd()) if "://" in target else place_of(load_spec(target))


@ledger.command("upgrade")
def upgrade(
    target: Target,
    json_: Json = False,
) -> None:
    """Upgrade the ledger's schema to the version of this program; does nothing where it is up to date."""
    from qblock.ledger.migrate import upgrade_ledger

    place = _place(target)
    before, after = upgrade_ledger(place)
    if json_:
        answer({"before": before, "after": after})
    else:
        same = f"The ledger is at {after}: nothing to do."
        console().print(same if before == after else f"The ledger went from {before} to {after}.")


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
    from qblock.release.rekey import BACKUPS
    from qblock.release.rekey import rekey as run_rekey

    found = run_rekey(_place(target), wait=wait)
    if json_:
        answer(found.to_json())
        return
    out = console()
    out.print(f"The crosswalk has a new key; it is number {found.keys}, and the older ones are kept for the chain.")
    for release, n in found.releases.items():
        out.print(f"Release {release}: {shown(n)} people moved to it.")
    out.print(f"Note: {BACKUPS}")


@ledger.command("retype")
def retype(spec: SpecPath, wait: Wait = 0, json_: Json = False) -> None:
    """Convert what is kept of a release to the types that the source's columns have now.

    Needed after a column's type has changed, which the job refuses: every kept value must read the same in both types.
    """
    from qblock.release.retype import retype as run_retype
    from qblock.spec import load_spec

    found = run_retype(load_spec(spec), wait=wait)
    if json_:
        answer(found.to_json())
        return
    out = console()
    if found.status == "unchanged":
        out.print("The crosswalk has the types of the source's columns: nothing to do.")
    for one in found.columns:
        out.print(f"{one.column}: from {one.before} to {one.now}, {one.values} values are written differently now.")


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
    from qblock.release.move import move as run_move
    from qblock.spec import load_spec

    found = run_move(load_spec(spec), earlier, wait=wait)
    if json_:
        answer(found.to_json())
        return
    out = console()
    if found.status == "unchanged":
        out.print(f"Nothing to do: release {found.release} is what the spec says.")
        return
    out.print(f"Release {found.earlier} is {found.release} now, published as {found.view} (version {found.version}).")
    for note in found.notes:
        out.print(f"Note: {note}")
    out.print(f"Ledger head {found.ledger_head} (keep it elsewhere: it shows whether the ledger's end was cut)")
