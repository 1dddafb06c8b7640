"""What a release is: one source and one view. The ledger knows both, and another one under the same name is refused.

The newest event that published or moved the release says which they are. A ledger from before these columns has its
view; the crosswalk has a mark of its source where versions are checked together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import sqlalchemy as sa

from qblock.errors import Refused
from qblock.joint.tables import tables
from qblock.ledger import migrate
from qblock.ledger.events import IDENTIFYING, RecordedEvent
from qblock.ledger.place import Place
from qblock.ledger.reader import LedgerReader, ledger_reader
from qblock.ledger.writer import opened
from qblock.publish.targets import Identity
from qblock.spec import Spec
from qblock.warehouse.protocol import TableName


def check_identity(spec: Spec, place: Place, found: Identity) -> None:
    """Raise Refused where the release is published from another source, as another view, or under another name now."""
    with ledger_reader(place) as reader:
        problem = difference(reader, spec, place, found)
    if problem is not None:
        raise Refused(problem)


def difference(reader: LedgerReader, spec: Spec, place: Place, found: Identity) -> str | None:
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
    source = _other_source(last, spec, place, found)
    view = _other_view(last, found)
    if source is None and view is None:
        return None
    table = last.source or "another table"
    other = " of another database" if source and last.source == found.source else ""
    was = f"{table}{other} as {last.target or last.view}"
    return (
        f"release {release} is published from {was}, and this spec would publish it from {found.source} as "
        f"{found.target}: one release has one source and one view, or readers of one would be shown the other; "
        "nothing was done. Give this spec a release name of its own, or move the release on purpose: qblock ledger "
        f"move SPEC --from {release}"
    )


def _other_source(last: RecordedEvent, spec: Spec, place: Place, found: Identity) -> bool | None:
    if found.source is None:
        return None  # the source's check suggests similar names
    if last.source is not None:
        return (last.source, last.source_database) != (found.source, found.database) or None
    kept = _crosswalk_mark(spec, place)
    return None if kept is None else (kept not in _marks(spec, found.source)) or None


def _other_view(last: RecordedEvent, found: Identity) -> bool | None:
    if last.target is not None:
        return last.target != found.target or None
    if last.view is None or last.view == found.view:
        return None
    # An event from before the target was recorded names a DuckDB file by its whole path, which may have moved.
    view, _, file = last.view.partition(" in ")
    wanted, _, here = found.target.partition(" in ")
    return not (view == wanted and bool(here) and Path(file).name == Path(here).name) or None


def _crosswalk_mark(spec: Spec, place: Place) -> str | None:
    """What the crosswalk has of the source of the newest version: a digest of its name, as a spec wrote it."""
    if not place.crosswalk.exists:
        return None
    with opened(place.crosswalk, read_only=True) as connection, place.translated():
        if migrate.revision(connection) is None or not place.may_read(connection, ["crosswalk_version"]):
            return None
        version = tables(place.engine).version
        query = sa.select(version.c.source).where(version.c.release == spec.release)
        return connection.scalar(query.order_by(version.c.position.desc()).limit(1))


def _marks(spec: Spec, source: str) -> Sequence[str]:
    """Marks of a source in crosswalks from before: of the name as a spec may have written it."""
    table = TableName.parse(source)
    names = {spec.source.parts, (table.name,), tuple(part for part in (table.schema, table.name) if part)}
    return [hashlib.sha256(".".join(parts).encode()).hexdigest() for parts in names]
