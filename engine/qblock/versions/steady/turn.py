"""The batches of one run, decided one after another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from qblock.versions.steady.proposals import Members, parts_of
from qblock.versions.steady.state import Batch, Block, Cell, Group, Passes, Person, Trial, Unit, Value, histogram

Counted = Callable[[Value], Hashable]


class Decided(NamedTuple):
    """A batch and what became of it: "closed", "failed" or "aside". Private."""

    batch: Batch
    outcome: str


class Turn:
    """The state while batches are decided. taken: cells that were taken out whole."""

    def __init__(
        self, shown: Mapping[str, Unit], members: Members, passes: Passes, counted: Counted, out: dict[str, str]
    ) -> None:
        self.before = shown
        self.shown = dict(shown)
        self.members = members
        self.passes = passes
        self.counted = counted
        self.out = out
        self.frozen: set[Cell] = set()
        self.taken: set[Cell] = set()
        self.batches: list[Decided] = []
        self.changed: Counter[tuple[Block, Hashable]] = Counter()

    def erase(self, batch: Batch, withdrawn: Collection[str]) -> None:
        self._differ(self._rows(batch.members), -1)
        self._remove(batch)
        self.out.update((entity, "erased" if entity in withdrawn else "cell") for entity in batch.members)
        self.batches.append(Decided(batch, "closed"))

    def attempt(self, batch: Batch, groups: Sequence[Group]) -> bool:
        """Take leavers out where that passes; else their cell is frozen."""
        rows = self._rows(batch.members)
        if not self._tried(batch, groups, rows, ()):
            self.frozen.add(batch.cell)
            return False
        self._remove(batch)
        self.out.update((entity, "left") for entity in batch.members)
        return True

    def let_go(self, batch: Batch) -> None:
        gone, stay = self._split(batch)
        self.attempt(batch, (gone._replace(shown=False), stay))

    def show(self, batch: Batch, present: Mapping[str, Person]) -> None:
        """Show newcomers where their cell passes; else they are out for good."""
        units = {entity: Unit(batch.cell, (present[entity].value,)) for entity in batch.members}
        rows = [(batch.cell.block, self.counted(unit.values[-1])) for unit in units.values()]
        groups = (Group(batch.cell, parts_of(units, batch.members, self.counted), True),)
        if self._tried(batch, groups, (), rows):
            self.shown.update(units)
        else:
            self.out.update((entity, "failed") for entity in batch.members)

    def aside(self, batch: Batch) -> None:
        self.out.update((entity, "aside") for entity in batch.members)
        self.batches.append(Decided(batch, "aside"))

    def change(self, batch: Batch, present: Mapping[str, Person], version: int) -> None:
        """Show changed values where old and new ones pass, and those who keep theirs; else the cell is frozen."""
        moved, stay = self._split(batch)
        cell = batch.cell._replace(changed=(*batch.cell.changed, version))
        units = {entity: Unit(cell, (*self.before[entity].values, present[entity].value)) for entity in batch.members}
        new = [self.counted(unit.values[-1]) for unit in units.values()]
        moved = Group(cell, (*moved.parts, histogram(Counter(new))), True)
        if self._tried(batch, (moved, stay), self._rows(batch.members), [(cell.block, value) for value in new]):
            self.shown.update(units)
        else:
            self.frozen.add(batch.cell)

    def _tried(
        self,
        batch: Batch,
        groups: Sequence[Group],
        less: Iterable[tuple[Block, Hashable]],
        more: Iterable[tuple[Block, Hashable]],
    ) -> bool:
        """Ask for the verdict on a batch after those accepted before. less, more: rows that it takes and adds."""
        kept = self.changed.copy()
        self._differ(less, -1)
        self._differ(more, 1)
        passed = self.passes(Trial(batch, tuple(groups), self.changed))
        if not passed:
            self.changed = kept
        self.batches.append(Decided(batch, "closed" if passed else "failed"))
        return passed

    def _differ(self, rows: Iterable[tuple[Block, Hashable]], by: int) -> None:
        for row in rows:
            self.changed[row] += by

    def _rows(self, members: Iterable[str]) -> list[tuple[Block, Hashable]]:
        return [(self.before[entity].cell.block, self.counted(self.before[entity].values[-1])) for entity in members]

    def _split(self, batch: Batch) -> tuple[Group, Group]:
        """A batch of a cell, and those who stay."""
        moved = set(batch.members)
        staying = [entity for entity in self.members[batch.cell] if entity not in moved]
        return (
            Group(batch.cell, parts_of(self.before, batch.members, self.counted), True),
            Group(batch.cell, parts_of(self.before, staying, self.counted), True),
        )

    def _remove(self, batch: Batch) -> None:
        for entity in batch.members:
            del self.shown[entity]
        if len(self.members[batch.cell]) == len(batch.members):
            self.taken.add(batch.cell)
            self.frozen.discard(batch.cell)
