"""The client of Spark Connect: its sessions, its errors, names as Spark reads them, and URLs as it takes them,
`sc://host:15002/;token=...;use_ssl=true`."""

from __future__ import annotations

import copy
import re
import socket
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol, cast
from urllib.parse import quote
from weakref import WeakSet

import pyarrow as pa
import sqlalchemy as sa

from qblock.engines.faults import CLIENT, Unreachable, shown_url, while_reading
from qblock.engines.given import GIVEN
from qblock.engines.spark.adapter import explain_spark, quote_name
from qblock.errors import InputError
from qblock.spec.urls import OF_PROCESS

DEFAULT_PORT = 15002
FORM = "write sc://HOST:15002/;token=${SPARK_TOKEN};use_ssl=true, each parameter as ;NAME=VALUE"


NONE = (
    "spark: is the session of Spark that this process has, and it has none; write qblock.Release(SPEC, spark=session)"
)


def parameters(url: sa.URL) -> dict[str, str]:
    """What follows the path, in order and decoded: a value may hold `=`, as a padded token does. Raises InputError."""
    text = url.database or ""
    if not url.host:
        raise InputError(f"the Spark URL names no host; {FORM}")
    if url.query or url.username or url.password or (text and not text.startswith(";")):
        raise InputError(f"the Spark URL has a user, a path or a ?, which Spark Connect does not know; {FORM}")
    given: dict[str, str] = {}
    for part in filter(None, text.split(";")):
        name, mark, value = part.partition("=")
        if not name or not mark or name in given:
            raise InputError(f"a parameter of the Spark URL has no name or no value, or is given twice; {FORM}")
        given[name] = value  # decoded already
    if any("\0" in value or "\n" in value or "\r" in value for value in given.values()):
        raise InputError("a parameter of the Spark URL holds a NUL character or a line break; remove it")
    if given.get("use_ssl", "true").lower() not in ("true", "false"):
        raise InputError("use_ssl of the Spark URL is neither true nor false; correct it")
    return given


def connect_url(url: sa.URL) -> str:
    """The URL for the client, which splits at every `=`: values are percent-encoded. It holds the token."""
    host = f"[{url.host}]" if ":" in (url.host or "") else url.host
    rest = "".join(f";{name}={quote(value, safe='')}" for name, value in parameters(url).items())
    return f"sc://{host}:{url.port or DEFAULT_PORT}/{rest}"


def is_of_process(url: sa.URL) -> bool:
    """Whether a URL means a session that the process has."""
    return f"{url.get_backend_name()}:" == OF_PROCESS


def check_url(url: sa.URL) -> None:
    """Raise InputError for a URL that cannot be used; nothing of it is said."""
    if not is_of_process(url):
        parameters(url)
    elif url.host or url.username or url.database or url.query:
        raise InputError(
            f"the session of this process has no address: write spark: alone, or {FORM.removeprefix('write ')}"
        )


OLDEST = (4, 0)
"""The first version of Spark that is read."""
SECONDS = 5
"""How long a server may take to answer a connection."""
SETTINGS = {
    # The text of a value, and what a statement means, whatever the server's settings are.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.legacy.charVarcharAsString": "false",
    # ${NAME} in a statement would be what a setting, or an environment variable of the server, says.
    "spark.sql.variable.substitute": "false",
}
PATH = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)?/[\w@:/.=+-]*", re.ASCII)
PATHS = "begins with / or SCHEME:// and has letters, digits and _ @ : / . = + - alone"
LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Where the client writes errors by itself, with values of the source in their text."""


class Frame(Protocol):
    """What is used of the client's data frames."""

    schema: Any
    write: Any

    def toArrow(self) -> pa.Table: ...  # noqa: N802

    def repartition(self, *cols: str) -> Any: ...

    def createOrReplaceTempView(self, name: str) -> None: ...  # noqa: N802


class Client(Protocol):
    """What is used of the client's sessions."""

    conf: Any
    catalog: Any

    def sql(self, sqlQuery: str, args: Mapping[str, Any] | None = None) -> Frame: ...  # noqa: N803

    def table(self, tableName: str) -> Frame: ...  # noqa: N803

    def createDataFrame(self, data: pa.Table) -> Frame: ...  # noqa: N802

    def stop(self) -> None: ...


