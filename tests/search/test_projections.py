"""k-anonymity of what one attacker knows at a time: `of` these quasi-identifiers, or `any` so many of them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws.cases import quick

from qblock.blocks import Blocks, Reference
from qblock.errors import InputError
from qblock.models import KAnonymity
from qblock.models.anonymity import projected
from qblock.models.examples import in_words
from qblock.search.audit import audit_spec
from qblock.search.recodings import compare_recodings
from qblock.search.run import open_task, run_search

from .whole import HIERARCHIES, load, rows_of

NAMES = ("a", "b", "c")
Key = tuple[int, ...]


def choices_of(model: KAnonymity, names: Sequence[str]) -> list[tuple[str, ...]]:
    return list(itertools.combinations(names, model.any)) if model.any else [tuple(map(str, model.of or ()))]


def slow_tightest(rows: Sequence[dict[str, Any]], model: KAnonymity, names: Sequence[str]) -> int:
    """Each row is looked up among all rows, one choice of columns after another."""
    counted = (Counter(tuple(row[name] for name in chosen) for row in rows) for chosen in choices_of(model, names))
    return min(min(counter.values()) for counter in counted)


def counted(keys: Sequence[Key]) -> Blocks:
    blocks = Counter(keys)
    sizes = np.array([blocks[key] for key in sorted(blocks)], np.int64)
    number = np.arange(len(sizes), dtype=np.int64)
    return Blocks.from_pairs(number, np.zeros_like(number), sizes, np.array(sorted(blocks), np.int64))


def tightest(model: KAnonymity, keys: Sequence[Key]) -> Any:
    nothing = Reference(len(keys), (), np.zeros(0, np.int64))
    return model.tightest(projected(model, counted(keys), NAMES), nothing)


models = st.sampled_from(
    [{"of": ("a",)}, {"of": ("c", "a")}, {"of": ("a", "b", "c")}, {"any": 1}, {"any": 2}, {"any": 3}]
)
tables = st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=25)


@quick
@given(keys=tables, more=models, k=st.integers(1, 5))
def test_it_is_the_smallest_group_of_a_slow_count(keys: list[Key], more: dict[str, Any], k: int) -> None:
    model = KAnonymity(k=k, **more)
    rows = [dict(zip(NAMES, key, strict=True)) for key in keys]
    expected = slow_tightest(rows, model, NAMES)
    found = tightest(model, keys)
    assert (found.values[0].value, found.holds) == (expected, expected >= k)


@quick
@given(keys=tables, more=models)
def test_generalizing_keeps_it_and_all_quasi_identifiers_imply_it(keys: list[Key], more: dict[str, Any]) -> None:
    model = KAnonymity(k=1, **more)
    coarser = [(min(a, 1), b, 0) for a, b, _ in keys]
    fine = tightest(model, keys).values[0].value
    assert tightest(model, coarser).values[0].value >= fine >= min(Counter(keys).values())
    assert model.monotone.generalization


def test_an_example_by_hand() -> None:
    """Of four people any one column is shared by two; all three columns tell everybody apart."""
    keys = [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)]
    assert [tightest(KAnonymity(k=1, any=m), keys).values[0].value for m in (1, 2, 3)] == [2, 1, 1]
    # Without its first block the column a has a group of one: so it does not survive suppression of others.
    assert tightest(KAnonymity(k=1, of=("a",)), keys).values[0].value == 2
    assert tightest(KAnonymity(k=1, of=("a",)), keys[1:]).values[0].value == 1
    assert not KAnonymity(k=1, any=1).monotone.suppression


def test_what_it_means_says_whom_it_protects_from() -> None:
    assert in_words(KAnonymity(k=3, of=("age", "sex"))).endswith("to somebody who knows age and sex and no more")
    assert in_words(KAnonymity(k=3, any=2)).endswith("knows any 2 of the quasi-identifiers and no more")
    assert "somebody" not in in_words(KAnonymity(k=3))


@pytest.mark.either_engine
@pytest.mark.parametrize("more", [{"of": ("a",)}, {"of": ("b",)}, {"any": 1}, {"any": 2}], ids=str)
def test_a_search_and_an_audit_count_as_the_slow_count_does(
    warehouse: Any, tmp_path: Path, more: dict[str, Any]
) -> None:
    model = KAnonymity(k=6, **more)
    rows = rows_of(7, 40)
    ((name, value),) = more.items()
    entry = f"k_anonymity: {{k: 6, {name}: {list(value) if name == 'of' else value}}}"
    spec = load(warehouse, tmp_path, rows, [entry], "versions: {joint: none}\n")
    expected = {}
    for node in itertools.product(range(3), range(2)):
        shown = [{n: HIERARCHIES[n][row[n]][level] for n, level in zip("ab", node, strict=True)} for row in rows]
        expected[node] = slow_tightest(shown, model, "ab")
    with open_task(spec) as task:
        outcome = run_search(task).outcome
        found = {node: task.assess(node).tightest[0].values[0].value for node in task.lattice.nodes()}
    assert found == expected
    assert outcome is not None
    assert outcome.satisfying() == sorted(node for node, k in expected.items() if k >= 6)
    assert len(set(expected.values())) > 1
    (first, *_) = audit_spec(spec, "0,0")["tightest"]
    assert (first["model"], first["values"][0]["value"], first["holds"]) == (
        "k_anonymity",
        expected[0, 0],
        expected[0, 0] >= 6,
    )


ALONE = "versions: {joint: none}\n"
WRONG = [
    ("{k: 3, of: [a, d]}", ALONE, "of names d, which is not a quasi_identifier"),
    ("{k: 3, of: [s]}", ALONE, "of names s, which is not a quasi_identifier"),
    ("{k: 3, of: []}", ALONE, "one quasi_identifier or more"),
    ("{k: 3, any: 3}", ALONE, "any = 3 is more than the 2 quasi_identifiers; write `any: 2` or less"),
    ("{k: 3, any: 0}", ALONE, "any >= 1"),
    ("{k: 3, any: 1, of: [a]}", ALONE, "write one of the two"),
    ("{k: 3, any: 1}", ALONE + "suppression_limit: 2\n", "`suppression_limit: 0`"),
    ("{k: 3, any: 1}", ALONE + "count: entities\n", "`count: rows`"),
    ("{k: 3, any: 1}", ALONE + "search: {recoding: multidimensional}\n", "`search: {recoding: full_domain}`"),
    ("{k: 3, any: 1}", "", "`versions: {joint: none}`"),
]


@pytest.mark.either_engine
@pytest.mark.parametrize(("entry", "more", "said"), WRONG)
def test_what_cannot_be_counted_is_refused(warehouse: Any, tmp_path: Path, entry: str, more: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        load(warehouse, tmp_path, rows_of(7, 12), [f"k_anonymity: {entry}"], more)
    assert said in str(refused.value)


@pytest.mark.either_engine
def test_a_comparison_of_both_recodings_is_refused(warehouse: Any, tmp_path: Path) -> None:
    spec = load(warehouse, tmp_path, rows_of(7, 12), ["k_anonymity: {k: 3, any: 1}"], ALONE)
    with open_task(spec) as task, pytest.raises(InputError, match="leave out `of` and `any`"):
        compare_recodings(task)
