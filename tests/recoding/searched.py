"""The whole search for a map, slowly: a node, both beginnings, and all parts that a map divides a table into.

What it publishes of every assignment of values to a few people is what the attacker of `test_attack.py` tells apart.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reference.recoding import Attribute, Box, Node, Published, Recoding

Combination = tuple[Any, ...]
"""A leaf of each quasi-identifier."""
Counts = Mapping[Any, int]
Holds = Callable[[Counts], bool]
Told = frozenset[tuple[Box, tuple[Any, ...]]]
"""What readers see: boxes, each with its values in order."""
Values = tuple[tuple[Any, ...], ...]
"""For each combination the values of its people, in order: they are alike."""


def distinct(l: int) -> Holds:  # noqa: E741
    return lambda counts: sum(n > 0 for n in counts.values()) >= l


def frequency(l: int) -> Holds:  # noqa: E741
    return lambda counts: max(counts.values()) * l <= sum(counts.values())


def entropy(l: int) -> Holds:  # noqa: E741
    """Exactly: sum p log p <= -log l, where l**n * product(c**c) <= n**n."""

    def holds(counts: Counts) -> bool:
        n, product = sum(counts.values()), 1
        for c in counts.values():
            product *= c**c
        return bool(product * l**n <= n**n)

    return holds


@dataclass(frozen=True, eq=False)
class People:
    """A table without its values. at: how many people have each combination."""

    attributes: tuple[Attribute, ...]
    at: dict[Combination, int]

    def __post_init__(self) -> None:
        rows = [dict(zip(self.names, leaf, strict=True)) for leaf, n in self.at.items() for _ in range(n)]
        object.__setattr__(self, "table", Recoding(self.attributes, rows))

    table: Recoding = field(init=False)

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.attributes]

    @property
    def nodes(self) -> list[Node]:
        return list(itertools.product(*(range(one.height + 1) for one in self.attributes)))

    def inside(self, box: Box) -> list[int]:
        """The combinations of people in a part, by number."""
        if box not in self._inside:
            self._inside[box] = [
                i for i, leaf in enumerate(self.at) if all(x in leaves for x, leaves in zip(leaf, box, strict=True))
            ]
        return self._inside[box]

    _inside: dict[Box, list[int]] = field(default_factory=dict)

    def assignments(self, values: Sequence[Any]) -> Iterator[Values]:
        """Every one up to exchange of people with one combination."""
        return itertools.product(*(itertools.combinations_with_replacement(values, n) for n in self.at.values()))


@dataclass(frozen=True, eq=False)
class Search:
    """sizes: whether splits and nodes are chosen by the least block size k alone, and all boxes checked afterwards."""

    people: People
    holds: Holds
    k: int = 2
    by: str = "loss"
    sizes: bool = False
    node_must_hold: bool = False
    """By sizes: the fault that splits begin at the node only where it satisfies all models."""

    def large(self, box: Box) -> bool:
        return len(self.people.table.inside(box)) >= self.k

    def counts(self, values: Values, box: Box) -> Counter[Any]:
        return Counter(itertools.chain(*(values[i] for i in self.people.inside(box))))

    def passes(self, values: Values, box: Box) -> bool:
        return self.large(box) and self.holds(self.counts(values, box))

    def parts(self, values: Values) -> list[Box] | None:
        """All parts of the map, those that hold nobody too; None where nothing is published."""
        chosen = self._chosen(None if self.sizes else values, values)
        if chosen is None or not all(self.passes(values, box) for box in chosen if self.people.inside(box)):
            return None
        return chosen

    def told(self, values: Values) -> Told | None:
        found = self.parts(values)
        return None if found is None else self.shown(values, found)

    def shown(self, values: Values, parts: Sequence[Box]) -> Told:
        return frozenset(
            (box, tuple(sorted(self.counts(values, box).elements()))) for box in parts if self.people.inside(box)
        )

    def _chosen(self, looked_at: Values | None, values: Values) -> list[Box] | None:
        """looked_at: the values that the choice may depend on, if any."""
        memo = self._memo.setdefault(None, {}) if looked_at is None else {}

        def passes(box: Box, _: Any = ()) -> bool:
            return self.large(box) if looked_at is None else self.passes(looked_at, box)

        table, nodes = self.people.table, []
        for node in self.people.nodes:
            blocks = table.blocks(node)
            if all(map(passes, blocks)):
                shown = Published(table, blocks, node)
                worth = shown.discernibility() if self.by == "discernibility" else float(f"{shown.loss():.12g}")
                nodes.append((worth, sum(node), node))
        top = tuple(one.height for one in self.people.attributes)
        starts = [top]
        if nodes and (node := min(nodes)[2]) != top:
            held = not self.node_must_hold or all(self.passes(values, box) for box in table.blocks(node))
            starts += [node] if held else []
        best: tuple[float, list[Box]] | None = None
        for start in starts:
            if start not in memo:
                memo[start] = self._from(start, passes)
            found = memo[start]
            if found is not None:
                loss = self._loss([box for box in found if self.people.inside(box)], start)
                best = (loss, found) if best is None or loss < best[0] else best
        return None if best is None else best[1]

    _memo: dict[Any, Any] = field(default_factory=dict)

    def _loss(self, boxes: list[Box], begun: Node) -> float:
        key = (frozenset(boxes), "loss")
        if key not in self._memo:
            self._memo[key] = Published(self.people.table, boxes, begun).loss()
        return self._memo[key]  # type: ignore[no-any-return]

    def _from(self, node: Node, passes: Callable[..., bool]) -> list[Box] | None:
        """`Recoding.specialize`, with the parts that hold nobody."""
        table, done = self.people.table, []
        every = itertools.product(*(one.levels[level] for one, level in zip(self.people.attributes, node, strict=True)))
        opened = []
        for box in every:
            (opened if self.people.inside(box) else done).append(box)
        if not all(passes(box) for box in opened):
            return None
        while opened:
            box = opened.pop()
            found: list[tuple[Any, int, list[Box]]] = []
            for at in range(len(box)):
                good = (parts for parts in table.splits(box, at, passes, (box,)) if all(map(passes, parts)))
                if (parts := next(good, None)) is not None:
                    found.append((table.gain(self.by, box, parts, at), -at, parts))
            if not found:
                done.append(box)
                continue
            _, at, parts = max(found, key=lambda one: one[:2])
            opened += parts
            covered = frozenset().union(*(part[-at] for part in parts))
            left = [leaves for leaves in table.attributes[-at].children(box[-at]) if not leaves & covered]
            done += [(*box[:-at], leaves, *box[1 - at :]) for leaves in left]
        return done


@dataclass(frozen=True)
class Attacked:
    """told: what is published, with the values that people of each combination may have; assignments: all of them."""

    told: dict[Told, list[set[Any]]]
    assignments: int
    refused: int

    def fewest(self) -> int:
        """Candidates of whom there are fewest; of nobody, a large number."""
        return min((len(some) for found in self.told.values() for some in found), default=99)

    def disclosing(self, l: int) -> list[Told]:  # noqa: E741
        return [told for told, found in self.told.items() if any(len(some) < l for some in found)]


def attacked(people: People, told: Callable[[Values], Told | None], values: Sequence[Any]) -> Attacked:
    """The attacker knows everybody's combination and the search, and runs it on every assignment."""
    found: dict[Told, list[set[Any]]] = {}
    assignments = refused = 0
    for some in people.assignments(values):
        assignments += 1
        one = told(some)
        if one is None:
            refused += 1
            continue
        candidates = found.setdefault(one, [set() for _ in some])
        for known, held in zip(candidates, some, strict=True):
            known.update(held)
    return Attacked(found, assignments, refused)


def flat(name: str, leaves: str, *, ascending: bool = False) -> Attribute:
    """Leaves below the top; as numbers, if ascending."""
    if ascending:
        numbers = tuple(range(1, len(leaves) + 1))
        return Attribute(name, {i: [str(i), "*"] for i in numbers}, numbers)
    return Attribute(name, {leaf: [leaf, "*"] for leaf in leaves})


def paired(name: str, leaves: Sequence[str]) -> Attribute:
    """Leaves below their first letters."""
    return Attribute(name, {leaf: [leaf, leaf[0], "*"] for leaf in leaves})
