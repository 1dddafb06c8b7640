"""Columns that give back what generalization hides: published as they are, they tell a quasi-identifier's leaf.

Of two rows drawn at random among those with the same value of a column, how often do they have the same leaf of the
quasi-identifier? One over that is how many leaves remain, as many equally frequent ones (Simpson 1949, Measurement of
diversity). It is counted over pairs of rows, so small groups make nothing look determined.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa

from qblock.blocks import Floats, Ints
from qblock.checks.volatile import DIALECTS
from qblock.engines.tables import TableName
from qblock.lattice import Node
from qblock.search.task import Task

SURE = 20
"""How many rows would have told, were the columns independent; fewer may agree by chance."""
WHOLLY = 0.1
"""The share of those pairs that have different leaves after all, of a column that tells nearly every leaf."""
FEW_LEFT, TIMES_FEWER = 2.5, 4
"""Or so few leaves remain, and so many times fewer than without the column."""


@dataclass(frozen=True)
class Dependency:
    """column tells the leaves of a quasi-identifier `of`. without, left: how many leaves a label stands for, and how
    many remain for who sees the column beside it, as equally frequent ones; k: the smallest group of rows with one
    label of the others and one leaf, where a node is known, and with one leaf alone elsewhere; computed: whether the
    table computes the column of the quasi-identifier."""

    column: str
    of: str
    without: float
    left: float
    k: int
    computed: bool = False


@dataclass(frozen=True)
class _Pairs:
    """Ordered pairs of rows that agree in the label (and the column), and those of them with the same leaf. more: the
    rows that agree with one before them."""

    agree: float
    same: float
    more: float = 0.0

    @property
    def different(self) -> float:
        return 1 - self.same / self.agree if self.agree else 0.0

    @property
    def leaves(self) -> float:
        return self.agree / self.same if self.same else float("inf")

    def leaves_by_value(self, rows: int) -> float:
        """Leaves where the columns are known to depend on each other: a row agrees with itself, so that few rows tell,
        too. rows: of the table."""
        return (self.agree + rows) / (self.same + rows)


def dependencies(task: Task, node: Node | None, hidden: Collection[int] | None = None) -> list[Dependency]:
    """The columns published as they are that tell leaves of a quasi-identifier.

    Args:
        task: of the source as it is, before a map recodes it.
        node: what is published of each quasi-identifier; None where that is a map, or not known.
        hidden: the places of those that are not published as they are; by default all but those at level 0 of the node.
    """
    source = task.source
    if hidden is None:
        hidden = [i for i in range(len(source.quasi_identifiers)) if node is None or node[i] > 0]
    computed = _computed(task) if hidden else {}
    told: list[Dependency] = []
    for i in sorted(hidden):
        of = source.quasi_identifiers[i]
        for column, without, pairs in _of(task, i, None if node is None else node[i]):
            known, left = (p.leaves_by_value(source.rows) for p in (without, pairs))
            if of in computed.get(column, ()) and left < known:
                told.append(Dependency(column, of, known, left, _least(task, i, node), computed=True))
            elif _tells(without, pairs):
                told.append(Dependency(column, of, without.leaves, pairs.leaves, _least(task, i, node)))
    return told


def _computed(task: Task) -> dict[str, frozenset[str]]:
    """The columns that a published one is computed of, as the catalog has it."""
    shown = {*task.spec.insensitives, *task.source.sensitives}
    texts = task.source.session.expressions(TableName.parse(task.spec.source.table))
    texts = {name: text for name, text in texts.items() if name in shown}
    if not texts:
        return {}
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    named = {}
    for name, text in texts.items():
        with suppress(SqlglotError):
            tree = sqlglot.parse_one(text, dialect=DIALECTS[task.source.session.engine])
            named[name] = frozenset(column.name for column in tree.find_all(exp.Column))
    return named


def _tells(without: _Pairs, pairs: _Pairs) -> bool:
    if pairs.more * without.different < SURE:
        return False
    wholly = pairs.different <= WHOLLY * without.different
    return wholly or (pairs.leaves <= FEW_LEFT and pairs.leaves * TIMES_FEWER <= without.leaves)


def alone(task: Task, i: int, level: int | None) -> Node:
    """The node that shows one quasi-identifier, at a level, and hides the others."""
    top = task.source.frequency_sets.lattice.top
    return tuple((height if level is None else level) if j == i else height for j, height in enumerate(top))


def _of(task: Task, i: int, level: int | None) -> Iterator[tuple[str, _Pairs, _Pairs]]:
    """Each column that is published as it is, with the pairs of a quasi-identifier without it and with it."""
    source, hierarchy = task.source, task.source.hierarchies[i]
    labels = np.asarray(hierarchy.codes[len(hierarchy.codes) - 1 if level is None else level])
    numbers = range(len(source.sensitives))
    blocks = source.frequency_sets.blocks(alone(task, i, 0), tuple(numbers), keyed=True)
    leaf = _keys(blocks[0].keys, i)
    rows = blocks[0].total
    without = _Pairs(_pairs(_sizes(labels[leaf], None, rows)), _pairs(_sizes(leaf, None, rows)))
    if not without.different:
        return
    for name, of_value in zip(source.sensitives, blocks, strict=False):
        leaf = _keys(of_value.keys, i)[of_value.owner]
        sizes = _sizes(labels[leaf], of_value.value, of_value.count)
        same = _pairs(_sizes(leaf, of_value.value, of_value.count))
        yield name, without, _Pairs(_pairs(sizes), same, float((sizes - 1).sum()))
    for name, pairs in _insensitive(task, i, level).items():
        yield name, without, pairs


def _keys(keys: Ints | None, i: int) -> Ints:
    assert keys is not None
    return keys[:, i]


def _sizes(label: Ints, value: Ints | None, rows: Ints) -> Floats:
    """How many rows have the same label (and value), of each. rows: of each label (and value)."""
    if value is not None:
        label = label * (int(value.max(initial=0)) + 1) + value
    _, where = np.unique(label, return_inverse=True)
    return np.bincount(where, weights=rows).astype(np.float64)


def _pairs(sizes: Floats) -> float:
    return float((sizes * (sizes - 1)).sum())


def _insensitive(task: Task, i: int, level: int | None) -> Mapping[str, _Pairs]:
    """The pairs of each insensitive column, counted by the engine."""
    source, names = task.source, task.spec.insensitives
    if not names:
        return {}
    dimension, raw = source.dimensions[i], source.expression(source.quasi_identifiers[i])
    table = dimension.table.alias("qblock_leaves")
    leaf, label = dimension.covered(raw, table), table.c[f"c{dimension.height if level is None else level}"]
    joined = source.relation.outerjoin(table, raw == table.c.leaf)
    counted = []
    for number, name in enumerate(names):
        value = source.expression(name)
        for what, code in (("agree", label), ("same", leaf)):
            n = sa.cast(sa.func.count(), sa.Double)
            pairs = (n * (n - 1)).label("pairs")
            groups = sa.select(n.label("rows"), pairs).select_from(joined).group_by(value, code).subquery()
            counted.append(sa.select(sa.func.sum(groups.c.pairs)).scalar_subquery().label(f"{what}_{number}"))
            if what == "agree":
                more = sa.select(sa.func.sum(groups.c.rows - 1)).scalar_subquery()
                counted.append(more.label(f"more_{number}"))
    (row,) = source.session.fetch(sa.select(*counted)).to_pylist()
    figures = ("agree", "same", "more")
    return {name: _Pairs(*(float(row[f"{what}_{n}"]) for what in figures)) for n, name in enumerate(names)}


def _least(task: Task, i: int, node: Node | None) -> int:
    finer = alone(task, i, 0) if node is None else tuple(0 if j == i else level for j, level in enumerate(node))
    return int(task.source.frequency_sets.sizes(finer).size.min())
