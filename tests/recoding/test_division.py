"""The map of a cohort, which is made of people in memory, by sizes alone."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engines import examples
from hypothesis import given, settings
from integration.sources import make_spec
from reference.recoding import Attribute, Recoding

from qblock.blocks import Ints
from qblock.hierarchy import Hierarchy, dates, ranges, suppress
from qblock.recoding import Ladder, Tree
from qblock.recoding.tree import Rests
from qblock.search.boxes.division import divide, of_levels
from qblock.search.run import open_task, run_search

from .answers import box_of
from .drawn import DATE, TEXT, WHOLE, attribute
from .searched import flat, paired
from .test_labels import holds
from .test_laws import few, seeds

KINDS = {TEXT: "text", WHOLE: "integer", DATE: "date"}
DIVIDED = examples(25)


def ladder_of(drawn: Attribute, kind: str) -> Ladder:
    known = [path for leaf, path in drawn.paths.items() if leaf is not None]
    names = tuple(f"level{i}" for i in range(drawn.height + 1))
    hierarchy = Hierarchy(drawn.name, names, tuple(zip(*known, strict=True)))
    return Ladder(hierarchy.with_null() if None in drawn.paths else hierarchy, KINDS[kind])


class Cohort:
    """Random people with up to three random quasi-identifiers."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        pairs = [attribute(draw, name) for name in "abc"[: draw.randint(1, 3)]]
        self.ladders = [ladder_of(*pair) for pair in pairs]
        self.least = draw.randint(1, 6)
        rows = [{one.name: draw.choice(list(one.paths)) for one, _ in pairs} for _ in range(draw.randint(0, 40))]
        self.table = Recoding(tuple(one for one, _ in pairs), rows)
        places = [{leaf: i for i, leaf in enumerate(ladder.hierarchy.leaves)} for ladder in self.ladders]
        codes = [
            [
                place[None if row[one.name] is None else str(row[one.name])]
                for (one, _), place in zip(pairs, places, strict=True)
            ]
            for row in rows
        ]
        self.leaves = np.array(codes, dtype=np.int64).reshape(len(rows), len(pairs))
        self.weights = [Fraction(1)] * len(pairs)

    def divide(self) -> tuple[Tree, Ints]:
        return divide(self.ladders, self.leaves, self.least, self.weights)


def texts_of(tree: Tree, boxes: Ints) -> list[tuple[str, ...]]:
    """The labels of each person."""
    texts = tree.texts(dict.fromkeys(boxes.tolist()))
    return [tuple(texts[label] for label in tree.labels[box]) for box in boxes.tolist()]


@settings(few, max_examples=DIVIDED)
@given(seed=seeds)
def test_it_is_the_map_of_the_slow_reference(seed: int) -> None:
    cohort = Cohort(seed)
    tree, boxes = cohort.divide()
    table, least = cohort.table, cohort.least
    top = tuple(one.height for one in table.attributes)
    if len(table.rows) < 2 * least:
        assert {tree.labels[box] for box in boxes.tolist()} <= {tree.labels[0]}
        return
    expected = table.specialize(top, "loss", lambda box, _: len(table.inside(box)) >= least)
    assert expected is not None
    assert tree.start == top
    assert Counter(box_of(table, tree.ladders, tree.labels[box]) for box in boxes.tolist()) == Counter(
        {box: len(table.inside(box)) for box in expected}
    )
    for row, box in zip(table.rows, boxes.tolist(), strict=True):
        assert table.has(box_of(table, tree.ladders, tree.labels[box]), row)


