"""Moving a release on purpose: to another name, source or view, with its versions, evidence and chain of events.

The chain is not rewritten, since its digests hold the name: the events of the earlier name are closed by one that says
where the release went, and those of the new name continue from that one's digest and number (release_move says which
name came before; `ledger.chain`). Everything that is not chained is renamed. PostgreSQL does all of it in one
transaction. On DuckDB and Spark ledger, crosswalk and versions are apart: the ledger is written first, and the next run
(`finish`) does what is left then; every step may be done twice.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import sqlalchemy as sa

from qblock.effects import current_effects
from qblock.engines.kept_sessions import kept_sessions
from qblock.errors import InputError, Refused
from qblock.ledger.chain import record, set_pointer
from qblock.ledger.events import IDENTIFYING, UNFINISHED, Event, RecordedEvent, canonical
from qblock.ledger.kept import Kept, PublishedColumn
from qblock.ledger.reader import LedgerReader
from qblock.ledger.schema import known_revision, revision, revisions, tables
from qblock.ledger.stamps import Written
from qblock.ledger.store import OPEN_SECONDS, Store
from qblock.ledger.stores import store_of
from qblock.publish.targets import Identity, Target, target_of
from qblock.publish.targets.protocol import named_view
from qblock.release import private_state, roles
from qblock.results.release import Ended
from qblock.spec import Spec, spec_digest
from qblock.versions.crosswalk import Crosswalk, has_crosswalk, nobody, open_crosswalk
from qblock.versions.integrity import record_digests


@kept_sessions()
def move(spec: Spec, earlier: str, *, wait: float = 0) -> Ended:
    """Make the release `earlier` the one that a spec describes: its name, source and view.

    Readers of the old view lose it, and those of the spec get the new one with the version that is shown now. Raises
    InputError for a name that no release has or another one has had, Refused where a run is unfinished, private state
    is not whole or its readers would be shown what another release protects, and Busy.
    """
    store = store_of(spec)
    target = target_of(spec, store)
    with ExitStack() as stack:
        for name in sorted({spec.release, earlier}):
            stack.enter_context(store.lock(name, wait))
        store.upgrade()
        if finish(spec, store, target):
            return _result("moved", spec, earlier, store, target)
        identity = target.identity()
        if identity.source is None:
            raise InputError(f"{spec.at('source', 'table')}: table {spec.source.table} does not exist")
        with store.read() as reader:
            done = reader.successor(earlier) == spec.release
        _check_state(spec, spec.release if done else earlier, store)
        with store.read() as reader:
            last = _check(reader, spec, earlier, store, identity)
        if last is None:
            return _result("unchanged", spec, earlier, store, target)
        _check_target(spec, earlier, store, target)
        notes = roles.judge(spec, store, identity, earlier=earlier)
        with current_effects().committing(f"release {earlier} was moved", partial(_moved, store, spec, earlier, last)):
            with store.write() as connection:
                _write(connection, spec, earlier, target, identity, last, store.atomic)
                if store.atomic:
                    own = store.crosswalk.session(connection)
                    crosswalk = Crosswalk(own, own)
                    _rename_crosswalk(crosswalk, earlier, spec.release)
                    record_digests(store, crosswalk)
                    notes += target.move(connection, earlier, last)
            finish(spec, store, target)
    return _result("moved", spec, earlier, store, target, notes)


def _moved(store: Store, spec: Spec, earlier: str, last: RecordedEvent) -> str | None:
    """What is reported about a move, however it ended. last: the event that identified the release before."""
    with store.read() as reader:
        event = reader.last_event(spec.release, "moved")
    if event is None or event.number <= last.number:
        return None
    return f"release {earlier} was moved" + (", and the next run finishes it" if pending(spec, store) else "")


def _result(
    status: Literal["moved", "unchanged"],
    spec: Spec,
    earlier: str,
    store: Store,
    target: Target,
    notes: Sequence[str] = (),
) -> Ended:
    with store.read() as reader:
        shown, head = reader.pointer(spec.release), reader.head(spec.release)
    return Ended(
        status=status,
        release=spec.release,
        earlier=earlier,
        version=shown,
        view=target.view,
        ledger_head=head,
        notes=tuple(notes),
    )


def _check_target(spec: Spec, earlier: str, store: Store, target: Target) -> None:
    """The view is new, or still the one of the earlier name."""
    try:
        target.check()
    except InputError:
        target_of(replace(spec, release=earlier), store).check()


def _check_state(spec: Spec, earlier: str, store: Store) -> None:
    """What is published and kept of the earlier name, and the ledger, know of each other."""
    before = replace(spec, release=earlier)
    problems = private_state.compare(
        before, store, target_of(before, store), joint=spec.checked_together, seconds=OPEN_SECONDS
    ).problems
    if problems:
        raise Refused(private_state.refusal(store, earlier, problems))


def _check(reader: LedgerReader, spec: Spec, earlier: str, store: Store, identity: Identity) -> RecordedEvent | None:
    """The event that says what the release is now; None where that is what the spec says."""
    successor = reader.successor(earlier)
    if successor == spec.release and private_state.difference(reader, spec, identity) is None:
        return None
    if successor is not None:
        raise InputError(f"--from {earlier}: release {earlier} was moved before, and is {successor} now")
    last = reader.last_event(earlier, *IDENTIFYING)
    if last is None:
        raise InputError(f"--from {earlier}: the ledger knows no release of that name with a version")
    if spec.release != earlier and (spec.release in reader.releases() or reader.successor(spec.release)):
        raise InputError(
            f"{spec.at('release')}: the ledger already has events of release {spec.release}; a release can be moved to "
            "a name that no release has had"
        )
    if any(event.state in UNFINISHED for event in reader.last_events(earlier).values()):
        raise Refused(f"a run of release {earlier} was stopped and is not settled; run it once more before you move it")
    if spec.release == earlier and private_state.difference(reader, spec, identity) is None:
        return None
    return last


def _write(
    connection: sa.Connection,
    spec: Spec,
    earlier: str,
    target: Target,
    identity: Identity,
    last: RecordedEvent,
    finished: bool,
) -> None:
    """The ledger's part: the events of both names, the pointer, what is kept of versions, and that files may follow.

    finished: whether nothing is left to do after it.
    """
    ledger, reader = tables(connection), LedgerReader(connection)
    current = reader.current(earlier)
    run, new = secrets.token_hex(8), spec.release
    facts: dict[str, Any] = {"view": target.view, "target": identity.target}
    if new != earlier:
        record(connection, Event(release=earlier, state="moved", run=run, reason=f"moved to {new}", **facts))
        for table in (ledger.reference, ledger.begun):
            connection.execute(table.update().where(table.c.release == earlier).values(release=new))
        set_pointer(connection, earlier, None)
    newest = reader.last_event(earlier)
    row = {"release": new, "number": newest.number if newest else 0, "earlier": earlier}
    done = finished
    connection.execute(ledger.move.insert(), [{**row, "before": last.target, "done": done}])
    if current is not None:
        more = facts | {"release": new, "run": run, "readers": identity.readers, "audience": spec.versions.audience}
        if _only_moved(spec, earlier, last, current.event):
            more |= {"spec_digest": spec_digest(spec)}
        record(connection, current.event.again(**more), current.guarantees)
    reason = f"moved from {earlier}" if new != earlier else "another source or view, on purpose"
    columns = identity.columns() | facts
    record(connection, Event(release=new, state="moved", run=run, reason=reason, **columns))
    if current is not None:
        set_pointer(connection, new, current.version)


def _only_moved(spec: Spec, earlier: str, last: RecordedEvent, shown: RecordedEvent) -> bool:
    """Whether the spec asks what the one before asked, but for the names: then the version is still up to date."""
    view = named_view(last.target or "")
    publish = replace(spec.publish, schema=view.schema or spec.publish.schema, view=view.name)
    return spec_digest(replace(spec, release=earlier, publish=publish)) == shown.spec_digest


def _rename_crosswalk(crosswalk: Crosswalk, earlier: str, release: str) -> None:
    """The crosswalk's part: rows of the release, and who names it as their audience. May be done twice."""
    if earlier == release or revision(crosswalk.own.connection) is None:
        return
    t = crosswalk.tables
    for table in t.of_releases:
        for before, after in ((earlier, release), (nobody(earlier), nobody(release))):
            # Rebuilt, since they hold digests of the name.
            is_rolled = table in (t.episode, t.signature, t.rolled)
            statement = sa.delete(table) if is_rolled else sa.update(table).values(release=after)
            crosswalk.write(statement.where(table.c.release == before), release)
    version = t.version
    for row in crosswalk.own.fetch(sa.select(version.c.release, version.c.version, version.c.audience)).to_pylist():
        audience = json.loads(row["audience"])
        if earlier in audience:
            renamed = canonical([release if name == earlier else name for name in audience])
            same = (version.c.release == row["release"], version.c.version == row["version"])
            update = sa.update(version).where(*same).values(audience=renamed)
            crosswalk.write(update, row["release"], row["version"])


