"""Refusals of a later version that need no count of the source: decided from spec, ledger, crosswalk and column types.

A run that would find nothing to do must find that, whatever else is wrong: so what is asked here is only decided ahead
where the run cannot end as unchanged, or where the answer shows that it will not.
"""

from __future__ import annotations

import sqlalchemy as sa

from qblock.errors import Refused
from qblock.joint.versions import ONLY_UNPROTECTED
from qblock.release import roles
from qblock.release.chosen import Chosen
from qblock.release.run import Run
from qblock.source import recoded_columns
from qblock.source.columns import checked_columns
from qblock.spec import spec_digest
from qblock.spec.sources import CsvFile, DimensionTable
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
