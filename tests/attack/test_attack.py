"""Random histories of the whole job: whoever kept every table that was ever readable is certain of nobody."""

from __future__ import annotations

import os

import pytest
from versions.histories import history
from versions.register import Register, Row, candidates

from attack.play import Tally, play_all
from attack.seen import certain

pytestmark = pytest.mark.either_engine

RANDOM = 3 if os.environ.get("QBLOCK_TEST_ENGINES") == "all" else 1
# Histories in which a program without these checks told somebody's value, among others.
SEEDS = [100016, 100018, 100020, 100024, 100033, 100050, *range(7000, 7000 + RANDOM)]


def test_no_history_tells_anybodys_value(engine_name: str, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue("postgresql_server") if engine_name == "postgresql" else None
    tally: Tally = play_all(engine_name, server, SEEDS)
    assert tally.disclosed == [], str(tally)
    assert tally.histories == len(SEEDS)
    assert tally.several > len(SEEDS) / 4, str(tally)
    assert 2 * tally.quiet_published >= tally.quiet > 0, str(tally)


def test_the_attacker_finds_whom_every_assignment_agrees_on() -> None:
    found = 0
    for seed in range(400):
        register: Register = history(seed)
        if not register.published or {row.value for row in register.rows} - set("ab"):
            continue
        coded = tuple(Row(r.person, r.version, r.block, "12"["ab".index(r.value)], r.published) for r in register.rows)
        mine = Register(coded)
        one = {
            who.split("@")[0] for who, values in candidates(mine, rule=False, domain="123").items() if len(values) < 2
        }
        assert set(certain(mine)) == one, seed
        found += bool(one)
    assert found > 20
