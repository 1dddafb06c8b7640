"""Small random evolving tables: people come, go, change values and move; blocks that fail are suppressed.

A person has one of four leaf values of a quasi-identifier; each version is published at a node of its own: leaves, one
of two ways to pair them, or one block. With a pinned node all versions are at the same one.
"""

from __future__ import annotations

import random
from collections import defaultdict

from .register import Register, Row

NODES = (("0", "1", "2", "3"), ("01", "01", "23", "23"), ("02", "13", "02", "13"), ("*", "*", "*", "*"))
VERSIONS = 3


def history(seed: int, k: int = 2, l: int = 2) -> Register:  # noqa: E741
    """3 to 6 persons, 2 or 3 values, three versions."""
    rng = random.Random(seed)
    people, values = rng.randint(3, 6), "abc"[: rng.randint(2, 3)]
    pinned = rng.random() < 0.5
    node = rng.choice(NODES)
    changing, moving, absent = rng.choice([0, 0, 0.15, 0.4]), rng.choice([0, 0, 0.15]), rng.choice([0, 0.1, 0.3])
    leaves = [rng.choice((0, 3) if pinned and rng.random() < 0.5 else range(4)) for _ in range(people)]
    has = [rng.choice(values) for _ in range(people)]
    rows: list[Row] = []
    for version in range(1, VERSIONS + 1):
        if not pinned:
            node = rng.choice(NODES)
        blocks = defaultdict(list)
        for person in range(people):
            if version > 1 and rng.random() < changing:
                has[person] = rng.choice(values)
            if version > 1 and rng.random() < moving:
                leaves[person] = rng.randrange(4)
            if rng.random() >= absent:
                blocks[node[leaves[person]]].append(person)
        for block, members in blocks.items():
            diverse = len(members) >= k and len({has[p] for p in members}) >= l
            rows += [Row(f"p{p}", version, block, has[p], diverse) for p in members]
    return Register(tuple(rows), k, l)
