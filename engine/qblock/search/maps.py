"""Recoding maps of one source for several questions: what another k or l, a model less or a step costs in detail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from qblock.canonical import decimal_text
from qblock.errors import InputError, ParameterError
from qblock.models import KAnonymity
from qblock.search.progress import Deadline, Pace, Progress
from qblock.search.run import run_search
from qblock.search.task import Task
from qblock.spec import Requirement, Spec
from qblock.spec.checks import SPLIT_CHOICES
from qblock.spec.privacy import parameters
from qblock.spec.written import key_text

if TYPE_CHECKING:
    from qblock.search.boxes.recoded import Recoded

Kept = TypeVar("Kept")
K_STEPS = (3, 5, 10, 11, 20, 50)
L_STEPS = (2, 3, 4, 5, 6)
ENTROPY_STEPS = (Fraction(3, 2), Fraction(2), Fraction(5, 2), Fraction(3), Fraction(4), Fraction(5))
"""An entropy l is no whole number."""
MOST_ROWS = 1_000_000
"""Of a larger source the map of the spec alone is searched for."""
WITHIN = timedelta(minutes=2)
"""After which no other map is begun."""
AS_ASKED = "as the spec asks"


@dataclass(frozen=True)
class Question:
    """change: in words; boxed: whether `search.box` is as the spec says, else boxes are as small as the models let
    them be."""

    change: str
    privacy: tuple[Requirement, ...]
    boxed: bool = True

    def same(self, other: Question) -> bool:
        """Whether the answer is the same map."""
        return (self.privacy, self.boxed) == (other.privacy, other.boxed)


@dataclass(frozen=True)
class MapFigures:
    """A map in figures. smallest: rows, or people (`count: entities`), of its smallest block; measure: of the metric of
    the choice; keeps: whether its blocks satisfy the spec, None where it was not searched for by all its models."""

    blocks: int
    smallest: int
    suppressed: int
    measure: float
    keeps: bool | None


@dataclass(frozen=True)
class MapAnswer(Generic[Kept]):
    """question: that was answered; kept: what is kept of the map, None where there is none."""

    question: Question
    kept: Kept | None


class Maps(Generic[Kept]):
    """Searches of one source, each answered once. over: whether the time is over, after which none begins; keep: what
    is kept of a map, which may be large."""

    def __init__(
        self, task: Task, over: Deadline, keep: Callable[[Recoded], Kept], progress: Progress | None = None
    ) -> None:
        self.task, self._over, self._keep, self._progress = task, over, keep, progress
        self.known: list[MapAnswer[Kept]] = []
        self.left_out: list[str] = []
        self.first: Recoded | None = None

    def start(self) -> MapAnswer[Kept]:
        """The map that the spec asks for, which is kept whole."""
        self.task.materialize_locally()
        question = as_asked(self.task.spec)
        self.first = self._searched(question, self._progress)
        return self._known(question, self.first)

    def answers(self, questions: Sequence[Question]) -> list[MapAnswer[Kept]]:
        """In their order, as far as there is time and the source is not too large; the others are in `left_out`."""
        answers = []
        pace = None if self._progress is None else Pace("maps", self._progress)
        for number, question in enumerate(questions, 1):
            answer = self._answer(question)
            answers += [] if answer is None else [answer]
            if pace is not None:
                pace(number, len(questions) - number, 0.0)
        return answers

    def _answer(self, question: Question) -> MapAnswer[Kept] | None:
        known = next((answer for answer in self.known if answer.question.same(question)), None)
        if known is not None:
            return replace(known, question=question)
        if self.task.source.rows > MOST_ROWS or self._over():
            self.left_out.append(question.change)
            return None
        return self._known(question, self._searched(question))

    def _known(self, question: Question, recoded: Recoded | None) -> MapAnswer[Kept]:
        self.known.append(MapAnswer(question, None if recoded is None else self._keep(recoded)))
        return self.known[-1]

    def _searched(self, question: Question, progress: Progress | None = None) -> Recoded | None:
        spec = self.task.spec
        search = spec.search if question.boxed else replace(spec.search, box=None)
        variant = replace(spec, privacy=question.privacy, search=replace(search, node=None))
        return run_search(self.task.asking(variant), progress=progress, best_only=True).recoded


def as_asked(spec: Spec) -> Question:
    """The question of the spec itself."""
    return Question(AS_ASKED, spec.privacy)


def figures_of(task: Task, recoded: Recoded) -> MapFigures:
    """task: whose requirements the blocks are held to."""
    by = task.spec.search.choose_by
    return MapFigures(
        blocks=len(recoded.kept),
        smallest=int(recoded.specialized.groups.size[recoded.kept].min(initial=task.source.rows)),
        suppressed=recoded.specialized.suppressed_rows,
        measure=recoded.metrics([by])[by],
        keeps=keeps(task, recoded),
    )


def keeps(task: Task, recoded: Recoded) -> bool | None:
    """Whether the published blocks of a map satisfy each requirement of a task. None where the map was searched for by
    other models, so that not all that is needed was counted."""
    searched, counts = recoded.task.spec.privacy, recoded.assessment.counts
    pairs = list(zip(task.spec.privacy, searched, strict=False))
    if len(pairs) < len(task.spec.privacy) or any(_kind(of) != _kind(other) for of, other in pairs):
        return None
    failing = recoded.specialized.groups.size < task.spec.least_box
    if counts.held_by_all is not None:
        failing = failing | counts.held_by_all
    for requirement, parts in zip(task.spec.privacy, counts.parts, strict=False):
        for model, part in zip(requirement.models, parts, strict=True):
            failing = failing | replace(part, model=model).failing(len(failing))
    published = np.zeros(len(failing), dtype=bool)
    published[recoded.kept] = True
    return not bool((failing & published).any())


def _kind(requirement: Requirement) -> tuple[str, tuple[str, ...]]:
    return requirement.model.name, requirement.sensitive


@dataclass(frozen=True, eq=False)
class MapChoice:
    """question: that it answers; recoded: as all models that were given count it."""

    question: Question
    recoded: Recoded


@dataclass(frozen=True, eq=False)
class MapChoices:
    """Maps that differ. written: `search` of a spec that asks for them, as YAML on one line; why_not: why there are
    none, or not all; None where all are there."""

    maps: tuple[MapChoice, ...]
    written: str
    why_not: str | None = None


def map_choices(task: Task, own: int, over: Deadline, progress: Progress | None = None) -> MapChoices:
    """The maps of a spec at other k and l, of which the first is as it asks. own: how many of the requirements of the
    task are the spec's, and asked of maps; by the others they are counted."""
    from qblock.search.boxes.recoded import count_again
    from qblock.search.recodings import check_both

    spec = _asking(task.spec)
    written = _written(spec)
    try:
        check_both(spec)
    except InputError as error:
        return MapChoices((), written, str(error))
    counted, asking = (task.asking(replace(spec, privacy=of)) for of in (spec.privacy, spec.privacy[:own]))
    maps = Maps(asking, over, partial(count_again, counted), progress)
    questions = [replace(of, boxed=True) for of in rungs(asking)]
    differing = dict[tuple[tuple[str, ...], ...], MapChoice]()
    for answer in (maps.start(), *maps.answers(questions)):
        if answer.kept is not None:
            differing.setdefault(tuple(answer.kept.boxes), MapChoice(answer.question, answer.kept))
    left_out = f"{len(maps.left_out)} of {len(questions) + 1} maps are not here" if maps.left_out else None
    return MapChoices(tuple(differing.values()), written, left_out)


