"""report: what readers see and what is promised, in one file for whoever signs."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qblock.cli.opening import load_release
from qblock.cli.output import Json, Quiet, SpecPath, answer, console
from qblock.cli.progress import progress
from qblock.cli.result_file import keep_own_files
from qblock.cli.streams import say
from qblock.errors import InputError, QblockError, choices
from qblock.files import problem_of

if TYPE_CHECKING:
    from qblock.api import Format, Release, Report

FORMS: dict[str, Format] = {".html": "html", ".htm": "html", ".md": "md", ".json": "json"}
"""The form of a report, by the suffix of its file."""


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("report")(report)


def report(
    spec: SpecPath,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file; a file of that name is replaced whole."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help="html, md or json; by default as the file is called."),
    ] = None,
    internal: Annotated[
        bool,
        typer.Option(
            "--internal",
            help="Add what only those who run the job may see: room, the lattice as a picture, what other questions "
            "would give, versions, rights, the spec. Searches the source, and marks every page.",
        ),
    ] = False,
    candidate: Annotated[
        bool, typer.Option("--candidate", help="Only that, before the first version: what a search finds now.")
    ] = False,
    version: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="With --internal: of this version, if it is kept, whether readers see it or not.",
        ),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help="With --internal: a population, as `audit --prior` takes it, for what somebody who knows it believes."
        ),
    ] = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """What readers see of the published version, what is promised of it, and what attacks find, in one file.

    For whoever may see the release: it is read from the view and its helper views alone, and a reader's login in the
    spec's URL suffices. The file needs no network, and has a line to sign. With --internal it is not for readers.
    """
    if prior is not None and not (internal or candidate):
        raise InputError("--prior is about an internal report: its figures are of the source; add --internal")
    if version is not None and candidate:
        raise InputError("--candidate is about what is not published yet, --version about what was; give one of them")
    if version is not None and not internal:
        raise InputError(
            f"--version {version}: a report for readers is of the version that they see; add --internal for one of "
            "another version, for those who run the job"
        )
    release = load_release(spec)

    def build() -> Report:
        with progress(quiet or not (internal or candidate)) as told:
            return release.report(internal=internal, candidate=candidate, version=version, prior=prior, progress=told)

    if json_:
        if output is not None or form is not None:
            raise InputError("--json prints the report, and --output writes it; give one of them")
        answer(build().to_dict())
        return
    chosen = None if form is None else _known(form)
    if output is not None:
        console().print(ReportFile(output, release, "--output", chosen).write(build), soft_wrap=True)
    elif chosen is None or chosen == "html":
        raise InputError("a report in HTML is a file: name it with -o report.html, or give --format md")
    else:
        sys.stdout.write(build().text(chosen))


def _known(form: str) -> Format:
    for known in FORMS.values():
        if form == known:
            return known
    raise InputError(f"--format {form}: there is no such form; {choices(sorted(set(FORMS.values())), form)}")


class ReportFile:
    """A file that a report is written to. Raises InputError for one that cannot be, or that the release lives on."""

    def __init__(self, path: Path, release: Release, option: str, form: Format | None = None) -> None:
        self.path, self._release = path, release
        self._form = _known(form or FORMS.get(path.suffix.lower(), "html"))
        keep_own_files(option, path, release)
        problem = problem_of(path)
        if problem is not None:
            raise InputError(f"{option} {path}: it {problem}; name a file")
        if not path.resolve().parent.is_dir():
            raise InputError(f"{option} {path}: there is no folder {path.parent}; make it, or name another file")

    def write(self, report: Callable[[], Report]) -> str:
        """Replace the file whole; one line about the report."""
        reported = report()
        real = self.path.resolve()
        new = real.with_name(f".{real.name}.{secrets.token_hex(4)}")
        try:
            new.write_text(reported.text(self._form), "utf-8")
            os.replace(new, real)
        except OSError as error:
            raise QblockError(f"{self.path}: cannot be written: {error.strerror}; what was there stays") from None
        finally:
            with suppress(OSError):
                new.unlink(missing_ok=True)
        if reported.version is None:
            return f"Report of release {reported.release} before its first version in {self.path}"
        verdict = "all guarantees hold" if reported.holds else "NOT ALL GUARANTEES HOLD"
        return f"Report of version {reported.version} of {reported.release} in {self.path}: {verdict}"

    def try_to_write(self) -> None:
        """After a run, which has ended as it has, whatever becomes of the report."""
        try:
            self.write(self._release.report)
        except QblockError as error:
            say(f"qblock: there is no report: {error}; `qblock report` writes it later")