def of_rows(attributes: Sequence[Attribute], rows: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """How rows read in boxes of two or more."""
    leaves = np.array([[list(a.paths).index(of) for a, of in zip(attributes, row, strict=True)] for row in rows])
    return texts_of(*divide([ladder_of(a, TEXT) for a in attributes], leaves, 2, [Fraction(1)] * len(attributes)))


def test_a_split_counts_by_what_it_takes_of_the_sizes() -> None:
    """All three gain as much; four labels leave parts of two, not to be divided, and two labels leave parts of four."""
    rows = ["axx", "bxx", "cxy", "dxy", "ayx", "byx", "cyy", "dyy"]
    attributes = [flat("q", "abcd"), flat("p", "xy"), flat("r", "xy")]
    assert of_rows(attributes, rows) == [("*", *row[1:]) for row in rows]


def test_a_label_that_all_rows_have_is_named_first() -> None:
    """Only then is it told that x and y gain as much as four labels do, for what they take; z is nobody's."""
    rows = [(of, letter) for of in ("gx", "gy") for letter in "abcd"]
    attributes = [paired("p", ["gx", "gy", "hz"]), flat("q", "abcd")]
    assert of_rows(attributes, rows) == [(of, "*") for of, _ in rows]


@settings(few, max_examples=DIVIDED)
@given(seed=seeds)
def test_each_box_has_enough_people_whatever_their_order(seed: int) -> None:
    cohort = Cohort(seed)
    tree, boxes = cohort.divide()
    if len(boxes) >= cohort.least:
        assert all(n >= cohort.least for n in Counter(boxes.tolist()).values())
    order = np.random.default_rng(seed).permutation(len(boxes))
    again, turned = divide(cohort.ladders, cohort.leaves[order], cohort.least, cohort.weights)
    assert turned.tolist() == boxes[order].tolist()
    texts = [of.texts(dict.fromkeys(parts.tolist())) for of, parts in ((tree, boxes), (again, turned))]
    assert tree.to_json(texts[0]) == again.to_json(texts[1])


@settings(few, max_examples=DIVIDED)
@given(seed=seeds)
def test_the_map_that_is_kept_gives_each_person_the_same_box(seed: int) -> None:
    cohort = Cohort(seed)
    tree, boxes = cohort.divide()
    stated = json.loads(json.dumps(tree.to_json(tree.texts(dict.fromkeys(boxes.tolist())))))
    again = Tree.of_json(stated, cohort.ladders)
    replayed = again.assign(cohort.leaves)
    assert texts_of(again, replayed) == texts_of(tree, boxes)
    assert len(set(zip(boxes.tolist(), replayed.tolist(), strict=True))) == len(set(boxes.tolist()))


@settings(few, max_examples=DIVIDED)
@given(seed=seeds)
def test_labels_of_levels_are_those_of_the_node_or_above_it(seed: int) -> None:
    cohort, draw = Cohort(seed), random.Random(seed)
    for ladder in cohort.ladders:
        ladder.finest = draw.randint(0, ladder.hierarchy.height)
    tree, boxes = divide(cohort.ladders, cohort.leaves, cohort.least, cohort.weights, cuts=False)
    parts = sorted(set(boxes.tolist()))
    texts = of_levels(tree, parts)
    labels = {part: tuple(texts[label] for label in tree.labels[part]) for part in parts}
    assert len(set(labels.values())) == len(parts)
    if len(boxes) >= cohort.least:
        assert all(n >= cohort.least for n in Counter(boxes.tolist()).values())
    for i, ladder in enumerate(cohort.ladders):
        for leaf, box in zip(cohort.leaves[:, i].tolist(), boxes.tolist(), strict=True):
            levels = range(ladder.finest, ladder.hierarchy.height + 1)
            above = {ladder.text(ladder.plain(level, int(ladder.hierarchy.codes[level, leaf]))) for level in levels}
            assert labels[box][i] in above


def divided(ladders: Sequence[Ladder], people: Sequence[tuple[str | None, ...]], least: int) -> list[tuple[str, ...]]:
    """The labels of people."""
    leaves = [[list(of.hierarchy.leaves).index(x) for of, x in zip(ladders, row, strict=True)] for row in people]
    weights = [Fraction(1)] * len(ladders)
    return texts_of(*divide(ladders, np.array(leaves, dtype=np.int64).reshape(-1, len(ladders)), least, weights))


AGES = [str(age) for age in (18, 23, 25, 27, 31, 34, 52, 67)]
DAYS = ["2023-11-05", "2023-12-01", "2024-01-05", "2024-02-11", "2024-02-26"]
LANDS = {"Malta": "Europe", "Cyprus": "Europe", "Spain": "Europe", "Peru": "America", "Chile": "America"}


def lands() -> Ladder:
    levels = (tuple(LANDS), tuple(LANDS.values()), ("*",) * len(LANDS))
    return Ladder(Hierarchy("land", ("land", "part", "all"), levels), "text")


@pytest.mark.parametrize(
    ("ladder", "people", "least", "read"),
    [
        (Ladder(suppress("v", AGES, "integer"), "integer"), AGES, 2, ["25-29", "30-49", "<25", ">=50"]),
        (Ladder(ranges("v", AGES, [10, 20], kind="integer"), "integer"), AGES, 2, ["<40", ">=40"]),
        (Ladder(suppress("v", DAYS, "date"), "date"), DAYS, 2, ["<2024-01-01", ">=2024-01-01"]),
        (Ladder(dates("v", DAYS, ["month", "year"]), "date"), DAYS, 2, ["2023", "2024"]),
        (lands(), ["Malta", "Cyprus", "Spain", "Spain", "Peru", "Chile"], 2, ["America", "Europe (other 1)", "Spain"]),
        (lands(), ["Malta", "Cyprus", "Spain", "Peru"], 2, ["*"]),
        (Ladder(suppress("v", ["a", "b"], "text"), "text"), ["a"] * 3 + ["b"] * 3, 3, ["a", "b"]),
        (Ladder(suppress("v", ["a", "b"], "text"), "text"), ["a"] * 3 + ["b"] * 2, 3, ["*"]),
        (Ladder(suppress("v", ["a", "b"], "text"), "text"), ["a"] * 6, 3, ["a"]),
        (Ladder(suppress("v", ["a"], "text"), "text"), ["a"] * 6, 3, ["*"]),
        (
            Ladder(suppress("v", AGES, "integer").add_null_leaf(), "integer"),
            [*AGES, None, None],
            2,
            ["(missing)", "25-29", "30-49", "<25", ">=50"],
        ),
        (
            Ladder(suppress("v", AGES, "integer").add_null_leaf(), "integer"),
            [*AGES, None],
            2,
            ["26-31", "32-59", "<26", ">=60 or (missing)"],
        ),
    ],
)
def test_labels(ladder: Ladder, people: list[str | None], least: int, read: list[str]) -> None:
    assert sorted({label for (label,) in divided([ladder], [(value,) for value in people], least)}) == read


def test_fewer_than_two_boxes_need_are_not_divided() -> None:
    ladder = Ladder(suppress("v", AGES, "integer"), "integer")
    for people in (0, 1, 5):
        assert divided([ladder], [("18",)] * people, 3) == [("*",)] * people
    assert divided([ladder], [("18",)] * 6, 3) == [("18",)] * 6


def test_people_lie_where_their_label_says_and_none_is_at_its_end() -> None:
    draw = random.Random(7)
    ages = [draw.randint(-50, 400) for _ in range(300)]
    ladder = Ladder(suppress("v", sorted(set(map(str, ages)), key=int), "integer"), "integer")
    labels = [label for (label,) in divided([ladder], [(str(age),) for age in ages], 10)]
    assert len(set(labels)) > 10
    assert all(holds(label, age) for label, age in zip(labels, ages, strict=True))
    assert {label[0] for label in labels if str(min(ages)) in label or str(max(ages)) in label} == set()


def test_weights_say_which_attribute_is_kept() -> None:
    ladders = [Ladder(suppress(name, ["x", "y"], "text"), "text") for name in "ab"]
    leaves = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.int64)
    for weights, read in (((1, 1), "a"), ((2, 1), "a"), ((1, 2), "b")):
        tree, boxes = divide(ladders, leaves, 2, [Fraction(weight) for weight in weights])
        assert {label[read == "a"] for label in texts_of(tree, boxes)} == {"*"}


