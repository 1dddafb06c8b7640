"""The statements behind a node, as text, for every engine."""

from __future__ import annotations

import duckdb_sqlalchemy
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from qblock.search.nodes import parse_node
from qblock.search.task import Task
from qblock.warehouse import queries

ENGINES: tuple[tuple[str, sa.Dialect], ...] = (
    ("DuckDB", duckdb_sqlalchemy.Dialect()),
    ("PostgreSQL", postgresql.dialect()),  # type: ignore[no-untyped-call]
)


def explain_sql(task: Task, node: str | None) -> list[tuple[str, str]]:
    """(title, statement) of the base scan and of a node's counts, as they are sent to each engine."""
    source = task.source
    levels = parse_node(task, node or "top")
    columns = {f"q{i}": source.expression(name) for i, name in enumerate(source.quasi_identifiers)}
    columns |= {f"s{i}": source.expression(name) for i, name in enumerate(source.sensitives)}
    sets = source.frequency_sets
    leaf, bottom = sets.leaf, task.lattice.bottom
    statements: list[tuple[str, queries.Query]] = [
        ("the base table, scanned once", queries.raw_scan(source.relation, columns)),
        (f"block sizes of node {list(levels)}", queries.roll_up(leaf, bottom, levels, sets.dimensions, ())),
    ]
    for i, name in enumerate(source.sensitives):
        query = queries.roll_up(leaf, bottom, levels, sets.dimensions, (i,))
        statements.append((f"counts of each value of {name} in the blocks of node {list(levels)}", query))
    return [
        (f"{engine}: {title}", str(query.compile(dialect=dialect, compile_kwargs={"literal_binds": True})))
        for engine, dialect in ENGINES
        for title, query in statements
    ]
