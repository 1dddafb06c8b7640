"""A new key of the crosswalk: everybody moves to it, nobody is another person, and checks find what they found."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa

from qblock.errors import QblockError
from qblock.ledger.store import SCHEMA
from qblock.versions.conversion import new_key, people
from qblock.versions.crosswalk import Crosswalk
from qblock.versions.episodes import Mode
from qblock.versions.gate import Verdict, check
from qblock.versions.people import digests_of, set_apart
from qblock.versions.recorded import record

from .attacker import together
from .histories import history
from .register import Row
from .versions import candidate_of, make_spec, references

pytestmark = pytest.mark.either_engine

SEEDS = range(120)
"""Histories checked at once, as in the attacker's test: persons and blocks of different ones differ."""


def published(
    crosswalk: Crosswalk, rows: Sequence[Row], release: str, mode: Mode, rekeyed: Collection[int] = ()
) -> list[Verdict]:
    """Every version of histories, their people known by digests; the key is changed before the versions named."""
    spec = make_spec(release=release)
    verdicts = []
    for version in sorted({row.version for row in rows}):
        if version in rekeyed:
            new_key(crosswalk)
        mine = [row for row in rows if row.version == version]
        digests = digests_of(crosswalk, [row.person for row in mine])
        known = [replace(row, person=who) for row, who in zip(mine, digests, strict=True)]
        found = candidate_of(crosswalk, known, version, 2, release)
        verdict = check(crosswalk, spec, references(spec, known), found, mode)
        verdicts.append(verdict)
        record(crosswalk, found)
    return verdicts


def forget(crosswalk: Crosswalk) -> None:
    """Empty the crosswalk but for its first key."""
    for table in vars(crosswalk.tables).values():
        if isinstance(table, sa.Table):
            crosswalk.own.run(sa.delete(table).where(table.c.id > 1) if "secret" in table.c else sa.delete(table))


def said(verdict: Verdict) -> tuple[Any, ...]:
    return verdict.cells, verdict.failing, verdict.rows, verdict.models, verdict.names


@pytest.mark.parametrize("mode", ["episodes", "linked"])
def test_histories_with_a_new_key_anywhere_give_the_same_joint_cells(crosswalk: Crosswalk, mode: Mode) -> None:
    rows = together([(seed, history(seed)) for seed in SEEDS])
    plain = published(crosswalk, rows, "r", mode)
    assert sum(one.failing for one in plain) > 50
    for rekeyed in ({2}, {3}, {1, 2, 3}):
        # The names of joint cells hold the names of versions, so all are of one release, one after the other.
        forget(crosswalk)
        moved = published(crosswalk, rows, "r", mode, rekeyed)
        assert [said(one) for one in moved] == [said(one) for one in plain]


def test_the_database_and_the_program_take_the_same_chain_of_digests(crosswalk: Crosswalk) -> None:
    names = ["p", "ä", "日本", "", "a" * 200]
    old = None
    for keys in (1, 2, 3):
        table = crosswalk.own.load(f"names_{keys}", _column(names))
        query = sa.select(table.c.name, crosswalk.entity(table.c.name, table).label("digest"))
        rows = crosswalk.source.fetch(_in_source(crosswalk, query, names, keys)).to_pylist()
        found = {row["name"]: row["digest"] for row in rows}
        assert [found[name] for name in names] == digests_of(crosswalk, names)
        assert crosswalk.key_numbers() == list(range(1, keys + 1))
        assert not set(found.values()) & set((old or {}).values())
        old = found
        new_key(crosswalk)


def _column(names: list[str]) -> pa.Table:
    return pa.table({"name": names})


def _in_source(crosswalk: Crosswalk, query: Any, names: list[str], keys: int) -> Any:
    if crosswalk.own is not crosswalk.source:
        crosswalk.source.load(f"names_{keys}", _column(names))
    return query


def test_no_table_keeps_a_digest_of_the_old_key(crosswalk: Crosswalk) -> None:
    """Whoever read the old key and any table of the crosswalk later on finds nobody by likely names."""
    rows = together([(seed, history(seed)) for seed in range(4)])
    for release in ("r0", "r1"):
        published(crosswalk, rows, release, "episodes")
    everybody = sorted({row.person for row in rows} | {"out"})
    set_apart(crosswalk, "r0", digests_of(crosswalk, ["out"]), "withdrawn", "out", 1)
    t = crosswalk.tables
    crosswalk.own.run(
        sa.insert(t.turnover).values(release="r0", entity=digests_of(crosswalk, ["out"])[0], state="gone")
    )
    frozen = {"release": "r0", "version": 1, "names": "[]", "place": ""}
    crosswalk.own.run(sa.insert(t.frozen).values(entity=digests_of(crosswalk, [rows[0].person])[0], **frozen))
    old = set(digests_of(crosswalk, everybody))
    before, known = _texts(crosswalk), people(crosswalk)
    assert old <= before
    number, moved = new_key(crosswalk)
    after = _texts(crosswalk)
    assert (number, moved) == (2, known)
    assert not old & after
    assert set(digests_of(crosswalk, everybody)) <= after
    assert people(crosswalk) == known
    holding = {table.name for table in t.of_entities}
    assert holding == {name for name, column in _columns(crosswalk) if column == "entity"}


def _columns(crosswalk: Crosswalk) -> list[tuple[str, str]]:
    schema = SCHEMA if crosswalk.own.engine == "postgresql" else "main"
    query = (
        "SELECT table_name, column_name FROM information_schema.columns "
        f"WHERE table_schema = '{schema}' AND table_name LIKE 'crosswalk%'"
    )
    return [tuple(row.values()) for row in crosswalk.own.fetch(query).to_pylist()]


def _texts(crosswalk: Crosswalk) -> set[str]:
    found: set[str] = set()
    for table in vars(crosswalk.tables).values():
        if isinstance(table, sa.Table):
            for row in crosswalk.own.fetch(sa.select(table)).to_pylist():
                found |= {value for value in row.values() if isinstance(value, str)}
    return found


def test_without_a_key_nobody_is_kept_by_name(crosswalk: Crosswalk) -> None:
    crosswalk.own.run(sa.delete(crosswalk.tables.key))
    with pytest.raises(QblockError, match="has no key"):
        crosswalk.entity(sa.literal("somebody"), sa.table("nowhere"))
    with pytest.raises(QblockError, match="has no key"):
        digests_of(crosswalk, ["somebody"])
