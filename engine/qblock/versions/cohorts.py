"""The size at which people of a block are shown, or leave, together."""

from __future__ import annotations

import sqlalchemy as sa

from qblock.errors import InputError
from qblock.lattice import Node
from qblock.source import SourceTable
from qblock.spec import Spec
from qblock.versions.crosswalk import Crosswalk
from qblock.versions.versions import coded, entity_of, least_rows


def check_cohorts(spec: Spec) -> None:
    """Raise InputError for a size that is smaller than any block must be."""
    if spec.checked_together:
        cohort_size(spec)


def cohort_size(spec: Spec) -> int:
    """The size that a spec declares, or the least that it could. Raises InputError for one that no block may have."""
    least, declared = least_rows(spec.privacy), spec.versions.cohort
    if declared == "auto":
        return least
    if declared < least:
        raise InputError(
            f"{spec.at('versions', 'cohort')}: newcomers wait until there are `cohort` of them; give a number of at "
            f"least {least}, the rows that every block must have, or `auto`; several times as many make it likely that "
            "a cohort passes"
        )
    return declared


def in_blocks(
    crosswalk: Crosswalk, source: SourceTable, node: Node, people: sa.FromClause
) -> dict[tuple[int, ...], tuple[str, ...]]:
    """The digests of the people of another relation in each block of a node."""
    joined, codes = coded(source, node)
    columns = [entity_of(crosswalk, source).label("entity"), *(c.label(f"q{i}") for i, c in codes.items())]
    rows = sa.select(*columns).select_from(joined).subquery("rows")
    query = sa.select(*rows.c).join(people, people.c.entity == rows.c.entity).order_by(rows.c.entity)
    blocks: dict[tuple[int, ...], list[str]] = {}
    for row in source.session.fetch(query).to_pylist():
        blocks.setdefault(tuple(int(row.get(f"q{i}", 0)) for i in range(len(node))), []).append(row["entity"])
    return {key: tuple(entities) for key, entities in blocks.items()}
