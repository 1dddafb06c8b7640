"""What is done about earlier versions in every run whose versions are checked together, whichever its policy is.

Functions that a job calls itself do nothing for a release whose versions are not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import sqlalchemy as sa

from qblock.engines.session import Session
from qblock.errors import Refused
from qblock.lattice import Node
from qblock.ledger.chain import record as record_event
from qblock.ledger.events import PUBLISHING, Event
from qblock.ledger.stamps import Written, written
from qblock.ledger.store import Store
from qblock.search.assessment import Assessment
from qblock.search.task import Task
from qblock.source import SourceTable
from qblock.spec import Spec
from qblock.versions import withdrawals
from qblock.versions.admission import Admission, ShownState, freeze
from qblock.versions.conversion import owed, settle_keys
from qblock.versions.crosswalk import LEAVING, Crosswalk, lacking, open_crosswalk
from qblock.versions.crosswalk import prepare as make_crosswalk
from qblock.versions.episodes import VersionKey
from qblock.versions.explanation import moved_by_edits
from qblock.versions.gate import Verdict, check_models, members, unchanged
from qblock.versions.people import entities_apart
from qblock.versions.recorded import ONLY_UNPROTECTED, Candidate, candidate, discard, published_node, record, recorded
from qblock.versions.withdrawals import NOBODY, Batch, batch, cohort_size, left

WAITS = {
    "newcomers_waiting": "newcomers",
    "leavers_waiting": "leavers",
    "changes_waiting": "changes",
    "moves_waiting": "moves",
    "leaving_waiting": "withdrawals",
    "quarantined": "uncovered",
    "present_out": "out",
}
"""What a result calls those who wait, by their names in the ledger."""

Reopen = Callable[[Admission | ShownState], SourceTable]
"""Opens the source of a run by another hook."""


class TogetherRefused(Refused):
    """A version passes alone and fails together with those before it."""


@dataclass(frozen=True)
class Restart:
    """What a run begins again with, in a new snapshot: a check found that some people stay apart for good, or left a
    doubt whether a batch is to blame.

    message: for whoever runs the job; settle: writes down what must outlast the run; doubted: the batch that is tried
    without. Each time fewer are left to set apart or to doubt, so it ends.
    """

    message: str
    settle: Callable[[Crosswalk], None]
    doubted: Batch | None = None

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class AdmittedSource:
    """A source as an Admission lets it in. leaving: whose withdrawal takes effect with the version that is made;
    detail: how many wait, leave or have moved, for the private ledger."""

    source: SourceTable
    admission: Admission
    leaving: Batch
    detail: dict[str, int]


def waits(detail: Mapping[str, int]) -> dict[str, int]:
    """How many the version that readers see does not show as the source has them, by why (WAITS)."""
    return {word: detail[name] for name, word in WAITS.items() if name in detail}


def prepare(spec: Spec, store: Store) -> None:
    """Make the crosswalk where it is missing, before the snapshot, which would not see it otherwise."""
    if spec.checked_together:
        make_crosswalk(store)


def settle(spec: Spec, store: Store, run: str) -> None:
    """Record who has left with a version that is published, in the crosswalk and as an event of the ledger; and what a
    change of the key that was killed left out."""
    if not spec.checked_together:
        return
    release = spec.release
    with open_crosswalk(store) as crosswalk:
        anybody = entities_apart(crosswalk, release, [LEAVING])
        owing = owed(crosswalk, release)
    if owing:
        settle_keys(store, release)
    if not anybody:
        return
    with store.read() as reader:
        published = {e.version for e in reader.history(release) if e.state in PUBLISHING and e.version}
    with open_crosswalk(store) as crosswalk:
        people = withdrawals.settle_leaving(crosswalk, spec, published)
    if people:
        record_erasure(store, release, run, {"people": people})


def record_erasure(store: Store, release: str, run: str, people: Mapping[str, int]) -> None:
    """Write in the ledger that people have left, and that copies cannot be recalled."""
    event = Event(release=release, state="erased", run=run, detail=people, reason=withdrawals.NOT_RECALLED)
    with store.write() as connection:
        record_event(connection, event)


def discard_unseen(spec: Spec, store: Store, shown: Collection[int]) -> None:
    """Take out of the crosswalk what the ledger says that an earlier run recorded, and no reader ever saw."""
    if not spec.checked_together:
        return
    with open_crosswalk(store) as crosswalk:
        unseen = [version for version in recorded(crosswalk, spec.release) if version.key.version not in shown]
    if not unseen:
        return
    # Before the snapshot, and in a transaction of its own: the version that this run records may have the same number.
    known = written(store, spec.release)
    with open_crosswalk(store) as crosswalk:
        for version in unseen:
            if known.wrote(version.key.version, version.stamp):
                discard(crosswalk, version.key)


def check_known(spec: Spec, store: Store, shown: Collection[int]) -> None:
    """Raise Refused where the crosswalk lacks a version that readers may hold, before anything of the source is read.

    shown: the versions that readers saw.
    """
    with open_crosswalk(store) as crosswalk:
        known = {version.key for version in recorded(crosswalk)}
        _check_audience(crosswalk, known, spec, store)
        _check_recorded(known, spec, store, shown)


def _check_cohorts(crosswalk: Crosswalk, spec: Spec) -> None:
    if not spec.versions.audience:
        return
    t = crosswalk.tables.cohort
    query = sa.select(t.c.release).where(t.c.release.in_(spec.versions.audience)).order_by(t.c.release)
    for name in crosswalk.column(query.distinct()):
        raise Refused(
            f"release {name}, which versions.audience names, shows newcomers in cohorts: boxes of two releases that "
            "cross may give values away; nothing is published. Leave it out of the audience if no reader can hold "
            "both, or write `versions: {joint: none}`"
        )


def _check_audience(crosswalk: Crosswalk, known: Collection[VersionKey], spec: Spec, store: Store) -> None:
    """Raise Refused where a release that the same readers may hold shows newcomers in boxes of their own, or has
    versions that no crosswalk knows."""
    _check_cohorts(crosswalk, spec)
    with store.read() as reader:
        for name in spec.versions.audience:
            events = [e for e in reader.history(name) if e.state in PUBLISHING and e.version is not None]
            without = [e.version for e in events if VersionKey(name, e.version or 0) not in known]
            lost = [v for v in without if v is not None and Written.of(reader, name).together(v)]
            if lost:
                raise Refused(
                    f"release {name}, which versions.audience names: {lacking(store, lost, there=True)}; nothing is "
                    "published. Restore it from a backup"
                )
            if without:
                raise Refused(
                    f"version {without[0]} of release {name}, which versions.audience names, has no crosswalk, so no "
                    "version can be checked together with it; nothing is published. It was published without "
                    "`entity`, or with `versions: {joint: none}`. Leave the release out of the audience if no "
                    "reader can hold both, or write `versions: {joint: none}`"
                )


def _check_recorded(known: Collection[VersionKey], spec: Spec, store: Store, shown: Collection[int]) -> None:
    missing = set(shown) - {key.version for key in known if key.release == spec.release}
    if not missing:
        return
    first, stamps = min(missing), written(store, spec.release)
    since = "" if first in stamps.shown and stamps.shown[first].stamp else ", or the crosswalk was lost"
    raise Refused(
        f"version {first} of release {spec.release} has no crosswalk, so no later version can be checked together with "
        f"it; nothing is published. It was published without `entity`, or with `versions: {{joint: none}}`{since}. "
        f"{ONLY_UNPROTECTED}"
    )


def check_comparable(spec: Spec, store: Store) -> None:
    """Raise what `gate.check` would for a spec that cannot be compared with what the crosswalk has."""
    if not spec.checked_together:
        return
    with open_crosswalk(store) as crosswalk:
        if members(spec, recorded(crosswalk)):
            check_models(spec)


def admit(
    store: Store, source: SourceTable, admission: Admission, reopen: Reopen, *, doubted: bool = False
) -> AdmittedSource:
    """Let the source in without whoever leaves with the next version. doubted: whether those stay who would leave."""
    spec, leaving, quarantined = source.spec, NOBODY, source.quarantined
    with open_crosswalk(store, source.session) as crosswalk:
        shown = published_node(crosswalk, spec)
        node = spec.pinned if spec.pinned is not None else shown
        if shown is not None and node is not None:
            leaving = leaving_at(crosswalk, source, node, doubted=doubted)
    if leaving.members:
        admission = replace(admission, leaving=leaving.members)
        source = reopen(admission)
    figures = {"quarantined": quarantined, "moves_waiting": admission.moves(source.session)}
    if leaving.members:
        figures |= {"leaving": len(leaving.members), "leaving_waiting": leaving.waiting}
    return AdmittedSource(source, admission, leaving, {name: n for name, n in figures.items() if n})


def leaving_at(crosswalk: Crosswalk, source: SourceTable, node: Node, *, doubted: bool) -> Batch:
    """Who leaves at a node: people who withdrew, in batches that close by size alone.

    Raises Refused for a published node that is not in the lattice any more.
    """
    if node in source.lattice:
        return NOBODY if doubted else batch(crosswalk, source, node, max(2, cohort_size(source.spec)))
    if source.spec.pinned is not None:
        return NOBODY  # the search says so
    raise Refused(
        f"the published node {list(node)} is no longer in the lattice: hierarchies have changed; pin a node in "
        "the spec (search.node)"
    )


def propose(
    crosswalk: Crosswalk, store: Store, task: Task, chosen: Assessment, version: int, shown: Collection[int]
) -> Candidate:
    """What a node would publish, once it is known that all that readers may hold can be compared with it."""
    spec, known = task.spec, {earlier.key for earlier in recorded(crosswalk)}
    # A dry run has not discarded what no reader was shown (`discard_unseen`).
    unseen = [key.version for key in known if key.release == spec.release and key.version not in shown]
    _check_audience(crosswalk, known, spec, store)
    _check_recorded(known, spec, store, shown)
    return candidate(crosswalk, task, chosen, max([version, *(number + 1 for number in unseen)]))


def note_edits(crosswalk: Crosswalk, spec: Spec, proposed: Candidate, notes: list[str]) -> None:
    """Say, once in a run, which hierarchies were edited."""
    changed, people = moved_by_edits(crosswalk, spec, proposed)
    if changed:
        moved = f"{people} people are shown under another label" if people else "it changes nobody's label at this node"
        note = f"the hierarchy of {', '.join(changed)} is not that of the previous version: {moved}"
        notes[:] = [*(n for n in notes if n != note), note]


def record_passed(
    crosswalk: Crosswalk, source: SourceTable, proposed: Candidate, leaving: Batch, reserve: Callable[[int], str]
) -> None:
    """Record a version that passed: those who leave are in no version from this one on."""
    spec = source.spec
    record(crosswalk, proposed, reserve(proposed.about.key.version))
    left(crosswalk, spec, leaving, proposed)
    if not spec.bundles:
        freeze(crosswalk, source, proposed)


def still_complete(spec: Spec, store: Store, session: Session, verdict: Verdict | None) -> bool:
    """Whether no other release of the audience recorded a version since the check, asked when publishing.

    verdict: of that check; None where nothing was checked.
    """
    if verdict is None:
        return True
    with open_crosswalk(store, session) as crosswalk:
        return unchanged(crosswalk, spec, verdict)


def showing_withdrawn(spec: Spec, store: Store) -> list[int]:
    """The versions still kept that show people who have left since, except the one that readers see."""
    if not spec.checked_together:
        return []
    with open_crosswalk(store) as crosswalk:
        showing = withdrawals.showing_withdrawn(crosswalk, spec.release)
    if not showing:
        return []
    with store.read() as reader:
        kept = reader.kept_versions(spec.release)
        current = reader.pointer(spec.release)
    return [version for version in showing if version in kept and version != current]