def connected(url: sa.URL) -> Client:
    """A session of its own on the server of a URL, or beside the one that this process has (`spark:`). Raises
    Unreachable, and InputError where there is no client, or no session."""
    theirs = session_of_process() if is_of_process(url) else None
    try:
        _quiet()
    except ImportError:
        raise InputError('Spark needs the package pyspark-client; install it: pip install "qblock[spark]"') from None
    session: Any = None
    try:
        session = _begun(url) if theirs is None else beside(theirs)
        if not isinstance(session, ClassicClient):
            session.registerProgressHandler(_moved)
            _here.sessions.add(session)
        with _limited():
            if theirs is None:
                from pyspark.version import __version__

                check_versions(session.version, __version__)
            for name, value in SETTINGS.items():
                session.conf.set(name, value)
    except BaseException as error:
        end(session)
        if isinstance(error, drivers()):
            raise explain_spark(error) from None
        raise
    return cast(Client, session)


def _begun(url: sa.URL) -> Any:
    """A session on the server of a URL."""
    from pyspark.sql.connect.client import retries
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    try:
        # The client would try for minutes.
        socket.create_connection((url.host or "", url.port or DEFAULT_PORT), SECONDS).close()
    except (OSError, UnicodeError):
        raise Unreachable(f"database not reachable: {shown_url(url)}: no server answers there") from None
    session: Any = ConnectSession.builder.remote(connect_url(url)).create()
    session.client.set_retry_policies([retries.DefaultPolicy(max_retries=3, initial_backoff=50, max_backoff=1000)])
    return session


def session_of_process() -> Any:
    """The session that the release was given, else the active one. Raises InputError where there is none."""
    if GIVEN.get() is not None:
        return GIVEN.get()
    for name in ("pyspark.sql.connect.session", "pyspark.sql.session"):
        # A program with a session has imported its module.
        if name in sys.modules and (active := sys.modules[name].SparkSession.getActiveSession()) is not None:
            return active
    raise InputError(NONE)


def is_connect(session: Any) -> bool:
    """Whether a session is one of Spark Connect. A classic one has the same attributes, and raises an error of its own
    where they are looked at."""
    return any(of.__module__.startswith("pyspark.sql.connect.") for of in type(session).__mro__)


def beside(session: Any) -> Any:
    """A session of its own where another one is: settings and views of either are not the other's."""
    if not is_connect(session):
        return ClassicClient(session.newSession())
    try:
        builder = copy.copy(session.client._builder)
        # It may name the session, and would come to the same.
        builder._params = {name: value for name, value in builder._params.items() if name != builder.PARAM_SESSION_ID}
        return type(session)(connection=builder, userId=session.client._user_id)
    except (AttributeError, TypeError):  # a client that its maker has changed
        raise InputError(
            "the client of this session opens none beside it; write the address of its server as source.url: "
            "sc://HOST:15002"
        ) from None


class ClassicClient:
    """A classic session in place of one of Connect."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def stop(self) -> None:
        """Nothing: the server is the process's own, and stops with its last session."""


def check_versions(server: str, client: str) -> None:
    """Raise InputError for a server that is older than its client, which asks for settings that it has not, or than
    what was tried."""
    of_server, of_client = (tuple(map(int, re.findall(r"\d+", text)[:2])) for text in (server, client))
    if of_server < OLDEST:
        raise InputError(f"the server is Spark {server}: qblock reads Spark 4.0 and newer; ask for a newer server")
    if of_server < of_client:
        own = ".".join(map(str, of_server))
        raise InputError(
            f"the server is Spark {server}, older than the client, pyspark-client {client}; install that of the "
            f'server: pip install "pyspark-client=={own}.*"'
        )


def end(client: Client) -> None:
    """Stop a session. The client would close it once more when it is collected, whenever that is, and with it the pool
    of threads that another session is using."""
    with suppress(Exception), _limited():
        client.stop()
    with suppress(Exception):
        cast(Any, client).client.close = lambda: None


STILL_SECONDS = 3600.0
"""How long a server may do nothing that it tells: no task begins or ends, nothing more is read."""
STILL = (
    "the Spark server did nothing for {minutes:g} minutes, and the run has given up{where}: its driver may have no "
    "memory left (see its log). Give it more (spark.driver.memory), start the server again, and run again"
)


class _Here(threading.local):
    """What a thread asks: its sessions, and the clock of the statement that it waits for."""

    def __init__(self) -> None:
        self.sessions: WeakSet[Any] = WeakSet()
        self.clock: _Clock | None = None


