"""What a comparison says: verdicts, epsilons per node and adversary, inclusions, a self-check; as JSON and as CSV. Also
counts and node results as Arrow tables and Parquet files, for other tools."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from qblock.blocks import Ints
from qblock.files import private_output
from qblock.hierarchy import Hierarchy
from qblock.lattice import Node, minimal
from qblock.models import Bound, EpsilonPrivacy, Value, parameters_of
from qblock.models.base import EQUAL
from qblock.models.implied import Implied, implied_epsilon
from qblock.results.audit import Compared
from qblock.search.assessment import metrics_json, number_json, requested_json
from qblock.search.compare import Comparison, Definition, NodeRow, adversary_of
from qblock.search.task import Task
from qblock.search.utility import choose
from qblock.search.workload import workload_size


@dataclass(frozen=True)
class Granted:
    """What a definition grants about one sensitive attribute against one adversary.

    satisfied: the largest epsilon of the nodes that satisfy the definition, within the suppression limit, and one of
    them; None where none does.
    """

    definition: str
    sensitive: str
    adversary: str
    implied: Implied
    satisfied: Any
    node: Node | None

    def to_json(self) -> dict[str, Any]:
        return {
            "definition": self.definition,
            "sensitive": self.sensitive,
            "adversary": self.adversary,
            "epsilon": number_json(self.implied.epsilon),
            "why": self.implied.why,
            "satisfied": number_json(self.satisfied),
            "levels": None if self.node is None else list(self.node),
        }


def epsilons(comparison: Comparison) -> Iterator[tuple[str, list[tuple[int, Definition]]]]:
    """For each sensitive attribute its adversaries of epsilon-privacy, with their number among all definitions."""
    for name in comparison.sensitives:
        adversaries: dict[Any, tuple[int, Definition]] = {}
        for i, definition in enumerate(comparison.definitions):
            model, requirement = definition.model, definition.requirement
            if isinstance(model, EpsilonPrivacy) and requirement.sensitive == (name,):
                # Which epsilon is asked for does not matter to the smallest one.
                adversaries.setdefault(
                    (replace(model, epsilon=1), requirement.prior, requirement.guards), (i, definition)
                )
        yield name, list(adversaries.values())


def granted(comparison: Comparison) -> list[Granted]:
    """For each definition that asks for something, and each adversary against an attribute that it is about."""
    return [
        _granted(comparison, definition, name, number, adversary)
        for definition in comparison.requested
        for name, adversaries in epsilons(comparison)
        if not definition.requirement.sensitive or name in definition.requirement.sensitive
        for number, adversary in adversaries
    ]


def _granted(comparison: Comparison, definition: Definition, name: str, number: int, adversary: Definition) -> Granted:
    requirement, other = definition.requirement, adversary.model
    assert isinstance(other, EpsilonPrivacy)
    place = requirement.sensitive.index(name) if requirement.sensitive else 0
    own, weighed = comparison.references[definition.name, name], comparison.references[adversary.name, name]
    same = (requirement.prior, requirement.guards) == (adversary.requirement.prior, adversary.requirement.guards)
    implied = implied_epsilon(requirement.models[place], own, other, weighed, same_prior=same)
    rows = [row for row in comparison.rows if row.verdicts[definition.name].satisfied]
    # A value may be beyond any double, or none, which is below every epsilon.
    satisfied = [-1 if (value := row.values[number][0].value) is None else value for row in rows]
    worst = rows[satisfied.index(max(satisfied))] if rows else None
    value = None if worst is None else worst.values[number][0].value
    return Granted(definition.name, name, adversary_of(other), implied, value, None if worst is None else worst.node)


@dataclass(frozen=True)
class Inclusion:
    """Every node that satisfies `less` satisfies `more`, and `only` is the number of further nodes that satisfy `more`
    alone."""

    more: str
    less: str
    only: int


@dataclass(frozen=True)
class Violation:
    """A tightest value that is weaker at a direct generalization, although the model is declared monotone."""

    column: str
    finer: Node
    coarser: Node


def inclusions(comparison: Comparison) -> tuple[list[Inclusion], list[tuple[str, str]]]:
    """Which definition admits strictly more nodes than which (models.md section 9), and which admit the same ones."""
    admitted = {d.name: frozenset(comparison.satisfying(d)) for d in comparison.requested}
    names = list(admitted)
    more = [Inclusion(a, b, len(admitted[a] - admitted[b])) for a in names for b in names if admitted[b] < admitted[a]]
    same = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :] if admitted[a] == admitted[b]]
    return more, same


def violations(comparison: Comparison) -> tuple[list[str], list[Violation]]:
    """The columns that must never get weaker upward under the suppression budget in force, and where they do."""
    by_node = {row.node: row for row in comparison.rows}
    checked: list[str] = []
    problems = []
    for number, definition in enumerate(comparison.definitions):
        if not comparison.monotone[number]:
            continue
        checked += definition.columns
        for row in comparison.rows:
            for parent in comparison.lattice.parents(row.node):
                pairs = zip(definition.bounds, row.values[number], by_node[parent].values[number], strict=True)
                for column, (bound, fine, coarse) in zip(definition.columns, pairs, strict=True):
                    if weaker(coarse, fine, bound):
                        problems.append(Violation(column, row.node, parent))
    return checked, problems


def weaker(value: Value, other: Value, bound: Bound) -> bool:
    """Whether a tightest value is weaker than another one; logarithms are compared in 45 digits."""
    new: Any = value.value
    old: Any = other.value
    if new is None or old is None or new == old:
        return False
    if isinstance(new, Decimal) and isinstance(old, Decimal) and abs(new - old) <= EQUAL * max(Decimal(1), abs(old)):
        return False
    return bool(new < old if bound.stricter == "larger" else new > old)


def best(comparison: Comparison, definition: Definition) -> dict[str, dict[str, Any]]:
    """For each metric the best value over the nodes that satisfy a definition, and a node that has it."""
    figures = {
        row.node: row.verdicts[definition.name].figures
        for row in comparison.rows
        if row.verdicts[definition.name].satisfied
    }
    if not figures:
        return {}
    result = {}
    for name in comparison.figures:
        node = choose(figures, {node: metrics[name] for node, metrics in figures.items()}.__getitem__, name)
        result[name] = {"value": number_json(figures[node][name]), "levels": list(node)}
    return result


def to_json(comparison: Comparison) -> dict[str, Any]:
    """The whole answer."""
    more, same = inclusions(comparison)
    checked, wrong = violations(comparison)
    return {
        "release": comparison.spec.release,
        "rows": comparison.total,
        "quasi_identifiers": list(comparison.spec.quasi_identifiers),
        "heights": list(comparison.lattice.heights),
        "nodes_total": len(comparison.lattice),
        "sensitive": list(comparison.sensitives),
        "suppressed_rows_allowed": comparison.budget,
        "queries": comparison.statements,
        "seconds": round(comparison.seconds, 3),
        "definitions": [_definition_json(definition) for definition in comparison.definitions],
        "not_computed": [entry.to_json() for entry in comparison.not_computed],
        "asked": [_requested_json(comparison, definition) for definition in comparison.requested],
        "epsilon": [
            {
                "sensitive": name,
                "adversaries": [adversary_of(definition.model) for _, definition in adversaries],
                "nodes": [
                    {
                        "levels": list(row.node),
                        "epsilon": [number_json(row.values[i][0].value) for i, _ in adversaries],
                    }
                    for row in comparison.rows
                ],
            }
            for name, adversaries in epsilons(comparison)
        ],
        "granted": [grant.to_json() for grant in granted(comparison)],
        "more_useful": [{"more": i.more, "less": i.less, "nodes_of_more_only": i.only} for i in more],
        "same_nodes": [list(pair) for pair in same],
        "monotonicity": {
            "checked": checked,
            "violations": [{"column": v.column, "finer": list(v.finer), "coarser": list(v.coarser)} for v in wrong],
        },
        "nodes": [_row_json(comparison, row) for row in comparison.rows],
        "warnings": list(comparison.warnings),
        **({} if comparison.workload is None else {"workload": workload_size(comparison.workload)}),
    }


def compared(comparison: Comparison) -> Compared:
    """The same with which side of each parameter is stricter."""
    fields = to_json(comparison)
    for entry, definition in zip(fields["definitions"], comparison.definitions, strict=True):
        entry["stricter"] = [bound.stricter for bound in definition.bounds]
    return Compared.model_validate(fields)


def _definition_json(definition: Definition) -> dict[str, Any]:
    requirement = definition.requirement
    return {
        "name": definition.name,
        "model": definition.model.name,
        "sensitive": list(requirement.sensitive),
        "from": definition.origin,
        "asked": {k: requested_json(v) for k, v in parameters_of(definition.model).items() if v is not None}
        if definition.requested
        else None,
        "columns": list(definition.columns),
    }


def _requested_json(comparison: Comparison, definition: Definition) -> dict[str, Any]:
    nodes = comparison.satisfying(definition)
    return {
        "definition": definition.name,
        "satisfying": len(nodes),
        "minimal": [list(node) for node in minimal(nodes)],
        "best": best(comparison, definition),
    }


def _row_json(comparison: Comparison, row: NodeRow) -> dict[str, Any]:
    return {
        "levels": list(row.node),
        "blocks": row.blocks,
        "metrics": metrics_json(row.figures),
        "tightest": {
            column: number_json(value.value)
            for definition, values in zip(comparison.definitions, row.values, strict=True)
            for column, value in zip(definition.columns, values, strict=True)
        },
        "satisfied": {name: verdict.satisfied for name, verdict in row.verdicts.items()},
    }


def write_csv(comparison: Comparison, path: str | Path) -> None:
    """The complete table: a line for each node, "inf" for infinity, true or false for the definitions that ask. As of
    `write_parquet`, nobody else may read the file."""
    names, metric_names = comparison.spec.quasi_identifiers, _metric_columns(comparison)
    columns = [column for definition in comparison.definitions for column in definition.columns]
    verdicts = [f"satisfies {definition.name}" for definition in comparison.requested]
    with private_output(path) as file:
        writer = csv.writer(codecs.getwriter("utf-8")(file), lineterminator="\n")
        writer.writerow([*names, "height", "rows", "blocks", *metric_names, *columns, *verdicts])
        for row in comparison.rows:
            metrics = metrics_json(row.figures)
            tightest = [number_json(value.value) for values in row.values for value in values]
            passed = [str(verdict.satisfied).lower() for verdict in row.verdicts.values()]
            shown = [row.blocks, *(metrics[name] for name in metric_names)]
            writer.writerow([*row.node, metrics["height"], comparison.total, *shown, *tightest, *passed])


def _metric_columns(comparison: Comparison) -> list[str]:
    """The metrics that tables have beside the height."""
    return [name for name in comparison.figures if name != "height"]


COUNTED = b"qblock:counted"
"""Of the file's own data: what is counted, rows or entities."""
LEVELS = b"qblock:levels"


