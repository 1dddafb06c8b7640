"""How wrong the count queries of an analyst are, answered from a node: true counts, for those who run the job alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qblock.errors import counted
from qblock.lattice import Node
from qblock.metrics.formulas import Query
from qblock.results.report import QueryShown, WorkloadShown
from qblock.search.boxes.recoded import Recoded
from qblock.search.task import Task
from qblock.search.utility import Metrics
from qblock.search.workload import workload_of
from qblock.spec.workload import Between, Condition, WrittenWorkload

WORST = 10
"""Queries that are named."""


def read_workload(task: Task, node: Node | None, recoded: Recoded | None = None) -> WorkloadShown | None:
    """The errors of the workload that the spec names at a node, or in a recoding map where one is given. None without
    one, or without a node or a map."""
    search = task.spec.search
    if (node is None and recoded is None) or (search.workload is None and search.choose_by != "query_error"):
        return None
    if recoded is not None:
        answers = recoded.answers()
    else:
        assert node is not None
        answers = Metrics(task).answers(task.assess(node))
    errors, words = answers.errors, _in_words(task)
    return WorkloadShown(
        levels=node if recoded is None else None,
        queries=len(errors),
        drawn=not isinstance(search.workload, WrittenWorkload),
        median=float(np.median(errors)),
        worst=float(errors.max()),
        worst_queries=tuple(
            QueryShown(
                number=number + 1,
                query=words[number],
                true=int(answers.true[number]),
                expected=float(answers.expected[number]),
                error=float(errors[number]),
            )
            for number in np.argsort(-errors, kind="stable")[:WORST].tolist()
        ),
    )


def _in_words(task: Task) -> list[str]:
    """What each query asks for: as it is written; of one that was drawn, how many values, and no value of the data."""
    source, workload = task.source, task.spec.search.workload
    if isinstance(workload, WrittenWorkload):
        return ["; ".join(f"{name} {_condition(wanted)}" for name, wanted in query) for query in workload.queries]
    sensitive, queries = workload_of(source)
    names = [*source.quasi_identifiers, *list(source.sensitives)[sensitive : sensitive + 1]]
    return [_drawn(names, query) for query in queries]


def _condition(wanted: Condition) -> str:
    if isinstance(wanted, Between):
        ends = (("from", wanted.least), ("to", wanted.most))
        return " ".join(f"{word} {end}" for word, end in ends if end is not None)
    return " or ".join("NULL" if value is None else value for value in wanted)


def _drawn(names: Sequence[str], query: Query) -> str:
    wanted = zip(names, [*query.leaves, query.values][: len(names)], strict=True)
    return "; ".join(f"{name}: {counted(len(codes), 'value')}" for name, codes in wanted if codes is not None)
