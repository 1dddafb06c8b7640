"""Privacy definitions, evaluated at every node with one fetch of counts per node and sensitive attribute."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np

from qblock.blocks import Floats, Mask, Reference
from qblock.engines.registry import ENGINES
from qblock.errors import InputError, ParameterError
from qblock.files import read_input
from qblock.lattice import Lattice, Node
from qblock.metrics import BY_NAME, METRICS, Leaves, Published
from qblock.metrics.formulas import Query
from qblock.models import REGISTRY, Bound, Model, Setting, Value, measured, parameters_of
from qblock.models.examples import in_setting
from qblock.models.ratios import double
from qblock.search.assessment import NodeCounts, Part, tightest_of
from qblock.search.nodes import check_listed
from qblock.search.progress import Pace, Progress
from qblock.search.task import Task, how_to_give, missing_inputs
from qblock.search.utility import Metrics
from qblock.search.workload import workload_of
from qblock.source import SourceTable
from qblock.source.knowledge import with_prior
from qblock.spec import Requirement, Spec
from qblock.spec.document import parse
from qblock.spec.privacy import requirements
from qblock.spec.workload import Workload

POPULATION = "needs a population table: write `population: {table: ...}` in a model of `privacy`"
Origin = Literal["battery", "spec", "definitions"]
FIGURES = tuple(metric.name for metric in METRICS if metric.needs in ("sizes", "keys"))
"""The metrics for which block keys and sizes are enough."""
QUERY_ERROR = "query_error"
"""Another one, over a workload that is given."""
Figures = dict[str, Any]
Queries = tuple[Leaves, tuple[Query, ...]]
"""A workload, and what it is answered from."""


@dataclass(frozen=True)
class NotComputed:
    """A model in one of its settings that a source cannot be measured by. sensitive: None where it looks at none."""

    model: Model
    sensitive: str | None
    why: str

    @property
    def of(self) -> str:
        """What is not computed, in a few words: its parameters but defaults and those that it would tighten."""
        defaults = {field.name: field.default for field in fields(self.model)}
        what = [] if self.sensitive is None else [self.sensitive]
        what += [f"{k}={v}" for k, v in question(self.model).items() if v is not None and v != defaults[k]]
        return self.model.name + (f" ({', '.join(what)})" if what else "")

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model.name,
            "sensitive": [] if self.sensitive is None else [self.sensitive],
            "what": self.of,
            "why": self.why,
        }


def default_settings(
    source: SourceTable, sensitives: Iterable[str], wanted: Callable[[Setting], bool]
) -> tuple[list[Requirement], list[NotComputed]]:
    """The wanted settings of every model: those that look at no sensitive attribute, then for each attribute.

    A model that needs a population is computed with each one that the spec names for any of its models.
    """
    of_rows = source.spec.entity is None
    nobody = Reference(source.rows, (), np.zeros(0, dtype=np.int64))
    requirements: dict[Requirement, None] = {}
    missing: list[NotComputed] = []
    for name in (None, *sensitives):
        reference = nobody if name is None else source.sensitives[name].reference
        published = None if name is None else source.spec.attributes[name].publish_as
        models = (model for model in REGISTRY if model.about.uses_sensitive is (name is not None))
        settings = ((model, setting) for model in models for setting in model.about.settings if wanted(setting))
        for model in (in_setting(model, setting, reference) for model, setting in settings):
            needed = missing_inputs(model, reference)
            if needed:
                missing.append(NotComputed(model, name, f"needs {how_to_give(needed[0], reference, published)}"))
                continue
            populations = _with_populations(model, source)
            for variant in populations:
                try:
                    variant.validate(reference)
                except ParameterError as error:
                    missing.append(NotComputed(variant, name, str(error).removeprefix(f"{variant.name}: ")))
                else:
                    requirements[Requirement(variant, () if name is None else (name,), of_rows=of_rows)] = None
            if not populations:
                missing.append(NotComputed(model, name, POPULATION))
    return list(requirements), missing


def question(model: Model) -> dict[str, Any]:
    """The parameters of a model that its tightest values depend on: all but those that can be tightened.

    Where a tightest value depends on what is asked of another parameter, all of them.
    """
    tightened = {bound.parameter for bound in model.about.bounds}
    depends = not all(bound.decides for bound in model.about.bounds)
    return {key: value for key, value in parameters_of(model).items() if depends or key not in tightened}


def _with_populations(model: Model, source: SourceTable) -> list[Model]:
    if "population" not in model.needs:
        return [model]
    named = [q.model for q in source.spec.privacy if "population" in q.model.needs]
    tables = dict.fromkeys(parameters_of(other)["population"] for other in named)
    return [replace(model, **{"population": table}) for table in tables]


@dataclass(frozen=True, eq=False)
class Definition:
    """One privacy definition. name: unique within a comparison; requested: whether its parameters ask for something.

    bounds: the parameters whose tightest values are reported; columns: a name for each of them.
    """

    name: str
    requirement: Requirement
    origin: Origin

    @property
    def model(self) -> Model:
        return self.requirement.model

    @property
    def requested(self) -> bool:
        return self.origin != "battery"

    @property
    def bounds(self) -> tuple[Bound, ...]:
        return self.model.about.bounds if self.requested else self.model.about.bounds[:1]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"{self.name}: {bound.parameter}" for bound in self.bounds)


def collect(
    source: SourceTable, sensitives: Iterable[str], further: Iterable[Requirement] = ()
) -> tuple[list[Definition], list[NotComputed]]:
    """The usual battery for each of these sensitive attributes, and what the spec and `further` ask of them."""
    chosen = tuple(sensitives)
    usual, missing = default_settings(source, chosen, lambda setting: setting.compared)
    with_origins: list[tuple[Requirement, Origin]] = [(q, "battery") for q in usual]
    with_origins += [(q, "spec") for q in source.spec.privacy if set(q.sensitive) <= set(chosen)]
    with_origins += [(q, "definitions") for q in further if set(q.sensitive) <= set(chosen)]
    used: dict[str, int] = {}
    result = []
    for requirement, origin in with_origins:
        name = described(requirement, requested=origin != "battery")
        used[name] = used.get(name, 0) + 1
        unique = name if used[name] == 1 else f"{name} #{used[name]}"
        result.append(Definition(unique, requirement, origin))
    return result, missing


def read_definitions(file: str | Path, spec: Spec) -> tuple[Requirement, ...]:
    """The entries of a YAML file with a `privacy` list as a spec has it. Raises InputError with the lines."""
    document = parse(read_input(file), str(file), os.environ)
    entries = requirements(document, list(spec.sensitives)) if isinstance(document.data, dict) else ()
    if document.problems:
        raise InputError(*document.report(), suggestions=document.suggestions())
    return entries


def described(requirement: Requirement, *, requested: bool) -> str:
    """A definition in one line: its parameters without defaults, and where nothing is asked, without the one
    reported."""
    model = requirement.model
    defaults = {field.name: field.default for field in fields(model)}
    left_out = () if requested else (model.about.bounds[0].parameter,)
    shown = [
        f"{key}={_text(value)}"
        for key, value in parameters_of(model).items()
        if key not in left_out and value is not None and value != defaults[key]
    ]
    of = [*requirement.sensitive, *(["of groups"] if requirement.groups else [])]
    return model.name + (f"({', '.join(shown)})" if shown else "") + "".join(f" {s}" for s in of)


def adversary_of(model: Model) -> str:
    """The adversary of an epsilon-privacy model in a few words, for the heading of a column."""
    settings = parameters_of(model)
    defaults = {field.name: field.default for field in fields(model)}
    words = [str(settings["adversary"])]
    if settings["stubbornness"] is not None:
        words.append(_text(settings["stubbornness"]))
    if settings["adversary"] in ("I", "III"):
        words.append(str(settings["prior"]))
    words += [
        f"{key}={_text(settings[key])}" for key in ("at_most", "known", "predicates") if settings[key] != defaults[key]
    ]
    return " ".join(words)


def _text(value: Any) -> str:
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return str(int(value))
        decimal = str(double(value))
        return decimal if "e" not in decimal and Fraction(decimal) == value else str(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(_text(item) for item in value) + "]"
    return str(value)


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
    sensitive attribute; workload: whose error is a figure, too.
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
    workload: Workload | None = None
    references: dict[tuple[str, str], Reference] = field(default_factory=dict)

    @property
    def figures(self) -> tuple[str, ...]:
        """The metrics of each node."""
        return FIGURES if self.workload is None else (*FIGURES, QUERY_ERROR)

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
    last: bool = False,
    workload: str | Path | None = None,
    of: Callable[[NodeCounts], NodeCounts] = lambda counts: counts,
) -> Comparison:
    """Evaluate every definition at every node of the task's lattice.

    sensitives: the sensitive attributes to compare by, all of them where none is named; file: further definitions;
    nodes: to look at these alone; last: nothing else is asked of the task afterwards; workload: the file that the
    workload of the task's spec is from, whose error is a figure then; of: what is looked at of a node's counts.
    Raises InputError for an unknown attribute or a file with errors.
    """
    started, before = time.perf_counter(), task.statements
    if nodes is None:
        check_listed(task, "a comparison")
    source = task.source
    chosen = _chosen(source, sensitives)
    further: tuple[Requirement, ...] = ()
    if file is not None:
        further = read_definitions(file, task.spec)
        origin = replace(task.spec.origin, path=Path(file), warnings=())
        task.asking(replace(task.spec, privacy=further, origin=origin))  # names that file in its errors
    definitions, missing = collect(source, chosen, further)
    task.materialize_locally()
    queries = None if workload is None else _queries(task, str(workload))
    every = task.with_privacy(definition.requirement for definition in definitions)
    references = {
        (definition.name, name): with_prior(source, definition.requirement, source.sensitives[name])
        for definition in definitions
        for name in chosen
        if not definition.requirement.sensitive or name in definition.requirement.sensitive
    }
    if last and _all_is_here(every):
        every.source.session.end()
    rows = []
    pace = None if progress is None else Pace("nodes", progress, lambda: every.source.frequency_sets.rows_read)
    for number, node in enumerate(every.iter_nodes() if nodes is None else nodes, 1):
        rows.append(evaluate(every, definitions, of(every.counts(node)), queries))
        if pace is not None:
            pace(number, (len(every.lattice) if nodes is None else len(nodes)) - number, 0.0)
    return Comparison(
        spec=every.spec,
        lattice=every.lattice,
        total=every.source.rows,
        budget=every.budget,
        monotone=tuple(every.monotone_under_budget(definition.requirement) for definition in definitions),
        sensitives=chosen,
        definitions=tuple(definitions),
        rows=tuple(rows),
        statements=task.statements - before,
        seconds=time.perf_counter() - started,
        warnings=tuple(dict.fromkeys([*task.warnings, *every.warnings])),
        not_computed=tuple(missing),
        workload=None if queries is None else every.spec.search.workload,
        references=references,
    )


def _all_is_here(task: Task) -> bool:
    """Whether nodes are counted in this process alone, from what was brought of a server: a transaction that stays open
    meanwhile keeps its tables from being vacuumed and altered. Populations and guards are read when a node is asked."""
    source, requirements = task.source, task.spec.privacy
    if source.frequency_sets.session is source.session or ENGINES[source.session.engine].adapter.statements_are_jobs:
        return False
    further = any(q.guards is not None or "population" in model.needs for q in requirements for model in q.models)
    return not further


def _chosen(source: SourceTable, sensitives: Sequence[str]) -> tuple[str, ...]:
    """The sensitive attributes of these names, in their order in the source; all of them where none is named."""
    unknown = [name for name in sensitives if name not in source.sensitives]
    if unknown:
        raise InputError(
            f"--sensitive {unknown[0]}: not a sensitive attribute of the spec; "
            f"valid: {', '.join(source.sensitives) or '(it has none)'}"
        )
    return tuple(name for name in source.sensitives if not sensitives or name in sensitives)


def _queries(task: Task, place: str) -> Queries:
    """The workload of the task's spec, with what it is answered from. place: where it is written."""
    workload_of(task.source, place)  # for its errors
    return Metrics(task).workload


