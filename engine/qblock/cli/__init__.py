"""The command line: one command is one call of the library, plus printing."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and leave with its exit status."""
    from qblock.cli.streams import reserve

    reserve()
    _load_fast()
    try:
        from qblock.cli.app import main as run
    except KeyboardInterrupt:
        # Loading everything takes a moment, in which somebody may press Ctrl-C.
        print("qblock: interrupted", file=sys.stderr)
        sys.exit(130)
    run()


def _load_fast() -> None:
    """Settings of a process that loads many modules for one command and ends; they spare a fifth of a short one."""
    # What is loaded stays: the collector would go through it 250 times, and thrice more at the end.
    gc.set_threshold(200_000)
    atexit.register(gc.freeze)
    # Arithmetic on large matrices, for which the library starts threads that wait busily, is not done here.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Nothing but qblock takes part in reading a spec, so that pydantic need not look for what else is installed.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


__all__ = ["main"]
