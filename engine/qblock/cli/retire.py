"""retire: a release is taken away from its readers."""

from __future__ import annotations

import typer

from qblock.cli.opening import load_release
from qblock.cli.output import Json, SpecPath, answer, console
from qblock.cli.publish import Wait


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("retire")(retire)


def retire(spec: SpecPath, wait: Wait = 0, json_: Json = False) -> None:
    """Take the view away from its readers at once; versions, ledger and crosswalk stay.

    `release` and `rollback` refuse from then on; `release --force` publishes it again.
    """
    retired = load_release(spec).retire(wait=wait)
    if json_:
        answer(retired.to_dict())
        return
    out = console()
    what = "was retired before" if retired.status == "unchanged" else "is retired"
    version = "of which the ledger knew no version" if retired.version is None else f"version {retired.version}"
    out.print(f"Release {retired.release} {what}: {retired.view} shows nothing any more ({version}).")
    for note in retired.notes:
        out.print(f"Note: {note}")
    out.print(f"Ledger head {retired.ledger_head} (keep it elsewhere: it shows whether the ledger's end was cut)")
