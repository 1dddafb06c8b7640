"""Every connection has the settings of qblock, whatever the server, the login or the environment have set."""

from __future__ import annotations

import ast
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
import sqlalchemy as sa

import qblock
from qblock.engines.duckdb import dialect as duckdb_session
from qblock.engines.duckdb.adapter import DuckdbWarehouse
from qblock.engines.postgresql import session as postgresql_session
from qblock.engines.registry import open_warehouse
from qblock.engines.tables import TableName
from qblock.errors import Busy, InputError
from qblock.ledger.stores import store_of_url

pytestmark = pytest.mark.every_postgresql

ENGINE = Path(qblock.__file__).parent
CONNECTS = {
    "sqlalchemy": {"create_engine", "engine_from_config", "create_pool_from_url"},
    "psycopg": {"connect", "Connection.connect", "AsyncConnection"},
    "duckdb": {"connect", "execute", "sql", "query", "default_connection", "from_query", "cursor", "read_csv"},
}
ALLOWED = {"engines/postgresql/session.py", "engines/duckdb/dialect.py"}


def connecting(source: str) -> list[str]:
    """What a module uses of the drivers that makes a connection."""
    tree = ast.parse(source)
    modules: dict[str, str] = {}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                root = name.name.split(".")[0]
                if root in CONNECTS:
                    modules[name.asname or root] = root
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            root = node.module.split(".")[0]
            found += [f"{root}.{name.name}" for name in node.names if name.name in CONNECTS.get(root, ())]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            dotted = ast.unparse(node)
            first, _, rest = dotted.partition(".")
            if first in modules and rest in CONNECTS[modules[first]]:
                found.append(dotted)
    return found


def test_no_connection_is_made_elsewhere() -> None:
    found = {
        str(file.relative_to(ENGINE)): used
        for file in sorted(ENGINE.rglob("*.py"))
        if (used := connecting(file.read_text("utf-8")))
    }
    assert set(found) == ALLOWED, found


@pytest.mark.parametrize(
    "source",
    [
        "import sqlalchemy as x\nx.create_engine('duckdb://')",
        "from sqlalchemy import create_engine",
        "import psycopg\npsycopg.connect('')",
        "import psycopg\npsycopg.Connection.connect('')",
        "import duckdb as native\nnative.connect(f)",
        "from duckdb import connect as c",
    ],
)
def test_such_a_connection_would_be_found(source: str) -> None:
    assert len(connecting(source)) == 1


OTHERWISE = {
    "search_path": "public, pg_catalog",
    "row_security": "on",
    "TimeZone": "Asia/Kolkata",
    "DateStyle": "German, DMY",
    "IntervalStyle": "iso_8601",
    "bytea_output": "escape",
    "extra_float_digits": "-3",
    "xmlbinary": "hex",
    "xmloption": "document",
    "default_text_search_config": "pg_catalog.english",
    "array_nulls": "off",
    "transform_null_equals": "on",
    "gin_fuzzy_search_limit": "5",
    "quote_all_identifiers": "on",
    "default_transaction_isolation": "serializable",
    "client_min_messages": "debug5",
    "idle_in_transaction_session_timeout": "5s",
    "idle_session_timeout": "5s",
}
VALUES = {
    "timestamptz": "TIMESTAMPTZ '2020-01-31 23:30:00+00'",
    "date of it": "CAST(TIMESTAMPTZ '2020-01-31 23:30:00+00' AS date)",
    "read from text": "CAST('2020-01-31 23:30:00' AS timestamptz)",
    "date": "DATE '2020-01-31'",
    "interval": "INTERVAL '1 month 2 days 03:04:05'",
    "bytea": r"CAST('\x00ff41' AS bytea)",
    "double": "CAST(0.1 AS double precision) + CAST(0.2 AS double precision)",
}


