"""How a release publishes the bounds of numbers and dates: as its spec says, and else as the version before."""

from __future__ import annotations

from qblock.errors import QblockError
from qblock.ledger.events import RecordedEvent
from qblock.ledger.kept import Kept
from qblock.ledger.store import Store
from qblock.spec import Spec
from qblock.spec.model import RangesShown

FIRST: RangesShown = "columns"


def ranges_of(place: Store, event: RecordedEvent | None) -> RangesShown:
    """How a version shows them; `columns` where there is no version."""
    if event is None or event.version is None:
        return FIRST
    with place.read() as reader:
        text = reader.reference(event.release, event.version)
    try:
        return "text" if text is None else Kept.of_text(text).ranges
    except QblockError:  # which is said where the version is needed
        return "text"


def ranges_now(spec: Spec, place: Store) -> RangesShown:
    """How the next version would."""
    if spec.publish.ranges is not None or not place.exists:
        return spec.publish.ranges or FIRST
    with place.read() as reader:
        current = reader.current(spec.release)
    return ranges_of(place, None if current is None else current.event)
