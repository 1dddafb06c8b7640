"""The answers of a search, and about hierarchies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from qblock.errors import Refused
from qblock.results.base import (
    Answer,
    Forecast,
    Frontier,
    Guarantee,
    Guaranteed,
    Levels,
    Metrics,
    Real,
    ShownColumn,
    Value,
    Weights,
)
from qblock.results.check import Finding, refuse_unsafe


class Chosen(Value):
    """The node or recoding map that a search chose. levels: None of a map, whose `node` is empty; start: where its
    splits began (`top` or `node`), begun: at which levels."""

    levels: Levels | None
    node: Mapping[str, int]
    boxes: int | None = None
    suppressed_boxes: int | None = None
    rounds: int | None = None
    start: str | None = None
    begun: Levels | None = None
    attributes: tuple[ShownColumn, ...] = ()
    suppressed: int
    metrics: Metrics
    tightest: tuple[Guarantee, ...]


class FullDomain(Value):
    """The node that would have been chosen instead of a map."""

    levels: Levels
    suppressed: int
    metrics: Metrics


class SearchedNode(Value):
    """A node of the lattice, with its verdict."""

    levels: Levels
    satisfied: bool
    suppressed: int
    tightest: tuple[Guarantee, ...]
    metrics: Metrics


class SuppressedAttribute(Value):
    """A quasi-identifier that is `*` in every row. level: the highest at which it would not be; shown_at: a node that
    satisfies the spec and shows it; rows_to_suppress: at the chosen node with this attribute at `level`."""

    attribute: str
    level: int
    shown_at: Levels | None
    rows_to_suppress: int | None


class Searched(Guaranteed):
    """What a search comes to. minimal: the minimal nodes; chosen: None where nothing satisfies the spec, and `refused`
    says why; checks: what the chosen one takes for granted and the data do not bear out; forecast: of some nodes, where
    a churn is known; frontier: where newcomers come in cohorts; in_words: what readers see of each quasi-identifier at
    each of its levels."""

    release: str
    rows: int
    quasi_identifiers: tuple[str, ...]
    heights: Levels
    nodes_total: int
    nodes_evaluated: int
    queries: int
    strategy: str
    optimality: str
    why: str
    complete: bool
    choice: Literal["minimal", "sizes", "pinned"]
    seconds: Real
    satisfying: int | None
    minimal: tuple[Levels, ...]
    weights: Weights
    chosen: Chosen | None
    warnings: tuple[str, ...]
    checks: tuple[Finding, ...] = ()
    recoding: Literal["multidimensional"] | None = None
    looked_at_sensitive: bool | None = None
    full_domain: FullDomain | None = None
    nodes: tuple[SearchedNode, ...] | None = None
    suppressed_attributes: tuple[SuppressedAttribute, ...]
    forecast: Forecast | None = None
    frontier: Frontier | None = None
    refused: str | None = Field(default=None, exclude=True)
    in_words: Mapping[str, tuple[str, ...]] = Field(default={}, exclude=True)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """Of the chosen node."""
        return () if self.chosen is None else self.chosen.tightest

    def raise_refused(self) -> None:
        """Raise Refused (exit status 3) where nothing can be published, or a release would stop at a finding."""
        if self.refused is not None:
            raise Refused(self.refused)
        refuse_unsafe(self.checks)


class CheckedHierarchy(Value):
    """A hierarchy. levels: their names, leaf first; labels: how many at each; uncovered: of how many rows it lacks the
    value, which `uncovered: top` hides."""

    attribute: str
    levels: tuple[str, ...]
    height: int
    leaves: int
    labels: Levels
    uncovered: int


class Checked(Answer):
    """Hierarchies that are nested and cover every value of the source, but for what the spec says of those they lack.
    quarantined: rows that wait for a hierarchy with their values (`uncovered: quarantine`), besides `rows`."""

    columns_shown = ("attribute", "height", "labels")

    rows: int
    quarantined: int
    hierarchies: tuple[CheckedHierarchy, ...]

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        return [(of.attribute, of.height, " > ".join(map(str, of.labels))) for of in self.hierarchies]


class HierarchyFiles(Answer):
    """Hierarchy files that were written."""

    files: tuple[Path, ...]


class HierarchyTables(Answer):
    """Dimension tables that were loaded. entries: what a spec of the same database writes for each; file: the one of
    DuckDB that they are in, relative to the spec, where no spec can name them; None in a database."""

    tables: tuple[str, ...]
    entries: tuple[str, ...]
    file: str | None
