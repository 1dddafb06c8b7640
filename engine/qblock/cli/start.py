"""demo, examples, init, schema: the first minutes. What `init` says of a table is in groups of columns, 80 characters
wide."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import sys
import textwrap
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qblock.cli.output import Json, Lines, Unwrapped, answer, can_ask, console, deliver, display, table
from qblock.cli.streams import say
from qblock.errors import counted
from qblock.printable import printable

if TYPE_CHECKING:
    from qblock.api import Candidate, ExampleFiles, Proposed, ProposedColumn

WIDTH = 80
INDENT = 20
GROUPS = (
    ("quasi_identifier", "others may know"),
    ("sensitive", "nobody may learn"),
    ("decide", "yours to decide"),
    ("identifying", "never published"),
    ("left out", "left out"),
)
"""Roles, and what they are called."""
REGIMES = {
    "steady": "Repeated publication: new, departed and changed people appear in batches.",
    "once": "One publication: a later run with changed data is refused.",
}
"""What the spec is as it is written."""
MOST_NODES = 2_000
LISTED = 6
MOST_NAMES, MOST_FILES = 40, 12
"""Columns of a role, and files, that are named; of a table with more the spec and the folder have the others."""
NOBODY = (
    "rows are counted, not people. A later run with changed data is refused, or versions are not protected together"
)
RANGE = re.compile(r"([0-9]+)(?: ?- ?([0-9]+))?")


def demo(
    directory: Annotated[str, typer.Argument(metavar="[DIR]", help="Where the demo is written.")] = "qblock-demo",
    rows: Annotated[int, typer.Option(min=1000, help="How many people to make up.")] = 50_000,
    seed: Annotated[int, typer.Option(help="Another seed makes up other people.")] = 1,
    url: Annotated[
        str | None,
        typer.Option(help="Write the people to PostgreSQL, or to Spark (sc://HOST:15002), instead of a DuckDB file."),
    ] = None,
) -> None:
    """Make up people and publish them, explaining each step.

    The demo writes census-like people to a warehouse and runs the release job on them.
    """
    from qblock.api import run_demo

    run_demo(Path(directory), rows=rows, seed=seed, url=url, console=console(markup=True))


def examples(
    directory: Annotated[
        str, typer.Argument(metavar="[DIR]", help="Where the examples are written: a new or an empty folder.")
    ] = "qblock-examples",
    json_: Json = False,
) -> None:
    """Write the package's examples into a new folder.

    There are files for cron, Airflow and dbt, a notebook, and specs that run. They are yours to edit. No warehouse is
    needed, and nothing is run. A folder that holds something is left as it is.
    """
    from qblock.api import write_examples

    written = write_examples(Path(directory))
    deliver(written, _written(written), json_)


def _written(written: ExampleFiles) -> Lines:
    yield f"{len(written.examples)} examples are in {written.directory}. Its README.md tells how to schedule a release."
    yield table("", list(written.columns_shown), [list(row) for row in written.rows_shown()])
    yield "Next, a table of a paper and what can be published of it:"
    yield from (Unwrapped(f"  {line}") for line in written.next)


def init(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL|FILE", help="duckdb:///FILE or postgresql://USER@HOST/DATABASE; or Parquet or CSV files."
        ),
    ],
    table_: Annotated[
        str | None,
        typer.Argument(metavar="[TABLE]", help="The table or view of the database: table or schema.table."),
    ] = None,
    directory: Annotated[str, typer.Option(help="Where release.yaml and hierarchies/ are written.")] = ".",
    entity: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|none",
            help="The column that says whose a row is. Default: what the columns tell; in doubt you are asked.",
        ),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN|none",
            help="A column that nobody may learn about a person; repeatable. Default: you are asked, or `???` is "
            "left open.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing, and leave open what needs a decision.")] = False,
    open_: Annotated[
        bool,
        typer.Option(
            "--open",
            help="Also write roles.html, a page to choose the roles on, and open it in a browser. INTERNAL: readable "
            "by you alone.",
        ),
    ] = False,
    json_: Json = False,
) -> None:
    """Profile a table and write a first spec to edit.

    init proposes a role for each column, and writes the spec and its hierarchy files.

    The spec names the person column, which looks like an identifier. If it differs from row to row, each person has one
    row; if it repeats, a person has several. If several columns may name people, you are asked on a terminal, but not
    with --json. Elsewhere a clear best guess is written. If no guess is clear, the candidates are comments.

    init never decides for you which columns are sensitive. You are asked, or `???` stands where you decide.
    """
    from qblock.api import propose_spec

    ask = not json_ and not yes and can_ask()
    proposed = propose_spec(
        os.path.expandvars(url),
        table_,
        directory,
        force=force,
        entity=entity,
        ask=ask_person if ask else None,
        sensitive=sensitive,
        ask_sensitive=ask_sensitive if ask else None,
        page=open_,
    )
    if proposed.entity.how == "open":
        say(f"qblock: {proposed.entity.why} (--entity COLUMN sets it)")
    deliver(proposed, proposal_lines(proposed), json_)
    if proposed.page is not None and not json_:
        display(_wrapped(_page_line(proposed.page)))
    if not json_ and "://" in url and not url.startswith("duckdb:"):
        display(["Before it, name the database, which the spec does not:"])
        print(f"export WAREHOUSE_URL={_shown(url)}")


def _page_line(page: Path) -> str:
    """What is said of the page of roles, which a browser shows where there is a desktop."""
    desktop = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    opened = False
    if desktop:  # elsewhere a browser would take over the terminal
        with suppress(webbrowser.Error, OSError):
            opened = webbrowser.open(page.resolve().as_uri())
    how = f"{page} is open in your browser" if opened else f"Open {page} in a browser"
    return f"{how}, to choose the roles. Keep it from readers: it shows internal facts of the source."


def _shown(url: str) -> str:
    """A URL for a shell to read; one that may hold a secret is not repeated."""
    if re.search(r"//[^/?#]*:[^/]*@|(password|token|secret)[a-z_]*=", url, re.IGNORECASE):
        return "'THE URL THAT YOU GAVE'"
    return shlex.quote(url)


def schema(
    of: Annotated[
        str | None,
        typer.Option("--of", metavar="ANSWER", help="The answer: what this command prints with --json (search, ...)."),
    ] = None,
) -> None:
    """Print the JSON Schema of the spec, for editors.

    With --of it prints the schema of an answer, for programs.
    """
    from qblock.api import answer_schema, json_schema

    answer(json_schema() if of is None else answer_schema(of))


def proposal_lines(proposed: Proposed) -> Iterator[str]:
    """What is printed of a first spec."""
    yield from _wrapped(_head(proposed))
    if proposed.history is not None:
        yield from _wrapped(f"{proposed.history.why}.")
    yield from _wrapped(f"{'' if proposed.entity.how == 'open' else 'Person column: '}{proposed.entity.why}.")
    yield ""
    for role, title in GROUPS:
        columns = [column for column in proposed.columns if column.role == role]
        if columns:
            yield from _group(title, columns, proposed.open)
    yield ""
    yield from _wrapped(proposed.alone + ".")
    yield from _wrapped(f"{REGIMES[proposed.regime]} Other modes: end of {proposed.files[-1].name}.")
    for note in proposed.notes:
        yield from _wrapped(f"Note: {note}.")
    yield from _wrapped(f"Written: {_files(proposed.files)}")
    yield from _wrapped(_search(proposed))
    yield from _wrapped(_next(proposed))


def _files(files: Sequence[Path]) -> str:
    if len(files) <= MOST_FILES:
        return ", ".join(map(str, files))
    hierarchies = [file for file in files if file.suffix == ".csv"]
    others = [str(file) for file in files if file not in hierarchies]
    return ", ".join([f"{len(hierarchies):,} hierarchies in {hierarchies[0].parent}", *others])


def _first(words: Sequence[str], most: int) -> str:
    """So many of a list, and how many others there are."""
    if len(words) <= most:
        return ", ".join(words)
    return f"{', '.join(words[:most])} and {counted(len(words) - most, 'other')}"


def _head(proposed: Proposed) -> str:
    size = f"{proposed.rows:,} rows, {len(proposed.columns)} columns"
    if not proposed.types:
        return f"{size}."
    kinds: dict[str, int] = {}
    for type_ in proposed.types.values():
        kinds[type_.split("(")[0]] = kinds.get(type_.split("(")[0], 0) + 1
    words = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    named = ", ".join(list(proposed.types)[:LISTED])
    more = " ..." if len(proposed.types) > LISTED else ""
    return f"{size}. Types recognized in {len(proposed.types)} ({words}): {named}{more}"


def _group(title: str, columns: Sequence[ProposedColumn], open_: Mapping[str, int]) -> Iterator[str]:
    """The columns of a role; of those that are left out with the reason."""
    words = []
    for column in columns:
        reason = f" ({column.reason.split(';')[0]})" if column.role == "left out" else ""
        words.append(f"{column.name}{reason}")
    text = _first(words, MOST_NAMES)
    if columns[0].role == "decide":
        text += ": left out until you give them a role"
    if columns[0].role == "sensitive" and columns[0].name in open_:
        text += " (candidates by name: decide)"
    yield from textwrap.wrap(
        printable(text),
        WIDTH,
        initial_indent=f"  {title:<{INDENT - 2}}",
        subsequent_indent=" " * INDENT,
        break_on_hyphens=False,
    )


def _search(proposed: Proposed) -> str:
    """How many combinations of levels there are, and what lowers that."""
    known = [column.name for column in proposed.columns if column.role == "quasi_identifier"]
    columns = counted(len(known), "column")
    combinations = f"{columns} can be coarsened in {proposed.nodes:,} combinations"
    if proposed.nodes <= MOST_NODES or proposed.regime == "once":
        return f"{combinations}."
    return f"{combinations}: a search takes long. Remove {known[-1]}, or add `max: 2` to the hierarchies of others."


def _next(proposed: Proposed) -> str:
    spec = proposed.files[-1]
    if not proposed.open:
        return f"Next: check the roles and hierarchies, then `qblock search {spec}`"
    where = _first([f"{name} (line {line})" for name, line in proposed.open.items()], MOST_NAMES)
    return f"Next: decide in {spec} whether these are sensitive: {where}. Then `qblock search {spec}`"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(printable(text), WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def ask_person(candidates: Sequence[Candidate]) -> str:
    """Who a row is about, by a number on the terminal; standard output is for the answer."""
    say("Which column identifies the person of a row?")
    choices = [*((candidate.column, candidate.meaning) for candidate in candidates), ("none", f"none: {NOBODY}")]
    for number, (_, means) in enumerate(choices, 1):
        _tell(f"  {number}  {means}")
    while True:
        given = int(typer.prompt("Number", default=1, type=int, err=True))
        if 1 <= given <= len(choices):
            return choices[given - 1][0]
        say(f"Write a number from 1 to {len(choices)}.")


def ask_sensitive(columns: Sequence[ProposedColumn]) -> list[str]:
    """Which columns are sensitive, by their numbers or names on the terminal."""
    names = [column.name for column in columns]
    marked = [column.name for column in columns if column.role == "sensitive"]
    if not marked:
        say("No column looks sensitive by name.")
    say("Which columns are sensitive? Nobody may learn their values about a person.")
    for line in _listed(names, set(marked)):
        say(line)
    enter = "those with *" if marked else "none"
    _tell(f"Enter = {enter}; or numbers (1, 3-5), names, `none`, or ? to see why.")
    while True:
        text = str(typer.prompt("Sensitive", default="", show_default=False, err=True)).strip()
        if text == "?":
            for number, column in enumerate(columns, 1):
                _tell(f"  {number}  {column.name}: {column.role}, distinct values: {column.values}; {column.reason}")
            continue
        picked = parse_columns(text, names) if text else (marked or ["none"])
        people = [column.name for column in columns if column.role == "identifying" and column.name in (picked or ())]
        if picked is not None and not people:
            return picked
        if people:
            _tell(f"{', '.join(people)} leads to a person and is never published. Choose among the others.")
            continue
        _tell(f"Write numbers from 1 to {len(names)} or names, with commas between; or `none`, or ? to see why.")


def parse_columns(text: str, names: Sequence[str]) -> list[str] | None:
    """The columns that somebody typed: numbers, ranges of them and names; None where one of them is none."""
    if text in ("none", "0"):
        return ["none"]
    picked: list[str] = []
    parts = [text] if text in names else [part.strip() for part in text.split(",") if part.strip()]
    for part in itertools.chain(*([whole] if _known(whole, names) else whole.split() for whole in parts)):
        match = RANGE.fullmatch(part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if 1 <= first <= last <= len(names):
            picked += names[first - 1 : last]
        elif part in names:
            picked.append(part)
        else:
            return None
    return list(dict.fromkeys(picked)) or None


def _known(part: str, names: Sequence[str]) -> bool:
    return part in names or RANGE.fullmatch(part) is not None


def _listed(names: Sequence[str], marked: set[str]) -> list[str]:
    """The columns by number, side by side."""
    cells = [f"{number:>4} {'*' if name in marked else ' '} {printable(name)}" for number, name in enumerate(names, 1)]
    width = max(map(len, cells)) + 1
    across = max(1, WIDTH // width)
    return [
        "".join(f"{cell:<{width}}" for cell in cells[i : i + across]).rstrip() for i in range(0, len(cells), across)
    ]


def _tell(text: str) -> None:
    for line in _wrapped(text):
        say(line)
