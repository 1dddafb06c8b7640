"""plan, release, verify, rollback, erase, retire: the scheduled job and what becomes of what it leaves behind."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from qblock.cli.evidence import ReportFile
from qblock.cli.job import (
    REPLACE,
    Hook,
    HookCommand,
    HookEnvironment,
    HookTimeout,
    Job,
    Log,
    LogFormat,
    Result,
    Wait,
)
from qblock.cli.output import (
    Churn,
    Json,
    Lines,
    Quiet,
    SpecPath,
    Unwrapped,
    answer,
    check_asking,
    confirmed,
    deliver,
    display,
    head_line,
    listed,
    load_release,
    progress,
)
from qblock.cli.render import column_words, forecast_lines, frontier_lines, guarantee_lines, stopping_lines, where
from qblock.cli.streams import say
from qblock.errors import InputError
from qblock.files import read_input

if TYPE_CHECKING:
    from qblock.api import DryRun, Ended, Erased, Planned, Published, Release, Sharing, Verified
    from qblock.cli.job import RunResult

PlanOnly = Annotated[bool, typer.Option("--plan", help="Show what would be done, step by step, and write nothing.")]


def plan(spec: SpecPath, churn: Churn = None, json_: Json = False, quiet: Quiet = False) -> None:
    """Show what `release` would do, step by step; writes nothing.

    The steps are exactly those that `release` runs. plan makes every check that a run makes before its search, and ends
    as that run would (exit status 2 or 3). Once a release whose versions are checked together has a version, plan makes
    only some of these checks.

    Missing rights on PostgreSQL are found first, in moments, and listed as statements for an administrator. If a
    release lags and has a version, plan opens the source: do enough people wait for another version?
    """
    release = load_release(spec)
    with progress(quiet or churn is None, at_once=False) as report:
        planned = release.plan(churn=churn, progress=report)
    deliver(planned, _planned(planned, release), json_)
    planned.raise_refused()


def _planned(planned: Planned, release: Release | None = None) -> Lines:
    """What is known ahead of a job, and its steps. release: whose levels are said in words."""
    if planned.changes is not None:
        yield f"Changes: {planned.changes.why}"
    if planned.levels is not None:
        yield f"Levels: {planned.levels}"
        if release is not None:
            yield column_words(release.in_words(planned.levels.next or planned.levels.current))
    yield from listed("Note", planned.notes)
    yield from stopping_lines(planned.checks)
    if planned.missing_rights:
        yield "Missing rights, for an administrator to grant (`qblock grants SPEC` says what each is for):"
        yield from (Unwrapped(f"    {right.statement}") for right in planned.missing_rights)
    steps = Table.grid(padding=(0, 1))
    steps.add_column()
    # A path that is wider than the page goes on below itself.
    steps.add_column(overflow="fold")
    for number, step in enumerate(planned.steps, 1):
        steps.add_row(f"{number:2}.", step.description)
    yield steps
    if planned.forecast is not None:
        yield from forecast_lines(planned.forecast)
    if planned.frontier is not None:
        yield from frontier_lines(planned.frontier)


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
            help="Decide, and publish nothing. The ledger alone (`history`) says what a run would come to. "
            "That depends on people whom no version shows yet, so output and exit status are always the "
            "same.",
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
            help="Write the report of what is published then, as `qblock report` does. If that fails, what "
            "was published and the exit status stay the same.",
        ),
    ] = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Publish: search, copy, check the copy, show it in the view.

    This is the scheduled job. If a check fails, it refuses and publishes nothing. If data and spec are those of the
    published version, it has nothing to do (exit status 0).

    If over 20 % of the people changed since the last run, it stops with exit status 3 until you confirm. The message,
    and `confirm` of the JSON result, names a digest: write it as `versions.confirm`.
    """
    log = Log.of(log_format, verbose)
    hooked = Hook.of(hook, hook_timeout, hook_env or ())
    job = Job(spec, log, hooked, result, force=force or result_force)
    if dry_run and report_ is not None:
        raise InputError("--report needs a published version, and --dry-run publishes nothing; give one of them")

    def perform(loaded: Release) -> Published | DryRun:
        file = None if report_ is None else ReportFile(report_, loaded, "--report")
        if dry_run:
            return loaded.dry_run(wait=wait)
        with nullcontext(log.progress()) if log.format is not None else progress(quiet) as report:
            published = loaded.publish(force=force, wait=wait, progress=report, entries=log)
        if file is not None:
            file.try_to_write()
        return published

    def show(result: RunResult) -> None:
        deliver(result, _published(result, "Published", verbose=verbose), json_)

    job.run(perform, show)


