"""What the helper views show of the version that a run makes."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa

from qblock.publish.helpers import Facts, Shown, Version, labels_by_code, shown_of
from qblock.release.run import Run


def shown_by(run: Run) -> Shown:
    """From what the search counted, which the recheck finds again in the copy; one statement, over columns that are
    published as they are."""
    chosen, source = run.chosen, run.task.source
    copy, counts, kept = chosen.copy, chosen.assessment.counts, chosen.assessment.kept
    columns = source.columns if source.recoding is None else source.recoding.before
    facts = Facts(
        columns=copy.columns,
        bounds={bound.attribute: bound for bound in copy.bounds},
        hierarchies={hierarchy.attribute: hierarchy for hierarchy in source.origins},
        types={name: column.kind for name, column in columns.items()},
        distinct=_distinct(run),
    )
    labels = labels_by_code(chosen.labels, counts.keys[kept], counts.rows[kept])
    at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
    version = Version(run.version, at, None if run.current is None else run.current.version)
    return shown_of(run.spec, facts, labels, chosen.assessment.tightest, version)


def _distinct(run: Run) -> dict[str, int]:
    copy = run.chosen.copy
    names = [column.name for column in copy.columns if column.role != "quasi_identifier" and not column.derived]
    if not names:
        return {}
    rows = copy.query.subquery("qblock_copy")
    counted = [sa.func.count(sa.distinct(rows.c[name])).label(f"n{i}") for i, name in enumerate(names)]
    (row,) = run.task.source.session.fetch(sa.select(*counted)).to_pylist()
    return {name: int(row[f"n{i}"]) for i, name in enumerate(names)}
