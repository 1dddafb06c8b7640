"""How neighbours read that are published as one label: by the cuts around them, never by the first and the last."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from fractions import Fraction

import pytest

from qblock.comparison import Kind
from qblock.hierarchy import Grid, Hierarchy, cuts, dates, digits, edges, ranges, suppress
from qblock.hierarchy.bounds import Reader
from qblock.hierarchy.written import interval_of_moments, interval_of_numbers
from qblock.recoding import Ladder, Tree
from qblock.search.boxes.recoded import shares, shares_in_words

AGES = [str(age) for age in (18, 23, 25, 27, 31, 34, 52, 67)]
DOSES = ["0.75", "1.25", "1.31", "2.5", "27.87953", "28.1"]


def parts(ladder: Ladder, level: int, *below: str, null: bool = True) -> list[str]:
    """How the parts of a whole domain read that is cut before these labels of a level."""
    tree = Tree([ladder], (ladder.hierarchy.height,))
    part = tree.begin((0,))
    for name in below:
        code = ladder.code(level, name)
        assert code is not None
        part = tree.cut(part, 0, level, code, null=null).merged[1]
    texts = tree.texts(tree.boxes())
    return [texts[tree.labels[box][0]] for box in tree.boxes()]


@pytest.mark.parametrize(
    ("values", "kind", "before", "read"),
    [
        (AGES, "integer", ["27", "52"], ["<26", "26-49", ">=50"]),
        (["-12", "-7", "-6", "3", "8"], "integer", ["-6", "8"], ["<-6", "-6 to 4", "8"]),
        (DOSES, "decimal", ["1.31", "28.1"], ["<1.3", "[1.3, 28)", "28.1"]),
        (DOSES, "float", ["1.31", "28.1"], ["<1.3", "[1.3, 28)", "28.1"]),
        (["1e-05", "2", "3", "4"], "float", ["3"], ["<3", ">=3"]),
    ],
)
def test_values_are_cut_at_round_numbers(values: list[str], kind: Kind, before: list[str], read: list[str]) -> None:
    assert parts(Ladder(suppress("v", values, kind), kind), 0, *before) == read


@pytest.mark.parametrize(
    ("values", "kind", "before", "read"),
    [
        (
            ["2023-11-05", "2023-12-01", "2024-01-05", "2024-02-11", "2024-02-26"],
            "date",
            ["2024-01-05", "2024-02-26"],
            ["<2024-01-01", "2024-01-01 to 2024-02-11", "2024-02-26"],
        ),
        (
            ["2023-05-05", "2023-07-01", "2024-01-31", "2025-01-05"],
            "date",
            ["2024-01-31"],
            ["<2024-01-01", ">=2024-01-01"],
        ),
        (
            [f"2024-01-05 {time}" for time in ("08:12:31", "09:40", "11:59:10.25", "11:59:10.5", "23:00")],
            "timestamp",
            ["2024-01-05 11:59:10.25", "2024-01-05 23:00"],
            ["<2024-01-05 10:00", "[2024-01-05 10:00, 2024-01-05 12:00)", "2024-01-05 23:00"],
        ),
    ],
)
def test_moments_are_cut_where_a_unit_begins(values: list[str], kind: Kind, before: list[str], read: list[str]) -> None:
    assert parts(Ladder(suppress("v", values, kind), kind), 0, *before) == read


@pytest.mark.parametrize(
    ("hierarchy", "before", "read"),
    [
        (ranges("v", AGES, [5]), ["30-34", "50-54"], ["<30", "30-34", ">=35"]),
        (ranges("v", AGES, [5], from_=20, to=60), ["30-34", "50-54"], ["<30", "30-34", ">=35"]),
        (
            ranges("v", DOSES, [Fraction(1, 2)], kind="decimal"),
            ["[1, 1.5)", "[28, 28.5)"],
            ["[0.5, 1)", "[1, 28)", "[28, 28.5)"],
        ),
        (edges("v", AGES, [20, 25, 30]), ["25-29", ">=30"], ["<25", "25-29", ">=30"]),
        (digits("v", ["130", "135", "148", "210"], 3, kind="integer"), ["14*"], ["13*", "14* to 21*"]),
    ],
)
def test_labels_are_cut_where_one_of_the_hierarchy_ends(
    hierarchy: Hierarchy, before: list[str], read: list[str]
) -> None:
    assert parts(Ladder(hierarchy, "decimal" if "0.75" in hierarchy.leaves else "integer"), 1, *before) == read


def test_declared_ends_are_shown() -> None:
    grid = Grid(0, 5, 0, 100)
    for labels, read in (("plain", ["0-29", "30-34", "35-100"]), ("half_open", ["[0, 30)", "[30, 35)", "[35, 100]"])):
        hierarchy = cuts("v", AGES, grid, "integer", labels)  # type: ignore[arg-type]
        ladder = Ladder(hierarchy, "integer", 1, half_open=labels == "half_open", ends=("0", "100"))
        assert parts(ladder, 1, *(hierarchy.labels[1][AGES.index(age)] or "" for age in ("31", "52"))) == read


@pytest.mark.parametrize("kind", ["integer", "decimal"])
def test_within_a_label_its_own_ends_are_known(kind: Kind) -> None:
    hierarchy = ranges("v", AGES, [20], kind=kind)
    ladder = Ladder(hierarchy, kind)
    tree = Tree([ladder], (1,))
    part = tree.begin((int(hierarchy.codes[1][1]),))
    tree.cut(part, 0, 0, int(hierarchy.codes[0][3]))
    texts = tree.texts(tree.boxes())
    assert list(texts.values()) == (["20-25", "26-39"] if kind == "integer" else ["[20, 26)", "[26, 40)"])


def test_within_a_label_that_cannot_be_read_its_name_is_said() -> None:
    paths = {"1": "young", "2": "young", "5": "young", "7": "old", "8": "old", "9": "old"}
    hierarchy = Hierarchy("v", ("v", "group", "all"), (tuple(paths), tuple(paths.values()), ("*",) * 6))
    tree = Tree([Ladder(hierarchy, "integer")], (1,))
    for code, at in ((0, 2), (3, 4)):
        tree.cut(tree.begin((code,)), 0, 0, at)
    assert sorted(tree.texts(tree.boxes()).values()) == ["5", "7", "old (>=8)", "young (<5)"]


def test_months_and_weeks() -> None:
    days = ["2023-11-05", "2023-12-01", "2024-01-05", "2024-04-11", "2024-04-26"]
    months = Ladder(dates("v", days, ["month"]), "date")
    assert parts(months, 1, "2023-12", "2024-04") == ["2023-11", "2023-12 to 2024-01", "2024-04"]
    reader = Reader("dates", "date", weeks=True)
    weeks = Ladder(dates("v", days, ["week", "iso_year"]), "date", reader=reader)
    assert parts(weeks, 1, "2023-W48", "2024-W15") == ["2023-W44", "2023-11-06 to 2024-01-07", ">=2024-01-08"]


def test_null_is_apart_from_the_values_beside_it() -> None:
    ladder = Ladder(suppress("v", AGES, "integer").add_null_leaf(), "integer")
    assert parts(ladder, 0, "31", "67") == ["<30", "30-59", ">=60 or (missing)"]
    assert parts(ladder, 0, "31", "52") == ["<30", "30-49", ">=50 or (missing)"]
    assert parts(ladder, 0, "31", "52", null=False) == ["<30", "30-49", ">=50"]
    tree = Tree([ladder], (1,))
    null = ladder.null
    assert null is not None
    tree.cut(tree.begin((0,)), 0, 0, null)
    assert list(tree.texts(tree.boxes()).values()) == ["(known)", "(missing)"]


@pytest.mark.parametrize(
    ("low", "high", "closed", "whole", "read"),
    [
        ("15", "30", False, True, "15-29"),
        ("-3", "6", False, True, "-3 to 5"),
        ("2.5", "3", False, True, "[2.5, 3)"),
        ("15", "30", False, False, "[15, 30)"),
        ("90", "100", True, True, "90-100"),
        ("90", "100", True, False, "[90, 100]"),
        (None, "15", False, True, "<15"),
        ("90", None, False, True, ">=90"),
        ("15", "16", False, True, "15"),
    ],
)
def test_intervals_of_numbers(low: str | None, high: str | None, closed: bool, whole: bool, read: str) -> None:
    assert interval_of_numbers(low, high, closed, whole=whole) == read


@pytest.mark.parametrize(
    ("low", "high", "units", "read"),
    [
        ("2024-01-01", "2024-04-01", True, "2024-01 to 2024-03"),
        ("2024-01-01", "2024-02-01", True, "2024-01"),
        ("2024-01-01", "2024-02-01", False, "2024-01-01 to 2024-01-31"),
        ("2024-01-05", "2024-01-26", True, "2024-01-05 to 2024-01-25"),
        ("2024-01-05", "2024-01-05 12:00", True, "[2024-01-05, 2024-01-05 12:00)"),
        (None, "2024-01-05", True, "<2024-01-05"),
    ],
)
def test_intervals_of_moments(low: str | None, high: str | None, units: bool, read: str) -> None:
    assert interval_of_moments(low, high, False, units=units) == read


@pytest.mark.parametrize("seed", range(40))
def test_rows_lie_where_their_label_says(seed: int) -> None:
    """And no two labels read the same, whatever the domain and the cuts."""
    draw = random.Random(seed)
    kind: Kind = draw.choice(["integer", "decimal", "float", "date"])
    values: Sequence[str]
    if kind == "date":
        values = sorted(
            {f"{draw.randint(1990, 1994)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}" for _ in range(30)}
        )
    else:
        scale = 1 if kind == "integer" else draw.choice([100, 100_000])
        values = [
            str(n) if scale == 1 else repr(n / scale) for n in sorted(draw.sample(range(-20 * scale, 40 * scale), 25))
        ]
    hierarchy = suppress("v", values, kind)
    if draw.random() < 0.6:
        hierarchy = dates("v", values, ["month", "year"]) if kind == "date" else ranges("v", values, [5, 10], 0, kind)
    ladder = Ladder(hierarchy, kind)
    reader = Reader("dates" if kind == "date" else "numbers", kind)
    tree = Tree([ladder], (hierarchy.height,))
    opened = [tree.begin((0,))]
    while opened:
        part = opened.pop()
        label = tree.labels[part][0]
        level = ladder.grain(label)
        if level is None or draw.random() < 0.2:
            continue
        members = ladder.members(label, level)
        if len(members) == 1:
            opened.append(tree.child(tree.each(part, 0, level) and part, int(members[0])))
        else:
            opened += tree.cut(part, 0, level, int(draw.choice(members[1:]))).merged
    texts = tree.texts(tree.boxes())
    assert len(set(texts.values())) == len(texts)
    for label, text in texts.items():
        low, high = reader.bounds(text)
        for leaf in itertools.compress(hierarchy.leaves, ladder.leaf_sets(label)):
            at = reader.bounds(leaf)[0]
            assert low is None or low <= at
            assert high is None or at < high


def test_a_column_with_one_value_is_said_to_have_one() -> None:
    tree = Tree([Ladder(suppress("v", ("7",), "integer"), "integer")], (1,))
    (attribute,) = shares(tree.ladders, dict.fromkeys(tree.labels[0], "7"), [[(tree.labels[0][0], 5)]])
    assert attribute["words"] == "has one value"


def test_what_most_rows_have_is_said_first() -> None:
    shown = [
        {"level": level, "form": "plain", "like": like, "share": share}
        for level, like, share in ((0, "17", 0.1), (1, "15-19", 0.25), (2, "10-19", 0.6))
    ]
    assert shares_in_words(shown, 0.05, most=2) == "groups like 10-19 for 60 %, groups like 15-19 for 25 %, 2 more"
    assert shares_in_words(shown[1:], 0, most=2) == "groups like 10-19 for 60 %, groups like 15-19 for 25 %"
    assert shares_in_words(shown[:1], 0.9, most=1) == "suppressed to * for 90 %, 1 more"
    assert shares_in_words(shown[:1], 0.9) == "as it is for 10 %, suppressed to * for 90 %"
