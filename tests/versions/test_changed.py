"""How many values changed, as a refusal says it: counted person by person."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qblock.versions.crosswalk import Crosswalk
from qblock.versions.episodes import VersionKey
from qblock.versions.explanation import changed_values
from qblock.versions.recorded import record

from .histories import history
from .register import Register, Row
from .versions import candidate_of, make_spec, publish

pytestmark = pytest.mark.either_engine


def counted(register: Register, before: int, now: int) -> tuple[int, int]:
    """People whom a version shows and another one has, and of them, those with another value."""
    old = {row.person: row.value for row in register.rows if row.version == before and row.published}
    new = {row.person: row.value for row in register.rows if row.version == now}
    both = old.keys() & new.keys()
    return len(both), sum(old[person] != new[person] for person in both)


def changing(register: Register) -> bool:
    return len(register.episodes) > len(register.people)


def test_people_with_another_value_are_counted(crosswalk: Crosswalk) -> None:
    some = none = 0
    for seed in [seed for seed in range(400) if changing(history(seed))][:20]:
        register = history(seed)
        spec = make_spec(release=f"r{seed}")
        for last, version in enumerate(register.versions):
            found = candidate_of(crosswalk, register.rows, version, register.k, spec.release)
            since = changed_values(crosswalk, spec, found)
            expected = counted(register, register.versions[last - 1], version) if last else (0, 0)
            if expected[1]:
                some += 1
                assert since is not None
                assert (since.stayed, since.changed) == expected
            else:
                none += 1
                assert since is None
            record(crosswalk, found)
    assert min(some, none) > 10


def test_a_recode_between_two_releases_of_an_audience_is_seen_too(crosswalk: Crosswalk) -> None:
    people = [Row(f"p{i}", 1, "q", "ab"[i % 2], True) for i in range(6)]
    publish(crosswalk, Register(tuple(people)), make_spec(release="one"), audience=("two",))
    recoded = [replace(row, value=row.value + "x") for row in people]
    found = candidate_of(crosswalk, recoded, 1, 2, "two", ("one",))
    since = changed_values(crosswalk, make_spec(release="two"), found)
    assert since is not None
    assert (since.key, since.stayed, since.changed) == (VersionKey("one", 1), 6, 6)
