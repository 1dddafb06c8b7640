"""What a year of the job comes to for each choice of boxes and delay, from which one chooses before one begins.

A job is simulated on the people of the table as it is, with values as they are before a first version, and later as
versions show them, so that nobody who waits has a part in it beyond sizes. It prints no value and no
quasi-identifier.

Choices are the least box of the first version (that of the spec, that of the models, and 2.5, 4, 6 and 8 times that)
and the delay (that of the spec, and 1, 4 and 13 runs). Draws have a fixed seed, the same people come and leave with
every choice: everybody leaves with the same chance, as many come, each like somebody of the table, and nobody comes
back or changes. First boxes are those of the spec's search, others are split from the top under the same models; those
of newcomers have the people of the least box if that is more than `newcomers.box`. Counts are spread evenly over the
values of a box.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from typing import Any

import numpy as np

from qblock.blocks import Ints
from qblock.errors import QblockError
from qblock.ledger.store import Store
from qblock.ledger.stores import has_store, store_of
from qblock.recoding import Tree
from qblock.release.forecast import forecast_of_search, forecasts
from qblock.release.maps import map_named_by, map_of
from qblock.release.sample import Maps, Sample, Workload, loss_of, sample_of
from qblock.search.progress import Pace, Progress
from qblock.search.result import SearchResult
from qblock.search.run import run_search
from qblock.search.task import Task
from qblock.spec import Spec
from qblock.versions.batching.cohort import Churn, size_for
from qblock.versions.batching.proposals import every
from qblock.versions.batching.rules import Rules
from qblock.versions.batching.year import (
    OUT,
    SEED,
    WAITS,
    Cohort,
    History,
    Policy,
    draw_cohorts,
    draw_history,
    simulate,
)
from qblock.versions.crosswalk import has_crosswalk, open_crosswalk
from qblock.versions.pending.cohorts import WEEK, least_box
from qblock.versions.pending.decision import rules_of
from qblock.versions.pending.state import counts_by_block
from qblock.versions.texts import split_text

RUNS = 52
WITHIN = (1, 4, 13)
TIMES = (Fraction(5, 2), 4, 6, 8)
"""How large the least box of a row is, in least boxes of the models."""
MOST_HIDDEN, MOST_WAIT = 0.05, 26
"""Where the spec says no max_lag and no max_wait: the share of people not shown, and how many runs anybody waits."""
LEAST_GONE = 0.1
"""Of the people who were shown and left, the share that is gone after a year where leavers go at all."""
ASSUMED = (
    "Simulated with {}. Newcomers are like people of the table. Everybody leaves with the same chance in each run. "
    "Nobody comes back, and no value changes"
)
AS_IT_IS, AS_SHOWN = "the values of the table", "values drawn as version {} shows them"
BOXES_STAY = "The boxes of version {} stay, so that only the delay is a choice"
DRAWN = "{1} of {0} people were drawn. With all of them boxes are finer, and the loss is less"
NO_GUARDS = "The simulation ignores who guards a predicate"
BEST = (
    "the least loss of the choices where newcomers and leavers both move, at most {} of the people are not shown in "
    "any run, and nobody waits longer than {} runs"
)
NONE_MOVES = "no choice lets newcomers come and leavers go within a year. Take larger boxes, or a smaller k"
NONE_WITHIN = (
    "no choice lets newcomers and leavers move with at most {} of the people not shown in any run, and nobody waiting "
    "longer than {} runs"
)

Told = Callable[[int, int], None]
"""Is told how many years are simulated, and how many are left."""


@dataclass(frozen=True)
class Choice:
    """least: people of a box of the first version; within: runs until a newcomer is shown; box: people of a newcomers'
    box; today: whether the spec says so."""

    least: int
    within: int
    box: int
    today: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a year comes to, as of the last run where nothing else is said.

    boxes: of the first version; loss: of the people shown; not_shown, most_not_shown: share of those present who are in
    no row, the mean over the runs and the most; longest_wait: of newcomers, in runs; newcomers: share of those who came
    later who were shown; left: share of the rows that are of people who left; gone: share of those who were shown and
    left who are in no row any more; error, error_unweighted: the median of a workload of counts, with rows weighted and
    not; versions: with the first.
    """

    boxes: int
    loss: float
    not_shown: float
    most_not_shown: float
    longest_wait: int
    newcomers: float
    left: float
    gone: float
    error: float
    error_unweighted: float
    versions: int

    @property
    def moves(self) -> bool:
        """Whether both newcomers and leavers come to be shown as they are."""
        return self.versions > 1 and self.newcomers > 0 and self.gone >= LEAST_GONE


