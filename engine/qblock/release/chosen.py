"""A decision of a run: the node, and everything that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from qblock.ledger.kept import Kept
from qblock.publish.copy import Copy, copy_of, label_codes
from qblock.publish.digest import content_digest
from qblock.publish.helpers import Facts, Shown, Version, labels_by_code, shown_of
from qblock.publish.kept_counts import plain_parts
from qblock.publish.recheck import needs_more
from qblock.search.assessment import Assessment
from qblock.search.task import Task
from qblock.source import SourceTable
from qblock.source.levels import leaf_marks, stated_attributes
from qblock.spec import Spec
from qblock.spec.model import RangesShown


@dataclass(frozen=True, eq=False)
class Chosen:
    """assessment: of the node; labels: for each quasi-identifier, the code of each label; copy: what is to be
    published; baseline: what the version is checked with later; digest: of the copy's content."""

    assessment: Assessment
    labels: list[dict[str, int]]
    copy: Copy
    baseline: Kept
    digest: str

    @classmethod
    def of(cls, spec: Spec, task: Task, assessment: Assessment, ranges: RangesShown) -> Chosen:
        """What follows from choosing a node; spec: the release's, whose node may not be pinned; ranges: how bounds are
        published."""
        counts, source = assessment.counts, task.source
        copy = copy_of(task, assessment, ranges)
        references = tuple(tuple(part.reference for part in parts) for parts in counts.parts)
        more = {
            number: counted
            for number, (requirement, parts) in enumerate(zip(spec.privacy, counts.parts, strict=True))
            if needs_more(spec, requirement) and (counted := plain_parts(parts, assessment.kept)) is not None
        }
        stated = stated_attributes(spec)
        marks = {h.attribute: leaf_marks(h) for h in source.origins if h.attribute in stated}
        marks |= {name: leaf_marks(v.hierarchy) for name, v in source.sensitives.items() if name in stated}
        recoding = None if source.recoding is None else source.recoding.stated
        baseline = Kept(copy.columns, references, more, marks, recoding, ranges)
        digest = content_digest(source.session, copy.query.subquery("qblock_copy"), copy.columns)
        return cls(assessment, label_codes(task, assessment.node), copy, baseline, digest)

    def shown(self, spec: Spec, source: SourceTable, number: int, before: int | None) -> Shown:
        """What the helper views show of a version, from what the search counted, which the recheck finds again in the
        copy; one statement, over columns that are published as they are. before: the version that readers see now."""
        counts, published = self.assessment.counts, self.assessment.kept
        columns = source.columns if source.recoding is None else source.recoding.before
        facts = Facts(
            columns=self.copy.columns,
            bounds={bound.attribute: bound for bound in self.copy.bounds},
            hierarchies={hierarchy.attribute: hierarchy for hierarchy in source.origins},
            types={name: column.kind for name, column in columns.items()},
            distinct=self._distinct(source),
        )
        labels = labels_by_code(self.labels, counts.keys[published], counts.rows[published])
        at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        return shown_of(spec, facts, labels, self.assessment.tightest, Version(number, at, before))

    def _distinct(self, source: SourceTable) -> dict[str, int]:
        columns = self.copy.columns
        names = [column.name for column in columns if column.role != "quasi_identifier" and not column.derived]
        if not names:
            return {}
        rows = self.copy.query.subquery("qblock_copy")
        counted = [sa.func.count(sa.distinct(rows.c[name])).label(f"n{i}") for i, name in enumerate(names)]
        (row,) = source.session.fetch(sa.select(*counted)).to_pylist()
        return {name: int(row[f"n{i}"]) for i, name in enumerate(names)}
