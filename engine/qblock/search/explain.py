"""The statements behind a node, as text, for every engine."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import quoted_name

from qblock.search.nodes import parse_node
from qblock.search.task import Task
from qblock.warehouse import TableName, queries
from qblock.warehouse.engines import ENGINES


def explain_sql(task: Task, node: str | None) -> list[tuple[str, str]]:
    """(title, statement) of the base scan and of a node's counts, as they are sent to each engine.

    The second and the following read what the first has stored, coded, as the leaf frequency set; a node is rolled up
    from a finer one where that is smaller.
    """
    source = task.source
    levels = parse_node(task, node or "top")
    table = TableName.parse(task.spec.source.table)
    names = {f"q{i}": name for i, name in enumerate(source.quasi_identifiers)}
    names |= {f"s{i}": name for i, name in enumerate(source.sensitives)}
    sets = source.frequency_sets
    leaf, bottom = sets.leaf, task.lattice.bottom
    statements: list[tuple[str, queries.Query]] = []
    for sensitive in ((), *((i,) for i in range(len(source.sensitives)))):
        if sets.entities:
            query = queries.count_entities(leaf, levels, sets.dimensions, sensitive)
        else:
            query = queries.roll_up(leaf, bottom, levels, sets.dimensions, sensitive)
        what = f"counts of each value of {names[f's{sensitive[0]}']} in the blocks" if sensitive else "block sizes"
        statements.append((f"{what} of node {list(levels)}", query))
    found = []
    for engine in ENGINES.values():
        facts, dialect = engine.facts(), engine.dialect()
        columns: list[sa.ColumnClause[Any]] = [sa.column(name) for name in source.columns]
        base = sa.table(quoted_name(table.name, quote=True), *columns, schema=facts.prefix(table.schema))
        scanned = {key: source.session.comparable(base.c[name], source.columns[name]) for key, name in names.items()}
        if sets.entities and task.spec.entity is not None:
            scanned["e"] = base.c[task.spec.entity]
        scan = ("the base table, scanned once", queries.raw_scan(base, scanned))
        for title, query in (scan, *statements):
            text = str(query.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))
            found.append((f"{engine.title}: {title}", text))
    return found
