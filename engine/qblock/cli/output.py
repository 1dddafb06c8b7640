"""What commands share: options, and answers on standard output."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from qblock.cli.streams import json_text, styled
from qblock.printable import printable

SpecPath = Annotated[str, typer.Argument(metavar="SPEC", help="The release spec, a YAML file.")]
Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON, alone on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")]

Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Also how the answer was found: nodes, statements, seconds, figures of detail."
    ),
]

Churn = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="The share of the people who come, and leave, in each run (0.01; a tenth as many values change): how long "
        "newcomers would wait at some nodes and how far the view would lag, where versions lag behind the source. "
        "Else as in the runs so far, if there were any.",
    ),
]


def answer(value: Any) -> None:
    """Print an answer for machines."""
    print(json_text(value, sys.stdout, indent=2))


class _Console(Console):
    """Prints each text in one paragraph: an end of a line within a name or a value is escaped, like all that a terminal
    obeys. Lines of our own are printed one by one."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)


def console(*, markup: bool = False) -> Console:
    """Standard output for people: as wide as the terminal, or as COLUMNS says; else wide enough for tables.

    markup: whether [bold] and the like in a text is a style; names and labels of people's data hold brackets too.
    """
    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal() else 120
    return _Console(file=styled(sys.stdout), highlight=False, width=width, markup=markup, emoji=False)


def table(title: str, columns: list[str], rows: list[list[Any]]) -> RenderableType:
    """A plain table below its title, which goes on at full width; an empty title is none. One that begins with an end
    of a line stands below an empty line."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        grid.add_column(column, overflow="fold")
    for row in rows:
        grid.add_row(*(str(cell) for cell in row))
    # A table's own title would be wrapped to the width of its columns.
    if title.startswith("\n"):
        return Group("", title[1:], grid)
    return Group(title, grid) if title else grid


def shown(value: Any) -> str:
    """A number of JSON for people."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
