"""The register of checks: one function for each worked example that an engine can be asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Entry = dict[str, Any]
Check = Callable[[Entry, Path], None]
CHECKS: dict[str, Check] = {}


def check(*names: str) -> Callable[[Check], Check]:
    """Register a function (entry, folder of the examples) for some ids."""

    def register(function: Check) -> Check:
        assert not CHECKS.keys() & set(names)
        CHECKS.update(dict.fromkeys(names, function))
        return function

    return register
