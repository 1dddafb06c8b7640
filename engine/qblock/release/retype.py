"""`qblock ledger retype`: what the crosswalk keeps of a release is converted to the column types that the source has
now.

Values are converted where each reads the same both ways: its text is a value of the new type, and the text of that
value is the old one in the old type. Signatures and labels are of blocks, so they stay. Entities keep the digest of
their value in its first type, since nothing keeps the text of people who are gone (versions.types.entity_text).
"""

from __future__ import annotations

import secrets

from qblock.engines.kept_sessions import kept_sessions
from qblock.engines.session import Session
from qblock.engines.sql_session import sql_of
from qblock.engines.tables import Column, TableName
from qblock.errors import Busy, InputError, Refused
from qblock.ledger.events import PUBLISHING, Event
from qblock.ledger.store import Store
from qblock.ledger.stores import store_of
from qblock.release import private_state
from qblock.release.job import Plan
from qblock.results.release import Retyped, TypeChange
from qblock.search.run import open_snapshot
from qblock.source import recoded_columns
from qblock.source.columns import checked_columns
from qblock.spec import Spec
from qblock.versions.conversion import NewTexts, new_texts, rewrite
from qblock.versions.crosswalk import Crosswalk, has_crosswalk, open_crosswalk, prepare, record_with
from qblock.versions.people import check_somebody
from qblock.versions.recorded import recorded
from qblock.versions.types import Types, changed, check_coarser, named, remedy, types_of


@kept_sessions()
def retype(spec: Spec, *, wait: float = 0) -> Retyped:
    """Move the crosswalk of a release to the types of the source's columns, in one transaction, with a ledger event.

    wait: seconds to wait for another run of the release. Raises InputError for a release whose versions are not checked
    together, Refused where there is no crosswalk, or it was lost, or a value does not read the same both ways (how
    many, by column), and what opening the source raises; nothing is changed then.
    """
    if not spec.checked_together:
        raise InputError(
            f"{spec.at('versions')}: only a release whose versions are checked together keeps column types: write "
            "`entity: COLUMN`, and not `joint: none`"
        )
    if spec.bundles:
        raise InputError(
            f"{spec.at('count')}: records of people with several rows (`count: entities`) are not converted; give the "
            "column its type again"
        )
    store = store_of(spec)
    with store.lock(spec.release, wait) as lock:
        store.upgrade()
        private_state.check_crosswalk(store, spec.release)
        prepare(store)
        with open_snapshot(spec, name_values=False) as session:
            with open_crosswalk(store, session) as crosswalk:
                result = _move(crosswalk, spec, session)
                lock.check()
                if result.status == "retyped":
                    # On DuckDB the crosswalk is another file: a stop between leaves an event of a move that the next
                    # `retype` makes, and never a move without an event.
                    _record(store, crosswalk, spec, result)
            if store.atomic:
                sql_of(session).connection.commit()
    return result


def type_note(planned: Plan) -> str | None:
    """What a plan adds where the types of the source's columns are not those of the newest version. Reads only."""
    spec, store = planned.spec, planned.store
    if not spec.checked_together or not planned.is_upgraded or not has_crosswalk(store):
        return None
    with store.read() as reader:
        shown = {e.version for e in reader.history(spec.release) if e.state in PUBLISHING}
    try:
        with open_snapshot(spec, name_values=False) as session:
            columns = _columns(spec, session, TableName.parse(spec.source.table))
            with open_crosswalk(store, session, read_only=True) as crosswalk:
                own = [v for v in recorded(crosswalk, spec.release) if v.key.version in shown]
    except Busy:
        return "whether column types have changed could not be read: another run has the crosswalk open"
    if own:
        try:
            check_coarser(spec, own[-1].types, f"version {own[-1].key.version}")
        except InputError as error:
            return f"a release would be refused: {error}"
    changes = changed(spec, own[-1].types, columns) if own else []
    if not changes:
        return None
    said = "; ".join(f"column {name} was of type {before} and is of type {now}" for name, before, now in changes)
    return f"a release would be refused, since types have changed ({said}). {remedy(spec)}"


def _move(crosswalk: Crosswalk, spec: Spec, session: Session) -> Retyped:
    table = TableName.parse(spec.source.table)
    columns = _columns(spec, session, table)
    relation = session.relation(table)
    own = recorded(crosswalk, spec.release)
    if not own:
        raise Refused(f"release {spec.release} has no crosswalk yet: there is nothing to convert")
    known = own[-1].types
    check_coarser(spec, known, f"version {own[-1].key.version}")
    if not changed(spec, known, columns):
        return Retyped(status="unchanged", release=spec.release, columns=(), versions=0)
    check_somebody(crosswalk, spec, session, relation, columns, own[-1], known.first)
    now = types_of(spec, columns, known.first)
    texts = new_texts(crosswalk, spec, own, known, now)
    rewrite(crosswalk, spec.release, own, texts, now)
    changes = _changes(spec, known, now, texts)
    return Retyped(status="retyped", release=spec.release, columns=changes, versions=len(own))


def _changes(spec: Spec, known: Types, now: Types, texts: NewTexts) -> tuple[TypeChange, ...]:
    pairs = changed(spec, known, {name: named(column) for name, column in now.columns.items()})
    return tuple(
        TypeChange(column=name, before=before, now=type_, values=len(texts.get(name, {})))
        for name, before, type_ in pairs
    )


def _record(store: Store, crosswalk: Crosswalk, spec: Spec, result: Retyped) -> None:
    said = "; ".join(f"column {column.column} from {column.before} to {column.now}" for column in result.columns)
    event = Event(
        release=spec.release,
        state="retyped",
        run=secrets.token_hex(8),
        detail={"versions": result.versions, "values": sum(column.values for column in result.columns)},
        reason=f"what the crosswalk keeps is moved to other column types: {said}",
    )
    record_with(store, crosswalk, event)


def _columns(spec: Spec, session: Session, table: TableName) -> dict[str, Column]:
    """The source's columns as versions record them: the labels of a recoding map are text, whatever they stand for."""
    columns = checked_columns(spec, session, table)
    return recoded_columns(spec, columns, session.engine) if spec.by_boxes else columns
