"""What `plan` says of the next version ahead: its levels against those of the current one, and the changes that wait.

The source is opened as a run would, in one snapshot, and the crosswalk is only read.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from qblock.errors import InputError, QblockError, Refused
from qblock.joint.admission import Admission
from qblock.joint.crosswalk import has_crosswalk, open_crosswalk
from qblock.joint.lag import memory
from qblock.joint.lag.checks import check_layout, check_node
from qblock.joint.lag.outlook import Outlook, outlook
from qblock.joint.later import lags
from qblock.joint.turnover import turnover
from qblock.lattice import Node
from qblock.ledger.events import PUBLISHING, RecordedEvent
from qblock.ledger.store import Store
from qblock.release.maps import inherited_map
from qblock.release.plan import Plan
from qblock.release.turnover import refusal, source_digest
from qblock.search.run import open_snapshot
from qblock.source import SourceTable, open_recoded
from qblock.spec import Spec, spec_digest
from qblock.warehouse.protocol import Session

NO_STATE = "what waits was not looked at: no state is kept of what the versions show; the next run says what it finds"
ANOTHER_SPEC = "the spec is another one than that of version {}: a new version would be tried; {}"


@dataclass(frozen=True)
class NextVersion:
    """levels: of the next version and of the current one, as JSON; changes: that wait, as JSON, where versions lag and
    the source could be opened; notes: what is to be said beside."""

    levels: dict[str, Any] | None = None
    changes: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()


def next_version(planned: Plan) -> NextVersion:
    """What is known of the version that a run would make; nothing before there is one. Raises what a run raises before
    its search, where versions lag."""
    spec, place = planned.spec, planned.place
    if planned.current is None:
        return NextVersion()
    with place.read() as reader:
        current = reader.current(spec.release)
        events = reader.history(spec.release)
    if current is None:
        return NextVersion()
    shown = sorted({e.version for e in events if e.state in PUBLISHING and e.version is not None})
    shown_node: Node | None = None
    changes: dict[str, Any] | None = None
    notes: list[str] = []
    if lags(spec):
        try:
            shown_node, changes, notes = _looked(spec, place, shown, current.event)
        except (InputError, Refused):
            raise  # a run would end so
        except QblockError as error:
            notes = [f"what waits could not be looked at: {error}"]
    node = spec.pinned if spec.pinned is not None else shown_node
    return NextVersion(_levels(spec, node, current.event), changes, tuple(notes))


def _levels(spec: Spec, node: Node | None, current: RecordedEvent) -> dict[str, Any] | None:
    if current.node is None or current.quasi_identifiers is None:
        return None
    return {
        "version": current.version,
        "current": dict(zip(current.quasi_identifiers, current.node, strict=True)),
        "next": None if node is None else dict(zip(spec.quasi_identifiers, node, strict=True)),
    }


def _looked(
    spec: Spec, place: Store, shown: Collection[int], current: RecordedEvent
) -> tuple[Node | None, dict[str, Any] | None, list[str]]:
    """The node that is kept, the changes that wait, and notes."""
    if not has_crosswalk(place):
        return None, None, [NO_STATE]
    with open_snapshot(spec, name_values=False) as session:
        with open_crosswalk(place, session, read_only=True) as book:
            steady = memory.load(book, spec.release)
        if steady is None or steady.first not in shown:
            return None, None, [NO_STATE]
        check_layout(spec, steady)
        admission = Admission(spec, place, shown=tuple(shown), read_only=True)
        source = open_recoded(spec, session, inherited_map(spec, place, current), relation=admission)
        check_node(steady, source)
        refused = _turnover(session, source, admission, shown)
        with open_crosswalk(place, session, read_only=True) as book:
            changes = outlook(book, source, steady, max(shown))
    return steady.node, _json(spec, changes, current, refused), []


def _json(spec: Spec, changes: Outlook, current: RecordedEvent, refused: str | None) -> dict[str, Any]:
    answer = changes.to_json()
    if refused is not None:
        return {**answer, "tried": False, "why": f"a run would be refused: {refused}"}
    if not changes.tried and current.spec_digest != spec_digest(spec):
        return {**answer, "tried": True, "why": ANOTHER_SPEC.format(current.version, changes)}
    return answer


def _turnover(session: Session, source: SourceTable, admission: Admission, shown: Collection[int]) -> str | None:
    """Why a run would ask somebody to confirm the source, if it would."""
    spec = source.spec
    with open_crosswalk(admission.place, session, read_only=True) as book:
        change = turnover(book, source, admission, shown)
    if not change.too_many:
        return None
    digest = source_digest(source)
    return None if spec.versions.confirm == digest else str(refusal(spec, change, digest))
