"""search.weights: the definitions with fractions, the choice by them, and figures that do not move without."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frequency.test_samples import PRIVACY, people
from hypothesis import given
from hypothesis import strategies as st
from integration.sources import opened, spec_text

from qblock.cli.app import run
from qblock.metrics import BY_NAME, METRICS, formulas
from qblock.search.audit import audit_node
from qblock.search.compare import compare
from qblock.search.run import run_search
from qblock.search.utility import MARGINAL, Metrics

pytestmark = pytest.mark.either_engine

WEIGHED = ("loss", "precision", "non_uniform_entropy")
WEIGHTS = {"age": 0.25, "sex": 7}
EXACT = (Fraction(1, 4), Fraction(1), Fraction(7))
NAMES = tuple(metric.name for metric in METRICS)


def by_definition(task: Any, node: tuple[int, ...], name: str, weights: tuple[Fraction, ...]) -> float:
    """The weighted figure of the rows themselves: each row has one block, and is published or not."""
    assessment = task.assess(node)
    counts = assessment.counts
    codes, _, count = task.source.frequency_sets.leaf_counts((0,))
    kept = {tuple(key) for key in counts.keys[assessment.kept].tolist()}
    keys = [tuple(key) for key in formulas.generalize(codes, node, task.source.hierarchies).tolist()]
    rows, alone = int(count.sum()), []
    for i, (level, hierarchy) in enumerate(zip(node, task.source.hierarchies, strict=True)):
        levels = [level if key in kept else hierarchy.height for key in keys]
        if name == "precision":
            shares = [Fraction(n, hierarchy.height) for n in levels]
            alone.append(float(sum(s * int(c) for s, c in zip(shares, count, strict=True)) / rows))
        elif name == "loss":
            under = [int(hierarchy.leaves_under(n)[leaf]) for n, leaf in zip(levels, codes[:, i], strict=True)]
            leaves = len(hierarchy.leaves)
            share = sum(Fraction(u, leaves) * int(c) for u, c in zip(under, count, strict=True)) / rows
            alone.append(math.log1p((share - Fraction(1, leaves)) / (1 - Fraction(1, leaves))))
        else:
            bits = 0.0
            for n, leaf, c in zip(levels, codes[:, i], count, strict=True):
                same = hierarchy.codes[n][codes[:, i]] == hierarchy.codes[n][leaf]
                bits -= int(c) * math.log2(count[codes[:, i] == leaf].sum() / count[same].sum())
            alone.append(bits)
    joined = sum(float(w) * a for w, a in zip(weights, alone, strict=True)) / float(sum(weights))
    return {"precision": 1 - joined, "loss": math.expm1(joined)}.get(name, len(alone) * joined)


@pytest.fixture
def crowd(warehouse: Any, tmp_path: Path) -> tuple[str, dict[str, Any]]:
    rows = people(tmp_path, 240, 3)
    return warehouse("t", {column.name: column.values for column in rows.columns}), rows.attributes()


@pytest.mark.parametrize("case", ["k", "suppressed", "recursive"])
def test_weighted_figures_and_the_choice_by_them(crowd: Any, tmp_path: Path, case: str) -> None:
    url, attributes = crowd
    privacy, more = PRIVACY[case]
    moved = 0
    for by in WEIGHED:
        search = {"choose_by": by, "weights": WEIGHTS}
        with opened(url, "t", attributes, tmp_path, privacy, search={"choose_by": by}, **more) as task:
            plain = run_search(task)
            bare = {node: Metrics(task).of(task.assess(node), NAMES) for node in task.lattice.nodes()}
        with opened(url, "t", attributes, tmp_path, privacy, search=search, **more) as task:
            result = run_search(task)
            assert result.outcome is not None
            assert result.chosen is not None
            assert result.to_json()["weights"] == {"age": 0.25, "place": 1, "sex": 7}
            metrics, contest, sign = Metrics(task), Metrics(task).best_only(by), 1 if by != "precision" else -1
            assert contest is not None
            values = {}
            for node in task.lattice.nodes():
                figures = metrics.of(task.assess(node), NAMES)
                assert {n: v for n, v in figures.items() if n not in WEIGHED} == {
                    n: v for n, v in bare[node].items() if n not in WEIGHED
                }
                values[node] = by_definition(task, node, by, EXACT)
                assert figures[by] == pytest.approx(values[node], rel=1e-12, abs=1e-12)
                if result.outcome.satisfied[node]:
                    assert metrics.rank(node, by) == pytest.approx(values[node], rel=1e-12, abs=1e-12)
                    assert contest.bounds[node] <= sign * values[node] + 1e-9
            nodes = result.outcome.satisfying()
            best = min(nodes, key=lambda n, v=values, s=sign: (float(f"{s * v[n]:.9g}"), sum(n), n))
            assert result.chosen.node == best
            alone = run_search(task, best_only=True).chosen
            assert alone is not None
            assert alone.node == best
            moved += best != plain.chosen.node  # type: ignore[union-attr]
            assert audit_node(task, best)["metrics"][by] == result.metrics[by]
            shown = {row.node: row for row in compare(task).rows}[best].verdicts
            if by != "non_uniform_entropy":
                assert any(v.figures and v.figures[by] == pytest.approx(values[best]) for v in shown.values())
    assert moved or case == "recursive"


@pytest.mark.parametrize("case", ["k", "suppressed"])
@pytest.mark.parametrize("equal", [1, 3, 0.1])
def test_equal_weights_change_nothing_to_the_last_bit(crowd: Any, tmp_path: Path, case: str, equal: float) -> None:
    url, attributes = crowd
    privacy, more = PRIVACY[case]
    both = []
    for weights in ({}, dict.fromkeys(("age", "place", "sex"), equal)):
        search = {"choose_by": "loss", "weights": weights}
        with opened(url, "t", attributes, tmp_path, privacy, search=search, **more) as task:
            metrics, result = Metrics(task), run_search(task)
            assert result.to_json()["weights"] is None
            bounds = [metrics.best_only(name).bounds.tolist() for name in MARGINAL]  # type: ignore[union-attr]
            nodes = list(task.lattice.nodes())
            both.append((bounds, [metrics.of(task.assess(n), NAMES) for n in nodes], result.chosen.node))  # type: ignore[union-attr]
    assert both[0] == both[1]


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=5),
    st.lists(st.fractions(Fraction(1, 1000), 1000), min_size=5, max_size=5),
)
def test_a_weighted_mean_is_within_its_values(values: list[float], weights: list[Fraction]) -> None:
    weights = weights[: len(values)]
    mean = formulas.weighted_mean(values, weights)
    assert min(values) - 1e-15 <= mean <= max(values) + 1e-15
    exact = sum(w * Fraction(v) for w, v in zip(weights, values, strict=True)) / sum(weights)
    assert mean == pytest.approx(float(exact), abs=1e-12)
    assert formulas.weighted_mean(values, [7 * w for w in weights]) == pytest.approx(mean, abs=1e-15)
    assert formulas.weighted_sum(values, weights) == pytest.approx(len(values) * mean)


def test_weights_beyond_what_doubles_hold() -> None:
    weights = [Fraction(10) ** 400, Fraction(10) ** 400 * 3, Fraction(1, 10**400)]
    assert formulas.weighted_mean([1.0, 0.0, 1.0], weights) == 0.25
    assert np.array_equal(formulas.scaled(weights), [1 / 3, 1, 0])  # type: ignore[arg-type]


def test_equal_weights_take_no_other_way() -> None:
    """Three times the mean is not the sum, to the last bit."""
    draw = random.Random(3)
    many = [[draw.random() for _ in range(3)] for _ in range(200)]
    assert any(3 * (math.fsum(values) / 3) != math.fsum(values) for values in many)
    for values in many:
        assert formulas.weighted_sum(values, [Fraction(7)] * 3) == math.fsum(values)


def test_extremes_are_reached() -> None:
    """Nothing generalized and nothing left, whatever the weights are."""
    weights = [Fraction(1, 3), Fraction(7, 10), Fraction(2)]
    assert 1 - formulas.weighted_mean([1.0, 1.0, 1.0], weights) == 0
    assert BY_NAME["precision"].most == 1 - formulas.weighted_mean([0.0, 0.0, 0.0], weights)


def test_the_search_says_it_in_one_line(crowd: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, attributes = crowd
    for weights, said in ((WEIGHTS, 1), ({"age": 2, "place": 2, "sex": 2}, 0)):
        text = spec_text("t", attributes, [{"k_anonymity": {"k": 4}}], search={"weights": weights})
        (tmp_path / "spec.yaml").write_text(text.replace("${URL}", url), "utf-8")
        for command in ("search", "audit"):
            options = ["--quiet", "--verbose"] if command == "search" else []
            assert run([command, str(tmp_path / "spec.yaml"), *options]) == 0
            out = capsys.readouterr().out
            line = "Weights in loss, precision and non-uniform entropy: age 0.25, place 1, sex 7"
            assert out.count(line) == said
            assert out.count("Weights") == said
