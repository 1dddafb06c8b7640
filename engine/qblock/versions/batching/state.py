"""What is shown, what is remembered, and a batch on trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

Value = Hashable
"""What a version shows of a person beside the block: the sensitive value, with further columns that are published. Of a
person with several rows in a block, all of them together: the bundle."""
Block = tuple[int | str, ...]
"""The codes or labels of a block at the node that all versions keep."""
Histogram = Mapping[Hashable, int]
"""People by sensitive value; where people have several rows, by the set of those that they have (frozenset)."""


class Cell(NamedTuple):
    """The joint cell of a unit that is shown: all whom no version tells apart, whichever rows can be linked.

    Whoever is shown has been shown ever since, and with the same block; so the label vector is the block and the first
    version, and changed are the versions from which on another value was shown (J1-linked, releases.md section 2).
    was: of people who were shown before the policy began, the joint cell that they had then.
    """

    block: Block
    first: int
    changed: tuple[int, ...] = ()
    was: str = ""


class Unit(NamedTuple):
    """A person as shown. values: one for each part of the cell, oldest first; the last is what is shown now."""

    cell: Cell
    values: tuple[Value, ...]


class Person(NamedTuple):
    """A person as the source has them. block: that of the first publication where there was one."""

    block: Block
    value: Value


class Pending(NamedTuple):
    """A shown unit whose value changed since it was last shown. value: as last seen; times: how often it changed."""

    value: Value
    times: int


class Kind(Enum):
    """What a batch does: takes people out on request, takes out a cell that everybody has left, or most have, shows
    newcomers, takes out some leavers of a cell, shows changed values of some people of a cell."""

    ERASED = "erased"
    WHOLE = "whole cell"
    STALE = "stale cell"
    NEWCOMERS = "newcomers"
    LEAVERS = "leavers"
    CHANGED = "changed values"


class Batch(NamedTuple):
    """People of one block or cell whose change is shown together or not at all.

    cell: theirs; of newcomers the one that they make. members: digests, in order.
    """

    kind: Kind
    cell: Cell
    members: tuple[str, ...]


class Group(NamedTuple):
    """A joint cell as a batch would leave it. parts: people by value for each part of the cell, oldest first, of which
    part j is shown by the versions from (first, *changed)[j] on. shown: whether the next version shows it."""

    cell: Cell
    parts: tuple[Histogram, ...]
    shown: bool


@dataclass(frozen=True)
class Trial:
    """One batch on trial. groups: the joint cells that it makes, each of which must satisfy the models.

    change: how the rows shown would differ from the version before, by block and sensitive value, with all batches that
    were accepted before this one: for models that look at the whole version or at its blocks.
    """

    batch: Batch | None
    groups: tuple[Group, ...]
    change: Mapping[tuple[Block, Hashable], int]


Passes = Callable[[Trial], bool]


@dataclass(frozen=True)
class Memory:
    """What is remembered privately from run to run.

    run, version: the last ones. out: people who are never shown again, or never at all, with the reason: "left",
    "erased", "cell" (shared the cell of somebody who was erased), "stale" (one that most had left), "failed", "aside"
    (by the coin), "first" (a first version that was refused), "changed" (while waiting), "moved" (from another block).
    frozen: cells that no batch touches any more. pending: of shown units. since: the run from which on somebody has
    waited. batches: of newcomers that closed in each block. seen: the bundles of newcomers who wait, where people have
    several rows.
    """

    run: int = 0
    version: int = 0
    out: Mapping[str, str] = field(default_factory=dict)
    frozen: frozenset[Cell] = frozenset()
    pending: Mapping[str, Pending] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)
    batches: Mapping[Block, int] = field(default_factory=dict)
    seen: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Counts:
    """For the private ledger and nobody else: how many people are waiting or shown otherwise tells about them.

    closed, failed, aside: batches of this run; frozen: cells in all. newcomers, leavers, changes: people who wait, in
    `blocks` blocks; oldest_wait: in runs, and oldest_newcomer of them. source: people in the source; lag: those among
    them whom the view does not show as they are, out for good or waiting.
    """

    closed: Mapping[str, int]
    failed: Mapping[str, int]
    aside: int
    frozen: int
    newcomers: int
    leavers: int
    changes: int
    blocks: int
    oldest_wait: int
    oldest_newcomer: int
    source: int
    lag: int

    @property
    def waiting(self) -> int:
        return self.newcomers + self.leavers + self.changes


def held(value: Hashable) -> frozenset[Hashable]:
    """The sensitive values that somebody has: one, or those of a bundle."""
    return value if isinstance(value, frozenset) else frozenset((value,))


def histogram(values: Counter[Hashable]) -> Histogram:
    """The positive counts."""
    return {value: n for value, n in values.items() if n}
