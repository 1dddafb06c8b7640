"""A decision of a run: the node, and everything that follows from it."""

from __future__ import annotations

from dataclasses import dataclass

from qblock.ledger.kept import Kept
from qblock.publish.copy import Copy, copy_of, label_codes
from qblock.publish.digest import content_digest
from qblock.publish.kept_counts import plain_parts
from qblock.publish.recheck import needs_more
from qblock.search.assessment import Assessment
from qblock.search.task import Task
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
