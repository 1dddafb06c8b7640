"""What commands share: options, answers on standard output, questions and progress on standard error."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from qblock.cli.streams import json_text, say, styled
from qblock.errors import InputError
from qblock.printable import printable

if TYPE_CHECKING:
    from qblock.api import Answer, Release, SearchProgress

SpecPath = Annotated[str, typer.Argument(metavar="SPEC", help="The release spec, a YAML file.")]
Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON, alone on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")]

Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Also show how the answer was found: nodes, statements, seconds, figures of detail."
    ),
]

Churn = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="The share of the people who come, and who leave, in each run (0.01). At nodes it shows how "
        "long newcomers would wait and how far the view would lag, if a tenth as many values change. "
        "The default there is the share in the runs so far, if there were any. Where newcomers come in "
        "cohorts, it shows a year with other boxes and delays.",
    ),
]

EVERY_SECONDS = 5.0
STAGES = {
    "search": "searching",
    "walk": "searching",
    "choice": "choosing",
    "boxes": "splitting",
    "nodes": "each node",
    "years": "simulating",
    "maps": "other maps",
}
DONE = {
    "search": "decided",
    "walk": "asked",
    "choice": "measured",
    "boxes": "done",
    "nodes": "evaluated",
    "years": "simulated",
    "maps": "answered",
}
NAMED = {"boxes": "boxes", "years": "years", "maps": "maps"}
ProgressReport = Callable[["SearchProgress"], None]


def load_release(spec: str) -> Release:
    """The release of a spec, whose errors may name values: whoever runs the command may see the data.

    Raises InputError for a spec with errors.
    """
    from qblock.api import Release

    return Release(spec, name_values=True)


def answer(value: Answer | dict[str, Any]) -> None:
    """Print an answer for machines."""
    print(json_text(value if isinstance(value, dict) else value.to_dict(), sys.stdout, indent=2))


class Unwrapped(str):
    """A line that is printed as it is, however long."""


Lines = Iterable[RenderableType]
"""What people are shown of an answer, each part below the one before."""


def deliver(value: Answer | dict[str, Any], lines: Lines, json_: bool) -> None:
    """Print an answer, for machines or for people."""
    if json_:
        answer(value)
    else:
        display(lines)


def display(lines: Lines) -> None:
    """Print each part below the one before."""
    out = console()
    for part in lines:
        out.print(part, soft_wrap=isinstance(part, Unwrapped))


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


def listed(word: str, lines: Iterable[str]) -> Lines:
    """Lines that begin with the same word."""
    yield from (f"{word}: {line}" for line in lines)


def head_line(head: str | None) -> str:
    """The end of the ledger's chain, for whoever keeps it."""
    return f"Ledger head {head} (keep it elsewhere: it shows whether the ledger's end was cut)"


def words_grid(rows: Iterable[tuple[str, str]]) -> RenderableType:
    """Words beside what they are about; words that are long go on below themselves."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(overflow="fold")
    grid.add_column(overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return Padding(grid, (0, 0, 0, 2), expand=False)


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


def can_ask() -> bool:
    """Whether somebody can be asked: on standard error, since standard output has the answer alone."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def check_asking(why: str) -> None:
    """Raise InputError where there is no terminal to ask at. why: what would be asked about."""
    if not can_ask():
        raise InputError(f"{why}. Nobody can be asked here, since this is no terminal: add --yes to go on unasked")


def confirmed(question: str) -> bool:
    """Ask; whatever is not a yes is a no, the end of the input included."""
    say(f"{question} [y/N] ", end="")
    line = sys.stdin.readline()
    if not line.endswith("\n"):
        say("")
    return line.strip().lower() in ("y", "yes")


def progress_words(reached: SearchProgress) -> str:
    """How far it is, in one line."""
    if reached.stage == "boxes":
        return _map_words(reached)
    rate = "" if reached.rate is None else f", {reached.rate:,.1f} a second"
    read = f", {reached.rows_read:,} rows read" if reached.rows_read else ""
    remaining = "" if reached.remaining is None or not reached.left else f"; about {duration(reached.remaining)} more"
    what = NAMED.get(reached.stage, "nodes")
    left = "" if reached.stage == "walk" else f", {reached.left:,} left"
    done = f"{reached.decided:,} {what} {DONE[reached.stage]}{left}"
    return f"{done}; {reached.questions:,} questions{rate}{read}{remaining}"


def _map_words(reached: SearchProgress) -> str:
    """The same of a map: how many open parts there will be is not known, and so no time."""
    share = "" if reached.settled is None else f" with {100 * reached.settled:.0f} % of the rows"
    parts = "1 part" if reached.left == 1 else f"{reached.left:,} parts"
    return f"{reached.decided:,} boxes done{share}, {parts} open; round {reached.questions:,}"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever a person would say."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def every_so_often(write: Callable[[str], None]) -> ProgressReport:
    """Writes a line now and then."""
    last = time.monotonic()

    def report(reached: SearchProgress) -> None:
        nonlocal last
        if time.monotonic() - last >= EVERY_SECONDS:
            last = time.monotonic()
            write(progress_words(reached))

    return report


@contextmanager
def progress(quiet: bool, *, at_once: bool = True) -> Iterator[ProgressReport | None]:
    """What is told how far a search is; None where nobody wants to know. at_once: whether a bar is drawn before the
    first report, which would be over a question that is asked till then."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar(at_once) as report:
            yield report
    else:
        yield every_so_often(lambda line: say(f"qblock: {line}"))


@contextmanager
def _bar(at_once: bool) -> Iterator[ProgressReport]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[more]}"),
        TimeElapsedColumn(),
        console=Console(file=styled(sys.stderr)),
        transient=True,
    )
    line = bar.add_task("reading the source", total=None, more="")

    def report(reached: SearchProgress) -> None:
        bar.start()
        what = NAMED.get(reached.stage, "nodes")
        more = f"{reached.decided:,}/{reached.decided + reached.left:,} {what}, {reached.questions:,} questions"
        if reached.remaining is not None and reached.left:
            more += f", about {duration(reached.remaining)} more"
        done: float = reached.decided
        total = None if reached.stage == "walk" else reached.decided + reached.left
        if reached.stage == "boxes":
            more, done, total = _map_words(reached), reached.settled or 0, None if reached.settled is None else 1
        bar.update(line, description=STAGES[reached.stage], completed=done, total=total, more=more)

    if at_once:
        bar.start()
    try:
        yield report
    finally:
        bar.stop()
