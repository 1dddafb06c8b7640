"""qblock compare --recoding both: each side is what a search with that recoding finds, and the guarantees are equal."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import qblock
from qblock.errors import InputError
from qblock.search.recodings import FIGURES, compare_recodings
from qblock.search.run import open_task, run_search
from qblock.spec import Spec, read_spec

from .whole import HIERARCHIES, load, rows_of, text_of

pytestmark = pytest.mark.either_engine

DRAWN = "workload: {queries: 200, seed: 0}"
"""What is drawn where a spec says nothing; written out, a search gives its query error."""
WRITTEN = "workload: [{a: [a0, a2], y: [1, 2]}, {b: [b1]}]"
K, ENTROPY = "k_anonymity: {k: 4}", "entropy_l_diversity: {l: 2, sensitive: s}"
CLOSE = "nt_closeness: {n: 20, t: 0.3, sensitive: s, variant: own_or_top}"
PAIR = "distinct_l_diversity: {l: 2, sensitive: [s, y]}"
SIZES = "search: {choose_from: sizes, choose_by: loss}\n"
SIZED = ["k_anonymity: {k: 2}", "entropy_l_diversity: {l: 1.5, sensitive: s}"]


def with_privacy(spec: Spec, privacy: list[str], more: str) -> Spec:
    """Another spec over the same table."""
    return read_spec(text_of(spec.source.url.url, privacy, more), spec.path, {})


def compared(spec: Spec) -> dict[str, Any]:
    with open_task(spec) as task:
        return compare_recodings(task).to_json()


def searched(spec: Spec) -> dict[str, Any]:
    with open_task(spec) as task:
        return run_search(task, best_only=spec.search.answer == "best").to_json()


@pytest.mark.parametrize(
    ("privacy", "search", "more"),
    [
        ([K], f"choose_by: loss, {DRAWN}", ""),
        ([K, ENTROPY, PAIR], f"choose_by: discernibility, {DRAWN}", "suppression_limit: 5\n"),
        ([K, "t_closeness: {t: 0.3, sensitive: s}"], f"choose_by: kl_divergence, {WRITTEN}", "suppression_limit: 5\n"),
        ([CLOSE], f"choose_by: loss, weights: {{a: 3}}, {WRITTEN}", ""),
        (["k_anonymity: {k: 3}"], f"answer: best, choose_by: loss, {DRAWN}", "count: entities\n"),
        (
            ["k_anonymity: {k: 8}", "frequency_l_diversity: {l: 1.2, sensitive: s}"],
            f"choose_from: sizes, choose_by: loss, {DRAWN}",
            "",
        ),
    ],
)
def test_each_side_is_what_a_search_finds(
    warehouse: Any, tmp_path: Path, privacy: list[str], search: str, more: str
) -> None:
    rows = rows_of(3, 60, people=20 if "entities" in more else None)
    full = load(warehouse, tmp_path, rows, privacy, f"{more}search: {{{search}}}\n")
    mapped = with_privacy(full, privacy, f"{more}search: {{recoding: multidimensional, {search}}}\n")
    node, boxes = searched(full), searched(mapped)
    answer = compared(full)
    sides = answer["recodings"]
    for side, alone in ((sides["full_domain"], node), (sides["multidimensional"], boxes)):
        assert {name: side[name] for name in ("levels", "suppressed", "tightest")} == {
            name: alone["chosen"][name] for name in ("levels", "suppressed", "tightest")
        }
        assert side["metrics"] == {name: alone["chosen"]["metrics"][name] for name in FIGURES}
        assert all(entry["holds"] for entry in side["tightest"])
        assert side["suppressed"] <= answer["suppressed_rows_allowed"]
    assert sides["multidimensional"]["blocks"] == boxes["chosen"]["boxes"]
    assert sides["multidimensional"]["attributes"] == boxes["chosen"]["attributes"]
    assert sides["multidimensional"]["metrics"]["loss"] <= sides["full_domain"]["metrics"]["loss"]
    assert answer["why"] == {"full_domain": node["why"], "multidimensional": boxes["why"]}
    assert answer["workload"] == (
        {"queries": 200, "drawn": True} if DRAWN in search else {"queries": 2, "drawn": False}
    )
    assert _still(compared(mapped)) == _still(answer)  # whichever of them the spec asks for


def _still(answer: Any) -> Any:
    if isinstance(answer, dict):
        left_out = ("seconds", "queries", "statements")
        return {name: _still(value) for name, value in answer.items() if name not in left_out}
    return [_still(item) for item in answer] if isinstance(answer, list) else answer


HIDDEN: dict[str, Any] = {"suppressed": 1.0, "labels": [], "words": "suppressed to * for 100 %"}


def at(level: int) -> dict[str, Any]:
    """An attribute that is published at one level."""
    labels = [{"level": level, "name": f"level{level}", "form": "plain", "share": 1.0}]
    return {"suppressed": 0.0, "labels": labels, "words": f"level{level} for 100 %" if level else "as it is for 100 %"}


@pytest.mark.parametrize(("limit", "node"), [(5, [0, 1]), (12, [1, 0])])
def test_the_blocks_and_levels_of_a_node_by_hand(warehouse: Any, tmp_path: Path, limit: int, node: list[int]) -> None:
    rows, more = rows_of(3, 60), f"suppression_limit: {limit}\nsearch: {{choose_by: loss}}\n"
    spec = load(warehouse, tmp_path, rows, ["k_anonymity: {k: 9}"], more)
    side = compared(spec)["recodings"]["full_domain"]
    levels = dict(zip("ab", side["levels"], strict=True))
    sizes = Counter(tuple(HIERARCHIES[name][row[name]][level] for name, level in levels.items()) for row in rows)
    kept = [size for size in sizes.values() if size >= 9]
    assert (side["blocks"], side["suppressed"]) == (len(kept), 60 - sum(kept))
    assert (side["levels"], side["suppressed"] > 0) == (node, limit == 12)
    assert side["attributes"] == [
        {"attribute": name, **(HIDDEN if level == {"a": 2, "b": 1}[name] else at(level))}
        for name, level in levels.items()
    ]


def test_what_a_search_costs_is_told_apart(warehouse: Any, tmp_path: Path) -> None:
    answer = compared(load(warehouse, tmp_path, rows_of(3, 60), [K]))
    sides = list(answer["recodings"].values())
    assert all(side["statements"] > 0 and side["seconds"] >= 0 for side in sides)
    assert sum(side["statements"] for side in sides) < answer["queries"]  # the source was opened, too
    assert sum(side["seconds"] for side in sides) <= answer["seconds"] + 0.01  # rounded


@pytest.mark.parametrize(
    ("seed", "size", "there"),
    [(0, 14, (True, True)), (1, 22, (True, False)), (18, 14, (False, True)), (3, 14, (False, False))],
)
def test_where_one_has_no_answer_it_says_why(
    warehouse: Any, tmp_path: Path, seed: int, size: int, there: tuple[bool, bool]
) -> None:
    spec = load(warehouse, tmp_path, rows_of(seed, size), SIZED, SIZES)
    both = qblock.Release(spec).compare_recodings()
    answer = json.loads(json.dumps(both.to_dict(), allow_nan=False))
    assert tuple(side is not None for side in answer["recodings"].values()) == there
    assert (both.recodings.full_domain is not None, both.recodings.multidimensional is not None) == there
    for said, is_there in zip(answer["why"].values(), there, strict=True):
        assert ("chosen by block sizes alone, fail" in said) != is_there
    if any(there):
        both.raise_refused()
        return
    with pytest.raises(qblock.Refused, match="chosen by block sizes alone, fails entropy_l_diversity"):
        both.raise_refused()


def test_where_nothing_satisfies_neither_has_an_answer(warehouse: Any, tmp_path: Path) -> None:
    both = qblock.Release(load(warehouse, tmp_path, rows_of(3, 20), ["k_anonymity: {k: 30}"])).compare_recodings()
    assert (both.recodings.full_domain, both.recodings.multidimensional) == (None, None)
    assert "the most general node satisfies k 20" in both.why.full_domain
    assert "there is no map" in both.why.multidimensional
    with pytest.raises(qblock.Refused, match="asks k 30"):
        both.raise_refused()


LATTICE = "nt_closeness: {n: 5, t: 0.3, sensitive: s}"
PARTITION = "nt_closeness: {n: 5, t: 0.3, sensitive: s, variant: partition}"
MAP = "search: {recoding: multidimensional, choose_by: loss}\n"


@pytest.mark.parametrize(
    ("entry", "more", "said"),
    [
        (K, "search: {choose_by: height}\n", "spec.yaml:13: height cannot choose between splits; .*valid: loss"),
        (K, "search: {node: [1, 1]}\n", "spec.yaml:13: only one of the recodings has it; leave it out"),
        (LATTICE, "", "spec.yaml:12: the variant lattice .* for nodes .* write `variant: own_or_top`"),
        (PARTITION, MAP, "spec.yaml:12: the variant partition .* for recoding maps .* write `variant: own_or_top`"),
    ],
)
def test_what_only_one_of_them_has_is_refused(tmp_path: Path, entry: str, more: str, said: str) -> None:
    # Before the source is looked for: there is none.
    spec = read_spec(text_of("duckdb:///absent.duckdb", [entry], more), tmp_path / "spec.yaml", {})
    with pytest.raises(InputError, match=said):
        qblock.Release(spec).compare_recodings()
