"""erase: people withdraw from a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qblock.cli.asking import check_asking, confirmed
from qblock.cli.log import Log
from qblock.cli.opening import load_release
from qblock.cli.output import Json, Quiet, SpecPath, answer, console
from qblock.cli.progress import progress_once_begun
from qblock.cli.publish import LogFormat, PlanOnly, Wait, print_plan
from qblock.cli.streams import say
from qblock.errors import InputError
from qblock.files import read_input

if TYPE_CHECKING:
    from qblock.api import Sharing


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("erase")(erase)


def erase(
    spec: SpecPath,
    people: Annotated[
        list[str] | None, typer.Argument(metavar="[ENTITY]...", help="Values of the entity column, as text.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file with one on each line, in addition to those named.")
    ] = None,
    missing: Annotated[
        bool,
        typer.Option(
            "--missing",
            help="Those whom a version that is kept shows and the source has no more, instead of people who are named.",
        ),
    ] = False,
    confirm: Annotated[
        int | None,
        typer.Option(
            "--confirm",
            min=0,
            metavar="NUMBER",
            help="How many are missing (--missing): needed where they are more than a fifth of the people; nothing is "
            "done if it is another number.",
        ),
    ] = None,
    now: Annotated[
        bool,
        typer.Option(
            "--now",
            help="They leave at once, with everybody who shares a joint cell with them: a version without them is "
            "published, and the versions that show them are dropped. How many that are is said, and asked, before.",
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask nobody whether they are to leave at once (--now): for scripts.")
    ] = False,
    plan_: PlanOnly = False,
    wait: Wait = 0,
    log_format: LogFormat = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """People withdraw from a release that names its entities.

    Without --now they wait until enough people of their block withdraw, and leave together with a later release: if one
    person left alone, whoever kept the version before would learn their value. Copies that readers have made cannot be
    recalled. People are named exactly, by the text of the entity column; where a name is nobody's, nothing is done.

    --missing finds them by itself. Where more than a fifth of the people are missing, the source may be wrong: exit
    status 3 without --confirm, and always where it is empty.

    --now takes whole joint cells, with people who did not withdraw. So it says how many that are and asks; where nobody
    can be asked, exit status 2 without --yes. With --plan it only says so.
    """
    log = Log.of(log_format, False)
    loaded = load_release(spec)
    if now and not plan_ and not yes:
        check_asking(
            "--now takes people out with their whole joint cells, others in them included; --plan says how many"
        )
    if missing and file is not None:
        raise InputError("--missing is about those whom the source has no more: name nobody, and give no file")
    named = [*(people or []), *(_lines(file) if file is not None else [])]
    if plan_:
        print_plan(loaded.plan_erase(named, missing=missing, confirm=confirm, now=now, wait=wait), json_)
        return
    with progress_once_begun(quiet or not now or log.format is not None) as report:

        def agree(sharing: Sharing) -> bool:
            if log.format is None:
                say(f"qblock: {sharing}")
            return yes or confirmed("Take them out at once?")

        erasure = loaded.erase(
            named, missing=missing, confirm=confirm, now=now, agree=agree, wait=wait, progress=report, entries=log
        )
    if json_:
        answer(erasure.to_dict())
        return
    out = console()
    if erasure.status == "unchanged":
        out.print("Nothing to do.")
        for note in erasure.notes:
            out.print(f"Note: {note}")
        return
    companions = f", and {erasure.companions} who share their joint cells" if erasure.companions else ""
    who = "1 person" if erasure.asked == 1 else f"{erasure.asked} people"
    who += " whom the source has no more" if missing else " named"
    out.print(f"{who}, {erasure.shown} of them shown by some version{companions}: {erasure.status}.")
    if erasure.published is not None:
        out.print(f"Readers see version {erasure.published.version}, which shows none of them.")
    if erasure.retired:
        noun = "versions" if len(erasure.retired) > 1 else "version"
        out.print(f"Dropped: {noun} {', '.join(map(str, erasure.retired))}.")
    for note in erasure.notes:
        out.print(f"Note: {note}")


def _lines(file: Path) -> list[str]:
    return [line for line in read_input(file, "the file of people").splitlines() if line]
