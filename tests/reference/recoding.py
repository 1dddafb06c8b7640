"""Recoding maps by the leaves of their labels (docs/recoding.md): the splits of a part, a search, and a map's worth.

A label is the set of leaves that it stands for, a part of the table one label for each quasi-identifier. The children
of a set are the largest sets that it holds among those of the hierarchy, whichever level they are of.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

from reference.distance import kullback_leibler
from reference.exact import decimal_of, ln, negative, plus, times
from reference.tables import Row

Leaves = frozenset[Any]
Box = tuple[Leaves, ...]
Passes = Callable[[Box, tuple[Box, ...]], bool]
"""Whether a part passes; with the parts on the way to it, the whole table first."""
Node = tuple[int, ...]
MOST = 24
"""Attempts at a cut, or at a rest."""


@dataclass(frozen=True, eq=False)
class Attribute:
    """A quasi-identifier.

    paths: {leaf: its labels, itself first and the top last}; the leaf None is NULL, and apart from all others below
    the top. ascending: the leaves of a column of numbers or dates.
    """

    name: str
    paths: dict[Any, Sequence[Any]]
    ascending: tuple[Any, ...] | None = None

    @property
    def height(self) -> int:
        return len(next(iter(self.paths.values()))) - 1

    @property
    def top(self) -> Leaves:
        return frozenset(self.paths)

    @cached_property
    def levels(self) -> list[dict[Leaves, Any]]:
        """By level: the label of each set of leaves."""
        found = []
        for level in range(self.height + 1):
            sets: dict[Any, set[Any]] = {}
            for leaf, path in self.paths.items():
                sets.setdefault((leaf is None and level < self.height, path[level]), set()).add(leaf)
            found.append({frozenset(leaves): label for (_, label), leaves in sets.items()})
        return found

    @cached_property
    def order(self) -> tuple[Any, ...] | None:
        """All leaves ascending, NULL last, where every label has neighbours only."""
        if self.ascending is None:
            return None
        order = (*(leaf for leaf in self.ascending if leaf is not None), *((None,) if None in self.paths else ()))
        runs = {frozenset(order[i:j]) for j in range(len(order) + 1) for i in range(j)}
        return order if all(leaves in runs for level in self.levels for leaves in level) else None

    def label(self, leaf: Any, level: int) -> Leaves:
        """The set at a level that holds a leaf."""
        return next(leaves for leaves in self.levels[level] if leaf in leaves)

    def children(self, leaves: Leaves) -> list[Leaves]:
        """The largest sets of the hierarchy that this one holds, in their order."""
        labels = {one for level in self.levels for one in level}
        if None in leaves and leaves not in labels and self.order is not None:
            # Some of the values and NULL: it stays with as few of them as it can.
            return [frozenset({leaf}) for leaf in self.order if leaf in leaves]
        held = {one for one in labels if one < leaves}
        largest = [one for one in held if not any(one < other for other in held)]
        order = self.order
        if order is not None:
            return sorted(largest, key=lambda one: min(order.index(leaf) for leaf in one))
        return sorted(largest, key=lambda one: (one == {None}, str(self._called(one))))

    def _called(self, leaves: Leaves) -> Any:
        return [level[leaves] for level in self.levels if leaves in level][-1]

    def share(self, leaves: Leaves, below: int) -> Fraction:
        """The share of the hierarchy that a label is generalized by: of several children of one label as of that one.
        below: the level where the splits began."""
        whole = min((one for level in self.levels for one in level if leaves <= one), key=len)
        if not self.height:
            return Fraction(0)
        return Fraction(max(i for i, level in enumerate(self.levels[: below + 1]) if whole in level), self.height)


@dataclass(frozen=True, eq=False)
class Recoding:
    """A table that is to be recoded."""

    attributes: tuple[Attribute, ...]
    rows: list[Row]
    sensitive: str = "s"

    @property
    def everything(self) -> Box:
        return tuple(attribute.top for attribute in self.attributes)

    def has(self, box: Box, row: Row) -> bool:
        return all(row[one.name] in leaves for one, leaves in zip(self.attributes, box, strict=True))

    def inside(self, box: Box) -> list[Row]:
        """The rows of a part."""
        if box not in self._inside:
            self._inside[box] = [row for row in self.rows if self.has(box, row)]
        return self._inside[box]

    @cached_property
    def _inside(self) -> dict[Box, list[Row]]:
        return {}

    def blocks(self, node: Node) -> list[Box]:
        """The parts that hold rows where all labels are of a node's levels."""
        found = (
            tuple(one.label(row[one.name], level) for one, level in zip(self.attributes, node, strict=True))
            for row in self.rows
        )
        return list(dict.fromkeys(found))

    def splits(self, box: Box, at: int, passes: Passes, path: tuple[Box, ...]) -> Iterator[list[Box]]:
        """Every split of a part by one attribute, the preferred first: the parts of each that hold rows. path: to the
        part, which is its last."""
        children = [(c, one) for c in self.attributes[at].children(box[at]) if self.inside(one := _with(box, at, c))]
        if not self.attributes[at].children(box[at]):
            return
        yield [one for _, one in children]
        if self.attributes[at].order is not None:
            yield from self._cuts(box, at, children)
        else:
            yield from self._rests(box, at, children, [passes(one, path) for _, one in children])

    def _cuts(self, box: Box, at: int, children: list[tuple[Leaves, Box]]) -> Iterator[list[Box]]:
        order = self.attributes[at].order
        assert order is not None
        sizes, whole = [len(self.inside(one)) for _, one in children], len(self.inside(box))
        places = sorted(range(1, len(children)), key=lambda i: (abs(2 * sum(sizes[:i]) - whole), i))
        missing = children[-1][0] == {None}
        if missing:
            # Rows without a value go first, alone or with the few greatest.
            places = [*reversed(range(1, len(children)))]
        for place in places[:MOST]:
            first = min(map(order.index, children[place][0]))
            low = frozenset(leaf for leaf in box[at] if order.index(leaf) < first)
            yield [_with(box, at, low), _with(box, at, box[at] - low - (set() if missing else {None}))]

    def _rests(self, box: Box, at: int, children: list[tuple[Leaves, Box]], passing: list[bool]) -> Iterator[list[Box]]:
        alone = [child for child, passed in zip(children, passing, strict=True) if passed]
        alone.sort(key=lambda child: len(self.inside(child[1])))
        for joined in range(min(len(alone), MOST)):
            left = alone[joined:]
            rest = box[at].difference(*(leaves for leaves, _ in left))
            if self.inside(_with(box, at, rest)):
                yield [*(one for _, one in left), _with(box, at, rest)]

    def gain(self, by: str, box: Box, parts: Sequence[Box], at: int) -> int | Decimal:
        """How much less is lost; of loss for each nat of the entropy of the sizes of the parts, in 9 digits."""
        if by == "discernibility":
            return len(self.inside(box)) ** 2 - sum(len(self.inside(one)) ** 2 for one in parts)
        if by == "loss":
            fewer = sum(len(self.inside(one)) * (len(box[at]) - len(one[at])) for one in parts)
            less = decimal_of(Fraction(fewer, max(len(self.attributes[at].paths) - 1, 1)))
            nats = plus(_spread(len(self.inside(box))), *(negative(_spread(len(self.inside(one)))) for one in parts))
            if nats < Decimal("1e-60"):
                return Decimal("Infinity") if less else Decimal(0)
            return Context(prec=9).divide(less, nats)
        nats = [times(len(self.inside(one)), ln(Fraction(len(box[at]), len(one[at])))) for one in parts]
        nats += [times(n, ln(n)) for one in parts for n in self._values(one).values()]
        nats += [times(-n, ln(n)) for n in self._values(box).values()]
        return round(plus(*nats) / len(self.rows), 12)

    def _values(self, box: Box) -> Counter[Any]:
        return Counter(row[self.sensitive] for row in self.inside(box))

    def specialize(self, node: Node, by: str, passes: Passes) -> list[Box] | None:
        """The boxes that hold rows where the splits begin at a node and nothing is suppressed; None if it fails."""
        everything, done = (self.everything,), []
        opened = [(box, (*everything, box)) for box in self.blocks(node)]
        if not all(passes(box, everything) for box, _ in opened):
            return None
        while opened:
            box, path = opened.pop()
            found = []
            for at in range(len(self.attributes)):
                good = (parts for parts in self.splits(box, at, passes, path) if all(passes(p, path) for p in parts))
                if (parts := next(good, None)) is not None:
                    found.append((self.gain(by, box, parts, at), -at, parts))
            if not found:
                done.append(box)
                continue
            best = max(found, key=lambda one: one[:2])[2]
            opened += [(one, (*path, one)) for one in best]
        return done


