"""The gate on small histories, whatever the engine; what it counts, what it keeps, and what it refuses to judge."""

from __future__ import annotations

import hashlib
import re

import pyarrow as pa
import pytest
import sqlalchemy as sa

from qblock.errors import InputError, Refused
from qblock.ledger.store import Store
from qblock.versions import episodes
from qblock.versions.crosswalk import Crosswalk, fresh_name, prepare
from qblock.versions.episodes import Mode, VersionKey
from qblock.versions.gate import check, unchanged
from qblock.versions.recorded import discard, least_rows, record, recorded
from qblock.versions.texts import decoded, encoded

from .attacker import refused_seeds
from .cases import CASES, Case
from .conftest import OpenBook
from .register import j1, j1_versions, joint_cells
from .versions import candidate_of, make_spec, publish, references, verdict

pytestmark = pytest.mark.either_engine

BY_NAME = {case.name: case for case in CASES}


def test_the_plain_rules_say_the_same_of_our_scenarios() -> None:
    for case in CASES:
        assert j1(case.register) == case.j1, case.name
        assert j1_versions(case.register, changes=True) == case.linked, case.name


def test_what_the_gate_says_of_our_scenarios(crosswalk: Crosswalk) -> None:
    registers = [(number, case.register) for number, case in enumerate(CASES)]
    modes: tuple[Mode | None, ...] = ("episodes", "linked", None)
    for mode in modes:
        refused = refused_seeds(crosswalk, make_spec(release=f"r_{mode}"), registers, mode=mode)
        expected = {case.name for case in CASES if not (case.j1 if mode == "episodes" else case.linked)}
        assert {CASES[number].name for number in refused} == expected


def test_what_the_gate_counts(crosswalk: Crosswalk) -> None:
    for number, name in enumerate(("pairs of versions pass, the three do not", "a block failed for its values")):
        register = BY_NAME[name].register
        found = verdict(crosswalk, register, make_spec(release=f"r{number}"))
        cells = joint_cells(register)
        failing = [cell for cell in cells.values() if not register.passes(cell)]
        assert (found.versions, found.cells) == (len(register.versions), len(cells))
        assert (found.failing, found.rows) == (len(failing), sum(map(len, failing)))


def test_a_cell_is_held_against_the_quantities_of_each_version_that_shows_it(crosswalk: Crosswalk) -> None:
    """{p, r} is far from the table of 8 rows, the six others are close to it; and far from the table of 2."""
    few, many = "p:g:a r:g:b", "p:g:a r:g:b " + " ".join(f"{person}:h:b" for person in "stuvwx")
    for release, versions in (("grows", (few, many)), ("shrinks", (many, few))):
        register = Case("", versions, True, True).register
        found = publish(crosswalk, register, make_spec(privacy=("t_closeness: {t: 0.3}",), release=release))[-1]
        assert (found.cells, found.failing, found.rows) == (2, 1, 2), release
        assert found.models == (("t_closeness", 1),)


def test_rolling_on_and_rolling_anew_come_to_the_same(crosswalk: Crosswalk) -> None:
    register = BY_NAME["pairs of versions pass, the three do not"].register
    spec = make_spec()
    assert [v.passed for v in publish(crosswalk, register, spec)] == [True, True, False]
    rows = [row for row in register.rows if row.version == 3]
    again = check(crosswalk, spec, references(spec, rows))
    assert (again.passed, again.versions) == (False, 3)
    t = crosswalk.tables
    rolled = crosswalk.own.fetch(sa.select(t.episode).order_by(t.episode.c.entity)).to_pylist()
    crosswalk.own.run(sa.delete(t.rolled))
    anew = check(crosswalk, spec, references(spec, rows))
    assert anew == again
    assert crosswalk.own.fetch(sa.select(t.episode).order_by(t.episode.c.entity)).to_pylist() == rolled


