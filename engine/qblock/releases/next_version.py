"""What a plan says of the next version: its levels, and the changes that wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Levels:
    """Of the current version, and of the one that a run would make, by quasi-identifier (next: None where a search
    chooses)."""

    version: int
    current: tuple[tuple[str, int], ...]
    next: tuple[tuple[str, int], ...] | None

    @classmethod
    def of(cls, levels: Mapping[str, Any]) -> Levels:
        after = levels["next"]
        return cls(levels["version"], tuple(levels["current"].items()), None if after is None else tuple(after.items()))

    def __str__(self) -> str:
        current = dict(self.current)
        if self.next is None:
            named = ", ".join(f"{name} {level}" for name, level in self.current)
            return f"a search chooses them; version {self.version} has {named}"
        if self.next == self.current:
            return ", ".join(f"{name} {level}" for name, level in self.next) + f", as version {self.version}"
        changes = []
        for name, level in self.next:
            before = current.get(name)
            other = "" if before == level else f" (version {self.version}: {'none' if before is None else before})"
            changes.append(f"{name} {level}{other}")
        return ", ".join(changes)


@dataclass(frozen=True)
class Changes:
    """What waits, by sizes alone, where versions lag behind the source (docs/json.md). newcomers wait in `blocks`
    blocks, of whom `closing` in `closing_blocks` are enough for a batch; cohorts: least and most that close one in the
    others, never: blocks in which none ever closes, both of `looked_at` blocks. tried: whether a run would try a
    version, as far as sizes tell; why: in words."""

    newcomers: int
    blocks: int
    closing: int
    closing_blocks: int
    cohorts: tuple[int, int] | None
    never: int
    looked_at: int
    leavers: int
    changed: int
    whole_cells: int
    leaver_cells: int
    changed_cells: int
    tried: bool
    why: str

    @classmethod
    def of(cls, changes: Mapping[str, Any]) -> Changes:
        values = {field.name: changes[field.name] for field in fields(cls)}
        return cls(**{**values, "cohorts": None if changes["cohorts"] is None else tuple(changes["cohorts"])})