@dataclass(frozen=True)
class Frontier:
    """rows: by least box and delay; recommended: the row to choose, None where there is none; why: in words; assumes:
    what the simulation takes for granted."""

    churn: Churn
    people: int
    rows: tuple[tuple[Choice, Outcome], ...]
    recommended: Choice | None
    why: str
    assumes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """What docs/json.md describes."""
        return {
            "churn": vars(self.churn),
            "runs": RUNS,
            "seed": SEED,
            "people": self.people,
            "rows": [{**vars(choice), **vars(outcome), "moves": outcome.moves} for choice, outcome in self.rows],
            "recommended": None if self.recommended is None else vars(self.recommended),
            "why": self.why,
            "assumes": list(self.assumes),
        }


@dataclass(frozen=True, eq=False)
class Shown:
    """What versions show. version: the newest; stated: the map of them all; values: people by value in each box."""

    version: int
    stated: Mapping[str, Any]
    values: Mapping[tuple[int | str, ...], Mapping[str, int]]


def shown_of(spec: Spec, store: Store) -> Shown | None:
    """What the versions of a release show; None before the first one. Raises what the store raises."""
    with store:
        if not store.exists or not has_crosswalk(store):
            return None
        with store.read() as reader:
            current = reader.current(spec.release)
        if current is None or current.version is None:
            return None
        stated = map_of(spec, store, current.event)
        with open_crosswalk(store, read_only=True) as crosswalk:
            values = counts_by_block(crosswalk, spec.release)
        return Shown(current.version, stated, values) if stated is not None and values else None


def frontier(
    task: Task, churn: Churn, searched: SearchResult | None, shown: Shown | None, told: Told = lambda done, left: None
) -> Frontier | None:
    """Simulate a year for each choice.

    Args:
        task: of the source as it is.
        churn: how many come and leave in a run; that values change is left out.
        searched: what a search finds for the first version, before there is one.
        shown: what versions show, once there are some.
        told: is called after each choice.

    Returns:
        The table; None where nothing satisfies the spec.
    """
    spec, newcomers = task.spec, task.spec.newcomers
    if newcomers is None or spec.bundles:
        return None
    sample = sample_of(task)
    if shown is not None:
        sample, tree = _as_shown(sample, shown)
    elif searched is not None and searched.chosen is not None:
        recoded, node = searched.recoded, searched.chosen.node
        tree = Tree(sample.ladders, node) if recoded is None else recoded.specialized.tree
    else:
        return None
    maps = Maps(sample, None if spec.search.recoding == "multidimensional" else tree.start)
    base = maps.add(tree, tree.assign(sample.leaves))
    rules = rules_of(spec, False)
    box = least_box(spec, newcomers, rules, lambda: _enough(sample, rules)) or 0
    within = newcomers.within
    today = Choice(task.least, math.ceil(within / WEEK) if isinstance(within, timedelta) else within, box, True)
    years = _Years(sample, maps, draw_history(len(sample.leaves), churn, RUNS), rules, {today.least: base})
    split = spec.search.recoding == "multidimensional"
    choices = _choices(today, task.implied if split and shown is None else None)
    rows = []
    for number, choice in enumerate(choices):
        outcome = years.outcome(choice)
        rows += [] if outcome is None else [(choice, outcome)]
        told(number + 1, len(choices) - number - 1)
    return Frontier(churn, sample.people, tuple(rows), *_recommended(spec, rows), _assumed(sample, shown))


