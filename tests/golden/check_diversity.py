"""k-anonymity, the diversity family and the proximity models."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
from reference.worked import exact, read_rows

from golden.asking import (
    Source,
    check_profile,
    digits,
    histograms,
    holds,
    inpatients,
    numbers,
    passes,
    published,
    read_hierarchy,
    tightest,
)
from golden.checks import Entry, check
from qblock import attacks
from qblock.blocks import Reference
from qblock.lattice import height, minimal
from qblock.metrics import BY_NAME as METRICS
from qblock.models import BY_NAME, multi

INPATIENT = ["zip", "age", "nationality"]


@check("ldiv.figure2", "ldiv.figure3")
def _(entry: Entry, folder: Path) -> None:
    """Printed, and as a node of the raw table's lattice."""
    expected, node, source = entry["expected"], tuple(entry["node"]), inpatients(folder)
    given = published(folder / entry["file"], entry["qi"], entry["sensitive"])
    rolled = (source.blocks(node), source.reference)
    for one in (given, rolled):
        check_profile(one, expected)
        found = attacks.homogeneity(*one)
        assert (found.blocks, found.rows) == (expected["homogeneous_blocks"], expected["homogeneous_tuples"])
        for text in ("14/5", "283/100"):
            if f"entropy_ok_at_{text}" in expected:
                assert holds(one, "entropy_l_diversity", l=Fraction(text)) is expected[f"entropy_ok_at_{text}"]
    at = source.at(node)
    assert height(node) == METRICS["height"].of(at) == expected["height"]
    assert METRICS["average_block_size"].of(at) == exact(expected["avg_block"])
    assert METRICS["discernibility"].of(at) == expected["discernibility"]
    assert digits(METRICS["kl_divergence"].of(at), expected["kl"])


@check("thesis.2_9", "thesis.2_10", "thesis.2_11", "thesis.2_12", "closeness.table2")
def _(entry: Entry, folder: Path) -> None:
    given, expected = published(folder / entry["file"], entry["qi"], entry["sensitive"]), entry["expected"]
    check_profile(given, expected)
    found = attacks.homogeneity(*given)
    assert (found.blocks, found.rows) == (expected["homogeneous_blocks"], expected["homogeneous_tuples"])


@check("ldiv.multi")
def _(entry: Entry, folder: Path) -> None:
    expected = entry["expected"]
    rows = read_rows(folder / entry["file"])
    for name in ("S", "V"):
        given = published(folder / entry["file"], ["q"], name)
        check_profile(given, expected[f"{name} alone"])
        for c in (2, 2 + Fraction(1, 1000)):
            answer = expected["S alone (2,3)-recursive" if c == 2 else "S alone (2+1/1000,3)-recursive"]
            assert holds(given, "recursive_cl_diversity", c=c, l=3) is answer
    codes = np.array([[int(row["S"][1:]) - 1, int(row["V"][1:]) - 1] for row in rows], np.int64)
    parts = multi.split(np.zeros(len(rows), np.int64), codes, np.ones(len(rows), np.int64))
    labels = ("multi-attribute distinct_l (S; QI+V)", "multi-attribute distinct_l (V; QI+S)")
    model = BY_NAME["distinct_l_diversity"](l=1)
    for (blocks, owner), label in zip(parts, labels, strict=True):
        attribute = multi.Attribute(model, blocks, Reference.of(blocks, values=3), owner)
        assert multi.tightest([attribute]).values[0].value == expected[label]


@check("ldiv.pd_reduction")
def _(entry: Entry, folder: Path) -> None:
    given = histograms([entry["block"]])
    asked = {"l": entry["l"], "allowed": tuple(entry["Y"])}
    expected = entry["expected"]
    assert holds(given, "pd_recursive_cl_diversity", c=entry["c"], **asked) is expected["pd_ok"]
    assert holds(given, "pd_recursive_cl_diversity", c=Fraction("1.01"), **asked) is expected["pd_ok c=1.01"]


