"""HTML for notebooks, in which every text is a text: a column may be named like a tag."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


class Markup(str):
    """HTML that is done; every other text is escaped."""


def page(title: str, *parts: str) -> str:
    """A title and what is below it: tables, and sentences as paragraphs."""
    below = "".join(part if isinstance(part, Markup) else f"<p>{escape(part)}</p>" for part in parts)
    return f"<div><p><strong>{escape(title)}</strong></p>{below}</div>"


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Markup:
    """A table; None is an empty cell."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows)
    return Markup(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return escape(f"{value:.6g}" if isinstance(value, float) else str(value))
