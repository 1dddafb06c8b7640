"""Many privacy definitions over the whole lattice, with one fetch of counts per node and sensitive attribute."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from qblock.blocks import Floats, Mask, Reference
from qblock.errors import InputError
from qblock.lattice import Lattice, Node
from qblock.metrics import BY_NAME, METRICS, Published
from qblock.models import Value, measured
from qblock.search.assessment import NodeCounts, Part, combine
from qblock.search.default_settings import NotComputed
from qblock.search.definitions import Definition, collect, read_definitions, with_definitions
from qblock.search.extent import check_listed
from qblock.search.progress import Pace, Progress
from qblock.search.task import Task
from qblock.source import SourceTable
from qblock.source.knowledge import with_prior
from qblock.spec import Requirement, Spec

FIGURES = tuple(metric.name for metric in METRICS if metric.needs in ("sizes", "keys"))
"""The metrics for which block keys and sizes are enough."""

Figures = dict[str, Any]


@dataclass(frozen=True, eq=False)
class NodeVerdict:
    """A node under a definition that asks for something. figures: the metrics of what it would publish, if it
    passes."""

    satisfied: bool
    suppressed: int
    figures: Figures = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class NodeRow:
    """What is known of a node: values in the order of Comparison.definitions, one tuple of bounds for each.

    A value is the tightest one that the node satisfies within the suppression limit. figures: of the whole node,
    nothing suppressed. verdicts: by the name of each definition that asks for something.
    """

    node: Node
    blocks: int
    figures: Figures
    values: tuple[tuple[Value, ...], ...]
    verdicts: dict[str, NodeVerdict]


@dataclass(frozen=True, eq=False)
class Comparison:
    """All definitions at all nodes, finer nodes first; values alone.

    total: rows of the source; budget: how many of them may be suppressed; monotone: of each definition, whether its
    values may never get weaker upward in the lattice; references: what each definition, by name, weighs of each
    sensitive attribute.
    """

    spec: Spec
    lattice: Lattice
    total: int
    budget: int
    monotone: tuple[bool, ...]
    sensitives: tuple[str, ...]
    definitions: tuple[Definition, ...]
    rows: tuple[NodeRow, ...]
    statements: int
    seconds: float
    warnings: tuple[str, ...]
    not_computed: tuple[NotComputed, ...] = ()
    references: dict[tuple[str, str], Reference] = field(default_factory=dict)

    @property
    def requested(self) -> tuple[Definition, ...]:
        """The definitions whose parameters ask for something."""
        return tuple(definition for definition in self.definitions if definition.requested)

    def satisfying(self, definition: Definition) -> list[Node]:
        """The nodes that satisfy a definition that asks for something."""
        return [row.node for row in self.rows if row.verdicts[definition.name].satisfied]


def compare(
    task: Task,
    *,
    sensitives: Sequence[str] = (),
    file: str | Path | None = None,
    nodes: Sequence[Node] | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Evaluate every definition at every node of the task's lattice.

    sensitives: the sensitive attributes to compare by, all of them where none is named; file: further definitions;
    nodes: to look at these alone.
    Raises InputError for an unknown attribute or a file with errors.
    """
    started, before = time.perf_counter(), task.statements
    if nodes is None:
        check_listed(task, "a comparison")
    source = task.source
    unknown = [name for name in sensitives if name not in source.sensitives]
    if unknown:
        raise InputError(
            f"--sensitive {unknown[0]}: not a sensitive attribute of the spec; "
            f"valid: {', '.join(source.sensitives) or '(it has none)'}"
        )
    chosen = tuple(name for name in source.sensitives if not sensitives or name in sensitives)
    further: tuple[Requirement, ...] = ()
    if file is not None:
        further = read_definitions(file, task.spec)
        origin = replace(task.spec.origin, path=Path(file), warnings=())
        Task(replace(source, spec=replace(task.spec, privacy=further, origin=origin)))  # names that file in its errors
    definitions, missing = collect(source, chosen, further)
    task.materialize_locally()
    every = Task(with_definitions(task.source, definitions))
    rows = []
    pace = None if progress is None else Pace("nodes", progress, lambda: every.source.frequency_sets.rows_read)
    for number, node in enumerate(every.iter_nodes() if nodes is None else nodes, 1):
        rows.append(evaluate(every, definitions, every.counts(node)))
        if pace is not None:
            pace(number, (len(every.lattice) if nodes is None else len(nodes)) - number, 0.0)
    warnings = tuple(dict.fromkeys([*task.warnings, *every.warnings]))
    seconds = time.perf_counter() - started
    statements = task.statements - before
    return Comparison(
        every.spec,
        every.lattice,
        every.source.rows,
        every.budget,
        tuple(every.monotone_under_budget(definition.requirement) for definition in definitions),
        chosen,
        tuple(definitions),
        tuple(rows),
        statements,
        seconds,
        warnings,
        tuple(missing),
        _references(source, definitions, chosen),
    )


