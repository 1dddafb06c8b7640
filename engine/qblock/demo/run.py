"""The demo: makes a warehouse, runs the release job on it, and says what happened in plain words."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from qblock.demo.load import load_people, load_table
from qblock.demo.people import generate
from qblock.demo.weeks import next_week
from qblock.demo.write import Demo, write_demo, write_warehouse
from qblock.ledger.history import history
from qblock.models import asked as asked_of
from qblock.models.examples import in_words
from qblock.release.apply import release
from qblock.release.result import waiting_words
from qblock.spec import Spec, load_spec
from qblock.warehouse import duckdb_session, postgresql_session
from qblock.warehouse.connect import parse_url
from qblock.warehouse.engines import database_file

ROWS_SHOWN = 5
WEEKS = 3
WHY_WAIT = """\
   Newcomers wait until there are enough of them to pass like anybody else; how many was set before anybody
   looked at their values. Who left, and what changed, is shown as it was: a difference of a few rows between
   two versions would tell whose they are.
   Every week ends like this, with exit status 0. Readers get the rows, and learn none of these figures."""


WHY_LONG = """\
   In small groups that takes long: it is the price of so much detail. `qblock plan --churn 0.01` says how long,
   and stricter models, or `recoding: full_domain`, make larger groups."""


def run_demo(directory: Path, *, rows: int, seed: int, url: str | None, console: Console) -> None:
    """Write people, hierarchies and spec into a folder, release them, and print what was asked, done and reached."""
    out = console.print
    demo = write_demo(directory, rows, seed, warehouse=url is None)
    environment = dict(os.environ)
    if url is not None:
        load_people(url, rows, seed)
        environment["WAREHOUSE_URL"] = url
    spec = load_spec(demo.spec, environment)
    where = str(demo.warehouse) if demo.warehouse is not None else "the PostgreSQL database"
    out(f"\n[bold]1. The table[/bold]  {rows:,} invented people in {where}, table {spec.source.table}.")
    secret, known = " or ".join(spec.sensitives), ", ".join(spec.quasi_identifiers)
    out(f"   The release must not reveal anybody's {secret}, even to a reader who knows")
    out(f"   that person's {known}.")
    out(f"\n[bold]2. What is asked[/bold]  ({demo.spec})")
    for requirement in spec.privacy:
        model = requirement.model
        given = ", ".join(f"{k}={v}" for k, v in asked_of(model).items() if v is not None)
        out(f"   {model.name} {given}: {in_words(model, requirement.sensitive)}")
    out("\n[bold]3. The search[/bold]  Each column can be published as it is, or coarser and coarser up to *, and")
    out("   differently in each group of people who look the same.")
    result = release(spec, force=True)
    found = result.to_json()
    search = found["search"]
    out(
        f"   The database was asked for the counts of {search['nodes_evaluated']:,} of {search['nodes_total']:,} "
        "combinations that are the same"
    )
    out("   for everybody, and then for those of the groups while they were split, all of them at once")
    out(f"   ({search['queries']:,} statements in {search['seconds']:.1f} seconds).")
    out(f"\n[bold]4. What was chosen[/bold]  {found['boxes']:,} groups of people who look the same")
    names, sample = published_rows(spec, ROWS_SHOWN)
    columns = Table(box=None, show_header=False, padding=(0, 0, 0, 3))
    for one in search["attributes"]:
        columns.add_row(one["attribute"], one["words"])
    out(columns)
    out(f"\n[bold]5. What was published[/bold]  {found['rows']:,} rows as {found['view']}, version {found['version']}")
    if found["suppressed"]:
        out(f"   {found['suppressed']:,} rows were left out because they could not be hidden")
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        shown.add_column(name)
    for row in sample:
        shown.add_row(*(str(value) for value in row))
    out(shown)
    out("\n[bold]6. What is guaranteed[/bold]  (recomputed from the published rows before they were published)")
    guarantees = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("guarantee", "about", "asked", "reached"):
        guarantees.add_column(column)
    for entry in found["tightest"]:
        value = entry["values"][0]
        asked = entry["asked"][value["parameter"]]
        about = ", ".join(entry["sensitive"]) or "everybody"
        reached = f"{value['value']:.4g}" if isinstance(value["value"], float) else str(value["value"])
        guarantees.add_row(entry["model"], about, f"{value['parameter']} = {asked}", reached)
    out(guarantees)
    out("\n[bold]7. The next weeks[/bold]  The same job runs again, on the same table a week later.")
    people, published = generate(rows, seed), 0
    for number in range(2, WEEKS + 1):
        people, shown_now = _week(spec, demo, people, number, seed, url, console)
        published += shown_now
    out(WHY_WAIT)
    if not published:
        out(WHY_LONG)
    out("\n[bold]8. Now you[/bold]")
    out(f"   the view:        {query_command(spec)}")
    out(f"   the next run:    qblock release {demo.spec}      (cron or systemd does it for you)")
    out(f"   check it:        qblock verify {demo.spec}")
    out(f"   what happened:   qblock history {demo.spec}")
    out(f"   ask for more:    edit {demo.spec}, then qblock plan {demo.spec}")


def _week(
    spec: Spec, demo: Demo, people: pa.Table, number: int, seed: int, url: str | None, console: Console
) -> tuple[pa.Table, bool]:
    """One week: the people change, the job runs, and what it says is printed; the people who are there now, and whether
    a version was published."""
    week = next_week(people, number, seed)
    if demo.warehouse is not None:
        write_warehouse(demo.warehouse, week.people)
    elif url is not None:
        load_table(url, week.people)
    out = console.print
    paid = f"{week.changed:,} {'is' if week.changed == 1 else 'are'}"
    out(f"   Week {number}: {week.joined:,} people join, {week.left:,} leave, {paid} paid otherwise.")
    found = release(spec)
    if found.status == "published":
        events = history(spec)["events"]
        detail = next(e["detail"] for e in events if (e["state"], e["version"]) == ("published", found.version))
        shown = f", {detail['newcomers']:,} newcomers among them" if detail.get("newcomers") else ""
        out(f"      version {found.version} is published: {found.rows:,} rows{shown}")
    else:
        out(f"      version {found.version} stays: {found.rows:,} rows")
    if found.waiting:
        out(f"      {waiting_words(found.waiting, found.lag)}")
    return week.people, found.status == "published"


def published_rows(spec: Spec, most: int) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The columns of the view, and a few rows spread over it."""
    if spec.publish.url is not None:
        file = database_file(parse_url(spec.publish.url.url), spec.directory)
        engine = duckdb_session.create_engine(sa.URL.create("duckdb", database=str(file)), read_only=True)
    else:
        engine = postgresql_session.create_engine(parse_url(spec.source.url.url))
    view = sa.table(spec.view, schema=spec.publish.schema)
    with engine.connect() as connection:
        total = connection.scalar(sa.select(sa.func.count()).select_from(view)) or 0
        names: list[str] = []
        rows: list[tuple[Any, ...]] = []
        for i in range(most):
            found = connection.execute(sa.select(sa.text("*")).select_from(view).limit(1).offset(i * total // most))
            names = list(found.keys())
            rows += [tuple(row) for row in found]
    engine.dispose()
    return names, rows


def query_command(spec: Spec) -> str:
    """A command line that reads the view."""
    query = f"SELECT * FROM {spec.publish.schema}.{spec.view} LIMIT 10"
    if spec.publish.url is None:
        return f'psql "$WAREHOUSE_URL" -c "{query}"'
    file = database_file(parse_url(spec.publish.url.url), spec.directory)
    near = os.path.relpath(file)
    return f'duckdb {file if near.startswith("..") else near} "{query}"'