def evaluate(
    task: Task, definitions: Iterable[Definition], counts: NodeCounts, queries: Queries | None = None
) -> NodeRow:
    """One node under all definitions, in the order of the task's requirements. queries: whose error is a figure."""
    everything = np.ones(len(counts.rows), dtype=bool)
    figures = _figures(task, counts, everything, queries)
    values, verdicts = [], {}
    for definition, parts in zip(definitions, counts.parts, strict=True):
        values.append(tightest(definition, parts, counts, task.budget))
        if definition.requested:
            verdicts[definition.name] = _verdict(task, counts, parts, figures, queries)
    return NodeRow(counts.node, len(counts.rows), figures, tuple(values), verdicts)


def tightest(definition: Definition, parts: Sequence[Part], counts: NodeCounts, budget: int) -> tuple[Value, ...]:
    """The tightest value of each reported parameter; with a budget, without the worst blocks that it allows to
    suppress."""
    everything = np.ones(len(counts.rows), dtype=bool)
    if not budget:
        return tightest_of(parts, everything).values[: len(definition.bounds)]
    values = []
    for i, bound in enumerate(definition.bounds):
        measured = _per_block(parts, bound.parameter, bound.stricter == "larger", len(counts.rows))
        order = np.argsort(measured if bound.stricter == "larger" else -measured, kind="stable")
        dropped = order[np.cumsum(counts.rows[order]) <= budget]
        kept = everything.copy()
        kept[dropped] = False
        values.append(tightest_of(parts, kept).values[i])
    return tuple(values)


