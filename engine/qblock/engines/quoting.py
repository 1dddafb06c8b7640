"""Names and texts as they are written in SQL by the standard, which DuckDB and PostgreSQL keep."""

from __future__ import annotations

import re

PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


def quote(name: str) -> str:
    """A name as a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_plain(name: str) -> str:
    """A name as an identifier, quoted only where it must be."""
    return name if PLAIN.fullmatch(name) else quote(name)


def quote_text(text: str) -> str:
    """A text as a literal, for statements that take no parameters."""
    return "'" + text.replace("'", "''") + "'"
