"""What a spec and a source must still have, once a state is kept: the columns and the node that all versions show."""

from __future__ import annotations

from qblock.errors import Refused
from qblock.joint.lag.memory import Kept, Layout
from qblock.joint.versions import UNPROTECTED
from qblock.source import SourceTable
from qblock.spec import Spec

OTHER_COLUMNS = (
    "version {first} of release {release} was made with other columns ({before}) than the spec has now ({now}), and "
    "those whom the source has no more are shown as they were; nothing is published. Write the columns as they were, "
    "or {unprotected}"
)


def check_layout(spec: Spec, kept: Kept) -> None:
    """Raise Refused where a spec has other columns than the versions, or pins another node."""
    now = Layout.of(spec)
    if kept.layout != now:
        before, names = (", ".join((*layout.quasi, *layout.valued)) for layout in (kept.layout, now))
        raise Refused(
            OTHER_COLUMNS.format(
                first=kept.first, release=spec.release, before=before, now=names, unprotected=UNPROTECTED
            )
        )
    pinned = spec.pinned
    if pinned is not None and pinned != kept.node:
        raise Refused(
            f"{spec.at('search', 'node')}: all versions must have one node, and version {kept.first} of "
            f"release {spec.release} has {list(kept.node)}; nothing is published. Pin that one, "
            f"or write {UNPROTECTED}"
        )


def check_node(kept: Kept, source: SourceTable) -> None:
    """Raise Refused where the hierarchies have no longer the node of the versions."""
    if kept.node not in source.lattice:
        raise Refused(
            f"the published node {list(kept.node)} is no longer in the lattice: hierarchies have changed; nothing "
            f"is published. Change them back, or write {UNPROTECTED}"
        )
