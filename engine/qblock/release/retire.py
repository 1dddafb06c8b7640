"""Taking a release away from its readers at once. All evidence stays: what was readable counts as readable for good."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import sqlalchemy as sa

from qblock.effects import current_effects
from qblock.engines.kept_sessions import kept_sessions
from qblock.errors import Refused
from qblock.ledger.chain import record, set_pointer
from qblock.ledger.events import Event, State
from qblock.ledger.store import OPEN_SECONDS
from qblock.ledger.stores import store_of
from qblock.release import private_state
from qblock.release.job import Job, opening
from qblock.release.log import Reporter
from qblock.results.release import Ended
from qblock.spec import Spec

RETIRED = "the release was retired: its view was taken away, and its versions and the ledger were kept"


def _recorder(job: Job, version: int | None) -> Callable[[sa.Connection, State], None]:
    """Records in the ledger that nothing is shown any more."""

    def write(connection: sa.Connection, state: State) -> None:
        event = Event(
            release=job.spec.release,
            state=state,
            run=job.id,
            version=version,
            view=job.target.view,
            target=job.identity.target,
            reason=RETIRED,
        )
        record(connection, event)
        set_pointer(connection, job.spec.release, None)

    return write


@kept_sessions()
def retire(spec: Spec, *, wait: float = 0, reporter: Reporter | None = None) -> Ended:
    """Take the view away: PostgreSQL readers get no row and lose their grants, a DuckDB release file is removed.

    The ledger says so first, so that a run that is stopped in between is finished by the next one. `release` and
    `rollback` refuse from then on (`release --force` publishes it again). A version that was shown under a ledger now
    lost is taken away too; nothing else is cleared then, since it is not known what belongs to whom. Raises Refused for
    a release that shows nothing, or is not the one that the ledger has under this name, and what `opening` raises.
    """
    planned = opening(spec, store_of(spec), wait, judge=False)
    job = Job(planned, reporter)
    with planned.store.lock(spec.release, wait):
        planned.store.upgrade()
        job.settle_identity()
        comparison = private_state.compare(
            spec, planned.store, planned.target, joint=spec.checked_together, seconds=OPEN_SECONDS
        )
        notes = [f"{UNKNOWN}: {'; '.join(comparison.problems)}"] if comparison.problems else []
        for note in notes:
            job.reporter.report(note)
        if not notes:
            job.settle_unfinished()
        with planned.store.read() as reader:
            current, before = reader.pointer(spec.release), reader.retired_by(spec.release)
        if before is not None and (current is not None or (planned.store.atomic and planned.target.shows())):
            before = None  # what was published since is missing in the ledger
        if before is not None:
            planned.target.unpublish()
        elif current is None and not planned.target.shows():
            raise Refused(f"release {spec.release} shows nothing: no version of it is published")
        else:
            with current_effects().committing("the release was retired", partial(_retired, job)):
                planned.target.close(_recorder(job, current))
        with planned.store.read() as reader:
            head = reader.head(spec.release)
    version = before.version if before is not None else current
    return Ended(
        status="unchanged" if before else "retired",
        release=spec.release,
        version=version,
        view=planned.target.view,
        ledger_head=head,
        notes=(*notes, KEPT),
    )


UNKNOWN = "leftovers of earlier runs were not cleared, since ledger and versions do not know of each other"
KEPT = (
    "copies that readers have made cannot be recalled, so later checks count every version as readable. `qblock "
    "release SPEC --force` publishes the release again"
)


def _retired(job: Job) -> str | None:
    """What is reported about a release that was to be retired, however that ended."""
    with job.store.read() as reader:
        if reader.retired_by(job.spec.release) is None:
            return None
    if any(tag.shown for tag in job.target.tags()):
        return "the ledger says that the release was retired, but its file is still there: run it once more"
    return "the release was retired"
