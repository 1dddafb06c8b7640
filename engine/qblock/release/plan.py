"""The plan of a release: a frozen list of steps. It reads the ledger and the target's names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qblock.ledger import migrate
from qblock.ledger.place import Place, place_of, translated
from qblock.ledger.reader import LedgerReader
from qblock.ledger.writer import opened
from qblock.publish.targets import Target, target_of
from qblock.release import move, roles, stamps, steps, together
from qblock.release.identity import check_identity, identity_of
from qblock.spec import Spec


@dataclass(frozen=True, eq=False)
class Plan:
    """What a release would do. current: the version that readers see now."""

    spec: Spec
    place: Place
    target: Target
    steps: tuple[steps.Step, ...]
    current: int | None
    notes: tuple[str, ...]

    @property
    def refused(self) -> list[str]:
        """Why a run would be refused as things are: private state that was lost or is older. Reads the ledger."""
        upgrade = next(step for step in self.steps if isinstance(step, steps.UpgradeLedger))
        if upgrade.found not in (None, upgrade.needed):
            return []
        joint = together.applies(self.spec)
        found = stamps.compare(self.spec, self.place, self.target, joint=joint).problems
        return [f"a run would be refused: {stamps.refusal(self.place, self.spec.release, found)}"] if found else []

    def to_json(self) -> dict[str, Any]:
        return {
            "release": self.spec.release,
            "view": self.target.view,
            "current_version": self.current,
            "notes": [*self.notes, *self.refused],
            "steps": [step.to_json() for step in self.steps],
        }


def plan(spec: Spec, *, force: bool = False, wait: float = 0, judge: bool = True) -> Plan:
    """The steps of a release of this spec.

    judge: whether to hold the spec against the ledger, as a run does under the release's lock. Raises InputError for a
    target that cannot be used (inside the source, unknown reader), Refused for another source or view than the ledger
    has of the release, QblockError where the ledger's database cannot be reached.
    """
    place = place_of(spec)
    target = target_of(spec, place)
    # What a move has not finished yet has the name of before.
    notes = [] if move.pending(place, spec.release) else target.check()
    together.check_spec(spec)
    revision, current, version = _ledger(spec, place)
    if judge and revision in (None, migrate.revisions()[-1]):
        identity = identity_of(spec, place, target)
        check_identity(spec, place, identity)
        notes += roles.judge(spec, place, identity)
    models = tuple(dict.fromkeys(requirement.model.name for requirement in spec.privacy))
    published = tuple(name for name, attribute in spec.attributes.items() if attribute.role != "identifying")
    search: steps.Step
    if spec.pinned is not None:
        search = steps.CheckNode(spec.pinned, models)
    else:
        search = steps.Search(spec.search.strategy, spec.search.choose_from, spec.search.choose_by, models)
    made: tuple[steps.Step, ...] = (
        steps.Lock(spec.release, wait),
        steps.UpgradeLedger(revision, migrate.revisions()[-1]),
        steps.CheckPrivateState(spec.release, together.applies(spec)),
        steps.ClearLeftovers(spec.release),
        *((steps.CheckReaders(spec.publish.readers),) if place.engine == "postgresql" else ()),
        steps.Snapshot(place.engine, spec.source.table),
        steps.CheckDisclosure(spec.insensitives),
        search,
        steps.CheckEarlierVersions(current, spec.versions.joint, together.applies(spec), force),
        steps.CopyVersion(version, published),
        steps.Recheck(models),
        steps.Publish(target.view, spec.publish.readers),
        steps.Retire(spec.versions.keep),
    )
    return Plan(spec, place, target, made, current, tuple(notes))


def _ledger(spec: Spec, place: Place) -> tuple[str | None, int | None, int]:
    """Revision, current and next version. An older ledger is read after its upgrade, by the release itself."""
    if place.file is not None and not place.file.exists():
        return None, None, 1
    with opened(place, read_only=True) as connection, translated(place):
        revision = migrate.known_revision(connection)
        if revision != migrate.revisions()[-1]:
            return revision, None, 1
        reader = LedgerReader(connection)
        return revision, reader.pointer(spec.release), reader.next_version(spec.release)
