"""The commands together, and how each one ends."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import Any, NoReturn

import typer
from typer.exceptions import TyperException

from qblock import __version__
from qblock.cli import compare, erase, explore, hierarchies, ledger, publish, retire, start
from qblock.cli.job import Terminated
from qblock.errors import QblockError

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
) -> None:
    """Options of every command."""


AGAIN_SECONDS = 5.0
"""A driver may swallow what a signal raises while it is busy: it is raised again until somebody hears it."""


def _stop(number: int, _frame: Any) -> NoReturn:
    signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
    raise Terminated if Terminated.arrived or number == signal.SIGTERM else KeyboardInterrupt


def main() -> NoReturn:
    """Run the command line and leave with its exit status."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, _stop)
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command; returns its exit status. Messages go to standard error."""
    command = typer.main.get_command(app)
    Terminated.arrived = False
    try:
        if "_QBLOCK_COMPLETE" in os.environ:
            return int(command.main(args=arguments, prog_name="qblock", standalone_mode=False) or 0)
        # Not `main`, which would make an exit status of its own out of Ctrl-C.
        with command.make_context("qblock", arguments) as context:
            command.invoke(context)
        return 0
    except typer.Exit as ended:
        return int(ended.exit_code)
    except QblockError as error:
        if Terminated.arrived:
            return _stopped(error)
        _say(str(error), error)
        return error.exit_status
    except TyperException as error:
        # A command line that is wrong; the exception knows its own way of saying so.
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
    except OSError as error:
        _say(f"{error.filename or 'input or output'}: {error.strerror or error}", error)
        return 1
    except Exception as error:
        # The driver reports an interrupted query as an error of its own.
        if Terminated.arrived or "interrupted" in str(error).lower():
            return _stopped(error)
        if os.environ.get("QBLOCK_DEBUG"):
            traceback.print_exc()
        _say(
            f"internal error ({type(error).__name__}); set QBLOCK_DEBUG=1 for the traceback. Nothing was published",
            error,
        )
        return 1


def _stopped(error: BaseException) -> int:
    signal.setitimer(signal.ITIMER_REAL, 0)
    _say(f"{'terminated' if Terminated.arrived else 'interrupted'}: nothing was published", error)
    return 143 if Terminated.arrived else 130


def _say(message: str, error: BaseException | None = None) -> None:
    if not getattr(error, "told", False):  # the log of the job has said it already
        print(f"qblock: {message}", file=sys.stderr)