def expected_of_task(task: Task, churn: Churn, progress: Progress | None, store: Store) -> dict[str, Any]:
    """What is expected of the next runs, with a search where there is no version."""
    spec = task.spec
    if not forecasts(spec):
        shown = shown_of(spec, store)
        if shown is not None:
            return _json(frontier(task, churn, None, shown, _told(progress)))
    return expected_of_search(run_search(task, progress=progress, stated=map_named_by(spec)), churn, progress, store)


def expected_of_search(
    result: SearchResult, churn: Churn | None, progress: Progress | None = None, store: Store | None = None
) -> dict[str, Any]:
    """The same for what a search found. churn: asked about; None: that of the runs so far, for a forecast alone."""
    spec = result.task.spec
    expected: dict[str, Any] = {}
    if forecasts(spec):
        forecast = forecast_of_search(result, churn, store)
        expected |= {} if forecast is None else {"forecast": forecast.to_json()}
    if churn is None or spec.newcomers is None or spec.bundles:
        return expected
    try:
        shown = shown_of(spec, store or store_of(spec)) if has_store(spec) else None
    except QblockError:
        # A run of the job reports what is wrong; values of the table are not told instead.
        return expected
    return expected | _json(frontier(result.task, churn, result, shown, _told(progress)))


def _json(rows: Frontier | None) -> dict[str, Any]:
    return {} if rows is None else {"frontier": rows.to_json()}


def _told(progress: Progress | None) -> Told:
    if progress is None:
        return lambda done, left: None
    pace = Pace("years", progress)
    return lambda done, left: pace(done, left, 0.0)


def _choices(today: Choice, implied: int | None) -> list[Choice]:
    """Those that are compared. implied: the least box that the models imply; None where boxes are no choice."""
    leasts = {today.least} if implied is None else {today.least, implied, *(math.ceil(implied * t) for t in TIMES)}
    return [
        today
        if (least, within) == (today.least, today.within)
        else Choice(least, within, today.box if least == today.least else max(today.box, least))
        for least in sorted(leasts)
        for within in sorted({*WITHIN, today.within})
    ]


class _Years:
    """Years of one history of people. base: the boxes of the first version by their least people."""

    def __init__(
        self, sample: Sample, maps: Maps, history: History, rules: Rules, base: dict[int, Ints | None]
    ) -> None:
        versions = sample.task.spec.versions
        self._sample, self._maps, self._history, self._base = sample, maps, history, base
        self._policy = Policy(rules, versions.leave or 0, versions.stale, versions.skip, sample.task.spec.shows_weights)
        self._cohorts: dict[tuple[int, int], dict[int, Cohort]] = {}
        self._there = history.present(history.last)
        self._workload = Workload(sample, history.row[self._there])

    def outcome(self, choice: Choice) -> Outcome | None:
        """None where no map has such boxes, or a version of it would be refused."""
        if choice.least not in self._base:
            self._base[choice.least] = self._maps.base(choice.least)
        base, history, sample = self._base[choice.least], self._history, self._sample
        if base is None:
            return None
        key = choice.within, choice.box
        if key not in self._cohorts:
            divide, enough = self._maps.cohorts(choice.box), choice.box or len(history.row) + 1
            self._cohorts[key] = draw_cohorts(history, every(choice.within), enough, divide)
        first = base[history.row[: len(base)]]
        year = simulate(history, first, self._cohorts[key], sample.values, self._policy, sample.fails)
        people = np.flatnonzero(year.cell >= 0)
        cell, there = year.cell[people], self._there[people]
        box, size = year.box[cell], np.bincount(cell, minlength=len(year.box))
        present = np.bincount(box[there], minlength=len(self._maps.labels)).astype(np.int64)
        weights = {"weighted": (year.counted / np.maximum(size, 1))[cell], "plain": np.ones(len(cell))}
        errors = self._workload.errors(self._maps.labels, box, history.row[people], weights)
        left, late = int((~there).sum()), history.came > 1
        return Outcome(
            boxes=len(np.unique(base)),
            loss=loss_of(sample, self._maps.labels, present),
            not_shown=float(year.hidden.mean()),
            most_not_shown=float(year.hidden.max()),
            longest_wait=year.longest_wait,
            newcomers=float(np.isin(year.cell[late], (WAITS, OUT), invert=True).mean()) if late.any() else 0.0,
            left=left / max(1, len(people)),
            gone=year.gone / max(1, year.gone + left),
            error=errors["weighted"],
            error_unweighted=errors["plain"],
            versions=year.versions,
        )