def _published(result: RunResult, what: str, *, verbose: bool = False) -> Lines:
    """What a run has published; nothing of one that failed, which says so itself."""
    from qblock.api import Published, waiting_words

    if result.status == "dry_run":
        yield f"A dry run of {result.release} is done. `qblock history` shows its result."
    if result.reason is not None or not isinstance(result, Published):
        return
    waiting = waiting_words(result.waiting, result.lag.to_dict()) if result.waiting else ""
    if result.status == "unchanged":
        stays = f"Version {result.version} stays: {waiting}"
        same = f"Nothing to do: version {result.version} holds this data and this spec"
        yield f"{stays if waiting else same}; --force publishes again."
        return
    suppressed = f", {result.suppressed:,} suppressed" if result.suppressed else ""
    yield f"{what} version {result.version} as {result.view}: {result.rows:,} rows{suppressed}"
    yield column_words(result.in_words)
    yield from guarantee_lines(result.tightest)
    if waiting:
        yield f"Not shown yet: {waiting}"
    yield from listed("Note", result.notes)
    if verbose:
        yield where(result)
    yield f"Content {result.digest}"
    yield head_line(result.ledger_head)


def verify(
    spec: SpecPath,
    head: Annotated[
        str | None, typer.Option(help="The last ledger head that you kept. It shows whether the ledger's end was cut.")
    ] = None,
    json_: Json = False,
) -> None:
    """Recompute the guarantees and compare them with the ledger.

    They are recomputed from what is published.
    """
    result = load_release(spec).verify(head=head)
    deliver(result, _verified(result), json_)
    result.raise_problems()


def _verified(result: Verified) -> Lines:
    yield from listed("PROBLEM", result.problems)
    agree = "" if result.problems else "Published as it was checked: version"
    yield f"{agree or 'Version'} {result.version} of {result.release}, {result.rows:,} rows."
    yield column_words(result.in_words)
    yield from guarantee_lines(result.tightest)
    if result.recomputed_privately:
        names = ", ".join(result.recomputed_privately)
        yield f"{names}: against private counts, since the published rows do not suffice"
    if result.not_recomputed:
        yield f"{', '.join(result.not_recomputed)}: not verified again"
    if not result.problems:
        yield "Rows, content, guarantees and the ledger's chain agree."


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
    """Publish an older version again, after the checks of a release.

    Its kept copy is recounted. Its content and guarantees must be those in the ledger, and it must satisfy what the
    spec asks now. The next `release` publishes the source's data again.
    """
    if plan_:
        planned = load_release(spec).plan_rollback(version, wait=wait)
        deliver(planned, _planned(planned), json_)
        return
    log = Log.of(log_format, False)
    job = Job(spec, log, Hook.of(hook, hook_timeout, hook_env or ()), result, force=result_force)

    def perform(loaded: Release) -> Published:
        return loaded.rollback(version, wait=wait, entries=log)

    def show(result: RunResult) -> None:
        if json_:
            answer(result.model_copy(update={"version": version}))
        elif result.status == "unchanged" and result.reason is None:
            display([f"Nothing to do: readers already see version {version}, and it passes every check."])
        else:
            display(_published(result, "Rolled back to"))

    job.run(perform, show)


