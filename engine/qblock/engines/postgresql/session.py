"""Every connection to PostgreSQL is made here: none of them resolves a name, or writes a value, as others have set it.

Whoever may CREATE in a schema of the login's search path could otherwise put a function, operator or table of their own
before ours, which would run with the job's rights. The path is therefore read by SHOW, which calls no function, and
set before anything else is sent; tables that a spec names without a schema are then looked up along the login's path
by `home`, once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import cache, lru_cache
from typing import Any

import psycopg
import sqlalchemy as sa

from qblock.engines.kept_sessions import Connect, SharedDialect, pool_of, run_scoped
from qblock.engines.postgresql import pooler
from qblock.engines.tables import TableName
from qblock.errors import InputError
from qblock.resources import sql_text

DRIVER = "postgresql+psycopg"
PATH = ("pg_catalog", "pg_temp")
LEDGER_PATH = ("pg_catalog", "qblock", "pg_temp")
"""The path of transactions on the ledger and the crosswalk; only the job creates anything in `qblock`."""
CATALOG, TEMPORARY, OWN_SCHEMA = "pg_catalog", "pg_temp", "$user"

SETTINGS: dict[str, str] = {
    # First, since the lists below are kept as it says.
    "quote_all_identifiers": "off",
    # A policy that would hide rows raises an error: what is not counted would not be protected.
    "row_security": "off",
    # The text of a value, and what a text means as a value.
    "TimeZone": "UTC",
    "timezone_abbreviations": "Default",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "xmlbinary": "base64",
    "xmloption": "content",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "default_text_search_config": "pg_catalog.simple",
    "array_nulls": "on",
    # What a statement means.
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "gin_fuzzy_search_limit": "0",
    "default_transaction_isolation": "read committed",
    # No statement waits for ever behind somebody who holds a lock on a table: what readers may wait for has less
    # (`lock_waits`).
    "lock_timeout": "10min",
    # A run decides between two statements, for minutes where the table is large; a client that hangs has an end, too.
    "idle_in_transaction_session_timeout": "1h",
    "idle_session_timeout": "1h",
    "client_min_messages": "error",
}
"""Of every session, whatever the server, the database, the login or the environment has set."""

SINCE = {"client_connection_check_interval": 14}
"""The first server that knows a setting. The dialect may have asked another server of an address."""

ALIVE = {
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""Of the client: a server that is gone without a word is found out within a minute. What a URL says goes first."""

CONNECTING = "qblock_connecting"
"""An attribute of the driver's errors: no connection was made, so that none was lost."""
_LOGIN, _LOGIN_PATH = "qblock_login", "qblock_login_path"
_FACTS_QUERY = pooler.facts_query(SETTINGS)
ASK_SECONDS = 5
"""How long a second connection may take."""
_ASKED: set[sa.URL] = set()


def create_engine(
    url: sa.URL, *, path: tuple[str, ...] = PATH, local: Mapping[str, str] | None = None, **options: Any
) -> sa.Engine:
    """An engine without a pool whose connections have SETTINGS and a search path of their own from the start.

    local: settings of each transaction; options: SQLAlchemy's execution options. A connection that is closed is not
    reused. Connecting, and beginning a transaction, raise Pooled where a pooler lends server sessions for one
    transaction at a time. Connecting raises InputError for a database of encoding SQL_ASCII.
    """
    url = url.set(drivername=DRIVER)
    shared = _shared(url)
    return _beginning(shared.engine(url, _connecting(url, path), **options), local or {})


def kept_engine(
    url: sa.URL, *, path: tuple[str, ...] = PATH, local: Mapping[str, str] | None = None, **options: Any
) -> sa.Engine:
    """The same, but within `kept_sessions` a connection may go on in the session of one that was closed, whatever its
    search path: each transaction sets its own. Raises what `create_engine` does."""
    url = url.set(drivername=DRIVER)
    shared = _shared(url)

    def connect(record: Any) -> Any:
        connection = _connecting(url, PATH)(record)
        connection.prepare_threshold = None  # some statements are several, which cannot be prepared
        return connection

    pool = run_scoped(("pool", url), lambda: pool_of(connect, shared.dialect))
    own = {} if path == PATH else {"search_path": ", ".join(path)}
    return _beginning(shared.engine(url, connect, pool=pool, **options), own | dict(local or {}))


