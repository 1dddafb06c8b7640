"""What every run of a job knows, whether it releases, rolls back, erases or retires: its place, and how far it got."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from contextlib import ExitStack

from qblock.joint.policies import joint_versions
from qblock.ledger.store import HeldLock, Store
from qblock.publish.targets import Identity, Target
from qblock.release.log import Reporter
from qblock.spec import Spec


class Job:
    """One run of a job on a release. id: as the ledger has it; lock_held: what is let go at its end; transaction: what
    is open in between; ledger_ready: failures can be recorded; identity_known: source and view are those of the
    release; state_known: ledger and versions know of each other; unchanged: nothing was to be done; published: readers
    see something else now."""

    identity: Identity
    lock: HeldLock

    def __init__(
        self,
        spec: Spec,
        place: Store,
        target: Target,
        notes: Sequence[str] = (),
        reporter: Reporter | None = None,
    ) -> None:
        self.spec, self.place, self.target = spec, place, target
        self.id = secrets.token_hex(8)
        self.reporter = (reporter or Reporter()).of_run(self.id, spec.release)
        self.notes = list(notes)
        self.joint = joint_versions(spec, place, self.id, self.notes)
        self.lock_held = ExitStack()
        self.transaction = ExitStack()
        self.ledger_ready = self.identity_known = self.state_known = self.unchanged = self.published = False
        self.started = time.monotonic()
