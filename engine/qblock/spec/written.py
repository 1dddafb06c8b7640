"""Names as a spec has them: what YAML, and then the spec, reads back as the name, on one line."""

from __future__ import annotations

import re

import yaml

PLAIN = re.compile("[A-Za-z_][A-Za-z0-9_]*")


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
