"""Worked examples as the engine sees them: blocks, references, hierarchies, and shorthands for asking a model."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from reference.worked import INPATIENT, exact, read_rows

from qblock.blocks import Blocks, Containing, Reference
from qblock.hierarchy import Hierarchy
from qblock.lattice import Lattice, Node, is_generalization
from qblock.metrics import Leaves, Published
from qblock.metrics.formulas import generalize, number_rows
from qblock.models import BY_NAME

Given = tuple[Blocks, Reference]
INPATIENT_NAMES = list(INPATIENT)


def read_hierarchy(path: Path) -> Hierarchy:
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    return Hierarchy(header[0], tuple(header), tuple(zip(*lines, strict=True)))


def histograms(found: Sequence[dict[Any, int]], totals: dict[Any, int] | None = None, **more: Any) -> Given:
    """Blocks by their counts, in a table with these totals (their own by default); the domain in the totals' order."""
    domain = list(totals) if totals else sorted({value for one in found for value in one})
    blocks = Blocks.of([{domain.index(value): n for value, n in one.items()} for one in found])
    table = totals or {value: sum(one.get(value, 0) for one in found) for value in domain}
    counts = np.array([table[value] for value in domain], np.int64)
    return blocks, Reference(int(counts.sum()), tuple(map(str, domain)), counts, **more)


def numbers(found: Sequence[Sequence[Any]]) -> Given:
    """Blocks of numbers."""
    domain = sorted({Fraction(x) for rows in found for x in rows})
    counts = [{x: [Fraction(y) for y in rows].count(x) for x in map(Fraction, rows)} for rows in found]
    totals = {x: sum(one.get(x, 0) for one in counts) for x in domain}
    return histograms(counts, totals, numbers=tuple(domain), ordered=True)


def published(path: Path, quasi_identifiers: Sequence[str], sensitive: str) -> Given:
    """A table that somebody generalized already; blocks in the order of their labels."""
    rows = read_rows(path)
    keys = sorted({tuple(row[name] for name in quasi_identifiers) for row in rows})
    found: list[dict[Any, int]] = [{} for _ in keys]
    for row in rows:
        one = found[keys.index(tuple(row[name] for name in quasi_identifiers))]
        one[row[sensitive]] = one.get(row[sensitive], 0) + 1
    return histograms(found)


@dataclass(frozen=True, eq=False)
class Source:
    """A raw table with hierarchies, rolled up in memory from its leaf frequency set."""

    hierarchies: tuple[Hierarchy, ...]
    leaves: Leaves
    domain: tuple[str, ...]

    @classmethod
    def of(cls, rows: Sequence[dict[str, Any]], hierarchies: Sequence[Hierarchy], sensitive: str) -> Source:
        domain = tuple(sorted({row[sensitive] for row in rows}))
        places = [{leaf: i for i, leaf in enumerate(h.leaves)} for h in hierarchies]
        columns = [[place[row[h.attribute]] for row in rows] for place, h in zip(places, hierarchies, strict=True)]
        codes = np.array([*columns, [domain.index(row[sensitive]) for row in rows]], np.int64).T
        distinct, count = np.unique(codes, axis=0, return_counts=True)
        return cls(tuple(hierarchies), Leaves(distinct[:, :-1], distinct[:, -1], count), domain)

    @property
    def lattice(self) -> Lattice:
        return Lattice(tuple(h.height for h in self.hierarchies))

    @cached_property
    def reference(self) -> Reference:
        totals = np.bincount(self.leaves.value, weights=self.leaves.count, minlength=len(self.domain)).astype(np.int64)
        return Reference(int(totals.sum()), self.domain, totals)

    def _numbered(self, node: Node) -> tuple[Any, Any]:
        labels = generalize(self.leaves.codes, node, self.hierarchies)
        _, first, block = np.unique(number_rows(labels), return_index=True, return_inverse=True)
        return labels[first], block

    def blocks(self, node: Node, containing: bool = False) -> Blocks:
        keys, block = self._numbered(node)
        found = Blocks.from_pairs(block, self.leaves.value, self.leaves.count, keys)
        if not containing:
            return found
        around = []
        for coarser in self.lattice.nodes():
            if coarser != node and is_generalization(coarser, node):
                _, above = self._numbered(coarser)
                index = np.zeros(len(found), np.int64)
                index[block] = above
                around.append(Containing(self.blocks(coarser), index))
        return replace(found, containing=tuple(around))

    def at(self, node: Node) -> Published:
        """What the metrics see of a node without suppression."""
        found = self.blocks(node)
        assert found.keys is not None
        rows = self.reference.rows
        return Published.of_blocks(node, self.hierarchies, found.keys, found.rows, rows, self.leaves, queries=())


def inpatients(folder: Path) -> Source:
    hierarchies = [read_hierarchy(folder / file) for file in INPATIENT.values()]
    return Source.of(read_rows(folder / "inpatient_raw.csv"), hierarchies, "condition")


def tightest(given: Given, name: str, index: int = 0, **params: Any) -> Any:
    """The table's tightest value of the model's parameter number `index`."""
    model = BY_NAME[name](**params)
    model.validate(given[1])
    return model.tightest(*given).values[index].value


def holds(given: Given, name: str, **params: Any) -> bool:
    model = BY_NAME[name](**params)
    model.validate(given[1])
    return bool(model.passes(*given).all())


def passes(given: Given, name: str, **params: Any) -> list[bool]:
    return [bool(verdict) for verdict in BY_NAME[name](**params).passes(*given)]


def digits(value: Any, expected: Any) -> bool:
    """Whether a value agrees with all the digits that are given."""
    full = isinstance(expected, dict) and "digits" in expected
    text = expected["digits"] if full else repr(expected["float"] if isinstance(expected, dict) else expected)
    places = len(text.partition(".")[2]) if full and not isinstance(value, float) else 13
    return abs(Decimal(value) - Decimal(text)) <= Decimal(10) ** -places


LARGEST, INFIMUM = "recursive_largest_l", "recursive_infimum_c (strict: c must exceed it)"


def check_profile(given: Given, expected: dict[str, Any]) -> None:
    """The figures that many examples give for a table."""
    blocks, reference = given
    assert reference.rows == expected["N"]
    assert len(blocks) == expected["blocks"]
    assert list(reference.domain) == expected["dom"]
    assert tightest(given, "k_anonymity", k=1) == expected["k"]
    assert tightest(given, "distinct_l_diversity", l=1) == expected["distinct_l"]
    assert tightest(given, "frequency_l_diversity", l=1) == exact(expected["frequency_l"])
    assert digits(tightest(given, "entropy_l_diversity", l=1), expected["entropy_l"])
    for c, largest in expected[LARGEST].items():
        assert tightest(given, "recursive_cl_diversity", c=int(c), l=1) == largest
    for l, infimum in expected[INFIMUM].items():  # noqa: E741
        assert tightest(given, "recursive_cl_diversity", 1, c=1, l=int(l)) == exact(infimum)
    assert tightest(given, "t_closeness", t=0, distance="equal") == exact(expected["t_equal"])
    for prior in ("uniform", "table"):
        epsilon = tightest(given, "epsilon_privacy", epsilon=1, adversary="III", prior=prior)
        assert epsilon == exact(expected[f"III_{prior}_smallest_eps"])
