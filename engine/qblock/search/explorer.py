"""Every node, and recoding maps, with what decides a choice among them, for a page on which somebody chooses.

Tightest values are exact texts, so that the page compares thresholds with them as the engine does; of each metric the
order of `choose` is given, so that the page chooses as a search does. No row is suppressed here.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, inf, isinf
from typing import Any

import numpy as np

from qblock.blocks import PAIRS, Blocks, Ints
from qblock.canonical import decimal_text, number_text
from qblock.lattice import Lattice, Node, height
from qblock.metrics import BY_NAME
from qblock.models import Bound, Model, parameters_of
from qblock.models.base import Parameter, Range
from qblock.search.assessment import NodeCounts, deciding, deciding_values
from qblock.search.boxes.groups import added
from qblock.search.boxes.recoded import NOISE, Recoded, percent
from qblock.search.compare import FIGURES, default_settings, question
from qblock.search.maps import MOST_ROWS, WITHIN, MapChoices, as_asked, map_choices, rungs
from qblock.search.progress import Deadline, Pace, Progress
from qblock.search.run import run_search
from qblock.search.task import Task
from qblock.search.utility import Metrics, rounded
from qblock.source.in_words import SUPPRESSED, levels_in_words
from qblock.spec import Requirement
from qblock.spec.written import key_text, values_text

MOST_EXPLORED = 2_500
"""Nodes of a page: a browser draws each, and a file has the values of each."""
EACH = timedelta(seconds=10)
"""What a search for one of the best nodes of a larger lattice may take."""
MOST_BARS = 40
"""Of a picture of the rows that labels have: where there are more labels, a bar is neighbours together."""
MOST_SHOWN = 0.9
"""A map counts as showing a level where this share of its rows has it, or more detail."""
WRITTEN = ("whole", "rational", "flag", "choice")
"""Kinds of parameters that hold no value of the source."""


@dataclass(frozen=True, eq=False)
class Options:
    """What there is to choose from: nodes in the order of the lattice, and after them the maps.

    nodes: all of them, or of a large lattice those around the best ones; requested: how many of the requirements
    are those of the spec; smallest: rows, or people, of the smallest block of each choice; barred: indexes of those
    that fail whatever the thresholds; values: for each bound of each requirement the tightest value of each choice;
    metrics: of each choice, None where a map has none; labels: of each column and level the rows of its labels, as
    `_histogram` has them.
    """

    task: Task
    requirements: tuple[Requirement, ...]
    requested: int
    nodes: tuple[Node, ...]
    maps: MapChoices
    smallest: tuple[int, ...]
    barred: tuple[int, ...]
    values: tuple[tuple[tuple[Any, ...], ...], ...]
    metrics: dict[str, tuple[Any, ...]]
    labels: tuple[tuple[list[int], ...], ...]

    def to_json(self) -> dict[str, Any]:
        """Arrays over the choices. Of a bound `at` has, for each choice, the place of its value in `values`."""
        spec, source = self.task.spec, self.task.source
        words = levels_in_words(spec, source.hierarchies)
        maps = [_map(searched.question.change, searched.recoded, words) for searched in self.maps.maps]
        columns = enumerate(zip(spec.quasi_identifiers, self.task.lattice.heights, strict=True))
        return {
            "release": spec.release,
            "rows": source.rows,
            "unit": "people" if spec.count == "entities" else "rows",
            "columns": [
                {
                    "name": name,
                    "yaml": key_text(name),
                    "words": words[name][: highest + 1],
                    "labels": self.labels[i],
                }
                for i, (name, highest) in columns
            ],
            "heights": list(self.task.lattice.heights),
            "combinations": len(self.task.lattice),
            "levels": [
                [*levels, *(of["levels"][i] for of in maps)] for i, levels in enumerate(zip(*self.nodes, strict=True))
            ],
            "maps": maps,
            "map_search": self.maps.written,
            "with_maps": spec.search.recoding == "multidimensional" and bool(maps),
            "smallest": list(self.smallest),
            "barred": list(self.barred),
            "models": [
                _model(requirement, values, on=i < self.requested)
                for i, (requirement, values) in enumerate(zip(self.requirements, self.values, strict=True))
            ],
            "metrics": [_metric(name, values, self.nodes) for name, values in self.metrics.items()],
            "choose_by": spec.search.choose_by,
        }


class Choices:
    """What is known of choices, as they are counted. smallest: as of `Options`; figures: of each its metrics."""

    def __init__(self, requirements: Sequence[Requirement]) -> None:
        self.smallest: list[int] = []
        self.figures: list[list[Any]] = []
        self._requirements = requirements
        self._values: list[tuple[tuple[Any, ...], ...]] = []
        self._waiting: list[NodeCounts] = []
        self._pairs = 0

    def add(self, counts: NodeCounts, smallest: int, figures: list[Any]) -> None:
        """The next choice. Its tightest values are computed with others: of many small nodes that takes as long as of
        one."""
        self.smallest.append(smallest)
        self.figures.append(figures)
        self._waiting.append(counts)
        self._pairs += max(len(part.blocks.value) for parts in counts.parts for part in parts)
        if self._pairs >= PAIRS:
            self._settle()

    def tightest(self) -> list[tuple[tuple[Any, ...], ...]]:
        """Of each choice, for each requirement, the tightest value of each bound that decides."""
        self._settle()
        return self._values

    def _settle(self) -> None:
        waiting, together = self._waiting, dict[tuple[int, ...], Blocks]()
        self._waiting, self._pairs = [], 0
        columns = []
        for i, requirement in enumerate(self._requirements if waiting else ()):
            columns.append(deciding_values(waiting, i, requirement, together))
        self._values += zip(*columns, strict=True)


def explore(
    task: Task,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.monotonic,
    definitions: Sequence[Requirement] = (),
) -> Options:
    """Count the nodes to choose from, and maps of other k and l, whatever `search.node` and `suppression_limit` say.
    definitions: that are offered beside the usual ones; clock: of the time that the searches of nodes, and then those
    of maps, may take."""
    task.materialize_locally()
    requirements = (*task.spec.privacy, *_offered(task, definitions))
    spec = replace(task.spec, privacy=requirements, suppression_limit=Fraction(0))
    every = task.asking(spec)
    metrics, by = Metrics(every), task.spec.search.choose_by
    names = tuple(dict.fromkeys((by, "loss", "precision", *FIGURES, "non_uniform_entropy")))
    own = len(task.spec.privacy)
    whole = len(every.lattice) <= MOST_EXPLORED
    explored = every.iter_nodes() if whole else _around_the_best(every, own, Deadline(WITHIN, clock), progress)
    most = min(len(every.lattice), MOST_EXPLORED)
    pace = None if progress is None else Pace("nodes", progress, lambda: every.source.frequency_sets.rows_read)
    order, barred, choices = list[Node](), list[int](), Choices(requirements)
    for node in explored:
        counts = every.counts(node)
        people = counts.people
        assert people is not None  # one of the models is k-anonymity
        if _barred(counts):
            barred.append(len(order))
        order.append(node)
        choices.add(counts, int(people.min()), [metrics.rank(node, name) for name in names])
        if pace is not None:
            pace(len(order), most - len(order), 0.0)
    maps = map_choices(every, own, Deadline(WITHIN, clock), progress)
    for recoded in (searched.recoded for searched in maps.maps):
        measured_of, smallest = recoded.metrics(names), int(recoded.specialized.groups.size.min())
        choices.add(recoded.assessment.counts, smallest, [measured_of.get(name) for name in names])
    values = tuple(tuple(zip(*of, strict=True)) for of in zip(*choices.tightest(), strict=True))
    measured = dict(zip(names, zip(*choices.figures, strict=True), strict=True))
    nodes, groups = tuple(order), tuple(choices.smallest)
    return Options(task, requirements, own, nodes, maps, groups, tuple(barred), values, measured, _of_levels(task))


def _around_the_best(task: Task, own: int, over: Deadline, progress: Progress | None) -> list[Node]:
    """Of a large lattice the node that the spec chooses, those that it would choose at other k and l, and so many
    around these, the nearest first; and the top, which holds whatever a node can. own: as of `map_choices`."""
    spec = replace(task.spec, privacy=task.spec.privacy[:own])
    search = replace(spec.search, choose_from="minimal", node=None, within=EACH)
    asking = task.asking(spec)
    privacies = dict.fromkeys(question.privacy for question in (as_asked(spec), *rungs(asking)))
    best: list[Node] = []
    for i, privacy in enumerate(privacies):
        if i and (over() or task.source.rows > MOST_ROWS):
            break
        variant = task.asking(replace(spec, privacy=privacy, search=search))
        chosen = run_search(variant, progress=progress, best_only=True, recoding="full_domain").chosen
        best += [] if chosen is None else [chosen.node]
    return _nearest(task.lattice, best)


def _nearest(lattice: Lattice, best: Sequence[Node]) -> list[Node]:
    """MOST_EXPLORED nodes, the fewest steps of one level from the best; the top is one of them."""
    kept = dict.fromkeys((*best, lattice.top))
    ring = list(kept)
    while ring and len(kept) < MOST_EXPLORED:
        beside = (near for node in ring for near in (*lattice.parents(node), *lattice.children(node)))
        ring = [node for node in dict.fromkeys(beside) if node not in kept]
        kept.update(dict.fromkeys(ring))
    return sorted(list(kept)[:MOST_EXPLORED], key=lambda node: (height(node), node))


def _offered(task: Task, definitions: Sequence[Requirement]) -> list[Requirement]:
    """What the spec does not ask: these definitions, and the usual models, each in the first setting of `compare` that
    a line of the spec can ask for."""
    usual, _ = default_settings(task.source, task.source.sensitives, lambda setting: setting.compared)
    known = {_identity(requirement) for requirement in task.spec.privacy}
    further = dict[tuple[Any, ...], Requirement]()
    for requirement in definitions:
        further.setdefault(_identity(requirement), requirement)
    first = dict[tuple[str, tuple[str, ...]], Requirement]()
    for requirement in usual:
        first.setdefault((requirement.model.name, requirement.sensitive), requirement)
    own = [of for identity, of in further.items() if identity not in known]
    known |= further.keys()
    return [*own, *(of for of in first.values() if _identity(of) not in known and _fixed(of)[1])]


def _identity(requirement: Requirement) -> tuple[Any, ...]:
    """What two requirements have in common whose tightest values are the same."""
    parameters = tuple(sorted((key, str(value)) for key, value in question(requirement.model).items()))
    return requirement.model.name, requirement.sensitive, parameters, requirement.prior, requirement.guards


def _barred(counts: NodeCounts) -> bool:
    masks = [mask for mask in (counts.held_by_all, counts.small) if mask is not None]
    return any(bool(mask.any()) for mask in masks)


def exact_text(value: Any) -> str:
    """A tightest value without rounding: `7/3`, `inf`, and `~` before the 60 digits of a logarithm."""
    if value is None:
        return "none"
    return f"~{number_text(value)}" if isinstance(value, Decimal) else number_text(value)


def stops(values: Sequence[Any], bound: Bound, declared: Parameter) -> list[str]:
    """Thresholds that tell the nodes apart, the weakest first: each the strictest in thousandths that a node meets."""
    step = Fraction(1) if declared.kind == "whole" else Fraction(1, 1000)
    larger = bound.stricter == "larger"
    numbers = set()
    for value in values:
        if value is None or isinf(float(value)):
            continue
        number = (floor(Fraction(value) / step) if larger else ceil(Fraction(value) / step)) * step
        if not bound.attained and number == Fraction(value):
            number += -step if larger else step
        if not isinstance(declared.valid, Range) or number in declared.valid:
            numbers.add(number)
    return [decimal_text(number) for number in sorted(numbers, reverse=not larger)]


def _place(value: Any) -> Fraction | float:
    if value is None:
        return inf
    return value if isinstance(value, float) else Fraction(value)


def _model(requirement: Requirement, values: Sequence[Sequence[Any]], *, on: bool) -> dict[str, Any]:
    model, bounds = requirement.model, deciding(requirement.model)
    fixed, complete = _fixed(requirement)
    sensitive = requirement.sensitive
    return {
        "name": model.name,
        "sensitive": list(sensitive),
        "meaning": requirement.meaning,
        "fixed": fixed,
        "yaml": [*fixed, *([f"sensitive: {values_text(sensitive)}"] if sensitive else [])],
        "complete": complete,
        "on": on,
        "bounds": [_bound(model, bound, of_nodes) for bound, of_nodes in zip(bounds, values, strict=True)],
    }


def _bound(model: Model, bound: Bound, values: Sequence[Any]) -> dict[str, Any]:
    declared = next(of for of in model.about.parameters if of.name == bound.parameter)
    distinct = sorted({exact_text(value): value for value in values}.items(), key=lambda pair: _place(pair[1]))
    places = {text: i for i, (text, _) in enumerate(distinct)}
    valid = declared.valid if isinstance(declared.valid, Range) else None
    requested = getattr(model, bound.parameter)
    return {
        "parameter": bound.parameter,
        "larger": bound.stricter == "larger",
        "attained": bound.attained,
        "whole": declared.kind == "whole",
        "start": decimal_text(Fraction(requested)),
        "range": "" if valid is None else valid.text(bound.parameter),
        "least": None if valid is None else [str(valid.least), valid.open_least],
        "most": None if valid is None or valid.most is None else [str(valid.most), valid.open_most],
        "stops": stops([value for _, value in distinct], bound, declared),
        "values": [text for text, _ in distinct],
        "at": [places[exact_text(value)] for value in values],
    }


def _fixed(requirement: Requirement) -> tuple[list[str], bool]:
    """The parameters that a page does not change, as a spec has them, and whether these are all: values of a sensitive
    attribute and names of tables stay in the spec."""
    model = requirement.model
    free = {bound.parameter for bound in deciding(model)}
    kinds = {declared.name: declared.kind for declared in model.about.parameters}
    defaults = {field.name: field.default for field in fields(model)}
    texts, complete = [], requirement.prior is None and requirement.guards is None
    for key, value in parameters_of(model).items():
        if key in free or value is None or value == defaults[key]:
            continue
        if kinds[key] in WRITTEN:
            shown = str(value).lower() if isinstance(value, bool) else value
            texts.append(f"{key}: {decimal_text(Fraction(value)) if isinstance(shown, int | Fraction) else shown}")
        elif isinstance(value, str) and kinds[key] in ("prior", "predicates") and complete:
            texts.append(f"{key}: {value}")
        else:
            complete = False
    return texts, complete


def _metric(name: str, values: Sequence[Any], nodes: Sequence[Node]) -> dict[str, Any]:
    """order: the place of each node as `choose` has it, maps among them; None of a map that does not have the
    metric."""
    metric = BY_NAME[name]

    def rank(i: int) -> tuple[Any, ...]:
        if i < len(nodes):
            return metric.sign * rounded(values[i]), height(nodes[i]), nodes[i]
        # A map whose metric differs by noise from that of a node comes after it.
        return metric.sign * values[i] + NOISE * abs(values[i]), inf, (i,)

    order: list[int | None] = [None] * len(values)
    for place, i in enumerate(sorted((i for i, value in enumerate(values) if value is not None), key=rank)):
        order[i] = place
    return {
        "name": name,
        "meaning": metric.meaning,
        "smaller": metric.better == "smaller",
        "values": [None if value is None else float(f"{float(value):.6g}") for value in values],
        "order": order,
    }


def _map(change: str, recoded: Recoded, words: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """A map without its labels. levels: of each column the finest level that MOST_SHOWN of the rows are at, or below;
    detail: from 0 to 1."""
    tree, rows = recoded.specialized.tree, recoded.specialized.groups.rows[recoded.kept]
    heights = [max(hierarchy.height, 1) for hierarchy in recoded.task.source.hierarchies]
    levels, codes = tree.fact("level", recoded.published).T, tree.fact("code", recoded.published).T
    labels = tree.numbers[recoded.published].T
    return {
        "change": change,
        "levels": [_finest(of, rows) for of in levels],
        "detail": [
            float(f"{1 - float(of @ rows) / float(height * rows.sum()):.4g}")
            for of, height in zip(levels, heights, strict=True)
        ],
        "words": [_shown(share, words[share["attribute"]]) for share in recoded.shares()],
        "labels": [_histogram(_by_label(*of, rows)) for of in zip(labels, codes, strict=True)],
    }


def _finest(levels: Ints, rows: Ints) -> int:
    so_far = np.cumsum(np.bincount(levels, rows))
    return int(np.argmax(so_far >= MOST_SHOWN * rows.sum()))


def _shown(share: Mapping[str, Any], words: Sequence[str]) -> str:
    """What readers see of a column of a map: kinds of labels, those of most rows first, and no
    label."""
    kinds = Counter[str]()
    for kind in share["labels"]:
        level = words[kind["level"]].split(" (")[0]
        kinds[level if kind["form"] == "plain" else "several labels together"] += kind["share"]
    if share["suppressed"]:
        kinds[SUPPRESSED] += share["suppressed"]
    if len(kinds) == 1:
        return next(iter(kinds))
    return "; ".join(f"{what} for {percent(part)}" for what, part in kinds.most_common())


def _of_levels(task: Task) -> tuple[tuple[list[int], ...], ...]:
    """Of each level of each column the rows of its labels, in the order of the hierarchy."""
    columns = []
    marginals, heights = task.source.frequency_sets.marginals(), task.lattice.heights
    for hierarchy, (leaves, rows), highest in zip(task.source.hierarchies, marginals, heights, strict=True):
        codes = hierarchy.codes[:, leaves]
        columns.append(tuple(_histogram(_by_label(codes[level], codes[level], rows)) for level in range(highest + 1)))
    return tuple(columns)


def _by_label(labels: Ints, codes: Ints, rows: Ints) -> Ints:
    """The rows of each label, in the order of their codes."""
    _, first, place = np.unique(labels, return_index=True, return_inverse=True)
    return added(rows, place.reshape(-1), len(first))[np.argsort(codes[first], kind="stable")]


def _histogram(rows: Ints) -> list[int]:
    """Rows of labels; where there are many, of neighbours together."""
    bars = min(len(rows), MOST_BARS)
    result: list[int] = np.add.reduceat(rows, np.arange(bars) * len(rows) // bars).tolist()
    return result
