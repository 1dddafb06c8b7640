"""A generalization hierarchy as columns of labels, with the codes and path codes that make levels comparable."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from qblock.blocks import Ints
from qblock.errors import InputError, quoted
from qblock.hierarchy.labels import Labels, Texts, bytes_of, one_text, places, texts

BITS = 63
"""Of a whole number that every engine has."""
TOP = "*"
LISTED = 20
MOST_LEVELS = 100
"""Of a hierarchy, with the leaves and `*`: a search keeps a code, a label and a part of a path for each level."""
MOST_EDGES = 10_000
"""Of a hierarchy that is stated in a spec."""
MOST_LABELS = 100_000_000
"""Of all levels and leaves together: each takes some 30 bytes."""
MOST_CHARACTERS = 1_000_000_000
"""Of the labels that a builder writes, each as long as the value."""


def check_levels(levels: int, wanted: str) -> None:
    """Raise ValueError for more levels than a hierarchy may have. wanted: the remedy."""
    if levels > MOST_LEVELS:
        raise ValueError(f"a hierarchy of {levels:,} levels is too large; valid: at most {MOST_LEVELS}. {wanted}")


def check_labels(attribute: str, levels: int, leaves: int, width: int = 1) -> None:
    """Raise InputError for more labels than are held in memory. width: of each, in characters."""
    labels = levels * leaves
    wanted = "Write fewer levels, or round the values in a view"
    if labels > MOST_LABELS:
        raise InputError(
            f"the hierarchy of {attribute} has {levels} levels of {leaves:,} leaves, {labels:,} labels; valid: at most "
            f"{MOST_LABELS:,}. {wanted}"
        )
    if labels * width > MOST_CHARACTERS:
        raise InputError(
            f"the hierarchy of {attribute} has {levels} levels of {leaves:,} leaves, each label of {width} characters; "
            f"valid: at most {MOST_CHARACTERS:,} characters in all. {wanted}"
        )


@dataclass(frozen=True, eq=False)
class PathPart:
    """Some levels of a hierarchy in one whole number. first: the lowest of them; bits: of each level from there on;
    codes: int64[leaves], a level above in higher bits."""

    first: int
    bits: tuple[int, ...]
    codes: Ints

    @property
    def width(self) -> int:
        return sum(self.bits)

    def mask(self, level: int) -> int:
        """The bits that a generalization to this level keeps."""
        cleared = sum(self.bits[: max(0, level - self.first)])
        return (1 << self.width) - (1 << cleared)


def path_parts(columns: Sequence[Labels]) -> tuple[PathPart, ...]:
    """The path codes of a hierarchy's leaves: one part, or more where they need more than 63 bits, low levels first.

    columns: of its levels. Two leaves agree in the bits that `mask` keeps of all parts if and only if they carry the
    same label at that level.
    """
    numbers = []
    for labels, above in itertools.zip_longest(columns, columns[1:]):
        first = labels.first.astype(np.int64)
        parents = above.of_leaf[labels.first].astype(np.int64) if above is not None else first * 0
        # Each label once, not each leaf.
        numbers.append(_within(parents, first)[labels.of_leaf])
    parts: list[PathPart] = []
    first, packed = 0, np.zeros(len(columns[0]), dtype=np.int64)
    bits: list[int] = []
    for level, number in enumerate(numbers):
        width = int(number.max(initial=0)).bit_length()
        if sum(bits) + width > BITS:
            parts.append(PathPart(first, tuple(bits), packed))
            first, bits, packed = level, [], packed * 0
        packed = packed | number << sum(bits)
        bits.append(width)
    return (*parts, PathPart(first, tuple(bits), packed))


def _within(parent: Ints, child: Ints) -> Ints:
    """The number of each child among the children of its parent, in the order of their codes."""
    order = np.lexsort((child, parent))
    p, c = parent[order], child[order]
    starts = np.ones(len(order), dtype=bool)
    starts[1:] = p[1:] != p[:-1]
    new = starts.copy()
    new[1:] |= c[1:] != c[:-1]
    running = np.cumsum(new)
    at_start = np.maximum.accumulate(np.where(starts, running, 0))
    result = np.empty(len(order), dtype=np.int64)
    result[order] = running - at_start
    return result


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong with a hierarchy; line: of its CSV file, or the number of its row; 0 for the whole."""

    line: int
    message: str


class HierarchyError(InputError):
    """A hierarchy that cannot be used; `problems` has everything that is wrong, the message the first 20 of them."""

    def __init__(self, origin: str, problems: Iterable[Problem], in_file: bool = True) -> None:
        self.problems = tuple(sorted(problems))
        lines = []
        for problem in self.problems[:LISTED]:
            row = f":{problem.line}" if in_file else f", row {problem.line}"
            lines.append(f"{origin}{row if problem.line else ''}: {problem.message}")
        if len(self.problems) > LISTED:
            lines.append(f"{origin}: and {len(self.problems) - LISTED} more problems")
        super().__init__(*lines)


