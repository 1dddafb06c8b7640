"""The count queries of a workload: from a file, and with the codes of a source."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from qblock.comparison import Kind, Matcher
from qblock.engines.values import NUMERIC, is_value
from qblock.errors import InputError, quoted
from qblock.files import read_input
from qblock.metrics.formulas import Query, random_workload
from qblock.source import SourceTable
from qblock.spec import Search, Spec
from qblock.spec.checks import check_queries
from qblock.spec.document import Document, parse
from qblock.spec.workload import Between, Condition, DrawnWorkload, Workload, read_workload


def with_workload(spec: Spec, file: str | Path) -> Spec:
    """The spec with the workload of a YAML file, which has the form of `search.workload`. Raises InputError with the
    lines."""
    document = parse(read_input(file), str(file), os.environ, spec=False)
    workload = None if document.problems else _read(document, spec)
    if document.problems or workload is None:
        raise InputError(*document.report(), suggestions=document.suggestions())
    # A key that is left out is not None where it is written.
    given = {name: value for name, value in vars(spec.search).items() if value is not None}
    return replace(spec, search=Search(**given | {"workload": workload}))


def _read(document: Document, spec: Spec) -> Workload | None:
    raw: Any = document.data
    check_queries(document, (), raw, {name: attribute.role for name, attribute in spec.attributes.items()})
    try:
        return read_workload(raw)
    except ValueError as error:
        document.wrong((), str(error).replace("{it}", "the file"))
        return None


def workload_size(workload: Workload) -> dict[str, Any]:
    """How many queries it has, and whether they are drawn, as JSON."""
    if isinstance(workload, DrawnWorkload):
        return {"queries": workload.queries, "drawn": True}
    return {"queries": len(workload.queries), "drawn": False}


def workload_of(source: SourceTable, place: str | None = None) -> tuple[int, tuple[Query, ...]]:
    """The queries, and the number of the sensitive attribute that they restrict (the first where none is named).

    place: where they are written, for messages; None: in the spec. Raises InputError for a value that no leaf has, and
    for a range without any.
    """
    workload = source.spec.search.workload or DrawnWorkload()
    sensitives = list(source.sensitives)
    if isinstance(workload, DrawnWorkload):
        values = source.sensitives[sensitives[0]].reference.values if sensitives else 0
        return 0, random_workload(
            source.hierarchies,
            values,
            queries=workload.queries,
            attributes=workload.attributes,
            selectivity=workload.selectivity,
            seed=workload.seed,
        )
    named = [name for name in workload.names if name in source.sensitives]
    place = place or source.spec.at("search", "workload")
    queries = []
    for number, query in enumerate(workload.queries, 1):
        wanted = {name: _codes(source, f"{place}: query {number}, {name}", name, what) for name, what in query}
        leaves = tuple(wanted.get(name) for name in source.quasi_identifiers)
        queries.append(Query(leaves, wanted.get(named[0]) if named else None))
    return (sensitives.index(named[0]) if named else 0), tuple(queries)


def _codes(source: SourceTable, place: str, name: str, wanted: Condition) -> tuple[int, ...]:
    labels: Sequence[str | None]
    if name in source.sensitives:
        labels = source.sensitives[name].reference.domain
        leaf = np.arange(len(labels), dtype=np.int64)
    else:
        labels, leaf = source.hierarchies[source.quasi_identifiers.index(name)].values
    if isinstance(wanted, Between):
        inside = [i for i, label in enumerate(labels) if _between(label, wanted, source.columns[name].kind)]
        if not inside:
            raise InputError(f"{place}: no value of {name} is in this range")
        return tuple(np.unique(leaf[inside]).tolist())
    named = Matcher(labels, source.columns[name].kind)
    codes = set()
    for value in wanted:
        code = named.find(value)
        if code is None:
            raise InputError(f"{place}: {quoted(value)} is not a value of {name}")
        codes.add(int(leaf[code]))
    return tuple(sorted(codes))


def _between(label: str | None, wanted: Between, kind: Kind) -> bool:
    if label is None:
        return False
    return all(
        end is None or (_at_most(label, end, kind) if upper else _at_most(end, label, kind))
        for end, upper in ((wanted.least, False), (wanted.most, True))
    )


def _at_most(low: str, high: str, kind: Kind) -> bool:
    if kind in NUMERIC and is_value(low, "decimal") and is_value(high, "decimal"):
        return Fraction(low) <= Fraction(high)
    return low <= high