@pytest.mark.either_engine
def test_it_reads_like_a_search_by_sizes(warehouse: Any, tmp_path: Path) -> None:
    """From the top: the same splits, under the same numbers."""
    draw = random.Random(11)
    rows = [(draw.choice(list(LANDS)), draw.choice([None, *range(18, 60)]), draw.choice("uvw")) for _ in range(300)]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("land", "age", "sex"))}
    url = warehouse("cohort", columns, {"land": TEXT, "age": WHOLE, "sex": TEXT})
    lines = ["land,part,all", *(f"{land},{part},*" for land, part in LANDS.items())]
    (tmp_path / "lands.csv").write_text("\n".join(lines) + "\n", "utf-8")
    hierarchies = {"land": {"file": "lands.csv"}, "age": {"ranges": [5, 20]}, "sex": "suppress"}
    attributes = {name: {"role": "quasi_identifier", "hierarchy": of} for name, of in hierarchies.items()}
    attributes["age"]["nulls"] = "top"
    search = {"recoding": "multidimensional", "choose_by": "loss", "choose_from": "sizes"}
    spec = make_spec(url, "cohort", attributes, [{"k_anonymity": {"k": 8}}], tmp_path, search=search)
    with open_task(spec) as task:
        searched = run_search(task).recoded
        assert searched is not None
        tree = searched.specialized.tree
        places = [{leaf: i for i, leaf in enumerate(of.hierarchy.leaves)} for of in tree.ladders]
        leaves = [[of[None if x is None else str(x)] for of, x in zip(places, row, strict=True)] for row in rows]
        own, boxes = divide(tree.ladders, np.array(leaves, dtype=np.int64), 8, spec.weights)
        assert searched.start == "top"
        assert own.to_json(own.texts(dict.fromkeys(boxes.tolist()))) == tree.to_json(searched.texts)
        assert sorted(set(texts_of(own, boxes))) == searched.boxes


