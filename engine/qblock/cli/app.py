"""All commands in one application, and how each of them ends."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NoReturn

import typer
from typer.exceptions import TyperException
from typer.models import CommandInfo, TyperInfo

from qblock import __version__
from qblock.cli import audit, compare, evidence, hierarchies, publish, schedule, search, start
from qblock.cli.ending import Interrupted, Terminated, exit_status, message, nothing_of, reason, stopped
from qblock.cli.streams import AnswerLost, check_answer, guarded
from qblock.effects import Effects, collect_effects
from qblock.errors import values_shown

COMMANDS: dict[str, Callable[..., None]] = {
    "demo": start.demo,
    "examples": start.examples,
    "init": start.init,
    "schema": start.schema,
    "search": search.search,
    "check": search.check,
    "audit": audit.audit,
    "compare": compare.compare,
    "grants": search.grants,
    "plan": publish.plan,
    "release": publish.release,
    "schedule": schedule.schedule,
    "verify": publish.verify,
    "rollback": publish.rollback,
    "report": evidence.report,
    "history": evidence.history,
    "erase": publish.erase,
    "retire": publish.retire,
}
GROUPS = {"hierarchy": hierarchies.hierarchy, "ledger": evidence.ledger}
EXAMPLES: dict[str, tuple[str, ...]] = {
    "demo": ("qblock demo people --rows 5000",),
    "examples": ("qblock examples first-examples",),
    "init": ("qblock init patients.csv --entity patient_id --sensitive diagnosis --directory first",),
    "schema": ("qblock schema", "qblock schema --of release"),
    "hierarchy": ("qblock hierarchy check release.yaml",),
    "hierarchy build": ("qblock hierarchy build release.yaml --directory drafts",),
    "hierarchy check": ("qblock hierarchy check release.yaml",),
    "hierarchy load": ("qblock hierarchy load release.yaml",),
    "search": (
        "qblock search release.yaml --nodes minimal",
        "qblock search release.yaml --explore options.html",
        "qblock search release.yaml --explain-sql --node age=2,sex=1",
    ),
    "check": ("qblock check release.yaml", "qblock check release.yaml --json"),
    "audit": (
        "qblock audit release.yaml --node age=2,sex=1 --all",
        "qblock audit --url duckdb:///patients.duckdb --table main.patients \\\n    -q age -q sex -s diagnosis",
        "qblock audit release.yaml --node age=2,sex=1 --adversary bayes --prior table --rho1 0.1 --rho2 0.5",
    ),
    "compare": ("qblock compare release.yaml --csv nodes.csv", "qblock compare release.yaml --recoding both"),
    "grants": ("qblock grants release.yaml",),
    "plan": ("qblock plan release.yaml --churn 0.01",),
    "release": ("qblock release release.yaml --result result.json --log-format text",),
    "schedule": ("qblock schedule release.yaml --at 'Mon 03:15' --mail data-team@example.org",),
    "verify": ("qblock verify release.yaml",),
    "rollback": ("qblock rollback release.yaml 1 --plan", "qblock rollback release.yaml 1"),
    "report": ("qblock report release.yaml -o report.html",),
    "history": ("qblock history release.yaml",),
    "erase": ("qblock erase release.yaml p7 p12", "qblock erase release.yaml p7 p12 --now --plan"),
    "retire": ("qblock retire release.yaml",),
    "ledger": ("qblock ledger upgrade release.yaml",),
    "ledger upgrade": ("qblock ledger upgrade release.yaml",),
    "ledger rekey": ("qblock ledger rekey release.yaml",),
    "ledger retype": ("qblock ledger retype release.yaml",),
    "ledger move": ("qblock ledger move release.yaml --from patients_2025",),
}
"""A worked example at the end of each command's --help. A test runs every line of them."""


def epilog(lines: tuple[str, ...]) -> str:
    """An epilog of command lines, which are printed as they are written."""
    shown = "\n".join(f"  {line}" for line in "\n".join(lines).splitlines())
    return f"\b\nExample{'s' if len(lines) > 1 else ''}:\n{shown}"


def _named(app: typer.Typer, above: str = "") -> Iterator[tuple[str, CommandInfo | TyperInfo]]:
    for command in app.registered_commands:
        yield f"{above}{command.name}", command
    for group in app.registered_groups:
        yield f"{above}{group.name}", group
        if group.typer_instance is not None:
            yield from _named(group.typer_instance, f"{above}{group.name} ")


EPILOG = (
    "Exit status: 0 done, or nothing to do. 1 a fault outside, such as connection or disk. 2 the spec, a hierarchy "
    "or the command line is wrong. 3 refused: nothing is safe to publish, or a check failed. 4 another run or "
    f"process is in the way.\n\n{epilog(('qblock demo',))}"
)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(__version__)
        raise typer.Exit


def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    debug: bool = typer.Option(
        False,
        "--debug",
        help="Print the traceback of an error, with the database's own text. That text may quote the data. This works "
        "only where standard error is a terminal. QBLOCK_DEBUG=1 does the same.",
    ),
) -> None:
    """Options of every command."""


