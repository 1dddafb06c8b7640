"""Finds, before the source is counted, that a run would be refused or that all is as the run before left it.

Fails early only if the run cannot be a no-op. A steady job decides by its state and its source alone: where the run
before decided nothing, and source, hierarchies, tables, spec, program, withdrawals and the version that readers see
are the same, this run decides nothing either, and what that one came to is its result. On DuckDB the scan is a sum of
hashes of 64 bits (`publish.digest.relation_mark`), private, and of nothing but whether a run may end early; elsewhere
a content digest. A run that publishes asks at once what the next one would decide if the source stays
(`versions.pending.following`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from copy import copy
from typing import Any

import sqlalchemy as sa

from qblock.engines.from_spec import tables_read
from qblock.engines.session import Session
from qblock.engines.tables import TableName
from qblock.errors import Refused
from qblock.ledger.events import Event, canonical
from qblock.ledger.kept import Kept, PublishedColumn
from qblock.publish.digest import content_digest, relation_mark
from qblock.release import roles
from qblock.release.chosen import Chosen
from qblock.release.run import LedgerState, Run
from qblock.source import SourceTable, recoded_columns
from qblock.source.columns import checked_columns, columns_read
from qblock.spec import Spec, spec_digest
from qblock.spec.sources import CsvFile, DimensionTable
from qblock.version import __version__
from qblock.versions.admission import Admission
from qblock.versions.crosswalk import Crosswalk, open_crosswalk, record_with
from qblock.versions.integrity import marks
from qblock.versions.pending.state import decided, keep_result, result_of
from qblock.versions.people import Turnover, keep_turnover, turnover
from qblock.versions.policy import common
from qblock.versions.policy.batched import Batched
from qblock.versions.policy.common import Restart
from qblock.versions.recorded import ONLY_UNPROTECTED


def spec_refusal(run: Run) -> Refused | None:
    """Before the source is opened, since it needs sessions of its own: the refusal that the check of versions together
    would end with after the search, to be raised once the source is known to have the columns."""
    try:
        _check_spec(run)
    except Refused as error:
        return error
    return None


def _check_spec(run: Run) -> None:
    if run.ledger.shown and not _may_be_unchanged(run):
        if run.spec.checked_together:
            common.check_known(run.spec, run.store, run.ledger.digests)
        elif run.spec.versions.joint != "none":
            now = [name for name, _ in roles.published_columns(run.spec)]
            for version, event in run.ledger.shown.items():
                if [name for name, _ in event.columns or ()] != now:
                    raise other_content(run, version)


def check_comparable_versions(run: Run) -> None:
    """Once it is known what the release has shown. Raises what the check of versions together would raise."""
    if run.ledger.shown and not _may_be_unchanged(run):
        common.check_comparable(run.spec, run.store)


def precheck_source(run: Run, session: Session, refusal: Refused | None, *, labels: bool = False) -> None:
    """Before the source is scanned: its columns and their types, and where versions are compared by their content, how
    many rows it has. labels: whether quasi-identifiers are those of a map. Raises Refused, and InputError for a column
    that is missing."""
    table = TableName.parse(run.spec.source.table)
    # A name that no column has is the first thing to say.
    columns = checked_columns(run.spec, session, table)
    if not run.ledger.shown:
        return
    if refusal is not None:
        raise refusal
    if run.spec.checked_together:
        run.policy.check_types(session, recoded_columns(run.spec, columns, session.engine) if labels else columns)
    elif run.spec.versions.joint != "none" and run.spec.shows_every_row:
        rows = int(session.scalar(sa.select(sa.func.count()).select_from(session.relation(table))))
        # Of an empty table opening the source says that it is.
        known = {
            v: e.rows_published for v, e in run.ledger.shown.items() if rows and e.rows_published not in (None, rows)
        }
        if known and (run.ledger.version in known or not _may_be_unchanged(run)):
            raise other_content(run, max(known))


def precheck_published_node(run: Run) -> Chosen | None:
    """Before the search, where versions are compared by their content: what the node of the version that readers see
    would show now; None where that cannot be told from it. Raises Refused where it is something else."""
    event, spec = run.ledger.current, run.spec
    if spec.checked_together or spec.versions.joint == "none" or event is None or event.version is None:
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
    run.chosen = Chosen.of(spec, run.task, assessment, run.ranges, run.version)
    if event.content_digest != run.chosen.digest:
        raise other_content(run, event.version)
    return run.chosen


def other_content(run: Run, version: int) -> Refused:
    """The refusal of content that cannot be checked together with that of a version."""
    return Refused(
        f"version {version} of release {run.spec.release} was published with other content, and the two cannot be "
        "checked together; nothing is published. That needs `entity: COLUMN`, the column that says who a row is "
        f"about, from the first version on. {ONLY_UNPROTECTED}"
    )


def _may_be_unchanged(run: Run) -> bool:
    """Whether the run may find that readers already see what the spec asks for."""
    event = run.ledger.current
    if event is None or run.force or run.ledger.pointer_problems:
        return False
    return event.spec_digest == spec_digest(run.spec)


def fingerprint(run: Run, session: Session) -> str | None:
    """A digest of all that a run decides by; None where there is no state yet, or no version, or a file cannot be read
    (opening the source says so)."""
    spec, policy = run.spec, run.policy
    if not isinstance(policy, Batched) or policy.state is None or run.ledger.current is None:
        return None
    try:
        files = _files(spec)
    except OSError:
        return None
    source = TableName.parse(spec.source.table)
    columns = session.columns(source)
    read = columns_read(spec)
    policy.seen = {
        "program": __version__,
        "spec": spec_digest(spec),
        "types": {name: column.type for name, column in columns.items() if name in read},
        "source": relation_mark(session, source, [name for name in columns if name not in read]),
        "tables": {str(table): relation_mark(session, table) for table in tables_read(spec) if table != source},
        "files": files,
    }
    with open_crosswalk(run.store, session) as crosswalk:
        return _fingerprint(crosswalk, spec, run.ledger, policy.seen)


def _fingerprint(crosswalk: Crosswalk, spec: Spec, ledger: LedgerState, seen: Mapping[str, Any]) -> str:
    """The same of what was seen, with what ledger and crosswalk have."""
    assert ledger.current is not None
    exclusions = crosswalk.tables.apart
    query = sa.select(exclusions.c.entity, exclusions.c.state).where(exclusions.c.release == spec.release)
    excluded = sorted(tuple(row.values()) for row in crosswalk.own.fetch(query).to_pylist())
    facts = {
        **seen,
        "current": [ledger.current.version, ledger.current.digest],
        "state": decided(crosswalk, spec.release, max(ledger.shown)),
        "apart": [list(row) for row in excluded],
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
    policy = run.policy
    if run.fingerprint is None or not isinstance(policy, Batched) or not policy.quiet or policy.dry:
        return
    remembered = {"fingerprint": run.fingerprint, "result": run.result().to_dict(), **policy.as_remembered()}
    with open_crosswalk(run.store) as crosswalk:
        _keep(crosswalk, run.spec.release, remembered)


def remember_next(run: Run) -> None:
    """Keep, once a version is published, what the next run comes to if it finds the source as this one has.

    By the same rules as `remember`: the next run would try no batch on the state that was published, and show nobody
    otherwise. What it decides by beside the source is in the fingerprint as the publication has left it, and nobody
    waits for a cohort, which closes because time goes by.
    """
    policy, spec = run.policy, run.spec
    if not isinstance(policy, Batched) or policy.seen is None:
        return
    ledger = LedgerState.read(run.store, spec.release)
    following = policy.next(ledger.current)
    if following is None or ledger.version != run.version:
        return
    later = copy(run)
    later.ledger, later.policy, later.unchanged, later.counted, later.taken = ledger, following, True, None, ()
    later.notes = [*run.plan.notes, *roles.judge(spec, run.store, run.identity), *policy.lasting]
    remembered = {"result": later.result().to_dict(), "counts": True, **following.as_remembered()}
    with open_crosswalk(run.store) as crosswalk:
        remembered["fingerprint"] = _fingerprint(crosswalk, spec, ledger, policy.seen)
        _keep(crosswalk, spec.release, remembered)


def _keep(crosswalk: Crosswalk, release: str, remembered: Mapping[str, Any]) -> None:
    """Keep it with marks of the tables that the next run compares digests of before it decides anything."""
    of_people = marks(crosswalk.own, crosswalk.tables, release)
    keep_result(crosswalk, release, {**remembered, **({} if of_people is None else {"marks": of_people})})


def is_unchanged(run: Run) -> bool:
    """Whether everything is as the run before left it. Then the run knows what that one came to."""
    policy, event = run.policy, run.ledger.current
    if run.fingerprint is None or run.force or event is None or not isinstance(policy, Batched) or policy.dry:
        return False
    with open_crosswalk(run.store) as crosswalk:
        remembered = result_of(crosswalk, run.spec.release)
    if remembered is None or remembered["fingerprint"] != run.fingerprint or run.ledger.pointer_problems:
        return False
    baseline, same_target = run.ledger.baseline, event.target == run.identity.target
    if baseline is None or not same_target or not run.target.intact(event.version or 0, Kept.of_text(baseline).columns):
        return False
    policy.recall(remembered)
    if remembered.pop("counts", False):
        policy.count_run()
        with open_crosswalk(run.store) as crosswalk:
            keep_result(crosswalk, run.spec.release, remembered)
    run.remembered = remembered["result"]
    run.version = event.version or 0
    return True


class TurnoverRefused(Refused):
    """Too many people left or came. confirm: what `versions.confirm` must say to publish from this very source."""

    confirm: str | None = None


def check_turnover(run: Run, source: SourceTable) -> Restart | None:
    """Raise TurnoverRefused where too many went or came and the spec does not confirm it; where it does, begin again.

    In a new snapshot, since this one would not see the event that is to be followed by the version's.
    """
    admission = run.policy.admission
    if not isinstance(admission, Admission):
        return None
    with open_crosswalk(run.store, source.session) as crosswalk:
        change = turnover(crosswalk, source, admission, run.ledger.digests)
    if change.too_many:
        digest = None if change.replaced else source_digest(source)
        if digest is None or run.spec.versions.confirm != digest:
            raise turnover_refusal(run.spec, change, digest)
        run.confirmed = digest
        return Restart(
            f"{_counts(change)}; confirmed by versions.confirm", lambda own: _confirm(run, own, change, digest)
        )
    if change.waiting is not None and not run.policy.dry:
        with open_crosswalk(run.store) as own:
            keep_turnover(own, run.spec.release, change)
    return None


def _confirm(run: Run, own: Crosswalk, change: Turnover, digest: str) -> None:
    event = Event(release=run.spec.release, state="confirmed", run=run.id, detail=change.detail, confirmed=digest)
    record_with(run.store, own, event)
    keep_turnover(own, run.spec.release, change)


def source_digest(source: SourceTable) -> str:
    """sha256 over the rows that are let in, in no order, of every column that a release reads, as hexadecimal text."""
    spec = source.spec
    names = dict.fromkeys([*spec.quasi_identifiers, *spec.sensitives, *spec.insensitives])
    if spec.entity is not None:
        names = dict.fromkeys([spec.entity, *names])
    columns = []
    for name in names:
        column = source.columns[name]
        columns.append(PublishedColumn(name, "identifying", column.compare_as, column.kind))
    return content_digest(source.session, source.rows_of(names).subquery("qblock_confirmed"), columns)


def turnover_refusal(spec: Spec, change: Turnover, digest: str | None) -> TurnoverRefused:
    """The refusal for the person who must look at the source: counts only. digest: of the source, where somebody may
    confirm it."""
    if digest is None:
        return TurnoverRefused(
            f"{spec.at('entity')}: {_counts(change)}. Nearly all people of a version do not leave at once: column "
            f"{spec.entity} has other values than before (another format, new numbers), or the table holds other "
            "people. Versions cannot be checked together then; nothing is published, and no line confirms it. Give "
            f"column {spec.entity} the values that it had (a view over the source that maps them is enough), or "
            "publish these people under another release name"
        )
    error = TurnoverRefused(
        f"{spec.at('entity')}: {_counts(change)} (limit: 20 %); nothing is published. If the values of column "
        f"{spec.entity} were changed (another format, new numbers), everybody looks new, and versions cannot be "
        "checked together any more. If these people really left and came, confirm this source in the spec: `versions: "
        f"{{confirm: {digest}}}`"
    )
    error.confirm = digest
    return error


def _counts(change: Turnover) -> str:
    gone = f"{change.went:,} of the {change.shown:,} people in version {change.version} are gone"
    return f"since the run before, {gone} and {change.came:,} are new"
