"""Who waits and who leaves with a version: newcomers in cohorts, people who withdrew in batches, by sizes alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qblock.errors import Refused
from qblock.joint.admission import Admission
from qblock.joint.cohorts import Cohort, Newcomers, cohort_size, failing, keep_out, newcomers
from qblock.joint.crosswalk import Book
from qblock.joint.gate import Verdict
from qblock.joint.versions import Candidate, least_rows
from qblock.joint.withdrawals import Batch, batch, failed
from qblock.lattice import Node
from qblock.search.task import Assessment
from qblock.source import SourceTable
from qblock.spec import Spec

STAY_OUT = (
    "{} cohorts of newcomers fail together with earlier versions, and stay out for good: topping them up "
    "until they pass would reveal their values"
)
STAY_IN = (
    "the batch of {} people who withdrew fails: it would reveal the values of its leavers or of those who stay; they "
    "stay in, and can leave with their whole joint cells (`qblock erase --now`)"
)
DOUBTED = "with the {} people who withdraw the versions fail together: tried again without them"
NOBODY = Batch((), 0, 0)


@dataclass(frozen=True)
class Waiting:
    """newcomers: None where newcomers do not wait; leaving: whose withdrawal takes effect with this version;
    quarantined: rows whose values no hierarchy covers, of which none is let in when the source is opened again."""

    newcomers: Newcomers | None
    leaving: Batch
    quarantined: int

    @property
    def cohorts(self) -> Sequence[Cohort]:
        return self.newcomers.cohorts if self.newcomers else ()

    @property
    def counts(self) -> dict[str, int]:
        """How many people wait or leave: only for the private ledger."""
        found = {"leaving": len(self.leaving.members), "leaving_waiting": self.leaving.waiting}
        if self.newcomers is not None:
            found |= {"newcomers": len(self.newcomers.admitted), "newcomers_waiting": self.newcomers.waiting}
        return found


class StartOver(Exception):
    """The check found that some people stay apart for good, or left a doubt whether a batch is to blame. settle writes
    down what must outlast the run, which begins again without them, in a new snapshot. Each time fewer are left to set
    apart or to doubt, so it ends. doubted: the batch that is tried without."""

    def __init__(self, message: str, settle: Callable[[Book], None], doubted: Batch | None = None) -> None:
        super().__init__(message)
        self.settle = settle
        self.doubted = doubted


def waiting_at(book: Book, source: SourceTable, admission: Admission, node: Node, doubted: bool) -> Waiting | None:
    """Who waits and who leaves at a node; None where nobody does. doubted: whether the batch is tried without.

    Raises Refused for a published node that is not in the lattice any more.
    """
    spec = source.spec
    if node not in source.frequency_sets.lattice:
        if spec.pinned is not None:
            return None  # the search says so
        raise Refused(
            f"the published node {list(node)} is no longer in the lattice: hierarchies have changed; pin a node in "
            "the spec (search.node)"
        )
    waits = newcomers(book, source, admission, node) if spec.versions.on_refusal == "hold_back" else None
    size = least_rows(spec.privacy) if spec.versions.cohort is None else cohort_size(spec)
    leaving = NOBODY if doubted else batch(book, source, node, max(2, size))
    if not leaving.members and (waits is None or not (waits.cohorts or waits.waiting)):
        return None
    return Waiting(waits, leaving, source.quarantined)


def start_over(
    book: Book, spec: Spec, waiting: Waiting, verdict: Verdict, found: Candidate, version: int
) -> StartOver | None:
    """Who is to be set apart after a check that failed; None where nobody can be, and the version is refused."""
    leaving = waiting.leaving
    bad, others = failing(book, spec, verdict, found, waiting.cohorts)
    # Whoever has left is in no row of the candidate: that their cell fails is told by the episode that ended.
    batch_failed = bool(others & set(leaving.members))
    if not bad and not batch_failed and not (others and leaving.members):
        return None
    said = [STAY_OUT.format(len(bad))] if bad else []
    said += [STAY_IN.format(len(leaving.members))] if batch_failed else []
    # Those who stay fail, for the batch or for another reason: without the batch it will show.
    doubted = None if said else leaving
    said = said or [DOUBTED.format(len(leaving.members))]

    def settle(own: Book) -> None:
        if bad:
            keep_out(own, spec, bad, version)
        if batch_failed:
            failed(own, spec, leaving, version)

    return StartOver("; ".join(said), settle, doubted)


def start_over_alone(spec: Spec, waiting: Waiting, assessment: Assessment, version: int) -> StartOver | None:
    """Cohorts in blocks that fail by themselves at the node that is kept: they are to be set apart as well."""
    keys = assessment.counts.keys[assessment.counts.failing]
    blocks = {tuple(key) for key in keys.tolist()}
    bad = [cohort for cohort in waiting.cohorts if cohort.block in blocks]
    if not bad:
        return None
    return StartOver(STAY_OUT.format(len(bad)), lambda own: keep_out(own, spec, bad, version))
