"""Finds, before the source is counted, that a run would be refused or that all is as the run before left it.

Fails early only if the run cannot be a no-op. A steady job decides by its state and its source alone: where the run
before decided nothing, and source, hierarchies, tables, spec, program, withdrawals and the version that readers see are
the same, this run decides nothing either, and what that one came to is its result.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields
from typing import Any

import sqlalchemy as sa

from qblock.errors import Refused
from qblock.ledger.events import canonical
from qblock.ledger.kept import Kept
from qblock.publish.digest import relation_digest
from qblock.release import roles
from qblock.release.chosen import Chosen
from qblock.release.result import ReleaseResult
from qblock.release.run import Run
from qblock.source import recoded_columns
from qblock.source.columns import checked_columns, columns_read, tables_read
from qblock.spec import Spec, spec_digest
from qblock.spec.sources import CsvFile, DimensionTable
from qblock.version import __version__
from qblock.versions.crosswalk import open_crosswalk
from qblock.versions.lag import memory
from qblock.versions.lag.turn import LaggingVersions
from qblock.versions.recorded import ONLY_UNPROTECTED
from qblock.warehouse.protocol import Session, TableName


def spec_refusal(run: Run) -> Refused | None:
    """Before the source is opened, since it needs sessions of its own: the refusal that the check of versions together
    would end with after the search, to be raised once the source is known to have the columns."""
    try:
        _check_spec(run)
    except Refused as error:
        return error
    return None


def _check_spec(run: Run) -> None:
    if run.shown and not _may_be_unchanged(run):
        if run.joint.together:
            run.joint.check_known(run.published_digests)
        elif run.spec.versions.joint != "none":
            now = [name for name, _ in roles.published_columns(run.spec)]
            for version, event in run.shown.items():
                if event.columns is not None and [name for name, _ in event.columns] != now:
                    raise other_content(run, version)


def check_comparable_versions(run: Run) -> None:
    """Once it is known what the release has shown. Raises what the check of versions together would raise."""
    if run.shown and not _may_be_unchanged(run):
        run.joint.check_comparable()


def precheck_source(run: Run, session: Session, refusal: Refused | None, *, labels: bool = False) -> None:
    """Before the source is scanned: its columns and their types, and where versions are compared by their content, how
    many rows it has. labels: whether quasi-identifiers are those of a map. Raises Refused, and InputError for a column
    that is missing."""
    table = TableName.parse(run.spec.source.table)
    # A name that no column has is the first thing to say.
    columns = checked_columns(run.spec, session, table)
    if not run.shown:
        return
    if refusal is not None:
        raise refusal
    if run.joint.together:
        run.joint.check_types(session, recoded_columns(run.spec, columns, session.engine) if labels else columns)
    elif run.spec.versions.joint != "none" and run.spec.shows_every_row:
        rows = int(session.scalar(sa.select(sa.func.count()).select_from(session.relation(table))))
        # Of an empty table opening the source says that it is.
        known = {v: e.rows_published for v, e in run.shown.items() if rows and e.rows_published not in (None, rows)}
        current = run.current.version if run.current is not None else None
        if known and (current in known or not _may_be_unchanged(run)):
            raise other_content(run, max(known))


def precheck_published_node(run: Run) -> Chosen | None:
    """Before the search, where versions are compared by their content: what the node of the version that readers see
    would show now; None where that cannot be told from it. Raises Refused where it is something else."""
    event, spec = run.current, run.spec
    if run.joint.together or spec.versions.joint == "none" or event is None or event.version is None:
        return None
    # A level that was put into a hierarchy, or other ones, may let another node show the same.
    read = any(isinstance(spec.attributes[n].hierarchy, CsvFile | DimensionTable) for n in spec.quasi_identifiers)
    node = event.node
    if node is None or spec.pinned is not None or event.spec_digest != spec_digest(spec):
        return None
    if node not in run.task.lattice or (read and event.hierarchy_digest != run.hierarchy_digest):
        return None
    assessment = run.task.assess(node)
    if not assessment.satisfied:
        raise other_content(run, event.version)
    run.chosen = Chosen.of(spec, run.task, assessment, run.ranges)
    if event.content_digest != run.chosen.digest:
        raise other_content(run, event.version)
    return run.chosen


def other_content(run: Run, version: int) -> Refused:
    """The refusal of content that cannot be checked together with that of a version."""
    return Refused(
        f"version {version} of release {run.spec.release} was published with other content, and versions can be "
        "checked together only where the spec says who a row is about from the first version on (`entity: COLUMN`): "
        f"someone who holds both may learn more than each one guarantees; nothing is published. {ONLY_UNPROTECTED}"
    )


def _may_be_unchanged(run: Run) -> bool:
    """Whether the run may find that readers already see what the spec asks for."""
    event = run.current
    if event is None or run.force or run.pointer_problems:
        return False
    return event.spec_digest == spec_digest(run.spec)


def fingerprint(run: Run, session: Session) -> str | None:
    """A digest of all that a run decides by; None where there is no state yet, or no version, or a file cannot be read
    (opening the source says so)."""
    spec, current = run.spec, run.current
    if not isinstance(run.joint, LaggingVersions) or run.joint.kept is None or current is None:
        return None
    with open_crosswalk(run.place, session) as crosswalk:
        exclusions, steady = crosswalk.tables.apart, crosswalk.tables.steady
        query = sa.select(exclusions.c.entity, exclusions.c.state).where(exclusions.c.release == spec.release)
        excluded = sorted(tuple(row.values()) for row in crosswalk.own.fetch(query).to_pylist())
        state = crosswalk.own.scalar(sa.select(steady.c.state).where(steady.c.release == spec.release))
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
    with open_crosswalk(run.place) as crosswalk:
        memory.keep_result(crosswalk, run.spec.release, remembered)


def is_unchanged(run: Run) -> bool:
    """Whether everything is as the run before left it. Then the run knows what that one came to."""
    joint, event = run.joint, run.current
    if run.fingerprint is None or run.force or event is None or not isinstance(joint, LaggingVersions) or joint.dry:
        return False
    with open_crosswalk(run.place) as crosswalk:
        remembered = memory.result_of(crosswalk, run.spec.release)
    if remembered is None or remembered["fingerprint"] != run.fingerprint or run.pointer_problems:
        return False
    same_target = event.target == run.identity.target or (event.target is None and event.view == run.target.view)
    if run.kept is None or not same_target or not run.target.intact(event.version or 0, Kept.of_text(run.kept).columns):
        return False
    joint.recall(remembered)
    known = {field.name for field in fields(ReleaseResult)}
    run.remembered = {name: value for name, value in remembered["result"].items() if name in known}
    run.version = event.version or 0
    return True
