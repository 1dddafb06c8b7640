"""Orders in which the nodes of a lattice are asked: chains, Incognito, each node, and a walk of limited time."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from qblock.blocks import Floats, Mask
from qblock.errors import InputError
from qblock.lattice import Lattice, Node, down, up
from qblock.search.lattice import (
    SLACK,
    Ask,
    BestOnly,
    Evaluator,
    LatticeState,
    Outcome,
    OutOfTime,
    Tags,
    Tally,
    count_down,
    count_up,
)

STRATEGIES = ("chains", "incognito", "exhaustive")
MOST_DECIDED = 100_000
"""Of a lattice that is decided as far as the time goes; in a larger one a search with a time walks."""
EXPONENT = 0.6
"""Of the open nodes that are asked until all are decided: about this power of their number."""
SAMPLE_COST = 0.1
"""What a sample of the blocks costs, of all of them."""
STALE = 0.02
"""The plan is made anew when so much of what was open is decided."""
PRIOR = 2.0
"""Weight of each level before anything is known: coarser nodes are likelier to pass."""
RIDGE = 0.05
STEPS = 4
CLIP = 30.0
Subset = tuple[int, ...]
Over = Callable[[], bool]
"""Whether the time of a search is over."""
WALKED = "This is the best of the nodes that were evaluated in the given time. Another node may be better."
ALL_WALKED = "No other minimal node is better: each was measured, or cannot be better."
TOP_FAILS = "The most general node fails, and so does every other one."
TOP_ALONE = "The most general node fails. No other node was looked at."


def search(
    evaluator: Evaluator,
    *,
    strategy: str = "chains",
    tally: Tally | None = None,
    best_only: BestOnly | None = None,
) -> Outcome:
    """Find all satisfying nodes of the evaluator's lattice, and the minimal ones among them.

    best_only: only a best node is asked for (not with "incognito", which goes by subsets and finds all). Raises
    InputError for an unknown strategy; whatever the evaluator or `tally` raises (KeyboardInterrupt too) passes through.
    """
    if strategy not in STRATEGIES:
        raise InputError(f"search strategy {strategy!r} is unknown; use one of {', '.join(STRATEGIES)}")
    state = LatticeState(evaluator, tally, best_only)
    _decide(state, strategy)
    return state.outcome(strategy, pruned=strategy != "exhaustive")


def search_within(
    evaluator: Evaluator,
    over: Over,
    *,
    promise: Callable[[Node], float],
    measure: Callable[[Node], float],
    bounded: bool = False,
    minimal_best: bool = True,
    strategy: str = "chains",
    tally: Tally | None = None,
    best_only: BestOnly | None = None,
) -> Outcome:
    """As `search`, until the time is over; then the outcome says which of the nodes that were come to is the best.

    promise, measure, bounded: as of `Walk`; minimal_best: whether a best node is minimal. A lattice of more than
    MOST_DECIDED nodes is walked, and nothing is held for each of its nodes.
    """
    if len(evaluator.lattice) > MOST_DECIDED:
        walk = Walk(evaluator, evaluator.passes, promise, measure, over, bounded=bounded, tally=tally)
        if walk.begin():
            walk.go_on()
        return walk.outcome(minimal_best=minimal_best)
    state = LatticeState(evaluator, tally, best_only, over)

    def ask(node: Node) -> bool:
        return state.ask_full([node])[0] if state.full.is_open(node) else bool(state.full.passed[node])

    try:
        Walk(evaluator, ask, promise, measure, over).begin()
        _decide(state, strategy)
        return state.outcome(strategy, pruned=strategy != "exhaustive")
    except OutOfTime:
        outcome = state.outcome(strategy)
        best = min(outcome.each_satisfying(), key=lambda node: (promise(node), sum(node), node), default=None)
        return replace(outcome, optimality="within", minimal=[], why=WALKED, best=best)


def _decide(state: LatticeState, strategy: str) -> None:
    """Decide the lattice; what is not monotone is scanned, after a phase of block sizes. "exhaustive" is the oracle:
    every node is asked for the full condition, finer ones first, and no property of any model is used."""
    if strategy == "chains":
        state.decide(lambda tags, ask: _decide_by_chains(state, tags, ask))
    elif strategy == "incognito":
        state.decide(_decide_by_subsets)
    else:
        nodes = state.lattice.nodes()
        while batch := list(itertools.islice(nodes, state.evaluator.max_concurrency)):
            state.plan_hubs(state.full.open.astype(np.float64), sizes=False)
            state.ask_full(batch, spread=False)


def _decide_by_chains(state: LatticeState, tags: Tags, ask: Ask) -> None:
    """Close all open nodes of a monotone condition: cut long chains of them where the verdict tells most.

    Tagging what a verdict implies both ways is the idea of Flash (Kohlmayer et al., "Flash: efficient, stable and
    optimal k-anonymity", 2012), which searches whole paths by bisection. A path is only one of the many chains through
    a node, and its middle is seldom where the border runs: here each question goes to the node that divides all chains
    best, given the verdicts so far. `ask` decides open nodes and what follows from them.
    """
    best_only = state.best_only if tags is state.full else None
    estimate = BoundaryEstimate(tags.lattice)
    planned, gain = 0, np.zeros(tags.lattice.shape)
    while remaining := int(np.count_nonzero(mask := tags.open & best_only.may_win() if best_only else tags.open)):
        if remaining < planned * (1 - STALE) or not planned:
            chance = estimate.chances()
            cost = state.plan_hubs(_wanted(mask, chance), sizes=tags is state.sizes)
            planned, gain = remaining, _gain(mask, chance, cost)
        nodes = _most_telling(mask, gain, state.evaluator.max_concurrency)
        for node, verdict in zip(nodes, ask(nodes), strict=True):
            estimate.learn(node, verdict)


def _gain(mask: Mask, chance: Floats, cost: Floats) -> Floats:
    """float64 over the lattice: how much of the lattice the verdict of each node is expected to decide, per cost.

    A pass decides the open nodes above, a fail those below; the geometric mean of the two, each weighted by its chance,
    prefers an even question. Half the cost of the bottom is added to every cost: a statement is never free.
    """
    even = np.sqrt(chance * count_up(mask) * (1 - chance) * count_down(mask))
    return _rounded(even / (cost + cost[(0,) * cost.ndim] / 2 + 1))


def _wanted(mask: Mask, chance: Floats) -> Floats:
    """float64 over the lattice: how often each node's counts may be read in full."""
    doubt = np.where(mask, chance * (1 - chance), 0.0)
    questions = np.count_nonzero(mask) ** EXPONENT
    # What fails is mostly refuted by a sample of the blocks.
    return _rounded(doubt * (questions / max(doubt.sum(), 1e-9)) * (chance + SAMPLE_COST))


def _rounded(values: Floats) -> Floats:
    """To seven digits: the last ones depend on the processor, and every machine is to ask the same questions."""
    return values.astype(np.float32).astype(np.float64)


def _most_telling(mask: Mask, gain: Floats, max_concurrency: int) -> list[Node]:
    """The open node with the largest gain, and more of them of which none decides another."""
    nodes: list[Node] = []
    left = np.where(mask, gain, -1.0)
    while len(nodes) < max_concurrency:
        flat = int(np.argmax(left))
        if left.flat[flat] < 0:
            break
        node = tuple(int(i) for i in np.unravel_index(flat, mask.shape))
        nodes.append(node)
        left[up(node)] = left[down(node)] = -1.0
    return nodes


class BoundaryEstimate:
    """A logistic model that adds up one weight per level of each attribute, refitted to the verdicts so far.

    It only orders the questions. Block counts fall by a factor per level, nearly independent of the other attributes,
    which is why a sum per level fits; where it does not, more nodes are asked, with the same answer.
    """

    def __init__(self, lattice: Lattice) -> None:
        self.lattice = lattice
        self.prior = np.append(np.full(sum(lattice.heights), PRIOR), 0.0)
        self.weights = self.prior.copy()
        self.rows: list[Floats] = []
        self.verdicts: list[bool] = []

    def learn(self, node: Node, verdict: bool) -> None:
        """Take a verdict into account."""
        steps = [np.arange(height) < level for level, height in zip(node, self.lattice.heights, strict=True)]
        self.rows.append(np.append(np.concatenate(steps) - 0.5, 1.0))
        self.verdicts.append(verdict)

    def _fit(self) -> None:
        """A few Newton steps with a ridge towards the prior, from where the last ones ended."""
        features, verdicts = np.array(self.rows), np.array(self.verdicts, dtype=np.float64)
        for _ in range(STEPS):
            chance = _logistic(features @ self.weights)
            slope = features.T @ (chance - verdicts) + RIDGE * (self.weights - self.prior)
            curve = (features.T * (chance * (1 - chance))) @ features + RIDGE * np.eye(len(self.weights))
            self.weights = self.weights - np.linalg.solve(curve, slope)

    def chances(self) -> Floats:
        """float64 over the lattice: the guessed probability that each node passes."""
        if self.rows:
            self._fit()
        total = np.full(self.lattice.shape, self.weights[-1])
        start = 0
        for axis, height in enumerate(self.lattice.heights):
            steps = np.tri(height + 1, height, -1) - 0.5
            values = steps @ self.weights[start : start + height]
            total += values.reshape([-1 if i == axis else 1 for i in range(total.ndim)])
            start += height
        return _logistic(total)


def _logistic(x: Floats) -> Floats:
    result: Floats = 1.0 / (1.0 + np.exp(-np.clip(x, -CLIP, CLIP)))
    return result


def _decide_by_subsets(tags: Tags, ask: Ask) -> None:
    """Close all open nodes of a monotone condition by Incognito (LeFevre, DeWitt and Ramakrishnan, SIGMOD 2005; LD
    section 5).

    Subsets of the quasi-identifiers are searched by size. A node of a subset is a candidate where its projection to
    every smaller subset survived; candidates are asked breadth-first from the finest, and what generalizes a passing
    node passes without being asked. A node of a subset stands for the full node whose other attributes are at their
    top, which has its blocks where the top is a single value, and passes in any case where a node below it passes: one
    evaluator serves all subsets, and a verdict given once is not asked again.

    Only what the algorithm has established is read from the tags: a candidate that an earlier verdict closed is not
    asked again, and everything else is closed when the last subset, all attributes, is done.
    """
    lattice = tags.lattice
    survivors: dict[Subset, Mask] = {}
    for size in range(1, len(lattice.heights) + 1):
        survivors_of_size = {}
        for subset in itertools.combinations(range(len(lattice.heights)), size):
            survivors_of_size[subset] = _survivors(subset, _candidates(lattice, subset, survivors), tags, ask)
        survivors = survivors_of_size
    tags.fail(tags.open)


def _candidates(lattice: Lattice, subset: Subset, survivors: dict[Subset, Mask]) -> Mask:
    """bool over the subset's lattice: the nodes whose projections to all subsets one smaller survived."""
    mask = np.ones(tuple(lattice.heights[i] + 1 for i in subset), dtype=bool)
    if len(subset) > 1:
        for axis in range(len(subset)):
            mask &= np.expand_dims(survivors[subset[:axis] + subset[axis + 1 :]], axis)
    return mask


def _survivors(subset: Subset, candidates: Mask, tags: Tags, ask: Ask) -> Mask:
    """bool over the subset's lattice: the candidates that pass, found breadth-first with the marking of the paper."""
    survived = np.zeros_like(candidates)
    for levels in sorted(map(tuple, np.argwhere(candidates).tolist()), key=lambda node: (sum(node), node)):
        if survived[levels]:
            continue
        node = _whole(tags.lattice, subset, levels)
        if ask([node])[0] if tags.is_open(node) else tags.passed[node]:
            survived[up(levels)] = True
    return survived & candidates


def _whole(lattice: Lattice, subset: Subset, levels: Node) -> Node:
    """The node of the full lattice that stands for a subset's node: all other attributes at their top."""
    node = list(lattice.top)
    for attribute, level in zip(subset, levels, strict=True):
        node[attribute] = level
    return tuple(node)


class Walk:
    """The best node that a search comes to in a given time, in a lattice of any size: only what is asked is held.

    It begins at the top, so that there is an answer after the first question. A descent makes one attribute finer at a
    time, the one that promises most, and ends at a node that is minimal if the condition is monotone. Every other
    minimal node is coarser in some attribute: for each attribute, a floor one level above the end, and a descent to
    there. Floors are taken up in the order of the ends that they come from, and left out where nothing above them can
    be better. A walk that ends by itself has come to every minimal node that may be the best.

    promise: what is known of a node without a count; measure: the metric of a node that satisfies; of both smaller
    ones are better. bounded: whether no measure is below the promise. over: whether the time is over.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        ask: Callable[[Node], bool],
        promise: Callable[[Node], float],
        measure: Callable[[Node], float],
        over: Over,
        *,
        bounded: bool = False,
        tally: Tally | None = None,
    ) -> None:
        self._evaluator, self._ask, self._over, self._tally = evaluator, ask, over, tally
        self._promise, self._measure, self._bounded = promise, measure, bounded
        self._monotone = evaluator.sizes_monotone if evaluator.sizes_only else evaluator.monotone
        width = len(evaluator.lattice.heights)
        self._verdicts: dict[Node, bool] = {}
        self._failed, self._ends = _Nodes(width), _Nodes(width)
        self._waiting: list[tuple[float, Node, Node]] = []
        """Floors, each with the end that it comes from and the value of that."""
        self._floors: set[Node] = set()
        self._values: dict[Node, float] = {}
        self.best: tuple[float, int, Node] | None = None

    def begin(self) -> bool:
        """Ask the top, and descend from it once; whether the top passes."""
        top, _ = self._evaluator.equivalent_range(self._evaluator.lattice.top)
        if not self._passes(top):
            return False
        self._end(top, self._evaluator.lattice.bottom)
        return True

    def go_on(self) -> None:
        """Go on from the best end, until the time is over or nothing that may be better is left."""
        while self._waiting and not self._over():
            _, floor, end = heapq.heappop(self._waiting)
            start = tuple(map(max, end, floor))
            if not self._hopeless(floor) and self._passes(start):
                self._end(start, floor)

    def outcome(self, *, minimal_best: bool) -> Outcome:
        """What is known of the lattice. minimal_best: whether a best node is minimal."""
        ended = not self._waiting and not self._over()
        proved = minimal_best and self._monotone and ended and self.best is not None
        failed = TOP_FAILS if self._monotone else TOP_ALONE
        return Outcome(
            strategy="walk",
            lattice=self._evaluator.lattice,
            satisfied=None,
            decided=None,
            minimal=[],
            nodes_evaluated=len(self._verdicts),
            optimality="best" if proved else "within",
            why=failed if self.best is None else ALL_WALKED if proved else WALKED,
            passed=tuple(sorted(node for node, verdict in self._verdicts.items() if verdict)),
            best=None if self.best is None else self.best[2],
        )

    def _end(self, start: Node, floor: Node) -> None:
        """Descend to the end above a floor; it is measured, and the floors beside it wait."""
        node = self._descended(start, floor)
        if node not in self._values:
            self._ends.add(node)
            # What cannot be measured in time is no better than what was.
            late = self.best is not None and self._over()
            value = self._values[node] = math.inf if late else float(f"{self._measure(node):.12g}")
            ranked = (value, sum(node), node)
            self.best = ranked if self.best is None else min(self.best, ranked)
        coarsest = self._evaluator.equivalent_range(node)[1]
        for i, (level, top) in enumerate(zip(coarsest, self._evaluator.lattice.top, strict=True)):
            beside = (*floor[:i], level + 1, *floor[i + 1 :])
            if level < top and beside not in self._floors and not self._hopeless(beside):
                self._floors.add(beside)
                heapq.heappush(self._waiting, (self._values[node], beside, node))

    def _hopeless(self, floor: Node) -> bool:
        """Whether nothing above a floor can be as good as the best node."""
        if not self._bounded or self.best is None:
            return False
        best = self.best[0]
        return self._promise(floor) > best + SLACK * abs(best)

    def _descended(self, node: Node, floor: Node) -> Node:
        """The end of a descent."""
        able = list(range(len(node)))
        while able and not self._over():
            steps = [(i, finer) for i in able if (finer := self._finer(node, i, floor)) is not None]
            if not steps:
                break
            attribute, finer = min(steps, key=lambda step: (self._promise(step[1]), step[0]))
            if self._passes(finer):
                node = finer
            else:
                # Of a monotone condition it fails below, too.
                able.remove(attribute)
        return node

    def _passes(self, node: Node) -> bool:
        if node in self._verdicts:
            return self._verdicts[node]
        if self._monotone and self._failed.any_above(node):
            return False
        if self._monotone and self._ends.any_below(node):
            return True
        verdict = self._verdicts[node] = self._ask(node)
        if not verdict:
            self._failed.add(node)
        if self._tally is not None:
            self._tally(len(self._verdicts), 0, 0.0)
        return verdict

    def _finer(self, node: Node, i: int, floor: Node) -> Node | None:
        """The node with one attribute one level finer, beyond levels that merge nothing."""
        if node[i] <= floor[i]:
            return None
        return self._evaluator.equivalent_range((*node[:i], node[i] - 1, *node[i + 1 :]))[0]


class _Nodes:
    """Nodes, of which it is asked whether any is above or below another."""

    def __init__(self, width: int) -> None:
        self._levels, self._number = np.zeros((64, width), dtype=np.int16), 0

    def add(self, node: Node) -> None:
        if self._number == len(self._levels):
            self._levels = np.concatenate((self._levels, np.zeros_like(self._levels)))
        self._levels[self._number] = node
        self._number += 1

    def any_above(self, node: Node) -> bool:
        return bool((self._levels[: self._number] >= np.array(node)).all(axis=1).any())

    def any_below(self, node: Node) -> bool:
        return bool((self._levels[: self._number] <= np.array(node)).all(axis=1).any())
