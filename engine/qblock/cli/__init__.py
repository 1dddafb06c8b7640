"""The command line: one command is one call of the library, plus printing."""

from __future__ import annotations

from qblock.cli.app import main

__all__ = ["main"]
