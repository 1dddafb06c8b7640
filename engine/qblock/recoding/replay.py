"""The box of every combination of leaves of a table, by the splits of a map: as many statements as there are rounds."""

from __future__ import annotations

import numpy as np

from qblock.recoding.keys import Keys
from qblock.recoding.parted import PartedKeys, PartedLeaves
from qblock.recoding.tree import Tree


def replay(tree: Tree, leaves: PartedLeaves, keys: Keys) -> list[int]:
    """Give each row of a table its box; the boxes that have a row, ascending. A combination that nobody had when the
    map was made has a box, too, which the tree has from here on."""
    whole = np.zeros(1, dtype=np.int64)
    mask = keys.of_node(tree.start)
    counts = leaves.counts(whole, [mask])
    codes = keys.coding.keys(tree.start, keys.words(counts.words))
    child = np.array([tree.begin(key) for key in codes.tolist()], dtype=np.int64)
    leaves.assign(whole, [mask], PartedKeys(counts.part, counts.words, child, child), keep=True)
    boxes, parts = set[int](), set(child.tolist())
    while parts:
        boxes |= {part for part in parts if part not in tree.splits}
        split = np.array(sorted(parts - boxes), dtype=np.int64)
        if not len(split):
            break
        splits = [tree.splits[part] for part in split.tolist()]
        masks = [keys.mask(part_split.attribute, part_split.level) for part_split in splits]
        counts = leaves.counts(split, masks)
        place = np.searchsorted(split, counts.part)
        attribute = np.array([part_split.attribute for part_split in splits], dtype=np.int64)[place]
        level = np.array([part_split.level for part_split in splits], dtype=np.int64)[place]
        child = np.zeros(len(place), dtype=np.int64)
        for split_attribute in np.unique(attribute).tolist():
            here = np.flatnonzero(attribute == split_attribute)
            code = keys.codes(split_attribute, level[here], [word[here] for word in counts.words])
            pairs = zip(counts.part[here].tolist(), code.tolist(), strict=True)
            child[here] = [tree.child(part, label) for part, label in pairs]
        leaves.assign(split, masks, PartedKeys(counts.part, counts.words, child, child), keep=True)
        parts = set(child.tolist())
    return sorted(boxes)
