"""Progress on standard error: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from qblock.cli.streams import say, styled

if TYPE_CHECKING:
    from qblock.api import SearchProgress

EVERY_SECONDS = 5.0
STAGES = {"search": "searching", "walk": "searching", "choice": "choosing", "boxes": "splitting", "nodes": "each node"}
DONE = {"search": "decided", "walk": "asked", "choice": "measured", "boxes": "done", "nodes": "evaluated"}
Report = Callable[["SearchProgress"], None]


def in_words(reached: SearchProgress) -> str:
    """How far it is, in one line."""
    rate = "" if reached.rate is None else f", {reached.rate:,.1f} a second"
    read = f", {reached.rows_read:,} rows read" if reached.rows_read else ""
    remaining = "" if reached.remaining is None or not reached.left else f"; about {duration(reached.remaining)} more"
    what = "boxes" if reached.stage == "boxes" else "nodes"
    left = "" if reached.stage == "walk" else f", {reached.left:,} left"
    done = f"{reached.decided:,} {what} {DONE[reached.stage]}{left}"
    return f"{done}; {reached.questions:,} questions{rate}{read}{remaining}"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever a person would say."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def every_so_often(write: Callable[[str], None]) -> Report:
    """Writes a line now and then."""
    last = time.monotonic()

    def report(reached: SearchProgress) -> None:
        nonlocal last
        if time.monotonic() - last >= EVERY_SECONDS:
            last = time.monotonic()
            write(in_words(reached))

    return report


@contextmanager
def progress(quiet: bool) -> Iterator[Report | None]:
    """What is told how far a search is; None where nobody wants to know."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar() as report:
            yield report
    else:
        yield every_so_often(lambda line: say(f"qblock: {line}"))


@contextmanager
def _bar() -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[more]}"),
        TimeElapsedColumn(),
        console=Console(file=styled(sys.stderr)),
        transient=True,
    )
    with bar:
        line = bar.add_task("reading the source", total=None, more="")

        def report(reached: SearchProgress) -> None:
            more = f"{reached.decided:,}/{reached.decided + reached.left:,} nodes, {reached.questions:,} questions"
            if reached.remaining is not None and reached.left:
                more += f", about {duration(reached.remaining)} more"
            total = None if reached.stage == "walk" else reached.decided + reached.left
            bar.update(line, description=STAGES[reached.stage], completed=reached.decided, total=total, more=more)

        yield report


@contextmanager
def progress_once_begun(quiet: bool) -> Iterator[Report | None]:
    """`progress` from the first report on: no bar is drawn over a question that is asked before."""
    if quiet:
        yield None
        return
    begun: list[Report] = []
    with ExitStack() as stack:

        def report(reached: SearchProgress) -> None:
            if not begun:
                inner = stack.enter_context(progress(False))
                assert inner is not None
                begun.append(inner)
            begun[0](reached)

        yield report
