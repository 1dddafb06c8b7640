"""Names and values as a spec has them, on one line: what YAML, and then the spec, reads back as the same."""

from __future__ import annotations

import math
import re
from typing import Any

import yaml

PLAIN = re.compile("[A-Za-z_][A-Za-z0-9_]*")


def flow(value: Any) -> str:
    """A value as YAML in one line."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=math.inf).strip()
    return text.removesuffix("\n...").strip()


def key_text(name: str) -> str:
    """A name as a key; nothing in a key stands for a variable of the environment.

    >>> key_text("age"), key_text("null"), key_text("net $")
    ('age', '"null"', '"net $"')
    """
    if PLAIN.fullmatch(name) and yaml.safe_load(name) == name:
        return name
    escaped = (c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in name)
    return f'"{"".join(escaped)}"'


def value_text(name: str) -> str:
    """A name as a value, in which `$$` stands for `$`."""
    return key_text(name.replace("$", "$$"))


def values_text(names: tuple[str, ...]) -> str:
    """One name as a value, or several as a list."""
    return value_text(names[0]) if len(names) == 1 else f"[{', '.join(map(value_text, names))}]"
