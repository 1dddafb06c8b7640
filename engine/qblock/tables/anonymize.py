"""A table anonymized in memory: searched, copied and counted again by the same code as a release."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pyarrow as pa

from qblock.blocks import Reference
from qblock.errors import InputError, Refused
from qblock.publish.copy import PublishedColumn, copy_of, disclosure, label_codes, nearly_unique
from qblock.publish.digest import content_digest
from qblock.publish.recheck import Counted, count_again, differences
from qblock.release.run import NOT_PROTECTED
from qblock.release.turnover import source_digest
from qblock.search.assessment import Assessment, metrics_json, requirements_json
from qblock.search.result import refusal
from qblock.search.run import open_task, recoded, run_search
from qblock.spec import Spec
from qblock.tables.results import Anonymized, Guarantee
from qblock.warehouse.duckdb import DuckdbWarehouse
from qblock.warehouse.protocol import Warehouse

ONE_PUBLICATION = (
    "this is one publication: it is checked by itself and with no other one, so whoever holds two of the same people "
    "may learn more than each guarantees; to publish a changing table again, make it a release with `entity`"
)


def anonymized(spec: Spec, warehouse: Warehouse) -> Anonymized:
    """The table of a spec as it may be published once. Closes the warehouse.

    Raises Refused where no node satisfies the spec, or what was made fails its own check, and InputError.
    """
    with ExitStack() as stack:
        if spec.map_version is not None:
            stack.callback(warehouse.close)
            raise InputError("search.node: a table has no versions; leave it out, and a map is searched for")
        spec = replace(spec, versions=replace(spec.versions, joint="none"))
        task = stack.enter_context(open_task(spec, name_values=False, warehouse=warehouse))
        names = nearly_unique(task)
        if names:
            raise disclosure(spec, names)
        result = run_search(task)
        chosen = result.chosen
        if chosen is None:
            raise refusal(result)
        warnings = list(task.warnings)
        source = source_digest(task.source)
        if result.recoded is not None:
            task = stack.enter_context(recoded(task, result.recoded))
            chosen = task.assess(task.lattice.bottom)
        labels, copy = label_codes(task, chosen.node), copy_of(task, chosen)
        session = task.source.session
        digest = content_digest(session, copy.query.subquery("qblock_copy"), copy.columns)
        references = [[part.reference for part in parts] for parts in chosen.counts.parts]
        # By what is published: the order of the source would link its rows.
        table = session.fetch(copy.ordered)
        protected = task.protected or (not chosen.suppressed and result.choice != "minimal")
        warnings = list(dict.fromkeys([*warnings, *task.warnings]))
    counted = _counted_again(spec, table, copy.columns, references, chosen, labels, digest)
    tightest = [again or first for again, first in zip(counted.tightest, chosen.tightest, strict=True)]
    alone = [q.model.name for q, t in zip(spec.privacy, counted.tightest, strict=True) if t is None]
    notes = [ONE_PUBLICATION, *warnings, *([] if protected else [NOT_PROTECTED])]
    if alone:
        notes.append(f"not computed from the anonymized rows, which do not suffice: {', '.join(dict.fromkeys(alone))}")
    answer: dict[str, Any] = {
        "rows": table.num_rows,
        "suppressed": chosen.suppressed,
        "node": {} if result.recoded is not None else dict(zip(spec.quasi_identifiers, chosen.node, strict=True)),
        "boxes": None if result.recoded is None else len(result.recoded.boxes),
        "tightest": requirements_json(spec.privacy, tightest),
        "metrics": metrics_json(result.metrics),
        "minimal": [list(node) for node in result.minimal],
        "choice": result.choice,
        "why": result.why,
        "protected": protected,
        "digest": digest,
        "source_digest": source,
        "notes": list(dict.fromkeys(notes)),
    }
    return Anonymized(
        table=table,
        levels=tuple(answer["node"].items()),
        rows=answer["rows"],
        suppressed=chosen.suppressed,
        guarantees=tuple(map(Guarantee.of, answer["tightest"])),
        metrics=tuple(answer["metrics"].items()),
        minimal=tuple(result.minimal),
        choice=result.choice,
        why=result.why,
        protected=protected,
        digest=digest,
        source_digest=source,
        notes=tuple(answer["notes"]),
        answer=json.dumps(answer),
    )


def _counted_again(
    spec: Spec,
    table: pa.Table,
    columns: Sequence[PublishedColumn],
    references: Sequence[Sequence[Reference]],
    chosen: Assessment,
    labels: Sequence[dict[str, int]],
    digest: str,
) -> Counted:
    """The guarantees of the very rows that are returned, in a session that has nothing else."""
    warehouse = DuckdbWarehouse(None, spec.search.memory_limit)
    try:
        with warehouse.snapshot() as session:
            rows = session.load("qblock_anonymized", table)
            counted = count_again(spec, session, rows, columns, references)
            problems = differences(spec, counted, chosen, labels)
            if content_digest(session, rows, columns) != digest:
                problems.append("its content is not what was read from the source")
    finally:
        warehouse.close()
    if problems:
        raise Refused("the anonymized table failed its check, nothing is returned: " + "; ".join(problems))
    return counted
