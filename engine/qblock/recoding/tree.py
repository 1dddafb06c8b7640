"""A recoding map as the splits that made it: each part of the table is one label for each quasi-identifier.

The parts that are not split are boxes: no two have a combination of leaves in common, and together they have all. So a
combination that nobody had when the map was made falls into exactly one of them, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from qblock.blocks import Ints
from qblock.errors import InputError, quoted
from qblock.lattice import Node
from qblock.recoding.ladder import Bounds, Label, Ladder, Sides

Kind = Literal["each", "cut", "rest"]
Rests = Mapping[str, frozenset[str | None]]
"""The leaves that rests stand for, by how they read."""


@dataclass(eq=False)
class Split:
    """How a part is divided by the labels of one attribute at one level.

    kind: `each` label by itself; `cut`: neighbours on two sides; `rest`: some by themselves, the others together.
    children: parts by the code of the label that each has alone; merged: the part of the rest, or of both sides of the
    cut, of which bounds and ranks are. A label that is between none of them came later, and stands alone.
    """

    attribute: int
    level: int
    kind: Kind
    children: dict[int, int] = field(default_factory=dict)
    merged: tuple[int, ...] = ()
    bounds: tuple[Bounds, ...] = ()
    ranks: tuple[tuple[int, int], ...] = ()


class Tree:
    """Part 0 is the whole table, and its children are the blocks of the node where the splits began."""

    def __init__(self, ladders: Sequence[Ladder], start: Node) -> None:
        self.ladders, self.start = tuple(ladders), start
        tops = tuple(ladder.plain(ladder.hierarchy.height, 0) for ladder in ladders)
        self.labels: list[tuple[Label, ...]] = [tops]
        self.parents: list[int] = [0]
        self.starts: dict[tuple[int, ...], int] = {}
        self.splits: dict[int, Split] = {}

    def __len__(self) -> int:
        return len(self.labels)

    def begin(self, codes: Sequence[int]) -> int:
        """The part of a block of the node where the splits began, by the codes of its labels."""
        key = tuple(codes)
        if key not in self.starts:
            labels = [
                ladder.plain(*at) for ladder, at in zip(self.ladders, zip(self.start, key, strict=True), strict=True)
            ]
            self.starts[key] = self._add(0, tuple(labels))
        return self.starts[key]

    def child(self, part: int, code: int) -> int:
        """The part that holds the rows of a part that is split whose label has this code."""
        split = self.splits[part]
        if code in split.children:
            return split.children[code]
        ladder = self.ladders[split.attribute]
        rank = int(ladder.rank(split.level)[code])
        null = bool(split.bounds) and ladder.name(split.level, code) is None
        for side, bounds, (low, high) in zip(split.merged, split.bounds, split.ranks, strict=False):
            if bounds.null if null else low <= rank <= high:
                return side
        if split.kind == "rest":
            return split.merged[0]
        split.children[code] = self._with(part, split.attribute, ladder.plain(split.level, code))
        return split.children[code]

    def assign(self, leaves: Ints) -> Ints:
        """The box that each combination of leaves falls into, which the tree has from here on.

        Args:
            leaves: int64[N, Q], the codes of leaves.

        Returns:
            int64[N], parts that are not split.
        """
        codes = [ladder.hierarchy.codes for ladder in self.ladders]
        keys = np.stack([codes[i][level][leaves[:, i]] for i, level in enumerate(self.start)], axis=1)
        blocks, number = np.unique(keys, axis=0, return_inverse=True)
        boxes = np.array([self.begin(key) for key in blocks.tolist()], dtype=np.int64)[number.reshape(-1)]
        # A part has a smaller number than those that it is split into.
        for part in sorted(self.splits):
            attribute, level = self.splits[part].attribute, self.splits[part].level
            there = np.flatnonzero(boxes == part)
            labels, number = np.unique(codes[attribute][level][leaves[there, attribute]], return_inverse=True)
            children = np.array([self.child(part, code) for code in labels.tolist()], dtype=np.int64)
            boxes[there] = children[number.reshape(-1)]
        return boxes

    def each(self, part: int, attribute: int, level: int, codes: Sequence[int] = ()) -> Split:
        """Divide a part by single labels. codes: of those that are known to occur, in their order."""
        labels, ladder, first = self.labels[part], self.ladders[attribute], len(self)
        before, after = labels[:attribute], labels[attribute + 1 :]
        self.labels += [(*before, ladder.plain(level, code), *after) for code in codes]
        self.parents += [part] * len(codes)
        children = dict(zip(codes, range(first, len(self)), strict=True))
        return self._split(part, Split(attribute, level, "each", children))

    def cut(self, part: int, attribute: int, level: int, at: int, *, null: bool = True) -> Split:
        """Divide a part of an ordered attribute before the label of this code. null: as of `Ladder.cut`."""
        sides = self.ladders[attribute].cut(self.labels[part][attribute], level, at, null=null)
        return self._cut(part, attribute, level, sides)

    def _cut(self, part: int, attribute: int, level: int, sides: Sides) -> Split:
        merged = tuple(self._with(part, attribute, label) for label in sides.labels)
        return self._split(part, Split(attribute, level, "cut", merged=merged, bounds=sides.bounds, ranks=sides.ranks))

    def rest(self, part: int, attribute: int, level: int, alone: Iterable[int], stated: str | None = None) -> Split:
        """Divide a part into these labels and one rest. stated: how the rest reads, where that was said before."""
        split = Split(attribute, level, "rest")
        for code in alone:
            split.children[code] = self._with(part, attribute, self.ladders[attribute].plain(level, code))
        members = self.ladders[attribute].members(self.labels[part][attribute], level)
        rest = members[~np.isin(members, list(split.children))]
        within = self.labels[part][attribute]
        split.merged = (self._with(part, attribute, self.ladders[attribute].group(level, rest, within, stated)),)
        return self._split(part, split)

    def boxes(self) -> list[int]:
        """The parts that are not split."""
        return [part for part in range(1, len(self)) if part not in self.splits]

    def path(self, part: int) -> list[int]:
        """The parts that hold this one, itself included, from the whole table down."""
        path = [part]
        while path[-1]:
            path.append(self.parents[path[-1]])
        return path[::-1]

    def texts(self, parts: Collection[int], taken: Sequence[Rests] = ()) -> dict[Label, str]:
        """How the labels of these boxes read.

        Args:
            parts: the boxes.
            taken: for each quasi-identifier, the rests of maps beside this one (`rests`). The same leaves read the
                same; others never read like one of them.

        Raises:
            InputError: Two labels that stand for different values would read the same.
        """
        texts: dict[Label, str] = {}
        for attribute, ladder in enumerate(self.ladders):
            used = dict.fromkeys(self.labels[part][attribute] for part in parts)
            beside = taken[attribute] if taken else {}
            rests = _rest_texts(ladder, used, beside)
            texts |= {label: rests.get(label) or ladder.text(label) for label in used}
            _check_apart(ladder, [(label, texts[label]) for label in used])
        return texts

    def rests(self, texts: Mapping[Label, str]) -> list[dict[str, frozenset[str | None]]]:
        """For each quasi-identifier, how the rests of this map read and the leaves that each stands for."""
        rests: list[dict[str, frozenset[str | None]]] = []
        for attribute, ladder in enumerate(self.ladders):
            labels = dict.fromkeys(of[attribute] for of in self.labels)
            rests.append({texts[label]: ladder.leaves_of(label) for label in labels if label in texts and label.rest})
        return rests

    def to_json(self, texts: Mapping[Label, str]) -> dict[str, Any]:
        """The splits by the names of labels, which do not depend on what else a hierarchy holds."""
        starts = {part: codes for codes, part in self.starts.items()}
        needed = sorted(self.splits)
        names = [
            [
                part,
                [
                    ladder.name(level, code)
                    for ladder, level, code in zip(self.ladders, self.start, starts[part], strict=True)
                ],
            ]
            for part in needed
            if part in starts
        ]
        return {
            "format": 1,
            "quasi_identifiers": [ladder.hierarchy.attribute for ladder in self.ladders],
            "heights": [ladder.hierarchy.height for ladder in self.ladders],
            "start": list(self.start),
            "starts": names,
            "splits": [self._split_json(part, texts) for part in needed],
        }

    def _split_json(self, part: int, texts: Mapping[Label, str]) -> dict[str, Any]:
        split = self.splits[part]
        ladder = self.ladders[split.attribute]
        entry: dict[str, Any] = {
            "part": part,
            "attribute": split.attribute,
            "level": split.level,
            "kind": split.kind,
            "children": [
                [ladder.name(split.level, code), child]
                for code, child in split.children.items()
                if split.kind == "rest" or child in self.splits
            ],
        }
        if split.merged:
            labels = [self.labels[child][split.attribute] for child in split.merged]
            entry["others"] = [[child, texts.get(label)] for child, label in zip(split.merged, labels, strict=True)]
        if split.bounds:
            entry["bounds"] = [asdict(bounds) for bounds in split.bounds]
        return entry

    @classmethod
    def of_json(cls, stated: Mapping[str, Any], ladders: Sequence[Ladder]) -> Tree:
        """The same splits over hierarchies that may hold other leaves by now. Raises InputError where one has other
        levels, or is cut and does not keep the order of its values any more."""
        for ladder, height in zip(ladders, stated["heights"], strict=True):
            if ladder.hierarchy.height != height:
                raise InputError(
                    f"{ladder.hierarchy.attribute}: the recoding map has labels of levels 0 to {height}, and the top "
                    f"of its hierarchy is level {ladder.hierarchy.height} now; give it the levels that it had"
                )
        tree = cls(ladders, tuple(stated["start"]))
        parts = {0: 0}
        for number, names in stated["starts"]:
            codes = [ladder.code(level, name) for ladder, level, name in zip(ladders, tree.start, names, strict=True)]
            if None not in codes:
                parts[number] = tree.begin([code for code in codes if code is not None])
        # A part has a smaller number than those that it is split into.
        for split in stated["splits"]:
            if split["part"] in parts:
                tree._restore(parts[split["part"]], split, parts)
        return tree

    def _restore(self, part: int, stated: Mapping[str, Any], parts: dict[int, int]) -> None:
        attribute, level = stated["attribute"], stated["level"]
        ladder = self.ladders[attribute]
        codes = {number: ladder.code(level, name) for name, number in stated["children"]}
        known = {number: code for number, code in codes.items() if code is not None}
        if stated["kind"] == "each":
            split = self.each(part, attribute, level)
            for code in known.values():
                self.child(part, code)
        elif stated["kind"] == "rest":
            split = self.rest(part, attribute, level, known.values(), stated["others"][0][1])
        else:
            split = self._cut_again(part, attribute, level, stated)
        parts |= {number: split.children[code] for number, code in known.items()}
        for (number, _), child in zip(stated.get("others", ()), split.merged, strict=True):
            parts[number] = child

    def _cut_again(self, part: int, attribute: int, level: int, stated: Mapping[str, Any]) -> Split:
        ladder = self.ladders[attribute]
        if not ladder.ordered:
            raise InputError(
                f"{ladder.hierarchy.attribute}: the recoding map is cut between neighbours, and the labels of the "
                "hierarchy do not keep the order of its values any more; correct the hierarchy"
            )
        bounds = [
            Bounds(**{**side, "names": tuple(side["names"]), "leaves": tuple(side["leaves"])})
            for side in stated["bounds"]
        ]
        texts = [text for _, text in stated["others"]]
        sides = ladder.cut_again(self.labels[part][attribute], level, bounds, texts)
        return self._cut(part, attribute, level, sides)

    def _with(self, part: int, attribute: int, label: Label) -> int:
        labels = self.labels[part]
        return self._add(part, (*labels[:attribute], label, *labels[attribute + 1 :]))

    def _add(self, parent: int, labels: tuple[Label, ...]) -> int:
        self.labels.append(labels)
        self.parents.append(parent)
        return len(self.labels) - 1

    def _split(self, part: int, split: Split) -> Split:
        self.splits[part] = split
        return split


def _rest_texts(ladder: Ladder, labels: Iterable[Label], taken: Rests) -> dict[Label, str]:
    """How new rests read: as others of the same leaves did, else by the next number within one label that is free."""
    labels = list(labels)
    known = {leaves: text for text, leaves in reversed([*taken.items()])}
    used = {*taken, *(label.stated for label in labels if label.stated is not None)}
    rests = [label for label in labels if label.form == "rest" and label.stated is None]
    rests.sort(key=lambda label: (label.level, ladder.rank(label.level)[label.codes].tolist()))
    texts: dict[Label, str] = {}
    for label in rests:
        text = known.get(ladder.leaves_of(label)) if taken else None
        numbered = (ladder.text(label, number) for number in itertools.count(1))
        texts[label] = text or next(text for text in numbered if text not in used)
        used.add(texts[label])
    return texts


def _check_apart(ladder: Ladder, read: Sequence[tuple[Label, str]]) -> None:
    seen: dict[str, Label] = {}
    for label, text in read:
        other = seen.setdefault(text, label)
        if other is not label and (ladder.leaf_sets(other) != ladder.leaf_sets(label)).any():
            raise InputError(
                f"{ladder.hierarchy.attribute}: the label {quoted(text)} would stand for different values in different "
                "boxes of a recoding map; rename it in one level of the hierarchy, or search with "
                "`recoding: full_domain`"
            )