def frequency_set(task: Task, node: Node) -> pa.Table:
    """How often each combination of labels and sensitive values occurs at a node: a row for each that does, with the
    label of every quasi-identifier (`*` for what is suppressed), the value of every sensitive attribute (NULL for none)
    as texts, and `count` (int64; of rows, or of entities where the spec counts these, as the metadata says).

    PRIVATE: fine nodes single out people. In the order of labels and values.
    """
    source, sensitives = task.source, list(task.source.sensitives.values())
    if sensitives:
        keys, values, counts = source.frequency_sets.joint(node, range(len(sensitives)))
    else:
        blocks = source.frequency_sets.blocks(node, ())[0]
        assert blocks.keys is not None
        keys, values, counts = blocks.keys, np.zeros((len(blocks), 0), np.int64), blocks.total
    columns: dict[str, pa.Array] = {}
    for i, (name, hierarchy) in enumerate(zip(source.quasi_identifiers, source.hierarchies, strict=True)):
        columns[name] = _texts(hierarchy, node[i], keys[:, i], "*")
    for i, attribute in enumerate(sensitives):
        columns[attribute.name] = _texts(attribute.hierarchy, 0, values[:, i], None)
    order = [(name, "ascending") for name in columns]
    columns[_free("count", columns)] = pa.array(counts, pa.int64())
    metadata = {COUNTED: task.spec.count.encode(), LEVELS: ",".join(map(str, node)).encode()}
    return pa.table(columns).sort_by(order).replace_schema_metadata(metadata)


