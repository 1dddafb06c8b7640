"""How a command ends: its exit status and last message, which say what it had done.

A signal, an answer that cannot be written or a database that is gone may come after a publication; so each way out asks
the outcome of the run.
"""

from __future__ import annotations

import os
from typing import ClassVar

from qblock.effects import UNPUBLISHED, Effects
from qblock.errors import QblockError
from qblock.printable import printable

NOTHING = {
    ("release",): UNPUBLISHED,
    ("rollback",): UNPUBLISHED,
    ("erase",): UNPUBLISHED,
    ("demo",): UNPUBLISHED,
    ("retire",): "nothing was retired",
    ("ledger", "move"): "nothing was moved",
    ("ledger", "rekey"): "the key was not changed",
}
"""What is printed for a command that ends before it has done anything; the others do not publish, and say nothing."""


class Interrupted:
    """Whether Ctrl-C arrived; drivers may raise another exception in its place."""

    arrived: ClassVar[bool] = False


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived; raised like Ctrl-C, so that everything on the way out is released.

    Drivers and the command line library know Ctrl-C alone, and may raise another exception in its place: `arrived` says
    what it was.
    """

    arrived: ClassVar[bool] = False

    def __init__(self, *arguments: object) -> None:
        Terminated.arrived = True
        super().__init__(*arguments)


def stopped(error: BaseException) -> bool:
    """Whether a signal ends the command; the driver reports an interrupted query as an error of its own."""
    return isinstance(error, KeyboardInterrupt) or Terminated.arrived or Interrupted.arrived


def exit_status(error: BaseException, effects: Effects) -> int:
    """143 and 130 for a signal; 3 says that nothing was published, so a refusal after a publication is a fault."""
    if stopped(error):
        return 143 if Terminated.arrived else 130
    if not isinstance(error, QblockError):
        return 1
    return 1 if error.exit_status == 3 and effects.publication is not None else error.exit_status


def reason(error: BaseException) -> str:
    """The text of an error as it may be printed; of one that is not ours the class alone, since its text may quote a
    value."""
    if stopped(error):
        return "terminated" if Terminated.arrived else "interrupted"
    if isinstance(error, QblockError):
        return str(error)
    if isinstance(error, OSError) and error.errno is not None:
        return printable(f"{error.filename or 'input or output'}: {os.strerror(error.errno)}")
    return f"internal error ({type(error).__name__})"


def with_effects(error: BaseException, effects: Effects, nothing: str | None = None) -> str:
    """The text of an error with what the command has done. nothing: the entry of NOTHING, for where it has done
    nothing."""
    done, why = printable(effects.said(nothing) or ""), reason(error)
    if not done:
        return why
    return f"{why}: {done}" if stopped(error) else f"{done}; {why}"


def message(error: BaseException, effects: Effects, nothing: str | None) -> str:
    """The last message of a command. An error of ours says itself what it means where nothing was done."""
    ours = isinstance(error, QblockError) and not stopped(error)
    said = with_effects(error, effects, None if ours and effects.said() is None else nothing)
    if ours or stopped(error) or isinstance(error, OSError):
        return said
    return f"{said}; --debug prints the traceback on a terminal"


def nothing_of(words: list[str]) -> str | None:
    """The entry of NOTHING for a command line."""
    plain = tuple(word for word in words if not word.startswith("-"))
    return NOTHING.get(plain[:1]) or NOTHING.get(plain[:2])
