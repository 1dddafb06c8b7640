"""Maps under models that ask for more than the blocks: a population, and what people guard.

`recoded` counts each box again, of the recoded source, population and wishes: it shares no count with the search.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from search.whole import HIERARCHIES, load, rows_of

from qblock.models import Tightest
from qblock.search.run import open_task, recoded, run_search
from qblock.spec import Spec

MAP = "search: {recoding: multidimensional, choose_by: loss}\n"
POPULATION = [(a, b) for a in HIERARCHIES["a"] for b in HIERARCHIES["b"] for _ in range(25)]


def asked(warehouse: Any, folder: Path, entry: str, rows: list[Any], more: str = MAP) -> Spec:
    spec = load(warehouse, folder, rows, [entry], more)
    warehouse("register", {"a": [a for a, _ in POPULATION], "b": [b for _, b in POPULATION]})
    return spec


def both(spec: Spec) -> tuple[int, Tightest]:
    """The boxes of the map, and what its one model reaches; raises where they are not what is counted again."""
    with open_task(spec) as task:
        found = run_search(task)
        assert found.recoded is not None
        with recoded(task, found.recoded) as again:
            counted = again.assess(again.lattice.bottom)
        return len(found.recoded.boxes), counted.tightest[0]


def test_every_box_has_enough_of_the_population(warehouse: Any, tmp_path: Path) -> None:
    spec = asked(warehouse, tmp_path, "k_map: {k: 40, population: {table: register}}", rows_of(7, 60))
    boxes, reached = both(spec)
    assert boxes > 1
    # 25 of each combination: no single one has forty.
    assert boxes < 12
    assert reached.values[0].value >= 40


def test_a_part_that_nobody_is_in_counts_for_the_least_share(warehouse: Any, tmp_path: Path) -> None:
    rows = [row for row in rows_of(7, 80) if row["b"] != "b2"]
    entry = "delta_presence: {min: 0.05, max: 0.9, population: {table: register}}"
    boxes, reached = both(asked(warehouse, tmp_path, entry, rows))
    assert boxes > 1
    assert reached.values[0].value >= Fraction(1, 20)


def test_without_a_least_share_such_a_part_may_be(warehouse: Any, tmp_path: Path) -> None:
    rows = [row for row in rows_of(7, 80) if row["b"] != "b2"]
    entry = "delta_presence: {min: 0, max: 0.9, population: {table: register}}"
    spec = asked(warehouse, tmp_path, entry, rows)
    with open_task(spec) as task:
        found = run_search(task)
        assert found.recoded is not None
        labels = {b for _, b in found.recoded.boxes}
    assert "b0" in labels
    assert both(spec)[1].values[0].value == 0


@pytest.mark.parametrize("adversary", ["III, prior: table", "I, stubbornness: 30, prior: table"])
def test_people_guard_what_they_wish(warehouse: Any, tmp_path: Path, adversary: str) -> None:
    guards = "{table: wishes, entity: person, value: value}"
    entry = f"epsilon_privacy: {{epsilon: 3, adversary: {adversary}, sensitive: s, predicates: {guards}}}"
    spec = asked(warehouse, tmp_path, entry, rows_of(9, 90))
    people = [f"p{i}" for i in range(0, 90, 4)]
    warehouse("wishes", {"person": people, "value": ["uvw"[i % 3] for i in range(len(people))]})
    boxes, reached = both(spec)
    assert boxes > 1
    assert reached.holds