def _texts(hierarchy: Hierarchy, level: int, codes: Ints, none: str | None) -> pa.Array:
    """The labels of codes, each the first leaf that has it. none: for the leaf of NULL."""
    distinct, place = np.unique(codes, return_inverse=True)
    labels = [hierarchy.labels[level][code] for code in distinct.tolist()]
    texts = pa.array([none if label is None else label for label in labels], pa.string())
    return texts.take(pa.array(place.reshape(-1)))


def nodes_table(comparison: Comparison) -> pa.Table:
    """What `compare` finds: a row for each node, with the columns of its CSV: levels (int64), height, rows, blocks and
    metrics, tightest values (double, infinite where no value is enough, NULL where there is none), and whether it
    satisfies each definition that asks for something (boolean)."""
    rows = comparison.rows
    columns: dict[str, pa.Array] = {}
    for i, name in enumerate(comparison.spec.quasi_identifiers):
        columns[_free(name, columns)] = pa.array([row.node[i] for row in rows], pa.int64())
    metrics = [metrics_json(row.figures) for row in rows]
    columns[_free("height", columns)] = pa.array([sum(row.node) for row in rows], pa.int64())
    columns[_free("rows", columns)] = pa.array([comparison.total] * len(rows), pa.int64())
    columns[_free("blocks", columns)] = pa.array([row.blocks for row in rows], pa.int64())
    for name in _metric_columns(comparison):
        columns[_free(name, columns)] = pa.array([_double(figures[name]) for figures in metrics], pa.float64())
    for i, definition in enumerate(comparison.definitions):
        for j, name in enumerate(definition.columns):
            values = [_double(number_json(row.values[i][j].value)) for row in rows]
            columns[_free(name, columns)] = pa.array(values, pa.float64())
    for definition in comparison.requested:
        verdicts = [row.verdicts[definition.name].satisfied for row in rows]
        columns[_free(f"satisfies {definition.name}", columns)] = pa.array(verdicts, pa.bool_())
    return pa.table(columns)


def _double(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _free(name: str, taken: dict[str, pa.Array]) -> str:
    """A name like no column before it."""
    while name in taken:
        name += "_"
    return name


def write_parquet(table: pa.Table, path: str | Path) -> None:
    """Write a table as a file that nobody else may read (0600), whole or not at all: what was there stays until it is
    replaced. Raises InputError for a path that cannot be a file, QblockError where it cannot be written."""
    import pyarrow.parquet as pq

    with private_output(path) as file:
        pq.write_table(table, file)
