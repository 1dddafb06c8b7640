"""What the attacks gain, on worked examples."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from qblock import attacks
from qblock.blocks import Blocks, Reference

TABLE = Blocks.of([{0: 4}, {0: 2, 1: 3, 2: 1}, {1: 2, 3: 2}, {2: 1}])


def reference(**more: object) -> Reference:
    return Reference.of(TABLE, **more)  # type: ignore[arg-type]


def test_homogeneity() -> None:
    found = attacks.homogeneity(TABLE, reference())
    assert (found.blocks, found.rows, found.mean_size, found.vulnerable) == (2, 5, Fraction(5, 2), True)
    safe = attacks.homogeneity(TABLE.select([1, 2]), reference())
    assert (safe.blocks, safe.rows, safe.mean_size, safe.vulnerable) == (0, 0, None, False)
    one = Blocks.of([{0: 4}])
    assert not attacks.homogeneity(one, Reference.of(one)).vulnerable
    assert attacks.homogeneity(one, Reference.of(one, values=2)).vulnerable


def test_certainty_is_bought_in_the_least_diverse_blocks() -> None:
    blocks = Blocks.of([{0: 6, 1: 3, 2: 2}, {0: 2, 3: 5}, {1: 4, 2: 4}, {1: 1, 2: 1}])
    found = attacks.certainty(blocks, Reference.of(blocks))
    # Two values each in all but the first; of the largest, with 4 and 4, the second is ruled out.
    assert (found.eliminated, found.values, found.blocks, found.rows) == (1, ("2",), 3, 17)
    assert attacks.certainty(blocks.select([0]), Reference.of(blocks)).values == ("1", "2")
    known = attacks.certainty(TABLE, reference())
    assert (known.eliminated, known.values, known.rows) == (0, (), attacks.homogeneity(TABLE, reference()).rows)
    # So few are ruled out that certainty is bought, and one fewer buys it for nobody.
    for one in (blocks, blocks.select([0])):
        least = attacks.certainty(one, Reference.of(one))
        assert least.eliminated is not None
        enough = attacks.background_knowledge(one, least.eliminated)
        assert (enough.blocks, enough.rows) == (least.blocks, least.rows)
        assert attacks.background_knowledge(one, least.eliminated - 1).blocks == 0
        assert attacks.elimination(one.select([one.rows.argmax()]), Reference.of(one), ()).posterior != 1


def test_background_knowledge() -> None:
    blocks = Blocks.of([{0: 6, 1: 3, 2: 2, 3: 1}, {0: 2, 1: 2, 2: 1}])
    # 6 of 6+2+1 without the second value; 6 of 6+1 without the third; then 6 of 6. The other: 2 of 3; then certain.
    found = [attacks.background_knowledge(blocks, j) for j in (1, 2, 3)]
    assert [f.posterior for f in found] == [Fraction(2, 3), 1, 1]
    assert [(f.blocks, f.rows) for f in found] == [(0, 0), (1, 5), (2, 17)]
    assert attacks.background_knowledge(blocks.select([0]), 2).posterior == Fraction(6, 7)
    assert attacks.background_knowledge(TABLE, 1).posterior == 1


def test_eliminating_a_given_set() -> None:
    found = attacks.elimination(TABLE, reference(), {"0", "2"})
    # The first and last block hold nothing else; 3 of 3 in the second; 2 of 4 in the third.
    assert found.values == ("0", "2")
    assert (found.posterior, found.blocks, found.rows) == (1, 1, 6)
    found = attacks.elimination(TABLE, reference(), {"2"})
    assert (found.posterior, found.blocks, found.rows) == (1, 1, 4)
    assert attacks.elimination(TABLE.select([1]), reference(), {"2"}).posterior == Fraction(3, 5)
    assert attacks.elimination(TABLE.select([0]), reference(), {"0"}).posterior is None


def test_skewness() -> None:
    # The block 1:1 in a table of 99% and 1%: the rare value goes from 1% to 50%.
    blocks = Blocks.of([{0: 1, 1: 1}, {0: 98}])
    found = attacks.skewness(blocks, Reference(100, ("negative", "positive"), np.array([99, 1])))
    assert (found.gain, found.value) == (50, "positive")
    assert attacks.skewness(TABLE, reference()).gain == Fraction(15, 2)  # value 2 alone, of 2 in 15
    whole = TABLE.merged(np.zeros(4, np.int64))
    assert attacks.skewness(whole, reference()).gain == 1


def test_similarity() -> None:
    taxonomy = np.array([[0, 0, 0], [1, 1, 0], [2, 0, 0], [3, 1, 0]])
    found = attacks.similarity(TABLE, reference(taxonomy=taxonomy))
    # Labels {0,2} and {1,3}: 4 of 4, 3 of 6, 4 of 4, 1 of 1. The level of the top says nothing.
    assert [(f.level, f.share, f.blocks, f.rows) for f in found] == [(1, 1, 3, 9)]
    assert attacks.similarity(TABLE.select([1]), reference(taxonomy=taxonomy))[0].share == Fraction(1, 2)
    assert attacks.similarity(TABLE, reference()) == ()
    given = attacks.similarity(TABLE, reference(), [np.array([0, 0, 0, 1])])
    assert [(f.share, f.blocks, f.rows) for f in given] == [(1, 3, 11)]


def test_proximity() -> None:
    # Salaries 3, 5, 11, 90.
    numbers = tuple(map(Fraction, (3, 5, 11, 90)))
    found = attacks.proximity(TABLE, reference(numbers=numbers), 2)
    assert found is not None
    assert (found.epsilon, found.share, found.blocks, found.rows) == (2, 1, 2, 5)
    middle = attacks.proximity(TABLE.select([1]), reference(numbers=numbers), 2)
    assert middle is not None
    assert middle.share == Fraction(5, 6)
    default = attacks.proximity(TABLE, reference(numbers=numbers))
    assert default is not None
    assert default.epsilon == Fraction(87, 20)
    assert attacks.proximity(TABLE, reference()) is None


def test_all_of_them_as_json() -> None:
    taxonomy = np.array([[0, 0, 0], [1, 1, 0], [2, 0, 0], [3, 1, 0]])
    numbers = tuple(map(Fraction, (3, 5, 11, 90)))
    found = attacks.attacks(TABLE, reference(taxonomy=taxonomy, numbers=numbers), eliminated=("2",), epsilon=2)
    as_json = json.loads(json.dumps(found.to_json()))
    assert list(as_json) == [
        "homogeneity",
        "background_knowledge",
        "certainty",
        "eliminated",
        "skewness",
        "similarity",
        "proximity",
    ]
    assert as_json["homogeneity"] == {"blocks": 2, "rows": 5, "mean_size": 2.5, "vulnerable": True}
    assert [entry["eliminated"] for entry in as_json["background_knowledge"]] == [1, 2, 3]
    assert as_json["skewness"] == {"gain": 7.5, "value": "2"}
    assert as_json["similarity"] == [{"level": 1, "share": 1, "blocks": 3, "rows": 9}]
    plain = attacks.attacks(TABLE, reference()).to_json()
    assert list(plain) == ["homogeneity", "background_knowledge", "certainty", "skewness"]


def test_an_empty_table() -> None:
    taxonomy = np.array([[0, 0, 0], [1, 1, 0], [2, 0, 0], [3, 1, 0]])
    numbers = tuple(map(Fraction, (3, 5, 11, 90)))
    empty = TABLE.select([])
    found = attacks.attacks(empty, reference(taxonomy=taxonomy, numbers=numbers), eliminated=("2",))
    assert not found.homogeneity.vulnerable
    assert found.skewness.gain is None
    assert (found.certainty.eliminated, found.certainty.rows) == (None, 0)
    assert found.eliminated is not None
    assert found.eliminated.posterior is None
    assert found.similarity[0].share is None
    assert found.proximity is not None
    assert found.proximity.share is None
    assert {entry.posterior for entry in found.background_knowledge} == {None}


def test_entities_are_counted_once_and_share_all_their_values() -> None:
    # Three people, one of them with both values: rows 3, counts 3 and 1.
    blocks = Blocks.of([{0: 3, 1: 1}])
    people = Blocks(blocks.start, blocks.value, blocks.count, np.array([3]))
    found = attacks.attacks(people, Reference.of(people, values=3))
    assert found.background_knowledge[0].rows == 3
    assert found.background_knowledge[0].posterior == 1
    assert found.skewness.gain == 1


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("ldiv.figure2", ["zip", "age", "nationality"]),
        ("ldiv.figure3", ["zip", "age", "nationality"]),
        ("closeness.table2", ["zip", "age"]),
        ("thesis.2_9", ["zip", "age"]),
        ("thesis.2_10", ["zip", "age"]),
        ("thesis.2_12", ["zip", "age"]),
    ],
)
def test_golden_tables(name: str, by: list[str], golden: dict, golden_table) -> None:  # type: ignore[no-untyped-def,type-arg]
    entry = golden[name]
    blocks, whole = golden_table(entry["file"], by, entry["sensitive"])
    found = attacks.homogeneity(blocks, whole)
    assert (found.blocks, found.rows) == (
        entry["expected"]["homogeneous_blocks"],
        entry["expected"]["homogeneous_tuples"],
    )


def test_golden_similarity(golden: dict, golden_table) -> None:  # type: ignore[no-untyped-def,type-arg]
    # Table 2.11 is 2-diverse, yet everybody aged 35-39 has a serious disease.
    entry = golden["thesis.2_11"]
    blocks, whole = golden_table(entry["file"], ["zip", "age"], entry["sensitive"])
    serious = np.array([int(value != "Common cold") for value in whole.domain])
    found = attacks.similarity(blocks, whole, [serious])
    assert [(f.share, f.blocks, f.rows) for f in found] == [(1, 1, 2)]


def test_golden_envelope(golden: dict) -> None:  # type: ignore[type-arg]
    expected = golden["ldiv.envelope"]["expected"]
    found = attacks.expected_homogeneous(expected["groups"], 3, 5)
    assert found == Fraction(expected["expected_homogeneous_groups"]["exact"])
    assert (int(found), 5 * int(found)) == (expected["floor"], expected["tuples"])


def test_recursive_diversity_bounds_background_knowledge() -> None:
    # (c,l)-diversity holds exactly for the c above r_1/tail_l: posterior < c/(c+1) after l-2 eliminations.
    blocks = Blocks.of([{0: 6, 1: 3, 2: 2, 3: 1}])
    for rank, tail in ((3, 3), (4, 1)):
        c = Fraction(6, tail)
        assert attacks.background_knowledge(blocks, rank - 2).posterior == c / (c + 1)