def _references(
    source: SourceTable, definitions: Iterable[Definition], sensitives: Sequence[str]
) -> dict[tuple[str, str], Reference]:
    return {
        (definition.name, name): with_prior(source, definition.requirement, source.sensitives[name])
        for definition in definitions
        for name in sensitives
        if not definition.requirement.sensitive or name in definition.requirement.sensitive
    }


def evaluate(task: Task, definitions: Iterable[Definition], counts: NodeCounts) -> NodeRow:
    """One node under all definitions, in the order of the task's requirements."""
    everything = np.ones(len(counts.rows), dtype=bool)
    figures = _figures(task, counts, everything)
    values, verdicts = [], {}
    for definition, parts in zip(definitions, counts.parts, strict=True):
        values.append(tightest(definition, parts, counts, task.budget))
        if definition.requested:
            verdicts[definition.name] = _verdict(task, counts, parts, figures)
    return NodeRow(counts.node, len(counts.rows), figures, tuple(values), verdicts)


def tightest(definition: Definition, parts: Sequence[Part], counts: NodeCounts, budget: int) -> tuple[Value, ...]:
    """The tightest value of each reported parameter; with a budget, without the worst blocks that it allows to
    suppress."""
    everything = np.ones(len(counts.rows), dtype=bool)
    if not budget:
        return combine([part.tightest(everything) for part in parts], definition.model).values[: len(definition.bounds)]
    values = []
    for i, bound in enumerate(definition.bounds):
        measured = _per_block(parts, bound.parameter, bound.stricter == "larger", len(counts.rows))
        order = np.argsort(measured if bound.stricter == "larger" else -measured, kind="stable")
        dropped = order[np.cumsum(counts.rows[order]) <= budget]
        kept = everything.copy()
        kept[dropped] = False
        values.append(combine([part.tightest(kept) for part in parts], definition.model).values[i])
    return tuple(values)


def _per_block(parts: Sequence[Part], parameter: str, least: bool, blocks: int) -> Floats:
    """float64[blocks]: each q*-block's tightest value of a parameter, over all parts."""
    result = np.full(blocks, np.inf if least else -np.inf)
    for part in parts:
        values = measured(part.model, parameter, part.blocks, part.reference)
        owner = np.arange(blocks) if part.owner is None else part.owner
        (np.minimum if least else np.maximum).at(result, owner, values)
    return result


def _verdict(task: Task, counts: NodeCounts, parts: Sequence[Part], figures: Figures) -> NodeVerdict:
    failing = np.zeros(len(counts.rows), dtype=bool)
    for part in parts:
        failing |= part.failing(len(counts.rows))
    suppressed = int(counts.rows[failing].sum())
    if suppressed > task.budget:
        return NodeVerdict(False, 0)
    return NodeVerdict(True, suppressed, _figures(task, counts, ~failing) if suppressed else figures)


def _figures(task: Task, counts: NodeCounts, kept: Mask) -> Figures:
    published = Published.of_blocks(
        counts.node,
        task.source.hierarchies,
        counts.keys[kept],
        counts.rows[kept],
        task.source.rows,
        weights=task.spec.weights,
    )
    return {name: BY_NAME[name].of(published) for name in FIGURES}
