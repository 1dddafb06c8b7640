"""t-closeness, (n,t)-closeness, and query workloads."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
from reference.worked import exact, read_rows

from golden.asking import Given, Source, digits, histograms, inpatients, read_hierarchy, tightest
from golden.checks import Entry, check
from qblock import attacks
from qblock.hierarchy import Hierarchy
from qblock.metrics.formulas import Query, query_answers


@check("closeness.skew")
def _(entry: Entry, folder: Path) -> None:
    table, expected = entry["block"], entry["expected"]

    def block(neg: int, pos: int) -> Given:
        return histograms([{"neg": neg, "pos": pos}], table)

    whole = histograms([table])
    assert digits(tightest(whole, "entropy_l_diversity", l=1), expected["entropy_l of the whole table"])
    # Each class of a distinct 2-diverse table takes a positive row.
    assert int(whole[1].totals.min()) == expected["max classes of a distinct 2-diverse table"]
    for pos, label in ((1, "(1 pos,1 neg)"), (49, "(49 pos,1 neg)")):
        found = tightest(block(1, pos), "t_closeness", t=0, distance="equal")
        assert found == exact(expected[f"t_equal of block {label}"])
    assert attacks.skewness(*block(1, 1)).gain == 50
    for pos, neg in ((49, 1), (1, 49)):
        found = tightest(block(neg, pos), "entropy_l_diversity", l=1)
        assert digits(found, expected["entropy_l(49,1)=entropy_l(1,49)"])


@check("closeness.nt_not_monotone")
def _(entry: Entry, folder: Path) -> None:
    rows = read_rows(folder / entry["file"])
    paths = list(dict.fromkeys(tuple(row[f"l{i}"] for i in range(4)) for row in rows))
    chain = Hierarchy("l0", ("l0", "l1", "l2", "l3"), tuple(zip(*paths, strict=True)))
    source = Source.of(rows, [chain], "s")
    for level in range(4):
        given = (source.blocks((level,), containing=True), source.reference)
        found = tightest(given, "nt_closeness", n=entry["n"], t=0)
        assert found == exact(entry["expected"][f"level {level} smallest t"])


@check("closeness.nt_no_subset_property")
def _(entry: Entry, folder: Path) -> None:
    rows = read_rows(folder / entry["file"])
    for names, label in (("xy", "QI {x,y} smallest t"), ("x", "QI {x}"), ("y", "QI {y}"), ("", "QI {}")):
        bits = [Hierarchy(name, (name, "any"), (("0", "1"), ("*", "*"))) for name in names or "x"]
        source = Source.of(rows, bits, "s")
        node = (0,) * len(names) or (1,)  # without any quasi-identifier: everything in one block
        given = (source.blocks(node, containing=True), source.reference)
        assert tightest(given, "nt_closeness", n=entry["n"], t=0) == exact(entry["expected"][label])


@check("closeness.emd_examples")
def _(entry: Entry, folder: Path) -> None:
    expected = entry["expected"]
    nine = dict.fromkeys([f"v{i}" for i in range(1, 10)], 1)
    low = histograms([{"v1": 1, "v2": 1, "v3": 1}], nine, ordered=True)
    spread = histograms([{"v4": 1, "v6": 1, "v9": 1}], nine, ordered=True)
    ordered = [tightest(given, "t_closeness", t=0, distance="ordered") for given in (low, spread)]
    labels = ("ordered, 9 salaries uniform, block {v1,v2,v3}", "ordered, block {v4,v6,v9}")
    assert ordered == [exact(expected[label]) for label in labels]
    equal = [tightest(given, "t_closeness", t=0, distance="equal") for given in (low, spread)]
    assert equal == [exact(e) for e in expected["equal, both blocks"]]
    taxonomy = np.array([[i, group, 0] for i, group in enumerate((0, 0, 1, 1, 1))], np.int64)
    given = histograms([{0: 1, 1: 1}], dict.fromkeys(range(5), 1), taxonomy=taxonomy)
    found = tightest(given, "t_closeness", t=0, distance="hierarchical")
    assert found == exact(expected["hierarchical H=2, groups (0,0,1,1,1), p=(1/2,1/2,0,0,0), P uniform"])
    for before, after, label, place in ((1, 11, "JS .01->.11", 0), (40, 50, "JS .4->.5", 1)):
        given = histograms([{"a": after, "b": 100 - after}], {"a": before, "b": 100 - before})
        assert digits(tightest(given, "t_closeness", t=0, distance="kernel_js", bandwidth=1), expected[label])
        moved = tightest(given, "t_closeness", t=0, distance="equal")
        assert moved == exact(expected["EMD .01->.11 and .4->.5"][place])
    for given, label, place in (
        (low, "kernel-JS B=1/2, 9 salaries, {v1,v2,v3}", 0),
        (spread, "kernel-JS B=1/2, {v4,v6,v9}", 1),
    ):
        half = tightest(given, "t_closeness", t=0, distance="kernel_js", bandwidth=Fraction(1, 2))
        assert digits(half, expected[label])
        plain = tightest(given, "t_closeness", t=0, distance="kernel_js", bandwidth=Fraction(1, 8))
        assert digits(plain, expected["plain JS both"][place])


@check("utility.query")
def _(entry: Entry, folder: Path) -> None:
    source, wanted = inpatients(folder), entry["query"]
    age = read_hierarchy(folder / "inpatient_hierarchy_age.csv")
    ages = tuple(age.leaves.index(value) for value in wanted["age"])
    query = Query((None, ages, None), tuple(source.domain.index(value) for value in wanted["condition"]))
    leaves = source.leaves
    found = query_answers([query], leaves.codes, leaves.value, leaves.count, (2, 1, 1), source.hierarchies).errors
    assert found.tolist() == [exact(entry["expected"]["relative_error"])]
