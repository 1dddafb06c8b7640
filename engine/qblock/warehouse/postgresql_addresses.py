"""Why a PostgreSQL server could not be reached, in our own words, and what may follow the ? of its URL.

libpq's own text repeats the host as it was read, which in a mistyped URL may be the end of a password.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg.pq import Conninfo

from qblock.errors import InputError, QblockError
from qblock.warehouse import postgresql_session
from qblock.warehouse.addresses import Unreachable, shown_url

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
            "the login has no permission to connect to this database (an administrator's URL with `qblock grants SPEC "
            "--job ROLE` prints what it needs), or the server takes no more connections"
        )
    if pgconn is not None and pgconn.used_password:
        return (
            "authentication failed: the password is wrong, or the login does not exist or has no permission to connect"
        )
    if not _addresses(connection_parameters(url))[0][0]:
        return "the server on this machine is not running, or the login or the database does not exist; name a host"
    return (
        "the server answered but opened no session: the login or the database does not exist, or pg_hba.conf, a TLS "
        "setting (sslmode) or another parameter (options, PGOPTIONS) forbids it"
    )


def connection_parameters(url: sa.URL) -> dict[str, Any]:
    """What the driver is given of a URL. Raises InputError where its hosts and ports do not match."""
    url = url.set(drivername="postgresql+psycopg")
    try:
        _, parameters = url.get_dialect()().create_connect_args(url)
        _addresses(parameters)
    except (sa.exc.ArgumentError, ValueError):
        raise InputError(
            f"the hosts or ports of {shown_url(url)} cannot be read: a port is a number from 1 to {MOST_PORT}, and "
            "each host has one, or all have the same; write "
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
