"""A recoding map as the splits that made it: each part of the table is one label for each quasi-identifier.

The parts that are not split are boxes: no two have a combination of leaves in common, and together they have all. So a
combination that nobody had when the map was made falls into exactly one of them, too.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np

from qblock.blocks import Ints, Mask, number_keys
from qblock.errors import InputError, quoted
from qblock.lattice import Node
from qblock.recoding.column import Column
from qblock.recoding.label import Bounds, Label, Sides
from qblock.recoding.ladder import Ladder
from qblock.recoding.splits import GROUPS, KINDS, NONE, Kind, Split, Splits

Rests = Mapping[str, frozenset[str | None]]
"""The leaves that rests stand for, by how they read."""


class Labels(Sequence[tuple[Label, ...]]):
    """The labels of each part. numbers: int32[P, Q], by the numbers of the ladders'."""

    def __init__(self, ladders: Sequence[Ladder]) -> None:
        self._ladders, self.numbers = ladders, Column(len(ladders), np.int32)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, part: Any) -> Any:
        numbers = self.numbers.all[part].tolist()
        return tuple(ladder.labels[number] for ladder, number in zip(self._ladders, numbers, strict=True))

    def __iter__(self) -> Iterator[tuple[Label, ...]]:
        return (self[part] for part in range(len(self)))