def _connecting(url: sa.URL, path: tuple[str, ...]) -> Connect:
    """What connects, with SETTINGS and this search path."""
    dialect = _shared(url).dialect
    arguments, parameters = dialect.create_connect_args(url)

    # All of it before the dialect asks the server who it is, by functions that the path finds.
    def connect(record: Any) -> Any:
        connection = _connected(dialect, arguments, {**ALIVE, **parameters, "client_encoding": "utf8"})
        try:
            _check_encoding(url, connection)
            record.info[_LOGIN_PATH] = _settle(connection, url, path, record.info)
        except BaseException:
            connection.close()
            raise
        return connection

    return connect


def _beginning(engine: sa.Engine, local: Mapping[str, str]) -> sa.Engine:
    """Have each transaction begin with the question whether the session is its own, and with settings of its own."""

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        version = server_version(connection)
        settings = [f"SET LOCAL {name} TO {value}" for name, value in local.items() if version >= SINCE.get(name, 0)]
        pooler.check(connection, "; ".join([_FACTS_QUERY, *settings]))

    return engine


def _shared(url: sa.URL) -> SharedDialect:
    """The dialect for a server, whatever the database and the login."""
    return _dialect(sa.URL.create(DRIVER, host=url.host, port=url.port, query=url.query))


@lru_cache(maxsize=16)
def _dialect(server: sa.URL) -> SharedDialect:
    # No value is of type hstore, which it would look for in the catalog.
    dialect = sa.create_engine(server, poolclass=sa.NullPool, use_native_hstore=False).dialect
    _let_end(dialect)
    return SharedDialect(dialect)


def _connected(dialect: Any, arguments: Any, parameters: Any) -> Any:
    try:
        return dialect.connect(*arguments, **parameters)
    except UnicodeError as error:  # of a host's name
        failed: psycopg.Error = psycopg.OperationalError("the host's name cannot be looked up")
        setattr(failed, CONNECTING, True)
        raise failed from error
    except psycopg.Error as error:
        setattr(error, CONNECTING, True)
        raise


def _let_end(dialect: Any) -> None:
    """Closing a connection raises nothing where the server has ended the session, so that the error that ended it is
    reported. Such a session has rolled back; and nothing is reset in any, since none is reused.
    """
    roll_back, set_readonly = dialect.do_rollback, dialect.set_readonly

    def rolled_back(driver: Any) -> None:
        try:
            roll_back(driver)
        except psycopg.Error:
            if not driver.closed:
                raise

    dialect.do_rollback = rolled_back
    dialect.reset_isolation_level = lambda driver: None
    dialect.set_readonly = lambda driver, value: None if driver.closed else set_readonly(driver, value)


def _settle(driver: Any, url: sa.URL, path: tuple[str, ...], info: dict[str, Any]) -> tuple[str, ...]:
    """Make the settings of a session; returns the search path that the login came with."""
    word = pooler.new_word()
    statements = [f"SET {name} TO '{value}'" for name, value in {**SETTINGS, pooler.WORD: word}.items()]
    statements += [f"SET search_path TO {', '.join(path)}", f"{_FACTS_QUERY}, CURRENT_USER"]
    driver.autocommit = True  # what is set within a transaction is lost when that is rolled back
    own_path, process = pooler.first_seen(driver)
    _check_alone(url, process)  # before anything is set, which would stay in the sessions of a pool
    cursor = driver.execute("; ".join(statements))
    while cursor.nextset():
        pass
    *facts, info[_LOGIN] = cursor.fetchone()
    pooler.settled(tuple(facts), info)
    driver.autocommit = False
    return split_path(own_path)


def _check_encoding(url: sa.URL, driver: Any) -> None:
    # What the server reports at the start, without being asked.
    if driver.info.parameter_status("server_encoding") == "SQL_ASCII":
        raise InputError(
            f"database {url.database or driver.info.dbname} has the encoding SQL_ASCII, in which the server knows only "
            "bytes, so values cannot be measured or masked as text. Load a dump of it into a database of another "
            "encoding (CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0), and name that one"
        )


