"""The people who close a batch of newcomers, by block: from what the first version shows."""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa

from qblock.spec import Spec
from qblock.versions.batching.cohort import Counted, Sizes, Values, size_of, size_of_bundles
from qblock.versions.batching.rules import Rules
from qblock.versions.batching.state import Block
from qblock.versions.crosswalk import Crosswalk
from qblock.versions.episodes import PUBLISHED
from qblock.versions.lag.memory import Kept, block_of
from qblock.versions.recorded import RecordedVersion
from qblock.versions.texts import decoded, kept_sets


def sizes_of(crosswalk: Crosswalk, spec: Spec, kept: Kept, first: RecordedVersion, rules: Rules) -> Sizes:
    """The sizes of a release's batches of newcomers, as far as they are known."""
    references = cache(lambda: first.references)
    size = size_of_bundles if spec.bundles else size_of
    cohort = spec.versions.cohort

    def sized(counts: Counted) -> int | None:
        return size(spec, references(), rules.k, counts)

    return Sizes(
        lambda: _first_counts(crosswalk, first, spec.bundles),
        sized,
        rules.k,
        declared=None if cohort == "auto" else cohort,
        hidden=kept.hidden,
        known=kept.sizes,
        whole=kept.whole,
    )


def _first_counts(crosswalk: Crosswalk, first: RecordedVersion, bundles: bool) -> dict[Block, dict[Values, int]]:
    """The people by sensitive values whom each block of the first version shows."""
    t = crosswalk.tables
    key = first.key
    same = sa.and_(
        t.block.c.release == t.row.c.release, t.block.c.version == t.row.c.version, t.block.c.block == t.row.c.block
    )
    query = (
        sa.select(t.block.c.label, t.row.c.value, sa.func.count().label("n"))
        .select_from(t.row.join(t.block, same))
        .where(t.row.c.release == key.release, t.row.c.version == key.version, t.row.c.shown == PUBLISHED)
        .group_by(t.block.c.label, t.row.c.value)
    )
    counts: dict[Block, dict[Values, int]] = {}
    for row in crosswalk.own.fetch(query).to_pylist():
        values = kept_sets(row["value"], len(first.sensitive)) if bundles else decoded(row["value"])
        block = counts.setdefault(block_of(row["label"]), {})
        block[values] = block.get(values, 0) + int(row["n"])
    return counts