class Tree:
    """Part 0 is the whole table, and its children are the blocks of the node where the splits began."""

    def __init__(self, ladders: Sequence[Ladder], start: Node) -> None:
        self.ladders, self.start = tuple(ladders), start
        self.labels = Labels(self.ladders)
        self._parents = Column()
        self._known_rests: dict[tuple[int, int, int, bytes], int] = {}
        self.starts: dict[tuple[int, ...], int] = {}
        self.splits = Splits(self.ladders, self.labels.numbers)
        tops = [ladder.plain(ladder.hierarchy.height, 0).number for ladder in ladders]
        self._add(np.zeros(1, dtype=np.int64), np.array([tops], dtype=np.int32))

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def numbers(self) -> np.typing.NDArray[Any]:
        """int32[P, Q]: the labels of each part, by the numbers of the ladders'."""
        return self.labels.numbers.all

    def fact(self, name: str, parts: Ints) -> Ints:
        """int64[parts, Q]: what is known of the labels of parts, one of `ladder.FACTS`."""
        columns = zip(self.ladders, self.numbers[parts].T, strict=True)
        return np.stack([ladder.fact(name, labels) for ladder, labels in columns], axis=1)

    def begin(self, codes: Sequence[int]) -> int:
        """The part of a block of the node where the splits began, by the codes of its labels."""
        key = tuple(codes)
        if key not in self.starts:
            levels = zip(self.ladders, self.start, key, strict=True)
            labels = [[ladder.plain(level, code).number for ladder, level, code in levels]]
            self.starts[key] = self._add(np.zeros(1, dtype=np.int64), np.array(labels, dtype=np.int32))
        return self.starts[key]

    def child(self, part: int, code: int) -> int:
        """The part that holds the rows of a part that is split whose label has this code."""
        attribute = self.splits[part].attribute
        return int(self.children(attribute, *(np.array([number], dtype=np.int64) for number in (part, code)))[0])

    def children(self, attribute: int, parts: Ints, codes: Ints) -> Ints:
        """int64: the part that holds the rows of each of some parts, which one attribute divides, whose label has this
        code. A label that came later has a part of its own, which the tree has from here on."""
        child = self.splits.children(attribute, parts, codes)
        new = child == NONE
        if new.any():
            for part, code in dict.fromkeys(zip(parts[new].tolist(), codes[new].tolist(), strict=True)):
                label = self.ladders[attribute].plain(self.splits[part].level, code)
                self.splits.add_child(part, code, self._with(part, attribute, label))
            child[new] = self.splits.children(attribute, parts[new], codes[new])
        return child

    def assign(self, leaves: Ints) -> Ints:
        """The box that each combination of leaves falls into, which the tree has from here on.

        Args:
            leaves: int64[N, Q], the codes of leaves.

        Returns:
            int64[N], parts that are not split.
        """
        codes = [ladder.hierarchy.codes for ladder in self.ladders]
        keys = np.stack([codes[i][level][leaves[:, i]] for i, level in enumerate(self.start)], axis=1)
        number, first = number_keys(keys.astype(np.int64))
        boxes = np.array([self.begin(key) for key in keys[first].tolist()], dtype=np.int64)[number]
        left = np.arange(len(boxes))
        while True:
            attributes, levels = self.splits.ways(boxes[left])
            split = attributes >= 0
            left, attributes, levels = left[split], attributes[split], levels[split]
            if not len(left):
                return boxes
            for attribute in np.unique(attributes).tolist():
                here = attributes == attribute
                there = left[here]
                label = codes[attribute][levels[here], leaves[there, attribute]].astype(np.int64)
                boxes[there] = self.children(attribute, boxes[there], label)

    def each(self, part: int, attribute: int, level: int, codes: Sequence[int] = ()) -> Split:
        """Divide a part by single labels. codes: of those that are known to occur, in their order."""
        return self._divide(part, attribute, level, "each", codes)

    def cut(self, part: int, attribute: int, level: int, at: int, *, null: bool = True) -> Split:
        """Divide a part of an ordered attribute before the label of this code. null: as of `Ladder.cut`."""
        sides = self.ladders[attribute].cut(self.labels[part][attribute], level, at, null=null)
        return self._divide(part, attribute, level, "cut", sides=sides)

    def rest(self, part: int, attribute: int, level: int, alone: Iterable[int], stated: str | None = None) -> Split:
        """Divide a part into these labels and one rest. stated: how the rest reads, where that was said before."""
        codes = list(alone)
        rest = self._rest(attribute, self.labels[part][attribute], level, np.array(codes, dtype=np.int64), stated)
        return self._divide(part, attribute, level, "rest", codes, rest)

    def _rest(self, attribute: int, whole: Label, level: int, alone: Ints, stated: str | None = None) -> Label:
        """What is left of a label beside those of a level that stand alone."""
        members = self.ladders[attribute].members(whole, level)
        rest = members[~np.isin(members, alone)]
        return self.ladders[attribute].group(level, rest, whole, stated)

    def divide(
        self, attribute: int, parts: Ints, levels: Ints, kinds: Ints, codes: Sequence[Ints], at: Ints, null: Mask
    ) -> Ints:
        """Divide parts by the labels of one attribute.

        Args:
            attribute: by whose labels.
            parts: int64[P], ascending.
            levels: int64[P], of the labels.
            kinds: int64[P], of `splits.KINDS`.
            codes: the labels that stand alone, part by part, and int64[P], how many of them each part has.
            at: int64[P], the code of the label above a cut.
            null: bool[P], whether the leaf of NULL goes with it.

        Returns:
            int64[P], the first child of each: labels that stand alone, then the sides of a cut, or the rest.
        """
        alone, number = codes
        children = number + GROUPS[kinds]
        first = np.cumsum(children) - children
        labels = np.repeat(self.numbers[parts], children, axis=0)
        begins = np.cumsum(number) - number
        place = np.arange(len(alone)) + np.repeat(first - begins, number)
        level = np.repeat(levels, number)
        for depth in np.unique(level).tolist():
            here = level == depth
            labels[place[here], attribute] = self.ladders[attribute].plain_numbers(depth, alone[here])
        merged, sides, side = first + number, list[Sides](), np.full(len(parts), NONE, dtype=np.int64)
        cut = np.flatnonzero(kinds == KINDS.index("cut"))
        if len(cut):
            sides, side[cut] = self._cuts(attribute, parts[cut], levels[cut], at[cut], null[cut])
            both = np.array([[label.number for label in of.labels] for of in sides], dtype=np.int32)
            labels[merged[cut][:, None] + [0, 1], attribute] = both[side[cut]]
        rest = np.flatnonzero(kinds == KINDS.index("rest"))
        groups = (alone[begins[i] : begins[i] + number[i]] for i in rest.tolist())
        labels[merged[rest], attribute] = self._rests(attribute, parts[rest], levels[rest], groups)
        first += self._add(np.repeat(parts, children), labels)
        self.splits.add(attribute, (parts, levels, kinds, first, number, side), sides)
        return first

    def _cuts(self, attribute: int, parts: Ints, levels: Ints, at: Ints, null: Mask) -> tuple[list[Sides], Ints]:
        """The sides of cuts, each once, and which each part has."""
        ladder, whole = self.ladders[attribute], self.numbers[parts, attribute]
        single = ((whole.astype(np.int64) * (ladder.hierarchy.height + 1) + levels) * ladder.size + at) * 2 + null
        _, first, which = np.unique(single, return_index=True, return_inverse=True)
        columns = (of[first].tolist() for of in (whole, levels, at, null))
        sides = [
            ladder.cut(ladder.labels[label], level, code, null=with_null)
            for label, level, code, with_null in zip(*columns, strict=True)
        ]
        return sides, which.reshape(-1)

    def _rests(self, attribute: int, parts: Ints, levels: Ints, alone: Iterable[Ints]) -> Sequence[int]:
        """The numbers of the rests of parts. alone: of each the labels of a level beside it."""
        labels, known = self.ladders[attribute].labels, self._known_rests
        numbers = []
        for whole, level, codes in zip(self.numbers[parts, attribute].tolist(), levels.tolist(), alone, strict=True):
            key = attribute, whole, level, codes.tobytes()
            if key not in known:
                known[key] = self._rest(attribute, labels[whole], level, codes).number
            numbers.append(known[key])
        return numbers

    def _divide(
        self,
        part: int,
        attribute: int,
        level: int,
        kind: Kind,
        codes: Sequence[int] = (),
        rest: Label | None = None,
        sides: Sides | None = None,
    ) -> Split:
        ladder = self.ladders[attribute]
        merged = sides.labels if sides is not None else () if rest is None else (rest,)
        numbers = [label.number for label in (*(ladder.plain(level, code) for code in codes), *merged)]
        first, labels = len(self), np.repeat(self.numbers[[part]], len(numbers), axis=0)
        labels[:, attribute] = numbers
        self._add(np.full(len(numbers), part, dtype=np.int64), labels)
        columns = (part, level, KINDS.index(kind), first, len(codes), NONE if sides is None else 0)
        self.splits.add(attribute, [np.array([of], dtype=np.int64) for of in columns], [] if sides is None else [sides])
        return self.splits[part]

    def boxes(self) -> list[int]:
        """The parts that are not split."""
        parts = np.arange(1, len(self))
        return parts[~self.splits.there(parts)].tolist()

    def path(self, part: int) -> list[int]:
        """The parts that hold this one, itself included, from the whole table down."""
        path = [part]
        while path[-1]:
            path.append(int(self._parents.all[path[-1]]))
        return path[::-1]

    def texts(
        self, parts: Collection[int] | Ints, taken: Sequence[Rests] = (), hidden: Collection[int] | Ints = ()
    ) -> dict[Label, str]:
        """How the labels of these boxes read.

        Args:
            parts: the boxes that readers see.
            hidden: others, which they do not see.
            taken: for each quasi-identifier, the rests of maps beside this one (`rests`). The same leaves read the
                same; others never read like one of them.

        Raises:
            InputError: Two labels that stand for different values would read the same.
        """
        texts: dict[Label, str] = {}
        for attribute, ladder in enumerate(self.ladders):
            used = self.used(attribute, np.array([*parts, *hidden], dtype=np.int64))
            seen = self.used(attribute, np.array(list(parts), dtype=np.int64))
            beside, shown = taken[attribute] if taken else {}, {ladder.text(of) for of in seen if of.form == "plain"}
            rests = _rest_texts(ladder, used, beside, shown)
            texts |= {label: rests.get(label) or ladder.text(label) for label in used}
            _check_apart(ladder, [(label, texts[label]) for label in used])
        return texts

    def rests(self, texts: Mapping[Label, str]) -> list[dict[str, frozenset[str | None]]]:
        """For each quasi-identifier, how the rests of this map read and the leaves that each stands for."""
        rests: list[dict[str, frozenset[str | None]]] = []
        for attribute, ladder in enumerate(self.ladders):
            labels = self.used(attribute)
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
            entry["bounds"] = [dict(vars(bounds)) for bounds in split.bounds]
        return entry

    @classmethod
    def of_json(cls, stated: Mapping[str, Any], ladders: Sequence[Ladder]) -> Tree:
        """The same splits over hierarchies that may hold other leaves by now. Raises InputError where one has other
        levels, or is cut and does not keep the order of its values any more."""
        for ladder, height in zip(ladders, stated["heights"], strict=True):
            if ladder.hierarchy.height != height:
                raise InputError(
                    f"{ladder.hierarchy.attribute}: the recoding map has labels of levels 0 to {height}, and the top "
                    f"of its hierarchy is level {ladder.hierarchy.height} now. Give it the levels that it had"
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
            split = self.each(part, attribute, level, [*known.values()])
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
                "hierarchy do not keep the order of its values any more. Correct the hierarchy"
            )
        bounds = [
            Bounds(**{**side, "names": tuple(side["names"]), "leaves": tuple(side["leaves"])})
            for side in stated["bounds"]
        ]
        texts = [text for _, text in stated["others"]]
        sides = ladder.cut_again(self.labels[part][attribute], level, bounds, texts)
        return self._divide(part, attribute, level, "cut", sides=sides)

    def used(self, attribute: int, parts: Ints | None = None) -> list[Label]:
        """The labels that parts have, each once, in the order of the first part of each; of all parts if none are
        given."""
        numbers = self.numbers[:, attribute] if parts is None else self.numbers[parts, attribute]
        distinct, first = np.unique(numbers, return_index=True)
        return [self.ladders[attribute].labels[number] for number in distinct[np.argsort(first)].tolist()]

    def _with(self, part: int, attribute: int, label: Label) -> int:
        labels = self.numbers[[part]]
        labels[:, attribute] = label.number
        return self._add(np.array([part], dtype=np.int64), labels)

    def _add(self, parents: Ints, labels: np.typing.NDArray[Any]) -> int:
        """Add parts; the first of them."""
        first = len(self)
        self.labels.numbers.extend(labels)
        self._parents.extend(parents)
        return first


