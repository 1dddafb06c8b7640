"""A ledger in a file, in DuckDB and in SQLite, with events that are appended and checked as the program does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from qblock.engines.duckdb import dialect as duckdb_session
from qblock.ledger.events import Event, Guarantee, chain_digest, event_row, guarantee_rows
from qblock.ledger.schema import Tables
from qblock.version import __version__

RELEASE = "people"
TABLES = Tables(None)
for table in (TABLES.event, TABLES.guarantee):
    key = [name for name in ("release", "number", "position") if name in table.c]
    table.append_constraint(sa.PrimaryKeyConstraint(*key))
GUARANTEES = [
    Guarantee(
        stage="search",
        model=model,
        sensitive=None,
        parameters='{"k":10}',
        parameter="k",
        asked="10",
        satisfied="12",
        satisfied_number=12.0,
        attained=True,
        holds=True,
        margin=0.2,
    )
    for model in ("k_anonymity", "distinct_l_diversity")
]


def in_duckdb(file: Path, read_only: bool) -> sa.Engine:
    """As the program opens its files."""
    return duckdb_session.file_engine(file, read_only=read_only)


def in_sqlite(pragmas: str, file: Path, read_only: bool) -> sa.Engine:
    """A writer takes its lock where its transaction begins; nobody waits for one."""
    engine = sa.create_engine(f"sqlite:///{file}", poolclass=sa.NullPool, connect_args={"timeout": 0})

    @sa.event.listens_for(engine, "connect")
    def settle(driver: Any, _: Any) -> None:
        driver.isolation_level = None
        for pragma in pragmas.split(", "):
            driver.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    return engine


STORES: dict[str, Callable[[Path, bool], sa.Engine]] = {
    "DuckDB": in_duckdb,
    "SQLite (WAL)": partial(in_sqlite, "journal_mode=WAL, synchronous=FULL"),
    "SQLite (rollback journal)": partial(in_sqlite, "journal_mode=DELETE, synchronous=EXTRA"),
}


def create(store: str, file: Path, events: int = 0) -> tuple[int, int]:
    """A ledger with so many events, each in a transaction; its bytes with what is beside it, open and closed."""
    with STORES[store](file, False).connect() as connection:
        with connection.begin():
            for table in (TABLES.event, TABLES.guarantee):
                connection.execute(sa.schema.CreateTable(table))
        for _ in range(events):
            with connection.begin():
                append(connection)
        size = _size(file)
    return size, _size(file)


def _size(file: Path) -> int:
    return sum(path.stat().st_size for path in file.parent.glob(f"{file.name}*"))


def append(connection: sa.Connection) -> None:
    """An event with two guarantees, in the transaction of the caller, as `ledger.chain.record` does."""
    event = TABLES.event
    newest = sa.select(event.c.number, event.c.digest).where(event.c.release == RELEASE)
    last = connection.execute(newest.order_by(event.c.number.desc()).limit(1)).first()
    number, previous = (last.number + 1, last.digest) if last else (1, None)
    content = Event(release=RELEASE, state="published", run=f"run {number}", version=number, detail={"rows": number})
    row = event_row(content) | {"number": number, "program_version": __version__, "previous_digest": previous}
    rows = guarantee_rows(GUARANTEES)
    row["digest"] = chain_digest(row, rows)
    connection.execute(event.insert(), [row])
    connection.execute(TABLES.guarantee.insert(), [{"release": RELEASE, "number": number, **each} for each in rows])


def add(store: str, file: Path) -> None:
    """Append an event in a transaction."""
    with STORES[store](file, False).begin() as connection:
        append(connection)


def read_newest(engine: sa.Engine) -> None:
    """Open a ledger, read its newest event and close it."""
    event = TABLES.event
    newest = sa.select(event).where(event.c.release == RELEASE).order_by(event.c.number.desc()).limit(1)
    with engine.connect() as connection:
        connection.execute(newest).all()


def length(store: str, file: Path) -> int:
    """How many events a ledger has. Raises ValueError where the chain is broken or half of an event is there."""
    with STORES[store](file, True).connect() as connection:
        events = [dict(row) for row in connection.execute(sa.select(TABLES.event).order_by("number")).mappings()]
        ordered = sa.select(TABLES.guarantee).order_by("number", "position")
        guarantees: dict[int, list[dict[str, Any]]] = {}
        for row in connection.execute(ordered).mappings():
            guarantees.setdefault(row["number"], []).append(dict(row))
    if any(after["previous_digest"] != before["digest"] for before, after in pairwise(events)):
        raise ValueError("the chain is broken")
    if any(chain_digest(event, guarantees.pop(event["number"], ())) != event["digest"] for event in events):
        raise ValueError("half of an event is there")
    if guarantees or [event["number"] for event in events] != list(range(1, len(events) + 1)):
        raise ValueError("an event is missing")
    return len(events)
