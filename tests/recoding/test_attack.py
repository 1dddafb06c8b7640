"""What the choice of splits tells an attacker who knows the search and everybody's quasi-identifiers.

Every assignment of three values is searched, slowly, and told apart from the others by what would be published.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from integration.sources import make_spec

from qblock.search.run import open_task, run_search

from .answers import answered
from .drawn import written
from .searched import (
    Holds,
    People,
    Search,
    Told,
    Values,
    attacked,
    distinct,
    entropy,
    flat,
    frequency,
    paired,
)

VALUES = "abc"
MODELS: dict[str, tuple[Holds, Any]] = {
    "distinct": (distinct(2), {"distinct_l_diversity": {"l": 2, "sensitive": "s"}}),
    "frequency": (frequency(2), {"frequency_l_diversity": {"l": 2, "sensitive": "s"}}),
    "entropy": (entropy(2), {"entropy_l_diversity": {"l": 2, "sensitive": "s"}}),
}
P, Q = "p", "q"
ONE = People((flat(P, "xyz"),), {("x",): 1, ("y",): 2, ("z",): 2})
"""The fewest people of whom one is certain: of four, nobody is."""
TWO = People((flat(P, "xyz"), flat(Q, "uv")), {("x", "u"): 1, ("y", "u"): 1, ("y", "v"): 2, ("z", "u"): 1})
"""By discernibility and sizes the map from the node is taken before the one from the top."""
TABLES = [
    ONE,
    TWO,
    People((flat(P, "1234", ascending=True),), {(1,): 2, (2,): 1, (3,): 2, (4,): 1}),
    People((paired(P, ["x0", "x1", "y0", "y1"]),), {("x0",): 2, ("x1",): 2, ("y0",): 1, ("y1",): 1}),
    People((flat(P, "xy"), flat(Q, "uv")), {("x", "u"): 1, ("x", "v"): 2, ("y", "u"): 2, ("y", "v"): 2}),
    People((paired(P, ["x0", "x1", "y0"]), flat(Q, "uv")), {("x0", "u"): 2, ("x1", "v"): 2, ("y0", "u"): 3}),
    People((flat(P, "wxyz"),), {("w",): 2, ("x",): 2, ("y",): 2, ("z",): 1}),
]
LIMITED = People((flat(P, "xy"),), {("x",): 3, ("y",): 2})


def limited(people: People, holds: Holds, limit: int) -> Callable[[Values], Told | None]:
    """The search with a suppression limit, of one attribute with two leaves."""
    search = Search(people, holds)
    leaves = [(one,) for one in people.attributes[0].children(people.table.everything[0])]

    def told(values: Values) -> Told | None:
        good = [box for box in leaves if search.passes(values, box)]
        lost = sum(len(people.table.inside(box)) for box in leaves if box not in good)
        return search.shown(values, good) if good and lost <= limit else search.told(values)

    return told


@pytest.mark.parametrize("by", ["loss", "discernibility"])
@pytest.mark.parametrize("name", MODELS)
def test_by_sizes_nobody_is_certain(name: str, by: str) -> None:
    for people in TABLES:
        found = attacked(people, Search(people, MODELS[name][0], by=by, sizes=True).told, VALUES)
        assert found.told
        assert found.refused
        assert found.fewest() >= 2, people.at


def test_the_choice_of_splits_tells_somebodys_value() -> None:
    """aaabb is not divided: had x an a, y and z had aabb between them, and one of y with x and z would pass."""
    search = Search(ONE, MODELS["distinct"][0])
    found = attacked(ONE, search.told, VALUES)
    told = search.told((("a",), ("a", "a"), ("b", "b")))
    assert told == frozenset({(ONE.table.everything, tuple("aaabb"))})
    assert found.told[told] == [{"a"}, {"a", "b"}, {"a", "b"}]
    assert (len(found.told), len(found.disclosing(2)), found.assignments) == (57, 30, 108)


def test_of_four_people_nobody_is_certain() -> None:
    for attributes in [(flat(P, "xyz"),), (flat(P, "123", ascending=True),), (flat(P, "xy"), flat(Q, "uv"))]:
        leaves = list(itertools.product(*(one.paths for one in attributes)))
        for sizes in itertools.product(range(5), repeat=len(leaves)):
            if sum(sizes) == 4:
                people = People(attributes, {leaf: n for leaf, n in zip(leaves, sizes, strict=True) if n})
                assert attacked(people, Search(people, distinct(2)).told, VALUES).fewest() >= 2, people.at


def test_what_is_suppressed_tells_more() -> None:
    """Without a limit nobody of these five is certain. With one of two rows y would be suppressed where it fails."""
    holds = MODELS["distinct"][0]
    assert attacked(LIMITED, Search(LIMITED, holds).told, VALUES).fewest() == 2
    told = limited(LIMITED, holds, 2)
    found = attacked(LIMITED, told, VALUES)
    whole = told((("a", "a", "a"), ("b", "c")))
    assert whole == frozenset({(LIMITED.table.everything, tuple("aaabc"))})
    assert found.told[whole] == [{"a"}, {"b", "c"}]


def test_by_sizes_the_second_beginning_depends_on_no_value() -> None:
    """Were it left out where its node fails, the map from the top would tell that both of (y, v) have one value."""
    holds = MODELS["distinct"][0]
    wrong = Search(TWO, holds, by="discernibility", sizes=True, node_must_hold=True)
    assert attacked(TWO, wrong.told, VALUES).fewest() == 1
    values = (("a",), ("a",), ("b", "b"), ("b",))
    assert wrong.told(values) is not None
    assert Search(TWO, holds, by="discernibility", sizes=True).told(values) is None


CASES = {
    "one": (ONE, "loss", "minimal", 0, [("a", "aa", "bb"), ("a", "ab", "ab"), ("b", "aa", "ab"), ("a", "bc", "aa")]),
    "two": (
        TWO,
        "discernibility",
        "sizes",
        0,
        [("a", "a", "bb", "b"), ("a", "a", "ab", "b"), ("a", "b", "bc", "a"), ("c", "c", "ab", "c")],
    ),
    "limited": (LIMITED, "loss", "minimal", 2, [("aaa", "bc"), ("aab", "cc"), ("aab", "bc"), ("aaa", "aa")]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_engine_tells_the_same(warehouse: Any, tmp_path: Path, case: str) -> None:
    people, by, chosen, limit, assignments = CASES[case]
    holds, model = MODELS["distinct"]
    search = Search(people, holds, by=by, sizes=chosen == "sizes")
    expected = limited(people, holds, limit) if limit else search.told
    written(people.attributes, tmp_path)
    leaves = [leaf for leaf, n in people.at.items() for _ in range(n)]
    attributes: dict[str, Any] = {
        one.name: {"role": "quasi_identifier", "hierarchy": {"file": f"{one.name}.csv"}} for one in people.attributes
    }
    asked = {"recoding": "multidimensional", "choose_by": by, "choose_from": chosen}
    for number, values in enumerate(assignments):
        held: Values = tuple(tuple(sorted(some)) for some in values)
        columns = {name: [leaf[i] for leaf in leaves] for i, name in enumerate(people.names)}
        table = f"t{number}"
        url = warehouse(table, {**columns, "s": list("".join(values))})
        spec = make_spec(
            url,
            table,
            {**attributes, "s": "sensitive"},
            [{"k_anonymity": {"k": 2}}, model],
            tmp_path,
            search=asked,
            suppression_limit=limit,
        )
        told = expected(held)
        if told is None:
            with open_task(spec) as task:
                assert run_search(task).chosen is None, values
            continue
        with answered(people.table, spec) as answer:
            assert answer.result.chosen is not None, values
            assert search.shown(held, list(answer.boxes)) == told, values
