"""plan, release, verify, rollback: the scheduled job and what it leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from qblock.cli.explore import print_forecast, print_tightest, where
from qblock.cli.job import Hook, Job
from qblock.cli.log import Log
from qblock.cli.opening import load_release
from qblock.cli.output import Churn, Json, Quiet, SpecPath, answer, console
from qblock.cli.progress import progress
from qblock.cli.report import ReportFile
from qblock.cli.result_file import ResultFile
from qblock.cli.words import print_columns
from qblock.errors import InputError

if TYPE_CHECKING:
    from qblock.api import DryRun, Planned, Published, Release

Result = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the result as JSON, however the run ends. A file that is new, empty or the result of an earlier "
        "run is replaced whole.",
    ),
]
REPLACE = "Replace the file of --result whatever it holds, except for files of the release."
HookCommand = Annotated[
    str | None,
    typer.Option(
        metavar="COMMAND",
        help="Run afterwards, however the run ends, with the path of the result file as last argument and without a "
        "shell. If it fails, that is reported, and neither what was published nor the exit status changes.",
    ),
]
HookEnvironment = Annotated[
    list[str] | None,
    typer.Option(
        "--hook-env",
        metavar="NAME",
        help="An environment variable that the hook gets too, besides PATH, HOME, LANG and the QBLOCK_ variables "
        "about the run. Repeatable.",
    ),
]
HookTimeout = Annotated[float, typer.Option(min=0, metavar="SECONDS", help="When the hook is stopped.")]
LogFormat = Annotated[
    str | None, typer.Option(metavar="FORMAT", help="Log each step on standard error: text, or json (JSON lines).")
]
Wait = Annotated[
    float, typer.Option(min=0, metavar="SECONDS", help="How long to wait for another run of this release.")
]
PlanOnly = Annotated[bool, typer.Option("--plan", help="Only show what would be done, step by step; write nothing.")]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("plan")(plan)
    app.command("release")(release)
    app.command("verify")(verify)
    app.command("rollback")(rollback)


def plan(spec: SpecPath, churn: Churn = None, json_: Json = False) -> None:
    """What `release` would do, step by step: exactly the steps that it runs. Writes nothing.

    Whatever a run checks before its search is checked, but of versions that lag: then it ends as the run would (exit
    status 2 or 3).

    Rights that are missing on PostgreSQL are found first, in moments, and listed as statements for an administrator. Of
    a release that lags and has a version the source is opened: whether enough people wait for another one.
    """
    release = load_release(spec)
    print_plan(release.plan(churn=churn), json_, release)


def print_plan(planned: Planned, json_: bool, release: Release | None = None) -> None:
    """Show what is known ahead of a job, and its steps. release: whose levels are said in words."""
    if json_:
        answer(planned.to_dict())
        return
    out = console()
    if planned.changes is not None:
        out.print(f"Changes: {planned.changes.why}")
    if planned.levels is not None:
        out.print(f"Levels: {planned.levels}")
        if release is not None:
            print_columns(release.in_words(planned.levels.next or planned.levels.current))
    for note in planned.notes:
        out.print(f"Note: {note}")
    if planned.missing_rights:
        out.print("Missing rights, for an administrator to grant (`qblock grants SPEC` says what each is for):")
        for right in planned.missing_rights:
            out.print(f"    {right.statement}", soft_wrap=True)
    steps = Table.grid(padding=(0, 1))
    for number, step in enumerate(planned.steps, 1):
        steps.add_row(f"{number:2}.", step.description)
    out.print(steps)
    if planned.forecast is not None:
        print_forecast(planned.to_dict()["forecast"])


def release(
    spec: SpecPath,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Publish again even if nothing has changed, or if the release was retired. Includes --result-force.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Decide and publish nothing. What a run would come to is in the ledger alone (`history`), since it "
            "depends on people whom no version shows yet: output and exit status are always the same.",
        ),
    ] = False,
    wait: Wait = 0,
    result: Result = None,
    result_force: Annotated[bool, typer.Option("--result-force", help=REPLACE)] = False,
    hook: HookCommand = None,
    hook_timeout: HookTimeout = 60,
    hook_env: HookEnvironment = None,
    log_format: LogFormat = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="The same as --log-format text.")] = False,
    report_: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Write the report of what is published then, as `qblock report` does. Whether that succeeds changes "
            "neither what was published nor the exit status.",
        ),
    ] = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """The scheduled job: search, copy, check the copy, publish it behind the view; or refuse and publish nothing.

    Same data and same spec as the published version: nothing to do, exit status 0. If over 20 % of the people changed
    since the last run, it stops with exit status 3 until you confirm: `versions.confirm` names the digest that the
    message (and `confirm` of the JSON result) gives.
    """
    from qblock.api import waiting_words

    log = Log.of(log_format, verbose)
    replaced = ResultFile(result, force=force or result_force) if result is not None else None
    job = Job(log, replaced, Hook.of(hook, hook_timeout, hook_env or ()), spec)
    if dry_run and report_ is not None:
        raise InputError("--report is about what is published, and --dry-run publishes nothing; give one of them")

    words: dict[str, str] = {}

    def perform() -> Published | DryRun:
        loaded = load_release(spec)
        job.begin(loaded)
        file = None if report_ is None else ReportFile(report_, loaded, "--report")
        if dry_run:
            return loaded.dry_run(wait=wait)
        with nullcontext(log.progress()) if log.format is not None else progress(quiet) as report:
            published = loaded.publish(force=force, wait=wait, progress=report, entries=log)
        words.update(published.in_words)
        if file is not None:
            file.try_to_write()
        return published

    def show(fields: dict[str, Any]) -> None:
        if json_:
            answer(fields)
        elif fields["status"] == "dry_run":
            console().print(f"A dry run of {fields['release']} is done: `qblock history` has what it came to.")
        elif fields["status"] == "unchanged":
            again, version = "--force publishes again.", fields["version"]
            if fields["waiting"]:
                console().print(f"Version {version} stays: {waiting_words(fields['waiting'], fields['lag'])}; {again}")
            else:
                console().print(f"Nothing to do: version {version} holds this data and this spec; {again}")
        elif "reason" not in fields:
            _print_published(fields, "Published", words, verbose=verbose)

    job.run(perform, show)


def _print_published(fields: dict[str, Any], what: str, words: Mapping[str, str], *, verbose: bool = False) -> None:
    from qblock.api import waiting_words

    out = console()
    out.print(f"{what} version {fields['version']} as {fields['view']}: {fields['rows']:,} rows", end="")
    out.print(f", {fields['suppressed']:,} suppressed" if fields["suppressed"] else "")
    print_columns(words)
    print_tightest(fields["tightest"])
    if fields["waiting"]:
        out.print(f"Not shown yet: {waiting_words(fields['waiting'], fields['lag'])}")
    for note in fields.get("notes", []):
        out.print(f"Note: {note}")
    if verbose:
        out.print(where(fields))
    out.print(f"Content {fields['digest']}")
    out.print(f"Ledger head {fields['ledger_head']} (keep it elsewhere: it shows whether the ledger's end was cut)")


def verify(
    spec: SpecPath,
    head: Annotated[str | None, typer.Option(help="The last ledger head that you kept.")] = None,
    json_: Json = False,
) -> None:
    """Recompute the guarantees of the published version from what is published, and compare them with the ledger."""
    result = load_release(spec).verify(head=head)
    fields = result.to_dict()
    if json_:
        answer(fields)
    else:
        out = console()
        for problem in fields["problems"]:
            out.print(f"PROBLEM: {problem}")
        agree = "" if fields["problems"] else "What is published is what was checked: version"
        out.print(f"{agree or 'Version'} {fields['version']} of {fields['release']}, {fields['rows']:,} rows.")
        print_columns(result.in_words)
        print_tightest(fields["tightest"])
        for what, names in (
            ("against private counts, since the published rows do not suffice", fields["recomputed_privately"]),
            ("not verified again", fields["not_recomputed"]),
        ):
            if names:
                out.print(f"{', '.join(names)}: {what}")
        if not fields["problems"]:
            out.print("Rows, content, guarantees and the ledger's chain agree.")
    result.raise_problems()


def rollback(
    spec: SpecPath,
    version: Annotated[int, typer.Argument(min=1, metavar="VERSION", help="The version; `history` lists them.")],
    plan_: PlanOnly = False,
    wait: Wait = 0,
    result: Result = None,
    result_force: Annotated[bool, typer.Option("--result-force", "--force", help=REPLACE)] = False,
    hook: HookCommand = None,
    hook_timeout: HookTimeout = 60,
    hook_env: HookEnvironment = None,
    log_format: LogFormat = None,
    json_: Json = False,
) -> None:
    """Publish an older version again, after the same checks as a release: its kept copy is recounted.

    Its content and guarantees must be those in the ledger, and it must satisfy what the spec asks now. The next
    `release` publishes the source's data again.
    """
    if plan_:
        print_plan(load_release(spec).plan_rollback(version, wait=wait), json_)
        return
    log = Log.of(log_format, False)
    replaced = ResultFile(result, force=result_force) if result is not None else None
    job = Job(log, replaced, Hook.of(hook, hook_timeout, hook_env or ()), spec)

    words: dict[str, str] = {}

    def perform() -> Published:
        loaded = load_release(spec)
        job.begin(loaded)
        published = loaded.rollback(version, wait=wait, entries=log)
        words.update(published.in_words)
        return published

    def show(fields: dict[str, Any]) -> None:
        if json_:
            answer({**fields, "version": version})
        elif fields["status"] == "unchanged":
            console().print(f"Nothing to do: readers already see version {version}, and it passes every check.")
        elif "reason" not in fields:
            _print_published(fields, "Rolled back to", words)

    job.run(perform, show)
