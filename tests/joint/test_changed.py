"""J1-linked where more than a tenth changed: the verdict of the rule, history by history."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qblock.joint.changed import Changed, changes, check_changed
from qblock.joint.crosswalk import Book
from qblock.joint.episodes import VersionKey
from qblock.joint.gate import check
from qblock.joint.versions import record

from .histories import history
from .register import Register, Row, j1, j1_versions
from .versions import candidate_of, make_spec, publish, references

pytestmark = pytest.mark.either_engine


@pytest.mark.parametrize(("stayed", "changed", "many"), [(40, 4, False), (40, 5, True), (0, 0, False), (9, 1, True)])
def test_more_than_a_tenth_is_counted_exactly(stayed: int, changed: int, many: bool) -> None:
    assert Changed(VersionKey("r", 1), stayed, changed).too_many == many


def counted(register: Register, before: int, now: int) -> tuple[int, int]:
    """People whom a version shows and another one has, and of them, those with another value."""
    old = {row.person: row.value for row in register.rows if row.version == before and row.published}
    new = {row.person: row.value for row in register.rows if row.version == now}
    both = old.keys() & new.keys()
    return len(both), sum(old[person] != new[person] for person in both)


def test_the_verdict_is_that_of_the_linked_rule_where_many_changed(book: Book) -> None:
    fired = 0
    seeds = [seed for seed in range(1200) if changing(history(seed))]
    for seed in seeds[:16]:
        register = history(seed)
        spec = make_spec(release=f"r{seed}")
        for last, version in enumerate(register.versions):
            found = candidate_of(book, register.rows, version, register.k, spec.release)
            known = references(spec, [row for row in register.rows if row.version == version])
            verdict, changed = check_changed(book, spec, known, found, check(book, spec, known, found))
            prefix = register.of_versions(register.versions[: last + 1])
            expected = j1(prefix)
            if last and expected:
                (since,) = changes(book, spec, found)
                assert (since.stayed, since.changed) == counted(register, register.versions[last - 1], version)
                if since.too_many:
                    fired += 1
                    expected = j1_versions(prefix, changes=True)
                assert (changed is not None) == since.too_many
            assert verdict.passed == expected, (seed, version)
            record(book, found)
    assert fired > 5


def changing(register: Register) -> bool:
    """Whether J1 lets it through at every version, with changed values."""
    prefixes = [register.of_versions(v for v in register.versions if v <= last) for last in register.versions]
    return len(register.episodes) > len(register.people) and all(map(j1, prefixes))


def test_a_recode_between_two_releases_of_an_audience_is_seen_too(book: Book) -> None:
    people = [Row(f"p{i}", 1, "q", "ab"[i % 2], True) for i in range(6)]
    publish(book, Register(tuple(people)), make_spec(release="one"), audience=("two",))
    recoded = [replace(row, value=row.value + "x") for row in people]
    spec = make_spec(release="two")
    found = candidate_of(book, recoded, 1, 2, "two", ("one",))
    (since,) = changes(book, spec, found)
    assert (since.key, since.stayed, since.changed) == (VersionKey("one", 1), 6, 6)
