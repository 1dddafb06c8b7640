"""The commands together, and how each one ends."""

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
from qblock.cli import compare, erase, explore, hierarchies, ledger, publish, retire, start
from qblock.cli.job import Interrupted, Terminated
from qblock.errors import QblockError, values_shown

EPILOG = (
    "Exit status: 0 done or nothing to do, 1 a fault outside (connection, disk), 2 the spec, a hierarchy or the "
    "command line is wrong, 3 refused: nothing safe to publish, or a check failed, 4 another run or process is in the "
    "way."
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
compare.register(app)
publish.register(app)
erase.register(app)
retire.register(app)
ledger.register(app)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    debug: bool = typer.Option(
        False,
        "--debug",
        help="Print the traceback of an error with the database's own text, which may quote the data; only where "
        "standard error is a terminal, and nowhere else. QBLOCK_DEBUG=1 does the same.",
    ),
) -> None:
    """Options of every command."""


INTERACTIVE = ("search", "plan", "hierarchy", "init")
AGAIN_SECONDS = 5.0
"""A driver may swallow what a signal raises while it is busy: it is raised again until somebody hears it."""


def _stop(number: int, _frame: Any) -> NoReturn:
    signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
    Interrupted.arrived = True
    raise Terminated if Terminated.arrived or number == signal.SIGTERM else KeyboardInterrupt


def main() -> NoReturn:
    """Run the command line and leave with its exit status."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, _stop)
    # What is raised where nobody can catch it, and in threads: the class alone, since a text may quote the data.
    sys.unraisablehook = lambda found: _say(f"ignored an error ({found.exc_type.__name__})")
    threading.excepthook = lambda found: _say(f"a thread ended with an error ({found.exc_type.__name__})")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command; returns its exit status. Messages go to standard error."""
    command = typer.main.get_command(app)
    Terminated.arrived = Interrupted.arrived = False
    for name in ("sqlalchemy", "psycopg"):
        # Without a handler Python prints their warnings, which hold the driver's text.
        logging.getLogger(name).addHandler(logging.NullHandler())
    debug = _Debug(bool(os.environ.get("QBLOCK_DEBUG")))
    try:
        if "_QBLOCK_COMPLETE" in os.environ:
            return int(command.main(args=arguments, prog_name="qblock", standalone_mode=False) or 0)
        # Not `main`, which would make an exit status of its own out of Ctrl-C.
        with command.make_context("qblock", arguments) as context, values_shown(_interactive(arguments)):
            debug.asked |= bool(context.params.get("debug"))
            command.invoke(context)
        return 0
    except typer.Exit as ended:
        return int(ended.exit_code)
    except QblockError as error:
        if Terminated.arrived or Interrupted.arrived:
            return _stopped(error)
        debug.show(error)
        _say(str(error), error)
        return error.exit_status
    except TyperException as error:
        # A command line that is wrong; the exception knows its own way of saying so.
        _without_urls(error, arguments)
        if hasattr(error, "show"):
            error.show()
        else:
            _say(str(error))
        return int(getattr(error, "exit_code", 2))
    except (KeyboardInterrupt, typer.Abort) as error:
        return _stopped(error)
    except BrokenPipeError:
        # Whoever read the answer has had enough (qblock history | head).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        # The driver reports an interrupted query as an error of its own.
        if Terminated.arrived or Interrupted.arrived:
            return _stopped(error)
        debug.show(error)
        _say(_told(error), error)
        return 1


class _Debug:
    """Tracebacks, which may quote the data: only to somebody who sits there and asks."""

    def __init__(self, asked: bool) -> None:
        self.asked = asked

    def show(self, error: BaseException) -> None:
        if self.asked and sys.stderr.isatty():
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


def _told(error: Exception) -> str:
    """An error that is not ours: its text may quote a value, so that the class alone is told."""
    if isinstance(error, OSError) and error.errno is not None:
        return f"{error.filename or 'input or output'}: {os.strerror(error.errno)}"
    name = type(error).__name__
    return f"internal error ({name}); --debug prints the traceback on a terminal. Nothing was published"


def _stopped(error: BaseException) -> int:
    signal.setitimer(signal.ITIMER_REAL, 0)
    _say(f"{'terminated' if Terminated.arrived else 'interrupted'}: nothing was published", error)
    return 143 if Terminated.arrived else 130


def _say(message: str, error: BaseException | None = None) -> None:
    if not getattr(error, "told", False):  # the log of the job has said it already
        print(f"qblock: {message}", file=sys.stderr)
