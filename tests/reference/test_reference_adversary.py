"""The reference's adversaries against the worked examples."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from reference import adversary, bayes, distance, diversity
from reference.tables import table_of
from reference.worked import as_published, exact, histogram_block

HALF = Fraction(1, 2)


def _scaled(sigma: dict[str, Fraction]) -> Any:
    return {"shape": sigma, "sigma": sum(sigma.values()), "at_most": False}


def test_example_3_and_class_one(golden: dict[str, Any]) -> None:
    expected = golden["vldb.example3"]["expected"]
    sigma = {"Flu": Fraction(12000), "Cancer": Fraction(18000)}
    block = histogram_block({"Flu": 18000, "Cancer": 2000})
    assert adversary.epsilon_tightest(block, "I", **_scaled(sigma)) == exact(expected["class I exact eps"])
    assert adversary.theorem_one(block, sigma) == exact(expected["class I Theorem-1 eps"])
    two = adversary.epsilon_tightest(block, "II", sigma=30000)
    assert two == exact(expected["class II sigma=30000 exact"])
    assert adversary.theorem_two(block, 30000) == exact(expected["class II Theorem-2"])
    assert adversary.epsilon_tightest(block, "III", shape=sigma) == exact(expected["class III"])
    assert adversary.epsilon_tightest(block, "IV") == math.inf
    entry = golden["vldb.classI_at_most"]
    block, expected = histogram_block(entry["block"]), entry["expected"]
    shape = adversary.uniform(block.table)
    assert adversary.epsilon_tightest(block, "I", shape=shape, sigma=1000, at_most=False) == exact(
        expected["exact sigma=1000 uniform"]
    )
    even = {"x": Fraction(500), "y": Fraction(500)}
    assert adversary.theorem_one(block, even) == exact(expected["Theorem 1 at sigma=1000"])
    smaller = exact(expected["exact sigma=2 uniform (same shape, smaller stubbornness)"])
    assert adversary.epsilon_tightest(block, "I", shape=shape, sigma=1000, at_most=True) == smaller
    assert adversary.epsilon_tightest(block, "III", shape=shape) == exact(expected["class III uniform"])
    entry = golden["vldb.sigma_below_one"]
    block, sigma = histogram_block(entry["block"]), {v: Fraction(s) for v, s in entry["sigma"].items()}
    assert adversary.epsilon_tightest(block, "I", **_scaled(sigma)) == exact(entry["expected"]["exact"])
    assert adversary.theorem_one(block, sigma) == exact(entry["expected"]["theorem1"])
    sigma = {"x": Fraction(0), "y": Fraction(100)}
    assert adversary.epsilon_tightest(block, "I", **_scaled(sigma)) == math.inf


TABLE3 = {"T": ["age", "gender"], "T_a (age suppressed)": ["gender"], "T_g (gender suppressed)": ["age"], "T_top": []}


def test_table_3(golden: dict[str, Any], shared: Path) -> None:
    one, two = golden["vldb.table3_classI"]["expected"], golden["vldb.table3_classII"]["expected"]
    sigma = {"Flu": Fraction(12000), "Cancer": Fraction(18000)}
    for label, names in TABLE3.items():
        _, blocks = as_published(shared / "golden" / "vldb_table3.csv", names, "disease")
        found = max(adversary.epsilon_tightest(b, "I", **_scaled(sigma)) for b in blocks)
        assert found == exact(one[label]["exact"])
        assert max(adversary.theorem_one(b, sigma) for b in blocks) == exact(one[label]["theorem1"])
        three = max(adversary.epsilon_tightest(b, "III", shape=sigma) for b in blocks)
        assert three == exact(one[label]["classIII(.4,.6)"])
        for stubbornness in (1000, 30000):
            expected = two[f"sigma={stubbornness}"][label]
            found = max(adversary.epsilon_tightest(b, "II", sigma=stubbornness) for b in blocks)
            assert found == exact(expected["exact"])
            assert max(adversary.theorem_two(b, stubbornness) for b in blocks) == exact(expected["theorem2"])


def test_class_one_below_a_total_of_one(golden: dict[str, Any]) -> None:
    entry = golden["vldb.total_sigma_below_one_not_monotone"]
    sigma = {v: Fraction(s) for v, s in entry["sigma"].items()}
    _, (x, y) = table_of(entry["blocks"], domain=tuple(sigma))
    found = [adversary.epsilon_tightest(b, "I", **_scaled(sigma)) for b in (x, y, x.union(y))]
    assert found == [exact(e) for e in entry["expected"]]


def test_class_three_against_other_models(golden: dict[str, Any]) -> None:
    for row in golden["vldb.c2_embedding"]["expected"]:
        v, c = row["k"], Fraction(row["c"])
        caps = {"max": max, "min": min}
        for name, choose in caps.items():
            epsilon = choose(v * c / (c + 1), (c + 1) * Fraction(v - 1, v))
            assert epsilon == exact(row[name])
            if epsilon < 1:
                continue
            # A share allowed by both conditions of class III with the uniform prior is at most the cap.
            cap = min(epsilon / v, 1 - Fraction(v - 1, v) / epsilon)
            assert (cap == c / (c + 1)) is row[f"cap({name})==c/(c+1)"]
    entry = golden["vldb.c2_boundary"]
    block = histogram_block(entry["block"])
    assert diversity.recursive_holds(block, 4, 2) is entry["expected"]["(4,2) strict"]
    shape = adversary.uniform(block.table)
    assert adversary.epsilon_tightest(block, "III", shape=shape) == exact(entry["expected"]["III uniform eps"])
    entry = golden["vldb.lemma1"]
    shape = {v: Fraction(p) for v, p in entry["p"].items()}
    block = histogram_block(entry["block"])
    expected, t = entry["expected"], Fraction(entry["t"])
    ground = distance.ground(block.table, "equal")
    assert distance.earth_mover(block.shares(), list(shape.values()), ground) == exact(expected["EMD equal"])
    assert max(max((p + t) / p, p / (p - t)) for p in shape.values()) == exact(expected["literal eps_t"])
    assert adversary.epsilon_tightest(block, "III", shape=shape) == exact(expected["true III eps"])
    shape = {"h": Fraction(".334"), "l": Fraction(".666")}
    literal = max(max((p + t) / p, p / (p - t)) for p in shape.values())
    assert literal == exact(expected["eps_t at t=0.2,p=.334"])
    entry = golden["vldb.lemma1_converse"]
    block = histogram_block(entry["block"])
    assert adversary.epsilon_tightest(block, "III", shape=shape) == exact(entry["expected"]["III table eps"])
    ground = distance.ground(block.table, "equal")
    assert distance.earth_mover(block.shares(), list(shape.values()), ground) == exact(entry["expected"]["EMD"])


def test_table_5_top_row(golden: dict[str, Any]) -> None:
    """The whole row follows from n and the share of the high incomes; here with a thousandth of the people."""
    for label, expected in golden["vldb.table5_row_5211"]["expected"].items():
        n = int(float(label.removeprefix("n="))) // 1000
        block = histogram_block({"high": n * 334 // 1000, "low": n - n * 334 // 1000})
        shapes = {"d": adversary.uniform(block.table), "c": {"high": Fraction(".334"), "low": Fraction(".666")}}
        for name, value in expected.items():
            _, kind, text = name.split("_")
            if text == "inf":
                found = adversary.epsilon_tightest(block, "III", shape=shapes[kind])
            elif kind == "any":
                found = adversary.theorem_two(block, Fraction(float(text)) / 1000)
            else:
                sigma = Fraction(float(text)) / 1000
                found = adversary.epsilon_tightest(block, "I", shape=shapes[kind], sigma=sigma, at_most=False)
            assert float(found) == pytest.approx(value, rel=1e-3), (label, name)


def test_dirichlet_and_bayes(golden: dict[str, Any]) -> None:
    entry = golden["vldb.dirichlet"]
    expected = entry["expected"]["p_out formula (h_s+sigma_s)/(n'+sigma)"]
    assert adversary.dirichlet(entry["histogram"], entry["sigma"]) == [exact(e) for e in expected]
    entry = golden["ldiv.bayes_not_monotone"]
    f = {
        (q, s): Fraction(share) * HALF
        for q in ("q1", "q2")
        for s, share in zip(("s1", "s2"), entry["f"][q].split(","), strict=True)
    }
    counts = dict(zip(("q1", "q2"), entry["blocks"], strict=True))
    merged = {s: sum(block[s] for block in counts.values()) for s in ("s1", "s2")}
    for q in ("q1", "q2"):
        before = [bayes.posterior(f, {q}, counts[q], q, s) for s in ("s1", "s2")]
        after = [bayes.posterior(f, {"q1", "q2"}, merged, q, s) for s in ("s1", "s2")]
        assert before == [exact(e) for e in entry["expected"][f"beta {q} before"]]
        assert after == [exact(e) for e in entry["expected"][f"beta {q} merged"]]
    alpha, rho = bayes.prior(f, "q1", "s2"), (Fraction(".55"), Fraction(".6"))
    beta = bayes.posterior(f, {"q1"}, counts["q1"], "q1", "s2")
    assert bayes.breach(alpha, beta, *rho) is entry["expected"]["rho1=.55,rho2=.6 breach before"]
    assert bayes.breach(alpha, bayes.posterior(f, {"q1", "q2"}, merged, "q1", "s2"), *rho)