class _Clock:
    """Ends the sessions of a thread when their server has been still for too long: a driver whose scheduler has died
    keeps its connections, and would be waited for without an end."""

    def __init__(self, sessions: WeakSet[Any]) -> None:
        self.expired = False
        self._sessions = sessions
        self.wind()
        self._start(STILL_SECONDS)

    def wind(self) -> None:
        """Begin anew."""
        self._since = time.monotonic()

    def stop(self) -> None:
        self._timer.cancel()

    def _start(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._check)
        self._timer.daemon = True
        self._timer.start()

    def _check(self) -> None:
        left = STILL_SECONDS - (time.monotonic() - self._since)
        if left > 0:
            self._start(left)
            return
        self.expired = True
        for session in list(self._sessions):
            with suppress(Exception):
                # What waits on it is told at once. Closing the client would wait for the server, too.
                session.client._channel.close()


_here = _Here()


def _moved(*_: Any, **__: Any) -> None:
    """The server tells of a statement's progress, which it does only where there is some."""
    if _here.clock is not None:
        _here.clock.wind()


@contextmanager
def _limited(where: str = "") -> Iterator[None]:
    """Wait for a server only as long as it does something."""
    if _here.clock is not None:
        yield
        return
    clock = _here.clock = _Clock(_here.sessions)
    try:
        yield
    except Exception:
        if clock.expired:
            raise Unreachable(STILL.format(minutes=STILL_SECONDS / 60, where=where)) from None
        raise
    finally:
        clock.stop()
        _here.clock = None


def arriving(frame: Any) -> Iterator[pa.Table]:
    """The rows of a data frame as they arrive; the client's own `toArrow` holds them all, and a classic session has no
    other way."""
    plan = getattr(frame, "_plan", None)
    if plan is None:
        yield frame.toArrow()
        return
    client = frame.sparkSession.client
    for part in client.to_table_as_iterator(plan.to_proto(client), plan.observations):
        if isinstance(part, pa.Table):
            yield part


def whole(frame: Any) -> pa.Table:
    """The rows of a data frame, for which the client's own `toArrow` asks twice: at first for their types."""
    return pa.concat_tables(arriving(frame))


@contextmanager
def borrowed(session: Any, name: str) -> Iterator[None]:
    """Ask something of a session that somebody else has: its client writes no errors meanwhile, which quote values, and
    a server is waited for only as long as it does something. name: of what is read, for messages."""
    connect = is_connect(session)
    with warnings.catch_warnings():
        loggers = _quiet()
        if connect:
            session.registerProgressHandler(_moved)
            _here.sessions.add(session)
        try:
            with explained([name]):
                yield
        finally:
            if connect:
                _here.sessions.discard(session)
                session.removeProgressHandler(_moved)
            for logger in loggers:
                logger.disabled = False


def _quiet() -> list[Any]:
    """Have the client write no errors and no warnings; the loggers that did."""
    from pyspark.logger import PySparkLogger

    # Of pandas, which is not used, and that it asks no more, which is said. It begins where it is imported.
    warnings.filterwarnings("ignore", module=r"pyspark\.")
    loggers = [logger for logger in map(PySparkLogger.getLogger, LOGGERS) if not logger.disabled]
    for logger in loggers:
        logger.disabled = True
    return loggers


def drivers() -> tuple[type[Exception], ...]:
    """What the client raises."""
    from pyspark.errors import PySparkException

    # RuntimeError: its pool of threads, which sessions share, ends with the first session that does (`end`).
    known = (PySparkException, RuntimeError, sa.exc.SQLAlchemyError, *CLIENT)
    try:
        from grpc import RpcError
    except ImportError:  # which a classic session does without
        return known
    return (*known, RpcError)


@contextmanager
def explained(reading: Sequence[str] = ()) -> Iterator[None]:
    """Turn the client's errors into ours, without any of their text."""
    with _limited(while_reading(reading)):
        try:
            yield
        except drivers() as error:
            if _here.clock is not None and _here.clock.expired:
                raise
            raise explain_spark(error, reading) from None


def rows_of(client: Client, query: str, parameters: Mapping[str, Any]) -> Frame:
    """The rows of a query, which is sent once, with what is done with them. `sql` sends every statement at once, to see
    whether it is a command. parameters: by the names of the query's markers."""
    if isinstance(client, ClassicClient):  # whose queries wait
        return cast(Frame, client.sql(query, dict(parameters)))
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.functions import lit
    from pyspark.sql.connect.plan import SQL

    named = {name: lit(value) for name, value in parameters.items()}
    return cast(Frame, DataFrame(SQL(query, None, named), cast(Any, client)))


def quoted(*parts: str | None) -> str:
    """A table's name as Spark reads it."""
    return ".".join(quote_name(part) for part in parts if part is not None)


def path_literal(path: str) -> str:
    """A folder of the server as a literal, where no marker is allowed. Raises InputError for an unsafe one."""
    if not PATH.fullmatch(path):
        raise InputError(f"a folder of the cluster {PATHS}")
    return f"'{path}'"
