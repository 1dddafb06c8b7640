"""Questions to whoever runs a command at a terminal, before something that cannot be taken back."""

from __future__ import annotations

import sys

from qblock.cli.streams import say
from qblock.errors import InputError

AGREED = ("y", "yes")


def check_asking(why: str) -> None:
    """Raise InputError where there is no terminal to ask at. why: what would be asked about."""
    # The question goes to standard error: standard output has the answer alone.
    if not (_is_terminal(sys.stdin) and _is_terminal(sys.stderr)):
        raise InputError(f"{why}. Nobody can be asked here, since this is no terminal: add --yes to go on unasked")


def confirmed(question: str) -> bool:
    """Ask; whatever is not a yes is a no, the end of the input included."""
    say(f"{question} [y/N] ", end="")
    line = sys.stdin.readline()
    if not line.endswith("\n"):
        say("")
    return line.strip().lower() in AGREED


def _is_terminal(stream: object) -> bool:
    return bool(getattr(stream, "isatty", lambda: False)())