@dataclass(frozen=True)
class _Pending:
    number: int
    earlier: str
    before: str


def pending(spec: Spec, store: Store) -> _Pending | None:
    """A move to this release that was stopped before all of it was done."""
    if store.atomic or not store.exists:
        return None
    with store.opened(read_only=True) as connection:
        # Where the ledger is to be upgraded it is asked again after that.
        if known_revision(connection) != revisions()[-1] or LedgerReader(connection).head(spec.release) is None:
            return None
        table = tables(connection).move
        query = sa.select(table.c.number, table.c.earlier, table.c.before)
        row = connection.execute(query.where(table.c.release == spec.release, sa.not_(table.c.done))).one_or_none()
        return None if row is None else _Pending(row.number, row.earlier, row.before)


def finish(spec: Spec, store: Store, target: Target) -> bool:
    """Do what is left of a move to this release, with its lock held; whether there was anything.

    Raises Refused where the spec is not the one that it was moved to.
    """
    unfinished = pending(spec, store)
    if unfinished is None:
        return False
    with store.read() as reader:
        problem = private_state.difference(reader, spec, target.identity())
        if problem is not None:
            raise Refused(f"a move of this release is not finished: {problem}")
        broken = Written.of(reader, spec.release).problems
        if broken:
            raise Refused(private_state.refusal(store, spec.release, broken))
        columns = {v: _columns(reader, spec.release, v) for v in reader.kept_versions(spec.release)}
        current = reader.pointer(spec.release)
    if has_crosswalk(store):
        with open_crosswalk(store) as crosswalk:
            _rename_crosswalk(crosswalk, unfinished.earlier, spec.release)
    target.finish_move(unfinished.earlier, unfinished.before, columns, current)
    with store.write() as connection:
        table = tables(connection).move
        same = (table.c.release == spec.release, table.c.number == unfinished.number)
        connection.execute(table.update().where(*same).values(done=True))
    return True


def _columns(reader: LedgerReader, release: str, version: int) -> Sequence[PublishedColumn]:
    text = reader.reference(release, version)
    return () if text is None else Kept.of_text(text).columns