@pytest.fixture
def login(postgresql_url: str) -> Iterator[tuple[str, str]]:
    """URL and name of a login that has set everything otherwise."""
    name = f"qblock_job_{secrets.token_hex(4)}"
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
        for setting, value in OTHERWISE.items():
            shown = value if setting in ("search_path", "DateStyle") else f"'{value}'"
            connection.execute(f"ALTER ROLE {name} SET {setting} TO {shown}")
        connection.execute("CREATE TABLE t AS SELECT 1 AS x; GRANT SELECT ON t TO PUBLIC")
        connection.execute(f"GRANT CREATE ON SCHEMA public TO {name}")
    yield sa.make_url(postgresql_url).set(username=name, password=None).render_as_string(False), name
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


def shown(connection: sa.Connection) -> dict[str, str]:
    names = {*postgresql_session.SETTINGS, *OTHERWISE, "client_encoding"}
    return {name: str(connection.scalar(sa.text(f"SHOW {name}"))) for name in sorted(names)}


def test_a_login_that_has_set_everything_otherwise_changes_nothing(login: tuple[str, str], tmp_path: Path) -> None:
    url, _ = login
    expected = {**postgresql_session.SETTINGS, "search_path": "pg_catalog, pg_temp", "client_encoding": "UTF8"}
    opened = open_warehouse(url, Path())
    with opened.snapshot() as session:
        isolation = expected.pop("default_transaction_isolation")
        found = shown(session.connection)
        assert found.pop("default_transaction_isolation") == isolation
        assert found == expected
    opened.close()
    with store_of_url(url, tmp_path).write() as connection:
        assert connection.scalar(sa.text("SHOW search_path")) == "pg_catalog, qblock, pg_temp"
        assert connection.scalar(sa.text("SHOW transaction_isolation")) == "read committed"
        assert connection.scalar(sa.text("SHOW TimeZone")) == "UTC"