def _check_alone(url: sa.URL, process: int) -> None:
    """Once for each URL: a second connection is given another server session. Raises Pooled."""
    if url in _ASKED:
        return
    # Where there is no second connection, a transaction that is given another session will notice.
    with suppress(psycopg.Error, OSError), closing(bare(url, connect_timeout=ASK_SECONDS)) as other:
        pooler.check_other(other, process, ASK_SECONDS)
    _ASKED.add(url)


def bare(url: sa.URL, **parameters: Any) -> Any:
    """A psycopg connection on which nothing is set: for work in server sessions that are not ours."""
    url = url.set(drivername=DRIVER)
    dialect = _shared(url).dialect
    arguments, from_url = dialect.create_connect_args(url)
    return dialect.connect(*arguments, **{**ALIVE, **from_url, "client_encoding": "utf8", **parameters})


def split_path(text: str) -> tuple[str, ...]:
    """The names of a search path as SHOW gives it: what is not quoted is in lower case."""
    names, current, quoted, i = [], "", False, 0
    while i < len(text):
        char = text[i]
        if quoted and text[i : i + 2] == '""':
            current, i = current + '"', i + 1
        elif char == '"':
            quoted = not quoted
        elif quoted:
            current += char
        elif char == ",":
            names.append(current)
            current = ""
        elif not char.isspace():
            current += char.lower() if char.isascii() else char
        i += 1
    names.append(current)
    return tuple(name for name in names if name)


def server_version(connection: sa.Connection) -> int:
    """The major version of the server, as it said itself when this connection was made."""
    driver: Any = connection.connection.driver_connection
    return int(driver.info.server_version // 10_000)


@cache
def statement(name: str) -> sa.TextClause:
    """A statement of sql/postgresql, whose parameters are looked for once."""
    return sa.text(sql_text(name, "postgresql"))


def login_path(connection: sa.Connection) -> tuple[str, ...]:
    """The schemas in which the login would look for a table, in order, whether they exist or not.

    "$user" is the role that the session acts as; pg_catalog comes first where the path does not say otherwise; a new
    session has no temporary tables.
    """
    path: tuple[str, ...] = connection.info[_LOGIN_PATH]
    if CATALOG not in path:
        path = (CATALOG, *path)
    if OWN_SCHEMA in path:
        path = tuple(str(connection.info[_LOGIN]) if name == OWN_SCHEMA else name for name in path)
    return tuple(dict.fromkeys(name for name in path if name != TEMPORARY))


@contextmanager
def looking_along(connection: sa.Connection, path: tuple[str, ...]) -> Iterator[None]:
    """Another search path for a few statements of the transaction; an error leaves it to the rollback."""
    before = connection.scalar(sa.text("SELECT pg_catalog.current_setting('search_path')"))
    setting = sa.text("SELECT pg_catalog.set_config('search_path', :path, true)")
    connection.execute(setting, {"path": ", ".join(path)})
    yield
    connection.execute(setting, {"path": before})


def home(connection: sa.Connection, table: TableName) -> TableName:
    """A table with its schema: the first of the login's path that has it and may be used; without a schema where none
    has it.

    Within this connection's transaction; asks nothing for a name that has its schema. Raises InputError where several
    have it and the first one is somebody else's: who may create there would decide what is read, and a view runs
    functions as the job.
    """
    if table.schema is not None:
        return table
    rows = connection.execute(
        statement("login_path_home"), {"schemas": list(login_path(connection)), "name": table.name}
    ).all()
    schemas = [row.schema for row in rows]
    if len(schemas) > 1 and not rows[0].trusted:
        raise InputError(
            f"table {table.name} is in the schemas {' and '.join(schemas)}, which are all in the login's search path. "
            f"Write the one that is meant: {' or '.join(f'{schema}.{table.name}' for schema in schemas)}"
        )
    return TableName(schemas[0] if schemas else None, table.name)
