"""The command line: one command is one call of the library, plus printing."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and leave with its exit status."""
    from qblock.cli.streams import reserve

    reserve()
    try:
        from qblock.cli.app import main as run
    except KeyboardInterrupt:
        # Loading everything takes a moment, in which somebody may press Ctrl-C.
        print("qblock: interrupted", file=sys.stderr)
        sys.exit(130)
    run()


__all__ = ["main"]