def test_the_text_of_a_value_is_the_same_for_every_login(
    login: tuple[str, str], postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def texts(url: str) -> dict[str, Any]:
        opened = open_warehouse(url, Path())
        with opened.snapshot() as session:
            found = {name: session.scalar(f"SELECT CAST({value} AS text)") for name, value in VALUES.items()}
        opened.close()
        return found

    first = texts(postgresql_url)
    monkeypatch.setenv("PGTZ", "America/New_York")
    monkeypatch.setenv("PGDATESTYLE", "SQL, DMY")
    monkeypatch.setenv("PGOPTIONS", "-c extra_float_digits=0 -c intervalstyle=sql_standard -c search_path=public")
    assert texts(postgresql_url) == texts(login[0]) == first
    assert first["timestamptz"] == first["read from text"] == "2020-01-31 23:30:00+00"
    assert first["date of it"] == "2020-01-31"


def test_what_is_set_outlasts_a_rollback(postgresql_url: str) -> None:
    engine = postgresql_session.create_engine(sa.make_url(postgresql_url))
    with engine.connect() as connection:
        connection.rollback()
        assert connection.scalar(sa.text("SHOW search_path")) == "pg_catalog, pg_temp"
        connection.rollback()
        assert connection.scalar(sa.text("SHOW row_security")) == "off"
    engine.dispose()


def test_a_server_is_asked_who_it_is_once(postgresql_url: str, server: str) -> None:
    """Whatever the database, the search path and what a connection is for."""
    postgresql_session._dialect.cache_clear()
    url, other, found = sa.make_url(postgresql_url), sa.make_url(server), []
    for engine in (
        postgresql_session.create_engine(url),
        postgresql_session.create_engine(url, path=postgresql_session.LEDGER_PATH, postgresql_readonly=True),
        postgresql_session.create_engine(other, isolation_level="REPEATABLE READ"),
    ):
        asked: list[str] = []
        sa.event.listen(engine, "before_cursor_execute", lambda *given, asked=asked: asked.append(given[2]))
        with engine.connect() as connection:
            connection.execute(sa.select(sa.literal_column("1")))
            assert connection.dialect.server_version_info >= (15,)
            assert not connection.dialect._backslash_escapes
        found.append(len(asked))
    assert found[0] > 1
    assert found[1:] == [1, 1]


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/New_York"])
def test_duckdb_writes_and_reads_times_as_utc(zone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = duckdb.connect

    def elsewhere(*arguments: Any, **options: Any) -> duckdb.DuckDBPyConnection:
        """As on a machine of another time zone: the driver reads TZ once only."""
        made = connect(*arguments, **options)
        made.execute(f"SET GLOBAL TimeZone = '{zone}'; SET GLOBAL Calendar = 'buddhist'")
        return made

    monkeypatch.setattr(duckdb, "connect", elsewhere)
    query = (
        "SELECT CAST(TIMESTAMPTZ '2020-01-31 23:30:00+00' AS VARCHAR), "
        "CAST(CAST('2020-01-31 23:30' AS TIMESTAMPTZ) AS VARCHAR)"
    )
    expected = ("2020-01-31 23:30:00+00", "2020-01-31 23:30:00+00")
    file = tmp_path / "x.duckdb"
    with duckdb_session.connect(file) as bare:
        assert bare.execute(query).fetchall() == [expected]
        assert bare.cursor().execute(query).fetchall() == [expected]
    for warehouse in (DuckdbWarehouse(None), DuckdbWarehouse(file)):
        with warehouse.snapshot() as session:
            row = session.connection.execute(sa.text(query.replace(":", r"\:"))).one()
            assert tuple(row) == expected
            assert session.scalar("SELECT current_setting('Calendar')") == "gregorian"
        warehouse.close()
    with store_of_url(f"sqlite:///{tmp_path}/ledger.sqlite", tmp_path).crosswalk.write() as connection:
        assert connection.scalar(sa.text("SELECT current_setting('TimeZone')")) == "UTC"


def test_the_catalog_of_a_file_is_asked_while_it_is_open_and_not_afterwards(tmp_path: Path) -> None:
    file = tmp_path / "the ledger's \" file.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE t (a INTEGER); CREATE VIEW v AS SELECT a FROM t")
        connection.execute("CREATE MACRO duckdb_tables() AS TABLE SELECT 'another' AS table_name, false AS internal")
    tables, views = "SELECT table_name FROM duckdb_tables()", "SELECT count(*) FROM duckdb_views() WHERE NOT internal"
    catalogs = duckdb_session.Catalogs()
    assert catalogs.ask(file, tables, views) == [[("t",)], [(1,)]]
    with pytest.raises(duckdb.Error):
        catalogs.ask(file, "SELECT nothing")
    with pytest.raises(duckdb.Error):
        catalogs.ask(file.with_name("absent.duckdb"), tables)
    with duckdb.connect(str(file)) as connection:
        connection.execute("DROP VIEW v")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('"$user", public', ("$user", "public")),
        ("", ()),
        ('""', ()),
        ('Foo,  "Bar","a, b","q""uote"', ("foo", "Bar", "a, b", 'q"uote')),
        ("pg_temp,pg_catalog", ("pg_temp", "pg_catalog")),
    ],
)
def test_a_path_as_show_gives_it(text: str, names: tuple[str, ...]) -> None:
    assert postgresql_session.split_path(text) == names


PATHS = [
    ('"$user", missing', ["own"]),
    ("public", ["public"]),
    ('"Odd, one", closed', ["odd"]),
    ("missing, closed, other", ["other"]),
    ("other, pg_catalog", ["other"]),
    ("pg_temp, public", ["public"]),
    ('"$user", public', ["own", "public"]),
    ("other, pg_catalog, public", ["other", "public"]),
]


