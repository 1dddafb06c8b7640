"""The versions of a release, and of what its readers may hold besides, checked together within a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from qblock.errors import Refused
from qblock.joint import withdrawals
from qblock.joint.admission import Admission, freeze
from qblock.joint.changed import Changed, check_changed
from qblock.joint.cohorts import cohort_size
from qblock.joint.crosswalk import Book, has_book, open_book, own_book, prepare
from qblock.joint.edits import moved_by_edits
from qblock.joint.episodes import VersionKey
from qblock.joint.explanation import explanation
from qblock.joint.gate import Verdict, check, unchanged
from qblock.joint.versions import Candidate, candidate, discard, least_rows, record, recorded
from qblock.ledger.events import PUBLISHING, Event
from qblock.ledger.place import Place
from qblock.ledger.reader import ledger_reader
from qblock.ledger.writer import ledger_transaction
from qblock.ledger.writer import record as record_event
from qblock.release import rekey, stamps, waiting
from qblock.release.recover import Running, published_versions
from qblock.search.task import Assessment
from qblock.search.utility.measure import Metrics
from qblock.search.utility.metrics import BY_NAME
from qblock.spec import Spec
from qblock.warehouse.protocol import Session

if TYPE_CHECKING:
    from qblock.release.run import Run


MOST_COARSER = 40
"""How many coarser nodes `on_refusal: coarsen` tries: each is a check over everybody."""
COARSENED = (
    "the node was coarsened until all versions passed together; that finer nodes failed is information about the "
    "sensitive values (versions.on_refusal: coarsen)"
)
PINNED = "the best node failed together with earlier versions: the published node was kept (versions.on_refusal: pin)"


class TogetherRefused(Refused):
    """A version passes alone and fails together with those before it."""


def applies(spec: Spec) -> bool:
    """Whether versions are checked together: the spec says who a row is about, and does not waive it."""
    return spec.entity is not None and spec.count == "rows" and spec.versions.joint != "none"


def check_spec(spec: Spec) -> None:
    """Raise InputError where newcomers are to wait and the spec does not say until when."""
    if applies(spec) and (spec.versions.on_refusal == "hold_back" or spec.versions.cohort is not None):
        cohort_size(spec)


def make_ready(run: Running) -> None:
    """Make the crosswalk where it is missing, before the snapshot, which would not see it otherwise."""
    if applies(run.spec):
        prepare(run.place)


def admission(run: Run) -> Admission | None:
    """Who is in the snapshot, and with which quasi-identifiers: those of the first publication; moves wait."""
    return Admission(run.spec, run.place, shown=tuple(run.published_digests)) if applies(run.spec) else None


def attempts(run: Run) -> Iterator[Assessment]:
    """The nodes to try, by `versions.on_refusal`: the chosen one, then the published one, or coarser ones."""
    yield run.chosen
    policy, outcome = run.spec.versions.on_refusal, run.found.outcome
    if policy == "pin" and run.current is not None and run.current.node not in (None, run.chosen.node):
        node = run.current.node
        if node is not None and node in run.task.lattice:
            assessment = run.task.assess(node)
            if assessment.satisfied:
                run.notes.append(PINNED)
                yield assessment
    if policy == "coarsen" and outcome is not None:
        metrics, by = Metrics(run.task), run.spec.search.choose_by
        sign = 1 if BY_NAME[by].better == "smaller" else -1
        others = [node for node in outcome.satisfying() if node != run.chosen.node]
        ranked = sorted(others, key=lambda node: (sign * metrics.rank(node, by), sum(node), node))
        for number, node in enumerate(ranked[:MOST_COARSER]):
            if not number:
                run.notes.append(COARSENED)
            yield run.task.assess(node)


def check_together(run: Run, chosen: Assessment) -> Verdict:
    """Check a node together with all that was ever shown, and record it in the crosswalk when it passes.

    Recorded before anything is staged, so that nothing is ever shown that is not in it. Raises Refused, saying how many
    cells fail and why, never whose.
    """
    release, shown = run.spec.release, set(run.published_digests)
    with open_book(run.place, run.task.source.session) as book:
        # What no reader was shown, and no ledger wrote down, may be evidence from before stamps (discard_unseen).
        kept = [version.key.version for version in recorded(book, release) if version.key.version not in shown]
        run.version = max([run.version, *(number + 1 for number in kept)])
        _check_audience(run, book)
        missing = shown - {version.key.version for version in recorded(book, release)}
        if missing:
            known = stamps.written(run.place, release)
            since = "" if min(missing) in known.shown and known.shown[min(missing)].stamp else ", or it was lost"
            raise Refused(
                f"version {min(missing)} of release {release} was published without a crosswalk (without `entity`, or "
                f"with `versions: {{joint: none}}`){since}, so no later version can be checked together with it; "
                "publish under another release name, or write `versions: {joint: none}`"
            )
        found = candidate(book, run.task, chosen, run.version)
        verdict = check(book, run.spec, run.kept.references, found)
        verdict, changed = check_changed(book, run.spec, run.kept.references, found, verdict)
        run.detail = run.detail | (changed.detail if changed else {})
        _report_edits(run, book, found)
        if not verdict.passed:
            again = waiting.start_over(run, book, verdict, found)
            if again is not None:
                raise again
            why = explanation(book, run.spec, run.task.source.hierarchies, least_rows(run.spec.privacy), found)
            raise TogetherRefused(refusal(run.spec, verdict, why.lines(), changed))
        run.begin(run.spec.versions.joint)
        record(book, found, run.stamp)
        waiting.passed(run, book, found)
        freeze(book, run.task.source, found)
    return verdict


def discard_unseen(run: Run) -> None:
    """Take out of the crosswalk what an earlier run recorded and never showed, by the word of the ledger that has
    written it down.

    Before the snapshot, and in a transaction of its own: the version that this run records may have the same number.
    """
    if not applies(run.spec):
        return
    release = run.spec.release
    known = stamps.written(run.place, release)
    with own_book(run.place) as book:
        for version in recorded(book, release):
            number = version.key.version
            if number not in run.published_digests and known.wrote(number, version.stamp):
                discard(book, version.key)


def _report_edits(run: Run, book: Book, found: Candidate) -> None:
    changed, people = moved_by_edits(book, run.spec, found)
    if changed:
        moved = (
            f"{people} people are shown under another label" if people else "nobody's label changes by it at this node"
        )
        note = f"the hierarchy of {', '.join(changed)} is not the one of the version before: {moved}"
        run.notes = [*(n for n in run.notes if n != note), note]


def _check_audience(run: Run, book: Book) -> None:
    """Refuse where a release that the same readers may hold has versions that no crosswalk knows."""
    known = {version.key for version in recorded(book)}
    with ledger_reader(run.place) as reader:
        for name in run.spec.versions.audience:
            events = [e for e in reader.history(name) if e.state in PUBLISHING and e.version is not None]
            without = [e.version for e in events if VersionKey(name, e.version or 0) not in known]
            lost = [v for v in without if v is not None and stamps.Written.of(reader, name).together(v)]
            if lost:
                raise Refused(
                    f"release {name}, which versions.audience names: "
                    f"{stamps.lacking(run.place, lost, there=True)}; nothing is published. Restore it from a backup"
                )
            if without:
                raise Refused(
                    f"version {without[0]} of release {name}, which versions.audience names, was published without a "
                    "crosswalk (without `entity`, or with `versions: {joint: none}`), so no version can be checked "
                    "together with it; nothing is published. Leave it out of the audience if no reader can hold both, "
                    "or write `versions: {joint: none}`"
                )


def settle_leaving(run: Running) -> None:
    """Record who has left with a version that is published, in the crosswalk and as an event of the ledger.

    Also what a change of the key that was killed still owes the ledger.
    """
    if not applies(run.spec):
        return
    with own_book(run.place) as book:
        anybody = withdrawals.anybody_leaving(book, run.spec.release)
        owed = rekey.owed(book, run.spec.release)
    if owed:
        rekey.settle(run.place, run.spec.release)
    if not anybody:
        return
    with ledger_reader(run.place) as reader:
        published = {e.version for e in reader.history(run.spec.release) if e.state in PUBLISHING and e.version}
    with own_book(run.place) as book:
        people = withdrawals.settle_leaving(book, run.spec, published)
    if people:
        record_erasure(run.place, run.spec.release, run.id, {"people": people})


def record_erasure(place: Place, release: str, run: str, people: Mapping[str, int]) -> None:
    """Write in the ledger that people have left, and that copies cannot be recalled."""
    event = Event(release=release, state="erased", run=run, detail=people, reason=withdrawals.NOT_RECALLED)
    with ledger_transaction(place) as connection:
        record_event(connection, event)


def check_withdrawn(run: Running) -> None:
    """Refuse where people have withdrawn, and the spec would have them shown again."""
    if applies(run.spec) or not has_book(run.place):
        return
    with own_book(run.place) as book:
        gone = len(withdrawals.withdrawn(book, run.spec.release))
    if gone:
        raise Refused(
            f"{gone} people have withdrawn from release {run.spec.release}, and without `entity`, or with `versions: "
            "{joint: none}` or `count: entities`, they would be shown again; nothing is published. Publish under "
            "another release name from a table that they are not in"
        )


def showing_withdrawn(run: Running) -> list[int]:
    """The versions still kept that show people who have left since, but for the one that readers see."""
    if not applies(run.spec):
        return []
    with own_book(run.place) as book:
        showing = withdrawals.showing_withdrawn(book, run.spec.release)
    if not showing:
        return []
    with ledger_reader(run.place) as reader:
        kept = published_versions(reader.history(run.spec.release))
        current = reader.pointer(run.spec.release)
    return [v for v in showing if v in kept and v != current]


def still_complete(run: Run, session: Session) -> bool:
    """Whether no other release of the audience recorded a version since the check, asked when publishing."""
    if run.together is None:
        return True
    with open_book(run.place, session) as book:
        return unchanged(book, run.spec, run.together)


def refusal(spec: Spec, verdict: Verdict, why: Sequence[str] = (), changed: Changed | None = None) -> str:
    """What a refused joint check says to the person who must act. changed: why rows count as linked, if they do."""
    models = ", ".join(f"{name} in {n} cells" for name, n in verdict.models)
    how = "with rows that can be linked" if verdict.mode == "linked" else "by people whose value did not change"
    because = f"{changed}. " if changed else ""
    more = f"To explain: {'; '.join(why)}. " if why else ""
    return (
        f"{verdict.versions} versions together tell more than each one alone ({how}): of {verdict.cells} joint cells "
        f"{verdict.failing} fail, with {verdict.rows} people in them ({models}). Joint cells are people who look the "
        f"same in every version ever published. {because}{more}Nothing is published; keep the published node "
        "(search.node), wait until newcomers and leavers come in larger groups, or write `versions: {on_refusal: ...}` "
        "with pin, coarsen or hold_back"
    )