@check("ldiv.pd_example")
def _(entry: Entry, folder: Path) -> None:
    given = histograms([entry["block"]])
    for label, expected in entry["expected"].items():
        l = int(label.removeprefix("l="))  # noqa: E741
        assert tightest(given, "recursive_cl_diversity", 1, c=1, l=l) == exact(expected["plain_infimum_c"])
        found = tightest(given, "pd_recursive_cl_diversity", 1, c=1, l=l, allowed=tuple(entry["Y"]))
        assert found == exact(expected["pd_infimum_c"])


@check("ldiv.npd_example")
def _(entry: Entry, folder: Path) -> None:
    given, expected = histograms([entry["block"]]), entry["expected"]
    asked = {"c1": 2, "l": 2, "allowed": tuple(entry["Y"]), "protected": tuple(entry["W"])}
    assert tightest(given, "npd_recursive_cl_diversity", 2, c2=0, **asked) == exact(expected["largest c2 percent"])
    for c2 in (7, 8):
        assert holds(given, "npd_recursive_cl_diversity", c2=c2, **asked) is expected[f"npd c1=2,c2={c2},l=2"]


@check("ldiv.lattice")
def _(entry: Entry, folder: Path) -> None:
    source, expected = inpatients(folder), entry["expected"]
    assert {str(node) for node in source.lattice.nodes()} == expected["nodes"].keys()
    for node in source.lattice.nodes():
        given, figures = (source.blocks(node), source.reference), expected["nodes"][str(node)]
        assert tightest(given, "k_anonymity", k=1) == figures["k"]
        assert tightest(given, "distinct_l_diversity", l=1) == figures["distinct_l"]
        assert digits(tightest(given, "entropy_l_diversity", l=1), figures["entropy_l"])
        assert tightest(given, "recursive_cl_diversity", c=3, l=1) == figures["recursive_l_c3"]
        assert digits(METRICS["kl_divergence"].of(source.at(node)), figures["kl"])
    for label, name, params in (
        ("minimal 4-anonymous", "k_anonymity", {"k": 4}),
        ("minimal distinct-3", "distinct_l_diversity", {"l": 3}),
        ("minimal entropy-2.8", "entropy_l_diversity", {"l": Fraction("2.8")}),
    ):
        nodes = [n for n in source.lattice.nodes() if holds((source.blocks(n), source.reference), name, **params)]
        assert [list(node) for node in minimal(nodes)] == expected[label]


@check("ldiv.adult_counts")
def _(entry: Entry, folder: Path) -> None:
    """The figures about the data, and the 11 minimal nodes of the erratum with their homogeneous blocks."""
    adult, expected = folder.parent / "data" / "adult", entry["expected"]
    rows = read_rows(adult / "adult.csv")
    for first, last in ((81, 90), (31, 40)):
        assert sum(first <= int(row["age"]) <= last for row in rows) == expected[f"age {first}..{last}"]
    salaries = Counter(row["salary_class"] for row in rows)
    assert Fraction(salaries["<=50K"], salaries[">50K"]) == exact(expected["salary ratio <=50K : >50K"])
    names = ("age", "gender", "race", "marital_status", "education")
    hierarchies = [read_hierarchy(adult / "hierarchies" / f"{name}.csv") for name in names]
    for sensitive, minimal_ones, all_ones in (("occupation", 0, 204), ("salary_class", 8, 218)):
        source = Source.of(rows, hierarchies, sensitive)
        given = {node: (source.blocks(node), source.reference) for node in source.lattice.nodes()}
        assert len(given) == 240
        nodes = minimal(node for node, one in given.items() if holds(one, "k_anonymity", k=6))
        assert len(nodes) == 11
        vulnerable = {node for node, one in given.items() if attacks.homogeneity(*one).vulnerable}
        assert (len(vulnerable.intersection(nodes)), len(vulnerable)) == (minimal_ones, all_ones)
        if sensitive == "occupation":
            assert source.reference.values == expected["occupation domain"]


