"""The demo: makes a warehouse, runs the release job on it, and says what happened in plain words."""

from __future__ import annotations

import os
import shlex
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from qblock.demo.people import Change, generate, next_month
from qblock.demo.tables import load_people, load_table, place_at
from qblock.demo.write import IN_FOLDER, Demo, write_demo, write_warehouse
from qblock.engines.duckdb import dialect as duckdb_session
from qblock.engines.engine import database_file
from qblock.engines.faults import shown_url
from qblock.engines.postgresql import session as postgresql_session
from qblock.engines.registry import engine_of, parse_url
from qblock.ledger.history import history
from qblock.release.apply import release
from qblock.release.result import waiting_words
from qblock.search.boxes.recoded import shares_in_words
from qblock.spec import Spec, load_spec
from qblock.spec.sections import WEIGHTS_NAME

ROWS_SHOWN = 3
SHARES_SHOWN = 2
MONTHS = 3
WIDEST = 118
"""Columns of a line of prose; where the terminal has fewer, as many as it has."""
NARROW = 100
"""In fewer columns than this, a row is shown as a column."""
WHY_WAIT = "People who left go ten at a time from a group: a difference of a few rows would tell whose they are."


def run_demo(directory: Path, *, rows: int, seed: int, url: str | None, console: Console) -> None:
    """Write people, hierarchies and spec into a folder, release them, and print what was asked, done and satisfied."""
    # A wrong URL is named before a folder is written that nothing would come of.
    place = IN_FOLDER if url is None else place_at(url)
    demo = write_demo(directory, rows, seed, place)
    environment = dict(os.environ)
    if url is not None:
        load_people(url, rows, seed)
        environment["WAREHOUSE_URL"] = url
    spec = load_spec(demo.spec, environment)
    where = demo.warehouse if url is None else engine_of(parse_url(url)).title
    with console.status("Making a table and publishing it"):
        fields = release(spec, force=True).to_dict()
    _show_published(spec, fields, console)
    secret, known = " or ".join(spec.sensitives), ", ".join(spec.quasi_identifiers)
    table = f"{rows:,} invented people are in {where}, table {spec.source.table}."
    _head(console, "2. The table", f"{table} Readers may know {known}. They must not learn {secret}.")
    _head(console, "3. What holds", f"(asked in {demo.spec}, counted again from the published rows)")
    for requirement, entry in zip(spec.privacy, fields["tightest"], strict=True):
        _say(console, f"{_satisfied(entry)}: {requirement.meaning}")
    _head(console, "4. What readers see", "of each column, and for how many rows")
    for attribute in fields["search"]["attributes"]:
        words = shares_in_words(attribute["labels"], attribute["suppressed"], most=SHARES_SHOWN)
        _say(console, f"{attribute['attribute']}: {words}")
    _head(console, "5. The next months", "The same job runs again, each time a month later.")
    people, shown = generate(rows, seed), fields["rows"]
    for number in range(2, MONTHS + 1):
        month = next_month(people, number, seed)
        people, shown = month.people, _month(spec, demo, month, number, url, shown, console)
    _say(console, WHY_WAIT)
    _head(console, "6. Now you", "")
    # The spec names its server by this variable.
    address = [] if url is None else [f"export WAREHOUSE_URL={_as_given(url)}"]
    # Not wrapped, so that they can be copied.
    for command in (*address, query_command(spec), f"qblock release {demo.spec}", f"qblock verify {demo.spec}"):
        console.print(f"   {command}", soft_wrap=True)


def _as_given(url: str) -> str:
    """A URL for a command line, where all of it may be shown."""
    return shlex.quote(url) if shown_url(parse_url(url)) == url else "URL  # that of --url"


def _show_published(spec: Spec, fields: dict[str, Any], console: Console) -> None:
    """The answer, and some of the rows. fields: of the release's result."""
    # As files are said otherwise: from here.
    view = fields["view"].replace(f"{Path.cwd()}{os.sep}", "")
    what = f"{fields['rows']:,} rows as {view}, version {fields['version']} ({fields['boxes']:,} groups)"
    _head(console, "1. Published", what)
    if fields["suppressed"]:
        _say(console, f"{fields['suppressed']:,} rows were left out: no group could take them")
    names, sample = published_rows(spec, ROWS_SHOWN)
    console.print(_sample(spec, names, sample, narrow=console.width < NARROW))


def _satisfied(entry: dict[str, Any]) -> str:
    """What was asked of a model, and what the published rows satisfy."""
    value = entry["values"][0]
    satisfied = f"{value['value']:.4g}" if isinstance(value["value"], float) else str(value["value"])
    return f"{entry['model']}, {value['parameter']} asked {entry['asked'][value['parameter']]}, satisfied {satisfied}"