@cache
def application(only: str | None = None) -> typer.Typer:
    """The command line. only: the command or group that is prepared, since all of them take longer than a short
    command."""
    app = typer.Typer(
        name="qblock",
        help="Anonymize a table in its own warehouse and publish checked releases behind a view. Start with "
        "`qblock demo`.",
        epilog=EPILOG,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name, command in COMMANDS.items():
        if only in (name, None):
            app.command(name)(command)
    for name, group in GROUPS.items():
        if only in (name, None):
            app.add_typer(group, name=name)
    for name, given in _named(app):
        if name in EXAMPLES:
            given.epilog = epilog(EXAMPLES[name])
    return app


INTERACTIVE = ("search", "plan", "hierarchy", "init")
"""Commands whose messages may list values."""
AGAIN_SECONDS = 5.0
"""A busy driver may swallow the exception of a signal: it is raised again until it gets through."""


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)


def _stop(number: int, _frame: Any) -> NoReturn:
    signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
    Interrupted.arrived = True
    raise Terminated if Terminated.arrived or number == signal.SIGTERM else KeyboardInterrupt


def main() -> NoReturn:
    """Run the command line and leave with its exit status."""
    for number in SIGNALS:
        signal.signal(number, _stop)
    # Errors that nobody can catch, and those of threads: the class alone, since the text may quote the data.
    sys.unraisablehook = lambda failure: _say(f"ignored an error ({failure.exc_type.__name__})")
    threading.excepthook = lambda failure: _say(f"a thread ended with an error ({failure.exc_type.__name__})")
    try:
        status = run(sys.argv[1:])
    except KeyboardInterrupt:
        status = 143 if Terminated.arrived else 130
    for number in SIGNALS:
        # Everything is said and done.
        signal.signal(number, signal.SIG_IGN)
    sys.exit(status)


def run(arguments: list[str]) -> int:
    """Run one command; returns its exit status. Messages go to standard error."""
    only = next((word for word in arguments[:1] if word in {**COMMANDS, **GROUPS}), None)
    command = typer.main.get_command(application(only))
    Terminated.arrived = Interrupted.arrived = False
    for library in ("sqlalchemy", "psycopg"):
        # Without a handler Python prints their warnings, which hold the driver's text.
        logging.getLogger(library).addHandler(logging.NullHandler())
    debug = _Debug(bool(os.environ.get("QBLOCK_DEBUG")))
    with guarded(), collect_effects() as effects:
        try:
            if "_QBLOCK_COMPLETE" in os.environ:
                return int(command.main(args=arguments, prog_name="qblock", standalone_mode=False) or 0)
            # Not `main`, which gives Ctrl-C an exit status of its own.
            name = next((word for word in arguments if not word.startswith("-")), None)
            with command.make_context("qblock", arguments) as context, values_shown(name in INTERACTIVE):
                debug.requested |= bool(context.params.get("debug"))
                command.invoke(context)
            check_answer()
            return 0
        except typer.Exit as ended:
            try:
                check_answer()
            except AnswerLost as error:
                return _ended(error, arguments, effects, debug)
            return int(ended.exit_code)
        except TyperException as error:
            # A wrong command line: the exception prints itself.
            _without_urls(error, arguments)
            if hasattr(error, "show"):
                error.show()
            else:
                _say(str(error))
            return int(getattr(error, "exit_code", 2))
        except typer.Abort:
            return _ended(KeyboardInterrupt(), arguments, effects, debug)
        except (Exception, KeyboardInterrupt) as error:
            return _ended(_explained(error), arguments, effects, debug)


def _explained(error: BaseException) -> BaseException:
    """Our error for a driver's that a command which is no method of a release has raised."""
    from qblock.api import explained

    return error if stopped(error) else explained(error) or error


def _ended(error: BaseException, arguments: list[str], effects: Effects, debug: _Debug) -> int:
    """Print what became of a command that failed or was stopped; returns its exit status."""
    try:
        if stopped(error):
            signal.setitimer(signal.ITIMER_REAL, 0)
        else:
            debug.show(error)
        _say(message(error, effects, nothing_of(arguments)), error)
        if not isinstance(error, AnswerLost):
            try:
                check_answer()
            except AnswerLost as lost:
                _say(reason(lost), error)
    except KeyboardInterrupt as again:
        # Another signal while the last message was printed.
        return exit_status(again, effects)
    return exit_status(error, effects)


class _Debug:
    """Tracebacks, which may quote the data: only for somebody at a terminal who asked for them."""

    def __init__(self, requested: bool) -> None:
        self.requested = requested

    def show(self, error: BaseException) -> None:
        if self.requested and sys.stderr.isatty():
            traceback.print_exception(error)


def _without_urls(error: TyperException, arguments: list[str]) -> None:
    """A word of a wrong command line may be a URL with a password."""
    message = getattr(error, "message", None)
    urls = [word for word in arguments if "://" in word]
    if isinstance(message, str) and any(url in message or url.partition("://")[2] in message for url in urls):
        vars(error)["message"] = "a URL is where none belongs"


def _say(message: str, error: BaseException | None = None) -> None:
    if not getattr(error, "told", False):  # the job's log has printed it already
        print(f"qblock: {message}", file=sys.stderr)
