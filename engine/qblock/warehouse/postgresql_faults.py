"""Errors of PostgreSQL in our own words, by SQLSTATE; `faults` says what is never repeated."""

from __future__ import annotations

import re
from collections.abc import Sequence

import psycopg
import sqlalchemy as sa

from qblock.errors import Busy, QblockError
from qblock.warehouse.addresses import Unreachable
from qblock.warehouse.faults import VIEW, of_client, original_of, said, while_reading
from qblock.warehouse.pooler import REMEDY
from qblock.warehouse.postgresql_addresses import unreachable
from qblock.warehouse.postgresql_session import CONNECTING
from qblock.warehouse.row_security import hidden_rows

STATES = {
    "22P02": f"could not convert a value: {VIEW}",
    "22P03": f"could not convert a value: {VIEW}",
    "22007": f"could not convert a value to a date or time: {VIEW}",
    "22008": f"could not convert a value to a date or time: {VIEW}",
    "22003": f"met a number out of its type's range: {VIEW}",
    "22012": f"divided by zero: {VIEW}",
    "22001": f"met a text longer than its type: {VIEW}",
    "22021": "met a text that is not valid in its encoding; correct the text in the table, or the database's encoding",
    "22P05": "met a character that another encoding does not have; correct it, or use UTF8 for the database",
    "40001": "could not serialize this run with another transaction; run again",
    "40P01": "ended a deadlock with another session; run again",
    "42501": "denied a privilege to the job's login; grant it: SELECT on the source, and in schema qblock and the "
    "schema of the release whatever the job creates and writes there; `qblock grants SPEC` prints the statements",
    "42P01": "found no table of a name that a statement or a view uses; create it, or correct the view",
    "42703": "found no column of a name that a statement or a view uses; correct the view",
    "42883": "found no function or operator for these types; correct the view",
    "53100": "has no disk space left; make room",
    "53200": "has no memory left; lower search.memory_limit, or give the server more",
    "53300": "takes no more connections; run again when some have ended",
    "53400": "met a limit of its configuration (temp_file_limit); raise it",
    "57014": "cancelled the statement: a statement_timeout, or an administrator; raise the limit, or run again",
    "25006": "is read-only; use the primary server",
    "P0001": "ran a function or trigger that raised an error; see what the view and its triggers call",
}
CLASSES = {
    "22": f"could not use a value (data exception): {VIEW}",
    "23": "refused a row: it breaks a constraint of its table",
    "40": "rolled the transaction back; run again",
    "42": "refused a statement; a view, a name or a type in it has changed since the run began",
    "53": "is out of a resource (disk, memory, connections); make room and run again",
    "54": "met a limit of what it can do (columns, size of a statement)",
    "58": "met a fault of its own system or disk; see its log",
    "XX": "met an internal fault; see its log",
}
"""By the first two characters of the SQLSTATE."""
LOST = ("08", "57P")


def explain_postgresql(error: BaseException, url: sa.URL | None = None, reading: Sequence[str] = ()) -> QblockError:
    """The error to raise for one of PostgreSQL's. reading: tables of the spec that the statement reads."""
    original = original_of(error)
    refused = hidden_rows(original)
    if refused is not None:
        return refused
    where = while_reading(reading)
    if isinstance(original, psycopg.Error) and original.sqlstate is None:
        return _without_state(original, url, where)
    state = getattr(original, "sqlstate", None)
    if state is None:
        return of_client("PostgreSQL", original, where)
    named = f"({_words(original)}, SQLSTATE {state})"
    if state in ("55P03", "55006"):
        return Busy(f"PostgreSQL: another session holds a lock that this run needs{where} {named}; try again later")
    if state == "08P01":
        return Unreachable(
            f"database not reachable: PostgreSQL, or a connection pooler before it, refused to continue{where} "
            f"{named}; a "
            f"pooler must have enough sessions, and lend whole ones: {REMEDY}"
        )
    if state.startswith(LOST):
        return Unreachable(f"database not reachable: PostgreSQL ended the connection{where} {named}")
    if state.startswith(("28", "3D")):
        return Unreachable(f"database not reachable: PostgreSQL refused the login {named}")
    what = STATES.get(state) or CLASSES.get(state[:2]) or "reported an error"
    return QblockError(f"PostgreSQL {said(what, f'{where} {named}')}")


def _without_state(error: psycopg.Error, url: sa.URL | None, where: str) -> QblockError:
    """For an error of the client: a connection that failed or was lost, or a value that Python does not have."""
    connecting = error.pgconn is not None or hasattr(error, CONNECTING) or isinstance(error, psycopg.ProgrammingError)
    if url is not None and connecting:
        return unreachable(url, error)
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return Unreachable(f"database not reachable: the connection was lost{where}")
    return of_client("PostgreSQL", error, where)


def _words(error: BaseException) -> str:
    """invalid text representation, of InvalidTextRepresentation."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