def _head(console: Console, title: str, text: str) -> None:
    head, *rest = _lines(console, f"{title}  {text}", "")
    if not title.startswith("1."):
        console.print()
    console.print(f"[bold]{title}[/bold]{head.removeprefix(title)}")
    for line in rest:
        console.print(line)


def _say(console: Console, text: str, indent: str = "   ") -> None:
    for line in _lines(console, text, indent):
        console.print(line)


def _lines(console: Console, text: str, indent: str) -> list[str]:
    width = min(console.width, WIDEST)
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent or "   ", break_on_hyphens=False)


def _sample(spec: Spec, names: list[str], rows: list[tuple[Any, ...]], *, narrow: bool) -> Table:
    """Rows of the view, without bounds: as rows, or as columns in a narrow terminal."""
    columns = {name: [str(row[i]) for row in rows] for i, name in enumerate(names) if name in spec.attributes}
    shown = Table(box=None, pad_edge=False, header_style="bold", show_header=not narrow)
    if narrow:
        shown.add_column(style="bold", no_wrap=True)
        for _ in rows:
            shown.add_column(overflow="fold")
        for name, values in columns.items():
            shown.add_row(name, *values)
        return shown
    for name in columns:
        shown.add_column(name, overflow="fold")
    for row in zip(*columns.values(), strict=True):
        shown.add_row(*row)
    return shown


def _month(spec: Spec, demo: Demo, month: Change, number: int, url: str | None, before: int, console: Console) -> int:
    """One month: the people change, the job runs, and what it says is printed; the rows that are shown now. before:
    those that were."""
    if demo.warehouse is not None:
        write_warehouse(demo.warehouse, month.people)
    elif url is not None:
        load_table(url, month.people)
    paid = f"{month.changed:,} {'changes' if month.changed == 1 else 'change'}"
    _say(console, f"Month {number}: {month.joined:,} people join, {month.left:,} leave, {paid} salary.")
    result = release(spec)
    said = f"version {result.version} stays: {result.rows:,} rows"
    if result.status == "published":
        events = history(spec)["events"]
        detail = next(e["detail"] for e in events if (e["state"], e["version"]) == ("published", result.version))
        newcomers = detail.get("newcomers", 0)
        gone = before + newcomers - result.rows
        parts = [f"{newcomers:,} of them newcomers"] if newcomers else []
        parts += [f"{gone:,} leavers went"] if gone > 0 else []
        parts.append(f"sum({WEIGHTS_NAME}) {people_now(spec):,.0f}")
        said = f"version {result.version} is published: {result.rows:,} rows, {', '.join(parts)}"
    _say(console, said, " " * 6)
    if result.waiting:
        _say(console, waiting_words(result.waiting, result.lag.to_dict()), " " * 6)
    return result.rows


@contextmanager
def _reading(spec: Spec) -> Iterator[sa.Connection]:
    """A connection to what readers see."""
    if spec.publish.url is not None:
        file = database_file(parse_url(spec.publish.url.url), spec.directory)
        engine = duckdb_session.file_engine(file)
    else:
        engine = postgresql_session.create_engine(parse_url(spec.source.url.url))
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def published_rows(spec: Spec, most: int) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The columns of the view, and a few rows spread over it."""
    view = sa.table(spec.view, schema=spec.publish.schema)
    with _reading(spec) as connection:
        total = connection.scalar(sa.select(sa.func.count()).select_from(view)) or 0
        names: list[str] = []
        rows: list[tuple[Any, ...]] = []
        for i in range(most):
            page = connection.execute(sa.select(sa.text("*")).select_from(view).limit(1).offset(i * total // most))
            names = list(page.keys())
            rows += [tuple(row) for row in page]
    return names, rows


def people_now(spec: Spec) -> float:
    """How many of the people whom the view shows are there now, by their weights."""
    view = sa.table(spec.view, sa.column(WEIGHTS_NAME), schema=spec.publish.schema)
    with _reading(spec) as connection:
        return float(connection.scalar(sa.select(sa.func.sum(view.c[WEIGHTS_NAME]))) or 0)


def query_command(spec: Spec) -> str:
    """A command line that reads the view."""
    query = f"SELECT * FROM {spec.publish.schema}.{spec.view} LIMIT 10"
    if spec.publish.url is None:
        return f'psql "$WAREHOUSE_URL" -c "{query}"'
    file = database_file(parse_url(spec.publish.url.url), spec.directory)
    near = os.path.relpath(file)
    return f'duckdb {file if near.startswith("..") else near} "{query}"'
