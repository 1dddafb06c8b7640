"""epsilon-privacy, its embeddings, and Bayes-optimal privacy."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import beliefs as slow
from reference.worked import exact

from golden.asking import Given, histograms, holds, passes, published, tightest
from golden.checks import Entry, check
from qblock import adversary
from qblock.bayes import Joint, Thresholds, believed, whole_weights
from qblock.errors import ParameterError


def weighted(given: Given, sigma: dict[str, Any]) -> Given:
    """The same table for an adversary whose prior is Dirichlet(sigma)."""
    blocks, reference = given
    return blocks, replace(reference, prior=tuple(Fraction(sigma[value]) for value in reference.domain))


def one(given: Given, sigma: dict[str, Any], at_most: bool = False) -> Any:
    total = sum(map(Fraction, sigma.values()))
    asked = {"epsilon": 1, "adversary": "I", "prior": "values", "stubbornness": total, "at_most": at_most}
    return tightest(weighted(given, sigma), "epsilon_privacy", **asked)


def two(given: Given, sigma: int) -> Any:
    return tightest(given, "epsilon_privacy", epsilon=1, adversary="II", stubbornness=sigma)


def three(given: Given, shape: dict[str, Any]) -> Any:
    return tightest(weighted(given, shape), "epsilon_privacy", epsilon=1, adversary="III", prior="values")


D = {"Flu": 12000, "Cancer": 18000}


@check("vldb.example3")
def _(entry: Entry, folder: Path) -> None:
    """The smallest epsilon of every class; the engine does not use the printed theorems."""
    given, expected = histograms([{"Flu": 18000, "Cancer": 2000}]), entry["expected"]
    assert one(given, D) == exact(expected["class I exact eps"])
    assert two(given, 30000) == exact(expected["class II sigma=30000 exact"])
    assert three(given, D) == exact(expected["class III"])
    assert tightest(given, "epsilon_privacy", epsilon=1, adversary="IV") == math.inf
    others = adversary.predictive((18000 - 1, 2000), (12000, 18000))
    assert others[0] == exact(expected["p_out exact"])


TABLE3 = {"T": ["age", "gender"], "T_a (age suppressed)": ["gender"], "T_g (gender suppressed)": ["age"], "T_top": []}


@check("vldb.table3_classI")
def _(entry: Entry, folder: Path) -> None:
    for label, names in TABLE3.items():
        given, expected = published(folder / entry["file"], names, "disease"), entry["expected"][label]
        assert one(given, D) == exact(expected["exact"])
        assert three(given, D) == exact(expected["classIII(.4,.6)"])


@check("vldb.table3_classII")
def _(entry: Entry, folder: Path) -> None:
    for sigma in (1000, 30000):
        for label, names in TABLE3.items():
            given = published(folder / "vldb_table3.csv", names, "disease")
            assert two(given, sigma) == exact(entry["expected"][f"sigma={sigma}"][label]["exact"])


@check("vldb.classI_at_most")
def _(entry: Entry, folder: Path) -> None:
    given, expected = histograms([entry["block"]]), entry["expected"]
    even = {"x": 500, "y": 500}
    assert one(given, even) == exact(expected["exact sigma=1000 uniform"])
    smaller = exact(expected["exact sigma=2 uniform (same shape, smaller stubbornness)"])
    assert one(given, {"x": 1, "y": 1}) == one(given, even, at_most=True) == smaller
    assert three(given, even) == exact(expected["class III uniform"])


@check("vldb.sigma_below_one")
def _(entry: Entry, folder: Path) -> None:
    given, expected = histograms([entry["block"]]), entry["expected"]
    assert one(given, entry["sigma"]) == exact(expected["exact"])
    assert one(given, {"x": 0, "y": 100}) == exact(expected["exact with sigma(x)=0"])


@check("vldb.total_sigma_below_one_not_monotone")
def _(entry: Entry, folder: Path) -> None:
    """The model refuses a total below 1, where the law of merging fails; the function computes it."""
    sigma = {value: Fraction(text) for value, text in entry["sigma"].items()}
    total = sum(sigma.values())
    union = {v: sum(block.get(v, 0) for block in entry["blocks"]) for v in sigma}
    for block, expected in zip([*entry["blocks"], union], entry["expected"], strict=True):
        n = sum(block.values())
        found = [adversary.smallest_epsilon(x, n, 0, sigma[value], total) for value, x in block.items()]
        assert max(found) == exact(expected)
    with pytest.raises(ParameterError, match="stubbornness >= 1"):
        one(histograms(entry["blocks"]), sigma)


@check("vldb.c2_embedding")
def _(entry: Entry, folder: Path) -> None:
    """A block exactly at the cap passes class III with max, one just above fails; with min a block below fails."""
    for row in entry["expected"]:
        v, c = row["k"], Fraction(row["c"])
        cap = c / (c + 1)
        epsilon = exact(row["max"])
        assert epsilon == max(v * cap, (c + 1) * Fraction(v - 1, v))
        if epsilon < 1 or cap * v < 1:
            continue
        size = 600 * cap.denominator
        for share in (cap, cap + Fraction(1, size)):
            # The rest of the block is spread evenly over the other values.
            counts = [int(share * size) * (v - 1), *[int((1 - share) * size)] * (v - 1)]
            given = histograms([dict(enumerate(counts))])
            assert holds(given, "epsilon_privacy", epsilon=epsilon, adversary="III") is (share == cap)
            assert not holds(given, "recursive_cl_diversity", c=c, l=2)
            if not row["cap(min)==c/(c+1)"] and exact(row["min"]) >= 1:
                assert not holds(given, "epsilon_privacy", epsilon=exact(row["min"]), adversary="III")


@check("vldb.c2_boundary")
def _(entry: Entry, folder: Path) -> None:
    given, expected = histograms([entry["block"]]), entry["expected"]
    assert holds(given, "recursive_cl_diversity", c=4, l=2) is expected["(4,2) strict"]
    found = tightest(given, "epsilon_privacy", epsilon=1, adversary="III")
    assert found == exact(expected["III uniform eps"])
    assert passes(given, "epsilon_privacy", epsilon=found, adversary="III") == [True]


@check("vldb.lemma1")
def _(entry: Entry, folder: Path) -> None:
    p, expected, t = {v: Fraction(text) for v, text in entry["p"].items()}, entry["expected"], Fraction(entry["t"])
    given = histograms([entry["block"]], {v: int(share * 10000) for v, share in p.items()})
    assert tightest(given, "t_closeness", t=t, distance="equal") == exact(expected["EMD equal"])
    literal = max(max((x + t) / x, x / (x - t)) for x in p.values())
    assert literal == exact(expected["literal eps_t"])
    true = tightest(given, "epsilon_privacy", epsilon=1, adversary="III", prior="table")
    assert true == three(given, p) == exact(expected["true III eps"])
    assert holds(given, "t_closeness", t=t)
    assert not holds(given, "epsilon_privacy", epsilon=literal, adversary="III", prior="table")


@check("vldb.lemma1_converse")
def _(entry: Entry, folder: Path) -> None:
    given = histograms([entry["block"]], {"h": 334, "l": 666})
    found = tightest(given, "epsilon_privacy", epsilon=1, adversary="III", prior="table")
    assert found == exact(entry["expected"]["III table eps"])
    assert tightest(given, "t_closeness", t=0, distance="equal") == exact(entry["expected"]["EMD"])


@check("vldb.table5_row_5211")
def _(entry: Entry, folder: Path) -> None:
    """The example counts with n for n - 1 (as the paper does), which millions of people do not notice."""
    for label, expected in entry["expected"].items():
        n = int(float(label.removeprefix("n=")))
        given = histograms([{"high": n * 334 // 1000, "low": n - n * 334 // 1000}])
        for name, value in expected.items():
            kind, sigma = name.removeprefix("A_").rsplit("_", 1)
            asked: dict[str, Any] = {"epsilon": 1, "adversary": "III" if sigma == "inf" else "II"}
            if sigma != "inf":
                asked["stubbornness"] = int(float(sigma))
            if kind != "any":
                asked |= {"prior": {"d": "uniform", "c": "table"}[kind]}
                if sigma != "inf":
                    asked |= {"adversary": "I", "at_most": False}
            assert float(tightest(given, "epsilon_privacy", **asked)) == pytest.approx(value, rel=1e-5), name


@check("vldb.dirichlet")
def _(entry: Entry, folder: Path) -> None:
    found = adversary.predictive(entry["histogram"], entry["sigma"])
    expected = entry["expected"]
    assert list(found) == [exact(e) for e in expected["p_out formula (h_s+sigma_s)/(n'+sigma)"]]
    assert list(found) == [exact(e) for e in expected["p_out by Bayes (table without t has histogram h)"]]


@check("ldiv.bayes_not_monotone")
def _(entry: Entry, folder: Path) -> None:
    f, expected = entry["f"], entry["expected"]
    weights = dict(zip(("q1", "q2"), map(Fraction, f["weights"].split(",")), strict=True))
    population = {q: [weights[q] * Fraction(share) for share in f[q].split(",")] for q in weights}
    table = {q: list(block.values()) for q, block in zip(weights, entry["blocks"], strict=True)}
    before = slow.beliefs(population, table, {"q1": 1, "q2": 2})
    after = slow.beliefs(population, table, {"q1": 1, "q2": 1})
    for beliefs, label in ((before, "before"), (after, "merged")):
        for belief in beliefs:
            assert list(belief.posterior) == [exact(e) for e in expected[f"beta {belief.leaf} {label}"]]
    rho = (Fraction(".55"), Fraction(".6"))
    labels = {"rho1=.55,rho2=.6 breach before": [0, 1], "breach after (alpha(s2)=.5<.55, beta=.625>.6)": [0, 0]}
    joints = [
        Joint.of(np.repeat([0, 1], 2), np.tile([0, 1], 2), whole_weights([Fraction(w) for row in rows for w in row]))
        for rows in (population.values(), table.values())
    ]
    for (label, block), exactly in zip(labels.items(), (before, after), strict=True):
        breaches = believed(*joints, np.array(block), 2, Thresholds(*rho)).breach.disclosures
        assert breaches == len(slow.breaches(exactly, *rho))
        assert bool(breaches) is expected[label]
