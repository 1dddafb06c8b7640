"""A policy whose blocks are the boxes of a recoding map: searched in the first version, kept by all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from recoding.searched import Combination, Holds, People, Search
from reference.recoding import Attribute, Box

from .attacker import Found, Transcript
from .players import Engine, Played
from .settings import Setting


class Kept(NamedTuple):
    """state: of the engine; boxes: all parts of the first version's map, None before it."""

    state: Any
    boxes: tuple[Box, ...] | None


@dataclass
class Maps:
    """The policy of the engine in boxes. leaves: the combination that stands for each block of a frame; later: those
    that the hierarchies did not have when the map was made, each of which has a box of its own."""

    setting: Setting
    holds: Holds
    attributes: tuple[Attribute, ...]
    leaves: Sequence[Combination]
    sizes: bool
    later: frozenset[Combination] = frozenset()
    numbers: dict[Any, int] = field(default_factory=dict)
    known: dict[Any, tuple[Box, ...] | None] = field(default_factory=dict)
    box_of: dict[Any, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.engine = Engine(self.setting)
        self.searches: dict[Any, Search] = {}

    @property
    def coin(self) -> bool:
        return self.engine.coin

    @property
    def sensitive(self) -> int:
        return 1

    def run(
        self,
        state: Kept | None,
        present: Mapping[str, tuple[int, int]],
        erased: Collection[str],
        cohorts: tuple[int, ...],
        aside: Callable[[tuple[int, ...], int], bool],
        widths: tuple[int, ...],
    ) -> Played:
        before, boxes = state or Kept(None, None)
        out = before.memory.out if before is not None else {}
        if boxes is None:
            boxes = self.map_of([seen for one, seen in present.items() if one not in out])
        # Where there is no map nothing is published: nobody is in a block with somebody else.
        own = {
            one: (self.number(boxes, block) if boxes is not None else -1 - i, value)
            for i, (one, (block, value)) in enumerate(sorted(present.items()))
        }
        found = self.engine.run(before, own, erased, cohorts, aside, widths)
        published = found.state.memory.version > 0
        return Played(Kept(found.state, boxes if published else None), found.rows, found.events)

    def map_of(self, people: Sequence[tuple[int, int]]) -> tuple[Box, ...] | None:
        """All parts of the map of some people, by block and value; none of people whom the hierarchies lack."""
        key = tuple(sorted(people))
        if key not in self.known:
            at = Counter(self.leaves[block] for block, _ in key)
            shape = tuple(sorted(at.items()))
            if not at or self.later & at.keys():
                return None
            if shape not in self.searches:
                table = People(self.attributes, dict(shape))
                self.searches[shape] = Search(table, self.holds, self.setting.k, sizes=self.sizes)
            values = tuple(tuple(v for block, v in key if self.leaves[block] == leaf) for leaf, _ in shape)
            found = self.searches[shape].parts(values)
            self.known[key] = None if found is None else tuple(found)
        return self.known[key]

    def number(self, boxes: tuple[Box, ...], block: int) -> int:
        """Of the box that a combination falls into."""
        if (boxes, block) not in self.box_of:
            leaf = self.leaves[block]
            inside: list[Any] = [b for b in boxes if all(x in leaves for x, leaves in zip(leaf, b, strict=True))]
            assert len(inside) == (leaf not in self.later)
            box = inside[0] if inside else leaf
            self.box_of[boxes, block] = self.numbers.setdefault(box, len(self.numbers))
        return self.box_of[boxes, block]


def first_seen(transcript: Transcript, values: Sequence[tuple[Any, ...]]) -> Any:
    """What readers saw of the first run, where it published. values: of the attack, by number of a row."""
    shown = []
    for number in transcript[1]:
        before, version, row = values[number]
        while before is not None:
            before, version, row = values[before]
        if version == 0:
            shown.append(row)
    return transcript[0][:1], tuple(sorted(shown))


def added(found: Found, values: Sequence[tuple[Any, ...]], l: int) -> list[tuple[Transcript, int, int]]:  # noqa: E741
    """Transcripts, columns and runs of whom fewer than l values are left, but of whose values in that run l or more
    were possible when only the first version had been seen."""
    seen: dict[Any, int] = {}
    for transcript, one in found.possible.items():
        first = first_seen(transcript, values)
        seen[first] = seen.get(first, 0) | one.seen
    size, bad = found.frame.size, []
    for transcript in found.possible:
        if transcript[0][:1] != (0,):
            continue
        before = seen[first_seen(transcript, values)]
        for c, run, _, n in found.candidates(transcript):
            were = (before >> (c * found.frame.runs + run) * size) & ((1 << size) - 1)
            if n < l <= were.bit_count():
                bad.append((transcript, c, run))
    return bad