@cache
def _spread(n: int) -> Decimal:
    """n ln n."""
    return times(n, ln(n))


@dataclass(frozen=True, eq=False)
class Published:
    """What a map publishes, cell by cell. boxes: those that are published; begun: the node where the splits began."""

    table: Recoding
    boxes: list[Box]
    begun: Node

    @cached_property
    def _shown(self) -> list[tuple[Row, Box | None]]:
        found = []
        for row in self.table.rows:
            boxes = [box for box in self.boxes if self.table.has(box, row)]
            assert len(boxes) <= 1
            found.append((row, boxes[0] if boxes else None))
        return found

    def _cells(self, at: int) -> Iterator[tuple[Any, Leaves | None]]:
        """Each row's leaf, and the label that it is published with."""
        for row, box in self._shown:
            yield row[self.table.attributes[at].name], None if box is None else box[at]

    def _sizes(self) -> list[int]:
        return list(Counter(box for _, box in self._shown if box is not None).values())

    def average_block_size(self) -> float:
        sizes = self._sizes()
        return sum(sizes) / len(sizes) if sizes else math.inf

    def discernibility(self) -> int:
        sizes, rows = self._sizes(), len(self.table.rows)
        return sum(size**2 for size in sizes) + (rows - sum(sizes)) * rows

    def loss(self) -> float:
        product = 1.0
        for at, attribute in enumerate(self.table.attributes):
            size = len(attribute.paths)
            cells = [Fraction((len(label or attribute.top)) - 1, max(size - 1, 1)) for _, label in self._cells(at)]
            product *= 1 + sum(cells) / len(cells)
        return float(product ** (1 / len(self.table.attributes))) - 1

    def precision(self) -> float:
        shares = []
        for at, attribute in enumerate(self.table.attributes):
            lost = [Fraction(1) if x is None else attribute.share(x, self.begun[at]) for _, x in self._cells(at)]
            shares.append(sum(lost) / len(lost) if attribute.height else Fraction(0))
        return float(1 - sum(shares) / len(shares))

    def non_uniform_entropy(self) -> float:
        bits = 0.0
        for at, _ in enumerate(self.table.attributes):
            cells = list(self._cells(at))
            rows = Counter(leaf for leaf, _ in cells)
            for leaf, label in cells:
                around = len(cells) if label is None else sum(rows[one] for one in label)
                bits += math.log2(around / rows[leaf])
        return bits

    def kl_divergence(self) -> Decimal | float:
        s, shown = self.table.sensitive, [(row, box) for row, box in self._shown if box is not None]
        if not shown:
            return math.inf
        pairs = Counter((box, row[s]) for row, box in shown)
        whole = Counter((box, row[s], *(row[a.name] for a in self.table.attributes)) for row, box in shown)
        terms = []
        for (box, value, *_), c in whole.items():
            volume = math.prod(map(len, box))
            terms.append((Fraction(c, len(shown)), Fraction(c * volume, pairs[box, value])))
        return kullback_leibler(terms)

    def query_error(self, queries: Iterable[tuple[Sequence[Leaves | None], frozenset[Any] | None]]) -> float:
        """The mean over count queries, each of leaves for some quasi-identifiers and of sensitive values."""
        errors = []
        for wanted, values in queries:
            true, estimate = 0, Fraction(0)
            for row, box in self._shown:
                if values is not None and row[self.table.sensitive] not in values:
                    continue
                pairs = list(zip(self.table.attributes, wanted, strict=True))
                true += all(w is None or row[a.name] in w for a, w in pairs)
                if box is not None:
                    shares = [Fraction(len(w & x), len(x)) for w, x in zip(wanted, box, strict=True) if w is not None]
                    estimate += math.prod(shares, start=Fraction(1))
            errors.append(abs(estimate - true) / max(Fraction(true), Fraction(len(self.table.rows), 1000)))
        return float(sum(errors) / len(errors)) if errors else 0.0


def _with(box: Box, at: int, leaves: Leaves) -> Box:
    return (*box[:at], leaves, *box[at + 1 :])
