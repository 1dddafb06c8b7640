"""One search for a recoding map: from the top, and from the node that full-domain recoding would take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from qblock.lattice import Node
from qblock.recoding import Tree
from qblock.search.recoding.counting import Counting
from qblock.search.recoding.gain import Gain
from qblock.search.recoding.judge import Judge, with_guards, with_population
from qblock.search.recoding.recoded import Recoded, Start
from qblock.search.recoding.specialize import RoundTally, Specialization
from qblock.search.strategies.evaluator import Tally
from qblock.search.task import Task
from qblock.search.utility.measure import Metrics
from qblock.source import ladders_of

NOISE = 1e-12
"""Of a loss that is computed in two ways."""


def specialized(
    task: Task, node: Node | None, new_tally: Callable[[], Tally | None], over: Callable[[], bool] = lambda: False
) -> Recoded | None:
    """The map with less loss of those that begin at the top and at a node; None where neither can begin.

    node: that full-domain recoding would take, None where there is none. told: gives what is told of each of them: the
    boxes that are done, and the parts that are open; over: whether the time is over, after which no round begins.
    """
    starts: list[tuple[Start, Node]] = [("top", task.lattice.top)]
    if node is not None and node != task.lattice.top:
        starts.append(("node", node))
    best: Recoded | None = None
    for start, at in starts:
        recoded = _from(task, start, at, _rounds(new_tally()), over)
        if recoded is not None and (best is None or recoded.loss() < best.loss()):
            best = recoded
    if best is not None and node is not None and task.budget and best.loss() > _loss(task, node) + NOISE:
        # Rows were suppressed for what a split gains by another metric, or of some attributes alone.
        recoded = _from(task, "node", node, _rounds(new_tally()), over, spend=False)
        best = best if recoded is None else recoded
    return best


def _loss(task: Task, node: Node) -> float:
    by_sizes = task.spec.search.choose_from == "sizes"
    return float(Metrics(task, by_sizes=by_sizes).rank(node, "loss"))


def _rounds(tally: Tally | None) -> RoundTally | None:
    return None if tally is None else lambda done, left: tally(done, left, 0.0)


def named(task: Task, stated: Mapping[str, Any], tally: Tally | None) -> Recoded:
    """A map that is known, over what the source holds now. stated: the map as it is kept.

    Raises InputError where a hierarchy that it cuts does not keep the order of its values any more.
    """
    specialization, judge = _specialization(task, by_sizes=False)
    tree = Tree.of_json(stated, specialization.ladders)
    boxes = specialization.follow(tree, _rounds(tally))
    return Recoded(task, boxes, judge, "top" if tree.start == task.lattice.top else "node", specialization.path, stated)


def _from(
    task: Task, start: Start, node: Node, tally: RoundTally | None, over: Callable[[], bool], *, spend: bool = True
) -> Recoded | None:
    specialization, judge = _specialization(task, by_sizes=task.spec.search.choose_from == "sizes")
    boxes = specialization.run(node, tally, over, spend=spend)
    return None if boxes is None else Recoded(task, boxes, judge, start, specialization.path)


def _specialization(task: Task, *, by_sizes: bool) -> tuple[Specialization, Judge]:
    """A search that has not begun, and who judges its boxes."""
    source, spec = task.source, task.spec
    by = spec.search.choose_by
    steps = ladders_of(spec, source.hierarchies, source.columns)
    index = {name: i for i, name in enumerate(source.sensitives)}
    looked_at = {index[name] for requirement in spec.privacy for name in requirement.sensitive}
    if task.forbids_held_by_all:
        looked_at.update(index.values())
    if by == "kl_divergence" and source.sensitives:
        looked_at.add(0)
    needed = sorted(looked_at)
    populations = [task.population_sets(requirement) for requirement in with_population(spec.privacy)]
    guards = [task.guard_frequency_sets(requirement) for requirement in with_guards(spec.privacy)]
    counting = Counting(source.frequency_sets, steps, needed, populations, guards)
    gain = Gain(
        by, steps, source.rows, task.spec.weights, needed.index(0) if by == "kl_divergence" and needed else None
    )
    judge = Judge(task, needed, sizes=by_sizes)
    specialization = Specialization(counting, steps, judge, gain, task.budget)
    return specialization, Judge(task, needed) if by_sizes else judge
