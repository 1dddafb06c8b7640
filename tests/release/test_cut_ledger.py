"""A ledger with events missing or altered: nothing is cleared or dropped by it, and readers keep their version."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from qblock.errors import Refused
from qblock.ledger.stores import store_of
from qblock.publish.targets import target_of
from qblock.release.apply import plan
from qblock.release.erase import erase
from qblock.release.move import move
from qblock.release.retire import retire
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from release.jobs import ATTRIBUTES, CopyJob, Job
from release.state import crosswalk, kept

pytestmark = pytest.mark.either_engine

EVENTS = 14
"""Of three versions: of each the crosswalk's digests are kept (of later ones twice), and it is staged, checked and
published."""


def publish_three(job: Job) -> None:
    job.set(attributes=ATTRIBUTES, entity="name")
    for _ in range(3):
        job.run(force=True)


@pytest.fixture
def thrice(copy_job: CopyJob) -> Job:
    return copy_job("three versions of entities", publish_three)


def on_ledger(job: Job, *statements: str) -> None:
    """Change the ledger; `{}` is the schema's prefix."""
    if job.engine == "postgresql":
        for statement in statements:
            job.change(statement.format("qblock."))
        return
    with closing(sqlite3.connect(job.folder / "qblock" / "ledger.sqlite", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement.format(""))


def cut(number: int) -> tuple[str, ...]:
    """The newest events are gone, with their guarantees."""
    return tuple(f"DELETE FROM {{}}{table} WHERE number > {EVENTS - number}" for table in ("event", "guarantee"))


DAMAGES: dict[str, tuple[tuple[str, ...], str]] = {
    **{
        f"newest {n} missing": (cut(n), r"the pointer row names version 3, and (the ledger ends at|that is not)")
        for n in (1, 2, 3, 6, 11)
    },
    "all missing": (cut(EVENTS), "the pointer row names version 3, and the ledger knows no version"),
    "events missing and guarantees there": (cut(2)[:1], "version 3"),
    "all missing with the pointer": (
        (*cut(EVENTS), "DELETE FROM {}pointer"),
        "version 3 of release people, and the ledger knows no version of it",
    ),
    "newest missing and an older pointer": (
        (*cut(3), "UPDATE {}pointer SET version = 2"),
        "version 3 of release people, and the ledger ends at version 2",
    ),
    "pointer at what never was": (("UPDATE {}pointer SET version = 7",), "the pointer row names version 7, and the"),
    "a middle event missing": (("DELETE FROM {}event WHERE number = 6",), "event 6 of release people is missing"),
    "the first events missing": (
        ("DELETE FROM {}event WHERE number < 3",),
        "event 1 to 2 of release people is missing",
    ),
    "an event altered": (
        ("UPDATE {}event SET state = 'retired' WHERE number = 14",),
        "event 14 of release people or its guarantees were altered",
    ),
    "an unfinished event instead": (
        ("UPDATE {}event SET state = 'staged' WHERE number = 14",),
        "event 14 of release people or its guarantees were altered",
    ),
    "an event that cannot be read": (
        ("UPDATE {}event SET recorded_at = 'yesterday' WHERE number = 4",),
        "event 4 of release people cannot be read",
    ),
    "a guarantee altered": (
        ("UPDATE {}guarantee SET model = 'other' WHERE number = 14",),
        "event 14 of release people or its guarantees were altered",
    ),
}


BY_EVERY_COMMAND = ("all missing", "newest missing and an older pointer", "an event altered")
"""The others are asked about by two commands and by what is common to all."""


@pytest.mark.parametrize("damage", DAMAGES)
def test_readers_keep_their_version_whatever_is_missing_in_the_ledger(thrice: Job, damage: str) -> None:
    """The run after took what the pointer row names for a leftover and dropped it."""
    statements, says = DAMAGES[damage]
    on_ledger(thrice, *statements)
    before = thrice.published(), kept(thrice), crosswalk(thrice)
    assert before[0]
    commands: dict[str, Callable[[], Any]] = {
        "release": thrice.run,
        "release --force": lambda: thrice.run(force=True),
        "rollback": lambda: rollback(thrice.spec, 2),
        "erase": lambda: erase(thrice.spec, ["person 0"], now=True),
        "move": lambda: move(moved(thrice).spec, "people"),
        "verify": lambda: verify(thrice.spec).raise_problems(),
    }
    for name, command in commands.items():
        if damage not in BY_EVERY_COMMAND and name not in ("release", "rollback"):
            continue
        with pytest.raises(Refused) as raised:
            command()
        assert re.search(says, str(raised.value)), (name, str(raised.value))
        assert (thrice.published(), kept(thrice), crosswalk(thrice)) == before, name
    if damage == "an event that cannot be read":
        with pytest.raises(Refused, match=says):
            plan(thrice.spec)
        return
    assert any(re.search(says, note) for note in plan(thrice.spec).answer().notes)
    # What takes the view away takes nothing else.
    result = retire(thrice.spec)
    assert (result.status, re.search(says, result.notes[0]) is not None) == ("retired", True)
    assert (kept(thrice), crosswalk(thrice)) == before[1:]
    assert thrice.engine == "duckdb" or thrice.published() == []
    assert thrice.engine == "postgresql" or not thrice.target.exists()


def moved(job: Job) -> Job:
    settings = {**job.settings, "release": "patients"}
    return Job(job.engine, job.folder, job.url, settings)


def test_what_a_release_published_after_it_was_retired_is_taken_away_too(thrice: Job) -> None:
    """The ledger lost what came after the retirement, and says that nothing is shown."""
    retire(thrice.spec)
    thrice.run(force=True)
    on_ledger(thrice, *(f"DELETE FROM {{}}{table} WHERE number > {EVENTS + 1}" for table in ("event", "guarantee")))
    assert len(thrice.published()) == 12
    assert retire(thrice.spec).status == "retired"
    if thrice.engine == "postgresql":
        assert thrice.published() == []
    else:
        assert not thrice.target.exists()


def test_the_version_that_readers_see_is_cleared_by_nothing(thrice: Job) -> None:
    """Whatever a caller takes for a leftover or for old."""
    before = thrice.published(), kept(thrice)

    def never(*_: object) -> None:
        raise AssertionError("nothing is recorded of a version that stays")

    with store_of(thrice.spec).read() as reader:
        assert reader.pointer("people") == 3
    target = target_of(thrice.spec)
    assert target.retire({3: never}) == ["version 3 stays: it is the one that readers see"]
    assert (thrice.published(), kept(thrice)) == before
    removed = target.clear([])
    assert len(removed) == 2
    assert thrice.published() == before[0]
    assert kept(thrice) == before[1][2:]
