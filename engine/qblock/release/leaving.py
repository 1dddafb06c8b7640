"""Who leaves a release by an erasure, and how many share their joint cells; counted ahead for `erase --plan`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qblock.errors import InputError
from qblock.joint.crosswalk import has_book, open_book, own_book
from qblock.joint.named import kept_people, looked_up
from qblock.joint.sharing import Sharing, sharing
from qblock.ledger.history import published_versions
from qblock.ledger.lock import release_lock
from qblock.ledger.place import Place
from qblock.ledger.reader import ledger_reader
from qblock.release import steps
from qblock.release.plan import Plan, plan_erase
from qblock.spec import Spec
from qblock.warehouse import warehouse_of

NOBODY = (
    "{} of {} {} nobody, neither in the source nor in any earlier version; nothing is done, not even for "
    "those found. People are named exactly by the text of column {}: numbers plain (7, not 007), dates as 2026-01-31; "
    "look the names up there, correct the list and give it again, complete"
)
NOT_COUNTED = "the ledger has to be upgraded before it is known how many people share their joint cells"


def named_people(place: Place, spec: Spec, names: Sequence[str]) -> list[str]:
    """The digests of all who are named. Raises InputError where a name is nobody's: how many are, never which."""
    with own_book(place) as book:
        found = kept_people(book, spec.release, names)
    if found is None:
        warehouse = warehouse_of(spec)
        try:
            with warehouse.snapshot() as session, open_book(place, session, read_only=True) as book:
                found, unknown = looked_up(book, spec, session, names)
        finally:
            warehouse.close()
        if unknown:
            raise InputError(NOBODY.format(unknown, *_matching(unknown, len(names)), spec.entity))
    return [digest for digest in found if digest is not None]


def _matching(unknown: int, given: int) -> tuple[str, str]:
    return f"{given} {'name' if given == 1 else 'names'}", "matches" if unknown == 1 else "match"


class _Counted(Exception):
    """Leaves a transaction that is not to be kept."""


def count_sharing(place: Place, spec: Spec, digests: Sequence[str]) -> Sharing:
    """How many share the joint cells of people (digests); under the release's lock. Keeps nothing."""
    with ledger_reader(place) as reader:
        published = published_versions(reader.history(spec.release))
    try:
        with own_book(place) as book:
            found = sharing(book, spec, digests, published)
            raise _Counted
    except _Counted:
        return found


def planned_erasure(spec: Spec, people: Sequence[str], *, now: bool = False, wait: float = 0) -> Plan:
    """The plan of an erasure; with `now` the people are looked up, and who shares their joint cells is counted.

    Raises what `plan_erase` and `named_people` raise, and Busy where another run of the release is in progress.
    """
    named = list(dict.fromkeys(people))
    made = plan_erase(spec, len(named), now=now, wait=wait)
    if not now or made.refused:
        return made
    upgrade = next(step for step in made.steps if isinstance(step, steps.UpgradeLedger))
    if upgrade.found != upgrade.needed or not has_book(made.place):
        return replace(made, notes=(*made.notes, NOT_COUNTED)) if upgrade.found else made
    with release_lock(made.place, spec.release, wait):
        found = count_sharing(made.place, spec, named_people(made.place, spec, named))
    return replace(made, notes=(*made.notes, str(found)), sharing=found.to_json())
