"""What a run of the release job decides to publish, and everything that follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from qblock.ledger.kept import Kept
from qblock.publish.copy import REPEATED, Copy, copy_of, label_codes, new_rows
from qblock.publish.digest import content_digest
from qblock.publish.helpers import Facts, Shown, Version, labels_by_code, shown_of
from qblock.publish.kept_counts import plain_parts
from qblock.publish.levels import Leaves
from qblock.publish.recheck import needs_more
from qblock.search.assessment import Assessment
from qblock.search.task import Task
from qblock.source import SourceTable
from qblock.source.levels import leaf_marks, stated_attributes
from qblock.spec import Spec
from qblock.spec.sections import RangesShown


def _rests(source: SourceTable) -> dict[str, Leaves]:
    """The leaves of labels that a recoding map made, by quasi-identifier."""
    if source.recoding is None:
        return {}
    return dict(zip(source.quasi_identifiers, source.recoding.rests(source.recoding.tree.ladders), strict=True))


@dataclass(frozen=True, eq=False)
class Chosen:
    """A decision of a run, and everything that follows from it. assessment: of the node; labels: for each
    quasi-identifier, the code of each label; copy: what is to be published; baseline: what the version is checked with
    later; digest: of the copy's content."""

    assessment: Assessment
    labels: list[dict[str, int]]
    copy: Copy
    baseline: Kept
    digest: str

    @classmethod
    def of(cls, spec: Spec, task: Task, assessment: Assessment, ranges: RangesShown, version: int) -> Chosen:
        """What follows from choosing a node; spec: the release's, whose node may not be pinned; ranges: how bounds are
        published."""
        counts, source = assessment.counts, task.source
        copy = copy_of(task, assessment, ranges, version)
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
        baseline = Kept(copy.columns, references, more, marks, recoding, ranges, spec.coarser, spec.replaced)
        rows, number = (copy.query, None) if copy.different is None else (copy.different, REPEATED)
        digest = content_digest(source.session, rows.subquery("qblock_copy"), copy.columns, number=number)
        return cls(assessment, label_codes(task, assessment.node), copy, baseline, digest)

    def shown(
        self,
        spec: Spec,
        source: SourceTable,
        number: int,
        before: int | None,
        since: Sequence[Mapping[str, int]],
    ) -> Shown:
        """What the helper views show of a version, from what the search counted, which the recheck finds again in the
        copy; one statement, over columns that are published as they are and the versions of rows. before: the version
        that readers see now; since: as of `shown_of`."""
        counts, published = self.assessment.counts, self.assessment.kept
        columns = source.columns if source.recoding is None else source.recoding.before
        distinct, new = self._distinct(source, number)
        facts = Facts(
            columns=self.copy.columns,
            bounds={bound.attribute: bound for bound in self.copy.bounds},
            hierarchies={hierarchy.attribute: hierarchy for hierarchy in source.origins},
            types={name: column.kind for name, column in columns.items()},
            distinct=distinct,
            rests=_rests(source),
        )
        labels = labels_by_code(self.labels, counts.keys[published], counts.rows[published])
        at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        return shown_of(spec, facts, labels, self.assessment.tightest, Version(number, at, before, new), since)

    def _distinct(self, source: SourceTable, number: int) -> tuple[dict[str, int], int | None]:
        """How many values each column that is published as it is has in the copy, and how many of its rows are first
        shown by the version of this number; None where rows do not say so."""
        columns = self.copy.columns
        names = [column.name for column in columns if column.role != "quasi_identifier" and not column.derived]
        since = [column.name for column in columns if column.role == "since"]
        if not names and not since:
            return {}, None
        rows = self.copy.query.subquery("qblock_copy")
        counted = [sa.func.count(sa.distinct(rows.c[name])).label(f"n{i}") for i, name in enumerate(names)]
        counted += [new_rows(rows.c[name], number).label("new") for name in since]
        (row,) = source.session.fetch(sa.select(*counted)).to_pylist()
        return {name: int(row[f"n{i}"]) for i, name in enumerate(names)}, int(row["new"]) if since else None