def _asking(spec: Spec) -> Spec:
    """The same spec, for a map."""
    by = spec.search.choose_by if spec.search.choose_by in SPLIT_CHOICES else "loss"
    search = replace(
        spec.search, recoding="multidimensional", choose_by=by, choose_from="minimal", node=None, within=None
    )
    return replace(spec, search=search)


def _written(spec: Spec) -> str:
    search = spec.search
    parts = ["recoding: multidimensional", f"choose_by: {search.choose_by}"]
    if search.box is not None:
        parts.append(f"box: {{least: {search.box.least}}}")
    if search.weights:
        weights = (f"{key_text(name)}: {decimal_text(weight)}" for name, weight in search.weights.items())
        parts.append(f"weights: {{{', '.join(weights)}}}")
    return f"{{{', '.join(parts)}}}"


def rungs(task: Task) -> Iterator[Question]:
    """The spec asked at other k and l: one of its requirements at a time, all others as they are. By k boxes are as
    small as the models let them be."""
    spec = task.spec
    place = next((i for i, of in enumerate(spec.privacy) if isinstance(of.model, KAnonymity)), None)
    own = () if place is None else (spec.privacy[place].model.k,)  # type: ignore[attr-defined]
    for k in sorted({*K_STEPS, *own}):
        if k <= task.source.rows:
            privacy = _at_k(spec.privacy, place, k)
            yield Question(f"k_anonymity: k = {k:,}", privacy, boxed=spec.search.box is None)
    for i, requirement in enumerate(spec.privacy):
        if hasattr(requirement.model, "l"):
            yield from _by_l(task, i, requirement)


def _at_k(privacy: Sequence[Requirement], place: int | None, k: int) -> tuple[Requirement, ...]:
    """place: of k-anonymity; None where nothing asks for it, and it is added."""
    if place is None:
        return (*privacy, Requirement(KAnonymity(k=k), index=len(privacy)))
    return changed(privacy, place, k=k)


def changed(privacy: Sequence[Requirement], place: int, **values: int | Fraction) -> tuple[Requirement, ...]:
    """Requirements of which one has another parameter. Raises ParameterError where there is no such model."""
    own = privacy[place]
    models = tuple(replace(model, **values) for model in own.models)
    return (*privacy[:place], replace(own, model=replace(own.model, **values), models=models), *privacy[place + 1 :])


def _by_l(task: Task, place: int, requirement: Requirement) -> Iterator[Question]:
    own = requirement.model.l  # type: ignore[attr-defined]
    most = min(len(task.source.sensitives[name].reference.domain) for name in requirement.sensitive)
    whole = parameters(type(requirement.model))["l"].kind == "whole"
    steps: Iterable[int | Fraction] = L_STEPS if whole else ENTROPY_STEPS
    named = f"{requirement.model.name} of {', '.join(requirement.sensitive)}"
    for value in sorted({own, *(step for step in steps if step <= most)}):
        try:
            privacy = changed(task.spec.privacy, place, l=value)
        except ParameterError:
            continue
        yield Question(f"{named}: l = {float(value):g}", privacy)
