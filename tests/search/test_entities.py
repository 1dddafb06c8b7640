"""count: entities in the multi-attribute form and in a comparison; one model at a time is held elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from reference import closeness, diversity, lattices
from reference.tables import Block

from qblock.errors import InputError
from qblock.models import NtCloseness
from qblock.search.compare import compare
from qblock.search.compare_results import to_json, violations
from qblock.search.run import open_task, run_search
from qblock.spec import read_spec

from .whole import load, rows_of, slow, text_of

pytestmark = pytest.mark.either_engine

VARIANTS = ("lattice", "own_or_top")
ENTITIES = "count: entities\n"
BASES: dict[str, Callable[[Block], bool]] = {
    "distinct_l_diversity: {l: 2, sensitive: [s, y]}": lambda b: diversity.distinct_holds(b, 2),
    "frequency_l_diversity: {l: 1.5, sensitive: [s, y]}": lambda b: diversity.frequency_holds(b, Fraction(3, 2)),
    "entropy_l_diversity: {l: 1.5, sensitive: [s, y]}": lambda b: diversity.entropy_holds(b, Fraction(3, 2)),
    "recursive_cl_diversity: {c: 2.5, l: 2, sensitive: [s, y]}": lambda b: diversity.recursive_holds(
        b, Fraction(5, 2), 2
    ),
}


@pytest.mark.parametrize("limit", [0, 12])
@pytest.mark.parametrize("entry", BASES)
def test_the_multi_attribute_form(warehouse: Any, tmp_path: Path, entry: str, limit: int) -> None:
    rows = rows_of(11, 90, people=30)
    spec = load(warehouse, tmp_path, rows, [entry], f"suppression_limit: {limit}\ncount: entities\n")
    table = slow(rows, entity="person")

    def passes(block: Block) -> bool:
        parts = diversity.multi_attribute_blocks(block, ["s", "y"])
        return all(BASES[entry](part) for blocks in parts.values() for part in blocks)

    with open_task(spec) as task:
        result = run_search(task)
        counted = {node: task.counts(node).failing_rows for node in task.lattice.nodes()}
    assert counted == {node: lattices.suppressed_rows(table, node, passes) for node in table.nodes()}
    assert result.outcome is not None
    assert result.outcome.satisfying() == sorted(lattices.satisfying(table, passes, limit))
    assert len(set(counted.values())) > 1


def test_a_comparison(warehouse: Any, tmp_path: Path) -> None:
    rows = rows_of(13, 60, people=25)
    privacy = ["k_anonymity: {k: 3}", "entropy_l_diversity: {l: 2, sensitive: s}"]
    spec = load(warehouse, tmp_path, rows, privacy, "count: entities\n")
    table = slow(rows, entity="person")
    with open_task(spec) as task:
        comparison = compare(task, sensitives=["s"])
    names = {d.name: i for i, d in enumerate(comparison.definitions)}
    for row in comparison.rows:
        blocks = list(table.blocks(row.node).values())
        assert row.values[names["k_anonymity"]][0].value == min(b.size() for b in blocks)
        largest = max(diversity.alpha_tightest(b) for b in blocks)
        assert row.values[names["alpha_k_anonymity(k=1) s"]][0].value == largest
        assert row.figures["discernibility"] == sum(len(b.rows) ** 2 for b in blocks)
    answer = {entry["definition"]: entry for entry in to_json(comparison)["asked"]}
    nodes = lattices.satisfying(table, lambda b: diversity.k_holds(b, 3))
    assert answer["k_anonymity(k=3)"]["minimal"] == [list(node) for node in lattices.minimal(nodes)]
    checked, wrong = violations(comparison)
    assert wrong == []
    assert {column.split(":")[0] for column in checked} == {"k_anonymity", "k_anonymity(k=3)", "distinct_l_diversity s"}


def test_the_table_as_superset_has_people(warehouse: Any, tmp_path: Path) -> None:
    """With more rows than people no block is large by its rows, and n beyond the people is out of range."""
    rows = rows_of(17, 60, people=15)
    table = slow(rows, entity="person")
    people = table.whole().size()
    assert people == 14
    entries = [f"nt_closeness: {{n: {n}, t: 0.3, variant: {v}, sensitive: s}}" for n in (5, people) for v in VARIANTS]
    spec = load(warehouse, tmp_path, rows, entries, ENTITIES)
    seen = set()
    with open_task(spec) as task:
        for node in task.lattice.nodes():
            blocks = list(table.blocks(node).values())
            for requirement, tightest in zip(spec.privacy, task.assess(node).tightest, strict=True):
                model = requirement.model
                assert isinstance(model, NtCloseness)
                expected = {
                    "t": max(closeness.nt_tightest_t(b, model.n, model.variant, "equal") for b in blocks),
                    "n": min(closeness.nt_tightest_n(b, model.t, model.variant, "equal") for b in blocks),
                }
                assert {v.parameter: v.value for v in tightest.values} == expected
                seen.add(expected["n"])
    assert max(seen) <= people
    assert people in seen
    text = text_of(spec.source.url.url, [f"nt_closeness: {{n: {people + 1}, t: 0.3, sensitive: s}}"], ENTITIES)
    above = read_spec(text, tmp_path / "spec.yaml", {})
    with pytest.raises(InputError, match="1 <= n <= N = 14, the entities of the table"), open_task(above):
        pass
