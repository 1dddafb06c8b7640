"""Full-domain and multidimensional recoding of one spec side by side: utility at equal guarantees."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qblock.errors import InputError, choices
from qblock.hierarchy import Hierarchy
from qblock.lattice import Node
from qblock.metrics.boxes import MEASURED
from qblock.search.assessment import Assessment, metrics_json, requirements_json, weights_json
from qblock.search.boxes.recoded import search_map
from qblock.search.nodes import too_large
from qblock.search.progress import Deadline, Pace, Progress
from qblock.search.result import SearchResult, refusal, verdict_of
from qblock.search.run import run_search
from qblock.search.task import Task
from qblock.search.utility import Metrics
from qblock.search.workload import workload_of, workload_size
from qblock.source.in_words import SUPPRESSED
from qblock.spec import Spec
from qblock.spec.checks import SPLIT_CHOICES
from qblock.spec.workload import DrawnWorkload

FIGURES = tuple(MEASURED)
"""The metrics that nodes and maps both have."""


@dataclass(frozen=True, eq=False)
class RecodingAnswer:
    """What one recoding of the source would publish.

    levels: of the node, None of a map; attributes: how much of each quasi-identifier is shown at which level, as
    `Recoded.shares`; seconds, statements: of its search and its figures.
    """

    chosen: Assessment
    levels: Node | None
    metrics: dict[str, Any]
    attributes: list[dict[str, Any]]
    seconds: float
    statements: int

    def to_json(self, spec: Spec) -> dict[str, Any]:
        return {
            "levels": None if self.levels is None else list(self.levels),
            "blocks": int(self.chosen.kept.sum()),
            "suppressed": self.chosen.suppressed,
            "metrics": metrics_json(self.metrics),
            "attributes": self.attributes,
            "tightest": requirements_json(spec.privacy, self.chosen.tightest),
            "seconds": round(self.seconds, 3),
            "statements": self.statements,
        }


@dataclass(frozen=True, eq=False)
class Recodings:
    """Both recodings of one source, each None where it has no answer. why: of each, in words; refused: why neither has
    one, where that is so; statements: all of them, those that opened the source included; seconds: without these."""

    task: Task
    full_domain: RecodingAnswer | None
    multidimensional: RecodingAnswer | None
    why: tuple[str, str]
    refused: str | None
    seconds: float
    statements: int

    def to_json(self) -> dict[str, Any]:
        task, spec = self.task, self.task.spec
        workload = spec.search.workload or DrawnWorkload()
        sides = {"full_domain": self.full_domain, "multidimensional": self.multidimensional}
        return {
            "release": spec.release,
            "rows": task.source.rows,
            "quasi_identifiers": list(spec.quasi_identifiers),
            "suppressed_rows_allowed": task.budget,
            "choice": spec.search.choose_from,
            "choose_by": spec.search.choose_by,
            "weights": weights_json(spec),
            "workload": workload_size(workload),
            "queries": self.statements,
            "seconds": round(self.seconds, 3),
            "recodings": {name: None if side is None else side.to_json(spec) for name, side in sides.items()},
            "why": dict(zip(sides, self.why, strict=True)),
            "warnings": task.warnings,
        }


def check_both(spec: Spec) -> None:
    """Raise InputError for what only one of the recodings has: a pinned node, a metric that cannot choose between
    splits, and the variants lattice and partition of (n,t)-closeness."""
    if spec.search.node is not None:
        raise InputError(f"{spec.at('search', 'node')}: only one of the recodings has it; leave it out to compare both")
    if spec.search.choose_by not in SPLIT_CHOICES:
        raise InputError(
            f"{spec.at('search', 'choose_by')}: {spec.search.choose_by} cannot choose between splits; to compare both "
            f"recodings choose by another metric, {choices(SPLIT_CHOICES)}"
        )
    if spec.groups is not None:
        raise InputError(f"{spec.at('groups')}: the boxes of a map are not cut by groups; to compare both leave it out")
    for requirement in spec.privacy:
        if "projections" in requirement.model.needs:
            place = spec.at("privacy", requirement.index, requirement.model.name)
            raise InputError(f"{place}: the labels of a map's boxes overlap; to compare both leave out `of` and `any`")
        variant = getattr(requirement.model, "variant", None)
        if variant in ("lattice", "partition"):
            place = spec.at("privacy", requirement.index, requirement.model.name, "variant")
            of = "nodes of the lattice" if variant == "lattice" else "recoding maps"
            raise InputError(
                f"{place}: the variant {variant} has a meaning for {of} alone; write `variant: own_or_top` to compare "
                "both recodings at equal guarantees"
            )


def compare_recodings(task: Task, *, progress: Progress | None = None, workload: str | Path | None = None) -> Recodings:
    """Search for a node, and from it and from the top for a map, whichever the spec asks for. workload: the
    file that the workload of the task's spec is from. Raises InputError as `check_both`."""
    check_both(task.spec)
    if workload is not None:
        workload_of(task.source, str(workload))  # for its errors
    clock, best_only = _Clock(task), task.spec.search.answer == "best"
    full: RecodingAnswer | None = None
    begun: Node | None = None
    refused = too_large(task)
    why, searched = refused or "", refused is None
    if searched:
        result = run_search(task, progress=progress, best_only=best_only, recoding="full_domain")
        full, begun = _of_node(result, clock), result.begun
        refused = None if full is not None else str(refusal(result))
        why = result.why if refused is None else refused

    def tally() -> Pace | None:
        return None if progress is None else Pace("boxes", progress, lambda: task.source.frequency_sets.rows_read)

    clock.lap()
    recoded = search_map(task, begun, tally, Deadline(task.spec.search.within))
    chosen, why_map = verdict_of(recoded, searched=searched)
    mapped = None
    if recoded is not None and chosen is not None and chosen.satisfied:
        metrics, shares = recoded.metrics(FIGURES), recoded.shares()
        mapped = RecodingAnswer(chosen, None, metrics, shares, *clock.lap())
    return Recodings(
        task,
        full,
        mapped,
        (why, why_map),
        refused if mapped is None else None,
        time.perf_counter() - clock.began,
        task.statements,
    )


def _of_node(result: SearchResult, clock: _Clock) -> RecodingAnswer | None:
    if result.chosen is None:
        return None
    metrics = Metrics(result.task).of(result.chosen, FIGURES)
    levels = result.chosen.node
    return RecodingAnswer(result.chosen, levels, metrics, _shown(result.task.source.hierarchies, levels), *clock.lap())


def _shown(hierarchies: Sequence[Hierarchy], node: Node) -> list[dict[str, Any]]:
    """The levels of a node as `Recoded.shares` says those of a map: each for all rows."""
    shares = []
    for hierarchy, level in zip(hierarchies, node, strict=True):
        whole = level == hierarchy.height and len(hierarchy.leaves) > 1
        name = hierarchy.level_names[level]
        labels = [] if whole else [{"level": level, "name": name, "form": "plain", "share": 1.0}]
        words = SUPPRESSED if whole else "as it is" if not level and hierarchy.cells is None else name
        shares.append(
            {
                "attribute": hierarchy.attribute,
                "suppressed": float(whole),
                "labels": labels,
                "words": f"{words} for 100 %",
            }
        )
    return shares


class _Clock:
    """Seconds and statements since it was last asked."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.began = self._time = time.perf_counter()
        self._statements = task.statements

    def lap(self) -> tuple[float, int]:
        now, sent = time.perf_counter(), self._task.statements
        spent = now - self._time, sent - self._statements
        self._time, self._statements = now, sent
        return spent
