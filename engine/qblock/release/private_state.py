"""Lost or older private state: what is published, the ledger and the crosswalk must know of each other.

Every version carries a stamp (ledger.stamps). One that the
ledger has not written down was made under another ledger: a folder that was lost, a backup that is older, a second job
with the same target. What readers were shown then is not known, and nothing may be built on it. A release is one source
and one view, too: the newest event that published or moved it says which, and another one under its name is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from qblock.errors import Refused
from qblock.ledger.events import IDENTIFYING, PUBLISHING
from qblock.ledger.reader import LedgerReader
from qblock.ledger.stamps import SHOWN, ObjectTag, Written
from qblock.ledger.store import OPEN_SECONDS, Store
from qblock.publish.targets import Identity, Target
from qblock.spec import Spec
from qblock.versions import integrity
from qblock.versions.crosswalk import Contents, contents, lacking, tables

TRIES = 4
"""How often it is read again while other runs go on."""


@dataclass(frozen=True)
class Comparison:
    """What was compared. problems: what is there and not known, or the other way round, one sentence each; seen: the
    version that readers see; newest: the one that the ledger has shown last; marked: whether marks of large tables of
    the crosswalk were compared in the place of digests."""

    problems: list[str]
    seen: int | None
    newest: int | None
    marked: bool = False


def compare(
    spec: Spec,
    store: Store,
    target: Target,
    *,
    joint: bool,
    seconds: float = 0,
    quick: bool = True,
    marked: bool = False,
) -> Comparison:
    """Compare what is published and kept, and the crosswalk, with the ledger. Reads only.

    joint: whether the versions are checked together, so that the crosswalk must hold what the ledger has shown;
    seconds: to wait for another process that has the crosswalk open, under the release's lock; 0 without it, to leave
    the crosswalk out then; quick: as of `integrity.all_parts`; marked: whether marks do for a run that decides nothing.
    """
    comparison, head = _compared(spec, store, target, joint, seconds, quick, marked)
    if marked and comparison.problems:
        comparison, head = _compared(spec, store, target, joint, seconds, quick)
    # Without the lock, a run may have continued between two reads.
    for _ in range(TRIES if comparison.problems and not seconds else 0):
        before, (comparison, head) = head, _compared(spec, store, target, joint, seconds, quick)
        if not comparison.problems or head == before:
            break
    return comparison


def _compared(
    spec: Spec, store: Store, target: Target, joint: bool, seconds: float, quick: bool, marked: bool = False
) -> tuple[Comparison, str | None]:
    """With the head of the ledger, as it was read last."""
    # The ledger last: whatever another run shows meanwhile is in it before it is in its place.
    tags = target.tags()
    crosswalk = contents(store, spec.release, seconds, quick=quick, marked=marked) if joint else None
    with store.read() as reader:
        known, head = Written.of(reader, spec.release), reader.head(spec.release)
    if crosswalk is not None and crosswalk.marked and known.parts.before is not None:
        # Which of two states is there, a digest tells.
        crosswalk = contents(store, spec.release, seconds, quick=quick)
    problems = []
    # A table of PostgreSQL is made in the transaction of its event, a file of DuckDB before it.
    staged = store.atomic
    unknown = {tag for tag in tags if not _knows(known, target, tag, staged)}
    for tag in sorted(unknown, key=lambda tag: (not tag.shown, -tag.version))[:SHOWN]:
        where, verb = (target.view, "shows") if tag.shown else (store.named, "keeps")
        problems.append(f"{where} {verb} version {tag.version} of release {spec.release}, {known.why(tag.version)}")
    problems += known.problems
    if crosswalk is not None:
        problems += _crosswalk_problems(known, crosswalk, store)
        if seconds and not problems:
            integrity.settle(store, spec.release, crosswalk.parts)
        for name in sorted({*spec.versions.audience, *crosswalk.beside}):
            problems += _problems_beside(store, name, seconds, quick)
    if known.left:
        problems += _left_problems(known, crosswalk or contents(store, spec.release, seconds))
    # A file itself shows what readers see; for tables the pointer row does.
    seen = next((tag.version for tag in tags if tag.shown), known.pointer if store.atomic else None)
    landing = any(event.state == "checked" and event.version == seen for event in known.events[-1:])
    newest = next(reversed(known.shown), None)
    is_marked = crosswalk is not None and crosswalk.marked
    return Comparison(problems, seen, seen if landing else newest, is_marked), head


def _problems_beside(store: Store, name: str, seconds: float, quick: bool) -> list[str]:
    """What is wrong with the crosswalk of a release that the same readers may hold: its people are checked, too."""
    for _ in range(TRIES):
        with store.read() as reader:
            before = reader.head(name)
        crosswalk = contents(store, name, seconds, quick=quick)
        with store.read() as reader:
            head, kept = reader.head(name), reader.kept_parts(name)
        if crosswalk is None or not crosswalk.there:
            break
        # Its lock is not ours: between two reads a run of it may have gone on.
        if head == before:
            return [f"of release {name}, {problem}" for problem in integrity.problems(kept, crosswalk.parts)]
    return []


def _knows(known: Written, target: Target, tag: ObjectTag, staged: bool) -> bool:
    if not tag.shown and tag.version != known.pointer:
        return known.wrote(tag.version, tag.stamp, staged=staged)
    if tag.stamp is None:
        return False
    events = [event for event in known.events if event.version == tag.version]
    if any(event.stamp == tag.stamp for event in events if event.state in PUBLISHING):
        return True
    # A run that was killed between the renaming and its record; the next one records it.
    last = events[-1] if events else None
    checked = last is not None and last.state == "checked" and last.stamp == tag.stamp
    return checked and target.is_live(tag.version)


def _crosswalk_problems(known: Written, crosswalk: Contents, store: Store) -> list[str]:
    shown, problems = known.shown, []
    for version, stamp in sorted(crosswalk.versions.items(), reverse=True):
        if version in shown:
            if stamp != shown[version].stamp:
                problems.append(f"the crosswalk holds another version {version} than the ledger has shown")
        elif not known.wrote(version, stamp):
            problems.append(f"the crosswalk holds version {version}, {known.why(version)}")
    missing = known.missing(crosswalk.versions)
    if missing:
        problems.append(lacking(store, missing, there=crosswalk.there))
    if not problems and crosswalk.there:
        parts = crosswalk.parts
        if crosswalk.marked:
            newest = max(crosswalk.versions, default=None)
            parts = integrity.with_marked(known.parts, parts, tables(store.engine), newest)
        problems = integrity.problems(known.parts, parts)
    return problems[:SHOWN]


def check_crosswalk(store: Store, only: str | None = None) -> None:
    """Raise Refused where the crosswalk of a place lacks what the ledger has shown of any release, or of one.

    A release whose newest version waived the joint check does without it.
    """
    problems = []
    with store.read() as reader:
        releases = {
            release: Written.of(reader, release) for release in reader.releases() if not reader.successor(release)
        }
    for release, known in releases.items():
        newest = next(reversed(known.shown.values()), None)
        if only not in (None, release) or newest is None or newest.joint == "none":
            continue
        crosswalk = contents(store, release, OPEN_SECONDS)
        if crosswalk is None:
            continue
        missing = known.missing(crosswalk.versions)
        wrong = [lacking(store, missing, there=crosswalk.there)] if missing else []
        wrong = wrong or integrity.problems(known.parts, crosswalk.parts)
        problems += [f"release {release}: {problem}" for problem in wrong]
        if not wrong:
            integrity.settle(store, release, crosswalk.parts)
    if problems:
        raise Refused(
            f"the crosswalk is missing, older than what was shown, or was altered: {'; '.join(problems[:SHOWN])}. "
            f"Nothing was changed. Restore {store.named} (ledger, crosswalk and versions, complete and from one time) "
            "from the backup that belongs to the published version"
        )


def _left_problems(known: Written, crosswalk: Contents | None) -> list[str]:
    if crosswalk is None or crosswalk.out >= known.left:
        return []
    return [
        f"the ledger says that {known.left} people have left, and the crosswalk, which says who, knows "
        f"{crosswalk.out}: they would be shown again"
    ]


def refusal(store: Store, release: str, problems: list[str]) -> str:
    """The refusal for the person who must act."""
    other = store.another_target
    back = "ledger, crosswalk and versions, complete and from one time"
    return (
        f"private state of release {release} is missing or older than what was shown, was altered, or another job "
        f"publishes there: {'; '.join(problems)}. Nothing is published, since nothing could be checked against what "
        f"readers hold. Restore {store.named} ({back}) from the backup that belongs to the published version, or give "
        "this job a release name and a target of its own. If it is lost for good, no later version can be protected "
        "together with the earlier ones. If only the crosswalk is lost, write `versions: {joint: none}`. Else take "
        f"the view away (qblock retire) and publish under another release name {other}, with `versions: {{joint: "
        "none}`"
    )


def check(spec: Spec, store: Store, target: Target, *, joint: bool, marked: bool = False) -> Comparison:
    """What was compared, under the release's lock; marked: as of `compare`. Raises Refused where the ledger does not
    know what is there."""
    comparison = compare(spec, store, target, joint=joint, seconds=OPEN_SECONDS, marked=marked)
    if comparison.problems:
        raise Refused(refusal(store, spec.release, comparison.problems))
    return comparison


def notes(release: str, comparison: Comparison) -> list[str]:
    """Notes for the person who runs the job."""
    if comparison.seen in (None, comparison.newest):
        return []
    return [
        f"readers see version {comparison.seen} of release {release} again, though the ledger has shown version "
        f"{comparison.newest} since. The published copy is an older one; the ledger knows both, so it is safe to "
        "continue from there",
    ]


def check_identity(spec: Spec, store: Store, identity: Identity) -> None:
    """Raise Refused where the release is published from another source, as another view, or under another name now."""
    with store.read() as reader:
        problem = difference(reader, spec, identity)
    if problem is not None:
        raise Refused(problem)


def difference(reader: LedgerReader, spec: Spec, identity: Identity) -> str | None:
    """Why this is not the release that the ledger has under that name, or None."""
    release = spec.release
    successor = reader.successor(release)
    if successor is not None:
        return (
            f"release {release} was moved, and is {successor} now. Write `release: {successor}` in the spec, or give a "
            "new release a name that no release has had"
        )
    last = reader.last_event(release, *IDENTIFYING)
    if last is None:
        return None
    # Of a source that is not there its own check suggests similar names.
    source = identity.source is not None and (last.source, last.source_database) != (identity.source, identity.database)
    if not source and last.target == identity.target:
        return None
    other = " of another database" if source and last.source == identity.source else ""
    was = f"{last.source}{other} as {last.target}"
    return (
        f"release {release} is published from {was}, and this spec would publish it from {identity.source} as "
        f"{identity.target}; nothing was done. One release has one source and one view, or readers of one would be "
        "shown the other. Give this spec a release name of its own, or move the release on purpose: qblock ledger "
        f"move SPEC --from {release}"
    )
