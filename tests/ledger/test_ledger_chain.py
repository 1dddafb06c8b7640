"""The ledger is evidence: whatever is altered, taken out or cut off shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from qblock.errors import Refused
from qblock.ledger.chain import record, set_pointer
from qblock.ledger.events import Event, Guarantee, State, chain_digest
from qblock.ledger.reader import LedgerReader
from qblock.ledger.schema import Tables, tables
from qblock.ledger.store import Store

pytestmark = pytest.mark.either_engine


def guarantee(satisfied: str) -> Guarantee:
    return Guarantee(
        stage="recheck",
        model="k_anonymity",
        sensitive=None,
        parameters='{"k":2}',
        parameter="k",
        asked="2",
        satisfied=satisfied,
        satisfied_number=float(satisfied),
        attained=True,
        holds=True,
        margin=1.5,
    )


@pytest.fixture(scope="module", params=["duckdb", "postgresql"])
def chain(
    request: pytest.FixtureRequest, empty_ledger: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Store, list[str]]]:
    """A ledger with four events of release r, and their digests."""
    heads = []
    server = request.getfixturevalue("postgresql_server") if request.param == "postgresql" else ""
    with empty_ledger(request.param, tmp_path_factory.mktemp("chain"), server) as ledger:
        with ledger.write() as connection:
            record(connection, Event(release="another", state="published", run="u", version=1), [guarantee("9")])
            states: list[tuple[int, State]] = [(1, "published"), (2, "staged"), (2, "published"), (3, "refused")]
            for version, state in states:
                event = Event(release="r", state=state, run="u", version=version, node=(1,), protected=True)
                heads.append(record(connection, event, [guarantee("5"), guarantee("6")]))
            set_pointer(connection, "r", 2)
        yield ledger, heads


@pytest.fixture
def tampered(chain: tuple[Store, list[str]]) -> Iterator[tuple[sa.Connection, list[str]]]:
    """A connection to that ledger; what is altered through it is not kept."""
    ledger, heads = chain
    with ledger.opened(read_only=False) as connection, connection.begin() as transaction:
        yield connection, heads
        transaction.rollback()


def test_an_untouched_ledger_has_no_problem(tampered: tuple[sa.Connection, list[str]]) -> None:
    connection, heads = tampered
    reader = LedgerReader(connection)
    assert reader.verify_chain("r") == []
    assert reader.verify_pointer("r") == []
    for head in heads:
        assert reader.verify_chain("r", head) == []


KEYS = {"release", "number", "position"}
COLUMNS = [(name, c.name) for name in ("event", "guarantee") for c in getattr(Tables(None), name).columns]


def alter(connection: sa.Connection, table: str, column: str) -> Callable[[], None]:
    """Put another value into a column of event 2 or of its second guarantee; returns what takes it back."""
    altered = getattr(tables(connection), table)
    row = (altered.c.release == "r") & (altered.c.number == 2)
    if table == "guarantee":
        row &= altered.c.position == 1
    cell = altered.c[column]
    before = connection.scalar(sa.select(cell).where(row))
    other = not before if isinstance(cell.type, sa.Boolean) else "x" if isinstance(cell.type, sa.Text) else 77
    assert other != before
    connection.execute(altered.update().where(row).values({column: other}))
    return lambda: connection.execute(altered.update().where(row).values({column: before}))


def test_every_altered_column_is_found(tampered: tuple[sa.Connection, list[str]]) -> None:
    connection, heads = tampered
    for table, column in COLUMNS:
        if column not in KEYS:
            undo = alter(connection, table, column)
            problems = LedgerReader(connection).verify_chain("r", heads[-1])
            assert any("event 2 of release r or its guarantees were altered" in problem for problem in problems)
            undo()
            assert LedgerReader(connection).verify_chain("r", heads[-1]) == []


@pytest.mark.parametrize(("table", "column"), [place for place in COLUMNS if place[1] in KEYS])
def test_an_altered_key_is_found(tampered: tuple[sa.Connection, list[str]], table: str, column: str) -> None:
    connection, _ = tampered
    alter(connection, table, column)
    problems = LedgerReader(connection).verify_chain("r")
    assert any("event 2 of release r" in problem for problem in problems)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_missing_row_is_found(tampered: tuple[sa.Connection, list[str]], number: int) -> None:
    connection, _ = tampered
    ledger = tables(connection)
    connection.execute(
        ledger.guarantee.delete().where((ledger.guarantee.c.release == "r") & (ledger.guarantee.c.number == number))
    )
    assert [p for p in LedgerReader(connection).verify_chain("r") if f"event {number} " in p and "altered" in p]
    connection.execute(ledger.event.delete().where((ledger.event.c.release == "r") & (ledger.event.c.number == number)))
    assert LedgerReader(connection).verify_chain("r") == [f"event {number} of release r is missing in the ledger"]


def test_several_missing_rows_are_one_problem(tampered: tuple[sa.Connection, list[str]]) -> None:
    connection, _ = tampered
    for table in (tables(connection).event, tables(connection).guarantee):
        connection.execute(table.delete().where((table.c.release == "r") & table.c.number.in_([2, 3])))
    assert LedgerReader(connection).verify_chain("r") == ["event 2 to 3 of release r is missing in the ledger"]


def test_guarantees_added_to_an_event_are_found(tampered: tuple[sa.Connection, list[str]]) -> None:
    connection, _ = tampered
    added = tables(connection).guarantee
    columns = {"release": "r", "number": 3, "position": 2, **vars(guarantee("7"))}
    connection.execute(added.insert().values(columns))
    assert len(LedgerReader(connection).verify_chain("r")) == 1
    connection.execute(added.update().where(added.c.position == 2).values(number=5))
    assert LedgerReader(connection).verify_chain("r") == [
        "event 5 of release r is missing, but its guarantees are there"
    ]


def test_a_cut_tail_is_found_with_the_head_that_was_printed(tampered: tuple[sa.Connection, list[str]]) -> None:
    connection, heads = tampered
    for table in (tables(connection).event, tables(connection).guarantee):
        connection.execute(table.delete().where((table.c.release == "r") & (table.c.number == 4)))
    reader = LedgerReader(connection)
    assert reader.verify_chain("r") == []
    assert [problem for problem in reader.verify_chain("r", heads[3]) if heads[3] in problem and "cut" in problem]
    assert reader.verify_chain("r", heads[2]) == []


def test_a_rewritten_tail_is_found_with_the_head_that_was_printed(tampered: tuple[sa.Connection, list[str]]) -> None:
    connection, heads = tampered
    for table in (tables(connection).event, tables(connection).guarantee):
        connection.execute(table.delete().where((table.c.release == "r") & (table.c.number == 4)))
    record(connection, Event(release="r", state="published", run="forged", version=3))
    reader = LedgerReader(connection)
    assert reader.verify_chain("r") == []
    assert len(reader.verify_chain("r", heads[3])) == 1


def test_a_replaced_row_breaks_the_chain(tampered: tuple[sa.Connection, list[str]]) -> None:
    connection, _ = tampered
    ledger = tables(connection)
    row = (ledger.event.c.release == "r") & (ledger.event.c.number == 2)
    forged = dict(connection.execute(sa.select(ledger.event).where(row)).mappings().one()) | {"rows_published": 1}
    key = (ledger.guarantee.c.release == "r") & (ledger.guarantee.c.number == 2)
    rows = connection.execute(sa.select(ledger.guarantee).where(key).order_by(ledger.guarantee.c.position)).mappings()
    forged["digest"] = chain_digest(forged, list(rows))
    connection.execute(ledger.event.update().where(row).values(forged))
    assert LedgerReader(connection).verify_chain("r") == [
        "event 3 of release r does not follow the event before it: one of the two was replaced"
    ]


def test_releases_do_not_vouch_for_each_other(tampered: tuple[sa.Connection, list[str]]) -> None:
    connection, _ = tampered
    event = tables(connection).event
    connection.execute(event.update().where(event.c.release == "another").values(version=2))
    reader = LedgerReader(connection)
    assert reader.verify_chain("r") == []
    assert len(reader.verify_chain("another")) == 1


def test_a_reader_for_a_moment_reads_again_what_the_pointer_contradicts(
    tampered: tuple[sa.Connection, list[str]],
) -> None:
    connection, heads = tampered
    one, other = (LedgerReader(connection) for _ in range(2))
    for reader in (one, other):
        assert (reader.head("r"), reader.names("r")) == (heads[-1], ["r"])
    asked: list[str] = []
    sa.event.listen(connection, "before_cursor_execute", lambda *given: asked.append(given[2]))
    assert (one.next_version("r"), len(one.guarantees("r", 1)), len(one.guarantees("r", 2))) == (4, 2, 2)
    assert one.verify_chain("r", heads[0]) == []
    assert len(asked) == 1  # the guarantees
    record(connection, Event(release="r", state="published", run="u", version=4), [guarantee("7")])
    set_pointer(connection, "r", 4)
    current = one.current("r")
    assert current is not None
    assert (current.version, [found.satisfied for found in current.guarantees]) == (4, ["7"])
    assert other.verify_pointer("r") == []


@pytest.mark.parametrize("version", [1, 3, None])
def test_a_moved_pointer_is_found(tampered: tuple[sa.Connection, list[str]], version: int | None) -> None:
    connection, _ = tampered
    set_pointer(connection, "r", version)
    (problem,) = LedgerReader(connection).verify_pointer("r")
    assert "version 2" in problem
    assert (f"version {version}" if version else "no version") in problem


@pytest.mark.parametrize(("column", "value"), [("state", "x"), ("recorded_at", "x"), ("node", "x"), ("detail", "{")])
def test_a_row_that_cannot_be_read_names_the_remedy(
    tampered: tuple[sa.Connection, list[str]], column: str, value: str
) -> None:
    connection, _ = tampered
    event = tables(connection).event
    connection.execute(event.update().where((event.c.release == "r") & (event.c.number == 2)).values({column: value}))
    reader = LedgerReader(connection)
    with pytest.raises(Refused, match=r"event 2 of release r cannot be read: the ledger was altered; .*qblock verify"):
        reader.history("r")
    assert len(reader.verify_chain("r")) == 1
    assert reader.verify_pointer("r") == []