def erase(
    spec: SpecPath,
    people: Annotated[
        list[str] | None, typer.Argument(metavar="[ENTITY]...", help="Values of the entity column, as text.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file with one value on each line, in addition to those named."),
    ] = None,
    missing: Annotated[
        bool,
        typer.Option(
            "--missing",
            help="Instead of named people: those whom a kept version shows and the source no longer has.",
        ),
    ] = False,
    confirm: Annotated[
        int | None,
        typer.Option(
            "--confirm",
            min=0,
            metavar="NUMBER",
            help="With --missing: how many people are missing. Needed if they are more than a fifth of the "
            "people. If it is another number, nothing is done.",
        ),
    ] = None,
    now: Annotated[
        bool,
        typer.Option(
            "--now",
            help="They leave at once, with everybody who shares a joint cell with them. A version without them is "
            "published, and the versions that show them are dropped. It first says how many people these are, and "
            "asks.",
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="With --now: do not ask before they leave at once. For scripts.")
    ] = False,
    plan_: PlanOnly = False,
    wait: Wait = 0,
    log_format: LogFormat = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Let people withdraw from a release that names its entities.

    Without --now people wait until enough people of their group withdraw. They leave together with a later release. If
    one person left alone, anybody who kept the version before would learn their value. Copies that readers have made
    cannot be recalled. Name people exactly, by the text of the entity column. If a name is nobody's, nothing is done.

    --missing finds people by itself. If more than a fifth of the people are missing, the source may be wrong. Then it
    stops with exit status 3 unless you give --confirm. If the source is empty, it always stops.

    --now takes whole joint cells, with people who did not withdraw. It says how many these are, and asks. If nobody can
    be asked, it stops with exit status 2 unless you give --yes. With --plan it only says how many.
    """
    log = Log.of(log_format, False)
    loaded = load_release(spec)
    if now and not plan_ and not yes:
        check_asking(
            "--now takes people out with their whole joint cells, others in them included; --plan says how many"
        )
    if missing and file is not None:
        raise InputError("--missing is about those whom the source has no more: name nobody, and give no file")
    lines = [] if file is None else read_input(file, "the file of people").splitlines()
    named = [*(people or []), *(line for line in lines if line)]
    if plan_:
        planned = loaded.plan_erase(named, missing=missing, confirm=confirm, now=now, wait=wait)
        deliver(planned, _planned(planned), json_)
        return
    with progress(quiet or not now or log.format is not None, at_once=False) as report:

        def agree(sharing: Sharing) -> bool:
            if log.format is None:
                say(f"qblock: {sharing}")
            return yes or confirmed("Take them out at once?")

        erasure = loaded.erase(
            named, missing=missing, confirm=confirm, now=now, agree=agree, wait=wait, progress=report, entries=log
        )
    deliver(erasure, _erased(erasure, missing=missing), json_)


def _erased(erasure: Erased, *, missing: bool) -> Lines:
    if erasure.status == "unchanged":
        yield "Nothing to do."
        yield from listed("Note", erasure.notes)
        return
    companions = f", and {erasure.companions} who share their joint cells" if erasure.companions else ""
    who = "1 person" if erasure.asked == 1 else f"{erasure.asked} people"
    who += " whom the source has no more" if missing else " named"
    yield f"{erasure.status.capitalize()}: {who}, {erasure.shown} of them shown by some version{companions}."
    if erasure.published is not None:
        yield f"Readers see version {erasure.published.version}, which shows none of them."
    if erasure.retired:
        noun = "versions" if len(erasure.retired) > 1 else "version"
        yield f"Dropped: {noun} {', '.join(map(str, erasure.retired))}."
    yield from listed("Note", erasure.notes)


def retire(spec: SpecPath, wait: Wait = 0, json_: Json = False) -> None:
    """Take the view away from its readers at once.

    Versions, ledger and crosswalk stay. From then on `release` and `rollback` refuse; `release --force` publishes
    again.
    """
    retired = load_release(spec).retire(wait=wait)
    deliver(retired, _retired(retired), json_)


def _retired(retired: Ended) -> Lines:
    what = "was retired before" if retired.status == "unchanged" else "is retired"
    version = "of which the ledger knew no version" if retired.version is None else f"version {retired.version}"
    yield f"Release {retired.release} {what}: {retired.view} shows nothing any more ({version})."
    yield from listed("Note", retired.notes)
    yield head_line(retired.ledger_head)
