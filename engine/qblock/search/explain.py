"""The statements behind a node, as text, for every engine."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import quoted_name

from qblock.frequency.coding import packed
from qblock.search.nodes import parse_node
from qblock.search.task import Task
from qblock.warehouse import TableName, queries
from qblock.warehouse.engines import ENGINES


def explain_sql(task: Task, node: str | None) -> list[tuple[str, str]]:
    """(title, statement) of the base scan and of a node's counts, as they are sent to each engine.

    The second and the following read what the first has stored: the packed key of every row, of which a mask keeps a
    node's bits. A node is counted from a finer frequency set where one was stored that is smaller.
    """
    source = task.source
    levels = parse_node(task, node or "top")
    table = TableName.parse(task.spec.source.table)
    names = list(source.sensitives)
    sets = source.frequency_sets
    statements: list[tuple[str, queries.Query]] = []
    for sensitive in ((), *((i,) for i in range(len(source.sensitives)))):
        query = sets.statement(levels, sensitive)
        what = f"counts of each value of {names[sensitive[0]]} in the blocks" if sensitive else "block sizes"
        statements.append((f"{what} of node {list(levels)}", query))

    def value_of(base: sa.FromClause, name: str) -> queries.Expression:
        return source.session.comparable(base.c[name], source.columns[name])

    texts = []
    for engine in ENGINES.values():
        if not engine.stores and engine.name != source.session.engine:
            continue
        facts, dialect = engine.facts(), engine.dialect()
        columns: list[sa.ColumnClause[Any]] = [sa.column(name) for name in source.columns]
        schema = facts.prefix(table.schema)
        if table.catalog is not None and engine.name == source.session.engine:
            schema = quoted_name(f"{facts.prefix(table.catalog)}.{schema}", quote=False)
        base = sa.table(quoted_name(table.name, quote=True), *columns, schema=schema)
        quasi = [(value_of(base, n), d) for n, d in zip(source.quasi_identifiers, source.dimensions, strict=True)]
        values = [(value_of(base, name), attribute.dimension) for name, attribute in source.sensitives.items()]
        kept = {"e": base.c[task.spec.entity]} if sets.entities and task.spec.entity is not None else {}
        scan = ("the base table, coded in one scan", packed(base, sets.coding, quasi, values, kept))
        for title, query in (scan, *statements):
            text = str(query.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))
            texts.append((f"{engine.title}: {title}", text))
    return texts
