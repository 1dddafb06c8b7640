"""(n,t)-closeness along the way of a part: what it was split from counts, and nothing else does."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from integration.sources import make_spec
from reference import closeness
from reference.recoding import Attribute, Box, Recoding
from reference.tables import Block, Table

from .answers import answered
from .drawn import drawn, written
from .test_laws import check_boxes, few, folder_of, seeds

pytestmark = pytest.mark.either_engine

CHAIN = {
    "E1": ["E1", "F", "G1", "T"],
    "E2": ["E2", "F", "G1", "T"],
    "R1": ["R1", "R1", "G1", "T"],
    "R2": ["R2", "R2", "R2", "T"],
}


def counted(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) for _ in range(int(row["count"]))]


def boxes_of(
    warehouse: Any, folder: Path, table: Recoding, privacy: list[Any], **more: Any
) -> dict[Box, tuple[Box, ...]]:
    """The boxes of a table of texts, each with the parts on the way to it."""
    names = [*(one.name for one in table.attributes), *sorted(set(table.rows[0]) - {a.name for a in table.attributes})]
    url = warehouse("golden", {name: [row[name] for row in table.rows] for name in names})
    written(table.attributes, folder)
    attributes: dict[str, Any] = {
        one.name: {"role": "quasi_identifier", "hierarchy": {"file": f"{one.name}.csv"}} for one in table.attributes
    }
    attributes |= {"s": "sensitive", **({"person": "identifying"} if "person" in names else {})}
    search = {"recoding": "multidimensional", "choose_by": "loss"}
    with answered(table, make_spec(url, "golden", attributes, privacy, folder, search=search, **more)) as answer:
        return answer.boxes


def asked(n: int, t: float | str) -> dict[str, Any]:
    return {"nt_closeness": {"n": n, "t": t, "variant": "partition", "sensitive": "s"}}


def passing(table: Recoding, parts: list[list[set[str]]], n: int, t: Fraction) -> bool:
    """The check of the paper for a quasi-identifier. parts: each with the ones on its way, by their leaves."""
    whole = Table(table.rows)
    blocks = [[Block(whole, table.inside((frozenset(leaves),))) for leaves in path] for path in parts]
    return closeness.partition_holds(
        blocks,
        n,
        lambda one, other: sum(abs(p - q) for p, q in zip(one.shares(), other.shares(), strict=True)) / 2 <= t,
    )


def chain(shared: Path) -> Recoding:
    rows = [{"x": row["l0"], "s": row["s"]} for row in counted(shared / "golden" / "nt_counterexample.csv")]
    return Recoding((Attribute("x", CHAIN),), rows)


@pytest.mark.parametrize(
    ("t", "boxes"), [(0.2, [{"E1"}, {"E2"}, {"R1"}, {"R2"}]), (0.19, [{"E1", "E2", "R1"}, {"R2"}])]
)
def test_a_chain(warehouse: Any, tmp_path: Path, shared: Path, t: float, boxes: list[set[str]]) -> None:
    """E1 and E2 pass with t = 0, each for another part around them; F, which holds both, needs 1/5."""
    table = chain(shared)
    found = boxes_of(warehouse, tmp_path, table, [asked(40, t)])
    assert set(found) == {(frozenset(leaves),) for leaves in boxes}


def test_the_way_of_the_chain(shared: Path) -> None:
    table, whole, g, f = chain(shared), set(CHAIN), {"E1", "E2", "R1"}, {"E1", "E2"}
    fifth = Fraction(1, 5)
    assert passing(table, [[whole, g, f]], 40, fifth)
    assert not passing(table, [[whole, g, f]], 40, fifth - Fraction(1, 1000))
    assert passing(table, [[whole, g, f, {"E1"}], [whole, g, f, {"E2"}]], 40, Fraction(0))
    # Without the part G1 on the way E1 is like nothing, and E2 is like the whole table alone.
    assert not passing(table, [[whole, f, {"E1"}]], 40, fifth)
    assert passing(table, [[whole, f, {"E2"}]], 40, Fraction(0))


@pytest.mark.parametrize(
    ("t", "boxes"),
    [
        (0.25, [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")]),
        (0.24, [("01", "0"), ("01", "1")]),
        (0.12, [("01", "01")]),
    ],
)
def test_a_grid(warehouse: Any, tmp_path: Path, shared: Path, t: float, boxes: list[tuple[str, str]]) -> None:
    """By x alone, the nine rows of x = 1 are 11/36 away; by y, 1/8 is enough, and by x then 1/4."""
    rows = [{name: row[name] for name in "xys"} for row in counted(shared / "golden" / "nt_grid.csv")]
    flat = {leaf: [leaf, "*"] for leaf in "01"}
    table = Recoding((Attribute("x", flat), Attribute("y", flat)), rows)
    found = boxes_of(warehouse, tmp_path, table, [asked(11, t)])
    assert set(found) == {tuple(frozenset(label) for label in box) for box in boxes}


def test_people_of_the_whole_table_count_once(warehouse: Any, tmp_path: Path) -> None:
    """Two hold v in each of three places: the whole table has 7 with u and 2 with v, not 7 and 6."""
    places = {"x0": ["1u", "2u"], "x1": ["3u", "4u"], "y": ["5u", "6u", "7u"]}
    rows = [
        {"x": place, "person": one[0], "s": one[1]} for place, held in places.items() for one in [*held, "av", "bv"]
    ]
    paths = {"x0": ["x0", "x", "*"], "x1": ["x1", "x", "*"], "y": ["y", "y", "*"]}
    table = Recoding((Attribute("x", paths),), rows)
    # The top fails the second one, so that splits begin at the node above the leaves.
    privacy = [asked(5, 0.15), {"frequency_l_diversity": {"l": 1.5, "sensitive": "s"}}]
    found = boxes_of(warehouse, tmp_path, table, privacy, entity="person", count="entities")
    assert set(found) == {(frozenset({"x0", "x1"}),), (frozenset({"y"}),)}


@few
@given(seed=seeds)
def test_every_box_is_close_to_a_part_on_its_way(warehouse: Any, tmp_path: Path, seed: int) -> None:
    folder, name = folder_of(tmp_path)
    made = drawn(f"partition {seed}", folder, "nt_closeness", people=bool(seed % 2))
    with answered(made.table, made.spec(made.fill(warehouse, name), name, folder)) as answer:
        check_boxes(answer, made, 0)
