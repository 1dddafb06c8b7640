"""The worked examples of the papers for k-anonymity, the l-diversity family and the proximity models."""

from __future__ import annotations

import csv
import math
from ast import literal_eval
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from by_hand import passes, rows, table, values

from qblock.blocks import Blocks, Reference
from qblock.models import (
    AlphaKAnonymity,
    DeltaLDiversity,
    DistinctLDiversity,
    EntropyLDiversity,
    EpsilonMAnonymity,
    FrequencyLDiversity,
    KAnonymity,
    NpdRecursiveCLDiversity,
    PdRecursiveCLDiversity,
    RecursiveCLDiversity,
    multi,
)

Golden = dict[str, dict[str, Any]]
Given = tuple[Blocks, Reference]


def exactly(expected: Any) -> Fraction | float:
    return math.inf if expected == "inf" else Fraction(expected["exact"] if isinstance(expected, dict) else expected)


def same_digits(found: object, expected: dict[str, Any]) -> bool:
    return abs(Decimal(str(found)) - Decimal(expected["digits"])) < Decimal("1e-22")


def check_profile(given: Given, expected: dict[str, Any]) -> None:
    """Everything that this family says about one table."""
    assert values(KAnonymity(k=1), given)["k"] == expected["k"]
    assert values(DistinctLDiversity(l=1), given)["l"] == expected["distinct_l"]
    assert values(FrequencyLDiversity(l=1), given)["l"] == exactly(expected["frequency_l"])
    assert same_digits(values(EntropyLDiversity(l=1), given)["l"], expected["entropy_l"])
    for c, largest in expected["recursive_largest_l"].items():
        assert values(RecursiveCLDiversity(c=int(c), l=2), given)["l"] == largest
        assert values(PdRecursiveCLDiversity(c=int(c), l=2), given)["l"] == largest
    for l, infimum in expected["recursive_infimum_c (strict: c must exceed it)"].items():  # noqa: E741
        assert values(RecursiveCLDiversity(c=1, l=int(l)), given)["c"] == exactly(infimum)


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("ldiv.figure2", ["zip", "age", "nationality"]),
        ("ldiv.figure3", ["zip", "age", "nationality"]),
        ("thesis.2_9", ["zip", "age"]),
        ("thesis.2_10", ["zip", "age"]),
        ("thesis.2_11", ["zip", "age"]),
        ("thesis.2_12", ["zip", "age"]),
        ("closeness.table2", ["zip", "age"]),
    ],
)
def test_profiles_of_printed_tables(golden: Golden, golden_table: Any, name: str, by: list[str]) -> None:
    entry = golden[name]
    given = golden_table(entry["file"], by, entry["sensitive"])
    assert list(given[1].domain) == entry["expected"]["dom"]
    assert len(given[0]) == entry["expected"]["blocks"]
    check_profile(given, entry["expected"])


def test_figure_3_is_diverse_at_2_8_but_not_at_2_83(golden: Golden, golden_table: Any) -> None:
    entry = golden["ldiv.figure3"]
    given = golden_table(entry["file"], ["zip", "age", "nationality"], "condition")
    for text in ("14/5", "283/100"):
        expected = entry["expected"][f"entropy_ok_at_{text}"]
        assert all(passes(EntropyLDiversity(l=Fraction(text)), given)) == expected
    assert not all(passes(RecursiveCLDiversity(c=2, l=3), given))
    assert all(passes(RecursiveCLDiversity(c=Fraction(2001, 1000), l=3), given))


