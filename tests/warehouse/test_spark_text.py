"""What is sent to Spark, and its URL, without a cluster: values stand apart from the text, and the token is said to
nobody."""

from __future__ import annotations

import importlib.util
import re
import threading
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pyarrow as pa
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from qblock.engines.condition import Where
from qblock.engines.faults import Unreachable, shown_url
from qblock.engines.published import PublishedRanges, RowsPublished, Unknown
from qblock.engines.registry import parse_url
from qblock.engines.spark import client as spark_client
from qblock.engines.spark.adapter import SparkAdapter, SparkDialect, column_of
from qblock.engines.spark.client import check_versions, connect_url, explained
from qblock.engines.spark.session import SparkSession
from qblock.engines.spelled import Same
from qblock.engines.tables import TableName
from qblock.errors import InputError, QblockError
from qblock.ledger.stores import store_of_url
from qblock.profiling.spec_text import source_of_table
from qblock.profiling.words import CODES
from qblock.spec.condition import condition_of
from qblock.spec.sources import Edges
from qblock.spec.urls import has_password

TOKEN = "Zm9v/YmFy+QUJD=="
HOSTILE = st.text(st.sampled_from("a'\"\\`\n:?%u0041\U0001f600{}p ") | st.characters(exclude_categories=("Cs",)))


def test_a_padded_token_is_encoded_and_not_shown() -> None:
    url = parse_url(f"sc://spark.example/;token={TOKEN};use_ssl=true;x-team=a%20b")
    assert connect_url(url) == ("sc://spark.example:15002/;token=Zm9v%2FYmFy%2BQUJD%3D%3D;use_ssl=true;x-team=a%20b")
    assert shown_url(url) == "sc://spark.example"
    assert has_password(f"sc://spark.example/;token={TOKEN}")
    assert not has_password("sc://spark.example/;use_ssl=true;token=${SPARK_TOKEN}")
    assert connect_url(parse_url("sc://[::1]:17")) == "sc://[::1]:17/"


@pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="pyspark-client is not installed")
def test_the_client_reads_the_token_back() -> None:
    from pyspark.sql.connect.client import DefaultChannelBuilder

    url = connect_url(parse_url(f"sc://spark.example/;token={TOKEN};use_ssl=true"))
    assert DefaultChannelBuilder(url).token == TOKEN


@pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="pyspark-client is not installed")
def test_a_fault_of_the_clients_own_threads_is_no_internal_error() -> None:
    with pytest.raises(QblockError, match=r"while reading table a\.b \(RuntimeError\)"), explained(["a.b"]):
        raise RuntimeError("cannot schedule new futures after shutdown")


class Recorded:
    """A client that keeps what it is sent; `closed` once its channel is."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, Any]] = []
        self.closed = threading.Event()
        self.client = self._channel = self
        self.write = self.catalog = self

    def close(self) -> None:
        self.closed.set()

    def createDataFrame(self, data: Any) -> Any:  # noqa: N802
        self._data = data
        return self

    def format(self, _: str) -> Any:
        return self

    def saveAsTable(self, name: str) -> None:  # noqa: N802
        self.sent.append(("made", name, self._data))

    def insertInto(self, name: str) -> None:  # noqa: N802
        self.sent.append(("more", name, self._data))

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802
        self.sent.append(("view", name, self._data))

    def dropTempView(self, name: str) -> None:  # noqa: N802
        self.sent.append(("dropped", name, None))


@pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="pyspark-client is not installed")
def test_a_table_is_sent_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One local relation of a million rows took the memory of a driver of 1 GB, and with it all later jobs."""
    client: Any = Recorded()
    table = pa.table({"n": pa.array(range(1000), pa.int64()), "t": pa.array(["text"] * 1000)})
    monkeypatch.setattr("qblock.engines.spark.session.PART_BYTES", table.nbytes // 4)
    monkeypatch.setattr("qblock.engines.spark.session.SMALL_BYTES", table.nbytes - 1)
    session = SparkSession(client, "mine", lambda: None, {})
    session.load("rows", table)
    assert [how for how, _, _ in client.sent] == ["made", "more", "more", "more"]
    assert {name for _, name, _ in client.sent} == {"`mine`.`rows`"}
    assert pa.concat_tables([rows for _, _, rows in client.sent]).equals(table)
    assert session.statements == 4


@pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="pyspark-client is not installed")
def test_a_small_table_is_sent_as_a_view() -> None:
    """No schema is made for it, no file is written, and nothing of it is a job."""
    client: Any = Recorded()
    table = pa.table({"n": pa.array(range(1000), pa.int64())})
    session = SparkSession(client, "mine", lambda: pytest.fail("a schema was made"), {})
    loaded = session.load("rows", table)
    assert str(sa.select(loaded.c.n).compile(dialect=SparkDialect())) == "SELECT `rows`.`n` \nFROM `rows`"
    session.clear()
    assert client.sent == [("view", "rows", table), ("dropped", "rows", None)]


@pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="pyspark-client is not installed")
def test_what_is_computed_of_small_tables_alone_is_a_view(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dimension table is computed again sooner than a job has written it."""
    client: Any = Recorded()
    session = SparkSession(client, "mine", lambda: None, {})
    monkeypatch.setattr(session, "_frame", lambda _: client)
    small = session.load("texts", pa.table({"n": pa.array([1, 2], pa.int64())}))
    labels = session.store("labels", sa.select(small.c.n))
    rows = sa.table("rows", sa.column("n"), schema="mine")
    session.store("coded", sa.select(rows.c.n).select_from(rows.join(labels, labels.c.n == rows.c.n)))
    session.store("one", sa.select(sa.literal_column("1").label("n")))
    assert [(how, name) for how, name, _ in client.sent] == [
        ("view", "texts"),
        ("view", "labels"),
        ("made", "`mine`.`coded`"),
        ("made", "`mine`.`one`"),
    ]


def test_a_place_without_a_value_is_hashed_and_sums_do_not_overflow() -> None:
    """Spark's own hash of ('a', NULL) is that of (NULL, 'a')."""
    name, _ = SparkAdapter.row_hash or pytest.fail("there is none")
    hashed = sa.func.sum(getattr(sa.func, name)(sa.column("a"), sa.column("b")))
    assert str(hashed.compile(dialect=SparkDialect())) == (
        "sum(CAST(xxhash64(`a`, `a` IS NULL, `b`, `b` IS NULL) AS DECIMAL(19, 0)))"
    )


def test_rows_are_numbered_in_any_order() -> None:
    number, total = sa.func.row_number().over(), sa.func.sum(sa.column("n")).over()
    assert str(number.compile(dialect=SparkDialect())) == "row_number() OVER (ORDER BY NULL)"
    assert str(total.compile(dialect=SparkDialect())) == "sum(`n`) OVER ()"


@pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="pyspark-client is not installed")
def test_a_query_is_not_sent_before_its_rows_are_asked_for() -> None:
    """The client's `sql` sends each statement at once, and a query once more for its rows."""
    client: Any = Recorded()  # it has no `sql`
    query = SparkSession(client, "mine", lambda: None, {}).frame(sa.select(sa.literal("a'b").label("x")))
    plan: Any = query
    sent = plan._plan.plan(client).sql
    assert sent.query == "SELECT :p0 AS `x`"
    assert sent.named_arguments["p0"].literal.string == "a'b"


@pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="pyspark-client is not installed")
def test_a_query_that_is_run_is_asked_for_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not sent otherwise: `plan` runs one to see whether a table can be read."""
    client: Any = Recorded()
    read: list[Any] = []
    monkeypatch.setattr("qblock.engines.spark.session.whole", read.append)
    SparkSession(client, "mine", lambda: None, {}).run(sa.select(sa.literal_column("1")))
    assert len(read) == 1


def test_the_text_of_a_number_is_short() -> None:
    """It stands twice in a digest of rows. Of 57,000 characters, it took the server longer to read than the rows."""
    client: Any = Recorded()
    session = SparkSession(client, "mine", lambda: None, {})
    text = session.text_of(sa.column("x"), "float").compile(dialect=SparkDialect())
    assert len(str(text)) < 2_500


@pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="pyspark-client is not installed")
def test_a_server_that_does_nothing_is_not_waited_for_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    client: Any = Recorded()
    monkeypatch.setattr(spark_client, "STILL_SECONDS", 0.01)
    monkeypatch.setattr(spark_client._here, "sessions", {client})
    said = r"did nothing for .* minutes, and the run has given up while reading table a\.b: .*spark\.driver\.memory"
    with pytest.raises(Unreachable, match=said), explained(["a.b"]), explained():  # noqa: PT012
        assert client.closed.wait(60)
        raise RuntimeError("the channel is closed")
    monkeypatch.undo()
    with pytest.raises(QblockError, match=r"did not carry out a statement"), explained():
        raise RuntimeError("another fault")


def test_progress_of_a_statement_winds_its_clock_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = spark_client._Clock(WeakSet())
    monkeypatch.setattr(spark_client._here, "clock", clock)
    clock._since = 0.0
    spark_client._moved([], 1, "operation", False)
    clock.stop()
    assert clock._since > 0


@pytest.mark.parametrize(
    "url",
    [
        f"sc://;token={TOKEN}",
        f"sc://user:{TOKEN}@host/",
        f"sc://host/path;token={TOKEN}",
        f"sc://host/;token={TOKEN};token=x",
        f"sc://host/;{TOKEN[:8]}",
        f"sc://host/;token={TOKEN}%0a",
        f"sc://host/;use_ssl=maybe;token={TOKEN}",
        f"sc://host/?token={TOKEN}",
    ],
)
def test_a_url_that_is_none_is_refused_without_its_text(url: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_url(url)
    assert "Zm9v" not in str(raised.value)


@given(HOSTILE, HOSTILE)
def test_a_value_is_never_in_the_text(name: str, value: str) -> None:
    column = sa.column(name or "x")
    query = sa.select(column.label("qblock_v")).where(column == value, column.in_([value, "y"]))
    state = query.compile(dialect=SparkDialect()).construct_expanded_state()
    assert list(state.parameters.values()) == [value, value, "y"]
    quoted = "`" + (name or "x").replace("`", "``") + "`"
    markers = re.sub(r"\s+", " ", state.statement.replace(quoted, "N"))
    assert re.fullmatch(r"SELECT N AS `qblock_v` WHERE N = :p1 AND N IN \(:p2_1, :p2_2\)|"
                        r"SELECT N AS `qblock_v` WHERE N = :p0 AND N IN \(:p1_1, :p1_2\)", markers)  # fmt: skip
    assert all(re.fullmatch(r"p\d+(_\d+)?", marker) for marker in state.parameters)


def test_patterns_are_compared_by_rlike() -> None:
    (iban,) = (code for code in CODES if code.name == "iban")
    text = str(sa.select(iban.matches(sa.column("x"))).compile(dialect=SparkDialect()))
    assert text == f"SELECT `x` RLIKE '^({iban.pattern})$' AS `anon_1`"


def test_ledgers_are_refused() -> None:
    with pytest.raises(InputError, match="there is no ledger on Spark"):
        store_of_url("sc://host", Path())


def test_a_first_spec_names_the_catalog_of_its_table() -> None:
    lines = source_of_table("sc://host", TableName("clinic", "the stays", "spark_catalog"), "spark")
    assert lines[-1] == "source: {url: '${WAREHOUSE_URL}', table: spark_catalog.clinic.\"the stays\"}"


def test_a_condition_decides_what_is_copied_of_the_source() -> None:
    """Values stand apart from the text; names are the source's, and the copy has no column that only decides."""
    client: Any = Recorded()
    table = TableName.parse('wh."St`ays"')
    text = """"Valid To" IS NULL AND NOT "Del" AND site LIKE 'a!_\\%' ESCAPE '!' AND n IN (1, -2) AND site > 'it''s'"""
    where = Where(condition_of(text), "spec", str(table), ("age",))
    session = SparkSession(client, "mine", lambda: None, {table: frozenset({"age"})}, {table: where})
    kinds = {"age": "int", "Valid To": "timestamp", "Del": "boolean", "site": "string", "n": "bigint"}
    session._described[table] = {name: column_of(name, type_) for name, type_ in kinds.items()}
    compiled: Any = session._query(table, ["age"]).compile(dialect=SparkDialect())
    state = compiled.construct_expanded_state({})
    column = "`wh`.`St``ays`"
    assert re.sub(r"\s+", " ", state.statement) == (
        f"SELECT `qblock_kept`.`age` FROM (SELECT {column}.`age` AS `age` FROM {column} "
        f"WHERE {column}.`Valid To` IS NULL AND {column}.`Del` != CAST(:p0 AS boolean) "
        f"AND {column}.`site` LIKE :p1 ESCAPE '!' AND {column}.`n` IN (CAST(:p2 AS bigint), CAST(:p3 AS bigint)) "
        f"AND {column}.`site` > :p4) AS `qblock_kept`"
    )
    assert list(state.parameters.values()) == ["true", r"a!_\%", "1", "-2", "it's"]


def test_a_condition_is_of_a_table_in_a_catalog_too() -> None:
    client: Any = Recorded()
    table = TableName.parse("lake.wh.stays")
    where = Where(condition_of("age > 17"), "spec", str(table), ("age",))
    session = SparkSession(client, "mine", lambda: None, {table: frozenset({"age"})}, {table: where})
    session._described[table] = {"age": column_of("age", "int")}
    assert list(session.columns(table)) == ["age"]
    compiled: Any = session._query(table, ["age"]).compile(dialect=SparkDialect())
    assert "WHERE `lake`.`wh`.`stays`.`age` > CAST(:p0 AS integer)" in str(compiled)


