"""All commands in one application, and how each of them ends."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import traceback
from typing import Any, NoReturn

import typer
from typer.exceptions import TyperException

from qblock import __version__
from qblock.cli import (
    audit,
    compare,
    erase,
    explore,
    grants,
    hierarchies,
    history,
    ledger,
    publish,
    report,
    retire,
    start,
)
from qblock.cli.ending import Interrupted, Terminated, exit_status, message, nothing_of, reason, stopped
from qblock.cli.examples import add_examples, epilog
from qblock.cli.streams import AnswerLost, check_answer, guarded
from qblock.effects import Effects, collect_effects
from qblock.errors import values_shown

EPILOG = (
    "Exit status: 0 done or nothing to do, 1 a fault outside (connection, disk), 2 the spec, a hierarchy or the "
    "command line is wrong, 3 refused: nothing safe to publish, or a check failed, 4 another run or process is in the "
    "way."
    f"\n\n{epilog(('qblock demo',))}"
)

app = typer.Typer(
    name="qblock",
    help="Anonymize a table in its own warehouse and publish checked releases behind a view. Start with `qblock demo`.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
start.register(app)
hierarchies.register(app)
explore.register(app)
audit.register(app)
compare.register(app)
grants.register(app)
publish.register(app)
report.register(app)
history.register(app)
erase.register(app)
retire.register(app)
ledger.register(app)
add_examples(app)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    debug: bool = typer.Option(
        False,
        "--debug",
        help="Print the traceback of an error with the database's own text, which may quote the data; only where "
        "standard error is a terminal. QBLOCK_DEBUG=1 does the same.",
    ),
) -> None:
    """Options of every command."""


INTERACTIVE = ("search", "plan", "hierarchy", "init")
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
    command = typer.main.get_command(app)
    Terminated.arrived = Interrupted.arrived = False
    for name in ("sqlalchemy", "psycopg"):
        # Without a handler Python prints their warnings, which hold the driver's text.
        logging.getLogger(name).addHandler(logging.NullHandler())
    debug = _Debug(bool(os.environ.get("QBLOCK_DEBUG")))
    with guarded(), collect_effects() as effects:
        try:
            if "_QBLOCK_COMPLETE" in os.environ:
                return int(command.main(args=arguments, prog_name="qblock", standalone_mode=False) or 0)
            # Not `main`, which gives Ctrl-C an exit status of its own.
            with command.make_context("qblock", arguments) as context, values_shown(_interactive(arguments)):
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
            return _ended(error, arguments, effects, debug)


def _ended(error: BaseException, arguments: list[str], effects: Effects, debug: _Debug) -> int:
    """Print what became of a command that failed or was stopped; returns its exit status."""
    try:
        if stopped(error):
            signal.setitimer(signal.ITIMER_REAL, 0)
        else:
            debug.show(error)
        _say(message(error, effects, nothing_of(arguments)), error)
        if not isinstance(error, AnswerLost):
            _say_lost(error)
    except KeyboardInterrupt as again:
        # Another signal while the last message was printed.
        return exit_status(again, effects)
    return exit_status(error, effects)


def _say_lost(error: BaseException) -> None:
    try:
        check_answer()
    except AnswerLost as lost:
        _say(reason(lost), error)


class _Debug:
    """Tracebacks, which may quote the data: only for somebody at a terminal who asked for them."""

    def __init__(self, requested: bool) -> None:
        self.requested = requested

    def show(self, error: BaseException) -> None:
        if self.requested and sys.stderr.isatty():
            traceback.print_exception(error)


def _interactive(arguments: list[str]) -> bool:
    """Whether the command is one whose messages may list values."""
    return next((word for word in arguments if not word.startswith("-")), None) in INTERACTIVE


def _without_urls(error: TyperException, arguments: list[str]) -> None:
    """A word of a wrong command line may be a URL with a password."""
    message = getattr(error, "message", None)
    urls = [word for word in arguments if "://" in word]
    if isinstance(message, str) and any(url in message or url.partition("://")[2] in message for url in urls):
        vars(error)["message"] = "a URL is where none belongs"


def _say(message: str, error: BaseException | None = None) -> None:
    if not getattr(error, "told", False):  # the job's log has printed it already
        print(f"qblock: {message}", file=sys.stderr)
