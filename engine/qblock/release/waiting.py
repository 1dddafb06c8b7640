"""Who waits and who leaves with a version: newcomers in cohorts, people who withdrew in batches, by sizes alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from qblock.errors import Refused
from qblock.joint.admission import Admission
from qblock.joint.cohorts import Newcomers, cohort_size, failing, keep_out, newcomers
from qblock.joint.crosswalk import Book, open_book, own_book
from qblock.joint.gate import Verdict
from qblock.joint.versions import Candidate, least_rows, published_node
from qblock.joint.withdrawals import Batch, batch, failed, left
from qblock.lattice import Node
from qblock.search.task import Assessment
from qblock.source import Admitted, SourceTable
from qblock.spec import Spec

if TYPE_CHECKING:
    from qblock.release.run import Run

STAY_OUT = (
    "{} cohorts of newcomers fail together with earlier versions, and stay out for good: topped up until they pass, "
    "they would tell their values"
)
STAY_IN = (
    "the batch of {} people who withdrew fails: its leavers or those who stay would tell their values; they stay in, "
    "and can leave with their whole joint cells (`qblock erase --now`)"
)
DOUBTED = "with the {} people who withdraw the versions fail together: tried again without them"
NOBODY = Batch((), 0, 0)
KEPT = "the published node was kept, as all versions must have one (versions.on_refusal: hold_back)"


@dataclass(frozen=True)
class Waiting:
    """newcomers: None where newcomers do not wait; leaving: whose withdrawal takes effect with this version;
    quarantined: rows whose values no hierarchy covers, of which none is let in when the source is opened again."""

    newcomers: Newcomers | None
    leaving: Batch
    quarantined: int


def counts(run: Run) -> dict[str, int]:
    """How many people wait, leave, or have moved since their first publication: for the private ledger alone."""
    source, waiting = run.task.source, run.waiting
    found = {"quarantined": waiting.quarantined if waiting else source.quarantined}
    if run.admission is not None:
        found["moves_waiting"] = run.admission.moves(source.session)
    if waiting is not None:
        found |= {"leaving": len(waiting.leaving.members), "leaving_waiting": waiting.leaving.waiting}
    if waiting is not None and waiting.newcomers is not None:
        found |= {"newcomers": len(waiting.newcomers.admitted), "newcomers_waiting": waiting.newcomers.waiting}
    return {name: n for name, n in found.items() if n}


class StartOver(Exception):
    """The check told that some people stay apart for good, or left a doubt whether a batch is to blame. settle writes
    down what must outlast the run, which begins again without them, in a new snapshot. Each time fewer are left to set
    apart or to doubt, so it ends."""

    def __init__(self, message: str, settle: Callable[[Book], None]) -> None:
        super().__init__(message)
        self.settle = settle


def spec_in_force(run: Run) -> Spec:
    """The spec, with the published node pinned where all versions keep it.

    Raises Refused where that node has other quasi-identifiers.
    """
    spec, current = run.spec, run.current
    if spec.versions.on_refusal != "hold_back" or spec.pinned is not None or current is None or current.node is None:
        return spec
    if current.quasi_identifiers != spec.quasi_identifiers:
        raise Refused(
            f"newcomers wait by the blocks of the published node, and version {current.version} of release "
            f"{spec.release} has other quasi-identifiers; pin a node in the spec (search.node), or publish under "
            "another release name"
        )
    run.inherited = current
    return replace(spec, search=replace(spec.search, node=current.node))


def entering(run: Run) -> Callable[[SourceTable], Admitted | None] | None:
    """The hook by which `open_task` opens the source again, without those who wait and those who leave."""
    if run.admission is None:
        return None

    def settled(source: SourceTable) -> Admitted | None:
        assert run.admission is not None
        spec = source.spec
        with open_book(run.place, source.session) as book:
            shown = published_node(book, run.spec)
            node = spec.pinned if spec.pinned is not None else shown
            if shown is None or node is None:
                return None
            _check(source, node)
            run.waiting = _waiting(book, source, run.admission, node, run.doubted is not None)
        if run.waiting is None:
            return None
        wait = run.waiting.newcomers
        run.admission = Admission(
            run.spec,
            run.place,
            admitted=None if wait is None else wait.admitted,
            leaving=run.waiting.leaving.members,
            shown=run.admission.shown,
        )
        return run.admission

    return settled


def _check(source: SourceTable, node: Node) -> None:
    if node not in source.frequency_sets.lattice and source.spec.pinned is None:
        raise Refused(
            f"the published node {list(node)} is not in the lattice any more: hierarchies have changed; pin a node in "
            "the spec (search.node)"
        )


def _waiting(book: Book, source: SourceTable, admission: Admission, node: Node, doubted: bool) -> Waiting | None:
    spec = source.spec
    if node not in source.frequency_sets.lattice:
        return None  # the search says so
    waits = newcomers(book, source, admission, node) if spec.versions.on_refusal == "hold_back" else None
    size = least_rows(spec.privacy) if spec.versions.cohort is None else cohort_size(spec)
    leaving = NOBODY if doubted else batch(book, source, node, max(2, size))
    if not leaving.members and (waits is None or not (waits.cohorts or waits.waiting)):
        return None
    return Waiting(waits, leaving, source.quarantined)


def start_over(run: Run, book: Book, verdict: Verdict, found: Candidate) -> StartOver | None:
    """Who is to be set apart after a check that failed; None where nobody can be, and the version is refused."""
    waiting, spec, version = run.waiting, run.spec, run.version
    if waiting is None:
        return None
    cohorts = waiting.newcomers.cohorts if waiting.newcomers else ()
    leaving = waiting.leaving
    bad, others = failing(book, spec, verdict, found, cohorts)
    # Whoever has left is in no row of the candidate: that their cell fails is told by the episode that ended.
    batch_failed = bool(others & set(leaving.members))
    if not bad and not batch_failed and not (others and leaving.members):
        return None
    said = [STAY_OUT.format(len(bad))] if bad else []
    said += [STAY_IN.format(len(leaving.members))] if batch_failed else []
    if not said:
        # Those who stay fail, for the batch or for another reason: without the batch it will show.
        run.doubted = leaving
        said = [DOUBTED.format(len(leaving.members))]

    def settle(own: Book) -> None:
        if bad:
            keep_out(own, spec, bad, version)
        if batch_failed:
            failed(own, spec, leaving, version)

    return StartOver("; ".join(said), settle)


def start_over_alone(run: Run, assessment: Assessment) -> StartOver | None:
    """Cohorts in blocks that fail by themselves at the node that is kept: they are to be set apart as well."""
    waits = run.waiting.newcomers if run.waiting else None
    keys = assessment.counts.keys[assessment.counts.failing]
    blocks = {tuple(key) for key in keys.tolist()}
    bad = [cohort for cohort in (waits.cohorts if waits else ()) if cohort.block in blocks]
    if not bad:
        return None
    return StartOver(STAY_OUT.format(len(bad)), lambda own: keep_out(own, run.spec, bad, run.version))


def passed(run: Run, book: Book, found: Candidate) -> None:
    """The version passed: those who leave are in no version from this one on."""
    left(book, run.spec, run.waiting.leaving if run.waiting else NOBODY, found)
    _condemn_doubted(run, book)


def unchanged(run: Run) -> None:
    """Readers see this already, which has passed."""
    if run.doubted is not None:
        with own_book(run.place) as book:
            _condemn_doubted(run, book)


def _condemn_doubted(run: Run, book: Book) -> None:
    """Without the batch that was doubted the versions pass together: so the batch is what failed."""
    if run.doubted is not None:
        failed(book, run.spec, run.doubted, run.version)
        run.notes.append(STAY_IN.format(len(run.doubted.members)))
