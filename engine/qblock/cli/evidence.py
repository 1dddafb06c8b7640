"""history, ledger, report: what is recorded of a release, work on the record itself, and a report for whoever signs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.padding import Padding

from qblock.cli.job import Wait, keep_own_files
from qblock.cli.output import (
    Json,
    Lines,
    Quiet,
    SpecPath,
    Unwrapped,
    answer,
    deliver,
    display,
    head_line,
    listed,
    load_release,
    progress,
    shown,
    table,
)
from qblock.cli.streams import say
from qblock.errors import InputError, QblockError, choices
from qblock.files import check_output, written_whole

if TYPE_CHECKING:
    from qblock.api import Ended, Event, Format, History, MarginTrend, Rekeyed, Release, Report, Retyped

COLUMNS = ("time (UTC)", "version", "state", "rows", "node", "chosen")
FORMS: dict[str, Format] = {".html": "html", ".htm": "html", ".md": "md", ".json": "json"}
"""The form of a report, by the suffix of its file."""

ledger = typer.Typer(help="Upgrade, rekey or convert the ledger of releases, or move one.", no_args_is_help=True)


def history(spec: SpecPath, json_: Json = False) -> None:
    """Show the ledger: what each run asked, satisfied or refused.

    There is one line for each run. A refusal has its reasons. --json has every event of a run.
    """
    past = load_release(spec).history()
    deliver(past, _history(past), json_)


def _history(past: History) -> Lines:
    from qblock.api import NOT_PROTECTED

    if not past.events:
        yield f"No event of release {past.release} yet."
        return
    yield from _runs(past)
    if any(_choice(event).endswith("*") for event in past.events):
        yield f"* {NOT_PROTECTED}"
    if past.margin_trend:
        cells = [
            [
                trend.version,
                trend.model + (f" ({trend.sensitive})" if trend.sensitive else ""),
                f"{trend.parameter}={trend.asked}",
                _reached(trend),
                _percent(trend.margin),
                _percent(trend.margin_change),
            ]
            for trend in past.margin_trend
        ]
        yield ""
        yield "Guarantees, as last checked, and their margins"
        yield table("", ["version", "model", "asked", "satisfied", "margin", "change"], cells)
    if past.current is not None:
        age = timedelta(seconds=past.age_seconds or 0)
        stale = ", longer ago than the spec allows: STALE" if past.stale else ""
        yield ""
        yield f"Readers see version {past.current}, published {age} ago{stale}."
    if past.retired_at is not None:
        yield ""
        yield f"Readers see nothing: the release was retired on {past.retired_at[:10]}."


def _runs(past: History) -> Lines:
    """A line for each run, and below it at full width why, and what it dropped."""
    names = next((event.quasi_identifiers for event in reversed(past.events) if event.quasi_identifiers), ())
    lines, below = [list(COLUMNS)], [[f"(node: levels of {', '.join(names)})"] if names else []]
    for run in past.runs:
        last = run.outcome
        lines.append(
            [
                last.recorded_at[:19].replace("T", " "),
                str(last.version or ""),
                last.state,
                shown(last.rows_published),
                _levels(last, names),
                _choice(last),
            ]
        )
        dropped = [f"dropped: version {', '.join(map(str, run.dropped))}"] if run.dropped else []
        below.append([*run.reasons, *dropped])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line, more in zip(lines, below, strict=True):
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        yield from (Padding(text, (0, 0, 0, 4)) for text in more)


def _choice(event: Event) -> str:
    if event.choice is None:
        return ""
    return event.choice + ("" if event.protected else " *")


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:+.1%}"


def _reached(guarantee: MarginTrend) -> str:
    from qblock.api import number_json

    satisfied = guarantee.satisfied
    return shown(satisfied if satisfied in (None, "inf") else number_json(Fraction(satisfied)))


def _levels(event: Event, names: Sequence[str]) -> str:
    """The levels of a node; with the names where they are of other quasi-identifiers than `names`."""
    node = event.node
    boxes = event.detail.get("boxes")
    if node is None and boxes is not None:
        return f"map of {boxes:,} boxes"
    own = event.quasi_identifiers
    if not own or not node:
        return ""
    if list(own) == list(names):
        return ",".join(map(str, node))
    return " ".join(f"{name}={level}" for name, level in zip(own, node, strict=True))


Target = Annotated[str, typer.Argument(metavar="SPEC|URL", help="A release spec, or the ledger's database.")]


@ledger.command("upgrade")
def upgrade(
    target: Target,
    json_: Json = False,
) -> None:
    """Upgrade the ledger's schema to this version of qblock.

    If the schema is up to date, nothing is done.
    """
    from qblock.api import Ledger

    upgraded = Ledger(target, name_values=True).upgrade()
    said = f"The ledger went from {upgraded.before} to {upgraded.after}."
    if upgraded.before is None:
        said = f"The ledger is made, at {upgraded.after}."
    elif upgraded.before == upgraded.after:
        said = f"The ledger is at {upgraded.after}: nothing to do."
    deliver(upgraded, [said], json_)


@ledger.command("rekey")
def rekey(
    target: Target,
    wait: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long to wait for runs of any release there.")
    ] = 0,
    json_: Json = False,
) -> None:
    """Give the crosswalk a new key, if the old one may be known.

    The change is one transaction. All releases that share the crosswalk move, with everybody in it, also people who
    have left the source. Checks of versions together give the same results as before. No run may be in progress there
    (exit status 4, naming the release).
    """
    from qblock.api import Ledger

    rekeyed = Ledger(target, name_values=True).rekey(wait=wait)
    deliver(rekeyed, _rekeyed(rekeyed), json_)


def _rekeyed(rekeyed: Rekeyed) -> Lines:
    from qblock.api import BACKUPS

    yield f"The crosswalk has a new key, number {rekeyed.keys}. Older keys are kept for the chain."
    for release, n in rekeyed.releases.items():
        yield f"Release {release}: {shown(n)} people moved to it."
    yield f"Note: {BACKUPS}"


@ledger.command("retype")
def retype(spec: SpecPath, wait: Wait = 0, json_: Json = False) -> None:
    """Convert what is kept of a release to new column types.

    You need this after a column's type has changed, since the job then refuses. Every kept value must read the same in
    both types.
    """
    retyped = load_release(spec).retype(wait=wait)
    deliver(retyped, _retyped(retyped), json_)


def _retyped(retyped: Retyped) -> Lines:
    if retyped.status == "unchanged":
        yield "The crosswalk has the types of the source's columns: nothing to do."
    for change in retyped.columns:
        types = f"from {change.before} to {change.now}"
        yield f"{change.column}: {types}, {change.values} values are written differently now."


@ledger.command("move")
def move(
    spec: SpecPath,
    earlier: Annotated[
        str, typer.Option("--from", metavar="NAME", help="The name that the release has had until now.")
    ],
    wait: Wait = 0,
    json_: Json = False,
) -> None:
    """Move release NAME to the name, source and view of SPEC.

    All its versions and evidence move. The chain of events continues under the new name. The view of SPEC then shows
    what readers see now.
    """
    moved = load_release(spec).move_from(earlier, wait=wait)
    deliver(moved, _moved(moved, earlier), json_)


def _moved(moved: Ended, earlier: str) -> Lines:
    if moved.status == "unchanged":
        yield f"Nothing to do: release {moved.release} is as the spec says already."
        return
    yield f"Release {earlier} is {moved.release} now, published as {moved.view} (version {moved.version})."
    yield from listed("Note", moved.notes)
    yield head_line(moved.ledger_head)


def report(
    spec: SpecPath,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file to write. If it exists, it is replaced whole."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help="html, md or json. Default: by the ending of the file's name."),
    ] = None,
    internal: Annotated[
        bool,
        typer.Option(
            "--internal",
            help="Add what only those who run the job may see: margins, the lattice as a picture, what other questions "
            "would give, versions, rights, the spec. Searches the source, and marks every page.",
        ),
    ] = False,
    candidate: Annotated[
        bool,
        typer.Option(
            "--candidate",
            help="Write only what --internal adds, before the first version or after it: what the next run takes.",
        ),
    ] = False,
    version: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="With --internal: report this version, if it is kept, whether readers see it or not.",
        ),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help="With --internal: add what a person who knows this population believes. Takes what `audit --prior` "
            "takes."
        ),
    ] = None,
    framework: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="DOCUMENT",
            help="In the order of a document: ema, hipaa, wp29, sp800-188, iso27559 or tehdas. It marks what the spec "
            "does not declare, and claims nothing about the law.",
        ),
    ] = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a report of the published version, for its readers.

    One file shows what readers see, what is promised and what attacks find. The report reads the view and its helper
    views alone, so a reader's login in the spec's URL suffices. The file needs no network, and has a line to sign. With
    --internal it is not for readers.
    """
    if prior is not None and not (internal or candidate):
        raise InputError("--prior is about an internal report: its figures are of the source; add --internal")
    if version is not None and candidate:
        raise InputError("--candidate is about a version to come, --version about a published one; give one of them")
    if version is not None and not internal:
        raise InputError(
            f"--version {version}: a report for readers is always of the version that they see. Add --internal for "
            "another one, for those who run the job"
        )
    release = load_release(spec)

    def build() -> Report:
        with progress(quiet or not (internal or candidate)) as told:
            return release.report(
                internal=internal,
                candidate=candidate,
                version=version,
                prior=prior,
                framework=framework,
                progress=told,
            )

    if json_:
        if output is not None or form is not None:
            raise InputError("--json prints the report, and --output writes it; give one of them")
        answer(build())
        return
    chosen = None if form is None else _known(form)
    if output is not None:
        display([Unwrapped(ReportFile(output, release, "--output", chosen).write(build))])
    elif chosen is None or chosen == "html":
        raise InputError("a report in HTML is a file: name it with -o report.html, or give --format md")
    else:
        sys.stdout.write(build().text(chosen))


