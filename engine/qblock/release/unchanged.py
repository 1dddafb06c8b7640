"""A run that finds everything as the run before left it: one scan of the source tells, before anything is coded.

A steady job decides by its state and its source alone. Where the run before decided nothing, and source, hierarchies,
tables, spec, program, withdrawals and the version that readers see are the same, this run decides nothing either; what
that one came to is its result.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields
from typing import Any

import sqlalchemy as sa

from qblock.joint.crosswalk import open_crosswalk
from qblock.joint.lag import memory
from qblock.joint.lag.turn import LaggingVersions
from qblock.ledger.events import canonical
from qblock.ledger.kept import Kept
from qblock.publish.digest import relation_digest
from qblock.release.result import ReleaseResult
from qblock.release.run import Run
from qblock.source.columns import columns_read, tables_read
from qblock.spec import Spec, spec_digest
from qblock.version import __version__
from qblock.warehouse.protocol import Session, TableName


def fingerprint(run: Run, session: Session) -> str | None:
    """A digest of all that a run decides by; None where there is no state yet, or no version, or a file cannot be read
    (opening the source says so)."""
    spec, current = run.spec, run.current
    if not isinstance(run.joint, LaggingVersions) or run.joint.kept is None or current is None:
        return None
    with open_crosswalk(run.place, session) as book:
        exclusions, steady = book.tables.apart, book.tables.steady
        query = sa.select(exclusions.c.entity, exclusions.c.state).where(exclusions.c.release == spec.release)
        excluded = sorted(tuple(row.values()) for row in book.own.fetch(query).to_pylist())
        state = book.own.scalar(sa.select(steady.c.state).where(steady.c.release == spec.release))
    try:
        files = _files(spec)
    except OSError:
        return None
    source = TableName.parse(spec.source.table)
    columns = session.columns(source)
    read = columns_read(spec)
    facts: dict[str, Any] = {
        "program": __version__,
        "spec": spec_digest(spec),
        "current": [current.version, current.digest],
        "state": memory.decided(state),
        "apart": [list(row) for row in excluded],
        "types": {name: column.type for name, column in columns.items() if name in read},
        "source": relation_digest(session, source, [name for name in columns if name not in read]),
        "tables": {str(table): relation_digest(session, table) for table in tables_read(spec) if table != source},
        "files": files,
    }
    return hashlib.sha256(canonical(facts).encode()).hexdigest()


def _files(spec: Spec) -> dict[str, str]:
    digests: dict[str, str] = {}
    for attribute in spec.attributes.values():
        for given in (attribute.hierarchy, attribute.taxonomy):
            path = None if given is None else spec.file(given)
            if path is not None:
                digests[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return digests


def remember(run: Run) -> None:
    """Keep what a run came to that decided nothing and found its version to stay, for the next one."""
    joint = run.joint
    if run.fingerprint is None or not isinstance(joint, LaggingVersions) or not joint.quiet or joint.dry:
        return
    remembered = {"fingerprint": run.fingerprint, "result": run.result().to_json(), **joint.as_remembered()}
    with open_crosswalk(run.place) as book:
        memory.keep_result(book, run.spec.release, remembered)


def is_unchanged(run: Run) -> bool:
    """Whether everything is as the run before left it. Then the run knows what that one came to."""
    joint, event = run.joint, run.current
    if run.fingerprint is None or run.force or event is None or not isinstance(joint, LaggingVersions) or joint.dry:
        return False
    with open_crosswalk(run.place) as book:
        remembered = memory.result_of(book, run.spec.release)
    if remembered is None or remembered["fingerprint"] != run.fingerprint or run.pointer_problems:
        return False
    with run.place.read() as reader:
        text = reader.reference(run.spec.release, event.version or 0)
    same_target = event.target == run.identity.target or (event.target is None and event.view == run.target.view)
    if text is None or not same_target or not run.target.intact(event.version or 0, Kept.of_text(text).columns):
        return False
    joint.recall(remembered)
    known = {field.name for field in fields(ReleaseResult)}
    run.remembered = {name: value for name, value in remembered["result"].items() if name in known}
    run.version = event.version or 0
    return True