@dataclass(frozen=True)
class Cells:
    """The values of a column whose hierarchy begins with the cells of a grid, each once, and the cell of each."""

    values: Labels
    cells: Labels


@dataclass(frozen=True)
class Hierarchy:
    """The generalization hierarchy of one attribute; also the taxonomy, or the flat domain, of a sensitive attribute.

    labels[level][leaf]: level 0 is the leaf itself, in the order of its file; the last level is `*` for every leaf (not
    so for a flat domain, which has level 0 alone). A leaf None stands for NULL; see `add_null_leaf`. columns: the same
    by distinct label, which is what a hierarchy of many leaves is computed with. cells: where leaves are cells and not
    values (`finest`), which values each holds: a value of the column is read as its cell, and forgotten.
    """

    attribute: str
    level_names: tuple[str, ...]
    labels: tuple[Sequence[str | None], ...] = field(repr=False)
    cells: Cells | None = field(default=None, repr=False)

    @property
    def height(self) -> int:
        """The number of the coarsest level; level 0 is the finest."""
        return len(self.labels) - 1

    @property
    def leaves(self) -> Sequence[str | None]:
        return self.labels[0]

    @cached_property
    def columns(self) -> tuple[Labels, ...]:
        return tuple(level if isinstance(level, Labels) else Labels.of(level) for level in self.labels)

    @cached_property
    def codes(self) -> NDArray[np.int32]:
        """int32[levels, leaves]: the smallest leaf index that carries the leaf's label at that level.

        A code of level a, looked up as a leaf, gives the code at every level b >= a: codes[b][codes[a]] == codes[b].
        """
        result = np.empty((len(self.labels), len(self.leaves)), dtype=np.int32)
        for level, labels in enumerate(self.columns):
            result[level] = labels.first[labels.of_leaf]
        result.flags.writeable = False
        return result

    @cached_property
    def paths(self) -> tuple[PathPart, ...]:
        """The path codes of the leaves."""
        return path_parts(self.columns)

    def leaves_under(self, level: int) -> NDArray[np.int64]:
        """int64[leaves]: for each leaf, the number of leaves that carry the same label at this level."""
        codes = self.codes[level]
        counts = np.bincount(codes, minlength=len(self.leaves)).astype(np.int64)
        return np.asarray(counts[codes], dtype=np.int64)

    def shown(self, level: int) -> tuple[str, ...]:
        """The labels of a level as they are published: the leaf of NULL reads `*` at level 0 too."""
        return tuple(TOP if label is None else label for label in self.labels[level])

    @cached_property
    def values(self) -> tuple[Sequence[str | None], NDArray[np.int64]]:
        """Every value that is covered, NULL too, and the leaf of each."""
        leaves = self.columns[0].column
        if self.cells is None:
            return leaves.to_pylist(), np.arange(len(leaves), dtype=np.int64)
        values, of = self.cells.values.column.to_pylist(), self.cells.cells.of_leaf.astype(np.int64)
        null = range(len(self.cells.cells.distinct), len(leaves))
        return [*values, *(None for _ in null)], np.append(of, np.array(null, dtype=np.int64))

    def in_cells(self, cells: Labels) -> Hierarchy:
        """The same with a grid's cells as leaves. cells: of each leaf, each within one label of level 1."""
        levels = [Labels.leaves_of(cells.distinct)]
        levels += [Labels(labels.distinct, labels.of_leaf[cells.first]) for labels in self.columns[1:]]
        return replace(self, labels=tuple(levels), cells=Cells(self.columns[0], cells))

    def above(self, level: int) -> Hierarchy:
        """The hierarchy whose leaves are the labels of a level."""
        first = self.columns[level].first
        levels = [Labels.leaves_of(self.columns[level].distinct)]
        levels += [Labels(labels.distinct, labels.of_leaf[first]) for labels in self.columns[level + 1 :]]
        return replace(self, level_names=self.level_names[level:], labels=tuple(levels))

    def digest(self) -> str:
        """sha256 of level names and rows, as hexadecimal text; the order of the rows does not matter."""
        digest = hashlib.sha256(json.dumps(self.level_names, ensure_ascii=False).encode("utf-8"))
        comma, end = one_text(", "), one_text("]")
        row: Any = one_text("\n[")
        for level, labels in enumerate(self.columns):
            label = _as_json(labels.distinct).take(places(labels.of_leaf))
            row = pc.binary_join_element_wise(row, label, comma if level else one_text(""))
        rows = pc.binary_join_element_wise(row, end, one_text(""))
        # Sorted by bytes, which is by code points.
        digest.update(bytes_of(rows.take(pc.array_sort_indices(rows))))
        return digest.hexdigest()

    def check(self, *, observed: bool = False, lines: Sequence[int] | None = None, word: str = "row") -> list[Problem]:
        """Everything that is wrong, in order; empty for a hierarchy that can be searched.

        observed: whether the leaves are the values of a column, of which there may be none, and one may be an empty
        text. lines: of the leaves in their file, which messages call by this word; else the numbers of their rows.
        """
        if not self.labels or not len(self.leaves):
            nothing = Problem(0, "there is no leaf; write one row per value, leaf first")
            return [] if observed and self.labels else [nothing]
        if nests(self.columns, observed=observed):
            return []
        lines = range(1, len(self.leaves) + 1) if lines is None else lines
        problems = _empty(self, lines, observed)
        for leaf in np.flatnonzero(self.codes[0] != np.arange(len(self.leaves))).tolist():
            first = lines[int(self.codes[0][leaf])]
            problems.append(
                Problem(lines[leaf], f"duplicate leaf {quoted(self.leaves[leaf])}, first on {word} {first}; remove one")
            )
        for level in range(self.height):
            problems += _not_nested(self, lines, level, word)
        last, name = self.labels[-1], self.level_names[-1]
        for row in [row for row, label in enumerate(last) if label != TOP][:1]:
            what = f"the last level, {name}, is not `*` for every leaf ({quoted(last[row])}); add a level of `*`"
            problems.append(Problem(lines[row], what))
        return sorted(problems)

    def add_null_leaf(self) -> Hierarchy:
        """This hierarchy with a last leaf None, which is `*` at every level: for NULL and for values that are not
        covered.

        Raises InputError where a leaf `*` would read the same.
        """
        if None in self.leaves:
            return self
        if self.height and TOP in self.leaves:
            raise InputError(f"hierarchy of {self.attribute}: a leaf `*` reads like NULL generalized; rename the leaf")
        return self.with_null()

    def with_null(self) -> Hierarchy:
        """As `add_null_leaf`, whatever the other leaves are."""
        leaves, *above = self.columns
        return replace(self, labels=(leaves.plus(None), *(labels.plus(TOP) for labels in above)))

    def select(self, leaves: Sequence[int]) -> Hierarchy:
        """The hierarchy of some of the leaves, by index, in that order."""
        return replace(self, labels=tuple(tuple(level[leaf] for leaf in leaves) for level in self.labels))

    def uncovered(self, values: Iterable[str]) -> list[str]:
        """The values, compared as text, that are not leaves."""
        known = set(self.leaves)
        return [value for value in values if value not in known]


