"""A table generalized until the privacy models hold, counted again before it is returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from qblock.blocks import Reference
from qblock.checks import refuse_dependencies, refuse_single_rows
from qblock.engines.driver_errors import explained
from qblock.engines.duckdb.adapter import DuckdbWarehouse
from qblock.engines.session import Warehouse
from qblock.engines.tables import TableName
from qblock.errors import InputError, Refused, hide_tracebacks
from qblock.profiling.first_spec import default_entries
from qblock.profiling.profiles import Table
from qblock.publish.bounds import source_bounds
from qblock.publish.copy import Copy, copy_of, label_codes
from qblock.publish.digest import content_digest
from qblock.publish.recheck import Counted, count_again, differences
from qblock.release.maps import FIRST
from qblock.release.prechecks import source_digest
from qblock.release.run import NOT_PROTECTED
from qblock.results.tables import Anonymized
from qblock.search.assessment import Assessment, metrics_json, requirements_json
from qblock.search.result import refusal
from qblock.search.run import open_task, recoded, run_search
from qblock.spec import Spec
from qblock.tables.frames import within_calendar
from qblock.tables.request import Names, TableRequest, attributes_of, named, with_hierarchies, written

SUPPRESS = {"hierarchy": "suppress"}
ONE_PUBLICATION = (
    "this is one publication, checked by itself and with no other one. People who hold two publications of the same "
    "people may learn more than each guarantees. To publish a changing table again, make it a release with `entity`"
)


@partial(hide_tracebacks, explain=explained)
def anonymize(
    data: Any,
    quasi_identifiers: Names,
    sensitive: Names = (),
    *,
    privacy: Sequence[Mapping[str, Any]],
    insensitive: Sequence[str] = (),
    entity: str | None = None,
    count: str | None = None,
    suppression_limit: Any = None,
    search: Mapping[str, Any] | None = None,
    types: Mapping[str, str] | None = None,
    ranges: str | None = None,
    names: Mapping[str, str] | None = None,
) -> Anonymized:
    """A table generalized until the privacy models hold, and counted again before it is returned.

    data: a DataFrame of pandas, polars or Spark, an Arrow table, or the path of a Parquet or CSV file (or a pattern of
    several); `frame` of the result is of the same library, of pandas for files. The words are those of a spec.
    quasi_identifiers: a mapping of columns to hierarchies ({"age": {"ranges": [5, 10]}, "sex": "suppress"}) or to whole
    entries ({"age": {"hierarchy": "suppress", "nulls": "top"}}). A list of columns takes the hierarchies that `qblock
    init` proposes; `quasi_identifiers` of the result is the mapping. sensitive: a list of columns, or a mapping to
    entries; privacy: the models, which must all hold; insensitive: columns that are published as they are; a column
    that is not named is not published. entity, count, suppression_limit, search: as in a spec. types: of a CSV file's
    columns that are not text. Hierarchies in files start at the working directory.

    The columns are those of the view of a release: beside the labels of numbers and dates are their bounds (age_low,
    age_high; born_from, born_until). ranges: as `publish.ranges` of a spec (`text` leaves them out); names: as
    `publish.names`, other names for them. An open end is infinite, and of dates the first or last day of Python.

    The result's `frame` has an index of its own and rows in the order of what it shows: those of `data` would link its
    rows to the source's. NaN, NA, NaT and None are NULL.

    Each call is one publication: whoever holds two of the same people may learn more than each guarantees. Do not
    anonymize a changing table again and again; make it a release, whose versions are checked together.

    Raises Refused where no generalization satisfies what is asked (or the table is empty), InputError for what is wrong
    with the question or the data.
    """

    request = TableRequest("qblock.anonymize()", data, types=types, databases=False)
    listed = isinstance(quasi_identifiers, list | tuple)
    mapping = _with_defaults(request, quasi_identifiers, entity) if listed else quasi_identifiers
    known = with_hierarchies(request.caller, mapping)
    attributes = attributes_of(
        request.caller,
        {
            "quasi_identifier": known,
            "sensitive": named(request.caller, "sensitive", sensitive),
            "insensitive": named(request.caller, "insensitive", insensitive),
        },
    )
    publish = {key: given for key, given in {"ranges": ranges, "names": names}.items() if given is not None}
    spec = request.spec(
        attributes,
        privacy,
        entity=entity,
        count=count,
        suppression_limit=suppression_limit,
        search=search,
        publish=publish or None,
    )
    return _anonymized(
        spec, request.warehouse(spec), library=request.library, spark=request.spark, quasi_identifiers=written(known)
    )


def _with_defaults(request: TableRequest, columns: Names, entity: str | None) -> dict[str, Any]:
    """The columns as a mapping to entries, from the values of these columns alone.

    entity: the column that says who a row is about. Raises InputError for a column that the table lacks, and for one
    whose values suggest no hierarchy.
    """
    names = [name for name, _ in named(request.caller, "quasi_identifiers", columns)]
    looked_at = [(name, {**SUPPRESS, "nulls": "top"}) for name in names]
    about: list[tuple[str, Any]] = [(entity, {})] if isinstance(entity, str) and entity not in names else []
    attributes = attributes_of(request.caller, {"quasi_identifier": looked_at, "identifying": about})
    spec = request.spec(attributes, [{"k_anonymity": {"k": 1}}])
    warehouse = request.warehouse(spec)
    try:
        with warehouse.snapshot() as session:
            table = Table(session, TableName.parse(spec.source.table))
            entries = default_entries(table, names, entity if about else None)
    finally:
        warehouse.close()
    _refuse_none(request.caller, entries)
    return entries


def _refuse_none(caller: str, entries: Mapping[str, Any]) -> None:
    """Raise InputError where a column has no default."""
    missing = [name for name, entry in entries.items() if entry is None]
    if missing:
        mapping = {name: SUPPRESS if entry is None else entry for name, entry in entries.items()}
        raise InputError(
            f"{caller}: quasi_identifiers: the values of {', '.join(missing)} suggest no hierarchy; write one in a "
            f"mapping: quasi_identifiers={mapping!r}"
        )


def _anonymized(spec: Spec, warehouse: Warehouse, **request: Any) -> Anonymized:
    """The table of a spec as it may be published once. request: what the answer says of it. Closes the warehouse.

    Raises Refused where no node satisfies the spec, or what was made fails its own check, and InputError.
    """
    with ExitStack() as stack:
        if spec.map_version is not None:
            stack.callback(warehouse.close)
            raise InputError("search.node: a table has no versions; leave it out, and a map is searched for")
        if spec.entity is not None:  # no version comes after it that would be checked beside it
            spec = replace(spec, versions=replace(spec.versions, joint="none"))
        task = stack.enter_context(open_task(spec, name_values=False, warehouse=warehouse))
        refuse_single_rows(task)
        ranges = spec.publish.ranges or FIRST
        source_bounds(task.source, ranges)  # before anything takes time
        result = run_search(task)
        chosen = result.chosen
        if chosen is None:
            raise refusal(result)
        refuse_dependencies(task, result)
        warnings = list(task.warnings)
        source = source_digest(task.source)
        if result.recoded is not None:
            task = stack.enter_context(recoded(task, result.recoded))
            chosen = task.assess(task.lattice.bottom)
        labels, copy = label_codes(task, chosen.node), copy_of(task, chosen, ranges)
        session = task.source.session
        digest = content_digest(session, copy.query.subquery("qblock_copy"), copy.columns)
        references = [[part.reference for part in parts] for parts in chosen.counts.parts]
        # By what is published: the order of the source would link its rows.
        table = session.fetch(copy.ordered)
        protected = task.protected or (not chosen.suppressed and result.choice != "minimal")
        warnings = list(dict.fromkeys([*warnings, *task.warnings]))
    counted = _counted_again(spec, table, copy, references, chosen, labels, digest)
    tightest = [again or first for again, first in zip(counted.tightest, chosen.tightest, strict=True)]
    alone = [q.model.name for q, t in zip(spec.privacy, counted.tightest, strict=True) if t is None]
    notes = [ONE_PUBLICATION, *warnings, *([] if protected else [NOT_PROTECTED])]
    if alone:
        notes.append(f"not computed from the anonymized rows, which do not suffice: {', '.join(dict.fromkeys(alone))}")
    return Anonymized.model_validate(
        {
            "table": within_calendar(table, [column.name for bound in copy.bounds for column in bound.columns]),
            "rows": table.num_rows,
            "suppressed": chosen.suppressed,
            **request,
            "node": {} if result.recoded is not None else dict(zip(spec.quasi_identifiers, chosen.node, strict=True)),
            "boxes": None if result.recoded is None else len(result.recoded.boxes),
            "tightest": requirements_json(spec.privacy, tightest),
            "metrics": metrics_json(result.metrics),
            "minimal": result.minimal,
            "choice": result.choice,
            "why": result.why,
            "protected": protected,
            "digest": digest,
            "source_digest": source,
            "notes": list(dict.fromkeys(notes)),
        }
    )


def _counted_again(
    spec: Spec,
    table: pa.Table,
    copy: Copy,
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
            counted = count_again(spec, session, rows, copy.columns, references)
            copy.check(session, rows)
            problems = differences(spec, counted, chosen, labels)
            if content_digest(session, rows, copy.columns) != digest:
                problems.append("its content is not what was read from the source")
    finally:
        warehouse.close()
    if problems:
        raise Refused("the anonymized table failed its check, nothing is returned: " + "; ".join(problems))
    return counted
