"""Whether the only version of a release may be recorded in the crosswalk after it was published: what ledger and spec
say of it, before a row is read. (What the source says: `release.adopt`.)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qblock.errors import Refused
from qblock.joint.adopted import LEFT
from qblock.ledger.events import Guarantee, RecordedEvent, named
from qblock.ledger.kept import Kept, kept_digest
from qblock.ledger.parameters import parameters_text
from qblock.ledger.reader import LedgerReader
from qblock.ledger.stamps import Written
from qblock.release.roles import published_columns
from qblock.spec import Spec

AS_IT_WAS = (
    "Write the spec as it was, with `entity` (and `versions`) added and nothing else; what else is to change may "
    f"change afterwards. If that cannot be, {LEFT}"
)
LOST = {
    "erased": "people have withdrawn from it, who may be in that version",
    "retyped": "its ledger tells of a crosswalk, which was lost",
    "rekeyed": "its ledger tells of a crosswalk, which was lost",
    "confirmed": "its ledger tells of a crosswalk, which was lost",
}
"""Events of a release that was checked together with others once."""


def refused(release: str, version: int, why: str, left: str = f"{LEFT[0].upper()}{LEFT[1:]}") -> Refused:
    """The refusal of an adoption. left: what to do, as sentences."""
    return Refused(f"version {version} of release {release} is not adopted: {why}; nothing is changed. {left}")


def check_adoptable(spec: Spec, reader: LedgerReader) -> RecordedEvent:
    """The event that published the only version. Raises Refused, saying what is in the way and what is left."""
    release = spec.release
    known = Written.of(reader, release)
    if not known.shown:
        raise Refused(
            f"release {release} was never published, so there is no version to adopt: with `entity` in the spec, "
            "`qblock release` records its first version by itself"
        )
    newest = next(reversed(known.shown))
    if len(known.shown) > 1:
        number = f"{len(known.shown)} versions were published"
        raise refused(release, newest, f"{number}, and the source gives one of them at most")
    current, text = reader.current(release), reader.reference(release, newest)
    if current is None:
        raise refused(release, newest, "readers see no version of it now")
    for why in _lost(known, current.event):
        raise refused(release, newest, why)
    if text is None or kept_digest(text) != current.event.reference_digest:
        raise refused(release, newest, "the quantities kept with it are missing or were altered")
    kept = Kept.of_text(text)
    for why in _otherwise(spec, current.event, kept, current.guarantees):
        raise refused(release, newest, why, AS_IT_WAS)
    return current.event


def _lost(known: Written, event: RecordedEvent) -> Iterator[str]:
    """What tells of a crosswalk that knew more of the release than the source can give."""
    yield from (LOST[e.state] for e in known.events if e.state in LOST)
    if event.entity is not None:
        yield "it was recorded in a crosswalk when it was published, which was lost"


def _otherwise(spec: Spec, event: RecordedEvent, kept: Kept, guarantees: Sequence[Guarantee]) -> Iterator[str]:
    """What the spec asks otherwise than the one that the version was published by."""
    before = [(column.name, column.role) for column in kept.columns if not column.derived]
    now = list(published_columns(spec))
    if before != now:
        yield f"it publishes {_columns(before)}, and the spec says {_columns(now)}"
    if event.node is not None and spec.pinned not in (None, event.node):
        yield f"it has node {list(event.node)}, and the spec pins {list(spec.pinned or ())}"
    asked = {(one.model, one.sensitive, one.parameters) for one in guarantees}
    models = {(q.model.name, named(q.sensitive), parameters_text(q.models)) for q in spec.privacy}
    if asked != models:
        names = sorted({name for name, *_ in asked ^ models})
        yield f"the spec asks something else of {', '.join(names)} than it was published with"


def _columns(columns: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name} ({role.replace('_', '-')})" for name, role in columns)
