"""Views that give another answer each time they are read: what is copied is not what was counted, or versions differ
though no row changed. Told from what the catalog has of them; of a view that cannot be read so, nothing is said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qblock.engines.session import Session
from qblock.engines.tables import TableName
from qblock.errors import InputError

if TYPE_CHECKING:
    from sqlglot import exp

RANDOM = frozenset(
    {"random", "randn", "setseed", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "generate_uuid", "nextval"}
    | {"clock_timestamp", "statement_timestamp", "timeofday", "monotonically_increasing_id", "tablesample"}
)
"""Functions that have another value for each reading of a view."""
DATED = frozenset(
    {"now", "today", "current_timestamp", "current_date", "current_time", "current_datetime", "transaction_timestamp"}
    | {"localtimestamp", "localtime", "current_localtimestamp", "current_localtime", "get_current_timestamp"}
)
"""Those that have another value in each run."""
DIALECTS = {"duckdb": "duckdb", "postgresql": "postgres", "spark": "spark"}


@dataclass(frozen=True)
class Volatile:
    """A view, the first function that makes it so, and whether each reading of it differs, within a run as well."""

    view: str
    function: str
    each_reading: bool


def volatile(session: Session, table: TableName) -> Volatile | None:
    """What makes a table one that is not the same when it is read again; None where nothing is known to. A function
    that differs within a run comes first."""
    called = list(_called(session, table))
    for functions, each_reading in ((RANDOM, True), (DATED, False)):
        for view, function in called:
            if function in functions:
                # Where a copy is counted, that is what is read again.
                return Volatile(str(view), function, each_reading and session.computed(table))
    return None


def _called(session: Session, table: TableName) -> Iterator[tuple[TableName, str]]:
    """Each function that a view calls, or one that it reads, with that view."""
    views = [table]
    for view in views:
        tree = _parsed(session, view)
        if tree is None:
            continue
        from sqlglot import exp

        named = {cte.alias_or_name for cte in tree.find_all(exp.CTE)}
        for node in tree.walk():
            if isinstance(node, exp.Table) and node.name and (node.db or node.name not in named):
                read = TableName(node.db or view.schema, node.name)
                views += [] if read in views else [read]
            elif isinstance(node, exp.Func | exp.TableSample):
                yield view, _name(node)


def _name(node: exp.Func | exp.TableSample) -> str:
    """Of a function, as it is written most."""
    from sqlglot import exp

    if isinstance(node, exp.TableSample):
        return "tablesample"
    name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
    if name == "age" and len(node.expressions) == 1:  # until today
        return "current_date"
    return "random" if name == "rand" else name


def _parsed(session: Session, view: TableName) -> exp.Expr | None:
    dialect = DIALECTS.get(session.engine)
    try:
        text = None if dialect is None else session.definition(view)
    except InputError:
        return None
    if text is None:
        return None
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        return sqlglot.parse_one(text, dialect=dialect)
    except SqlglotError:
        return None
