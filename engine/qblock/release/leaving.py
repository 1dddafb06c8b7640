"""Who leaves a release by an erasure, and how many share their joint cells; counted ahead for `erase --plan`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from qblock.errors import InputError, Refused
from qblock.ledger.history import published_versions
from qblock.ledger.store import Store
from qblock.release import steps
from qblock.release.plan import Plan, plan_erase
from qblock.results.release import Sharing
from qblock.spec import Spec
from qblock.versions import turnover
from qblock.versions.crosswalk import has_crosswalk, open_crosswalk
from qblock.versions.people import Missing, kept_people, looked_up, missing
from qblock.versions.withdrawals import sharing
from qblock.warehouse import warehouse_of

NOBODY = (
    "{} of {} {} nobody, neither in the source nor in any earlier version; nothing is done, not even for "
    "those found. People are named exactly by the text of column {}: numbers plain (7, not 007), dates as 2026-01-31; "
    "look the names up there, correct the list and give it again, complete"
)
TOO_MANY = (
    "{}: more than a fifth. Where the values of column {} were changed, or not all of the source was loaded, they are "
    "not gone; nothing is done. If they have really left, say how many: --confirm {}"
)
ANOTHER_NUMBER = "{}, and --confirm says {}; nothing is done"
NOT_COUNTED = "the ledger has to be upgraded before it is known who would leave and how many share their joint cells"


@dataclass(frozen=True)
class ErasureRequest:
    """Who is to leave, and how. names: texts of the entity column; missing: instead of them those whom the source has
    no more; confirm: how many these are, where they are too many to go by themselves; now: at once."""

    names: tuple[str, ...] = ()
    missing: bool = False
    confirm: int | None = None
    now: bool = False

    @classmethod
    def of(cls, spec: Spec, names: Sequence[str], *, missing: bool, confirm: int | None, now: bool) -> ErasureRequest:
        """Raises InputError where nobody is named, somebody is beside `missing`, or the spec does not say who a row is
        about."""
        if missing and names:
            raise InputError("--missing is about those whom the source has no more: name nobody, and give no file")
        if confirm is not None and not missing:
            raise InputError("--confirm says how many people are missing from the source: give it with --missing")
        if not names and not missing:
            raise InputError(
                "nobody is named: give the values of the entity column, or a file with one on each line, or --missing "
                "for those whom the source has no more"
            )
        if not spec.checked_together:
            raise InputError(
                f"{spec.at('versions')}: people can withdraw where the spec says who a row is about and versions are "
                "checked together: write `entity: COLUMN`, and not `joint: none`"
            )
        return cls(tuple(dict.fromkeys(names)), missing, confirm, now)

    def plan(self, spec: Spec, wait: float, *, judge: bool = True) -> Plan:
        """The steps; raises what `plan_erase` raises."""
        people = None if self.missing else len(self.names)
        return plan_erase(spec, people, confirm=self.confirm, now=self.now, wait=wait, judge=judge)


def named_people(place: Store, spec: Spec, names: Sequence[str]) -> list[str]:
    """The digests of all who are named. Raises InputError where a name is nobody's: how many are, never which."""
    with open_crosswalk(place) as crosswalk:
        digests = kept_people(crosswalk, spec.release, names)
    if digests is None:
        warehouse = warehouse_of(spec)
        try:
            with warehouse.snapshot() as session, open_crosswalk(place, session, read_only=True) as crosswalk:
                digests, unknown = looked_up(crosswalk, spec, session, names)
        finally:
            warehouse.close()
        if unknown:
            given, verb = "name" if len(names) == 1 else "names", "matches" if unknown == 1 else "match"
            raise InputError(NOBODY.format(unknown, f"{len(names)} {given}", verb, spec.entity))
    return [digest for digest in digests if digest is not None]


def missing_people(place: Store, spec: Spec, request: ErasureRequest) -> Missing:
    """Whom the source has no more. Raises what `versions.missing` raises, and Refused for another number than was
    confirmed, or where none was and they are more than one in `turnover.ONE_IN`: the source may be wrong."""
    with place.read() as reader:
        versions, current = published_versions(reader.history(spec.release)), reader.pointer(spec.release)
    warehouse = warehouse_of(spec)
    try:
        with warehouse.snapshot() as session, open_crosswalk(place, session, read_only=True) as crosswalk:
            absent = missing(crosswalk, spec, session, versions, current, now=request.now)
    finally:
        warehouse.close()
    number = len(absent.digests)
    if request.confirm not in (None, number):
        raise Refused(ANOTHER_NUMBER.format(said_missing(absent), request.confirm))
    if request.confirm is None and turnover.ONE_IN * number > absent.people:
        raise Refused(TOO_MANY.format(said_missing(absent), spec.entity, number))
    return absent


def said_missing(absent: Missing) -> str:
    """How many are missing."""
    number = len(absent.digests)
    verb = "is" if number == 1 else "are"
    return f"{number:,} of the {absent.people:,} people of the release {verb} not in the source"


class _Counted(Exception):
    """Leaves a transaction that is not to be kept."""


def count_sharing(place: Store, spec: Spec, digests: Sequence[str]) -> Sharing:
    """How many share the joint cells of people (digests); under the release's lock. Keeps nothing."""
    with place.read() as reader:
        published = published_versions(reader.history(spec.release))
    try:
        with open_crosswalk(place) as crosswalk:
            shared = sharing(crosswalk, spec, digests, published)
            raise _Counted
    except _Counted:
        return shared


def planned_erasure(spec: Spec, request: ErasureRequest, wait: float = 0) -> Plan:
    """The plan of an erasure. With `now` people are looked up, and who shares their joint cells is counted; those who
    are missing are counted in any case.

    Raises what `plan_erase`, `named_people` and `missing_people` raise, and Busy where another run of the release is in
    progress.
    """
    planned = request.plan(spec, wait)
    if not (request.now or request.missing) or planned.refused:
        return planned
    upgrade = next(step for step in planned.steps if isinstance(step, steps.UpgradeLedger))
    if upgrade.found != upgrade.needed or not has_crosswalk(planned.place):
        return replace(planned, notes=(*planned.notes, NOT_COUNTED)) if upgrade.found else planned
    with planned.place.lock(spec.release, wait):
        if request.missing:
            absent = missing_people(planned.place, spec, request)
            digests = list(absent.digests)
            planned = replace(planned, missing=len(digests), notes=(*planned.notes, said_missing(absent)))
        else:
            digests = named_people(planned.place, spec, request.names)
        if not request.now or not digests:
            return planned
        shared = count_sharing(planned.place, spec, digests)
    return replace(planned, notes=(*planned.notes, str(shared)), sharing=shared.to_dict())