PARTS = {"Malta": "Europe", "Cyprus": "Europe", "Spain": "Europe", "France": "Europe", "Peru": "America"}


def rests_of(*boxes: Sequence[str], levels: dict[str, str] = PARTS) -> Tree:
    """A map of countries in which these of Europe stand together, in one part of it after another."""
    hierarchy = Hierarchy(
        "land", ("land", "part", "all"), (tuple(levels), tuple(levels.values()), ("*",) * len(levels))
    )
    parts = suppress("n", [str(i) for i in range(len(boxes))], "text")
    ladders = [Ladder(hierarchy, "text"), Ladder(parts, "text")]
    tree = Tree(ladders, (1, 0))
    for i, together in enumerate(boxes):
        alone = [land for land, part in levels.items() if part == "Europe" and land not in together]
        codes = [code for land in alone if (code := ladders[0].code(0, land)) is not None]
        tree.rest(tree.begin((0, i)), 0, 0, codes)
    return tree


def read(tree: Tree, taken: Sequence[Rests] = ()) -> dict[str, frozenset[str | None]]:
    """The rests of a map beside others."""
    rests, numbers = tree.rests(tree.texts(tree.boxes(), taken))
    assert numbers == {}
    return rests


def numbered(tree: Tree, taken: Sequence[Rests] = ()) -> dict[str, frozenset[str | None]]:
    """The same where readers see the rests alone, so that no label of theirs is named."""
    alone = [box for box in tree.boxes() if not tree.labels[box][0].rest]
    rests, _ = tree.rests(tree.texts([box for box in tree.boxes() if box not in alone], taken, alone))
    return rests


def test_a_rest_reads_as_the_same_leaves_did_and_never_as_others() -> None:
    south, west = frozenset({"Malta", "Cyprus"}), frozenset({"Spain", "France"})
    before = read(rests_of(["Malta", "Cyprus"]))
    assert before == {"Europe (other 1)": south}
    assert read(rests_of(["Spain", "France"])) == {"Europe (other 1)": west}
    beside = read(rests_of(["Spain", "France"]), [before, {}])
    assert beside == {"Europe (other 2)": west}
    both = {**before, **beside}
    third = frozenset({"Cyprus", "Spain", "France"})
    tree = rests_of(sorted(third), ["Spain", "France"], ["Malta", "Cyprus"])
    assert numbered(tree, [both, {}]) == {**both, "Europe (other 3)": third}
    # The number of another map that is free is not taken where a rest has it.
    gap = {"Europe (other 2)": south}
    assert numbered(tree, [gap, {}]) == {**gap, "Europe (other 1)": third, "Europe (other 3)": west}


def test_a_rest_of_few_reads_by_their_names_where_readers_see_each_of_them() -> None:
    boxes = ["Cyprus", "Spain", "France"], ["Spain", "France"], ["Malta", "Cyprus"]
    named = {"Cyprus or France or Spain": {*boxes[0]}, "France or Spain": {*boxes[1]}, "Cyprus or Malta": {*boxes[2]}}
    assert read(rests_of(*boxes)) == named
    # Cyprus stands alone in no box.
    assert set(read(rests_of(boxes[0], boxes[2]))) == {"Europe (other 1)", "Europe (other 2)"}
    # What readers do not see is not named.
    tree = rests_of(*boxes)
    (first, *_), hidden = tree.boxes(), tree.boxes()[1:]
    assert {text for text in tree.texts([first], hidden=hidden).values() if " or " in text} == set()


