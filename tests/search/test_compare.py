"""qblock compare: every value of every node against the slow reference, on every engine."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from laws.cases import plain_case
from laws.rules import RULES
from reference import adversary, closeness, diversity, lattices
from reference.exact import Exact, decimal_of
from reference.tables import Block, Table

from qblock.errors import InputError
from qblock.frequency import FrequencySets
from qblock.models import DeltaDisclosure, EntropyLDiversity, Value, parameters_of
from qblock.search.compare import Comparison, Definition, compare
from qblock.search.compare_results import best, compared, granted, inclusions, to_json, violations, weaker, write_csv
from qblock.search.run import open_task
from qblock.spec import Spec

from .whole import load, rows_of, slow

pytestmark = pytest.mark.either_engine

Tightest = Callable[[Block], Exact]


def _epsilon(kind: str, sigma: int | None = None, prior: str = "uniform") -> Tightest:
    shapes = {"uniform": adversary.uniform, "table": adversary.observed}
    return lambda b: adversary.epsilon_tightest(
        b, kind, shape=shapes[prior](b.table), sigma=None if sigma is None else Fraction(sigma)
    )


EPSILON = "epsilon_privacy(adversary="
BATTERY: dict[str, Tightest] = {
    "k_anonymity": diversity.k_tightest,
    "distinct_l_diversity": diversity.distinct_tightest,
    "frequency_l_diversity": diversity.frequency_tightest,
    "entropy_l_diversity": diversity.entropy_tightest,
    "recursive_cl_diversity(c=3)": lambda b: diversity.recursive_tightest_l(b, 3),
    "t_closeness": lambda b: closeness.t_tightest(b, "equal"),
    "t_closeness(distance=ordered)": lambda b: closeness.t_tightest(b, "ordered"),
    "t_closeness(distance=hierarchical)": lambda b: closeness.t_tightest(b, "hierarchical"),
    "beta_likeness": lambda b: closeness.beta_tightest(b, "basic"),
    "delta_disclosure": lambda b: closeness.disclosure_tightest(b, "violation"),
    "alpha_k_anonymity(k=1)": diversity.alpha_tightest,
    f"{EPSILON}I, stubbornness=1000)": _epsilon("I", 1_000),
    f"{EPSILON}I, stubbornness=1000, prior=table)": _epsilon("I", 1_000, "table"),
    f"{EPSILON}I, stubbornness=1000000)": _epsilon("I", 1_000_000),
    f"{EPSILON}I, stubbornness=1000000, prior=table)": _epsilon("I", 1_000_000, "table"),
    f"{EPSILON}II, stubbornness=1000)": _epsilon("II", 1_000),
    f"{EPSILON}II, stubbornness=1000000)": _epsilon("II", 1_000_000),
    f"{EPSILON}III)": _epsilon("III"),
    f"{EPSILON}III, prior=table)": _epsilon("III", prior="table"),
}
BY_RULE = ("nt_closeness", "epsilon_m_anonymity", "delta_l_diversity")
NUMERIC = (("epsilon_m_anonymity", "epsilon=0"), ("delta_l_diversity", "delta=0, l=2"))
ASKED: dict[str, Callable[[Block], bool]] = {
    "k_anonymity(k=3)": lambda b: diversity.k_holds(b, 3),
    "distinct_l_diversity(l=2) s": lambda b: diversity.distinct_holds(b, 2),
    "frequency_l_diversity(l=2) s": lambda b: diversity.frequency_holds(b, 2),
    "entropy_l_diversity(l=2.5) s": lambda b: diversity.entropy_holds(b, Fraction(5, 2)),
}
PRIVACY = [
    "k_anonymity: {k: 3}",
    "distinct_l_diversity: {l: 2, sensitive: s}",
    "frequency_l_diversity: {l: 2, sensitive: s}",
    "entropy_l_diversity: {l: 2.5, sensitive: s}",
]


def compare_spec(spec: Spec, **options: Any) -> Comparison:
    with open_task(spec) as task:
        return compare(task, **options)


def by_rule(definition: Definition) -> Tightest:
    """The slow reference of the laws, for a model that needs nothing of their cases."""
    model, (bound,) = definition.model, definition.bounds
    case = plain_case([{0: 1}])
    return lambda block: RULES[model.name].tightest(block, parameters_of(model), case)[bound.parameter]


def expected(values: list[tuple[Exact, int]], larger: bool, budget: int) -> Exact:
    """The strongest value v such that the blocks that are worse than v have at most `budget` rows."""
    worse = (lambda x, v: decimal_of(x) < decimal_of(v)) if larger else (lambda x, v: decimal_of(x) > decimal_of(v))
    affordable = [v for v, _ in values if sum(rows for x, rows in values if worse(x, v)) <= budget]
    return (max if larger else min)(affordable, key=decimal_of)


def same(value: Any, wanted: Exact) -> bool:
    if isinstance(value, float) or isinstance(wanted, float):
        return bool(value == wanted)
    return abs(decimal_of(value) - decimal_of(wanted)) < Fraction(1, 10**25)


@pytest.mark.parametrize("budget", [0, 4])
def test_every_value_of_every_node(warehouse: Any, tmp_path: Path, budget: int) -> None:
    rows = rows_of(1, 40)
    comparison = compare_spec(load(warehouse, tmp_path, rows, PRIVACY, f"suppression_limit: {budget}\n"))
    tables = {"": slow(rows), " s": slow(rows), " y": slow(rows, "y")}
    seen = set()
    for row in comparison.rows:
        blocks = {name: list(table.blocks(row.node).values()) for name, table in tables.items()}
        for definition, values in zip(comparison.definitions, row.values, strict=True):
            if definition.requested:
                continue
            suffix = next((s for s in (" s", " y") if definition.name.endswith(s)), "")
            tightest = BATTERY.get(definition.name.removesuffix(suffix)) or by_rule(definition)
            wanted = [(tightest(block), len(block.rows)) for block in blocks[suffix]]
            seen |= {definition.name} if tightest in BATTERY.values() or definition.model.name in BY_RULE else set()
            assert same(values[0].value, expected(wanted, definition.bounds[0].stricter == "larger", budget)), (
                row.node,
                definition.name,
            )
    assert len(comparison.rows) == 6
    assert seen == {"k_anonymity", "epsilon_m_anonymity(epsilon=0.4) y", "delta_l_diversity(delta=0.4) y"} | {
        f"{name} {s}"
        for name in {*BATTERY, "nt_closeness(n=40, variant=own_or_top)"} - {"k_anonymity"}
        for s in "sy"
        if not ("hierarchical" in name and s == "y") and not ("ordered" in name and s == "s")
    }
    assert {(entry.of, entry.why.split(":")[0]) for entry in comparison.not_computed} >= {
        ("k_map", "needs a population table"),
        ("delta_presence", "needs a population table"),
        ("t_closeness (s, distance=ordered)", "needs an order"),
        ("t_closeness (y, distance=hierarchical)", "needs a taxonomy"),
        *((f"{name} (s, {given})", "needs numbers") for name, given in NUMERIC),
    }


def satisfying(table: Table, name: str, budget: int) -> list[tuple[int, ...]]:
    return lattices.satisfying(table, ASKED[name], budget)


@pytest.mark.parametrize("budget", [0, 5])
def test_verdicts_minimal_nodes_and_inclusions(warehouse: Any, tmp_path: Path, budget: int) -> None:
    rows = rows_of(9, 30)
    comparison = compare_spec(
        load(warehouse, tmp_path, rows, PRIVACY, f"suppression_limit: {budget}\n"), sensitives=["s"]
    )
    table = slow(rows)
    sets = {name: set(satisfying(table, name, budget)) for name in ASKED}
    answer = to_json(comparison)
    assert {entry["definition"] for entry in answer["asked"]} == set(ASKED)
    for entry in answer["asked"]:
        nodes = sets[entry["definition"]]
        assert entry["satisfying"] == len(nodes)
        assert entry["minimal"] == [list(node) for node in lattices.minimal(nodes)]
    more, equal = inclusions(comparison)
    assert {(i.more, i.less): i.only for i in more} == {
        (a, b): len(sets[a] - sets[b]) for a in ASKED for b in ASKED if sets[b] < sets[a]
    }
    assert {frozenset(pair) for pair in equal} == {
        frozenset((a, b)) for a in ASKED for b in ASKED if a != b and sets[a] == sets[b]
    }
    assert more
    satisfied = {(i.more, i.less) for i in compared(comparison).directly_more_useful}
    for _ in ASKED:
        satisfied |= {(a, d) for a, b in satisfied for c, d in satisfied if b == c}
    assert satisfied == {(i.more, i.less) for i in more}


def test_the_best_metrics_are_those_of_what_would_be_published(warehouse: Any, tmp_path: Path) -> None:
    rows, budget = rows_of(6, 30), 5
    comparison = compare_spec(
        load(warehouse, tmp_path, rows, PRIVACY, f"suppression_limit: {budget}\n"), sensitives=["s"]
    )
    table = slow(rows)
    for definition in comparison.requested:
        passes = ASKED[definition.name]
        nodes = satisfying(table, definition.name, budget)
        figures = best(comparison, definition)
        costs = []
        for node in nodes:
            blocks = list(table.blocks(node).values())
            kept = [len(b.rows) for b in blocks if passes(b)]
            costs.append(sum(n * n for n in kept) + (len(rows) - sum(kept)) * len(rows))
        assert figures["discernibility"]["value"] == min(costs)
        assert tuple(figures["discernibility"]["levels"]) in nodes
        assert figures["height"]["value"] == min(map(sum, nodes))


def test_counts_are_fetched_once_per_node_and_attribute(
    warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[tuple[Any, Any]] = []
    blocks = FrequencySets.blocks

    def counted(self: FrequencySets, node: Any, sensitive: Any, **more: Any) -> Any:
        fetched.extend((node, i) for i in sensitive)
        return blocks(self, node, sensitive, **more)

    spec = load(warehouse, tmp_path, rows_of(1, 20), PRIVACY)
    monkeypatch.setattr(FrequencySets, "blocks", counted)
    comparison = compare_spec(spec)
    assert sorted(fetched) == sorted((row.node, i) for row in comparison.rows for i in (0, 1))


def test_the_table_as_csv(warehouse: Any, tmp_path: Path) -> None:
    rows = rows_of(2, 25)
    comparison = compare_spec(load(warehouse, tmp_path, rows, PRIVACY))
    write_csv(comparison, tmp_path / "all.csv")
    with (tmp_path / "all.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(int(line["a"]), int(line["b"])) for line in lines] == [row.node for row in comparison.rows]
    table = slow(rows)
    for line, row in zip(lines, comparison.rows, strict=True):
        sizes = [len(block.rows) for block in table.blocks(row.node).values()]
        assert int(line["height"]) == sum(row.node)
        assert int(line["blocks"]) == len(sizes)
        assert float(line["average_block_size"]) == pytest.approx(25 / len(sizes))
        assert int(line["discernibility"]) == sum(n * n for n in sizes)
        assert int(line["k_anonymity: k"]) == min(sizes)
        shares = [max(b.counts().values()) / b.mass() for b in table.blocks(row.node).values()]
        assert float(line["alpha_k_anonymity(k=1) s: alpha"]) == pytest.approx(max(shares))
        homogeneous = any(len(b.counts()) == 1 for b in table.blocks(row.node).values())
        assert (line[f"{EPSILON}III) s: epsilon"] == "inf") == homogeneous
        assert line["satisfies k_anonymity(k=3)"] == ("true" if min(sizes) >= 3 else "false")
    assert {line[f"{EPSILON}III) s: epsilon"] == "inf" for line in lines} == {True, False}


def test_json_is_plain(warehouse: Any, tmp_path: Path) -> None:
    comparison = compare_spec(load(warehouse, tmp_path, rows_of(2, 25), PRIVACY))
    answer = json.loads(json.dumps(to_json(comparison), allow_nan=False))
    (first, second) = answer["epsilon"]
    assert (first["sensitive"], second["sensitive"]) == ("s", "y")
    assert first["adversaries"][:2] == ["I 1000 uniform", "I 1000 table"]
    assert len(first["nodes"]) == answer["nodes_total"] == 6
    top = {**answer["nodes"][-1]["tightest"]}
    assert first["nodes"][-1]["epsilon"][-1] == top[f"{EPSILON}III, prior=table) s: epsilon"] == 1


def test_the_self_check_finds_nothing_and_would_find_something(warehouse: Any, tmp_path: Path) -> None:
    comparison = compare_spec(
        load(warehouse, tmp_path, rows_of(3, 40), [*PRIVACY, "nt_closeness: {n: 9, t: 0.2, sensitive: s}"])
    )
    checked, wrong = violations(comparison)
    assert wrong == []
    assert set(checked) == {c for d in comparison.definitions if d.model.monotone.generalization for c in d.columns}
    assert {d.model.name for d in comparison.definitions if not d.model.monotone.generalization} >= {
        "nt_closeness",
        "epsilon_m_anonymity",
    }
    # The values of the finest and of the most general node change places.
    first, last = comparison.rows[0], comparison.rows[-1]
    rows = (replace(first, values=last.values), *comparison.rows[1:-1], replace(last, values=first.values))
    broken = violations(replace(comparison, rows=rows))[1]
    assert {v.column for v in broken} >= {"k_anonymity: k", "entropy_l_diversity s: l", "delta_disclosure s: delta"}
    assert all(first.node == v.finer or last.node == v.coarser for v in broken)


def test_only_models_that_stay_monotone_under_suppression_are_checked_then(warehouse: Any, tmp_path: Path) -> None:
    comparison = compare_spec(load(warehouse, tmp_path, rows_of(3, 40), PRIVACY, "suppression_limit: 3\n"))
    checked, wrong = violations(comparison)
    assert wrong == []
    assert {c.split(":")[0].split("(")[0].split(" ")[0] for c in checked} == {"k_anonymity", "distinct_l_diversity"}


def test_infinity_beside_logarithms() -> None:
    # delta of delta-disclosure is infinite at one node and a logarithm at the next
    (delta,), (entropy,) = DeltaDisclosure.about.bounds, EntropyLDiversity.about.bounds
    infinite, finite = Value("delta", math.inf, False), Value("delta", Decimal("0.5"), False)
    assert weaker(infinite, finite, delta)
    assert not weaker(finite, infinite, delta)
    assert not weaker(infinite, infinite, delta)
    near = Value("l", Decimal("2") + Decimal("1e-50"), True)
    assert not weaker(Value("l", Decimal("2"), True), near, entropy)
    assert weaker(Value("l", 2, True), Value("l", Decimal("2.1"), True), entropy)
    assert weaker(Value("l", Decimal("2.1"), True), Value("l", 3, True), entropy)


def test_further_definitions_come_from_a_file(warehouse: Any, tmp_path: Path) -> None:
    spec = load(warehouse, tmp_path, rows_of(2, 25), PRIVACY[:1])
    file = tmp_path / "more.yaml"
    file.write_text("privacy:\n  - t_closeness: {t: 0.25, distance: ordered, sensitive: y}\n", "utf-8")
    comparison = compare_spec(spec, file=file)
    assert [d.name for d in comparison.requested] == ["k_anonymity(k=3)", "t_closeness(t=0.25, distance=ordered) y"]
    assert [d.name for d in compare_spec(spec, file=file, sensitives=["s"]).requested] == ["k_anonymity(k=3)"]
    for text, wanted in (
        ("privacy:\n  - t_closeness: {t: 2, sensitive: y}\n", "more.yaml:2: privacy[0].t_closeness.t: "),
        ("- k_anonymity: {k: 2}\n", "more.yaml:1: "),
        ("privacy:\n\n  - t_closeness: {t: 0.2, distance: ordered, sensitive: s}\n", "more.yaml:3: "),
        ("privacy: []\n", "more.yaml:1: privacy: "),
    ):
        file.write_text(text, "utf-8")
        with pytest.raises(InputError) as caught:
            compare_spec(spec, file=file)
        assert str(caught.value).startswith(f"{tmp_path}/{wanted}")
    with pytest.raises(InputError, match=r"absent\.yaml: cannot be read"):
        compare_spec(spec, file=tmp_path / "absent.yaml")
    with pytest.raises(InputError, match="--sensitive a: not a sensitive attribute of the spec; valid: s, y"):
        compare_spec(spec, sensitives=["a"])


@pytest.mark.parametrize("budget", [0, 4])
def test_what_a_definition_grants_is_never_less_than_what_its_nodes_reach(
    warehouse: Any, tmp_path: Path, budget: int
) -> None:
    privacy = [
        *PRIVACY,
        "recursive_cl_diversity: {c: 2, l: 2, sensitive: s}",
        "t_closeness: {t: 0.3, sensitive: s}",
        "epsilon_privacy: {epsilon: 3, adversary: III, sensitive: s}",
    ]
    comparison = compare_spec(load(warehouse, tmp_path, rows_of(9, 60), privacy, f"suppression_limit: {budget}\n"))
    grants = granted(comparison)
    assert all(grant.satisfied is None or grant.satisfied <= grant.implied.epsilon for grant in grants if grant.node)
    by = {(grant.definition, grant.sensitive, grant.adversary): grant for grant in grants}
    three = by["recursive_cl_diversity(c=2, l=2) s", "s", "III uniform"]
    # Four values in the taxonomy: max(4 * 2/3, 3 * 3/4).
    assert three.implied.epsilon == Fraction(8, 3)
    assert by["epsilon_privacy(epsilon=3, adversary=III) s", "s", "III uniform"].implied.epsilon == 3
    assert by["k_anonymity(k=3)", "y", "III uniform"].implied.epsilon == math.inf
    assert ("frequency_l_diversity(l=2) s", "y", "III uniform") not in by
    assert any(grant.node and grant.satisfied > 1 and grant.implied.epsilon < math.inf for grant in grants)
    satisfied = {row.node for row in comparison.rows if row.verdicts[three.definition].satisfied}
    number = next(i for i, d in enumerate(comparison.definitions) if d.name == f"{EPSILON}III) s")
    assert three.satisfied == max(row.values[number][0].value for row in comparison.rows if row.node in satisfied)
    answer = json.loads(json.dumps(to_json(comparison), allow_nan=False))["granted"]
    assert len(answer) == len(grants)
    typed = compared(comparison).granted
    assert [grant.epsilon for grant in typed] == [grant["epsilon"] for grant in answer]
