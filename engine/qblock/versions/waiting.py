"""Who leaves with a version: people who withdrew, in batches that close by size alone; where versions do not lag."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qblock.errors import Refused
from qblock.lattice import Node
from qblock.source import SourceTable
from qblock.spec import Spec
from qblock.versions.crosswalk import Crosswalk
from qblock.versions.gate import Verdict, members_of
from qblock.versions.recorded import Candidate
from qblock.versions.withdrawals import Batch, batch, cohort_size, failed

STAY_IN = (
    "the batch of {} people who withdrew fails: it would reveal the values of its leavers or of those who stay; they "
    "stay in, and can leave with their whole joint cells (`qblock erase SPEC ENTITY... --now`)"
)
DOUBTED = "with the {} people who withdraw the versions fail together: tried again without them"
NOBODY = Batch((), 0, 0)


@dataclass(frozen=True)
class Waiting:
    """leaving: whose withdrawal takes effect with this version; quarantined: rows whose values no hierarchy covers, of
    which none is let in when the source is opened again."""

    leaving: Batch
    quarantined: int

    @property
    def counts(self) -> dict[str, int]:
        """How many people wait or leave: only for the private ledger."""
        return {"leaving": len(self.leaving.members), "leaving_waiting": self.leaving.waiting}


class StartOver(Exception):
    """The check found that some people stay apart for good, or left a doubt whether a batch is to blame. settle writes
    down what must outlast the run, which begins again without them, in a new snapshot. Each time fewer are left to set
    apart or to doubt, so it ends. doubted: the batch that is tried without."""

    def __init__(self, message: str, settle: Callable[[Crosswalk], None], doubted: Batch | None = None) -> None:
        super().__init__(message)
        self.settle = settle
        self.doubted = doubted


def waiting_at(crosswalk: Crosswalk, source: SourceTable, node: Node, doubted: bool) -> Waiting | None:
    """Who leaves at a node; None where nobody does. doubted: whether the batch is tried without.

    Raises Refused for a published node that is not in the lattice any more.
    """
    spec = source.spec
    if node not in source.lattice:
        if spec.pinned is not None:
            return None  # the search says so
        raise Refused(
            f"the published node {list(node)} is no longer in the lattice: hierarchies have changed; pin a node in "
            "the spec (search.node)"
        )
    leaving = NOBODY if doubted else batch(crosswalk, source, node, max(2, cohort_size(spec)))
    return Waiting(leaving, source.quarantined) if leaving.members else None


def start_over(
    crosswalk: Crosswalk, spec: Spec, waiting: Waiting, verdict: Verdict, candidate: Candidate, version: int
) -> StartOver | None:
    """Who is to be set apart after a check that failed; None where nobody can be, and the version is refused."""
    leaving = waiting.leaving
    if not leaving.members:
        return None
    query = members_of(crosswalk, spec, verdict, candidate)
    bad = set(crosswalk.own.fetch(query)["entity"].to_pylist())
    if not bad:
        return None
    # Whoever has left is in no row of the candidate: that their cell fails is told by the episode that ended.
    if bad & set(leaving.members):
        return StartOver(STAY_IN.format(len(leaving.members)), lambda own: failed(own, spec, leaving, version))
    # Those who stay fail, for the batch or for another reason: without the batch it will show.
    return StartOver(DOUBTED.format(len(leaving.members)), lambda own: None, leaving)