def test_multi_attribute_example(golden: Golden, golden_table: Any, shared: Path) -> None:
    entry = golden["ldiv.multi"]
    for name in ("S", "V"):
        check_profile(golden_table(entry["file"], ["q"], name), entry["expected"][f"{name} alone"])
    given = golden_table(entry["file"], ["q"], "S")
    assert all(passes(RecursiveCLDiversity(c=2, l=3), given)) == entry["expected"]["S alone (2,3)-recursive"]
    assert (
        all(passes(RecursiveCLDiversity(c=Fraction(2001, 1000), l=3), given))
        == entry["expected"]["S alone (2+1/1000,3)-recursive"]
    )
    with (shared / "golden" / entry["file"]).open(encoding="utf-8") as file:
        read = [(row["S"], row["V"]) for row in csv.DictReader(file)]
    codes = np.array([[int(text[1:]) for text in row] for row in read])
    ones = np.ones(len(read), np.int64)
    for (blocks, owner), other in zip(multi.split(0 * ones, codes, ones), ("S; QI+V", "V; QI+S"), strict=True):
        attribute = multi.Attribute(DistinctLDiversity(l=1), blocks, Reference.of(blocks), owner)
        assert multi.tightest([attribute]).values[0].value == entry["expected"][f"multi-attribute distinct_l ({other})"]


def test_pd_and_npd_examples(golden: Golden) -> None:
    entry = golden["ldiv.pd_example"]
    given = table(tuple(entry["block"].values()), names="".join(entry["block"]))
    for text, expected in entry["expected"].items():
        l = int(text.removeprefix("l="))  # noqa: E741
        assert values(RecursiveCLDiversity(c=1, l=l), given)["c"] == exactly(expected["plain_infimum_c"])
        pd = PdRecursiveCLDiversity(c=1, l=l, allowed=tuple(entry["Y"]))
        assert values(pd, given)["c"] == exactly(expected["pd_infimum_c"])

    entry = golden["ldiv.npd_example"]
    given = table(tuple(entry["block"].values()), names="".join(entry["block"]))
    for c2 in (7, 8):
        npd = NpdRecursiveCLDiversity(c1=2, c2=c2, l=2, allowed=tuple(entry["Y"]), protected=tuple(entry["W"]))
        assert values(npd, given)["c2"] == exactly(entry["expected"]["largest c2 percent"])
        assert passes(npd, given) == [entry["expected"][f"npd c1=2,c2={c2},l=2"]]


def test_the_printed_reduction_of_pd_fails_on_a_tie(golden: Golden) -> None:
    entry = golden["ldiv.pd_reduction"]
    given = table(tuple(entry["block"].values()), names="".join(entry["block"]))
    for c, key in ((Fraction(entry["c"]), "pd_ok"), (Fraction(101, 100), "pd_ok c=1.01")):
        model = PdRecursiveCLDiversity(c=c, l=entry["l"], allowed=tuple(entry["Y"]))
        assert passes(model, given) == [entry["expected"][key]]


def test_skewed_shares(golden: Golden) -> None:
    expected = golden["closeness.skew"]["expected"]
    top = tuple(golden["closeness.skew"]["block"].values())
    model = EntropyLDiversity(l=1)
    assert same_digits(values(model, table(top))["l"], expected["entropy_l of the whole table"])
    for block in ((49, 1), (1, 49)):
        assert same_digits(values(model, table(block))["l"], expected["entropy_l(49,1)=entropy_l(1,49)"])


def test_a_share_of_exactly_c_over_c_plus_1_is_not_diverse(golden: Golden) -> None:
    entry = golden["vldb.c2_boundary"]
    given = table(tuple(entry["block"].values()))
    assert passes(RecursiveCLDiversity(c=4, l=2), given) == [entry["expected"]["(4,2) strict"]]
    assert passes(AlphaKAnonymity(alpha=Fraction(4, 5), k=1), given) == [True]


def test_suppression_with_frequency_diversity(golden: Golden) -> None:
    entry = golden["suppression.frequency2"]
    blocks, reference = table(*(tuple(block.values()) for block in entry["blocks"]))
    model = FrequencyLDiversity(l=2)
    merged = blocks.merged(np.array([0, 0]))
    for found, key in ((blocks, "dropped before merge"), (merged, "dropped after merge")):
        assert int(found.rows[~model.passes(found, reference)].sum()) == entry["expected"][key]


