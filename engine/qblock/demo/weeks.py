"""The weeks after the first one: some of the demo's people leave, others join, and values change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qblock.demo import vocabulary as v
from qblock.demo.people import generate

JOIN, CHANGE = 100, 1000
"""One in so many people leaves in a week, as many join, and one in so many is paid otherwise."""


class Week(NamedTuple):
    """A week's people, and how many joined, left and changed."""

    people: pa.Table
    joined: int
    left: int
    changed: int


def next_week(people: pa.Table, number: int, seed: int) -> Week:
    """The people of week `number`, from those of the week before, in the form of `generate`; the same for a seed."""
    random = np.random.default_rng([seed, number])
    rows = len(people)
    moved, changed = max(1, rows // JOIN), max(1, rows // CHANGE)
    drawn = random.permutation(rows)
    leaving, paid = drawn[:moved], drawn[moved : moved + changed]
    salary = people.column("salary_class").combine_chunks()
    codes = salary.indices.to_numpy().copy()
    codes[paid] = (codes[paid] + 1) % len(v.SALARIES)
    index = people.schema.get_field_index("salary_class")
    now = people.set_column(index, "salary_class", pa.DictionaryArray.from_arrays(codes, salary.dictionary))
    stays = np.ones(rows, dtype=bool)
    stays[leaving] = False
    last = pc.max(people.column("person_id")).as_py()
    joining = generate(moved, (seed, number))
    identifiers = pa.array(np.arange(last + 1, last + 1 + moved, dtype=np.int64))
    joining = joining.set_column(0, "person_id", identifiers)
    return Week(pa.concat_tables([now.filter(pa.array(stays)), joining]), moved, moved, changed)
