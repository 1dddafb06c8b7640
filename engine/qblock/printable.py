"""Texts of the source as a terminal, a log, a message and a report may show them.

A name or a value may hold anything: an escape sequence that a terminal obeys, the end of a line after which somebody
writes a line of a log, marks that turn the direction of writing, characters that nobody sees. They are written as
escapes, such as `\\x1b`, `\\n` and `\\u202e`.
"""

from __future__ import annotations

import re

UNPRINTABLE = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f"  # controls: Cc
    "\\xad\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u180e\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f"
    "\\ufeff\\ufff0-\\ufffb\\U000110bd\\U000110cd\\U00013430-\\U0001345f\\U0001bca0-\\U0001bcaf"
    "\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff"  # formats, and what is set aside for more of them: Cf
    "\\u2028\\u2029\\ud800-\\udfff]"  # ends of lines and paragraphs, half characters: Zl, Zp, Cs
)
QUOTED = re.compile(r"\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'|`(?:[^`]|``)*`")


def printable(text: str, keep: str = "") -> str:
    """A text in one line, with nothing in it that is not shown.

    Args:
        text: What is printed.
        keep: Characters that stay as they are: ends of lines that are ours.
    """
    if text.isprintable():
        return text
    return UNPRINTABLE.sub(lambda match: match[0] if match[0] in keep else _escape(match[0]), text)


def printable_sql(text: str) -> str:
    """A statement, whose names and strings stay in one line each; its own lines are kept."""
    return printable(QUOTED.sub(lambda match: printable(match[0]), text), keep="\n")


def printable_json(text: str) -> str:
    """The text of a JSON document, with escapes of JSON: whoever parses it gets the same values."""
    return text if text.isprintable() else UNPRINTABLE.sub(_json_escape, text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _json_escape(match: re.Match[str]) -> str:
    if match[0] == "\n":  # between the values of a document: within a string it is an escape already
        return "\n"
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
