"""Events and guarantees: what is recorded is what is read back, on both engines."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest

from qblock.blocks import Blocks, Reference
from qblock.errors import Busy
from qblock.ledger.chain import record, set_pointer
from qblock.ledger.events import Event, Guarantee, margin
from qblock.ledger.reader import LedgerReader
from qblock.ledger.store import Store
from qblock.models import BY_NAME, Tightest, Value
from qblock.spec import Requirement

EVENT = Event(
    release="inpatients",
    state="published",
    run="6f1c",
    version=3,
    quasi_identifiers=("zip code", 'a"ge', "größe"),
    node=(1, 0, 2),
    choice="sizes",
    protected=True,
    joint="episodes",
    rows_source=2**40,
    rows_published=11,
    rows_suppressed=0,
    spec_digest="aa",
    hierarchy_digest="bb",
    content_digest="cc",
    view="published.inpatients",
    stale_after=timedelta(days=8),
    detail={"waiting": {"2026": 3}, "blocks": [1, 2, 3]},
    reason="because: of 'this'",
    recorded_at=datetime(2026, 2, 3, 4, 5, 6, 7, tzinfo=UTC),
)
GUARANTEE = Guarantee(
    stage="recheck",
    model="entropy_l_diversity",
    sensitive="condition",
    parameters='{"format":1,"l":"14/5"}',
    parameter="l",
    asked="14/5",
    satisfied="3.1",
    satisfied_number=0.1 + 0.2,
    attained=True,
    holds=True,
    margin=1 / 7,
)


def test_what_is_recorded_is_read_back(ledger: Store) -> None:
    other = dataclasses.replace(
        GUARANTEE, satisfied=None, satisfied_number=None, margin=None, sensitive=None, holds=False
    )
    with ledger.write() as connection:
        head = record(connection, EVENT, [GUARANTEE, other])
    with ledger.read() as reader:
        (event,) = reader.history("inpatients")
        assert {f.name: getattr(event, f.name) for f in dataclasses.fields(Event)} == vars(EVENT)
        assert (event.number, event.previous_digest, event.digest) == (1, None, head)
        assert event.recorded_at.tzinfo is not None
        assert reader.guarantees("inpatients", 1) == [GUARANTEE, other]
        assert reader.head("inpatients") == head
        assert reader.releases() == ["inpatients"]


def test_anyone_can_recompute_a_digest(ledger: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qblock.ledger.chain.__version__", "1.2.3")
    event = Event(release="r", state="staged", run="u", version=1, node=(1, 0), recorded_at=EVENT.recorded_at)
    guarantee = dataclasses.replace(GUARANTEE, sensitive="größe", satisfied_number=3.1, margin=None)
    with ledger.write() as connection:
        first = record(connection, event)
        second = record(connection, event, [guarantee])
    row = '"node":"[1,0]","number":%d,%s"program_version":"1.2.3","recorded_at":"2026-02-03T04:05:06.000007Z",'
    row += '"release":"r","run":"u","state":"staged","version":1'
    texts = [
        '{"event":{%s},"guarantees":[]}' % (row % (1, "")),
        '{"event":{%s},"guarantees":[{"asked":"14/5","attained":true,"holds":true,"model":"entropy_l_diversity",'
        '"parameter":"l","parameters":"{\\"format\\":1,\\"l\\":\\"14/5\\"}","position":0,"satisfied":"3.1","satisfied_number":3.1,'
        '"sensitive":"größe","stage":"recheck"}]}' % (row % (2, f'"previous_digest":"{first}",')),
    ]
    assert [first, second] == [hashlib.sha256(text.encode("utf-8")).hexdigest() for text in texts]


def test_releases_are_numbered_and_chained_each_by_itself(ledger: Store) -> None:
    heads: dict[str, list[str]] = {"a": [], "b": []}
    for release in ("a", "b", "b", "a", "b"):
        with ledger.write() as connection:
            heads[release].append(record(connection, Event(release=release, state="staged", run="r")))
    with ledger.read() as reader:
        for release, digests in heads.items():
            history = reader.history(release)
            assert [event.number for event in history] == list(range(1, len(digests) + 1))
            assert [event.digest for event in history] == digests
            assert [event.previous_digest for event in history] == [None, *digests[:-1]]


def test_a_rolled_back_transaction_leaves_nothing(ledger: Store) -> None:
    with pytest.raises(RuntimeError, match="stop"), ledger.write() as connection:  # noqa: PT012
        record(connection, EVENT, [GUARANTEE])
        set_pointer(connection, "inpatients", 3)
        raise RuntimeError("stop")
    with ledger.read() as reader:
        assert reader.history("inpatients") == []
        assert reader.pointer("inpatients") is None
        assert reader.guarantees("inpatients", 1) == []


def test_the_current_version_is_the_one_of_the_pointer(ledger: Store) -> None:
    with ledger.write() as connection:
        for version in (1, 2):
            record(connection, Event(release="r", state="staged", run="u", version=version))
            record(connection, Event(release="r", state="published", run="u", version=version), [GUARANTEE])
            set_pointer(connection, "r", version)
        record(connection, Event(release="r", state="staged", run="v", version=3))
    with ledger.read() as reader:
        current = reader.current("r")
        assert current is not None
        assert (current.version, current.event.number, current.guarantees) == (2, 4, (GUARANTEE,))
        assert reader.next_version("r") == 4
        assert reader.next_version("another") == 1
        newest, published = reader.last_event("r"), reader.last_event("r", "published", "rolled_back")
        assert newest is not None
        assert published is not None
        assert (newest.number, published.number) == (5, 4)
        assert reader.last_event("r", "refused") is None
        assert reader.verify_pointer("r") == []
    with ledger.write() as connection:
        record(connection, Event(release="r", state="rolled_back", run="w", version=1))
        set_pointer(connection, "r", 1)
    with ledger.read() as reader:
        current = reader.current("r")
        assert current is not None
        assert (current.version, current.event.number) == (1, 6)
    with ledger.write() as connection:
        record(connection, Event(release="r", state="retired", run="w", version=1))
        set_pointer(connection, "r", None)
    with ledger.read() as reader:
        assert reader.current("r") is None
        assert reader.verify_pointer("r") == []


def test_a_ledger_that_does_not_exist_has_no_history(place: Store) -> None:
    with place.read() as reader:
        assert reader.history("r") == []
        assert reader.current("r") is None
        assert reader.head("r") is None
        assert reader.releases() == []
        assert reader.guarantees("r", 1) == []
        assert reader.next_version("r") == 1
        assert reader.verify_chain("r") == []
        assert reader.verify_pointer("r") == []
    assert not place.folder.exists()


def test_the_reader_works_while_a_run_is_going_on_between_transactions(ledger: Store, start) -> None:
    writer = start(
        "from qblock.ledger.chain import record\n"
        "from qblock.ledger.events import Event\n"
        "with place.lock('r'):\n"
        "    with place.write() as c: record(c, Event(release='r', state='staged', run='u'))\n"
        "    print('staged', flush=True); sys.stdin.readline()\n"
        "    with place.write() as c: record(c, Event(release='r', state='published', run='u'))\n"
    )
    assert writer.stdout.readline() == "staged\n"
    with ledger.read() as reader:
        assert [event.state for event in reader.history("r")] == ["staged"]
    writer.communicate("\n")
    assert writer.returncode == 0
    with ledger.read() as reader:
        assert [event.state for event in reader.history("r")] == ["staged", "published"]


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
def test_a_ledger_file_that_stays_open_elsewhere_is_busy(ledger: Store, start) -> None:
    holder = start("with place.write(): print('open', flush=True); sys.stdin.readline()\n")
    assert holder.stdout.readline() == "open\n"
    held = r"another process holds the ledger .*ledger\.sqlite; wait until it has closed the file"
    with pytest.raises(Busy, match=held), ledger.write(seconds=0.2):
        pass
    holder.communicate("\n")
    with ledger.write() as connection:
        record(connection, EVENT)


@pytest.mark.parametrize("engine_name", ["postgresql"], indirect=True)
def test_a_run_in_a_snapshot_does_not_collide_with_another_release(ledger: Store) -> None:

    engine = ledger.create_engine().execution_options(isolation_level="REPEATABLE READ")
    with engine.begin() as snapshot:
        assert LedgerReader(snapshot).history("a") == []
        with ledger.write() as connection:
            record(connection, Event(release="b", state="staged", run="u"), [GUARANTEE])
        record(snapshot, Event(release="a", state="staged", run="v"), [GUARANTEE])
    engine.dispose()
    with ledger.read() as reader:
        assert [reader.verify_chain(release) for release in reader.releases()] == [[], []]


@pytest.mark.parametrize(
    ("asked", "satisfied", "larger", "expected"),
    [
        (4, 6, True, 0.5),
        (4, 3, True, -0.25),
        (Fraction(3, 10), Fraction(1, 5), False, 1 / 3),
        (Fraction(14, 5), Decimal("2.8"), True, 0.0),
        (Fraction(1, 3), Decimal(1) / Decimal(3), False, pytest.approx(0, abs=1e-25)),
        (4, None, True, None),
        (4, math.inf, True, None),
        (0, 0, False, None),
    ],
)
def test_margin_is_the_share_of_what_was_asked(asked, satisfied, larger, expected) -> None:
    assert margin(asked, satisfied, larger=larger) == expected


def test_guarantees_are_exact() -> None:
    model = BY_NAME["recursive_cl_diversity"](c=Fraction(5, 2), l=3)
    tightest = Tightest(model.name, True, (Value("l", 4, True), Value("c", Fraction(7, 3), False)))
    first, second = Guarantee.of(Requirement(model, ("condition",)), tightest, "search")
    assert (first.parameter, first.asked, first.satisfied, first.satisfied_number) == ("l", "3", "4", 4.0)
    assert (second.parameter, second.asked, second.satisfied, second.attained) == ("c", "5/2", "7/3", False)
    assert second.margin == pytest.approx(1 / 15)
    assert json.loads(first.parameters) == {"format": 1, "c": "5/2", "l": 3}
    assert {first.sensitive, second.sensitive} == {"condition"}
    assert {first.stage, second.stage} == {"search"}


def test_guarantees_without_a_number() -> None:
    model = BY_NAME["recursive_cl_diversity"](c=2, l=3)
    tightest = Tightest(model.name, False, (Value("l", None, True), Value("c", math.inf, False)))
    empty, infinite = Guarantee.of(Requirement(model, ("a", "b")), tightest, "recheck")
    assert (empty.satisfied, empty.satisfied_number, empty.margin) == (None, None, None)
    assert (infinite.satisfied, infinite.satisfied_number, infinite.margin) == ("inf", None, None)
    assert json.loads(empty.sensitive or "") == ["a", "b"]
    assert not empty.holds


def test_tightest_values_of_models_survive_the_database(ledger: Store) -> None:
    blocks = Blocks.of([{0: 2, 1: 3, 2: 1}, {0: 1, 2: 1}])
    reference = Reference.of(blocks)
    asked = {
        "k_anonymity": {"k": 3},
        "entropy_l_diversity": {"l": Fraction(9, 5)},
        "t_closeness": {"t": Fraction(3, 10)},
    }
    found: list[Guarantee] = []
    for name, parameters in asked.items():
        model = BY_NAME[name](**parameters)
        sensitive = ("s",) if model.about.uses_sensitive else ()
        found += Guarantee.of(Requirement(model, sensitive), model.tightest(blocks, reference), "search")
    assert [(g.asked, g.satisfied, g.holds) for g in found if g.model != "entropy_l_diversity"] == [
        ("3", "2", False),
        ("3/10", "3/8", False),
    ]
    with ledger.write() as connection:
        record(connection, EVENT, found)
    with ledger.read() as reader:
        assert reader.guarantees("inpatients", 1) == found
        assert reader.verify_chain("inpatients") == []


def test_values_of_the_source_do_not_get_in() -> None:
    model = BY_NAME["epsilon_privacy"](epsilon=3, adversary="III", predicates=(("heart disease",), ("cold", "flu")))
    (guarantee,) = Guarantee.of(
        Requirement(model, ("condition",)), Tightest(model.name, True, (Value("epsilon", 2, True),)), "search"
    )
    assert "heart" not in guarantee.parameters
    assert json.loads(guarantee.parameters)["predicates"]["items"] == 2
    for detail in ({"a": "heart disease"}, {"a": [1, "x"]}, {"a": 1.5}, ["x"]):
        with pytest.raises(ValueError, match="counts only"):
            Event(release="r", state="staged", run="u", detail=detail)  # type: ignore[arg-type]


def test_an_event_names_a_state_and_a_time_zone() -> None:
    with pytest.raises(ValueError, match="valid: staged, checked, published"):
        Event(release="r", state="done", run="u")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="time zone"):
        Event(release="r", state="staged", run="u", recorded_at=datetime(2026, 1, 1))
