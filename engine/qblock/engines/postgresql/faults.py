"""Errors of PostgreSQL in our own words, by SQLSTATE, why a server could not be reached, and what may follow the ? of
its URL.

`faults` says what is never repeated. libpq's own text repeats the host as it was read, which in a mistyped URL may be
the end of a password.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg.pq import Conninfo

from qblock.engines.faults import VIEW, Unreachable, of_client, original_of, said, shown_url, while_reading
from qblock.engines.postgresql import session as postgresql_session
from qblock.engines.postgresql.pooler import REMEDY
from qblock.engines.postgresql.session import CONNECTING
from qblock.errors import Busy, InputError, QblockError, Refused

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
    "42501": "denied a privilege to the job's login. It needs SELECT on the source, and what the job creates and "
    "writes in schema qblock and the schema of the release. `qblock grants SPEC` prints the statements",
    "42P01": "found no table of a name that a statement or a view uses; create it, or correct the view",
    "42703": "found no column of a name that a statement or a view uses; correct the view",
    "42883": "found no function or operator for these types; correct the view",
    "53100": "has no disk space left; make room",
    "53200": "has no memory left; lower search.memory_limit, or give the server more",
    "53300": "takes no more connections; run again when some have ended",
    "53400": "met a limit of its configuration (temp_file_limit); raise it",
    "57014": "cancelled the statement: a statement_timeout, or an administrator; raise the limit, or run again",
    "25006": "is read-only for this login; use the primary server, or ALTER ROLE ... SET "
    "default_transaction_read_only = off",
    "25P04": "ended a transaction for its transaction_timeout; ALTER ROLE ... SET transaction_timeout = 0",
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


RAISED_BY = "check_enable_rls"
"""The server's function that raises it: the message is in the server's language, and other errors share its
SQLSTATE."""


def hidden_rows(error: Any) -> Refused | None:
    """The refusal for PostgreSQL's error that a policy would filter (row_security is off); None for any other error.

    error: of psycopg.
    """
    diagnostic: Any = getattr(error, "diag", None)
    if getattr(error, "sqlstate", None) != "42501" or getattr(diagnostic, "source_function", None) != RAISED_BY:
        return None
    quoted = re.search(r'["«„“](.+)["»“”]', diagnostic.message_primary or "")  # a name, and the only one in it
    table = f"table {quoted[1]}" if quoted else "a table that is read"
    return Refused(
        f"row level security of {table} would hide rows from the job's login, and rows that are not counted are not "
        "protected. Let the job see every row: ALTER ROLE ... BYPASSRLS for its login, or let it own the table "
        "(without FORCE ROW LEVEL SECURITY), or name a view whose owner sees every row"
    )


SECONDS = 5
"""How long a server is asked why it did not answer."""
DEFAULT_PORT, MOST_PORT = 5432, 65535
MAINTENANCE = "postgres"
"""A database that nearly every server has."""


def unreachable(url: sa.URL, error: psycopg.Error) -> QblockError:
    """The error to raise for a connection that could not be made."""
    if isinstance(error, psycopg.ProgrammingError):
        return InputError(
            f"the URL of {shown_url(url)} has a parameter that the PostgreSQL client does not know; correct what "
            "follows the ? of the URL"
        )
    return Unreachable(f"database not reachable: {shown_url(url)}: {_reason(url, error)}")


def _reason(url: sa.URL, error: psycopg.Error) -> str:
    if isinstance(error, psycopg.errors.ConnectionTimeout):
        return "the server did not answer in time"
    network = _network_problem(url)
    if network is not None:
        return network
    pgconn = error.pgconn
    if pgconn is not None and pgconn.needs_password:
        return "authentication failed: the server asks for a password, and none was given"
    there = _database_exists(url)
    if there is False:
        return "there is no database of that name on the server"
    if there:
        return (
            "the login has no permission to connect to this database, or the server takes no more connections. With "
            "an administrator's URL, `qblock grants SPEC --job ROLE` prints what the login needs"
        )
    if pgconn is not None and pgconn.used_password:
        return (
            "authentication failed: the password is wrong, or the login does not exist or has no permission to connect"
        )
    if not _addresses(connection_parameters(url))[0][0]:
        return "the server on this machine is not running, or the login or the database does not exist; name a host"
    return (
        "the server answered but opened no session. The login or the database does not exist, or a setting forbids "
        "it: pg_hba.conf, TLS (sslmode) or another parameter (options, PGOPTIONS)"
    )


def connection_parameters(url: sa.URL) -> dict[str, Any]:
    """What the driver is given of a URL. Raises InputError where its hosts and ports do not match."""
    url = url.set(drivername="postgresql+psycopg")
    try:
        _, parameters = url.get_dialect()().create_connect_args(url)
        _addresses(parameters)
    except (sa.exc.ArgumentError, ValueError):
        raise InputError(
            f"the hosts or ports of {shown_url(url)} cannot be read. A port is a number from 1 to {MOST_PORT}, and "
            "each host has one, or all have the same. Write "
            "postgresql://USER@/DATABASE?host=HOST1:PORT1&host=HOST2:PORT2"
        ) from None
    return dict(parameters)


def _addresses(parameters: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Host (or its address, or a socket's folder) and port of each server. Raises ValueError."""
    hosts = str(parameters.get("hostaddr") or parameters.get("host") or "").split(",")
    ports = [int(port or DEFAULT_PORT) for port in str(parameters.get("port") or "").split(",")]
    if len(ports) not in (1, len(hosts)) or not all(1 <= port <= MOST_PORT for port in ports):
        raise ValueError
    if any(host.count(":") == 1 for host in hosts):  # more of them are an address
        raise ValueError
    return list(zip(hosts, ports * len(hosts) if len(ports) == 1 else ports, strict=True))


