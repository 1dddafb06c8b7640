"""What a release is: one source and one view. The ledger knows both, and another one under the same name is refused.

The newest event that published or moved the release says which they are.
"""

from __future__ import annotations

from qblock.errors import Refused
from qblock.ledger.events import IDENTIFYING
from qblock.ledger.reader import LedgerReader
from qblock.ledger.store import Store
from qblock.publish.targets import Identity
from qblock.spec import Spec


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
            f"release {release} was moved, and is {successor} now; write `release: {successor}` in the spec, or give a "
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
        f"{identity.target}: one release has one source and one view, or readers of one would be shown the other; "
        "nothing was done. Give this spec a release name of its own, or move the release on purpose: qblock ledger "
        f"move SPEC --from {release}"
    )
