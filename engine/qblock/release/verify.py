"""Verification: what is published, recounted through the view and compared with the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa

from qblock.engines.faults import Unreachable
from qblock.engines.kept_sessions import kept_sessions
from qblock.engines.tables import TableName
from qblock.errors import Busy, QblockError, Refused
from qblock.ledger.events import Guarantee, PublishedVersion, Stage
from qblock.ledger.kept import Kept, kept_digest
from qblock.ledger.reader import LedgerReader
from qblock.ledger.store import Store
from qblock.ledger.stores import store_of
from qblock.models import Tightest
from qblock.publish import kept_counts
from qblock.publish.copy import new_rows
from qblock.publish.digest import content_digest
from qblock.publish.helpers import counted_labels, names
from qblock.publish.recheck import Counted, count_again
from qblock.publish.spread import is_spread_of
from qblock.publish.targets import Rows, Target, target_of
from qblock.release import private_state, roles
from qblock.release.job import retired as retired_refusal
from qblock.release.result import seen_in_words
from qblock.results.release import Verified
from qblock.search.assessment import requirements_json
from qblock.source.levels import leaf_marks, stated_hierarchies
from qblock.spec import Requirement, Spec, spec_digest

LISTED = ("label", "low", "high", "rows")
CELL = ("label", "low", "high", "middle", "share")


@kept_sessions()
def verify(spec: Spec, expected_head: str | None = None) -> Verified:
    """Recompute guarantees and content digest from what readers see, and check the ledger's chain.

    expected_head: the last head digest that was kept elsewhere; it shows whether the ledger's end was cut. Problems are
    in the result (`raise_problems`). Raises Refused where the release has never been published, Busy.
    """
    store = store_of(spec)
    target = target_of(spec, store)
    with store:
        private = _private_state(spec, store, target)
        with store.read() as reader:
            problems = reader.verify_chain(spec.release, expected_head) + reader.verify_pointer(spec.release) + private
            if not problems and reader.head(spec.release) is None:
                raise Refused(f"release {spec.release} has no ledger: it was never published")
            current = _current(reader, spec.release, problems)
            head = reader.head(spec.release) if not problems else None
            retired = reader.retired_by(spec.release) if current is None and not problems else None
            text = reader.reference(spec.release, current.version) if current else None
            releases = reader.releases() if current else []
    checks = _Checks(spec, target, problems)
    if current is None:
        if retired is not None and not problems and _still_shown(target):
            problems.append(f"the release was retired, and {target.view} still shows rows")
        elif not problems:
            none = f"no version of release {spec.release} is published"
            raise Refused(none if retired is None else retired_refusal(spec.release, retired))
    else:
        checks.published(current, text)
        problems += target.find_exposures()
        problems += roles.find_problems(spec, store, current.event, releases)
    fields = {
        "status": "failed" if problems else "verified",
        "release": spec.release,
        "version": current.version if current else None,
        "view": target.view,
        "rows": checks.rows,
        "digest": checks.digest,
        "ledger_head": head,
        "tightest": requirements_json(checks.computed, checks.tightest),
        "not_recomputed": checks.not_recomputed,
        "recomputed_privately": checks.privately,
        "problems": list(dict.fromkeys(problems)),
        "in_words": seen_in_words(spec, checks.node, checks.counted, checks.map),
    }
    return Verified.model_validate(fields)


def _private_state(spec: Spec, store: Store, target: Target) -> list[str]:
    """What is published or kept but unknown to the ledger, reported once where the pointer row shows it too."""
    try:
        return private_state.compare(spec, store, target, joint=spec.checked_together, quick=False).problems
    except (Unreachable, Busy):
        raise
    except QblockError as error:
        return [str(error)]


def _still_shown(target: Target) -> bool:
    try:
        with target.published() as rows:
            return bool(rows.session.scalar(sa.select(sa.func.count()).select_from(rows.rows)))
    except Refused:
        return False


def _current(reader: LedgerReader, release: str, problems: list[str]) -> PublishedVersion | None:
    try:
        return reader.current(release)
    except QblockError as error:
        problems.append(str(error))
        return None


class _Checks:
    def __init__(self, spec: Spec, target: Target, problems: list[str]) -> None:
        self.spec = spec
        self.target = target
        self.problems = problems
        self.rows = 0
        self.digest: str | None = None
        self.computed: list[Requirement] = []
        self.tightest: list[Tightest] = []
        self.not_recomputed: list[str] = []
        self.privately: list[str] = []
        self.node: dict[str, int] = {}
        self.map: Mapping[str, Any] | None = None
        self.counted: Counted | None = None

    def published(self, current: PublishedVersion, text: str | None) -> None:
        """Compare what readers see with the event that published it."""
        event = current.event
        if text is None:
            self.problems.append(f"the quantities kept with version {current.version} are missing")
            return
        if kept_digest(text) != event.reference_digest:
            self.problems.append(f"the quantities kept with version {current.version} were altered")
            return
        baseline = Kept.of_text(text)
        if not self.target.intact(current.version, baseline.columns):
            self.problems.append(
                self.target.difference(current.version, baseline.columns, current.event.content_digest)
            )
        if event.spec_digest != spec_digest(self.spec):
            # Its parameters are not those that the version was checked for; content and chain still can be.
            self.not_recomputed.append("every model: the spec has changed since the version was published")
        self._hierarchies(current, baseline)
        try:
            with self.target.published() as rows:
                self._content(current, baseline, rows)
        except Unreachable:
            raise
        except QblockError as error:
            self.problems.append(str(error))

    def _hierarchies(self, current: PublishedVersion, baseline: Kept) -> None:
        """Hierarchies that are stated in files and tables must be those that the version was made with, except for new
        leaves."""
        try:
            now = stated_hierarchies(self.spec) if baseline.hierarchies else {}
        except QblockError as error:
            self.problems.append(f"the hierarchies of version {current.version} cannot be read: {error}")
            return
        self.problems.extend(
            f"the hierarchy of {name} is not the one that version {current.version} was made with"
            for name, marks in baseline.hierarchies.items()
            if name not in now or not set(marks) <= set(leaf_marks(now[name]))
        )

    def _content(self, current: PublishedVersion, baseline: Kept, rows: Rows) -> None:
        missing = [c.name for c in baseline.columns if c.name not in rows.rows.c]
        if missing or len(rows.rows.c) != len(baseline.columns):
            self.problems.append(f"the columns of {self.target.view} are not those that were published")
            return
        self.rows = int(rows.session.scalar(sa.select(sa.func.count()).select_from(rows.rows)))
        self.digest = content_digest(rows.session, rows.rows, baseline.columns)
        if self.rows != current.event.rows_published:
            self.problems.append(f"{self.rows} rows are published, and the ledger says {current.event.rows_published}")
        if self.digest != current.event.content_digest:
            self.problems.append("the published content was altered: its digest is not the one in the ledger")
        if self.not_recomputed:
            return
        try:
            counted = count_again(self.spec, rows.session, rows.rows, baseline.columns, baseline.references)
        except Refused as error:
            self.problems.append(str(error))
            return
        self._helpers(current.version, baseline, rows, counted)
        self.node = dict(zip(current.event.quasi_identifiers or (), current.event.node or (), strict=False))
        self.map, self.counted = baseline.map, counted
        for number, (requirement, tightest) in enumerate(zip(self.spec.privacy, counted.tightest, strict=True)):
            stage: Stage = "recheck"
            if tightest is None and number in baseline.counts:
                tightest, stage = self._privately(number, requirement, baseline, counted), "search"
            if tightest is None:
                self.not_recomputed.append(requirement.model.name)
                continue
            self.computed.append(requirement)
            self.tightest.append(tightest)
            if not tightest.holds:
                self.problems.append(f"the published rows do not satisfy {requirement.model.name}")
            for guarantee in Guarantee.of(requirement, tightest, stage):
                if guarantee not in current.guarantees:
                    self.problems.append(
                        f"{guarantee.model} satisfies {guarantee.parameter} = {guarantee.satisfied}, "
                        "and the ledger says something else"
                    )

    def _helpers(self, version: int, baseline: Kept, rows: Rows, counted: Counted) -> None:
        """Labels, rows and new rows as helper views say them, and where rows lie."""
        named = names(self.spec.view, self.spec.publish.names)
        name = TableName(self.spec.publish.schema, named["version"])
        for since in (column.name for column in baseline.columns if column.role == "since"):
            new = int(rows.session.scalar(sa.select(new_rows(rows.rows.c[since], version)).select_from(rows.rows)))
            if rows.session.fetch(sa.select(rows.session.relation(name).c.rows_new)).to_pylist() != [{"rows_new": new}]:
                self.problems.append(f"the new rows that {name} counts are not those that are published")
        name = TableName(self.spec.publish.schema, named["levels"])
        levels = rows.session.relation(name)
        columns = (levels.c[column] for column in ("column_name", *LISTED))
        said = rows.session.fetch(sa.select(*columns)).to_pylist()
        listed = {(row["column_name"], row["label"]): row["rows"] for row in said}
        labels = counted_labels(counted.labels, counted.rows, len(self.spec.quasi_identifiers))
        pairs = zip(self.spec.quasi_identifiers, labels, strict=True)
        expected = {(column, label): n for column, own in pairs for label, n in own.items()}
        if listed != expected:
            self.problems.append(f"the labels that {name} lists are not those that are published")
        self._spread(TableName(self.spec.publish.schema, named["spread"]), rows, said)

    def _spread(self, name: TableName, rows: Rows, labels: Sequence[Mapping[str, Any]]) -> None:
        """Where rows lie within their labels, as the helper view says. labels: those that are listed."""
        cells = rows.session.fetch(sa.select(*rows.session.relation(name).c)).to_pylist()
        for column in self.spec.quasi_identifiers:
            own = [tuple(row[key] for key in LISTED) for row in labels if row["column_name"] == column]
            spread = [tuple(row[key] for key in CELL) for row in cells if row["column_name"] == column]
            if not is_spread_of(spread, own):
                self.problems.append(f"the rows of {column} do not lie within its labels as {name} says")

    def _privately(self, number: int, requirement: Requirement, baseline: Kept, counted: Counted) -> Tightest:
        """A requirement on the counts kept with the version, whose blocks must be those that are published."""
        parts = baseline.counts[number]
        self.privately.append(requirement.model.name)
        sizes, published = kept_counts.sizes(parts), np.sort(counted.rows)
        if len(requirement.sensitive) > 1:
            same = True  # the other attributes split the blocks
        elif self.spec.count == "entities":
            same = len(sizes) == len(published)
        else:
            same = np.array_equal(sizes, published)
        if not same:
            self.problems.append(f"the private counts of {requirement.model.name} are not of the published blocks")
        return kept_counts.verdict(requirement, parts, baseline.references[number])