@pytest.mark.parametrize(("path", "found"), PATHS)
def test_a_table_without_a_schema_is_the_one_of_the_login(
    login: tuple[str, str], postgresql_url: str, path: str, found: list[str]
) -> None:
    url, name = login
    schemas = {"own": name, "odd": "Odd, one", "other": "other", "closed": "closed", "public": "public"}
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        for key, one in schemas.items():
            connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{one}"')
            connection.execute(f"CREATE TABLE \"{one}\".people AS SELECT '{key}' AS place")
            if key != "closed":
                connection.execute(f'GRANT USAGE ON SCHEMA "{one}" TO {name}')
                connection.execute(f'GRANT SELECT ON "{one}".people TO {name}')
        connection.execute(f"ALTER ROLE {name} SET search_path TO {path}")
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT place FROM people").fetchone() == (found[0],)
    opened = open_warehouse(url, Path())
    with opened.snapshot() as session:
        relation = session.relation(TableName(None, "people"))
        assert session.scalar(sa.select(relation.c.place)) == found[0]
        assert session.relation(TableName(None, "pg_class")).schema == "pg_catalog"
        with pytest.raises(InputError, match="table nobody does not exist"):
            session.relation(TableName(None, "nobody"))
    opened.close()
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA "{name}" CASCADE')


EXTENSIONS = ["citext", "hstore"]


def test_values_of_others_types_compare_as_text(postgresql_url: str) -> None:
    """Types, and operators of them, in a schema that the path does not name: an extension's, or somebody's own."""
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute(
            "CREATE SCHEMA kinds; SET search_path TO kinds;"
            "CREATE TYPE mood AS ENUM ('sad', 'ok');"
            "CREATE DOMAIN code AS varchar(5) CHECK (VALUE <> '');"
            "CREATE TYPE pair AS (a integer, b text);"
            "CREATE FUNCTION always(mood, mood) RETURNS boolean LANGUAGE sql AS 'SELECT true';"
            "CREATE OPERATOR = (FUNCTION = always, LEFTARG = mood, RIGHTARG = mood);"
        )
        columns = {"m": "CAST('sad' AS mood)", "c": "CAST('x' AS code)", "p": "CAST(ROW(1, 'y') AS pair)"}
        known = set(connection.execute("SELECT name FROM pg_available_extensions").fetchall())
        for name in EXTENSIONS:
            if (name,) in known:
                connection.execute(f"CREATE EXTENSION {name} SCHEMA kinds")
        if ("citext",) in known:
            columns |= {"i": "CAST('AbC' AS citext)"}
        if ("hstore",) in known:
            columns |= {"h": "CAST('a=>1' AS hstore)"}
        body = ", ".join(f"{value} AS {name}" for name, value in columns.items())
        connection.execute(f"CREATE TABLE kinds.t AS SELECT {body}")
    expected = {"m": "sad", "c": "x", "p": "(1,y)", "i": "AbC", "h": '"a"=>"1"'}
    opened = open_warehouse(postgresql_url, Path())
    with opened.snapshot() as session:
        table = TableName("kinds", "t")
        found = session.columns(table)
        relation = session.relation(table)
        for name in columns:
            assert found[name].kind == "text"
            value = session.comparable(relation.c[name], found[name])
            query = sa.select(value, value == expected[name].upper(), sa.func.count()).group_by(value).order_by(value)
            assert session.connection.execute(query).all() == [(expected[name], False, 1)]
    opened.close()


def test_nothing_waits_for_ever_for_a_lock_or_for_a_server_that_is_gone(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(postgresql_session.SETTINGS, "lock_timeout", "50ms")
    with psycopg.connect(postgresql_url) as other:
        other.execute("CREATE TABLE people (a int)")
        other.commit()
        other.execute("LOCK TABLE people")
        opened = open_warehouse(postgresql_url, Path())
        said = "another session holds a lock that this run needs while reading table people .*55P03.*; try again later"
        with opened.snapshot() as session:
            given = session.connection.connection.driver_connection.info.get_parameters()
            with pytest.raises(Busy, match=said):
                session.fetch(sa.select(session.relation(TableName(None, "people")).c.a))
        opened.close()
    assert given.items() >= postgresql_session.ALIVE.items()
