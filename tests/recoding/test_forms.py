"""Maps by sizes alone, of several sensitive attributes, in any order of rows, and on both engines."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from engines import create_table, examples
from hypothesis import given, settings
from reference import diversity
from reference.recoding import Attribute, Box, Recoding
from reference.tables import Block
from search.whole import HIERARCHIES, load, rows_of, slow

from qblock.search.boxes.recoded import search_map
from qblock.search.run import open_task

from .answers import answered, box_of
from .drawn import Drawn, drawn
from .test_laws import METRICS, few, folder_of, seeds

pytestmark = pytest.mark.either_engine

MAP = "search: {{recoding: multidimensional, choose_by: {by}{more}}}\n"
TWO = tuple(Attribute(name, paths) for name, paths in HIERARCHIES.items())


@pytest.mark.parametrize("by", METRICS[:2])
@pytest.mark.parametrize(("k", "distinct", "seed"), [(3, 1, 3), (2, 4, 5)])
def test_sizes_alone_decide(warehouse: Any, tmp_path: Path, k: int, distinct: int, seed: int, by: str) -> None:
    """All models then check the boxes: it is that map, or none."""
    rows = rows_of(seed, 40)
    table = Recoding(TWO, rows)
    asked = [f"k_anonymity: {{k: {k}}}", f"distinct_l_diversity: {{l: {distinct}, sensitive: s}}"]
    spec = load(warehouse, tmp_path, rows, asked, MAP.format(by=by, more=", choose_from: sizes"))

    def large(box: Box, _: tuple[Box, ...]) -> bool:
        return len(table.inside(box)) >= max(k, distinct)

    with open_task(spec) as task:
        made = search_map(task, None, lambda: None)
        assert made is not None
        tree = made.specialized.tree
        boxes = {box_of(table, tree.ladders, tree.labels[part]) for part in made.specialized.boxes.tolist()}
        expected = table.specialize((2, 1), by, large)
        assert expected is not None
        assert boxes == set(expected)
        whole = slow(rows)
        verdict = all(diversity.distinct_holds(Block(whole, table.inside(box)), distinct) for box in expected)
        assert made.assessment.satisfied is verdict is (distinct == 1)


BASES: dict[str, Any] = {
    "distinct_l_diversity: {l: 2, sensitive: [s, y]}": lambda b: diversity.distinct_holds(b, 2),
    "entropy_l_diversity: {l: 1.25, sensitive: [s, y]}": lambda b: diversity.entropy_holds(b, Fraction(5, 4)),
}


@pytest.mark.parametrize("people", [None, 30])
@pytest.mark.parametrize("entry", BASES)
def test_the_multi_attribute_form(warehouse: Any, tmp_path: Path, entry: str, people: int | None) -> None:
    rows = rows_of(11, 160, people=people)
    table, whole = Recoding(TWO, rows), slow(rows, entity=None if people is None else "person")
    more = MAP.format(by="loss", more="") + ("" if people is None else "count: entities\n")

    def passes(box: Box, _: tuple[Box, ...]) -> bool:
        parts = diversity.multi_attribute_blocks(Block(whole, table.inside(box)), ["s", "y"])
        return all(BASES[entry](part) for found in parts.values() for part in found)

    with answered(table, load(warehouse, tmp_path, rows, [entry], more)) as answer:
        assert answer.boxes
    assert len(answer.boxes) > 1
    assert all(passes(box, ()) for box in answer.boxes)
    if people is None:
        assert set(answer.boxes) == set(table.specialize(answer.begun, "loss", passes) or ())


def turned(made: Drawn, seed: int) -> Drawn:
    """The same table with its rows, and the lines of its hierarchies, in another order."""
    draw = random.Random(seed)
    attributes = tuple(
        replace(one, paths=dict(draw.sample(list(one.paths.items()), len(one.paths)))) for one in made.table.attributes
    )
    rows = draw.sample(made.table.rows, len(made.table.rows))
    return replace(made, table=replace(made.table, attributes=attributes, rows=rows))


def found(made: Drawn, warehouse: Any, name: str, folder: Path, seed: int) -> list[Any]:
    """All that is found of a table, with a limit and without."""
    more: dict[str, Any] = {"search": {"choose_by": METRICS[seed % 3]}, "suppression_limit": seed % 4}
    with answered(made.table, made.spec(made.fill(warehouse, name), name, folder, **more)) as answer:
        return [answer.boxes, answer.suppressed, answer.map.boxes, answer.map.to_json(), answer.result.metrics]


@settings(few, max_examples=examples(4))
@given(seed=seeds)
def test_any_order_of_rows_and_leaves(warehouse: Any, tmp_path: Path, seed: int) -> None:
    folder, name = folder_of(tmp_path)
    made = drawn(f"order {seed}", folder)
    one = found(made, warehouse, name, folder, seed)
    assert found(turned(made, seed), warehouse, f"{name}turned", folder, seed) == one


@pytest.mark.parametrize("seed", range(5))
def test_both_engines(postgresql_url: str, tmp_path: Path, seed: int) -> None:
    folder, name = folder_of(tmp_path)
    made, both = drawn(f"engines {seed}", folder, people=seed % 2 == 0), []
    for url in (f"duckdb:///{tmp_path / 'warehouse.duckdb'}", postgresql_url):

        def create(table: str, columns: Any, types: Any, url: str = url) -> str:
            create_table(url, table, columns, types)
            return url

        both.append(found(made, create, name, folder, seed))
    assert both[0] == both[1]
