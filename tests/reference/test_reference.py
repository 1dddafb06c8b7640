# ruff: noqa: E741 - l is the letter of the papers
"""The reference against the worked examples, which a third implementation computed."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from reference import attacks, closeness, distance, diversity, lattices, proximity, utility, worked
from reference.tables import Table, table_of
from reference.worked import as_published, exact, histogram_block, inpatients, same_digits

HALF = Fraction(1, 2)


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared / "golden"


PROFILES = [
    "ldiv.figure2",
    "ldiv.figure3",
    "thesis.2_9",
    "thesis.2_10",
    "thesis.2_11",
    "thesis.2_12",
    "closeness.table2",
]


@pytest.mark.parametrize("name", PROFILES)
def test_profiles(name: str, golden: dict[str, Any], folder: Path) -> None:
    entry = golden[name]
    _, blocks = as_published(folder / entry["file"], entry["qi"], entry["sensitive"])
    assert worked.check_profile(blocks, entry["expected"]) == []


@pytest.mark.parametrize("name", ["ldiv.figure2", "ldiv.figure3"])
def test_nodes_of_the_inpatient_lattice(name: str, golden: dict[str, Any], folder: Path) -> None:
    entry, table = golden[name], inpatients(folder)
    node, expected = tuple(entry["node"]), entry["expected"]
    assert worked.check_profile(list(table.blocks(node).values()), expected) == []
    assert utility.height(node) == expected["height"]
    assert utility.average_block_size(table, node) == exact(expected["avg_block"])
    assert utility.discernibility(table, node) == expected["discernibility"]
    assert same_digits(utility.divergence(table, node), expected["kl"])


def test_entropy_at_a_threshold_between(golden: dict[str, Any], folder: Path) -> None:
    expected = golden["ldiv.figure3"]["expected"]
    _, blocks = as_published(folder / "inpatient_figure3.csv", ["zip", "age", "nationality"], "condition")
    for text in ("14/5", "283/100"):
        assert all(diversity.entropy_holds(b, Fraction(text)) for b in blocks) == expected[f"entropy_ok_at_{text}"]


def test_multi_attribute(golden: dict[str, Any], folder: Path) -> None:
    expected = golden["ldiv.multi"]["expected"]
    for name in ("S", "V"):
        _, blocks = as_published(folder / "multi_sensitive.csv", ["q"], name)
        assert worked.check_profile(blocks, expected[f"{name} alone"]) == []
        assert diversity.recursive_holds(blocks[0], 2, 3) is False
        assert diversity.recursive_holds(blocks[0], 2 + Fraction(1, 1000), 3) is True
        split = diversity.multi_attribute_blocks(blocks[0], ["S", "V"])[name]
        other = {"S": "V", "V": "S"}[name]
        least = min(map(diversity.distinct_tightest, split))
        assert least == expected[f"multi-attribute distinct_l ({name}; QI+{other})"]


def test_pd_and_npd(golden: dict[str, Any]) -> None:
    entry = golden["ldiv.pd_reduction"]
    block = histogram_block(entry["block"])
    assert diversity.pd_holds(block, 1, 2, entry["Y"]) is entry["expected"]["pd_ok"]
    assert diversity.pd_holds(block, Fraction("1.01"), 2, entry["Y"]) is entry["expected"]["pd_ok c=1.01"]
    entry = golden["ldiv.pd_example"]
    block = histogram_block(entry["block"])
    for label, expected in entry["expected"].items():
        l = int(label.removeprefix("l="))
        assert diversity.recursive_tightest_c(block, l) == exact(expected["plain_infimum_c"])
        assert diversity.pd_tightest_c(block, l, entry["Y"]) == exact(expected["pd_infimum_c"])
    entry = golden["ldiv.npd_example"]
    block = histogram_block(entry["block"])
    assert diversity.npd_tightest_c2(block, entry["W"]) == exact(entry["expected"]["largest c2 percent"])
    for c2 in (7, 8):
        holds = diversity.npd_holds(block, 2, c2, 2, entry["Y"], entry["W"])
        assert holds is entry["expected"][f"npd c1=2,c2={c2},l=2"]


def test_whole_lattice(golden: dict[str, Any], folder: Path) -> None:
    expected, table = golden["ldiv.lattice"]["expected"], inpatients(folder)
    assert {str(node) for node in table.nodes()} == expected["nodes"].keys()
    for node in table.nodes():
        figures, blocks = expected["nodes"][str(node)], table.blocks(node).values()
        assert min(b.size() for b in blocks) == figures["k"]
        assert min(map(diversity.distinct_tightest, blocks)) == figures["distinct_l"]
        assert same_digits(min(map(diversity.entropy_tightest, blocks)), figures["entropy_l"])
        assert min(diversity.recursive_tightest_l(b, 3) for b in blocks) == figures["recursive_l_c3"]
        assert same_digits(utility.divergence(table, node), figures["kl"])
    for label, passes in {
        "minimal 4-anonymous": lambda b: diversity.k_holds(b, 4),
        "minimal distinct-3": lambda b: diversity.distinct_holds(b, 3),
        "minimal entropy-2.8": lambda b: diversity.entropy_holds(b, Fraction("2.8")),
    }.items():
        assert [list(n) for n in lattices.minimal(lattices.satisfying(table, passes))] == expected[label]


def test_meet_of_two_releases(golden: dict[str, Any], folder: Path) -> None:
    expected = golden["releases.figure2_and_figure3"]["expected"]
    blocks = list(inpatients(folder).blocks(tuple(expected["meet"])).values())
    assert worked.check_profile(blocks, expected["meet_profile"]) == []
    for name in ("disclosing", "xor"):
        path = folder / f"releases_{name}.csv"
        wanted = golden[f"releases.{name}"]["expected"]
        alone = [min(map(diversity.distinct_tightest, as_published(path, [q], "s")[1])) for q in ("x", "y")]
        assert alone == wanted["distinct_l of each"]
        meet = min(map(diversity.distinct_tightest, as_published(path, ["x", "y"], "s")[1]))
        assert meet == wanted["distinct_l at the meet (J1)"]


def test_skewness(golden: dict[str, Any]) -> None:
    entry = golden["closeness.skew"]
    table, expected = entry["block"], entry["expected"]
    assert same_digits(diversity.entropy_tightest(histogram_block(table)), expected["entropy_l of the whole table"])
    for pos, label in ((1, "(1 pos,1 neg)"), (49, "(49 pos,1 neg)")):
        block = histogram_block({"neg": 1, "pos": pos}, table)
        assert closeness.t_tightest(block, "equal") == exact(expected[f"t_equal of block {label}"])
    assert attacks.skewness(histogram_block({"neg": 1, "pos": 1}, table)) == 50
    for pos, neg in ((49, 1), (1, 49)):
        value = diversity.entropy_tightest(histogram_block({"neg": neg, "pos": pos}, table))
        assert same_digits(value, expected["entropy_l(49,1)=entropy_l(1,49)"])


def test_nt_closeness(golden: dict[str, Any], folder: Path) -> None:
    entry = golden["closeness.nt_not_monotone"]
    rows = worked.read_rows(folder / entry["file"])
    chain = {row["l0"]: [row[f"l{i}"] for i in range(4)] for row in rows}
    table = Table(rows, "s", hierarchies={"l0": chain})
    for level in range(4):
        blocks = table.blocks((level,)).values()
        worst = max(closeness.nt_tightest_t(b, entry["n"], "lattice", "equal") for b in blocks)
        assert worst == exact(entry["expected"][f"level {level} smallest t"])
    entry = golden["closeness.nt_no_subset_property"]
    rows = worked.read_rows(folder / entry["file"])
    bits = {bit: [bit, "*"] for bit in "01"}
    for names, label in (("xy", "QI {x,y} smallest t"), ("x", "QI {x}"), ("y", "QI {y}"), ("", "QI {}")):
        table = Table(rows, "s", hierarchies=dict.fromkeys(names, bits))
        blocks = table.blocks((0,) * len(names)).values()
        worst = max(closeness.nt_tightest_t(b, entry["n"], "lattice", "equal") for b in blocks)
        assert worst == exact(entry["expected"][label])


def test_distances(golden: dict[str, Any]) -> None:
    expected = golden["closeness.emd_examples"]["expected"]
    salaries = {f"v{i}": 1 for i in range(1, 10)}
    low = histogram_block({"v1": 1, "v2": 1, "v3": 1}, salaries)
    spread = histogram_block({"v4": 1, "v6": 1, "v9": 1}, salaries)
    assert closeness.t_tightest(low, "ordered") == exact(expected["ordered, 9 salaries uniform, block {v1,v2,v3}"])
    assert closeness.t_tightest(spread, "ordered") == exact(expected["ordered, block {v4,v6,v9}"])
    both = [closeness.t_tightest(b, "equal") for b in (low, spread)]
    assert both == [exact(e) for e in expected["equal, both blocks"]]
    taxonomy = {i: [i, g, "*"] for i, g in enumerate((0, 0, 1, 1, 1))}
    block = histogram_block({0: 1, 1: 1}, dict.fromkeys(range(5), 1), taxonomy=taxonomy)
    label = "hierarchical H=2, groups (0,0,1,1,1), p=(1/2,1/2,0,0,0), P uniform"
    assert closeness.t_tightest(block, "hierarchical") == exact(expected[label])
    for x, y, label in ((".01", ".11", "JS .01->.11"), (".4", ".5", "JS .4->.5")):
        p, q = [Fraction(x), 1 - Fraction(x)], [Fraction(y), 1 - Fraction(y)]
        assert same_digits(distance.jensen_shannon(p, q), expected[label])
        ground = [[Fraction(0), Fraction(1)], [Fraction(1), Fraction(0)]]
        assert [distance.earth_mover(p, q, ground)] == [exact(expected["EMD .01->.11 and .4->.5"][0])]
    for block, kernel, plain in (
        (low, "kernel-JS B=1/2, 9 salaries, {v1,v2,v3}", 0),
        (spread, "kernel-JS B=1/2, {v4,v6,v9}", 1),
    ):
        assert same_digits(closeness.t_tightest(block, "kernel_js", HALF), expected[kernel])
        assert same_digits(closeness.t_tightest(block, "kernel_js", Fraction(1, 8)), expected["plain JS both"][plain])


def test_suppression_and_queries(golden: dict[str, Any], folder: Path) -> None:
    entry = golden["suppression.frequency2"]
    _, (good, bad) = table_of(entry["blocks"])
    for blocks, label in (([good, bad], "before"), ([good.union(bad)], "after")):
        dropped = sum(len(b.rows) for b in blocks if not diversity.frequency_holds(b, 2))
        assert dropped == entry["expected"][f"dropped {label} merge"]
    entry = golden["utility.query"]
    table, query = inpatients(folder), entry["query"]
    wanted, values = {"age": set(query["age"])}, set(query["condition"])
    true = utility.count_query(table, wanted, values)
    estimate = utility.estimate(table, (2, 1, 1), wanted, values)
    assert (true, estimate) == (entry["expected"]["true"], exact(entry["expected"]["estimate"]))
    assert abs(estimate - true) / true == exact(entry["expected"]["relative_error"])


def test_proximity(golden: dict[str, Any], folder: Path) -> None:
    expected = golden["delta.figure1"]["expected"]
    _, blocks = as_published(folder / "delta_figure1.csv", ["age", "zip"], "salary")
    assert min(map(diversity.frequency_tightest, blocks)) == exact(expected["frequency_l"])
    for epsilon in (10, 20):
        least = min(proximity.epsilon_m_tightest(b, epsilon, False) for b in blocks)
        assert least == exact(expected[f"eps_m({epsilon})"])
    for reading in ("window", "literal"):
        least = min(proximity.delta_l_tightest(b, 10, reading) for b in blocks)
        assert least == exact(expected[f"delta_{reading}(10)"])
    assert attacks.proximity(blocks[0], Fraction(10)) == exact(expected["fraction of class 1 inside [490,510]"])
    expected = golden["delta.figure2"]["expected"]
    _, (one, two) = as_published(folder / "delta_figure2.csv", ["group"], "s")
    assert [proximity.epsilon_m_tightest(b, 15, False) for b in (one, two)] == [
        exact(expected[f"eps_m(15) G{i}"]) for i in (1, 2)
    ]
    assert proximity.delta_l_tightest(one, 15, "literal") == exact(expected["delta(15) literal G1"])
    assert [proximity.delta_l_tightest(b, 15, "window") for b in (one, two)] == [
        exact(expected[f"delta(15) window G{i}"]) for i in (1, 2)
    ]
    entry = golden["delta.monotonicity"]
    blocks = [histogram_block({v: rows.count(v) for v in rows}) for rows in entry["blocks"]]
    expected = entry["expected"]
    assert [proximity.epsilon_m_tightest(b, 15, False) for b in blocks] == [exact(e) for e in expected["eps_m(15)"]]
    for reading in ("literal", "window"):
        found = [proximity.delta_l_tightest(b, Fraction("7.5"), reading) for b in blocks]
        assert found == [exact(e) for e in expected[f"delta(7.5) {reading}"]]
    entry = golden["delta.figure3_singleton"]
    for reading in ("literal", "window"):
        value = proximity.delta_l_tightest(histogram_block({entry["block"][0]: 1}), 5, reading)
        assert value == exact(entry["expected"]["l of a one-row block"])
