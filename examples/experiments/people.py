"""The people of the experiments in a database: the Adult data from a folder, or the demo's invented people.

Nothing is kept: a DuckDB file of a temporary folder, or a PostgreSQL schema of its own that is dropped at the end.
"""

from __future__ import annotations

import csv
import json
import random
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psycopg
import pyarrow as pa
import sqlalchemy as sa
from psycopg import sql

from qblock.demo.people import generate, hierarchies
from qblock.spec import Spec, read_spec

ADULT = ("age", "gender", "race", "marital_status", "education", "native_country", "work_class")
DEMO = ("age", "gender", "marital_status", "education", "country", "work_class")
SENSITIVE = ("occupation", "salary_class")
SAMPLE = 0.05


@dataclass(frozen=True)
class People:
    """Where the people are, and what the hierarchies of their columns are called in a spec."""

    url: str
    schema: str
    quasi_identifiers: tuple[str, ...]
    entries: dict[str, str]
    rows: int

    def spec(
        self,
        quasi_identifiers: int,
        privacy: Sequence[str],
        *,
        sensitive: Sequence[str] = SENSITIVE,
        sample: bool = False,
    ) -> Spec:
        """A spec over the first quasi-identifiers."""
        names = (*self.quasi_identifiers[:quasi_identifiers], *sensitive)
        columns = "".join(f"  {name}: {self.entries[name]}\n" for name in names)
        entries = "".join(f"  - {entry}\n" for entry in privacy)
        table = f"{self.schema}.{'sample' if sample else 'people'}"
        text = (
            f"version: 1\nrelease: experiments\nsource: {{url: {json.dumps(self.url)}, table: {table}}}\n"
            f"attributes:\n{columns}privacy:\n{entries}"
        )
        return read_spec(text, "experiments", {})


@contextmanager
def adult(folder: Path, url: str | None, work: Path, seed: int) -> Iterator[People]:
    """The Adult data: FOLDER/adult.csv and FOLDER/hierarchies/NAME.csv."""
    with (folder / "adult.csv").open(encoding="utf-8", newline="") as file:
        rows = [[line[name] for name in (*ADULT, *SENSITIVE)] for line in csv.DictReader(file)]
    files = {name: folder.resolve() / "hierarchies" / f"{name}.csv" for name in (*ADULT, *SENSITIVE)}
    entries = {
        name: f"{{role: quasi_identifier, hierarchy: {{file: {json.dumps(str(files[name]))}}}}}" for name in ADULT
    }
    entries |= {name: f"{{role: sensitive, taxonomy: {{file: {json.dumps(str(files[name]))}}}}}" for name in SENSITIVE}
    with _loaded(rows, ADULT, url, work, seed) as (address, schema):
        yield People(address, schema, ADULT, entries, len(rows))


@contextmanager
def demo(size: int, url: str | None, work: Path, seed: int) -> Iterator[People]:
    """The demo's people."""
    made = generate(size, seed).select([*DEMO, *SENSITIVE]).to_pylist()
    rows = [[str(row[name]) for name in (*DEMO, *SENSITIVE)] for row in made]
    entries = dict.fromkeys(DEMO, "{role: quasi_identifier, hierarchy: suppress}")
    for name, text in hierarchies().items():
        (work / f"{name}.csv").write_text(text, "utf-8")
        role, key = ("quasi_identifier", "hierarchy") if name in DEMO else ("sensitive", "taxonomy")
        entries[name] = f"{{role: {role}, {key}: {{file: {json.dumps(str(work / f'{name}.csv'))}}}}}"
    entries["salary_class"] = "sensitive"
    with _loaded(rows, DEMO, url, work, seed) as (address, schema):
        yield People(address, schema, DEMO, entries, len(rows))


@contextmanager
def _loaded(
    rows: list[list[str]], quasi: Sequence[str], url: str | None, work: Path, seed: int
) -> Iterator[tuple[str, str]]:
    """All rows in the table `people`, and a Bernoulli sample of them in `sample`."""
    columns = [*quasi, *SENSITIVE]
    draw = random.Random(seed)
    tables = {"people": rows, "sample": [row for row in rows if draw.random() < SAMPLE]}
    if url is None:
        file = work / "people.duckdb"
        with duckdb.connect(str(file)) as connection:
            for name, found in tables.items():
                texts = pa.table([pa.array(values, pa.string()) for values in zip(*found, strict=True)], names=columns)
                connection.register("found", texts)
                connection.execute(f"CREATE TABLE {name} AS SELECT * FROM found")
        yield f"duckdb:///{file}", "main"
        return
    schema = f"qblock_experiments_{secrets.token_hex(4)}"
    address = sa.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    try:
        with psycopg.connect(address) as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
            for name, found in tables.items():
                _fill(connection, sql.Identifier(schema, name), columns, found)
        yield url, schema
    finally:
        with psycopg.connect(address) as connection:
            connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))


def _fill(connection: psycopg.Connection, table: sql.Identifier, columns: Sequence[str], rows: list[list[str]]) -> None:
    typed = sql.SQL(", ").join(sql.SQL("{} text NOT NULL").format(sql.Identifier(name)) for name in columns)
    connection.execute(sql.SQL("CREATE TABLE {} ({})").format(table, typed))
    with connection.cursor() as cursor, cursor.copy(sql.SQL("COPY {} FROM STDIN").format(table)) as copy:
        for row in rows:
            copy.write_row(row)
    connection.execute(sql.SQL("ANALYZE {}").format(table))