def _enough(sample: Sample, rules: Rules) -> int | None:
    """How many people nearly always pass, by the values of everybody."""
    spec, sensitives = sample.task.spec, sample.task.source.sensitives
    references = {name: sensitives[name].reference for name in sensitives}
    place = {name: i for i, name in enumerate(sensitives)}
    columns = [
        np.bincount(sample.values[:, place[name]], minlength=len(references[name].domain)).tolist()
        for name in spec.sensitives
    ]
    return size_for(spec, references, columns, rules.k)


def _recommended(spec: Spec, rows: Sequence[tuple[Choice, Outcome]]) -> tuple[Choice | None, str]:
    """The choice with the least loss of those that move within the limits, and why."""
    versions = spec.versions
    most = MOST_HIDDEN if versions.max_lag is None else float(versions.max_lag)
    wait = MOST_WAIT if versions.max_wait is None else math.floor(versions.max_wait / WEEK)
    said = f"{most:.3g}" if most < 0.01 else f"{100 * most:.3g} %"
    moving = [(choice, outcome) for choice, outcome in rows if outcome.moves]
    if not moving:
        return None, NONE_MOVES
    able = [(c, outcome) for c, outcome in moving if outcome.most_not_shown <= most and outcome.longest_wait <= wait]
    if not able:
        return None, NONE_WITHIN.format(said, wait)
    best, _ = min(able, key=lambda row: (row[1].loss, row[1].left, row[0].within))
    return best, BEST.format(said, wait)


def _assumed(sample: Sample, shown: Shown | None) -> tuple[str, ...]:
    sentences = [ASSUMED.format(AS_IT_IS if shown is None else AS_SHOWN.format(shown.version))]
    if shown is not None:
        sentences.append(BOXES_STAY.format(shown.version))
    if len(sample.leaves) < sample.people:
        sentences.append(DRAWN.format(f"{sample.people:,}", f"{len(sample.leaves):,}"))
    if sample.unguarded is not sample.task:
        sentences.append(NO_GUARDS)
    return tuple(sentences)


def _as_shown(sample: Sample, shown: Shown) -> tuple[Sample, Tree]:
    """The same people, each with values drawn from those that versions show in the box, and the map of the versions."""
    tree = Tree.of_json(dict(shown.stated), sample.ladders)
    part = tree.assign(sample.leaves)
    texts = {number: tuple(labels) for number, labels in shown.stated["boxes"]}
    rng = np.random.default_rng(SEED)
    known = dict(_valued(sample, shown))
    everybody = [np.concatenate(column) for column in zip(*known.values(), strict=True)]
    values = np.zeros_like(sample.values)
    for number in np.unique(part).tolist():
        there = np.flatnonzero(part == number)
        held, n = known.get(texts.get(number, ()), everybody)
        values[there] = held[rng.choice(len(held), size=len(there), p=n / n.sum())]
    return replace(sample, values=values), tree


def _valued(sample: Sample, shown: Shown) -> Iterator[tuple[tuple[int | str, ...], list[Ints]]]:
    """The values of each box, as codes, with how many people have them."""
    sensitives = sample.task.source.sensitives
    codes = [{text: i for i, text in enumerate(sensitives[name].reference.domain)} for name in sensitives]
    for block, counts in shown.values.items():
        read = [(split_text(text), n) for text, n in counts.items()]
        coded = [([code.get(text) for code, text in zip(codes, texts, strict=False)], n) for texts, n in read]
        there = [(values, n) for values, n in coded if None not in values]
        if there:
            held = np.array([values for values, _ in there], dtype=np.int64).reshape(len(there), len(codes))
            yield block, [held, np.array([n for _, n in there], dtype=np.int64)]
