"""Small tables under an attacker who knows the search for a map, and everybody's quasi-identifiers.

In `tests`: python -m recoding.attack --tables 100
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reference.recoding import Attribute

from .searched import Combination, People, Search, attacked, distinct, entropy, flat, frequency, paired

HOLDS = {"distinct": distinct(2), "frequency": frequency(2), "entropy": entropy(2)}
METRICS = ("loss", "discernibility")
SHAPES: list[tuple[Attribute, ...]] = [
    (flat("p", "wxyz"),),
    (flat("p", "1234", ascending=True),),
    (paired("p", ["x0", "x1", "y0", "y1"]),),
    (flat("p", "xyz"), flat("q", "uv")),
    (paired("p", ["x0", "x1", "y0"]), flat("q", "uv")),
]


@dataclass
class Tally:
    """certain: searches of which some answer leaves somebody one value; fewest: values that anybody is left with."""

    searches: int = 0
    assignments: int = 0
    certain: int = 0
    fewest: int = 99

    def add(self, people: People, search: Search) -> None:
        result = attacked(people, search.told, "abc")
        self.searches += 1
        self.assignments += result.assignments
        self.certain += result.fewest() < 2
        self.fewest = min(self.fewest, result.fewest())

    def __str__(self) -> str:
        return f"somebody certain in {self.certain} of {self.searches} searches ({self.assignments} assignments)"


def every(size: int) -> Iterator[People]:
    """All tables of so many people."""
    for attributes in SHAPES:
        leaves = list(itertools.product(*(attribute.paths for attribute in attributes)))
        for sizes in itertools.product(range(size + 1), repeat=len(leaves)):
            if sum(sizes) == size:
                yield People(attributes, {leaf: n for leaf, n in zip(leaves, sizes, strict=True) if n})


def drawn(tables: int, seed: int) -> Iterator[People]:
    """Random tables of four to seven people."""
    rng = random.Random(seed)
    for _ in range(tables):
        attributes = rng.choice(SHAPES)
        leaves = list(itertools.product(*(attribute.paths for attribute in attributes)))
        at: Counter[Combination] = Counter(rng.choices(leaves, k=rng.randint(4, 7)))
        yield People(attributes, {leaf: at[leaf] for leaf in leaves if at[leaf]})


def main(arguments: Sequence[str]) -> int:
    """Exit status 1 where somebody is certain of a map that was chosen by sizes alone."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--first", type=int, default=1, help="the seed")
    options = parser.parse_args(arguments)
    status = 0
    for what, tables in (
        ("every table of four people", [*every(4)]),
        ("every table of five people", [*every(5)]),
        ("random tables", [*drawn(options.tables, options.first)]),
    ):
        for sizes, name in itertools.product((True, False), HOLDS):
            tally = Tally()
            for people, by in itertools.product(tables, METRICS):
                tally.add(people, Search(people, HOLDS[name], by=by, sizes=sizes))
            print(f"{what}, {'sizes' if sizes else 'minimal'}, {name}: {tally}", flush=True)
            status |= sizes and tally.certain > 0
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