def test_delta_figure_1(golden: Golden, golden_table: Any) -> None:
    expected = golden["delta.figure1"]["expected"]
    read = golden_table("delta_figure1.csv", ["age", "zip"], "salary")
    names = read[1].domain
    given = rows(*(tuple(int(names[v]) for v, n in read[0].histogram(b).items() for _ in range(n)) for b in range(3)))
    assert values(FrequencyLDiversity(l=1), given)["l"] == exactly(expected["frequency_l"])
    for epsilon in (10, 20):
        assert values(EpsilonMAnonymity(epsilon=epsilon, m=1), given)["m"] == exactly(expected[f"eps_m({epsilon})"])
    for reading in ("window", "literal"):
        model = DeltaLDiversity(delta=10, l=1, reading=reading)  # type: ignore[arg-type]
        assert values(model, given)["l"] == exactly(expected[f"delta_{reading}(10)"])


def test_delta_figure_2(golden: Golden) -> None:
    expected = golden["delta.figure2"]["expected"]
    for group, block in (("G1", (40, 60)), ("G2", (40, 50, 60))):
        given = rows(block)
        assert values(EpsilonMAnonymity(epsilon=15, m=1), given)["m"] == exactly(expected[f"eps_m(15) {group}"])
        for reading in ("window", "literal"):
            model = DeltaLDiversity(delta=15, l=1, reading=reading)  # type: ignore[arg-type]
            wanted = expected.get(f"delta(15) {reading} {group}")
            assert wanted is None or values(model, given)["l"] == exactly(wanted)


def test_delta_monotonicity_and_the_block_of_one_row(golden: Golden) -> None:
    entry = golden["delta.monotonicity"]
    blocks = [rows(tuple(block)) for block in entry["blocks"]]
    half = Fraction(15, 2)
    for key, model in (
        ("eps_m(15)", EpsilonMAnonymity(epsilon=15, m=1)),
        ("delta(7.5) literal", DeltaLDiversity(delta=half, l=1, reading="literal")),
        ("delta(7.5) window", DeltaLDiversity(delta=half, l=1)),
    ):
        found = [next(iter(values(model, given).values())) for given in blocks]
        assert found == [exactly(x) for x in entry["expected"][key]]
    single = golden["delta.figure3_singleton"]
    expected = exactly(single["expected"]["l of a one-row block"])
    assert values(DeltaLDiversity(delta=1, l=1), rows(tuple(single["block"])))["l"] == expected


def test_every_node_of_the_inpatient_lattice(golden: Golden, shared: Path) -> None:
    entry = golden["ldiv.lattice"]
    folder = shared / "golden"
    with (folder / entry["file"]).open(encoding="utf-8") as file:
        patients = list(csv.DictReader(file))
    levels = []
    for name in entry["hierarchies"]:
        with (folder / name).open(encoding="utf-8") as file:
            levels.append({row[0]: row for row in csv.reader(file)})
    domain = sorted({row["condition"] for row in patients})
    value = np.array([domain.index(row["condition"]) for row in patients])
    ones = np.ones(len(patients), np.int64)
    reference = Reference(len(patients), tuple(domain), np.bincount(value))
    for text, expected in entry["expected"]["nodes"].items():
        node = literal_eval(text)
        keys = [
            tuple(levels[i][row[name]][node[i]] for i, name in enumerate(("zip", "age", "nationality")))
            for row in patients
        ]
        codes = sorted(set(keys))
        given = Blocks.from_pairs(np.array([codes.index(key) for key in keys]), value, ones), reference
        assert values(KAnonymity(k=1), given)["k"] == expected["k"]
        assert values(DistinctLDiversity(l=1), given)["l"] == expected["distinct_l"]
        assert float(values(EntropyLDiversity(l=1), given)["l"]) == pytest.approx(expected["entropy_l"], rel=1e-14)  # type: ignore[arg-type]
        assert values(RecursiveCLDiversity(c=3, l=1), given)["l"] == expected["recursive_l_c3"]