def _as_json(labels: Texts) -> Texts:
    """Each text as JSON writes it."""
    if labels.null_count or pc.any(pc.match_substring_regex(labels, r'[\x00-\x1f"\\]')).as_py():
        return texts([json.dumps(label, ensure_ascii=False) for label in labels.to_pylist()])
    mark = one_text('"')
    return pc.binary_join_element_wise(mark, labels, mark, one_text(""))


def nests(columns: Sequence[Labels], *, observed: bool) -> bool:
    """Whether levels that have leaves are a hierarchy. False also where only `check` can say, which looks at
    each leaf."""
    leaves, *above = columns
    if len(leaves.distinct) < len(leaves) or columns[-1].distinct.to_pylist()[:2] != [TOP]:
        return False
    if any("" in labels or None in labels for labels in (above if observed else columns)):
        return False
    for fine, coarse in itertools.pairwise(above):
        parents = coarse.of_leaf[fine.first]
        if (parents[fine.of_leaf] != coarse.of_leaf).any():
            return False
        top = fine.place(TOP)
        if top is not None and parents[top] != coarse.place(TOP):
            return False
    return True


def _empty(hierarchy: Hierarchy, lines: Sequence[int], observed: bool) -> list[Problem]:
    names, labels, problems = hierarchy.level_names, hierarchy.labels, []
    for level, column in enumerate(labels):
        for row in [row for row, label in enumerate(column) if not label]:
            null = column[row] is None and all(above[row] == TOP for above in labels[1:])
            if not level and not null and not observed:
                problems.append(Problem(lines[row], f"the leaf is empty (column {names[0]}); write a value"))
            elif level:
                problems.append(Problem(lines[row], f"the label of level {level} ({names[level]}) is empty; write one"))
    return problems


def _not_nested(hierarchy: Hierarchy, lines: Sequence[int], level: int, word: str) -> list[Problem]:
    names, labels = hierarchy.level_names, hierarchy.labels
    fine, coarse = hierarchy.codes[level], hierarchy.codes[level + 1]
    problems, seen = [], set()
    for row in np.flatnonzero(coarse != coarse[fine]).tolist():
        label, first = labels[level][row], int(fine[row])
        if not label or label in seen or not level:
            continue  # empty labels and duplicate leaves have their own message
        seen.add(label)
        upper, other = labels[level + 1][first], labels[level + 1][row]
        problems.append(
            Problem(
                lines[row],
                f"label {quoted(label)} of {names[level]} is under {quoted(upper)} on {word} {lines[first]} and under "
                f"{quoted(other)} here "
                f"({names[level + 1]}); a label has one parent",
            )
        )
    for row in [row for row, label in enumerate(labels[level]) if label == TOP and labels[level + 1][row] != TOP][:1]:
        above = quoted(labels[level + 1][row])
        what = f"`*` of {names[level]} is under {above} ({names[level + 1]}); nothing is above `*`"
        if level:
            problems.append(Problem(lines[row], what))
    return problems