def test_what_is_published_is_what_is_copied_of_a_sensitive_column() -> None:
    client: Any = Recorded()
    table = TableName.parse("wh.stays")
    published = PublishedRanges(Edges(edges=(0, 5)), "spec")
    where = Where(condition_of("paid > 1"), "spec", str(table), ("paid",))
    rows = RowsPublished(where, {}, {}, {"paid": published}, ("paid",))
    session = SparkSession(client, "mine", lambda: None, {table: frozenset({"paid"})}, {table: rows})
    session._described[table] = {"paid": column_of("paid", "int")}
    assert session.columns(table) == {"paid": column_of("paid", "string")}
    compiled: Any = session._query(table, ["paid"]).compile(dialect=SparkDialect())
    state = compiled.construct_expanded_state({})
    column = "`wh`.`stays`.`paid`"
    assert re.sub(r"\s+", " ", state.statement) == (
        f"SELECT `qblock_kept`.`paid` FROM (SELECT CASE WHEN ({column} IS NULL) THEN NULL "
        f"WHEN ({column} < CAST(:p0 AS integer)) THEN :p1 WHEN ({column} < CAST(:p2 AS integer)) THEN :p3 "
        f"ELSE :p4 END AS `paid` FROM `wh`.`stays` WHERE {column} > CAST(:p5 AS integer)) AS `qblock_kept`"
    )
    assert list(state.parameters.values()) == ["0", "<0", "5", "[0, 5)", ">=5", "1"]


def test_spellings_are_those_of_rows_that_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a table that may change between two statements."""
    client: Any = Recorded()
    table = TableName.parse("wh.stays")
    where = Where(condition_of("n = 1"), "spec", str(table), ("ill",))
    rows = RowsPublished(where, {}, {"ill": Same(("case",), False, "spec")}, {}, ("ill",))
    session = SparkSession(client, "mine", lambda: None, {table: frozenset({"ill"})}, {table: rows})
    session._described[table] = {"ill": column_of("ill", "string"), "n": column_of("n", "int")}
    sent = []

    def text_of(statement: Any) -> str:
        return re.sub(r"\s+", " ", str(statement.compile(dialect=SparkDialect())))

    def fetched(statement: Any) -> pa.Table:
        sent.append(("asked", text_of(statement)))
        return pa.table({"value": ["Flu", "flu"], "n": [2, 1]})

    monkeypatch.setattr(session, "fetch", fetched)
    monkeypatch.setattr(session, "_frame", text_of)
    monkeypatch.setattr(session, "_save", lambda name, text: sent.append((name, text)))
    monkeypatch.setattr(session, "drop", lambda dropped: sent.append(("dropped", dropped.name)))
    session._copy(table, "copy", ["ill"])
    stored, asked, copied, dropped = sent
    assert (stored[0], asked[0], copied[0], dropped) == ("copy_stored", "asked", "copy", ("dropped", "copy_stored"))
    assert "`wh`.`stays`" in stored[1]
    assert "CASE" not in stored[1]
    assert "WHERE" in stored[1]
    assert all("`mine`.`copy_stored`" in text and "`wh`.`stays`" not in text for text in (asked[1], copied[1]))
    assert "CASE" in copied[1]


def test_a_code_for_unknown_is_copied_as_null() -> None:
    client: Any = Recorded()
    table = TableName.parse("wh.stays")
    rows = RowsPublished(None, {"age": Unknown(("-1", "999"), "spec")}, {}, {}, ("age",))
    session = SparkSession(client, "mine", lambda: None, {table: frozenset({"age"})}, {table: rows})
    session._described[table] = {"age": column_of("age", "int")}
    assert session.columns(table) == {"age": column_of("age", "int")}
    compiled: Any = session._query(table, ["age"]).compile(dialect=SparkDialect())
    state = compiled.construct_expanded_state({})
    assert re.sub(r"\s+", " ", state.statement) == (
        "SELECT `qblock_kept`.`age` FROM (SELECT CASE WHEN (`wh`.`stays`.`age` IN (CAST(:p0 AS integer), "
        "CAST(:p1 AS integer))) THEN NULL ELSE `wh`.`stays`.`age` END AS `age` FROM `wh`.`stays`) AS `qblock_kept`"
    )
    assert list(state.parameters.values()) == ["-1", "999"]


@pytest.mark.parametrize(
    ("server", "client", "said"),
    [
        ("4.0.1", "4.0.1", None),
        ("4.3.0", "4.0.1", None),
        ("4.0.1", "4.0.4", None),
        ("4.10.0-SNAPSHOT", "4.2.0", None),
        ("4.0.1", "4.2.0", 'older than the client, pyspark-client 4.2.0; .*: pip install "pyspark-client==4.0.\\*"'),
        ("3.5.9", "3.5.9", r"the server is Spark 3\.5\.9: qblock reads Spark 4\.0 and newer"),
    ],
)
def test_a_server_is_no_older_than_its_client(server: str, client: str, said: str | None) -> None:
    if said is None:
        check_versions(server, client)
        return
    with pytest.raises(InputError, match=said):
        check_versions(server, client)
