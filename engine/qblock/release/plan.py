"""The plan of a release: a frozen list of steps. It reads the ledger and the target's names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from qblock.errors import QblockError
from qblock.ledger import schema
from qblock.ledger.reader import LedgerReader
from qblock.ledger.store import Store
from qblock.ledger.stores import place_of
from qblock.publish.targets import Target, target_of
from qblock.release import move, private_state, roles, steps
from qblock.release.identity import check_identity
from qblock.release.maps import named_map
from qblock.release.steps import Step
from qblock.spec import Spec
from qblock.versions.withdrawals import check_cohorts
from qblock.warehouse.engines import engine_of_source
from qblock.warehouse.faults import denied
from qblock.warehouse.kept_sessions import kept_sessions
from qblock.warehouse.rights import Right

UNKNOWN = "unknown"
"""The revision of a ledger that this login may not read."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What a job would do. current: the version that readers see now; next_version: the number of the next one;
    forecast: how it would go on, as JSON, where that is known; sharing: how many share the joint cells of those who
    would leave at once, as JSON, and missing: how many people the source has no more, where that was counted; rights:
    those that an administrator must grant, where they were asked for; levels: of the next version and the current one;
    changes: that wait, where versions lag."""

    spec: Spec
    place: Store
    target: Target
    steps: tuple[Step, ...]
    current: int | None
    notes: tuple[str, ...]
    next_version: int = 1
    forecast: dict[str, Any] | None = None
    sharing: dict[str, int] | None = None
    missing: int | None = None
    rights: tuple[Right, ...] | None = None
    levels: dict[str, Any] | None = None
    changes: dict[str, Any] | None = None

    @property
    def stopping(self) -> tuple[Right, ...]:
        """Rights without which a run ends."""
        return tuple(right for right in self.rights or () if right.stops)

    def then(self, *more: Step) -> Plan:
        """The same with more steps at its end."""
        return replace(self, steps=(*self.steps, *more))

    @property
    def refused(self) -> list[str]:
        """Why a run would be refused now: private state that was lost or is older. Reads the ledger."""
        upgrade = next(step for step in self.steps if isinstance(step, steps.UpgradeLedger))
        if upgrade.found not in (None, upgrade.needed) or self.stopping:
            return []
        spec, place = self.spec, self.place
        comparison = private_state.compare(spec, place, self.target, joint=spec.checked_together)
        lost = private_state.refusal(place, spec.release, comparison.problems)
        return [f"a run would be refused: {lost}"] if comparison.problems else []

    def to_json(self) -> dict[str, Any]:
        return {
            "release": self.spec.release,
            "view": self.target.view,
            "current_version": self.current,
            "notes": [*self.notes, *self.refused],
            "steps": [step.to_json() for step in self.steps],
            **({} if self.rights is None else {"missing_rights": [right.to_json() for right in self.rights]}),
            **({} if self.levels is None else {"levels": self.levels}),
            **({} if self.changes is None else {"changes": self.changes}),
            **({} if self.forecast is None else {"forecast": self.forecast}),
            **({} if self.missing is None else {"missing": self.missing}),
            **({} if self.sharing is None else {"sharing": self.sharing}),
        }


@kept_sessions()
def plan(spec: Spec, *, force: bool = False, wait: float = 0, judge: bool = True, place: Store | None = None) -> Plan:
    """The steps of a release of this spec.

    judge: whether to compare the spec with the ledger, as a run does under the release's lock; place: of the spec,
    where it is open. Raises InputError for a target that cannot be used (inside the source, unknown reader), Refused
    for another source or view than the ledger has of the release, QblockError where the ledger's database cannot be
    reached.
    """
    opening = _opening(spec, place or place_of(spec), wait, judge, rights=True)
    models = _models(spec)
    published = tuple(name for name, attribute in spec.attributes.items() if attribute.role != "identifying")
    search: steps.Step
    strategy: str = spec.search.strategy
    within = spec.search.within
    if within is not None:
        time = f"at most {within.total_seconds():g} s"
        strategy = time if spec.search.recoding == "multidimensional" else f"{strategy}, {time}"
    if spec.pinned is not None:
        search = steps.CheckNode(spec.pinned, models)
    elif (named := named_map(spec, opening.place)) is not None:
        search = steps.CheckMap(named.event.version or 0, models)
    elif spec.search.recoding == "multidimensional" and opening.current is not None and spec.versions.joint != "none":
        search = steps.CheckMap(opening.current, models)
    elif spec.search.recoding == "multidimensional":
        search = steps.SearchMap(strategy, within is None, spec.search.choose_from, spec.search.choose_by, models)
    else:
        search = steps.Search(strategy, spec.search.choose_from, spec.search.choose_by, models)
    engine = engine_of_source(spec)
    return opening.then(
        steps.ClearLeftovers(spec.release),
        *((steps.CheckReaders(spec.publish.readers),) if engine.facts.has_roles else ()),
        steps.Snapshot(engine.name, spec.source.table),
        steps.CheckDisclosure(spec.insensitives),
        search,
        steps.CheckEarlierVersions(opening.current, spec.versions.joint, spec.checked_together, force),
        steps.CopyVersion(opening.next_version, published),
        steps.Recheck(models),
        steps.Publish(opening.target.view, spec.publish.readers),
        steps.Retire(spec.versions.keep),
    )


@kept_sessions()
def plan_rollback(spec: Spec, version: int, *, wait: float = 0, judge: bool = True, place: Store | None = None) -> Plan:
    """The steps of a rollback to a version; raises what `plan` raises."""
    opening = _opening(spec, place or place_of(spec), wait, judge)
    return opening.then(
        steps.ClearLeftovers(spec.release),
        steps.CheckVersion(version, _models(spec)),
        steps.Republish(version, opening.target.view),
    )


@kept_sessions()
def plan_erase(
    spec: Spec,
    people: int | None,
    *,
    confirm: int | None = None,
    now: bool = False,
    wait: float = 0,
    judge: bool = True,
) -> Plan:
    """The steps by which people withdraw. people: how many are named, or None for those whom the source has no more,
    of whom there are `confirm`. Raises what `plan` raises."""
    # Withdrawing asks nothing of the target: what is wrong with it must not keep a withdrawal from being recorded.
    opening = _opening(spec, place_of(spec), wait, judge, checked=judge)
    column = spec.entity or ""
    find = steps.FindMissing(column, confirm) if people is None else steps.FindPeople(people, column)
    if not now:
        return opening.then(find, steps.SetApart(now))
    drop = steps.DropShowing(spec.versions.keep)
    return opening.then(
        find, steps.CountSharing(), steps.SetApart(now), steps.PublishWithout(opening.target.view), drop
    )


def _opening(spec: Spec, place: Store, wait: float, judge: bool, *, checked: bool = True, rights: bool = False) -> Plan:
    """The steps that every job begins with. checked: whether target and cohorts are; rights: whether those that are
    missing are looked for."""
    with place:
        target = target_of(spec, place)
        # What a move has not finished yet has its earlier name.
        notes = [] if not checked or move.pending(spec, place) else target.check()
        if checked:
            check_cohorts(spec)
        has_roles = engine_of_source(spec).facts.has_roles
        missing = (target.needs().missing if has_roles else ()) if rights else None
        stopping = any(right.stops for right in missing or ())
        try:
            revision, current, version = _ledger(spec, place)
        except QblockError as error:
            if not (stopping and denied(error)):
                raise
            revision, current, version = UNKNOWN, None, 1
        if judge and not stopping and revision in (None, schema.revisions()[-1]):
            identity = target.identity()
            check_identity(spec, place, identity)
            notes += roles.judge(spec, place, identity)
        first = (
            steps.Lock(spec.release, wait),
            steps.UpgradeLedger(revision, schema.revisions()[-1]),
            steps.CheckPrivateState(spec.release, spec.checked_together),
        )
        return Plan(spec, place, target, first, current, tuple(notes), version, rights=missing)


def _models(spec: Spec) -> tuple[str, ...]:
    return tuple(dict.fromkeys(requirement.model.name for requirement in spec.privacy))


def _ledger(spec: Spec, place: Store) -> tuple[str | None, int | None, int]:
    """Revision, current and next version. An older ledger is read after its upgrade, by the release itself."""
    if not place.exists:
        return None, None, 1
    with place.opened(read_only=True) as connection:
        revision = schema.known_revision(connection)
        if revision != schema.revisions()[-1]:
            return revision, None, 1
        reader = LedgerReader(connection)
        return revision, reader.pointer(spec.release), reader.next_version(spec.release)
