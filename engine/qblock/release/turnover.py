"""A run in which more than a fifth of the people left or came continues only where somebody has confirmed its
source."""

from __future__ import annotations

from qblock.errors import Refused
from qblock.ledger.events import Event
from qblock.ledger.kept import PublishedColumn
from qblock.publish.digest import content_digest
from qblock.release.run import Run
from qblock.source import SourceTable
from qblock.spec import Spec
from qblock.versions.crosswalk import Crosswalk, open_crosswalk, record_with
from qblock.versions.turnover import Turnover, keep, turnover
from qblock.versions.waiting import StartOver


class TurnoverRefused(Refused):
    """Too many people left or came. confirm: what `versions.confirm` must say to publish from this very source."""

    confirm: str | None = None


def check_turnover(run: Run, source: SourceTable) -> None:
    """Raise TurnoverRefused where too many went or came and the spec does not confirm it, StartOver where it does."""
    if run.joint.admission is None:
        return
    with open_crosswalk(run.place, source.session) as crosswalk:
        change = turnover(crosswalk, source, run.joint.admission, run.published_digests)
    if change.too_many:
        digest = source_digest(source)
        if run.spec.versions.confirm != digest:
            raise refusal(run.spec, change, digest)
        run.confirmed = digest
        # In a new snapshot, since this one would not see the event that is to be followed by the version's.
        raise StartOver(
            f"{_counts(change)}; confirmed by versions.confirm", lambda own: _confirm(run, own, change, digest)
        )
    if change.waiting is not None and not run.joint.dry:
        with open_crosswalk(run.place) as own:
            keep(own, run.spec.release, change)


def _confirm(run: Run, own: Crosswalk, change: Turnover, digest: str) -> None:
    event = Event(release=run.spec.release, state="confirmed", run=run.id, detail=change.detail, confirmed=digest)
    record_with(run.place, own, event)
    keep(own, run.spec.release, change)


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


def refusal(spec: Spec, change: Turnover, digest: str) -> TurnoverRefused:
    """The refusal for the person who must look at the source: counts only."""
    error = TurnoverRefused(
        f"{spec.at('entity')}: {_counts(change)} (limit: 20 %). Where the values of column {spec.entity} were "
        "changed (another format, new numbers), everybody looks new, and versions cannot be checked together any more; "
        "nothing is published. If these people really left and came, confirm this source in the spec: "
        f"`versions: {{confirm: {digest}}}`"
    )
    error.confirm = digest
    return error


def _counts(change: Turnover) -> str:
    gone = f"{change.went:,} of the {change.shown:,} people in version {change.version} are gone"
    return f"since the run before, {gone} and {change.came:,} are new"