def _known(form: str) -> Format:
    for known in FORMS.values():
        if form == known:
            return known
    raise InputError(f"--format {form}: no such form; {choices(sorted(set(FORMS.values())), form)}")


class ReportFile:
    """A file that a report is written to. Raises InputError for one that cannot be, or that the release lives on."""

    def __init__(self, path: Path, release: Release, option: str, form: Format | None = None) -> None:
        self.path, self._release = path, release
        self._form = _known(form or FORMS.get(path.suffix.lower(), "html"))
        keep_own_files(option, path, release)
        check_output(path, option)

    def write(self, report: Callable[[], Report]) -> str:
        """Replace the file whole; one line about the report. What is not for readers is for the file's owner alone."""
        reported = report()
        private = reported.internal is not None or reported.version is None
        try:
            with written_whole(self.path, private=private) as file:
                file.write(reported.text(self._form).encode())
        except OSError as error:
            raise QblockError(f"{self.path}: cannot be written: {error.strerror}; what was there stays") from None
        if reported.version is None:
            return f"Report of release {reported.release} {reported.stage} in {self.path}"
        verdict = "all guarantees hold" if reported.holds else "NOT ALL GUARANTEES HOLD"
        threshold = reported.shown.threshold
        if threshold is not None:
            verdict += ", the threshold is met" if threshold.met else ", THE THRESHOLD IS NOT MET"
        if reported.framework is not None:
            verdict += f"; {reported.framework.summary}"
        return f"Report of version {reported.version} of {reported.release} in {self.path}: {verdict}"

    def try_to_write(self) -> None:
        """After a run, which has ended as it has, whatever becomes of the report."""
        try:
            self.write(self._release.report)
        except QblockError as error:
            say(f"qblock: there is no report: {error}; `qblock report` writes it later")