def _rest_texts(ladder: Ladder, labels: Iterable[Label], taken: Rests, shown: Set[str]) -> dict[Label, str]:
    """How new rests read: as others of the same leaves did, else by the names of few labels, else by the next number
    within one label that is free."""
    labels = list(labels)
    known = {leaves: text for text, leaves in reversed([*taken.items()])}
    used = {*taken, *(label.stated for label in labels if label.stated is not None)}
    rests = [label for label in labels if label.form == "rest" and label.stated is None]
    rests.sort(key=lambda label: (label.level, ladder.rank(label.level)[label.codes].tolist()))
    texts: dict[Label, str] = {}
    numbers: defaultdict[Label | None, Iterator[int]] = defaultdict(lambda: itertools.count(1))
    for label in rests:
        text = known.get(ladder.leaves_of(label)) if taken else None
        # A number that is taken stays so: none is tried twice.
        numbered = (ladder.text(label, number) for number in numbers[label.within])
        named = filter(None, [ladder.named(label, shown)])
        texts[label] = text or next(text for text in itertools.chain(named, numbered) if text not in used)
        used.add(texts[label])
    return texts


def _check_apart(ladder: Ladder, read: Sequence[tuple[Label, str]]) -> None:
    seen: dict[str, Label] = {}
    for label, text in read:
        other = seen.setdefault(text, label)
        if other is not label and (ladder.leaf_sets(other) != ladder.leaf_sets(label)).any():
            raise InputError(
                f"{ladder.hierarchy.attribute}: the label {quoted(text)} would stand for different values in different "
                "boxes of a recoding map. Rename it in one level of the hierarchy, or search with `recoding: "
                "full_domain`"
            )
