"""A digest of an answer: two versions of qblock that find the same have the same one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

DIGITS = 12


def essence(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Of the JSON of a search: the minimal nodes (none where the best node alone was asked for), the chosen one, and
    its metrics at 12 digits."""
    chosen = answer["chosen"]
    return {
        "minimal": sorted(answer.get("minimal") or []),
        "chosen": None if chosen is None else chosen["levels"],
        "suppressed": None if chosen is None else chosen["suppressed"],
        "metrics": {}
        if chosen is None
        else {name: f"{value:.{DIGITS}g}" if isinstance(value, float) else value for name, value in metrics(chosen)},
    }


def metrics(chosen: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(chosen["metrics"].items())


def digest(essential: Mapping[str, Any]) -> str:
    """The SHA-256 of what `essence` gives, as hexadecimal text."""
    return hashlib.sha256(json.dumps(essential, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