def test_the_names_of_a_rest_are_no_label_and_no_more_than_three() -> None:
    both = {**PARTS, "Cyprus or Malta": "America"}
    rests = read(rests_of(["Malta", "Cyprus"], ["Spain", "France"], levels=both))
    assert rests == {"Europe (other 1)": {"Malta", "Cyprus"}, "France or Spain": {"Spain", "France"}}
    four = {**PARTS, "Italy": "Europe"}
    assert set(read(rests_of([*PARTS][:4], ["Italy"], levels=four))) == {"Europe (other 1)"}
    # Two rests never read the same, whatever their members are called.
    twice = {"x or y": "Europe", "z": "Europe", "x": "Europe", "y or z": "Europe", "u": "Europe"}
    rests = read(rests_of(["x or y", "z"], ["x", "y or z"], levels=twice))
    assert set(rests) == {"x or y or z", "Europe (other 1)"}


def test_the_rests_of_each_label_are_numbered_from_one() -> None:
    levels = {**PARTS, "Chile": "America", "Cuba": "America", "Haiti": "America"}
    hierarchy = Hierarchy("land", ("land", "part", "all"), (tuple(levels), tuple(levels.values()), ("*",) * 8))
    ladder = Ladder(hierarchy, "text")
    tree = Tree([ladder, Ladder(suppress("n", [str(i) for i in range(4)], "text"), "text")], (1, 0))
    for i, alone in enumerate(("Malta", "Peru", "Spain", "Cuba")):
        code = ladder.code(0, alone)
        part = ladder.code(1, levels[alone])
        assert code is not None
        assert part is not None
        tree.rest(tree.begin((part, i)), 0, 0, [code])
    expected = {f"{part} (other {number})" for part in ("Europe", "America") for number in (1, 2)}
    assert set(read(tree)) == expected


def test_a_rest_that_gained_a_leaf_is_another_one() -> None:
    """What was kept is read over the hierarchies of today: there its rest holds the leaf that came."""
    old = rests_of(["Malta", "Cyprus"])
    stated = old.to_json(old.texts(old.boxes()))
    more = {**PARTS, "Andorra": "Europe"}
    new = rests_of(["Malta", "Cyprus"], ["Malta", "Cyprus", "Andorra"], levels=more)
    again = Tree.of_json(stated, [new.ladders[0], old.ladders[1]])
    taken = again.rests(again.texts(again.boxes()))
    wide, narrow = frozenset({"Malta", "Cyprus", "Andorra"}), frozenset({"Malta", "Cyprus"})
    assert taken == [{"Europe (other 1)": wide}, {}]
    assert read(new, taken) == {"Europe (other 1)": wide, "Europe (other 2)": narrow}


@settings(few, max_examples=DIVIDED)
@given(seed=seeds)
def test_maps_beside_each_other_read_alike(seed: int) -> None:
    cohort = Cohort(seed)
    half = len(cohort.leaves) // 2
    taken: list[dict[str, frozenset[str | None]]] = [{} for _ in cohort.ladders]
    for leaves in (cohort.leaves[:half], cohort.leaves[half:], cohort.leaves):
        tree, boxes = divide(cohort.ladders, leaves, cohort.least, cohort.weights)
        own = tree.rests(tree.texts(dict.fromkeys(boxes.tolist()), taken))
        for known, rests in zip(taken, own, strict=True):
            assert all(known.get(text, stands_for) == stands_for for text, stands_for in rests.items())
            sets = [*known.values(), *(stands_for for text, stands_for in rests.items() if text not in known)]
            assert len(set(sets)) == len(sets)
            known |= rests


def test_ladders_are_alike_where_labels_and_their_order_are() -> None:
    ladder = Ladder(ranges("v", AGES, [10, 20], kind="integer"), "integer")
    others = {
        "the same": Ladder(ranges("v", AGES, [10, 20], kind="integer"), "integer"),
        "other levels": Ladder(ranges("v", AGES, [10, 40], kind="integer"), "integer"),
        "a leaf less": Ladder(ranges("v", AGES[1:], [10, 20], kind="integer"), "integer"),
        "a level less": Ladder(ranges("v", AGES, [10], kind="integer"), "integer"),
        "another form": Ladder(ranges("v", AGES, [10, 20], kind="integer"), "integer", half_open=True),
        "coarser labels": Ladder(ranges("v", AGES, [10, 20], kind="integer"), "integer", 1),
    }
    assert [what for what, other in others.items() if ladder.is_like(other)] == ["the same"]
    leaves = (("a", "b"), ("b", "a"))
    here, there = (Ladder(Hierarchy("v", ("v", "all"), (order, ("*", "*"))), "text") for order in leaves)
    assert not here.is_like(there)
