"""Recoding maps for those who run the job: which one is published or comes next, its blocks, and what others cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from qblock.errors import InputError, QblockError, counted
from qblock.lattice import Node
from qblock.ledger.events import RecordedEvent
from qblock.ledger.store import Store
from qblock.ledger.stores import has_store, store_of
from qblock.metrics import BY_NAME as METRICS
from qblock.release.maps import inherited_map, map_of, named_map
from qblock.report.blocks import by_size
from qblock.report.what_if import MOST_QUESTIONS, changes
from qblock.results.base import Guarantee
from qblock.results.report import DepthShown, MapAnswerShown, MapBlocksShown, MapsShown
from qblock.search.assessment import requirements_json
from qblock.search.boxes.recoded import Recoded, count_map
from qblock.search.maps import (
    MOST_ROWS,
    WITHIN,
    MapAnswer,
    MapFigures,
    Maps,
    Question,
    as_asked,
    figures_of,
    rungs,
)
from qblock.search.progress import Deadline, Pace, Progress
from qblock.search.task import Task
from qblock.spec import Spec

Answer = MapAnswer[MapFigures]
Figures = Maps[MapFigures]
TOO_LARGE = "the source has more than {:,} rows"
NO_TIME = "{:g} minutes were over"


@dataclass(frozen=True)
class KeptMap:
    """A map that versions have. version: that it is of; which: as `MapBlocksShown`; why_not: why a run would take none;
    stated: as it is kept, None where a run searches for one."""

    version: int | None = None
    which: str = "searched"
    stated: Mapping[str, Any] | None = None
    why_not: str | None = None

    @property
    def node(self) -> Node | None:
        """Of a map that splits nothing: it is kept where newcomers have cohorts at a node."""
        return None if self.stated is None or self.stated["splits"] else tuple(self.stated["start"])


def asks_map(spec: Spec) -> bool:
    """Whether a search of the spec is for a map."""
    return spec.search.recoding == "multidimensional" and spec.pinned is None


def kept_map(spec: Spec, *, candidate: bool) -> KeptMap:
    """The map that readers see, or of a candidate the one that the next run takes; none where it cannot be read, or the
    run would be refused, and `why_not` says so."""
    if not has_store(spec):
        return KeptMap()
    store = store_of(spec)
    with store:
        if not store.exists:
            return KeptMap()
        with store.read() as reader:
            current = reader.current(spec.release)
        event = None if current is None else current.event
        try:
            return _next(spec, store, event) if candidate else _published(spec, store, event)
        except QblockError as error:
            return KeptMap(why_not=str(error))


def _published(spec: Spec, store: Store, event: RecordedEvent | None) -> KeptMap:
    stated = None if event is None else map_of(spec, store, event)
    return KeptMap() if stated is None or event is None else KeptMap(event.version, "published", stated)


def _next(spec: Spec, store: Store, event: RecordedEvent | None) -> KeptMap:
    named = named_map(spec, store)
    if named is not None:
        return KeptMap(named.event.version, "next", named.stated)
    stated = inherited_map(spec, store, event)
    return KeptMap() if stated is None or event is None else KeptMap(event.version, "next", stated)


@dataclass(frozen=True, eq=False)
class MapsRead:
    """shown: what is on the pages; recoded: the map whose blocks they are of, None where there is none."""

    shown: MapsShown
    recoded: Recoded | None


def read_maps(
    task: Task, kept: KeptMap, progress: Progress | None = None, clock: Callable[[], float] | None = None
) -> MapsRead:
    """The map of the spec, those of other questions, and the blocks of the one that matters: the kept one, or else the
    one that a search finds. clock: of the time that other maps may take."""
    over = Deadline(WITHIN) if clock is None else Deadline(WITHIN, clock)
    maps = Maps(task, over, partial(figures_of, task), progress)
    frontier, what_if = _answers(task, maps)
    recoded, why_not = maps.first, kept.why_not
    try:
        recoded = recoded if kept.stated is None else _counted(task, kept.stated, progress)
    except InputError as error:
        kept, why_not = KeptMap(), str(error)
    large = task.source.rows > MOST_ROWS
    why = TOO_LARGE.format(MOST_ROWS) if large else NO_TIME.format(WITHIN.total_seconds() / 60)
    by, of_spec = task.spec.search.choose_by, as_asked(task.spec)
    shown = MapsShown(
        metric=by,
        more_is_better=METRICS[by].better == "larger",
        unit="people" if task.spec.count == "entities" else "rows",
        frontier=tuple(_shown(answer, of_spec) for answer in frontier),
        what_if=tuple(_shown(answer, of_spec) for answer in what_if),
        left_out=tuple(maps.left_out),
        why_left_out=why if maps.left_out else None,
        blocks=None if recoded is None else _blocks(recoded, kept),
        why_not=why_not,
    )
    return MapsRead(shown, recoded)


def _counted(task: Task, stated: Mapping[str, Any], progress: Progress | None) -> Recoded:
    """A map of versions over the source as it is now. Its boxes may have fewer people by now: `search.box` was asked of
    the first version."""
    spec = replace(task.spec, search=replace(task.spec.search, box=None))
    tally = None if progress is None else Pace("boxes", progress)
    return count_map(task.asking(spec), stated, tally)


def _answers(task: Task, maps: Figures) -> tuple[list[Answer], list[Answer]]:
    """Those at other parameters, and those of other questions; that of the spec comes first. None where the spec asks
    for no map."""
    if not asks_map(task.spec):
        return [], []
    first = maps.start()
    frontier = maps.answers(list(rungs(task)))
    return [first, *frontier], [first, *maps.answers(list(_others(task, maps)))]


def _others(task: Task, maps: Figures) -> Iterator[Question]:
    """Each model dropped, one step weaker and stronger; and boxes as small as the models let them be."""
    if maps.first is None:
        return
    said = requirements_json(task.spec.privacy, maps.first.assessment.tightest)
    entries = [Guarantee.model_validate(entry) for entry in said]
    for change, privacy in list(changes(task.spec.privacy, entries))[1:MOST_QUESTIONS]:
        yield Question(change, privacy)
    if task.spec.search.box is not None:
        yield Question(f"without search.box (least {task.spec.least_box:,})", task.spec.privacy, boxed=False)


def map_in_words(of: MapsShown) -> str:
    """The map that a search finds now."""
    first = of.frontier[0]
    if first.blocks is None:
        return "No recoding map satisfies the spec."
    return (
        f"A search finds a map of {counted(first.blocks, 'block')} now, the smallest of {first.smallest:,} {of.unit}; "
        f"its {of.metric} is {first.measure:.4g}."
    )


def _shown(answer: Answer, of_spec: Question) -> MapAnswerShown:
    figures = answer.kept
    return MapAnswerShown(
        change=answer.question.change,
        requested=answer.question.same(of_spec),
        blocks=None if figures is None else figures.blocks,
        smallest=None if figures is None else figures.smallest,
        suppressed=None if figures is None else figures.suppressed,
        measure=None if figures is None else figures.measure,
        satisfied=None if figures is None else figures.keeps,
    )


def _blocks(recoded: Recoded, kept: KeptMap) -> MapBlocksShown:
    groups = recoded.specialized.groups
    sizes, blocks = np.unique(groups.rows[recoded.kept], return_counts=True)
    assessment = recoded.assessment
    failing = assessment.counts.failing & assessment.kept
    return MapBlocksShown(
        which=kept.which,  # type: ignore[arg-type]
        version=kept.version,
        blocks=len(recoded.kept),
        rows=int(groups.rows[recoded.kept].sum()),
        suppressed=recoded.specialized.suppressed_rows,
        smallest=int(groups.size[recoded.kept].min(initial=recoded.task.source.rows)),
        failing=int(failing.sum()),
        failing_rows=int(groups.rows[failing].sum()),
        fails=tuple(dict.fromkeys(verdict.model for verdict in assessment.tightest if not verdict.holds)),
        sizes=tuple(by_size(sizes.tolist(), blocks.tolist())) if len(sizes) else (),
        columns=tuple(_depths(recoded.shares(), recoded.boxes)),
    )


def _depths(shares: Sequence[Mapping[str, Any]], labels: Sequence[Sequence[str]]) -> Iterator[DepthShown]:
    for i, share in enumerate(shares):
        yield DepthShown(
            name=share["attribute"],
            labels=len({block[i] for block in labels}),
            share_suppressed=share["suppressed"],
            in_words=share["words"],
        )