def _network_problem(url: sa.URL) -> str | None:
    """Why no server's port or socket can be reached; None where one of them answers, or none is named."""
    addresses = _addresses(connection_parameters(url))
    if addresses[0][0] == "":
        return None
    problems = [_no_answer(host, port) for host, port in addresses]
    if None in problems:
        return None
    return problems[0] if len(problems) == 1 else f"none of {len(problems)} hosts answers; the first: {problems[0]}"


def _no_answer(host: str, port: int) -> str | None:
    try:
        if host.startswith("/"):
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(SECONDS)
                client.connect(f"{host}/.s.PGSQL.{port}")
        else:
            socket.create_connection((host, port), SECONDS).close()
    except socket.gaierror:
        return "no host of that name is found"
    except (ConnectionRefusedError, FileNotFoundError):
        return "the connection was refused: no server listens there"
    except TimeoutError:
        return "the server did not answer in time"
    except (OSError, UnicodeError) as error:
        return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "the host cannot be reached"
    return None


def _database_exists(url: sa.URL) -> bool | None:
    """Whether the server knows the database; None where it does not let this login in at all."""
    maintenance = url.set(database=MAINTENANCE).update_query_dict({"connect_timeout": str(SECONDS)})
    engine = postgresql_session.create_engine(maintenance)
    catalog = sa.table("pg_database", sa.column("datname"), schema="pg_catalog")
    try:
        with engine.connect() as connection:
            name = url.database or url.username
            count = connection.scalar(sa.select(sa.func.count()).where(catalog.c.datname == name))
    except (sa.exc.SQLAlchemyError, QblockError):
        return None
    return bool(count)


def check_parameters(url: sa.URL) -> None:
    """Raise InputError for what follows the ? of a PostgreSQL URL and is not libpq's, and says nothing of it."""
    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    if not set(url.query) <= known:
        raise InputError(
            f"the URL of {shown_url(url)} has a parameter that the PostgreSQL client does not know; correct what "
            "follows the ? of the URL"
        )
    parts = [url.username, url.password, url.host, url.database, *connection_parameters(url).values()]
    if any("\0" in part for part in parts if isinstance(part, str)):
        raise InputError("the database URL has a NUL character (%00); remove it")
