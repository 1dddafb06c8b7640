"""The units that a run of the steady job looks at: of most cells no more than who left or changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from qblock.spec import Spec
from qblock.versions.batching.proposals import may_be_tried
from qblock.versions.batching.rules import Rules
from qblock.versions.batching.state import Cell
from qblock.versions.crosswalk import Crosswalk
from qblock.versions.pending.differences import Differences
from qblock.versions.pending.state import Row, State, another_unit, cell_text, people_in, units_in, units_of


@dataclass(frozen=True)
class Concerned:
    """rows: everybody in the cells of which a batch may be tried, who left or changed in others, and somebody of
    another cell; whole: the former cells; others: how many people each of the others has that somebody left or changed
    in, or of which not everybody was stated to be present."""

    rows: Mapping[str, Row]
    whole: Collection[Cell]
    others: Mapping[Cell, int]


def concerned(crosswalk: Crosswalk, spec: Spec, changes: Differences, state: State, rules: Rules) -> Concerned:
    """What a run looks at.

    Members are read of the cells of which `may_be_tried` is so: of a million people of whom one in a hundred leaves in
    a week half are in a cell that somebody has left, and few in one of which people can go.
    """
    release, leave, stale = spec.release, spec.versions.leave or 0, spec.versions.stale
    rows = units_of(crosswalk, release, {*changes.left, *changes.values})
    absent, changed = (
        Counter(rows[entity].unit.cell for entity in people if entity in rows)
        for people in (changes.left, changes.values)
    )
    cells = {*absent, *changed, *(state.stated or ())}
    people = people_in(crosswalk, release, cells, changes.gone) if cells else {}
    whole = {cell for cell, n in people.items() if may_be_tried(n, absent[cell], changed[cell], rules, leave, stale)}
    texts = set(map(cell_text, whole))
    rows |= units_in(crosswalk, release, texts) if texts else {}
    rows |= another_unit(crosswalk, release, texts)
    return Concerned(
        {entity: row for entity, row in rows.items() if entity not in changes.gone},
        frozenset(whole),
        {cell: n for cell, n in people.items() if cell not in whole},
    )
