"""Hierarchies that were edited since the version before."""

from __future__ import annotations

import json

import pyarrow as pa
import sqlalchemy as sa

from qblock.spec import Spec
from qblock.versions.crosswalk import Crosswalk, fresh_name
from qblock.versions.episodes import PUBLISHED
from qblock.versions.versions import Candidate, recorded


def moved_by_edits(crosswalk: Crosswalk, spec: Spec, candidate: Candidate) -> tuple[list[str], int]:
    """The attributes whose hierarchies differ from those of the release's newest version, and how many people are shown
    under another label because of it: of those whom both versions show, where both have the same node."""
    earlier = [v for v in recorded(crosswalk, spec.release) if v.key != candidate.about.key]
    if not earlier:
        return [], 0
    before, now = json.loads(earlier[-1].hierarchies), json.loads(candidate.about.hierarchies)
    changed = [name for name in now if name in before and now[name] != before[name]]
    if not changed or (earlier[-1].node, earlier[-1].quasi_identifiers) != (
        candidate.about.node,
        spec.quasi_identifiers,
    ):
        return changed, 0
    t, key = crosswalk.tables, earlier[-1].key
    labels = crosswalk.own.load(
        fresh_name(),
        pa.table(
            {
                "block": pa.array(range(len(candidate.labels)), pa.int64()),
                "label": pa.array(candidate.labels, pa.string()),
            }
        ),
    )
    same_block = sa.and_(
        t.block.c.release == t.row.c.release, t.block.c.version == t.row.c.version, t.block.c.block == t.row.c.block
    )
    old = t.row.join(t.block, same_block)
    both = old.join(candidate.rows, candidate.rows.c.entity == t.row.c.entity).join(
        labels, labels.c.block == candidate.rows.c.block
    )
    query = (
        sa.select(sa.func.count())
        .select_from(both)
        .where(
            t.row.c.release == key.release,
            t.row.c.version == key.version,
            t.row.c.shown == PUBLISHED,
            candidate.rows.c.shown == PUBLISHED,
            t.block.c.label != labels.c.label,
        )
    )
    return changed, int(crosswalk.own.scalar(query))