def _per_block(parts: Sequence[Part], parameter: str, least: bool, blocks: int) -> Floats:
    """float64[blocks]: each q*-block's tightest value of a parameter, over all parts."""
    result = np.full(blocks, np.inf if least else -np.inf)
    for part in parts:
        values = measured(part.model, parameter, part.blocks, part.reference)
        owner = np.arange(blocks) if part.owner is None else part.owner
        (np.minimum if least else np.maximum).at(result, owner, values)
    return result


def _verdict(
    task: Task, counts: NodeCounts, parts: Sequence[Part], figures: Figures, queries: Queries | None
) -> NodeVerdict:
    failing = np.zeros(len(counts.rows), dtype=bool)
    for part in parts:
        failing |= part.failing(len(counts.rows))
    suppressed = int(counts.rows[failing].sum())
    if suppressed > task.budget:
        return NodeVerdict(False, 0)
    return NodeVerdict(True, suppressed, _figures(task, counts, ~failing, queries) if suppressed else figures)


def _figures(task: Task, counts: NodeCounts, kept: Mask, queries: Queries | None) -> Figures:
    leaves, workload = (None, None) if queries is None else queries
    published = Published.of_blocks(
        counts.node,
        task.source.hierarchies,
        counts.keys[kept],
        counts.rows[kept],
        task.source.rows,
        leaves,
        workload,
        weights=task.spec.weights,
    )
    names = FIGURES if queries is None else (*FIGURES, QUERY_ERROR)
    return {name: BY_NAME[name].of(published) for name in names}