@check("releases.figure2_and_figure3")
def _(entry: Entry, folder: Path) -> None:
    source, expected = inpatients(folder), entry["expected"]
    meet = tuple(map(min, (2, 1, 1), (1, 2, 1)))
    assert list(meet) == expected["meet"]
    check_profile((source.blocks(meet), source.reference), expected["meet_profile"])


@check("releases.disclosing", "releases.xor")
def _(entry: Entry, folder: Path) -> None:
    """Each release alone, and the meet. Candidate values (J2) and bounds (J3) are tested with the release checks."""
    path, expected = folder / entry["file"], entry["expected"]
    alone = [tightest(published(path, [q], "s"), "distinct_l_diversity", l=1) for q in ("x", "y")]
    assert alone == expected["distinct_l of each"]
    meet = tightest(published(path, ["x", "y"], "s"), "distinct_l_diversity", l=1)
    assert meet == expected["distinct_l at the meet (J1)"]


@check("suppression.frequency2")
def _(entry: Entry, folder: Path) -> None:
    blocks, reference = histograms(entry["blocks"])
    model = BY_NAME["frequency_l_diversity"](l=2)
    for one, label in ((blocks, "before"), (blocks.merged(np.array([0, 0])), "after")):
        dropped = int(one.rows[~model.passes(one, reference)].sum())
        assert dropped == entry["expected"][f"dropped {label} merge"]


@check("delta.figure1")
def _(entry: Entry, folder: Path) -> None:
    expected, rows = entry["expected"], read_rows(folder / entry["file"])
    ages = sorted({row["age"] for row in rows})
    given = numbers([[row["salary"] for row in rows if row["age"] == age] for age in ages])
    assert tightest(given, "frequency_l_diversity", l=1) == exact(expected["frequency_l"])
    for epsilon in (10, 20):
        found = tightest(given, "epsilon_m_anonymity", epsilon=epsilon, m=1)
        assert found == exact(expected[f"eps_m({epsilon})"])
    for reading in ("window", "literal"):
        found = tightest(given, "delta_l_diversity", delta=10, l=1, reading=reading)
        assert found == exact(expected[f"delta_{reading}(10)"])
    first = (given[0].select([ages.index("17-25")]), given[1])
    near = attacks.proximity(*first, epsilon=10)
    assert near is not None
    assert near.share == exact(expected["fraction of class 1 inside [490,510]"])


@check("delta.figure2")
def _(entry: Entry, folder: Path) -> None:
    expected, rows = entry["expected"], read_rows(folder / entry["file"])
    for group in ("G1", "G2"):
        given = numbers([[row["s"] for row in rows if row["group"] == group]])
        assert tightest(given, "epsilon_m_anonymity", epsilon=15, m=1) == exact(expected[f"eps_m(15) {group}"])
        for reading in ("literal", "window"):
            if f"delta(15) {reading} {group}" in expected:
                found = tightest(given, "delta_l_diversity", delta=15, l=1, reading=reading)
                assert found == exact(expected[f"delta(15) {reading} {group}"])


@check("delta.monotonicity")
def _(entry: Entry, folder: Path) -> None:
    expected, given = entry["expected"], [numbers([rows]) for rows in entry["blocks"]]
    found = [tightest(one, "epsilon_m_anonymity", epsilon=15, m=1) for one in given]
    assert found == [exact(e) for e in expected["eps_m(15)"]]
    for reading in ("literal", "window"):
        found = [tightest(one, "delta_l_diversity", delta=Fraction("7.5"), l=1, reading=reading) for one in given]
        assert found == [exact(e) for e in expected[f"delta(7.5) {reading}"]]


@check("delta.figure3_singleton")
def _(entry: Entry, folder: Path) -> None:
    given = numbers([entry["block"]])
    for reading in ("literal", "window"):
        found = tightest(given, "delta_l_diversity", delta=5, l=1, reading=reading)
        assert found == exact(entry["expected"]["l of a one-row block"])
        assert passes(given, "delta_l_diversity", delta=5, l=2, reading=reading) == [False]