def test_a_version_that_was_never_shown_is_taken_back(crosswalk: Crosswalk) -> None:
    spec = make_spec()
    harmless = BY_NAME["nothing changes"].register
    publish(crosswalk, BY_NAME["newcomers with one value"].register, spec)
    discard(crosswalk, VersionKey("r", 2))
    assert [v.key for v in recorded(crosswalk)] == [VersionKey("r", 1)]
    found = candidate_of(crosswalk, harmless.rows, 2, 2)
    assert check(crosswalk, spec, references(spec, harmless.rows), found).passed


def test_other_releases_that_the_same_readers_hold_are_checked_together(crosswalk: Crosswalk) -> None:
    register = BY_NAME["two nodes that cross"].register
    one = register.of_versions([1])
    other = [row for row in register.rows if row.version == 2]
    publish(crosswalk, one, make_spec(release="one"))
    found = candidate_of(crosswalk, other, 2, 2, "other")
    quantities = references(make_spec(), other)
    assert check(crosswalk, make_spec(release="other"), quantities, found).passed
    named = make_spec(release="other", audience=["one"])
    verdict_ = check(crosswalk, named, quantities, found)
    assert not verdict_.passed
    assert verdict_.considered == (VersionKey("one", 1), VersionKey("other", 2))


def test_a_release_that_names_this_one_is_checked_with_it_too(crosswalk: Crosswalk) -> None:
    register = BY_NAME["two nodes that cross"].register
    publish(crosswalk, register.of_versions([1]), make_spec(release="one", audience=["other"]), audience=("other",))
    other = [row for row in register.rows if row.version == 2]
    found = candidate_of(crosswalk, other, 2, 2, "other")
    assert not check(crosswalk, make_spec(release="other"), references(make_spec(), other), found).passed


def test_a_version_recorded_meanwhile_is_seen_at_publication(crosswalk: Crosswalk) -> None:
    register = BY_NAME["two nodes that cross"].register
    mine, theirs = make_spec(release="mine", audience=["theirs"]), make_spec(release="theirs")
    rows = [row for row in register.rows if row.version == 1]
    found = candidate_of(crosswalk, rows, 1, 2, "mine")
    checked = check(crosswalk, mine, references(mine, rows), found)
    record(crosswalk, found)
    assert unchanged(crosswalk, mine, checked)
    publish(crosswalk, register.of_versions([2]), theirs)
    assert not unchanged(crosswalk, mine, checked)


def test_an_audience_with_other_sensitive_attributes(crosswalk: Crosswalk) -> None:
    register = BY_NAME["nothing changes"].register
    publish(crosswalk, register.of_versions([1]), make_spec(release="one"))
    t = crosswalk.tables.version
    spec = make_spec(release="other", audience=["one"])
    crosswalk.own.run(sa.update(t).values(sensitive='["income","value"]'))
    with pytest.raises(InputError, match="the sensitive attributes income, value, and other has value"):
        check(crosswalk, spec, references(spec, register.rows))
    crosswalk.own.run(sa.update(t).values(sensitive='["income"]'))
    crosswalk.read.clear()
    assert check(crosswalk, spec, references(spec, register.rows)).versions == 0


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("nt_closeness: {n: 2, t: 0.5}", "coarser nodes"),
        ("delta_presence: {min: 0, max: 1, population: {table: t}}", "a population"),
    ],
)
def test_models_that_several_versions_do_not_have(crosswalk: Crosswalk, model: str, why: str) -> None:
    register = BY_NAME["nothing changes"].register
    spec = make_spec(privacy=(model,))
    first = candidate_of(crosswalk, register.rows, 1, 1)
    assert check(crosswalk, spec, references(spec, register.rows), first).passed
    record(crosswalk, first)
    with pytest.raises(Refused, match=f"defined by {why}, which several versions together do not have") as raised:
        check(crosswalk, spec, references(spec, register.rows), candidate_of(crosswalk, register.rows, 2, 1))
    assert raised.value.exit_status == 3


