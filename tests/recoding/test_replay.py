"""A map that is written down: over the same source it gives the same boxes, and over new leaves one for each."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from engines import examples
from hypothesis import given, settings
from integration.sources import make_spec
from reference.recoding import Attribute, Box, Recoding

from qblock.errors import InputError
from qblock.hierarchy import Hierarchy
from qblock.recoding import Ladder, Tree
from qblock.search.run import open_task
from qblock.search.task import Task
from qblock.source import ladders_of

from .answers import Answer, answered, box_of, replayed
from .drawn import Drawn, drawn, written
from .test_laws import few, folder_of, seeds

pytestmark = pytest.mark.either_engine

Combination = tuple[Any, ...]


def grown(draw: random.Random, old: Attribute) -> Attribute:
    """The hierarchy with some more leaves, in another order; what was there keeps its labels and its neighbours."""
    paths, order = dict(old.paths), old.order
    if order is not None:
        order = tuple(leaf for leaf in order if leaf is not None)
    for number in range(draw.randint(0, 2)):
        below = draw.choice([leaf for leaf in paths if leaf is not None])
        shared = draw.randint(1, old.height)
        leaf: Any = f"{old.name}new{number}"
        if old.ascending is not None:
            least = min(old.ascending)
            step: Any = 1 if isinstance(least, int) else timedelta(days=33)
            leaf = draw.choice([one for i in range(-3, 20) if (one := least + i * step) not in paths])
        if order is not None:
            before = [one for one in order if one < leaf]
            after = [one for one in order if one > leaf]
            below = before[-1] if before else after[0]
            if before and after:
                together = [i for i in range(old.height + 1) if paths[before[-1]][i] == paths[after[0]][i]]
                shared = draw.randint(1, together[0])
            order = (*before, leaf, *after)
        own = [str(leaf), *(f"{leaf}~{level}" for level in range(1, shared))]
        paths[leaf] = [*own, *paths[below][shared:]]
    if None not in paths and draw.random() < 0.2:
        paths[None] = [*[None] * old.height, "*"]
    values = None if old.ascending is None else tuple(sorted(leaf for leaf in paths if leaf is not None))
    return replace(old, paths=shuffled(draw, paths), ascending=values)


def shuffled(draw: random.Random, paths: dict[Any, Any]) -> dict[Any, Any]:
    items = list(paths.items())
    draw.shuffle(items)
    return dict(items)


def opened(made: Drawn, table: Recoding, warehouse: Any, folder: Path, name: str) -> Any:
    """The task of a table that holds every combination of leaves."""
    combinations = list(itertools.product(*(one.paths for one in table.attributes)))
    columns = {one.name: [c[i] for c in combinations] for i, one in enumerate(table.attributes)}
    url = warehouse(name, columns, made.types)
    written(table.attributes, folder)
    attributes = {
        one.name: {"role": "quasi_identifier", "hierarchy": {"file": f"{one.name}.csv"}, "nulls": "top"}
        if None in one.paths
        else {"role": "quasi_identifier", "hierarchy": {"file": f"{one.name}.csv"}}
        for one in table.attributes
    }
    return open_task(make_spec(url, name, attributes, [{"k_anonymity": {"k": 1}}], folder))


def restored(task: Task, found: Any) -> Tree:
    source = task.source
    return Tree.of_json(json.loads(json.dumps(found)), ladders_of(source.spec, source.hierarchies, source.columns))


def check_replay(answer: Answer, table: Recoding, tree: Tree, found: dict[Combination, int]) -> None:
    """Each combination of the new source has one box, and what the old map had keeps its own."""
    parts: dict[int, Box] = {number: box_of(table, tree.ladders, tree.labels[number]) for number in tree.boxes()}
    named = [tuple(zip((one.name for one in table.attributes), leaf, strict=True)) for leaf in found]
    for leaf, pairs in zip(found, named, strict=True):
        assert [number for number, box in parts.items() if table.has(box, dict(pairs))] == [found[leaf]]
    old = {number: answer.part(number) for number in answer.tree.boxes()}
    tops = answer.table.everything
    pairs_of: dict[int, int] = {}
    for leaf, pairs in zip(found, named, strict=True):
        if not answer.table.has(tops, dict(pairs)):
            continue
        boxes = [number for number, box in old.items() if answer.table.has(box, dict(pairs))]
        kept = tuple(leaves & top for leaves, top in zip(parts[found[leaf]], tops, strict=True))
        if boxes:
            assert kept == old[boxes[0]]
            assert pairs_of.setdefault(boxes[0], found[leaf]) == found[leaf]
        else:
            assert not set(old.values()) & {kept}
    # What a label reads that stands for more than it did is not decided here.
    kept_sets = {number for number, new in pairs_of.items() if parts[new] == old[number]}
    shown = [box for place in answer.map.kept if (box := answer.map.specialized.boxes[place]) in kept_sets]
    texts = tree.texts([pairs_of[number] for number in shown])
    for number in shown:
        before = [answer.map.texts[label] for label in answer.tree.labels[number]]
        assert [texts[label] for label in tree.labels[pairs_of[number]]] == before


@pytest.mark.parametrize("more", [False, True])
@settings(few, max_examples=examples(10))
@given(seed=seeds)
def test_every_combination_has_one_box_and_keeps_it(warehouse: Any, tmp_path: Path, more: bool, seed: int) -> None:
    folder, name = folder_of(tmp_path)
    made = drawn(f"replay {seed}", folder, people=False)
    spec = made.spec(made.fill(warehouse, name), name, folder, suppression_limit=seed % 3)
    draw = random.Random(seed)
    with answered(made.table, spec) as answer:
        written_down = answer.tree.to_json(answer.map.texts)
    attributes = tuple(
        grown(draw, one) if more else replace(one, paths=shuffled(draw, one.paths)) for one in made.table.attributes
    )
    table = replace(made.table, attributes=attributes, rows=[])
    with opened(made, table, warehouse, folder, f"{name}all") as task:
        tree = restored(task, written_down)
        check_replay(answer, table, tree, replayed(task, tree, table))


def ages(*paths: tuple[str, ...]) -> Ladder:
    """A ladder of a column of whole numbers."""
    columns = tuple(zip(*((*path, "*") for path in paths), strict=True))
    return Ladder(Hierarchy("age", tuple(f"level{i}" for i in range(len(columns))), columns), "integer")


def cut(ladder: Ladder, level: int, at: int) -> Tree:
    tree = Tree([ladder], (ladder.hierarchy.height,))
    tree.cut(tree.begin((0,)), 0, level, at)
    return tree


def sides(tree: Tree) -> list[set[str | None]]:
    (ladder,) = tree.ladders
    found = [ladder.leaf_sets(tree.labels[part][0]) for part in tree.boxes()]
    return [{leaf for leaf, inside in zip(ladder.hierarchy.leaves, one, strict=True) if inside} for one in found]


def test_a_cut_needs_the_order_that_it_was_made_in() -> None:
    """By their names 10 is before 9: what is 9 would change sides."""
    tree = cut(ages(("8",), ("9",), ("10",)), 0, 2)
    assert sides(tree) == [{"8", "9"}, {"10"}]
    found = json.loads(json.dumps(tree.to_json({})))
    grown_up = Tree.of_json(found, [ages(("11",), ("10",), ("9",), ("8",))])
    assert sides(grown_up) == [{"8", "9"}, {"10"}]
    # A value beyond what the sides were said to hold has a box of its own.
    (part,) = grown_up.starts.values()
    assert grown_up.child(part, 0) not in grown_up.splits[part].merged
    assert sides(grown_up) == [{"8", "9"}, {"10"}, {"11"}]
    with pytest.raises(InputError, match=r"age: .* order"):
        Tree.of_json(found, [ages(("8",), ("9",), ("10",), ("unknown",))])


def test_a_value_on_a_side_of_a_cut_belongs_to_it() -> None:
    """Also where another cut would be the round one by now, and beyond what there was; a label that is one value keeps
    it."""
    tree = cut(ages(("1",), ("2",), ("5",), ("9",), ("11",)), 0, 3)
    texts = tree.texts(tree.boxes())
    assert sorted(texts.values()) == ["<6", ">=6"]
    found = json.loads(json.dumps(tree.to_json(texts)))
    later = [ages(("14",), ("6",), ("4",), ("1",), ("-3",), ("5",)), ages(("5",), ("6",)), ages(("1",))]
    for ladder, expected in zip(
        later, ([{"-3", "1", "4", "5"}, {"6", "14"}], [{"5"}, {"6"}], [{"1"}, set()]), strict=True
    ):
        again = Tree.of_json(found, [ladder])
        assert sides(again) == expected
        assert sorted(again.texts(again.boxes()).values()) == ["<6", ">=6"]
        again_found = json.loads(json.dumps(again.to_json(again.texts(again.boxes()))))
        assert again_found["splits"][0]["bounds"] == found["splits"][0]["bounds"]
    alone = cut(ages(("1",), ("2",), ("5",), ("7",)), 0, 3)
    texts = alone.texts(alone.boxes())
    again = Tree.of_json(json.loads(json.dumps(alone.to_json(texts))), [ages(("8",), ("7",), ("6",), ("0",), ("5",))])
    assert sides(again) == [{"0", "5"}, {"7"}]
    (part,) = again.starts.values()
    for code in (0, 2):
        again.child(part, code)
    assert sorted(again.texts(again.boxes()).values()) == ["6", "7", "8", "<6"]


def test_null_beside_a_side_that_it_was_not_cut_with_stands_alone() -> None:
    tree = cut(ages(("1",), ("2",), ("5",), ("9",), ("11",)), 0, 3)
    found = json.loads(json.dumps(tree.to_json(tree.texts(tree.boxes()))))
    ladder = Ladder(ages(("1",), ("7",), ("8",)).hierarchy.add_null_leaf(), "integer")
    again = Tree.of_json(found, [ladder])
    (part,) = again.starts.values()
    assert ladder.null is not None
    assert again.child(part, ladder.null) not in again.splits[part].merged
    assert sorted(again.texts(again.boxes()).values()) == ["(missing)", "<6", ">=6"]


def test_a_cut_stays_where_the_label_has_another_name() -> None:
    before = [("8", "8-9"), ("9", "8-9"), ("10", "10-14"), ("12", "10-14")]
    found = cut(ages(*before), 1, 2).to_json({})
    renamed = [("8", "8-9"), ("9", "8-9"), ("10", "10 to 14"), ("12", "10 to 14")]
    assert sides(Tree.of_json(found, [ages(*renamed)])) == [{"8", "9"}, {"10", "12"}]


def test_a_label_that_gained_a_smaller_value_stays() -> None:
    before = [("8", "5-9"), ("9", "5-9"), ("12", "10-14"), ("16", "15-19")]
    found = cut(ages(*before), 1, 2).to_json({})
    again = Tree.of_json(found, [ages(("7", "5-9"), *before, ("10", "10-14"))])
    assert sides(again) == [{"7", "8", "9"}, {"10", "12", "16"}]
