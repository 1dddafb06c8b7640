"""Answers: one frozen model for each, which Python functions return, commands print and `--json` writes out.

They are plain data, which know nothing of what they are about. Each module is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qblock.results import audit as audit
    from qblock.results import check as check
    from qblock.results import estimate as estimate
    from qblock.results import release as release
    from qblock.results import report as report
    from qblock.results import risk as risk
    from qblock.results import search as search
    from qblock.results import tables as tables

_MODULES = ("audit", "check", "estimate", "release", "report", "risk", "search", "tables")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