@pytest.mark.parametrize(
    ("privacy", "least"),
    [
        (("k_anonymity: {k: 3}",), 3),
        (("k_anonymity: {k: 3}", "entropy_l_diversity: {l: 4.5}"), 5),
        (("t_closeness: {t: 0.1}",), 1),
        (("beta_likeness: {beta: 0.1}", "k_anonymity: {k: 2}"), 2),
    ],
)
def test_the_size_below_which_a_block_fails_whatever_it_holds(privacy: tuple[str, ...], least: int) -> None:
    assert least_rows(make_spec(privacy=privacy).privacy) == least


def test_values_of_any_text_come_back(crosswalk: Crosswalk) -> None:
    rows = [("a", "b"), ("", None), (None, None), ("V1:a", "N"), ("ü1:日本", "|;\x1f"), ("aV1:", "b")]
    texts = {f"c{i}": pa.array([row[i] for row in rows], pa.string()) for i in range(2)}
    table = crosswalk.own.load("qblock_texts", pa.table({**texts, "n": pa.array(range(len(rows)), pa.int64())}))
    query = sa.select(encoded([table.c.c0, table.c.c1]).label("text")).order_by(table.c.n)
    found = crosswalk.own.fetch(query)["text"].to_pylist()
    assert [decoded(text) for text in found] == rows
    assert len(set(found)) == len(rows)


def test_entities_are_kept_as_digests_that_only_the_place_can_make(open_a_book: OpenBook) -> None:
    found = []
    for _ in range(2):
        with open_a_book() as crosswalk:
            table = crosswalk.source.load(fresh_name(), pa.table({"entity": ["alice", "bob"]}))
            query = sa.select(crosswalk.entity(table.c.entity, table).label("digest")).order_by(table.c.entity)
            found.append(crosswalk.source.fetch(query)["digest"].to_pylist())
            secret = crosswalk.own.scalar(sa.select(crosswalk.tables.key.c.secret))
    assert found[0] == found[1]
    assert len(set(found[0])) == 2
    inner = hashlib.sha256(f"{secret}alice".encode()).hexdigest()[:32]
    assert found[0][0] == hashlib.sha256(f"{secret}{inner}".encode()).hexdigest()[:32]


def test_preparing_twice_keeps_the_secret(place: Store, open_a_book: OpenBook) -> None:
    secrets = []
    for _ in range(2):
        place.upgrade()
        prepare(place)
        with open_a_book() as crosswalk:
            secrets.append(crosswalk.own.scalar(sa.select(crosswalk.tables.key.c.secret)))
    assert secrets[0] == secrets[1]
    assert len(secrets[0]) == 64


def test_an_error_takes_back_what_the_book_was_told(open_a_book: OpenBook) -> None:
    register = BY_NAME["nothing changes"].register

    def stopped() -> None:
        with open_a_book() as crosswalk:
            publish(crosswalk, register, make_spec())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        stopped()
    with open_a_book() as crosswalk:
        assert recorded(crosswalk) == []


def test_no_person_is_compared_with_every_other(crosswalk: Crosswalk) -> None:
    """The plan of the check joins by hashes; with conditions on the outer side of a join DuckDB's does not."""
    register = BY_NAME["one value changes"].register
    publish(crosswalk, register.of_versions([1]), make_spec())
    found = candidate_of(crosswalk, register.rows, 2, 2)
    for mode in ("episodes", "linked"):
        found_episodes = episodes.next_episodes(crosswalk, "r", found.rows, found.about.key)
        statement = crosswalk.own.literal_sql(episodes.joint_cells(crosswalk, "r", found_episodes, mode))
        plan = "\n".join(str(row) for row in crosswalk.own.fetch(f"EXPLAIN {statement}").to_pylist()).upper()
        assert "HASH" in plan
        assert not re.search("NESTED.LOOP|NL_JOIN|CROSS_PRODUCT", plan), plan
